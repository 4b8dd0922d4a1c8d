//! The allocator of a stream's device memory. Blocks come from the driver, or from the stream's
//! earlier images. The driver has one lock for all threads; in a batch a block that is kept saves two
//! calls for each of some thirty buffers of an image.

use super::budget::{Budget, LIMIT};
use super::error::{bind, bound_to_give_back, description, in_words};
use crate::gpu::NoMemory;
use anyhow::{Result, anyhow};
use cudarc::driver::CudaStream;
use cudarc::driver::{result, sys};
use std::sync::{Arc, Mutex};

/// One stream keeps at most this fraction of a GPU's memory: 1 / 256.
const KEPT_SHARE: usize = 256;

/// Device memory of a known size in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) pointer: sys::CUdeviceptr,
    size: usize,
}

/// Allocates device memory for the work of one stream.
#[derive(Debug)]
pub(super) struct Allocator {
    stream: Arc<CudaStream>,
    budget: Arc<Budget>,
    /// Whether the driver allocates and frees in the order of the stream's work.
    ordered: bool,
    /// Whether other streams do the work, which may not have been queued yet (`recorder.rs`).
    recorded: bool,
    /// Blocks that were given back.
    kept: Mutex<Vec<Block>>,
    /// The most bytes of blocks that are kept.
    max_kept: usize,
}

impl Allocator {
    /// An allocator that asks the driver for every block, and gives every block back to it.
    pub(super) fn plain(stream: Arc<CudaStream>, budget: Arc<Budget>) -> Allocator {
        Allocator {
            stream,
            budget,
            ordered: false,
            recorded: false,
            kept: Mutex::default(),
            max_kept: 0,
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
            recorded: false,
            kept: Mutex::default(),
            max_kept: total / KEPT_SHARE,
        }
    }

    /// The same for work that is recorded: a block goes back to the driver in `free_surplus` only.
    pub(super) fn of_recorder(mut self) -> Allocator {
        self.recorded = true;
        self
    }

    /// The stream whose work uses the memory.
    pub(super) fn stream(&self) -> &CudaStream {
        &self.stream
    }

    /// A block of at least `len` bytes with undefined content. The error is a `NoMemory` if a
    /// smaller amount may be available.
    pub(super) fn allocate(&self, len: usize) -> Result<Block> {
        let size = self.block_size(len);
        if let Some(block) = self.reuse_kept(size) {
            return Ok(block);
        }
        match self.allocate_from_driver(size) {
            Err(error) if error.is::<NoMemory>() && !self.recorded && self.free_kept() => {
                self.allocate_from_driver(size)
            }
            other => other,
        }
    }

    /// Gives a block back. Only work that was queued on the stream may still use it.
    pub(super) fn give_back(&self, block: Block) {
        if let Ok(mut kept) = self.kept.lock() {
            let bytes: usize = kept.iter().map(|block| block.size).sum();
            if self.recorded || bytes + block.size <= self.max_kept {
                kept.push(block);
                return;
            }
        }
        self.free(block);
    }

    /// Gives blocks back to the driver until no more are kept than may be. No work may be pending.
    pub(super) fn free_surplus(&self) {
        let mut surplus = Vec::new();
        if let Ok(mut kept) = self.kept.lock() {
            let mut bytes: usize = kept.iter().map(|block| block.size).sum();
            while bytes > self.max_kept {
                let Some(block) = kept.pop() else { break };
                bytes -= block.size;
                surplus.push(block);
            }
        }
        surplus.into_iter().for_each(|block| self.free(block));
    }

    /// Bytes of the block for a buffer of `len`: whole 16-byte words, since kernels may read to their
    /// end; blocks that may be kept come in eight sizes between two powers of two, so that one
    /// image's block serves the next image, whose data are a little longer.
    fn block_size(&self, len: usize) -> usize {
        let step = match self.max_kept {
            0 => 16,
            _ => (len.next_power_of_two() / 16).max(512),
        };
        len.next_multiple_of(step).max(step)
    }

    /// The smallest kept block that is large enough, and not far too large.
    fn reuse_kept(&self, size: usize) -> Option<Block> {
        let mut kept = self.kept.lock().ok()?;
        let serves = |block: &Block| (size..=2 * size).contains(&block.size);
        let best = kept.iter().enumerate().filter(|(_, block)| serves(block));
        let (index, _) = best.min_by_key(|(_, block)| block.size)?;
        Some(kept.swap_remove(index))
    }

    /// Gives all kept blocks back to the driver; returns whether there were any. No recorded work may be pending.
    pub(super) fn free_kept(&self) -> bool {
        let kept = self.kept.lock().map(|mut kept| std::mem::take(&mut *kept));
        let kept = kept.unwrap_or_default();
        kept.iter().for_each(|&block| self.free(block));
        !kept.is_empty()
    }

    fn allocate_from_driver(&self, size: usize) -> Result<Block> {
        bind(self.stream.context())?;
        if !self.budget.reserve(size) {
            let refusal = anyhow!("{size} bytes of device memory exceed {LIMIT}");
            return Err(refusal.context(NoMemory));
        }
        // SAFETY: the call only returns a new address. The bytes there may have any value; only bytes
        // that a copy or a kernel has written are read.
        let pointer = unsafe {
            if self.ordered {
                result::malloc_async(self.stream.cu_stream(), size)
            } else {
                result::malloc_sync(size)
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
        let block = Block { pointer, size };
        if self.recorded {
            // Other streams use the memory, which is there once this stream has come so far.
            if let Err(error) = self.stream.synchronize() {
                self.free(block);
                return Err(in_words(error));
            }
        }
        Ok(block)
    }

    fn free(&self, block: Block) {
        self.budget.give_back(block.size);
        if bound_to_give_back(self.stream.context()) {
            // SAFETY: the address came from `allocate_from_driver`, on this stream, and is freed only here. All work
            // that uses it was queued on this stream, or the driver waits for it. An error means
            // that the context is gone, and the memory with it.
            let _ = unsafe {
                if self.ordered {
                    result::free_async(block.pointer, self.stream.cu_stream())
                } else {
                    result::free_sync(block.pointer)
                }
            };
        }
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        self.free_kept();
    }
}
