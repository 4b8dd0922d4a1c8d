//! A kernel that is ready to be launched, and how a launch is cut.

use super::launch::Form;
use cudarc::driver::CudaFunction;
use std::marker::PhantomData;

/// A kernel on the GPU, ready to be launched with arguments of type `A`.
#[derive(Clone, Debug)]
pub struct Kernel<A> {
    pub(super) raw: RawKernel,
    pub(super) form: &'static Form,
    pub(super) arguments: PhantomData<A>,
}

impl<A> Kernel<A> {
    /// Its name, also in the timeline.
    pub fn name(&self) -> &'static str {
        self.raw.name
    }

    /// So many blocks of the number of threads that the kernel was compiled for.
    pub fn grid(&self, blocks: u32) -> Grid {
        Grid::new(blocks, self.raw.threads)
    }
}

/// A kernel as the driver knows it.
#[derive(Clone, Debug)]
pub(super) struct RawKernel {
    pub(super) name: &'static str,
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

impl Grid {
    /// Blocks and threads along x only.
    pub const fn new(blocks: u32, threads: u32) -> Grid {
        Grid {
            blocks: [blocks, 1],
            threads: [threads, 1],
        }
    }
}
