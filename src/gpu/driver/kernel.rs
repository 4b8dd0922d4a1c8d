//! A kernel that is ready to be launched, and how a launch is cut.

use cudarc::driver::CudaFunction;
use std::marker::PhantomData;
use std::ptr;

/// One of the forms in which a kernel is compiled, for samples of `sample` bytes, or pixels of `pixel` bytes. A number that the
/// kernel does not depend on is 1.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    /// `u16_c3`, `b8`, …, as in the header of the kernel's file.
    pub name: &'static str,
    /// Bytes of a sample.
    pub sample: u64,
    /// Interleaved channels.
    pub channels: u64,
    /// Bytes of a pixel.
    pub pixel: u64,
}

impl Form {
    /// The form of kernels that have only one.
    pub const ONLY: Form = Form {
        name: "",
        sample: 1,
        channels: 1,
        pixel: 1,
    };
}

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
    /// The same kernel for several images, if it was compiled as such, too.
    pub(super) set: Option<SetKernel>,
}

/// A kernel for several images at once.
#[derive(Clone, Debug)]
pub(super) struct SetKernel {
    pub(super) function: CudaFunction,
    /// The most images of a launch.
    pub(super) images: u32,
}

impl RawKernel {
    /// Whether this is the same kernel, in the same form.
    pub(super) fn is(&self, other: &RawKernel) -> bool {
        ptr::eq(self.function.cu_function(), other.function.cu_function())
    }
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
