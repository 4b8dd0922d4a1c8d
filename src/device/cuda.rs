//! One NVIDIA GPU: its context, its memory, pinned host memory, copies and launches. The only file
//! with `unsafe` beside the PNG encoder's SIMD, and long for that reason: every driver call with a pointer is here. Knows no
//! operation; `job.rs` puts these calls in order and times them.

use super::modules::Modules;
use super::{NoMemory, Unusable, link};
use crate::buffer;
use crate::room;
use crate::stats::Peaks;
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

/// The environment variable that limits how much of a card's memory is taken for images.
const LIMIT: &str = "GPUIMG_DEVICE_MEMORY";

/// The oldest driver interface that takes the embedded PTX: CUDA 12.0, driver 525.
const OLDEST_DRIVER: i32 = 12000;

/// A GPU with its context, ready to work.
#[derive(Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Arc<Modules>,
    /// The kernels asked for so far.
    kernels: Arc<Mutex<HashMap<String, Kernel>>>,
    /// Whether device memory comes from the driver's pool, without stopping the card's other work.
    pooled: bool,
    budget: Arc<Budget>,
    /// A moment that the host's clock and the card's both know, the same for all queues: what ran side
    /// by side in several can be told.
    moment: Arc<OnceLock<(Instant, CudaEvent)>>,
    /// Events that may be recorded again. To make one stops at a lock that other threads' queues hold:
    /// 0.25 ms each with 16 of them, 18 times an image.
    spare: Mutex<Vec<CudaEvent>>,
    /// `NVIDIA H100 80GB HBM3`, …
    pub name: String,
    /// When opening began, and how long it took.
    pub opened: (Instant, Duration),
}

/// Bytes of device memory that may still be taken.
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

/// Device memory, freed with it. Undefined until a copy or a kernel fills it.
#[derive(Debug)]
pub struct Buffer {
    pointer: sys::CUdeviceptr,
    len: usize,
    stream: Arc<CudaStream>,
    /// Whether the memory is the stream's, had and given back in the order of its work.
    ordered: bool,
    budget: Arc<Budget>,
}

/// Bytes that are taken for a buffer of `len`: whole words of 16, which kernels may read to their end.
fn whole_words(len: usize) -> usize {
    len.next_multiple_of(16).max(16)
}

impl Buffer {
    /// Bytes in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of `len` of its bytes, from `from` on.
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
    /// A scalar of 32 bits with a point.
    F32(f32),
}

/// How a launch is cut: blocks along x and y, and threads of each block along x and y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks.
    pub blocks: [u32; 2],
    /// Threads of a block.
    pub threads: [u32; 2],
}

/// What a card says of itself.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Compute capability: (9, 0) for an H100.
    pub capability: (i32, i32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of level-2 cache.
    pub l2: u64,
    /// Bytes of device memory, and how many are free.
    pub memory: (u64, u64),
    /// CUDA version of the driver: (12, 4).
    pub cuda: (i32, i32),
    /// PCI domain, bus and device.
    pub address: [i32; 3],
    /// Which of the two embedded forms of each kernel this card gets: `compute_90`.
    pub form: &'static str,
}

/// A kernel on the card, ready to be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name, in the timeline too.
    pub name: &'static str,
    function: CudaFunction,
    /// Threads of a block, as it was compiled for.
    threads: u32,
}

