//! One NVIDIA GPU: its context, device memory, pinned host memory, kernels, launches and events, a file each. These files have
//! every call of the driver that takes a pointer. They know no operation; `job.rs` queues the calls in order and times them.
//!
//! There is `unsafe` code elsewhere, too: launches of kernels that trust the content of memory, each beside the code that fills
//! this memory; SIMD; closing a file that is still open (`os/unfinished.rs`); and the environment (`cli/entry.rs`).

mod allocator;
mod arguments;
mod budget;
mod clock;
mod commands;
mod context;
mod error;
mod event;
mod foreign;
mod graph;
mod hosts;
mod kernel;
mod lane;
pub(crate) mod launch;
mod memory;
mod module;
mod pinned;
mod recorder;
mod residents;
mod sets;
mod staging;
mod stream;
mod tensor;
mod texture;
mod waiting;
mod worker;

pub(super) use clock::elapsed;
pub use context::{Facts, Gpu, has_driver};
pub use foreign::{ForeignMemory, ForeignStream, Readers};
pub(crate) use hosts::HostKind;
pub use kernel::{Grid, Kernel};
pub use memory::{Buffer, View, ViewMut};
pub use pinned::Pinned;
pub use residents::Tenant;
