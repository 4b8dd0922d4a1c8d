//! One NVIDIA GPU: its context, device memory, pinned host memory, kernels, launches and events, a file
//! each. These files hold every driver call with a pointer. They know no operation; `job.rs` queues these calls in order and
//! times them. `unsafe` code elsewhere: launches of kernels that find addresses in memory, each beside the code that fills that
//! memory; SIMD; closing a file that is still open (`os/unfinished.rs`); and the environment (`cli/entry.rs`).

mod allocator;
mod budget;
mod context;
mod error;
mod event;
mod kernel;
pub(crate) mod launch;
mod memory;
mod module;
mod pinned;
mod residents;
mod staging;
mod stream;
mod waiting;

pub use context::{Facts, Gpu, has_driver};
pub(super) use error::in_words;
pub use kernel::{Grid, Kernel};
pub use memory::{Buffer, View, ViewMut};
pub use pinned::Pinned;
pub use residents::Tenant;
