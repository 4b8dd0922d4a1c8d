//! A kernel that is ready to be launched, and how a launch is cut.

use cudarc::driver::CudaFunction;

/// A kernel on the GPU, ready to be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name, also in the timeline.
    pub name: &'static str,
    pub(super) function: CudaFunction,
    /// Threads of a block, as the kernel was compiled for.
    pub(super) threads: u32,
}

/// The shape of a launch: blocks along x and y, and threads of each block along x and y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: [u32; 2],
    /// Threads of a block.
    pub threads: [u32; 2],
}
