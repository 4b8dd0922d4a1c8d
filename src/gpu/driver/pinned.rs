//! Host memory that a GPU reaches directly, for one image or kept from image to image.

use super::commands::{Copy, Direction};
use super::context::Gpu;
use super::error::bound_to_give_back;
use super::memory::Buffer;
use crate::image::buffer;
use anyhow::{Result, anyhow, ensure};
use cudarc::driver::CudaContext;
use cudarc::driver::sys;
use memmap2::MmapMut;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, RwLock};

impl Gpu {
    /// Memory that every GPU accesses directly, until it is dropped; `None` if the driver refuses.
    pub fn page_locked(&self, bytes: usize) -> Option<buffer::Block> {
        page_locked(&self.context, bytes)
    }

    /// `page_locked`, for other threads.
    pub fn page_locker(&self) -> impl Fn(usize) -> Option<buffer::Block> + Send + 'static {
        let context = self.context.clone();
        move |bytes| page_locked(&context, bytes)
    }

    /// Runs `work` with `host` pinned, so that the GPU accesses it directly; before it returns it
    /// waits for the queued work, whatever the result of `work`.
    pub fn with_pinned<R>(&self, host: &mut [u8], work: impl FnOnce(&mut Pinned) -> R) -> R {
        self.with_memory(host, true, work)
    }

    /// As `with_pinned`, but as a plain slice, for copies that are waited for.
    pub fn with_locked<R>(&self, host: &mut [u8], work: impl FnOnce(&mut [u8]) -> R) -> R {
        self.with_pinned(host, |pinned| work(pinned.memory))
    }

    /// As `with_pinned`, but pins the memory only if `pin` is true.
    pub fn with_memory<R>(
        &self,
        host: &mut [u8],
        pin: bool,
        work: impl FnOnce(&mut Pinned) -> R,
    ) -> R {
        let already = sys::CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        let pinning = if is_page_locked(host) {
            already
        } else if pin && self.context.bind_to_thread().is_ok() {
            // SAFETY: the range is a live slice, borrowed exclusively until after `Pinned` is
            // dropped, at the end of this function.
            unsafe { sys::cuMemHostRegister_v2(host.as_mut_ptr().cast(), host.len(), 0) }
        } else {
            sys::CUresult::CUDA_ERROR_NOT_PERMITTED
        };
        work(&mut Pinned {
            memory: host,
            gpu: self,
            registered: pinning.result().is_ok(),
            direct: pinning.result().is_ok() || pinning == already,
        })
    }
}

/// As `Gpu::page_locked`.
fn page_locked(context: &Arc<CudaContext>, bytes: usize) -> Option<buffer::Block> {
    let mut memory = buffer::mapped(bytes)?;
    context.bind_to_thread().ok()?;
    // SAFETY: the mapping is live, and `PageLocked` unregisters it before it unmaps it.
    unsafe {
        sys::cuMemHostRegister_v2(
            memory.as_mut_ptr().cast(),
            memory.len(),
            sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP,
        )
    }
    .result()
    .ok()?;
    if let Ok(mut blocks) = PAGE_LOCKED.write() {
        blocks.push(addresses(&memory));
    }
    Some(Box::new(PageLocked {
        memory,
        context: context.clone(),
    }))
}

/// The addresses of all `PageLocked` memory. To ask the driver takes 0.1 ms while other threads use
/// it.
static PAGE_LOCKED: RwLock<Vec<Range<usize>>> = RwLock::new(Vec::new());

/// The addresses of some memory.
fn addresses(memory: &[u8]) -> Range<usize> {
    let start = memory.as_ptr() as usize;
    start..start + memory.len()
}

/// Whether all GPUs access the memory directly, since it is part of a `PageLocked`.
fn is_page_locked(memory: &[u8]) -> bool {
    let part = addresses(memory);
    let holds = |block: &Range<usize>| block.start <= part.start && part.end <= block.end;
    PAGE_LOCKED
        .read()
        .is_ok_and(|blocks| blocks.iter().any(holds))
}

/// Host memory that all GPUs access directly, kept from image to image.
struct PageLocked {
    memory: MmapMut,
    context: Arc<CudaContext>,
}

