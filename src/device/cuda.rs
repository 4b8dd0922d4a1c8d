//! One NVIDIA GPU: context, streams, pinned host memory, copies and launches timed by the card's
//! own events. The only file with `unsafe`. Knows no operation.

use super::Unusable;
use super::modules::Modules;
use crate::stats::{Limit, Peaks, Timeline};
use anyhow::{Context, Result, anyhow, ensure};
use cudarc::driver::sys::{
    self, CUdevice_attribute_enum as Attribute, CUevent_flags_enum as Flags,
};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaSlice, CudaStream, DriverError,
    LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The oldest driver interface that takes the embedded PTX: CUDA 12.0, driver 525.
const OLDEST_DRIVER: i32 = 12000;

/// A GPU with its context, ready to work.
#[derive(Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Modules,
    /// `NVIDIA H100 80GB HBM3`, …
    pub name: String,
    /// When opening began, and how long it took.
    pub opened: (Instant, Duration),
}

/// Device memory, uninitialised until a copy or a kernel fills it.
#[derive(Debug)]
pub struct Buffer {
    memory: CudaSlice<u8>,
    len: usize,
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
}

/// Which kernel to launch, how wide, and what it must move.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The file under `kernels/` that holds it, without `.cu`.
    pub file: &'static str,
    /// The kernel, which is its name in the timeline too.
    pub kernel: &'static str,
    /// The form of pixel: `u16_c3`, `b8`, … as in the file's header.
    pub form: &'a str,
    /// Blocks.
    pub grid: u32,
    /// Threads a block.
    pub block: u32,
    /// Bytes that the algorithm must read plus write in device memory.
    pub bytes: u64,
}

impl Gpu {
    /// Opens GPU `ordinal`. Every error is an `Unusable` with a reason a user can act on.
    pub fn open(ordinal: usize) -> Result<Gpu> {
        let start = Instant::now();
        let ready = || -> Result<Gpu> {
            let context = open_context(ordinal)?;
            // SAFETY: tracking orders the uses of a buffer by several streams; here every buffer is
            // made, used and freed on the one stream of its `Gpu`, which keeps them in order.
            unsafe { context.disable_event_tracking() };
            Ok(Gpu {
                name: context.name()?,
                modules: Modules::for_capability(context.compute_capability()?)?,
                stream: context.new_stream()?,
                context,
                opened: (start, start.elapsed()),
            })
        };
        ready().map_err(|error| error.context(Unusable))
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
        let full = 8 * u64::from(self.multiprocessors());
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
        let address = [
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
        ]
        .map(|part| self.context.attribute(part).unwrap_or(0));
        Peaks {
            memory,
            pcie: super::link::peak(address),
        }
    }

    /// A job on this GPU whose copies and launches are told to `timeline`.
    pub fn job<'a>(&'a self, timeline: &'a mut Timeline) -> Job<'a> {
        Job {
            gpu: self,
            timeline,
            pending: Vec::new(),
        }
    }

    fn module(&self, file: &str, form: &str) -> Result<Arc<CudaModule>> {
        self.modules.get(file, form, |ptx| {
            self.context
                .load_module(Ptx::from_src(ptx))
                .map_err(|error| {
                    anyhow!("the driver refuses the kernels of {file}: {}", said(&error))
                })
        })
    }

    fn event(&self) -> Result<CudaEvent> {
        // Without the explicit flag the event could not tell a time.
        Ok(self.stream.record_event(Some(Flags::CU_EVENT_DEFAULT))?)
    }
}

fn open_context(ordinal: usize) -> Result<Arc<CudaContext>> {
    // SAFETY: only tries to load a shared library; asked first because every other call of the
    // binding panics where the library is missing.
    let present = unsafe { sys::is_culib_present() };
    ensure!(
        present,
        "no NVIDIA driver on this machine (libcuda.so.1 is not there)"
    );
    let mut version = 0;
    // SAFETY: writes one integer through a pointer to a live one; needs no initialisation.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(|error| anyhow!("{}", said(&error)))?;
    ensure!(
        version >= OLDEST_DRIVER,
        "the NVIDIA driver is too old: it speaks CUDA {}.{}, and 12.0 is needed; update the driver to 525 or later",
        version / 1000,
        version % 1000 / 10
    );
    cudarc::driver::result::init()
        .map_err(|error| anyhow!("the NVIDIA driver does not start: {}", said(&error)))?;
    let count = CudaContext::device_count().map_err(|error| anyhow!("{}", said(&error)))?;
    ensure!(count > 0, "the NVIDIA driver sees no GPU");
    ensure!(
        ordinal < count as usize,
        "there is no GPU {ordinal}: this machine shows {count}, numbered from 0"
    );
    CudaContext::new(ordinal)
        .map_err(|error| anyhow!("GPU {ordinal} cannot be opened: {}", said(&error)))
}

