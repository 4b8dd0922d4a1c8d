//! Device memory that this library shares with others in the same process: theirs is copied, and ours is lent.

use super::context::Gpu;
use super::error::{bind, bound_to_give_back, description, in_words};
use super::memory::Buffer;
use anyhow::{Context, Result, anyhow, ensure};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result, sys};
use std::ptr;

/// A stream of another library, by the number that it has in the interfaces of Python: 1 is the legacy default stream, 2 the
/// calling thread's default stream, others are addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignStream(pub usize);

impl ForeignStream {
    /// The default stream that CuPy and PyTorch use.
    pub const DEFAULT: ForeignStream = ForeignStream(1);

    fn handle(self) -> sys::CUstream {
        ptr::without_provenance_mut(self.0)
    }

    /// An event after all work that is queued on the stream now.
    ///
    /// # Safety
    /// The stream exists, in this context.
    unsafe fn record(self, context: &std::sync::Arc<CudaContext>) -> Result<CudaEvent> {
        let event = context.new_event(None).map_err(in_words)?;
        bind(context)?;
        // SAFETY: the event is live and of this context, and so is the stream by the caller's promise.
        unsafe { result::event::record(event.cu_event(), self.handle()) }.map_err(in_words)?;
        Ok(event)
    }
}

/// Rows of bytes in device memory that belongs to another library.
#[derive(Clone, Copy, Debug)]
pub struct ForeignMemory {
    /// The address of the first byte.
    pub address: u64,
    /// Bytes from a row to the next one.
    pub pitch: usize,
    /// Bytes of a row that are used.
    pub row: usize,
}

impl Gpu {
    /// Refuses memory that is not on this GPU.
    ///
    /// # Errors
    /// Memory of the host, and of another GPU.
    pub fn check_foreign(&self, address: u64) -> Result<()> {
        bind(&self.context)?;
        let ordinal = device_of(address).context("the array is not in the memory of a GPU")?;
        ensure!(
            ordinal == self.ordinal(),
            "the array is on GPU {ordinal}, not on GPU {}",
            self.ordinal()
        );
        Ok(())
    }

    /// Lets this stream wait for the work that is queued on a foreign stream now.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// The foreign stream exists.
    pub unsafe fn wait_for_foreign(&self, stream: ForeignStream) -> Result<()> {
        // SAFETY: the caller's promise.
        let event = unsafe { stream.record(&self.context)? };
        self.stream.wait(&event).map_err(in_words)
    }

    /// Queues a copy of foreign rows to all of `buffer`, contiguously.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// The rows that fill `buffer` are in memory that stays allocated until this stream has been waited for.
    pub unsafe fn copy_foreign(&self, from: &ForeignMemory, buffer: &mut Buffer) -> Result<()> {
        let ForeignMemory {
            address,
            pitch,
            row,
        } = *from;
        ensure!(row > 0 && row <= pitch, "a copy of rows that overlap");
        ensure!(buffer.len().is_multiple_of(row), "a copy of parts of rows");
        bind(&self.context)?;
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: address,
            srcArray: ptr::null_mut(),
            srcPitch: pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: buffer.pointer,
            dstArray: ptr::null_mut(),
            dstPitch: row,
            WidthInBytes: row,
            Height: buffer.len() / row,
        };
        // SAFETY: the rows are allocated until the copy has ended, by the caller's promise. The buffer holds as many, and is
        // freed on this stream, after the copy.
        unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.stream.cu_stream()) }
            .result()
            .map_err(|error| anyhow!("{}", description(&error)))
    }
}

/// The number of the GPU that has this address; `None` for other memory.
fn device_of(address: u64) -> Option<usize> {
    let (mut kind, mut ordinal) = (0u32, -1i32);
    let mut attributes = [
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut targets = [(&raw mut kind).cast(), (&raw mut ordinal).cast()];
    // SAFETY: the driver only looks up the address, and writes numbers of these sizes.
    let found = unsafe {
        sys::cuPointerGetAttributes(2, attributes.as_mut_ptr(), targets.as_mut_ptr(), address)
    };
    let is_device = kind == sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
    found.result().ok().filter(|()| is_device)?;
    usize::try_from(ordinal).ok()
}

/// Who may still read memory that was lent to another library.
#[derive(Clone, Copy, Debug, Default)]
pub struct Readers {
    /// Work on the legacy default stream.
    pub default_stream: bool,
    /// Work on streams that may not exist any more.
    pub others: bool,
}

impl Buffer {
    /// The address of its first byte in device memory.
    pub fn address(&self) -> u64 {
        self.pointer
    }

    /// Lets the stream that will use the memory again wait for the work of `readers` that is queued now. If it cannot, the memory
    /// stays with the context, which is broken.
    pub fn wait_for_readers(&self, readers: Readers) {
        let stream: &CudaStream = self.allocator.stream();
        if !bound_to_give_back(stream.context()) {
            return;
        }
        if readers.others {
            // The streams are not known, so that all work is waited for.
            let _ = stream.context().synchronize();
        } else if readers.default_stream {
            // SAFETY: the default stream always exists.
            let event = unsafe { ForeignStream::DEFAULT.record(stream.context()) };
            let _ = event.and_then(|event| stream.wait(&event).map_err(in_words));
        }
    }
}
