//! One NVIDIA GPU: its context, its memory, pinned host memory, copies and launches. Long, since it
//! holds every driver call with a pointer and all `unsafe` code except the PNG encoder's SIMD, the
//! launches, whose arguments only operations know, and one line in `console.rs`. Knows no
//! operation; `job.rs` queues these calls in order and times them.

use super::modules::Modules;
use super::{NoMemory, Unusable, link};
use crate::image::buffer;
use crate::memory_budget;
use crate::timing::Peaks;
use anyhow::{Error, Result, anyhow, ensure};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{
    self, CUdevice_attribute_enum as Attribute, CUevent_flags_enum as Flags,
    CUfunction_attribute_enum as FunctionAttribute,
};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaStream, LaunchConfig, PushKernelArg,
};
use memmap2::MmapMut;
use std::collections::HashMap;
use std::env;
use std::ops::{Deref, DerefMut, Range};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The environment variable that limits the device memory that images may take.
const LIMIT: &str = "GPUIMG_DEVICE_MEMORY";

/// The oldest driver interface that accepts the embedded PTX: CUDA 12.0, driver 525.
const OLDEST_DRIVER: i32 = 12000;

/// A GPU with its context and a stream.
#[derive(Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Arc<Modules>,
    /// The kernels loaded so far.
    kernels: Arc<Mutex<HashMap<String, Kernel>>>,
    /// Whether device memory comes from the driver's pool, which does not interrupt the GPU's other
    /// work.
    pooled: bool,
    budget: Arc<Budget>,
    /// The clock anchor: one instant on the host's clock and the same instant on the GPU's, shared
    /// by all streams, so that overlapping work in several streams is recognised.
    anchor: Arc<OnceLock<(Instant, CudaEvent)>>,
    /// The event pool: events that may be recorded again. Creating an event waits for a lock that
    /// other threads' streams hold: 0.25 ms each with 16 threads, 18 times an image.
    events: Mutex<Vec<CudaEvent>>,
    /// `NVIDIA H100 80GB HBM3`, …
    pub name: String,
    /// The instant when opening began, and its duration.
    pub opened: (Instant, Duration),
}

/// Bytes of device memory that may still be allocated.
#[derive(Debug)]
struct Budget {
    left: AtomicUsize,
}

impl Budget {
    fn new(bytes: usize) -> Arc<Budget> {
        let left = AtomicUsize::new(bytes);
        Arc::new(Budget { left })
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        (self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less))
        .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Device memory, freed when dropped. Its content is undefined until a copy or a kernel fills it.
#[derive(Debug)]
pub struct Buffer {
    pointer: sys::CUdeviceptr,
    len: usize,
    stream: Arc<CudaStream>,
    /// Whether the memory is allocated and freed in the order of the stream's work.
    ordered: bool,
    budget: Arc<Budget>,
}

/// Bytes allocated for a buffer of `len`: whole 16-byte words, since kernels may read to their end.
fn whole_words(len: usize) -> usize {
    len.next_multiple_of(16).max(16)
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

    /// The device address of `len` bytes of the buffer from byte `from` on.
    fn part(&self, from: usize, len: usize) -> Result<sys::CUdeviceptr> {
        let inside = from.checked_add(len).is_some_and(|end| end <= self.len);
        ensure!(inside, "a copy past the buffer's end");
        Ok(self.pointer + from as u64)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.budget.give_back(whole_words(self.len));
        if self.stream.context().bind_to_thread().is_ok() {
            // SAFETY: `pointer` came from `malloc_async` on this stream, or from `malloc_sync`, and is
            // freed only here. All work that uses it was queued on this stream, or the driver waits
            // for it. An error means that the context is gone, and the memory with it.
            let _ = unsafe {
                if self.ordered {
                    result::free_async(self.pointer, self.stream.cu_stream())
                } else {
                    result::free_sync(self.pointer)
                }
            };
        }
    }
}

/// A kernel's argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// A pointer to device memory.
    Buffer(&'a Buffer),
    /// A 32-bit scalar.
    U32(u32),
    /// A 64-bit scalar.
    U64(u64),
    /// A 32-bit floating-point scalar.
    F32(f32),
}

/// The shape of a launch: blocks along x and y, and threads of each block along x and y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: [u32; 2],
    /// Threads of a block.
    pub threads: [u32; 2],
}

