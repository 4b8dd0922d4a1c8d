//! Host memory of each kind that the driver knows, for asynchronous calls on it. Only `bench` makes them, to see when such a
//! call returns and when it is done.

use super::context::Gpu;
use super::error::{bind, bound_to_give_back, in_words};
use super::memory::Buffer;
use anyhow::{Context, Result, ensure};
use cudarc::driver::{CudaStream, result, sys};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

/// How host memory was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// By the system.
    Pageable,
    /// `cuMemHostAlloc`.
    Pinned,
    /// `cuMemAllocManaged`: its pages move between host and GPU.
    Managed,
    /// `cuMemHostAlloc`, mapped into the GPU's addresses.
    Mapped,
}

/// Host memory with which the GPU may be working. It is given back when dropped.
#[derive(Debug)]
pub(crate) struct HostMemory {
    start: NonNull<u8>,
    len: usize,
    kind: HostKind,
    stream: Arc<CudaStream>,
}

const PAGE: usize = 4096;

impl HostMemory {
    fn layout(len: usize) -> Result<Layout> {
        ensure!(len > 0, "internal error: no bytes of host memory");
        Ok(Layout::from_size_align(len, PAGE)?)
    }

    /// Overwrites all of it, even while the GPU works with it.
    pub(crate) fn overwrite(&mut self, byte: u8) {
        // SAFETY: the memory has as many bytes, and no reference to it is left.
        unsafe { self.start.as_ptr().write_bytes(byte, self.len) }
    }

    /// Its bytes, after all queued work.
    ///
    /// # Errors
    /// Those of the queued work.
    pub(crate) fn bytes(&mut self) -> Result<&[u8]> {
        self.stream.synchronize().map_err(in_words)?;
        // SAFETY: the memory has as many bytes, all initialized, and the GPU is done with it.
        Ok(unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) })
    }

    /// Queues a copy of all of it to the beginning of `buffer`.
    ///
    /// # Errors
    /// The buffer is shorter, or the driver refuses.
    pub(crate) fn upload(&mut self, buffer: &mut Buffer) -> Result<()> {
        let target = buffer.part(0, self.len)?;
        let source = self.start.as_ptr().cast_const().cast();
        let stream = self.stream.cu_stream();
        // SAFETY: both have as many bytes, and are given back after the work of this stream.
        unsafe { sys::cuMemcpyHtoDAsync_v2(target, source, self.len, stream) }
            .result()
            .map_err(in_words)
    }

    /// Queues a copy of the beginning of `buffer` over all of it.
    ///
    /// # Errors
    /// As `upload`.
    pub(crate) fn download(&mut self, buffer: &Buffer) -> Result<()> {
        let source = buffer.part(0, self.len)?;
        let (target, stream) = (self.start.as_ptr().cast(), self.stream.cu_stream());
        // SAFETY: as in `upload`.
        unsafe { sys::cuMemcpyDtoHAsync_v2(target, source, self.len, stream) }
            .result()
            .map_err(in_words)
    }

    /// Queues a fill of all of it by the GPU, which must have an address for it.
    ///
    /// # Errors
    /// The memory is pageable, or the driver refuses.
    pub(crate) fn fill(&mut self, byte: u8) -> Result<()> {
        ensure!(
            self.kind != HostKind::Pageable,
            "internal error: the GPU has no address for pageable memory"
        );
        // Memory that the driver allocated has the same address for host and GPU.
        let target = self.start.as_ptr() as sys::CUdeviceptr;
        // SAFETY: the memory has as many bytes, and is given back after the work of this stream.
        unsafe { result::memset_d8_async(target, byte, self.len, self.stream.cu_stream()) }
            .map_err(in_words)
    }
}

impl Gpu {
    /// Host memory of `len` bytes for work on this stream; all bytes are initialized.
    ///
    /// # Errors
    /// The driver's, or there is not as much memory.
    pub(crate) fn host_memory(&self, kind: HostKind, len: usize) -> Result<HostMemory> {
        bind(&self.context)?;
        let layout = HostMemory::layout(len)?;
        // SAFETY: the layout is not empty, and the driver's calls take numbers only.
        let start = unsafe {
            match kind {
                HostKind::Pageable => alloc_zeroed(layout),
                HostKind::Pinned => result::malloc_host(len, 0).map_err(in_words)?.cast(),
                HostKind::Mapped => result::malloc_host(len, sys::CU_MEMHOSTALLOC_DEVICEMAP)
                    .map_err(in_words)?
                    .cast(),
                HostKind::Managed => {
                    let everywhere = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL;
                    result::malloc_managed(len, everywhere).map_err(in_words)? as *mut u8
                }
            }
        };
        let mut memory = HostMemory {
            start: NonNull::new(start).context("not enough memory")?,
            len,
            kind,
            stream: self.stream.clone(),
        };
        memory.overwrite(0);
        Ok(memory)
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // Queued work may still use the memory. If waiting fails, the context is dead and its work has ended too.
        let _ = self.stream.synchronize();
        let start = self.start.as_ptr();
        if self.kind == HostKind::Pageable {
            if let Ok(layout) = HostMemory::layout(self.len) {
                // SAFETY: allocated by `host_memory` with this layout.
                unsafe { dealloc(start, layout) }
            }
        } else if bound_to_give_back(self.stream.context()) {
            // SAFETY: allocated by `host_memory` with the call that belongs to each of these.
            let _ = unsafe {
                match self.kind {
                    HostKind::Managed => result::free_sync(start as sys::CUdeviceptr),
                    _ => result::free_host(start.cast()),
                }
            };
        }
    }
}