/// What the driver says of an error, or its number where it has no words.
fn said(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("CUDA error {:?}", error.0),
    }
}

/// Work on one image: copies wait for themselves, launches do not; the timeline learns of the
/// launches when the next copy down has waited for them.
#[derive(Debug)]
pub struct Job<'a> {
    gpu: &'a Gpu,
    timeline: &'a mut Timeline,
    pending: Vec<Pending>,
}

/// A launch whose time is not known yet.
#[derive(Debug)]
struct Pending {
    kernel: &'static str,
    bytes: u64,
    start: Instant,
    before: CudaEvent,
    after: CudaEvent,
}

impl<'a> Job<'a> {
    /// The GPU that the job runs on.
    pub fn gpu(&self) -> &'a Gpu {
        self.gpu
    }

    /// Pins `host` for the time of the borrow, so that copies run at the link's speed.
    pub fn pin<'h>(&mut self, host: &'h mut [u8]) -> Pinned<'h> {
        let bytes = host.len() as u64;
        let gpu = self.gpu;
        self.timeline
            .host("pin", bytes, || Pinned::register(gpu, host))
    }

    /// Device memory of `bytes` bytes, its content undefined.
    /// The allocation is rounded up to whole 16-byte words, which kernels may read to their end.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer> {
        // SAFETY: the bytes are undefined, but any bytes are valid `u8`s, and whoever reads them
        // back gets what copies and kernels wrote.
        let memory = unsafe { self.gpu.stream.alloc::<u8>(bytes.next_multiple_of(16)) };
        memory
            .map(|memory| Buffer { memory, len: bytes })
            .map_err(|error| anyhow!("no {bytes} bytes of device memory: {}", said(&error)))
    }

    /// Copies the pinned memory into new device memory, and waits for it.
    pub fn upload(&mut self, host: &Pinned) -> Result<Buffer> {
        let mut buffer = self.alloc(host.memory.len())?;
        let (start, before) = (Instant::now(), self.gpu.event()?);
        self.gpu
            .stream
            .memcpy_htod(&*host.memory, &mut buffer.memory)
            .context("upload")?;
        let after = self.gpu.event()?;
        self.copied(
            host.span("upload"),
            start,
            &before,
            &after,
            host.memory.len(),
        )?;
        Ok(buffer)
    }

    /// Copies device memory to the start of the pinned memory, and waits for it.
    pub fn download(&mut self, buffer: &Buffer, host: &mut Pinned) -> Result<()> {
        ensure!(
            buffer.len() <= host.memory.len(),
            "a download larger than its host memory"
        );
        let (start, before) = (Instant::now(), self.gpu.event()?);
        self.gpu
            .stream
            .memcpy_dtoh(
                &buffer.memory.slice(..buffer.len),
                &mut host.memory[..buffer.len()],
            )
            .context("download")?;
        let after = self.gpu.event()?;
        self.gpu
            .stream
            .synchronize()
            .map_err(|error| anyhow!("{}", said(&error)))?;
        self.settle()?;
        self.copied(host.span("download"), start, &before, &after, buffer.len())
    }

    /// New device memory that holds a few words, such as a kernel's parameters or its zeroed results.
    pub fn words<T: bytemuck::Pod>(&self, words: &[T]) -> Result<Buffer> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let mut buffer = self.alloc(bytes.len())?;
        self.gpu.stream.memcpy_htod(bytes, &mut buffer.memory)?;
        Ok(buffer)
    }

    /// Reads back the words of a small buffer, after everything launched before.
    pub fn read_words<T: bytemuck::Pod>(&mut self, buffer: &Buffer) -> Result<Vec<T>> {
        let mut words = vec![T::zeroed(); buffer.len() / size_of::<T>()];
        self.gpu.stream.memcpy_dtoh(
            &buffer.memory.slice(..buffer.len),
            bytemuck::cast_slice_mut::<T, u8>(&mut words),
        )?;
        self.gpu
            .stream
            .synchronize()
            .map_err(|error| anyhow!("{}", said(&error)))?;
        self.settle()?;
        Ok(words)
    }

    /// Queues a kernel behind everything queued before; does not wait.
    pub fn launch(&mut self, launch: Launch, args: &[Arg]) -> Result<()> {
        let function = self.function(&launch)?;
        let start = Instant::now();
        let before = self.gpu.event()?;
        let mut builder = self.gpu.stream.launch_builder(&function);
        for arg in args {
            match arg {
                Arg::Buffer(buffer) => builder.arg(&buffer.memory),
                Arg::U32(word) => builder.arg(word),
                Arg::U64(word) => builder.arg(word),
            };
        }
        let config = LaunchConfig {
            grid_dim: (launch.grid, 1, 1),
            block_dim: (launch.block, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernels are the project's own and reach no memory but the device buffers
        // given here, whose lengths they are told; a wrong argument list could corrupt device
        // memory or stop the context, never the host's memory, and the tests run every kernel.
        unsafe { builder.launch(config) }
            .map_err(|error| anyhow!("kernel {}: {}", launch.kernel, said(&error)))?;
        let after = self.gpu.event()?;
        self.pending.push(Pending {
            kernel: launch.kernel,
            bytes: launch.bytes,
            start,
            before,
            after,
        });
        Ok(())
    }

    /// The function to launch; the driver compiles its module when it is first asked for.
    fn function(&mut self, launch: &Launch) -> Result<CudaFunction> {
        let start = Instant::now();
        let loaded = self.gpu.modules.loaded();
        let module = self.gpu.module(launch.file, launch.form)?;
        if self.gpu.modules.loaded() > loaded {
            self.timeline
                .push("load kernels", start, start.elapsed(), 0, Limit::Host);
        }
        let entry = format!("{}_{}", launch.kernel, launch.form);
        module
            .load_function(&entry)
            .map_err(|error| anyhow!("kernel {entry} is not embedded: {}", said(&error)))
    }

    /// Tells the timeline of the launches, which are all done now.
    fn settle(&mut self) -> Result<()> {
        for Pending {
            kernel,
            bytes,
            start,
            before,
            after,
        } in self.pending.drain(..)
        {
            let time = elapsed(&before, &after)?;
            self.timeline
                .push(kernel, start, time, bytes, Limit::DeviceMemory);
        }
        Ok(())
    }

    fn copied(
        &mut self,
        name: &str,
        start: Instant,
        before: &CudaEvent,
        after: &CudaEvent,
        bytes: usize,
    ) -> Result<()> {
        self.timeline.push(
            name,
            start,
            elapsed(before, after)?,
            bytes as u64,
            Limit::Pcie,
        );
        Ok(())
    }
}

/// The card's own time between two events; waits for both.
fn elapsed(before: &CudaEvent, after: &CudaEvent) -> Result<Duration> {
    let ms = before
        .elapsed_ms(after)
        .map_err(|error| anyhow!("{}", said(&error)))?;
    Ok(Duration::from_secs_f64(f64::from(ms).max(0.0) / 1e3))
}

/// Host memory that the card can reach directly while this lives.
#[derive(Debug)]
pub struct Pinned<'h> {
    memory: &'h mut [u8],
    context: Arc<CudaContext>,
    /// Where the driver would not pin (a limit on locked memory), copies go through its own
    /// staging buffers: slower, and the timeline says so.
    registered: bool,
}

impl<'h> Pinned<'h> {
    fn register(gpu: &Gpu, memory: &'h mut [u8]) -> Pinned<'h> {
        let context = gpu.context.clone();
        // SAFETY: the range is a live, exclusively borrowed slice for 'h, and `drop` unregisters
        // it before 'h ends. Were `drop` skipped, the pages would stay pinned but every copy has
        // been waited for, so nothing would write to them.
        let registered = context.bind_to_thread().is_ok()
            && unsafe { sys::cuMemHostRegister_v2(memory.as_mut_ptr().cast(), memory.len(), 0) }
                .result()
                .is_ok();
        Pinned {
            memory,
            context,
            registered,
        }
    }

    fn span(&self, name: &'static str) -> &'static str {
        match (name, self.registered) {
            ("upload", false) => "upload*",
            ("download", false) => "download*",
            _ => name,
        }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        if self.registered && self.context.bind_to_thread().is_ok() {
            // SAFETY: this very address was registered by `register` and is so until here.
            let _ = unsafe { sys::cuMemHostUnregister(self.memory.as_mut_ptr().cast()) }.result();
        }
    }
}
