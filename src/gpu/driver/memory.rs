//! Device memory: allocated, filled, copied and freed.

use super::allocator::{Allocator, Block};
use super::commands::{Copy, Direction};
use super::context::Gpu;
use super::error::{bind, description, in_words};
use crate::gpu::NoMemory;
use anyhow::{Result, anyhow, ensure};
use cudarc::driver::{CudaStream, result, sys};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// The bytes of a vector, which kernels read at once. Views start at a multiple of it. The block of a buffer consists of whole
/// vectors (`Allocator::block_size`), and all bytes of the last one are defined, even those after the end of the buffer.
const VECTOR: usize = 16;

/// Device memory, given back when dropped. Its content is undefined until a copy or a kernel fills
/// it.
#[derive(Debug)]
pub struct Buffer {
    pub(super) pointer: sys::CUdeviceptr,
    pub(super) len: usize,
    block: Block,
    pub(super) allocator: Arc<Allocator>,
}

impl Buffer {
    /// Bytes in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes from `from` on over all of `host`, and waits. Work on other streams that fills
    /// the buffer must have been waited for.
    pub fn read(&self, from: usize, host: &mut [u8]) -> Result<()> {
        read_back(self.allocator.stream(), self, from, host)
    }

    /// Whether the GPU that has it does not respond any more.
    pub fn is_lost(&self) -> bool {
        self.allocator.stream().synchronize().is_err()
    }

    /// The device address of `len` bytes of the buffer from byte `from` on.
    pub(super) fn part(&self, from: usize, len: usize) -> Result<sys::CUdeviceptr> {
        let inside = from.checked_add(len).is_some_and(|end| end <= self.len);
        ensure!(inside, "a copy past the buffer's end");
        Ok(self.pointer + from as u64)
    }
}

impl Buffer {
    /// All of it, for a kernel to read.
    pub fn view(&self) -> View<'_> {
        View {
            pointer: self.pointer,
            len: self.len.next_multiple_of(VECTOR),
            buffer: PhantomData,
        }
    }

    /// All of it, for a kernel to write.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut {
            pointer: self.pointer,
            len: self.len.next_multiple_of(VECTOR),
            buffer: PhantomData,
        }
    }
}

/// Device memory that a kernel reads, in whole vectors: the last one may reach past the end of the buffer.
#[derive(Clone, Copy, Debug)]
pub struct View<'b> {
    pub(super) pointer: sys::CUdeviceptr,
    len: usize,
    buffer: PhantomData<&'b Buffer>,
}

/// Device memory that a kernel writes. No other argument of the kernel can be the same memory.
#[derive(Debug)]
pub struct ViewMut<'b> {
    pub(super) pointer: sys::CUdeviceptr,
    len: usize,
    buffer: PhantomData<&'b mut Buffer>,
}

/// Fails unless offset `at` is the start of a vector in memory of `len` bytes, or the end of that memory.
fn check_start(at: usize, len: usize) -> Result<()> {
    let is_start = at <= len && at.is_multiple_of(VECTOR);
    ensure!(
        is_start,
        "internal error: no view of {len} bytes starts at byte {at}"
    );
    Ok(())
}

impl<'b> View<'b> {
    /// Bytes of the memory.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory from byte `at` on, a multiple of 16.
    ///
    /// # Errors
    /// There is no such byte.
    pub fn from(self, at: usize) -> Result<View<'b>> {
        check_start(at, self.len)?;
        Ok(View {
            pointer: self.pointer + at as u64,
            len: self.len - at,
            ..self
        })
    }
}

impl<'b> ViewMut<'b> {
    /// Bytes of the memory.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory before byte `at`, a multiple of 16, and the memory after it.
    ///
    /// # Errors
    /// There is no such byte.
    pub fn split_at(self, at: usize) -> Result<(ViewMut<'b>, ViewMut<'b>)> {
        check_start(at, self.len)?;
        let part = |from: usize, to: usize| ViewMut {
            pointer: self.pointer + from as u64,
            len: to - from,
            buffer: PhantomData,
        };
        Ok((part(0, at), part(at, self.len)))
    }