impl Deref for PageLocked {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for PageLocked {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

impl Drop for PageLocked {
    fn drop(&mut self) {
        if let Ok(mut blocks) = PAGE_LOCKED.write() {
            let gone = addresses(&self.memory);
            blocks.retain(|block| *block != gone);
        }
        if bound_to_give_back(&self.context) {
            // SAFETY: registered at this address by `page_locked`; copies that use the memory have
            // been waited for by `Pinned`, which borrowed it.
            let _ = unsafe { sys::cuMemHostUnregister(self.memory.as_mut_ptr().cast()) }.result();
        }
    }
}

/// Host memory that the GPU can access directly during the lifetime of this value.
#[derive(Debug)]
pub struct Pinned<'h> {
    memory: &'h mut [u8],
    gpu: &'h Gpu,
    /// Whether it was pinned for this value, and must be unpinned afterwards.
    registered: bool,
    /// Whether the GPU accesses the memory directly. If the driver refuses to pin (a limit on
    /// locked memory), copies go through its staging buffers, which is slower; the timeline reports
    /// it.
    direct: bool,
}

impl Pinned<'_> {
    /// Whether the GPU accesses the memory directly.
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// The memory, after all queued work. While it is read, no copy over it can be queued: both need the value exclusively.
    ///
    /// ```compile_fail,E0499
    /// # use gpuimg::internals::gpu::driver::{Buffer, Pinned};
    /// fn read_too_early(pinned: &mut Pinned, buffer: &Buffer) -> anyhow::Result<u8> {
    ///     let bytes = pinned.bytes()?;
    ///     pinned.download(buffer)?;
    ///     Ok(bytes[0])
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of the queued work.
    pub fn bytes(&mut self) -> Result<&[u8]> {
        self.gpu.wait()?;
        Ok(self.memory)
    }

    /// Bytes of the memory.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// Queues a copy of its beginning over all of `buffer`, which must not be longer.
    pub fn upload(&mut self, buffer: &mut Buffer) -> Result<()> {
        let source = self.memory.get(..buffer.len);
        let source = source.ok_or_else(|| anyhow!("an upload past the memory's end"))?;
        let copy = Copy {
            direction: Direction::ToDevice,
            from: source.as_ptr() as sys::CUdeviceptr,
            to: buffer.pointer,
            bytes: source.len(),
        };
        // SAFETY: the lengths agree. Nothing touches the memory while the copy may run: only queued
        // copies of this type access it until `bytes` or `drop` has waited for them.
        unsafe { self.gpu.queue_copy(copy, self.is_mapped()) }
    }

    /// Queues a copy of `buffer` over all of it, which must have the same length.
    pub fn download(&mut self, buffer: &Buffer) -> Result<()> {
        ensure!(
            buffer.len == self.memory.len(),
            "a download of another length"
        );
        self.download_part(0..self.memory.len(), buffer, 0)
    }

    /// Queues a copy of the bytes of `buffer` from `from` on over the range `to` of the memory.
    pub fn download_part(&mut self, to: Range<usize>, buffer: &Buffer, from: usize) -> Result<()> {
        let source = buffer.part(from, to.len())?;
        let to = self.memory.get_mut(to);
        let to = to.ok_or_else(|| anyhow!("a copy past the memory's end"))?;
        let copy = Copy {
            direction: Direction::ToHost,
            from: source,
            to: to.as_mut_ptr() as sys::CUdeviceptr,
            bytes: to.len(),
        };
        // SAFETY: as in `upload`; both ranges lie inside.
        unsafe { self.gpu.queue_copy(copy, self.is_mapped()) }
    }

    /// Whether kernels reach the memory: it is `PageLocked`.
    fn is_mapped(&self) -> bool {
        self.direct && !self.registered
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // Queued copies may still use the memory. If waiting fails, the context is dead and its
        // copies have ended too.
        let _ = self.gpu.wait();
        if self.registered && bound_to_give_back(&self.gpu.context) {
            // SAFETY: `with_pinned` registered this address, and it stays registered until here.
            let _ = unsafe { sys::cuMemHostUnregister(self.memory.as_mut_ptr().cast()) }.result();
        }
    }
}
