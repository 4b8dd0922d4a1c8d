//! Where a stream's device memory comes from: the driver, or what the stream's earlier images left.
//! The driver has one lock for all threads; in a batch a block that is kept saves two calls for each
//! of some thirty buffers of an image.

use super::budget::{Budget, LIMIT};
use super::error::{bind, bound_to_give_back, description};
use crate::gpu::NoMemory;
use anyhow::{Result, anyhow};
use cudarc::driver::CudaStream;
use cudarc::driver::{result, sys};
use std::sync::{Arc, Mutex};

/// The share of a GPU's memory that one stream keeps at most.
const KEPT_SHARE: usize = 256;

/// Device memory of a known size in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) pointer: sys::CUdeviceptr,
    size: usize,
}

/// Gives device memory to the work of one stream.
#[derive(Debug)]
pub(super) struct Allocator {
    stream: Arc<CudaStream>,
    budget: Arc<Budget>,
    /// Whether the driver allocates and frees in the order of the stream's work.
    ordered: bool,
    /// Blocks that came back, and the most bytes of them that are kept.
    kept: Mutex<Vec<Block>>,
    most: usize,
}

impl Allocator {
    /// An allocator that asks the driver for every block, and gives every block back to it.
    pub(super) fn plain(stream: Arc<CudaStream>, budget: Arc<Budget>) -> Allocator {
        Allocator {
            stream,
            budget,
            ordered: false,
            kept: Mutex::default(),
            most: 0,
        }
    }

    /// An allocator for a batch, which keeps blocks for the next image. `ordered`: the driver has a
    /// pool that does not interrupt other streams.
    pub(super) fn keeping(
        stream: Arc<CudaStream>,
        budget: Arc<Budget>,
        ordered: bool,
    ) -> Allocator {
        let total = stream.context().mem_get_info();
        let total = total.map_or(0, |(_, total)| total.min(budget.whole()));
        Allocator {
            stream,
            budget,
            ordered,
            kept: Mutex::default(),
            most: total / KEPT_SHARE,
        }
    }

    /// The stream whose work uses the memory.
    pub(super) fn stream(&self) -> &CudaStream {
        &self.stream
    }

    /// A block of at least `len` bytes with undefined content. The error is a `NoMemory` if a
    /// smaller amount may be available.
    pub(super) fn take(&self, len: usize) -> Result<Block> {
        let size = self.size(len);
        if let Some(block) = self.take_kept(size) {
            return Ok(block);
        }
        match self.ask(size) {
            Err(error) if error.is::<NoMemory>() && self.clear() => self.ask(size),
            other => other,
        }
    }

    /// Takes a block back, which is used by no work but what was queued on the stream.
    pub(super) fn give_back(&self, block: Block) {
        if let Ok(mut kept) = self.kept.lock() {
            let bytes: usize = kept.iter().map(|block| block.size).sum();
            if bytes + block.size <= self.most {
                kept.push(block);
                return;
            }
        }
        self.free(block);
    }

    /// Bytes of the block for a buffer of `len`: whole 16-byte words, since kernels may read to their
    /// end; blocks that may be kept come in eight sizes between two powers of two, so that one
    /// image's block serves the next image, whose data are a little longer.
    fn size(&self, len: usize) -> usize {
        let step = match self.most {
            0 => 16,
            _ => (len.next_power_of_two() / 16).max(512),
        };
        len.next_multiple_of(step).max(step)
    }

    /// The smallest kept block that is large enough, and not far too large.
    fn take_kept(&self, size: usize) -> Option<Block> {
        let mut kept = self.kept.lock().ok()?;
        let serves = |block: &Block| (size..=2 * size).contains(&block.size);
        let best = kept.iter().enumerate().filter(|(_, block)| serves(block));
        let (index, _) = best.min_by_key(|(_, block)| block.size)?;
        Some(kept.swap_remove(index))
    }

    /// Gives all kept blocks back to the driver; says whether there were any.
    fn clear(&self) -> bool {
        let kept = self.kept.lock().map(|mut kept| std::mem::take(&mut *kept));
        let kept = kept.unwrap_or_default();
        kept.iter().for_each(|&block| self.free(block));
        !kept.is_empty()
    }

    fn ask(&self, size: usize) -> Result<Block> {
        bind(self.stream.context())?;
        if !self.budget.take(size) {
            let refusal = anyhow!("{size} bytes of device memory exceed {LIMIT}");
            return Err(refusal.context(NoMemory));
        }
        // SAFETY: the call only returns a new address; the bytes there may have any value, and
        // readers get what copies and kernels have written.
        let pointer = unsafe {
            match self.ordered {
                true => result::malloc_async(self.stream.cu_stream(), size),
                false => result::malloc_sync(size),
            }
        };
        let pointer = pointer.map_err(|error| {
            self.budget.give_back(size);
            let refusal = anyhow!(
                "cannot allocate {size} bytes of device memory: {}",
                description(&error)
            );
            match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => refusal.context(NoMemory),
                _ => refusal,
            }
        })?;
        Ok(Block { pointer, size })
    }

    fn free(&self, block: Block) {
        self.budget.give_back(block.size);
        if bound_to_give_back(self.stream.context()) {
            // SAFETY: the address came from `ask`, on this stream, and is freed only here. All work
            // that uses it was queued on this stream, or the driver waits for it. An error means
            // that the context is gone, and the memory with it.
            let _ = unsafe {
                match self.ordered {
                    true => result::free_async(block.pointer, self.stream.cu_stream()),
                    false => result::free_sync(block.pointer),
                }
            };
        }
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        self.clear();
    }
}