    /// The same memory, for a kernel to read.
    pub fn into_view(self) -> View<'b> {
        View {
            pointer: self.pointer,
            len: self.len,
            buffer: PhantomData,
        }
    }
}

/// Views of no memory, for tests of what is checked before a launch.
#[cfg(test)]
impl View<'static> {
    pub(super) fn without_memory(len: usize) -> View<'static> {
        View {
            pointer: 0,
            len,
            buffer: PhantomData,
        }
    }
}

#[cfg(test)]
impl ViewMut<'static> {
    pub(super) fn without_memory(len: usize) -> ViewMut<'static> {
        ViewMut {
            pointer: 0,
            len,
            buffer: PhantomData,
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // All work that uses the memory was queued on the allocator's stream, or was waited for by
        // the stream that did it.
        self.allocator.give_back(self.block);
    }
}

impl Gpu {
    /// Device memory of `len` bytes with undefined content. The error is a `NoMemory` if a smaller
    /// amount may be available.
    pub fn alloc(&self, len: usize) -> Result<Buffer> {
        let rest = len % VECTOR;
        let buffer = self.scratch(len)?;
        match rest {
            0 => Ok(buffer),
            _ => self.filled(buffer, len - rest, len),
        }
    }

    /// Device memory of `len` bytes that are 0.
    pub fn zeroed(&self, len: usize) -> Result<Buffer> {
        let buffer = self.scratch(len)?;
        self.filled(buffer, 0, len)
    }