impl Gpu {
    /// Opens GPU `ordinal`. Every error is an `Unusable` with a reason a user can act on.
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
                moment: Arc::default(),
                spare: Mutex::default(),
                context,
                opened: (start, start.elapsed()),
            })
        };
        ready().map_err(|error| error.context(Unusable))
    }

    /// The same card with a queue of its own: what is queued on one runs beside what is queued on
    /// the other. In a `batch`, device memory is had without stopping the others' work.
    pub fn lane(&self, batch: bool) -> Result<Gpu> {
        if batch {
            let flags = sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32;
            // Threads that wait for the card leave their core to those that decode. A wish: without
            // it they wait as well, only busily.
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
            moment: self.moment.clone(),
            spare: Mutex::default(),
            name: self.name.clone(),
            opened: self.opened,
        })
    }

    /// The same card, of whose memory no more than `bytes` is taken for images.
    pub fn limited(&self, bytes: usize) -> Result<Gpu> {
        Ok(Gpu {
            budget: Budget::new(bytes),
            ..self.lane(false)?
        })
    }

    /// How many cards there are; none without a driver.
    pub fn count() -> usize {
        CudaContext::device_count().map_or(0, |count| count as usize)
    }

    /// Memory that any card reaches directly, until it is dropped; `None` where the driver will not.
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

    /// Streaming multiprocessors on the card: what grids are sized by.
    pub fn multiprocessors(&self) -> u32 {
        self.context
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_or(1, |count| count as u32)
    }

    /// Blocks of 256 for a pass that reduces `bytes` to a few words: enough to fill the card, and
    /// no more than have 16 KiB each to do.
    pub fn reduction_grid(&self, bytes: u64) -> u32 {
        let full = 4 * u64::from(self.multiprocessors());
        bytes.div_ceil(16384).clamp(1, full) as u32
    }

    /// Free and total device memory, in bytes.
    pub fn memory(&self) -> Result<(usize, usize)> {
        Ok(self.context.mem_get_info()?)
    }

    /// The card's theoretical peaks, as it states them.
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

    /// What the card says of itself.
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

    /// The kernel `name` of the file `file` (both as under `kernels/`) for pixels of `form`: `u16_c3`,
    /// `b8`, …, or "" for the papers', which have one. The driver compiles its module when it is first asked for, which takes a while: ask
    /// before the upload.
    pub fn kernel(&self, file: &str, name: &'static str, form: &str) -> Result<Kernel> {
        // Asking the driver for one takes 0.1 ms, and much longer while other threads use it.
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
                anyhow!("the driver refuses the kernels of {file}: {}", said(&error))
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
        ready().map_err(|error| anyhow!("kernel {entry}: {}", said(&error)))
    }

    /// A point in the queue that knows its time.
    pub fn event(&self) -> Result<CudaEvent> {
        let record = || {
            let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
            let event = match spare {
                Some(event) => event,
                // Without the explicit flag the event could not tell a time.
                None => self.context.new_event(Some(Flags::CU_EVENT_DEFAULT))?,
            };
            event.record(&self.stream)?;
            Ok(event)
        };
        record().map_err(|error: DriverError| anyhow!("{}", said(&error)))
    }

    /// A moment by both clocks, before which nothing that is timed was queued.
    pub fn moment(&self) -> Result<&(Instant, CudaEvent)> {
        if let Some(moment) = self.moment.get() {
            return Ok(moment);
        }
        let event = self.event()?;
        self.wait()?;
        let moment = (Instant::now(), event);
        Ok(self.moment.get_or_init(|| moment))
    }

    /// Takes back an event that has passed, to be used again.
    pub fn keep(&self, event: CudaEvent) {
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(event);
        }
    }

    /// Waits for everything queued.
    pub fn wait(&self) -> Result<()> {
        self.stream
            .synchronize()
            .map_err(|error| anyhow!("{}", said(&error)))
    }

    /// Device memory of `len` bytes, its content undefined. An error is a `NoMemory` where less may
    /// be had.
    pub fn alloc(&self, len: usize) -> Result<Buffer> {
        self.context.bind_to_thread()?;
        let size = whole_words(len);
        if !self.budget.take(size) {
            let told = anyhow!("no {len} bytes of device memory within {LIMIT}");
            return Err(told.context(NoMemory));
        }
        // SAFETY: the call only returns a new address; the bytes behind it are any bytes, and whoever
        // reads them back gets what copies and kernels wrote.
        let pointer = unsafe {
            if self.pooled {
                result::malloc_async(self.stream.cu_stream(), size)
            } else {
                result::malloc_sync(size)
            }
        }
        .map_err(|error| {
            self.budget.give_back(size);
            let told = anyhow!("no {len} bytes of device memory: {}", said(&error));
            match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => told.context(NoMemory),
                _ => told,
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

    /// Copies all of `host` to the beginning of `buffer`, through the driver's own staging memory.
    /// Returns when `host` may change again; kernels launched later find it.
    pub fn send(&self, host: &[u8], buffer: &Buffer) -> Result<()> {
        ensure!(host.len() <= buffer.len, "a copy past the buffer's end");
        self.context.bind_to_thread()?;
        // In this queue, as all that may use the buffer before and after.
        // SAFETY: `buffer` has as many bytes as are copied. CUDA has copied pageable memory to its own
        // before this returns; a copy from memory that the card reaches itself is waited for.
        let queued =
            unsafe { result::memcpy_htod_async(buffer.pointer, host, self.stream.cu_stream()) };
        if is_known(host) {
            self.wait()?;
        }
        queued.map_err(|error| anyhow!("{}", said(&error)))
    }

    /// The same to byte `to` of the buffer and what follows it.
    pub fn send_to(&self, host: &[u8], buffer: &Buffer, to: usize) -> Result<()> {
        let target = buffer.part(to, host.len())?;
        self.context.bind_to_thread()?;
        // SAFETY: as in `send`; the part lies inside.
        let queued = unsafe { result::memcpy_htod_async(target, host, self.stream.cu_stream()) };
        if is_known(host) {
            self.wait()?;
        }
        queued.map_err(|error| anyhow!("{}", said(&error)))
    }

    /// Copies a part of every row of `host`, rows of `pitch` bytes, to `buffer`, one part behind the
    /// other. Returns when `host` may change again.
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
        // SAFETY: the part lies inside each of the whole rows that `host` has, and the buffer takes as
        // many; the copy is waited for before `host` is free again.
        let queued = unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.stream.cu_stream()) }.result();
        self.wait()?;
        queued.map_err(|error| anyhow!("{}", said(&error)))
    }

    /// Copies the beginning of `buffer` over all of `host`, after everything queued before, and waits.
    pub fn fetch(&self, buffer: &Buffer, host: &mut [u8]) -> Result<()> {
        self.fetch_from(buffer, 0, host)
    }

    /// The same from byte `from` of the buffer on.
    pub fn fetch_from(&self, buffer: &Buffer, from: usize, host: &mut [u8]) -> Result<()> {
        let source = buffer.part(from, host.len())?;
        self.context.bind_to_thread()?;
        // Not the call without a queue: those of several threads wait for one another.
        // SAFETY: the buffer has as many bytes. The copy is waited for before `host` is free again; a
        // failed wait means a dead context, whose copies have ended too.
        let queued = unsafe { result::memcpy_dtoh_async(host, source, self.stream.cu_stream()) };
        self.wait()?;
        queued.map_err(|error| anyhow!("{}", said(&error)))
    }

    /// Reads back the words of a small buffer, after everything queued before.
    pub fn read_words<T: bytemuck::Pod>(&self, buffer: &Buffer) -> Result<Vec<T>> {
        let mut words = vec![T::zeroed(); buffer.len / size_of::<T>()];
        self.fetch(buffer, bytemuck::cast_slice_mut(&mut words))?;
        Ok(words)
    }

    /// Runs `work` with `host` pinned, so that the card reaches it directly, and waits for what was
    /// queued before it returns, whatever becomes of `work`.
    pub fn with_pinned<R>(&self, host: &mut [u8], work: impl FnOnce(&mut Pinned) -> R) -> R {
        self.with_memory(host, true, work)
    }

    /// The same as plain memory, for copies that are waited for.
    pub fn with_locked<R>(&self, host: &mut [u8], work: impl FnOnce(&mut [u8]) -> R) -> R {
        self.with_pinned(host, |pinned| work(pinned.memory))
    }

    /// The same as `with_pinned`, pinned only if that is wished.
    pub fn with_memory<R>(
        &self,
        host: &mut [u8],
        pin: bool,
        work: impl FnOnce(&mut Pinned) -> R,
    ) -> R {
        let already = sys::CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        let pinning = match self.context.bind_to_thread() {
            // SAFETY: the range is a live slice, borrowed exclusively until after `Pinned` is dropped,
            // which happens in this very frame.
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

    /// Queues `kernel` with `grid` blocks of the threads that it was compiled for. `args` are those
    /// of its header comment, in order.
    pub fn launch(&self, kernel: &Kernel, grid: u32, args: &[Arg]) -> Result<()> {
        let grid = Grid {
            blocks: [grid, 1],
            threads: [kernel.threads, 1],
        };
        self.launch_grid(kernel, grid, args)
    }

    /// Queues `kernel`, cut as `grid` says.
    pub fn launch_grid(&self, kernel: &Kernel, grid: Grid, args: &[Arg]) -> Result<()> {
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
        // SAFETY: the kernels are the project's own and reach no memory but the device buffers given
        // here, whose lengths they are told. A wrong argument list could spoil device memory or stop
        // the context, never the host's memory; the tests run every kernel, under a checker too.
        unsafe { builder.launch(config) }.map_err(|error| anyhow!("{}", said(&error)))?;
        Ok(())
    }

    /// The same card, its work queued on CUDA's default stream, as the papers' programs did.
    pub fn on_default_stream(self) -> Gpu {
        Gpu {
            stream: self.context.default_stream(),
            ..self
        }
    }

    /// Queues the setting of every byte of `buffer`.
    pub fn fill(&self, buffer: &Buffer, byte: u8) -> Result<()> {
        self.context.bind_to_thread()?;
        // SAFETY: the buffer has as many bytes; it outlives the work, see its `drop`.
        unsafe {
            result::memset_d8_async(buffer.pointer, byte, buffer.len, self.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", said(&error)))
    }

    /// Queues a copy of the beginning of `from` over all of `to`.
    pub fn copy(&self, from: &Buffer, to: &Buffer) -> Result<()> {
        ensure!(to.len <= from.len, "a copy past the buffer's end");
        self.context.bind_to_thread()?;
        // SAFETY: both buffers have as many bytes, are not the same memory, and outlive the work.
        unsafe {
            result::memcpy_dtod_async(to.pointer, from.pointer, to.len, self.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", said(&error)))
    }

    /// Wishes that `percent` of a multiprocessor's fast memory be shared memory for `kernel`, the
    /// rest level-1 cache.
    pub fn prefer_shared(&self, kernel: &Kernel, percent: u8) -> Result<()> {
        let carveout = FunctionAttribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        kernel
            .function
            .set_attribute(carveout, percent.into())
            .map_err(|error| anyhow!("{}", said(&error)))
    }
}

/// What is said with `LIMIT`.
fn limit() -> Result<Option<usize>> {
    let Some(text) = env::var_os(LIMIT) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let bytes = room::size(&text).map_err(|error| anyhow!("{LIMIT}={text}: {error}"))?;
    Ok(Some(usize::try_from(bytes)?))
}

/// Whether the driver knows this memory, since it is pinned.
fn is_known(host: &[u8]) -> bool {
    let mut kind = 0u32;
    let mut attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let mut place = (&raw mut kind).cast();
    // The call for several attributes, since that for one calls an unknown address an error.
    // SAFETY: the driver looks the address up, and writes a number of this size, or zero.
    let asked = unsafe {
        sys::cuPointerGetAttributes(
            1,
            &mut attribute,
            &mut place,
            host.as_ptr() as sys::CUdeviceptr,
        )
    };
    asked.result().is_ok() && kind != 0
}

/// The CUDA version that the driver speaks, as CUDA counts it: 12040 for 12.4.
fn driver_version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: writes one integer through a pointer to a live one; needs no initialisation.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(|error| anyhow!("{}", said(&error)))?;
    Ok(version)
}

fn open_context(ordinal: usize) -> Result<Arc<CudaContext>> {
    // SAFETY: only tries to load a shared library; asked first because every other call of the
    // binding panics where the library is missing.
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
        _ => anyhow!("the NVIDIA driver does not start: {}", said(&error)),
    })?;
    let count = CudaContext::device_count().map_err(|error| anyhow!("{}", said(&error)))?;
    if count == 0 {
        return Err(no_gpu());
    }
    ensure!(
        ordinal < count as usize,
        "there is no GPU {ordinal}: this machine shows {count}, numbered from 0"
    );
    CudaContext::new(ordinal)
        .map_err(|error| anyhow!("GPU {ordinal} cannot be opened: {}", said(&error)))
}

/// There is a driver, and no card that it shows; what may hide them is named.
fn no_gpu() -> Error {
    const HIDES: &str = "CUDA_VISIBLE_DEVICES";
    let hides = env::var(HIDES).map_or(String::new(), |shown| format!(" ({HIDES} is '{shown}')"));
    anyhow!("the NVIDIA driver shows no GPU{hides}")
}

/// Whether the card has a pool of memory, which is then told to keep what it once had.
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

/// What the driver says of an error, or its number where it has no words.
fn said(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("CUDA error {:?}", error.0),
    }
}

/// Host memory that all cards reach directly, kept from image to image.
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
            // SAFETY: registered at this very address by `page_locked`; copies that use the memory
            // have been waited for by `Pinned`, which borrowed it.
            let _ = unsafe { sys::cuMemHostUnregister(self.memory.as_mut_ptr().cast()) }.result();
        }
    }
}