/// The properties of a GPU.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Compute capability: (9, 0) for an H100.
    pub capability: (i32, i32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of level-2 cache.
    pub l2: u64,
    /// Bytes of device memory in total, and free.
    pub memory: (u64, u64),
    /// CUDA version of the driver: (12, 4).
    pub cuda: (i32, i32),
    /// PCI domain, bus and device.
    pub address: [i32; 3],
    /// The embedded form of each kernel for this GPU: `compute_90`.
    pub form: &'static str,
}

/// A kernel on the GPU, ready to be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name, also in the timeline.
    pub name: &'static str,
    function: CudaFunction,
    /// Threads of a block, as the kernel was compiled for.
    threads: u32,
}

impl Gpu {
    /// Opens GPU `ordinal`. Every error is an `Unusable` with a reason that the user can act on.
    pub fn open(ordinal: usize) -> Result<Gpu> {
        let start = Instant::now();
        let ready = || -> Result<Gpu> {
            let context = open_context(ordinal)?;
            Ok(Gpu {
                name: context.name()?,
                modules: Arc::new(Modules::for_capability(context.compute_capability()?)?),
                kernels: Arc::default(),
                stream: context.new_stream()?,
                pooled: false,
                budget: Budget::new(limit()?.unwrap_or(usize::MAX)),
                anchor: Arc::default(),
                events: Mutex::default(),
                context,
                opened: (start, start.elapsed()),
            })
        };
        ready().map_err(|error| error.context(Unusable))
    }