    /// Device memory that holds a few words, such as a kernel's zeroed results.
    pub fn words<T: bytemuck::Pod>(&self, words: &[T]) -> Result<Buffer> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let mut buffer = self.scratch(bytes.len())?;
        let mut whole = Cow::from(bytes);
        if bytes.len() < buffer.len {
            whole.to_mut().resize(buffer.len, 0);
        }
        self.send(&whole, &mut buffer)?;
        buffer.len = bytes.len();
        Ok(buffer)
    }

    /// Device memory of at least `len` bytes in whole vectors, with undefined content. Errors as of `alloc`.
    pub fn scratch(&self, len: usize) -> Result<Buffer> {
        let block = match self.allocator.allocate(len) {
            // Recorded work may still use what was given back.
            Err(error) if error.is::<NoMemory>() && self.recorder.is_some() => {
                self.wait()?;
                self.allocator.free_kept();
                self.allocator.allocate(len)?
            }
            block => block?,
        };
        Ok(Buffer {
            pointer: block.pointer,
            len: len.next_multiple_of(VECTOR),
            block,
            allocator: self.allocator.clone(),
        })
    }

    /// The buffer with zeros from byte `from` on, and as a buffer of `len` bytes.
    fn filled(&self, mut buffer: Buffer, from: usize, len: usize) -> Result<Buffer> {
        let whole = from..buffer.len;
        self.fill_part(&mut buffer, whole, 0)?;
        buffer.len = len;
        Ok(buffer)
    }

    /// Copies all of `host` to the beginning of `buffer`, through staging memory. Returns when `host` may
    /// be changed again; kernels launched later see the data.
    pub fn send(&self, host: &[u8], buffer: &mut Buffer) -> Result<()> {
        self.send_to(host, buffer, 0)
    }

    /// As `send`, but to byte `to` of the buffer and those after it.
    pub fn send_to(&self, host: &[u8], buffer: &mut Buffer, to: usize) -> Result<()> {
        let target = buffer.part(to, host.len())?;
        // In the order of all work that may use the buffer before and after.
        let queue = |host: &[u8], is_mapped| {
            let copy = Copy {
                direction: Direction::ToDevice,
                from: host.as_ptr() as sys::CUdeviceptr,
                to: target,
                bytes: host.len(),
            };
            // SAFETY: the part lies inside the buffer. Staging memory is not touched before the stream
            // was waited for; of pageable memory CUDA has made a copy when this returns; and a copy
            // from other memory is waited for below.
            unsafe { self.queue_copy(copy, is_mapped) }
        };
        let staged = |memory: &mut [u8]| {
            memory.copy_from_slice(host);
            queue(memory, true)
        };
        let make = |bytes| self.page_locked(bytes);
        if let Some(queued) = self.staging.with(host.len(), false, make, staged) {
            return queued;
        }
        let queued = queue(host, false);
        if self.recorder.is_some() || is_known(host) {
            self.wait()?;
        }
        queued
    }

    /// Copies a range of bytes of every row of `host`, whose rows have `pitch` bytes, to `buffer`,
    /// contiguously. Returns when `host` may be changed again.
    pub fn send_columns(
        &self,
        host: &[u8],
        pitch: usize,
        part: Range<usize>,
        buffer: &mut Buffer,
    ) -> Result<()> {
        if host.len() <= pitch || part.len() == pitch {
            let part = if part.len() == pitch {
                0..host.len()
            } else {
                part
            };
            return self.send(&host[part], buffer);
        }
        let rows = host.len() / pitch;
        let fits = part.end <= pitch && rows * part.len() <= buffer.len;
        ensure!(fits, "a copy past the buffer's end");
        bind(&self.context)?;
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: part.start,
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: host.as_ptr().cast(),
            srcDevice: 0,
            srcArray: ptr::null_mut(),
            srcPitch: pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: buffer.pointer,
            dstArray: ptr::null_mut(),
            dstPitch: part.len(),
            WidthInBytes: part.len(),
            Height: rows,
        };
        let queued = self.queue_unrecorded(|| {
            // SAFETY: the range lies inside each of the complete rows of `host`, and the buffer holds
            // as many bytes; the copy is waited for before `host` is released.
            unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.stream.cu_stream()) }
                .result()
                .map_err(in_words)
        });
        self.wait()?;
        queued
    }

    /// Queues a copy of a rectangle of `image`, whose rows have `pitch` bytes: a range of bytes of rows from row `top` on, as
    /// many as fill `region`.
    pub fn copy_region(
        &self,
        image: &Buffer,
        pitch: usize,
        top: usize,
        columns: Range<usize>,
        region: &mut Buffer,
    ) -> Result<()> {
        let rows = region.len / columns.len().max(1);
        let end = (top + rows) * pitch;
        ensure!(
            columns.end <= pitch && end <= image.len,
            "a copy past the buffer's end"
        );
        bind(&self.context)?;
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: columns.start,
            srcY: top,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: image.pointer,
            srcArray: ptr::null_mut(),
            srcPitch: pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: region.pointer,
            dstArray: ptr::null_mut(),
            dstPitch: columns.len(),
            WidthInBytes: columns.len(),
            Height: rows,
        };
        self.queue_unrecorded(|| {
            // SAFETY: the rows from `top` on end inside `image`, as was checked, and `region`, which is other memory since it
            // is borrowed mutably, holds as many rows of the range. Both are freed on this stream, after the copy.
            unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.stream.cu_stream()) }
                .result()
                .map_err(in_words)
        })
    }

    /// Copies the beginning of `buffer` over all of `host`, after all queued work, and waits.
    pub fn fetch(&self, buffer: &Buffer, host: &mut [u8]) -> Result<()> {
        self.fetch_from(buffer, 0, host)
    }

    /// As `fetch`, from byte `from` of the buffer on.
    pub fn fetch_from(&self, buffer: &Buffer, from: usize, host: &mut [u8]) -> Result<()> {
        let len = host.len();
        let source = buffer.part(from, len)?;
        let read = |host: &mut [u8], is_mapped| {
            let copy = Copy {
                direction: Direction::ToHost,
                from: source,
                to: host.as_mut_ptr() as sys::CUdeviceptr,
                bytes: len,
            };
            // SAFETY: the part lies inside the buffer. The copy is waited for before `host` is released; if waiting fails,
            // the context is dead and its copies have ended too.
            let queued = unsafe { self.queue_copy(copy, is_mapped) };
            queued.and(self.wait_for_work())
        };
        let staged = |memory: &mut [u8]| {
            read(memory, true)?;
            host.copy_from_slice(memory);
            Ok(())
        };
        let make = |bytes| self.page_locked(bytes);
        match self.staging.with(len, true, make, staged) {
            Some(read) => read,
            None => read(host, false),
        }
    }

    /// Copies the words of a small buffer to the host, after all queued work.
    pub fn read_words<T: bytemuck::Pod>(&self, buffer: &Buffer) -> Result<Vec<T>> {
        let mut words = vec![T::zeroed(); buffer.len / size_of::<T>()];
        self.fetch(buffer, bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }

    /// Queues a fill of every byte of `buffer`.
    pub fn fill(&self, buffer: &mut Buffer, byte: u8) -> Result<()> {
        self.fill_part(buffer, 0..buffer.len, byte)
    }

    /// As `fill`, of a range of bytes.
    pub fn fill_part(&self, buffer: &mut Buffer, part: Range<usize>, byte: u8) -> Result<()> {
        let len = part.len();
        let pointer = buffer.part(part.start, len)?;
        if let Some(recorder) = &self.recorder {
            // SAFETY: as below.
            unsafe { recorder.fill(pointer, len, byte) };
            return Ok(());
        }
        bind(&self.context)?;
        // SAFETY: the buffer has as many bytes; it outlives the work, see its `drop`.
        unsafe { result::memset_d8_async(pointer, byte, len, self.stream.cu_stream()) }
            .map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Queues a copy of the beginning of `from` over all of `to`, which is another buffer:
    ///
    /// ```compile_fail,E0502
    /// # use gpuimg::internals::gpu::driver::{Buffer, Gpu};
    /// fn copy_to_itself(gpu: &Gpu, mut buffer: Buffer) -> anyhow::Result<()> {
    ///     gpu.copy(&buffer, &mut buffer)
    /// }
    /// ```
    pub fn copy(&self, from: &Buffer, to: &mut Buffer) -> Result<()> {
        let whole = 0..to.len;
        self.copy_part(from, whole, to, 0)
    }

    /// Queues a copy of a range of `from` to the bytes of another buffer from byte `at` on.
    pub fn copy_part(
        &self,
        from: &Buffer,
        range: Range<usize>,
        to: &mut Buffer,
        at: usize,
    ) -> Result<()> {
        let source = from.part(range.start, range.len())?;
        let target = to.part(at, range.len())?;
        let copy = Copy {
            direction: Direction::OnDevice,
            from: source,
            to: target,
            bytes: range.len(),
        };
        // SAFETY: the parts lie inside the buffers, which are not the same memory, since `to` is borrowed exclusively, and outlive
        // the work.
        unsafe { self.queue_copy(copy, true) }
    }

    /// Queues a copy. `is_mapped`: kernels reach both sides.
    ///
    /// # Safety
    /// Both addresses are those of as many bytes. The memory stays, and nothing on the host touches it, until all queued work
    /// has been waited for.
    pub(super) unsafe fn queue_copy(&self, copy: Copy, is_mapped: bool) -> Result<()> {
        if let Some(recorder) = &self.recorder {
            // SAFETY: the caller's.
            unsafe { recorder.copy(copy, is_mapped) };
            return Ok(());
        }
        bind(&self.context)?;
        // SAFETY: the caller's.
        unsafe { copy.queue(self.stream.cu_stream()) }
    }
}

/// Copies bytes of a buffer from `from` on over all of `host`, after all work queued on `stream`, and waits.
fn read_back(stream: &CudaStream, buffer: &Buffer, from: usize, host: &mut [u8]) -> Result<()> {
    let source = buffer.part(from, host.len())?;
    bind(stream.context())?;
    // SAFETY: the part lies inside the buffer. The copy is waited for before `host` is released; if waiting fails, the
    // context is dead and its copies have ended too.
    let queued = unsafe { result::memcpy_dtoh_async(host, source, stream.cu_stream()) };
    let ended = stream.synchronize();
    queued
        .and(ended)
        .map_err(|error| anyhow!("{}", description(&error)))
}

/// Whether the driver knows this memory as pinned.
fn is_known(host: &[u8]) -> bool {
    let mut kind = 0u32;
    let mut attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let mut target = (&raw mut kind).cast();
    // The call for several attributes, since the call for one reports an unknown address as an
    // error.
    // SAFETY: the driver only looks up the address, and writes a number of this size, or zero.
    let status = unsafe {
        sys::cuPointerGetAttributes(
            1,
            &mut attribute,
            &mut target,
            host.as_ptr() as sys::CUdeviceptr,
        )
    };
    status.result().is_ok() && kind != 0
}
