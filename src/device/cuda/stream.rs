//! Launches in a stream, and the wait for its end.

use super::context::Gpu;
use super::error::description;
use super::kernel::{Grid, Kernel};
use super::memory::Buffer;
use super::staging::Staging;
use anyhow::{Result, anyhow};
use cudarc::driver::{LaunchConfig, PushKernelArg};

/// A kernel's argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A pointer to device memory.
    Buffer(&'a Buffer),
    /// A pointer to device memory, from this byte of the buffer on.
    From(&'a Buffer, usize),
    /// A 32-bit scalar.
    U32(u32),
    /// A 64-bit scalar.
    U64(u64),
    /// A 32-bit floating-point scalar.
    F32(f32),
}

impl Gpu {
    /// Waits for all queued work.
    pub fn wait(&self) -> Result<()> {
        self.staging
            .wait()
            .map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Queues `kernel` with `grid` blocks of the number of threads that it was compiled for.
    ///
    /// # Safety
    /// As for `launch_grid`.
    pub unsafe fn launch(&self, kernel: &Kernel, grid: u32, args: &[Arg]) -> Result<()> {
        let grid = Grid {
            blocks: [grid, 1],
            threads: [kernel.threads, 1],
        };
        // SAFETY: the caller's promise is the same.
        unsafe { self.launch_grid(kernel, grid, args) }
    }

    /// Queues `kernel` with the given grid.
    ///
    /// # Safety
    /// `args` must be those of the kernel's header comment, in order, with counts that do not
    /// exceed their buffers. A kernel with a larger count reads and writes past the buffer; since
    /// pinned host memory has device addresses too, it may overwrite the host's memory.
    pub unsafe fn launch_grid(&self, kernel: &Kernel, grid: Grid, args: &[Arg]) -> Result<()> {
        let inside = |arg: &Arg| match arg {
            Arg::From(buffer, from) => Ok(buffer.part(*from, 0)?),
            _ => Ok(0),
        };
        let pointers: Vec<u64> = args.iter().map(inside).collect::<Result<_>>()?;
        let mut builder = self.stream.launch_builder(&kernel.function);
        for (arg, pointer) in args.iter().zip(&pointers) {
            match arg {
                Arg::Buffer(buffer) => builder.arg(&buffer.pointer),
                Arg::From(..) => builder.arg(pointer),
                Arg::U32(word) => builder.arg(word),
                Arg::U64(word) => builder.arg(word),
                Arg::F32(number) => builder.arg(number),
            };
        }
        let config = LaunchConfig {
            grid_dim: (grid.blocks[0], grid.blocks[1], 1),
            block_dim: (grid.threads[0], grid.threads[1], 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernels are the project's own, and access only the given buffers, up to the
        // given counts, which the caller guarantees. The tests run every kernel, also under a
        // memory checker.
        unsafe { builder.launch(config) }.map_err(|error| anyhow!("{}", description(&error)))?;
        Ok(())
    }

    /// The same GPU with its work queued on CUDA's default stream, as in the papers' programs.
    pub fn on_default_stream(self) -> Gpu {
        let stream = self.context.default_stream();
        Gpu {
            staging: Staging::new(stream.clone()),
            stream,
            ..self
        }
    }
}