/// Host memory that the card can reach directly while this lives.
#[derive(Debug)]
pub struct Pinned<'h> {
    memory: &'h mut [u8],
    gpu: &'h Gpu,
    /// Whether it was pinned for this, and is to be let go after.
    registered: bool,
    /// Where the driver would not pin (a limit on locked memory), copies go through its own
    /// staging buffers: slower, and the timeline says so.
    direct: bool,
}

impl Pinned<'_> {
    /// Whether the card reaches the memory directly.
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// The memory, once all that was queued is done.
    pub fn bytes(&mut self) -> Result<&[u8]> {
        self.gpu.wait()?;
        Ok(self.memory)
    }

    /// Bytes of the memory.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// Queues a copy of all of it into `buffer`, which must be as long.
    pub fn upload(&mut self, buffer: &mut Buffer) -> Result<()> {
        ensure!(
            buffer.len == self.memory.len(),
            "an upload of another length"
        );
        // SAFETY: the lengths agree. The memory is not touched while the copy may run: nothing but
        // this type's queued copies reaches it until `drop` has waited for them.
        unsafe {
            result::memcpy_htod_async(buffer.pointer, self.memory, self.gpu.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", said(&error)))
    }

    /// Queues a copy of `buffer` over all of it, which must be as long.
    pub fn download(&mut self, buffer: &Buffer) -> Result<()> {
        ensure!(
            buffer.len == self.memory.len(),
            "a download of another length"
        );
        // SAFETY: as in `upload`.
        unsafe {
            result::memcpy_dtoh_async(self.memory, buffer.pointer, self.gpu.stream.cu_stream())
        }
        .map_err(|error| anyhow!("{}", said(&error)))
    }
}

impl Pinned<'_> {
    /// Queues a copy of the bytes of `buffer` from `from` on over `to` of the memory.
    pub fn download_part(&mut self, to: Range<usize>, buffer: &Buffer, from: usize) -> Result<()> {
        let source = buffer.part(from, to.len())?;
        let to = self.memory.get_mut(to);
        let to = to.ok_or_else(|| anyhow!("a copy past the memory's end"))?;
        // SAFETY: as in `upload`; both parts lie inside.
        unsafe { result::memcpy_dtoh_async(to, source, self.gpu.stream.cu_stream()) }
            .map_err(|error| anyhow!("{}", said(&error)))
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // Queued copies may still use the memory. A failed wait means a dead context, whose copies
        // have ended too.
        let _ = self.gpu.wait();
        if self.registered && self.gpu.context.bind_to_thread().is_ok() {
            // SAFETY: this very address was registered by `with_pinned` and is so until here.
            let _ = unsafe { sys::cuMemHostUnregister(self.memory.as_mut_ptr().cast()) }.result();
        }
    }
}
