//! Page-locked memory through which small data travel to and from a GPU. The driver copies plain
//! memory through staging memory of its own, and lets a thread that reads wait inside the call, where
//! the threads of other images wait for it.

use crate::image::buffer::Block;
use anyhow::Result;
use cudarc::driver::CudaStream;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a stream's staging memory: as many as the host sends to the GPU about an image of 128 MiB.
const BYTES: usize = 1 << 20;

/// The staging memory of a stream, allocated when it is first used.
pub(super) struct Staging {
    stream: Arc<CudaStream>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// `Some(None)`: the driver refuses to lock memory.
    block: Option<Option<Block>>,
    /// Bytes that queued copies may still use.
    used: usize,
    /// How often memory was given out.
    given: u64,
}

impl Staging {
    /// Staging memory for copies that are queued on `stream`.
    pub(super) fn new(stream: Arc<CudaStream>) -> Staging {
        Staging {
            stream,
            memory: Mutex::default(),
        }
    }

    /// Calls `work` with page-locked memory of `len` bytes, which queued copies may use until the stream has
    /// been waited for; returns `None` if there is not so much. `waits`: `work` waits for the stream.
    /// `make` allocates such memory.
    pub(super) fn with<R>(
        &self,
        len: usize,
        waits: bool,
        make: impl FnOnce(usize) -> Option<Block>,
        work: impl FnOnce(&mut [u8]) -> Result<R>,
    ) -> Option<Result<R>> {
        if len > BYTES {
            return None;
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Memory { block, used, given } = &mut *memory;
        let block = block.get_or_insert_with(|| make(BYTES)).as_mut()?;
        let part = block.get_mut(*used..*used + len)?;
        *used += len.next_multiple_of(16);
        *given += 1;
        let result = work(part);
        if waits {
            *used = 0;
        }
        Some(result)
    }

    /// Calls `wait`, which waits for all queued work; then all memory given out before is free again. Another thread may
    /// meanwhile have queued a copy; then the memory stays in use until the next wait.
    pub(super) fn after(&self, wait: impl FnOnce() -> Result<()>) -> Result<()> {
        let lock = || self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let given = lock().given;
        wait()?;
        let mut memory = lock();
        if memory.given == given {
            memory.used = 0;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Queued copies may still use the memory. If waiting fails, the context is dead and its copies
        // have ended too.
        let _ = self.stream.synchronize();
    }
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Staging")
    }
}