    /// The same GPU with another stream: work queued on both runs concurrently. In a `batch`,
    /// device memory is allocated without interrupting other streams.
    pub fn with_stream(&self, batch: bool) -> Result<Gpu> {
        if batch {
            let flags = sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32;
            // Threads that wait for the GPU leave their core to threads that decode. Only a hint:
            // without it they wait as well, but busily.
            // SAFETY: takes two numbers; the device is the context's own.
            let _ = unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(self.context.cu_device(), flags) };
        }
        Ok(Gpu {
            context: self.context.clone(),
            stream: self.context.new_stream()?,
            modules: self.modules.clone(),
            kernels: self.kernels.clone(),
            pooled: batch && keep_pool(&self.context),
            budget: self.budget.clone(),
            anchor: self.anchor.clone(),
            events: Mutex::default(),
            name: self.name.clone(),
            opened: self.opened,
        })
    }

    /// The same GPU, with at most `bytes` of its memory for images.
    pub fn limited(&self, bytes: usize) -> Result<Gpu> {
        Ok(Gpu {
            budget: Budget::new(bytes),
            ..self.with_stream(false)?
        })
    }

    /// The number of GPUs; 0 without a driver.
    pub fn count() -> usize {
        CudaContext::device_count().map_or(0, |count| count as usize)
    }

    /// Memory that every GPU accesses directly, until it is dropped; `None` if the driver refuses.
    pub fn page_locked(&self, bytes: usize) -> Option<buffer::Block> {
        let mut memory = buffer::mapped(bytes)?;
        self.context.bind_to_thread().ok()?;
        // SAFETY: the mapping is live, and `PageLocked` unregisters it before it unmaps it.
        unsafe {
            sys::cuMemHostRegister_v2(
                memory.as_mut_ptr().cast(),
                memory.len(),
                sys::CU_MEMHOSTREGISTER_PORTABLE,
            )
        }
        .result()
        .ok()?;
        Some(Box::new(PageLocked {
            memory,
            context: self.context.clone(),
        }))
    }

    /// Streaming multiprocessors of the GPU, by which grids are sized.
    pub fn multiprocessors(&self) -> u32 {
        self.context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_or(1, |count| count as u32)
    }

    /// Blocks of 256 threads for a reduction of `bytes` to a few words: enough to fill the GPU, but
    /// at least 16 KiB for each block.
    pub fn reduction_grid(&self, bytes: u64) -> u32 {
        let full = 4 * u64::from(self.multiprocessors());
        bytes.div_ceil(16384).clamp(1, full) as u32
    }

    /// Free and total device memory, in bytes.
    pub fn memory(&self) -> Result<(usize, usize)> {
        Ok(self.context.mem_get_info()?)
    }

    /// The GPU's theoretical peaks, from the properties that it reports.
    pub fn peaks(&self) -> Peaks {
        let attribute = |which| {
            self.context
                .attribute(which)
                .ok()
                .filter(|&value| value > 0)
                .map(f64::from)
        };
        let clock_khz = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
        let bus_bits = attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
        let memory = clock_khz
            .zip(bus_bits)
            .map(|(khz, bits)| 2.0 * khz * 1e3 * bits / 8.0 / 1e9);
        Peaks {
            memory,
            pcie: link::peak(self.address()),
        }
    }

    fn address(&self) -> [i32; 3] {
        [
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
        ]
        .map(|part| self.context.attribute(part).unwrap_or(0))
    }

    /// The properties of the GPU.
    pub fn facts(&self) -> Result<Facts> {
        let l2 = self
            .context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
        let (free, total) = self.memory()?;
        let cuda = driver_version()?;
        Ok(Facts {
            capability: self.context.compute_capability()?,
            multiprocessors: self.multiprocessors(),
            l2: l2.max(0) as u64,
            memory: (total as u64, free as u64),
            cuda: (cuda / 1000, cuda % 1000 / 10),
            address: self.address(),
            form: self.modules.form(),
        })
    }

    /// The kernel `name` of the file `file` (both as under `kernels/`) for pixels of `form`:
    /// `u16_c3`, `b8`, …, or "" for the papers' kernels, which have only one form. The driver
    /// compiles the module at the first request, which takes a while: request it before the upload.
    pub fn kernel(&self, file: &str, name: &'static str, form: &str) -> Result<Kernel> {
        // A request to the driver takes 0.1 ms, and much longer while other threads use the driver.
        let key = format!("{file} {name} {form}");
        let known = self.kernels.lock().ok();
        if let Some(kernel) = known.and_then(|kernels| kernels.get(&key).cloned()) {
            return Ok(kernel);
        }
        let kernel = self.find_kernel(file, name, form)?;
        if let Ok(mut kernels) = self.kernels.lock() {
            kernels.insert(key, kernel.clone());
        }
        Ok(kernel)
    }

    fn find_kernel(&self, file: &str, name: &'static str, form: &str) -> Result<Kernel> {
        let module: Arc<CudaModule> = self.modules.get(file, form, |code| {
            self.context.load_module(code).map_err(|error| {
                anyhow!(
                    "the driver refuses the kernels of {file}: {}",
                    description(&error)
                )
            })
        })?;
        let entry = match form {
            "" => name.to_string(),
            form => format!("{name}_{form}"),
        };
        let ready = || {
            let function = module.load_function(&entry)?;
            let threads = function.max_threads_per_block()? as u32;
            Ok(Kernel {
                name,
                function,
                threads,
            })
        };
        ready().map_err(|error| anyhow!("kernel {entry}: {}", description(&error)))
    }

    /// Records a timed event in the stream.
    pub fn event(&self) -> Result<CudaEvent> {
        let record = || {
            let pooled = self.events.lock().ok().and_then(|mut events| events.pop());
            let event = match pooled {
                Some(event) => event,
                // Without the explicit flag the event would record no time.
                None => self.context.new_event(Some(Flags::CU_EVENT_DEFAULT))?,
            };
            event.record(&self.stream)?;
            Ok(event)
        };
        record().map_err(|error: DriverError| anyhow!("{}", description(&error)))
    }

    /// The clock anchor; all timed work is queued after it.
    pub fn clock_anchor(&self) -> Result<&(Instant, CudaEvent)> {
        if let Some(anchor) = self.anchor.get() {
            return Ok(anchor);
        }
        let event = self.event()?;
        self.wait()?;
        let anchor = (Instant::now(), event);
        Ok(self.anchor.get_or_init(|| anchor))
    }

    /// Returns an event that has passed to the pool.
    pub fn keep(&self, event: CudaEvent) {
        if let Ok(mut events) = self.events.lock() {
            events.push(event);
        }
    }

    /// Waits for all queued work.
    pub fn wait(&self) -> Result<()> {
        self.stream
            .synchronize()
            .map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Device memory of `len` bytes with undefined content. The error is a `NoMemory` if a smaller
    /// amount may be available.
    pub fn alloc(&self, len: usize) -> Result<Buffer> {
        self.context.bind_to_thread()?;
        let size = whole_words(len);
        if !self.budget.take(size) {
            let refusal = anyhow!("no {len} bytes of device memory within {LIMIT}");
            return Err(refusal.context(NoMemory));
        }
        // SAFETY: the call only returns a new address; the bytes there may have any value, and
        // readers get what copies and kernels have written.
        let pointer = unsafe {
            if self.pooled {
                result::malloc_async(self.stream.cu_stream(), size)
            } else {
                result::malloc_sync(size)
            }
        }
        .map_err(|error| {
            self.budget.give_back(size);
            let refusal = anyhow!("no {len} bytes of device memory: {}", description(&error));
            match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => refusal.context(NoMemory),
                _ => refusal,
            }
        })?;
        Ok(Buffer {
            pointer,
            len,
            stream: self.stream.clone(),
            ordered: self.pooled,
            budget: self.budget.clone(),
        })
    }

    /// Device memory that holds a few words, such as a kernel's zeroed results.
    pub fn words<T: bytemuck::Pod>(&self, words: &[T]) -> Result<Buffer> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let buffer = self.alloc(bytes.len())?;
        self.send(bytes, &buffer)?;
        Ok(buffer)
    }

    /// Copies all of `host` to the beginning of `buffer`, through the driver's staging memory.
    /// Returns when `host` may be changed again; kernels launched later see the data.
    pub fn send(&self, host: &[u8], buffer: &Buffer) -> Result<()> {
        ensure!(host.len() <= buffer.len, "a copy past the buffer's end");
        self.context.bind_to_thread()?;
        // On this stream, like all work that may use the buffer before and after.
        // SAFETY: `buffer` has at least as many bytes as are copied. For pageable memory, CUDA has
        // copied the data to its staging memory when this returns; a copy from pinned memory is
        // waited for.
        let queued =
            unsafe { result::memcpy_htod_async(buffer.pointer, host, self.stream.cu_stream()) };
        if is_known(host) {
            self.wait()?;
        }
        queued.map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Copies a range of bytes of every row of `host`, whose rows have `pitch` bytes, to `buffer`,
    /// contiguously. Returns when `host` may be changed again.
    pub fn send_columns(
        &self,
        host: &[u8],
        pitch: usize,
        part: Range<usize>,
        buffer: &Buffer,
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
        self.context.bind_to_thread()?;
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
        // SAFETY: the range lies inside each of the complete rows of `host`, and the buffer holds
        // as many bytes; the copy is waited for before `host` is released.
        let queued = unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.stream.cu_stream()) }.result();
        self.wait()?;
        queued.map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Copies the beginning of `buffer` over all of `host`, after all queued work, and waits.
    pub fn fetch(&self, buffer: &Buffer, host: &mut [u8]) -> Result<()> {
        self.fetch_from(buffer, 0, host)
    }

    /// As `fetch`, from byte `from` of the buffer on.
    pub fn fetch_from(&self, buffer: &Buffer, from: usize, host: &mut [u8]) -> Result<()> {
        let source = buffer.part(from, host.len())?;
        self.context.bind_to_thread()?;
        // Not the call without a stream: those of several threads wait for one another.
        // SAFETY: the buffer has as many bytes. The copy is waited for before `host` is released;
        // if waiting fails, the context is dead and its copies have ended too.
        let queued = unsafe { result::memcpy_dtoh_async(host, source, self.stream.cu_stream()) };
        self.wait()?;
        queued.map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Copies the words of a small buffer to the host, after all queued work.
    pub fn read_words<T: bytemuck::Pod>(&self, buffer: &Buffer) -> Result<Vec<T>> {
        let mut words = vec![T::zeroed(); buffer.len / size_of::<T>()];
        self.fetch(buffer, bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
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
        let pinning = match self.context.bind_to_thread() {
            // SAFETY: the range is a live slice, borrowed exclusively until after `Pinned` is
            // dropped, at the end of this function.
            Ok(()) if pin => unsafe {
                sys::cuMemHostRegister_v2(host.as_mut_ptr().cast(), host.len(), 0)
            },
            _ => sys::CUresult::CUDA_ERROR_NOT_PERMITTED,
        };
        work(&mut Pinned {
            memory: host,
            gpu: self,
            registered: pinning.result().is_ok(),
            direct: pinning.result().is_ok() || pinning == already,
        })
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
        let mut builder = self.stream.launch_builder(&kernel.function);
        for arg in args {
            match arg {
                Arg::Buffer(buffer) => builder.arg(&buffer.pointer),
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
        Gpu {
            stream: self.context.default_stream(),
            ..self
        }
    }

    /// Queues a fill of every byte of `buffer`.
    pub fn fill(&self, buffer: &Buffer, byte: u8) -> Result<()> {
        self.context.bind_to_thread()?;
        // SAFETY: the buffer has as many bytes; it outlives the work, see its `drop`.
        unsafe {
            result::memset_d8_async(buffer.pointer, byte, buffer.len, self.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Queues a copy of the beginning of `from` over all of `to`.
    pub fn copy(&self, from: &Buffer, to: &Buffer) -> Result<()> {
        ensure!(to.len <= from.len, "a copy past the buffer's end");
        self.context.bind_to_thread()?;
        // SAFETY: both buffers have as many bytes, are not the same memory, and outlive the work.
        unsafe {
            result::memcpy_dtod_async(to.pointer, from.pointer, to.len, self.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Asks for `percent` of a multiprocessor's on-chip memory as shared memory for `kernel`, the
    /// rest as level-1 cache.
    pub fn prefer_shared(&self, kernel: &Kernel, percent: u8) -> Result<()> {
        let carveout = FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        kernel
            .function
            .set_attribute(carveout, percent.into())
            .map_err(|error| anyhow!("{}", description(&error)))
    }
}

/// The value of the environment variable `LIMIT`, in bytes.
fn limit() -> Result<Option<usize>> {
    let Some(text) = env::var_os(LIMIT) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let bytes = memory_budget::size(&text).map_err(|error| anyhow!("{LIMIT}={text}: {error}"))?;
    Ok(Some(usize::try_from(bytes)?))
}

/// Whether the driver knows this memory as pinned.
fn is_known(host: &[u8]) -> bool {
    let mut kind = 0u32;
    let mut attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let mut place = (&raw mut kind).cast();
    // The call for several attributes, since the call for one reports an unknown address as an
    // error.
    // SAFETY: the driver looks the address up, and writes a number of this size, or zero.
    let status = unsafe {
        sys::cuPointerGetAttributes(
            1,
            &mut attribute,
            &mut place,
            host.as_ptr() as sys::CUdeviceptr,
        )
    };
    status.result().is_ok() && kind != 0
}

/// The CUDA version of the driver in CUDA's numbering: 12040 for 12.4.
fn driver_version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: writes one integer through a pointer to a live one; needs no initialisation.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(|error| anyhow!("{}", description(&error)))?;
    Ok(version)
}

fn open_context(ordinal: usize) -> Result<Arc<CudaContext>> {
    // SAFETY: only tries to load a shared library; called first because every other call of the
    // binding panics if the library is missing.
    let present = unsafe { sys::is_culib_present() };
    ensure!(
        present,
        "no NVIDIA driver on this machine (libcuda.so.1 is not there)"
    );
    let version = driver_version()?;
    ensure!(
        version >= OLDEST_DRIVER,
        "the NVIDIA driver is too old: it speaks CUDA {}.{}, and 12.0 is needed; update the driver to 525 or later",
        version / 1000,
        version % 1000 / 10
    );
    cudarc::driver::result::init().map_err(|error| match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => no_gpu(),
        _ => anyhow!("the NVIDIA driver does not start: {}", description(&error)),
    })?;
    let count = CudaContext::device_count().map_err(|error| anyhow!("{}", description(&error)))?;
    if count == 0 {
        return Err(no_gpu());
    }
    ensure!(
        ordinal < count as usize,
        "there is no GPU {ordinal}: this machine shows {count}, numbered from 0"
    );
    CudaContext::new(ordinal)
        .map_err(|error| anyhow!("GPU {ordinal} cannot be opened: {}", description(&error)))
}

/// The error for a driver without visible GPUs, with the settings that may hide them.
fn no_gpu() -> Error {
    const HIDES: &str = "CUDA_VISIBLE_DEVICES";
    let hides = env::var(HIDES).map_or(String::new(), |shown| format!(" ({HIDES} is '{shown}')"));
    anyhow!("the NVIDIA driver shows no GPU{hides}")
}

/// Whether the GPU has a memory pool; if so, the pool is set to keep freed memory.
fn keep_pool(context: &CudaContext) -> bool {
    let supported = Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    if !context.attribute(supported).is_ok_and(|yes| yes == 1) {
        return false;
    }
    let keep = || -> std::result::Result<(), DriverError> {
        let mut pool = ptr::null_mut();
        let mut all = u64::MAX;
        let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: both calls only use live pointers to a handle and to a number of the kind that
        // this attribute takes.
        unsafe {
            sys::cuDeviceGetDefaultMemPool(&mut pool, context.cu_device()).result()?;
            sys::cuMemPoolSetAttribute(pool, threshold, (&raw mut all).cast()).result()
        }
    };
    keep().is_ok()
}

/// The driver's description of an error, or its number if there is none.
fn description(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("CUDA error {:?}", error.0),
    }
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
        if self.context.bind_to_thread().is_ok() {
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

    /// Bytes of the memory.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// Queues a copy of all of it to `buffer`, which must have the same length.
    pub fn upload(&mut self, buffer: &mut Buffer) -> Result<()> {
        ensure!(
            buffer.len == self.memory.len(),
            "an upload of another length"
        );
        // SAFETY: the lengths agree. Nothing touches the memory while the copy may run: only queued
        // copies of this type access it until `drop` has waited for them.
        unsafe {
            result::memcpy_htod_async(buffer.pointer, self.memory, self.gpu.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", description(&error)))
    }

    /// Queues a copy of `buffer` over all of it, which must have the same length.
    pub fn download(&mut self, buffer: &Buffer) -> Result<()> {
        ensure!(
            buffer.len == self.memory.len(),
            "a download of another length"
        );
        // SAFETY: as in `upload`.
        unsafe {
            result::memcpy_dtoh_async(self.memory, buffer.pointer, self.gpu.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", description(&error)))
    }
}

impl Pinned<'_> {
    /// Queues a copy of the bytes of `buffer` from `from` on over the range `to` of the memory.
    pub fn download_part(&mut self, to: Range<usize>, buffer: &Buffer, from: usize) -> Result<()> {
        let source = buffer.part(from, to.len())?;
        let to = self.memory.get_mut(to);
        let to = to.ok_or_else(|| anyhow!("a copy past the memory's end"))?;
        // SAFETY: as in `upload`; both ranges lie inside.
        unsafe { result::memcpy_dtoh_async(to, source, self.gpu.stream.cu_stream()) }
            .map_err(|error| anyhow!("{}", description(&error)))
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // Queued copies may still use the memory. If waiting fails, the context is dead and its
        // copies have ended too.
        let _ = self.gpu.wait();
        if self.registered && self.gpu.context.bind_to_thread().is_ok() {
            // SAFETY: `with_pinned` registered this address, and it stays registered until here.
            let _ = unsafe { sys::cuMemHostUnregister(self.memory.as_mut_ptr().cast()) }.result();
        }
    }
}
