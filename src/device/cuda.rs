//! One NVIDIA GPU: its context, device memory, pinned host memory, kernels, launches and events, a file
//! each. These files hold every driver call with a pointer and all `unsafe` code except
//! the SIMD of `deflate`, the launches, whose arguments only operations know, and one line in
//! `console.rs`. They know no operation; `job.rs` queues these calls in order and times them.

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
