//! A GPU with its context: it is opened, shared by streams, and describes itself.

use super::allocator::Allocator;
use super::budget::{Budget, limit};
use super::clock::{Anchor, EventPool};
use super::error::{description, in_words};
use super::kernel::RawKernel;
use super::recorder::Recorder;
use super::residents::{Residents, Tenant};
use super::sets::Sets;
use super::staging::Staging;
use crate::gpu::choice::NO_DRIVER;
use crate::gpu::modules::Modules;
use crate::gpu::slots::{self, Slots};
use crate::gpu::{Unusable, link};
use crate::timing::Peaks;
use anyhow::{Error, Result, anyhow, ensure};
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::{CudaContext, CudaStream};
use std::any::Any;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};
use std::{env, ptr};

/// The oldest driver interface that accepts the embedded PTX: CUDA 12.0, driver 525.
const OLDEST_DRIVER: i32 = 12000;

/// A GPU with its context and a stream.
#[derive(Debug)]
pub struct Gpu {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    pub(super) modules: Arc<Modules>,
    /// The kernels loaded so far.
    pub(super) kernels: Arc<RwLock<HashMap<String, RawKernel>>>,
    pub(super) allocator: Arc<Allocator>,
    pub(super) staging: Staging,
    /// Where the work of a batch's worker is recorded; otherwise it is queued on the stream at once.
    pub(super) recorder: Option<Recorder>,
    /// The threads that submit recorded work, shared by all streams, once they are needed.
    pub(super) sets: Arc<OnceLock<Result<Arc<Sets>, String>>>,
    pub(super) budget: Arc<Budget>,
    pub(super) multiprocessors: u32,
    /// The clock anchor, shared by all streams, so that overlapping work in several streams is recognised.
    pub(super) anchor: Anchor,
    /// The events of this stream that may be recorded again.
    pub(super) events: Mutex<EventPool>,
    /// Data that operations keep in its memory, shared by all streams.
    pub(super) residents: Arc<Residents>,
    /// The slots of the images that use this GPU at the same time, shared by all streams.
    pub slots: Arc<Slots>,
    /// `NVIDIA H100 80GB HBM3`, …
    pub name: String,
    /// The instant when opening began, and its duration.
    pub opened: (Instant, Duration),
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
    /// Whether the host may use managed memory while the GPU works.
    pub managed: bool,
    /// PCI domain, bus and device.
    pub address: [i32; 3],
    /// The embedded form of each kernel for this GPU: `compute_90`.
    pub form: String,
}

impl Gpu {
    /// Opens GPU `ordinal`. Every error is an `Unusable` with a reason that the user can act on.
    pub fn open(ordinal: usize) -> Result<Gpu> {
        let start = Instant::now();
        let ready = || -> Result<Gpu> {
            let context = open_context(ordinal)?;
            let stream = context.new_stream().map_err(in_words)?;
            let budget = Budget::new(limit()?.unwrap_or(usize::MAX));
            let capability = context.compute_capability().map_err(in_words)?;
            let count = Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
            let memory = context.mem_get_info();
            let memory = memory.map_or(0, |(_, total)| total.min(budget.whole()));
            Ok(Gpu {
                name: context.name().map_err(in_words)?,
                modules: Arc::new(Modules::for_capability(capability.0, capability.1)?),
                kernels: Arc::default(),
                allocator: Arc::new(Allocator::plain(stream.clone(), budget.clone())),
                staging: Staging::new(stream.clone()),
                recorder: None,
                sets: Arc::default(),
                stream,
                budget,
                multiprocessors: context.attribute(count).map_or(1, |count| count as u32),
                anchor: Arc::default(),
                events: Mutex::new(EventPool::new(&context)),
                residents: Arc::default(),
                slots: Slots::new(slots::images(memory)),
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
            // Threads that wait for the GPU leave their core to threads that decode. This is only a hint: if it is
            // refused, they spin while they wait.
            // SAFETY: takes two numbers; the device is the context's own.
            let _ = unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(self.context.cu_device(), flags) };
        }
        let stream = self.context.new_stream().map_err(in_words)?;
        let budget = self.budget.clone();
        let allocator = if batch {
            Allocator::keeping(stream.clone(), budget, keep_pool(&self.context))
        } else {
            Allocator::plain(stream.clone(), budget)
        };
        Ok(self.on_stream(stream, allocator))
    }

    /// The same GPU with another stream that keeps device memory for its next image. Nothing of the context changes, which a
    /// program shares with other libraries.
    pub fn with_kept_memory(&self) -> Result<Gpu> {
        let stream = self.context.new_stream().map_err(in_words)?;
        let is_ordered = has_memory_pool(&self.context);
        let allocator = Allocator::keeping(stream.clone(), self.budget.clone(), is_ordered);
        Ok(self.on_stream(stream, allocator))
    }

    /// The same GPU with this stream, and the allocator of its memory.
    fn on_stream(&self, stream: Arc<CudaStream>, allocator: Allocator) -> Gpu {
        Gpu {
            context: self.context.clone(),
            staging: Staging::new(stream.clone()),
            recorder: None,
            sets: self.sets.clone(),
            stream,
            allocator: Arc::new(allocator),
            modules: self.modules.clone(),
            kernels: self.kernels.clone(),
            budget: self.budget.clone(),
            multiprocessors: self.multiprocessors,
            anchor: self.anchor.clone(),
            events: Mutex::new(EventPool::new(&self.context)),
            residents: self.residents.clone(),
            slots: self.slots.clone(),
            name: self.name.clone(),
            opened: self.opened,
        }
    }

    /// The same GPU, with at most `bytes` of its memory for images.
    pub fn limited(&self, bytes: usize) -> Result<Gpu> {
        let limited = self.with_stream(false)?;
        let budget = Budget::new(bytes);
        Ok(Gpu {
            allocator: Arc::new(Allocator::plain(limited.stream.clone(), budget.clone())),
            budget,
            ..limited
        })
    }

    /// The data that are kept in this GPU's memory for `tenant`. If there are none yet, `make` makes them.
    pub fn kept<T: Any + Send + Sync>(
        &self,
        tenant: &Tenant,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        self.residents.get_or_make(tenant, make)
    }

    /// The number of this GPU among all, from 0.
    pub fn ordinal(&self) -> usize {
        self.context.ordinal()
    }

    /// The number of GPUs; 0 without a driver.
    pub fn count() -> usize {
        CudaContext::device_count().map_or(0, |count| count as usize)
    }

    /// Streaming multiprocessors of the GPU, by which grids are sized.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Blocks of 256 threads for a reduction of `bytes` to a few words: enough to fill the GPU, but
    /// at least 16 KiB for each block.
    pub fn reduction_grid(&self, bytes: u64) -> u32 {
        let full = 4 * u64::from(self.multiprocessors());
        bytes.div_ceil(16384).clamp(1, full) as u32
    }

    /// Free and total device memory, in bytes.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.context.mem_get_info().map_err(in_words)
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
            .attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
            .map_err(in_words)?;
        let (free, total) = self.memory()?;
        let cuda = driver_version()?;
        let managed = Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
        Ok(Facts {
            managed: self.context.attribute(managed).is_ok_and(|yes| yes == 1),
            capability: self.context.compute_capability().map_err(in_words)?,
            multiprocessors: self.multiprocessors(),
            l2: l2.max(0) as u64,
            memory: (total as u64, free as u64),
            cuda: (cuda / 1000, cuda % 1000 / 10),
            address: self.address(),
            form: self.modules.form(),
        })
    }
}

/// Whether the machine has the driver's library. Where devices show that it has, the library is not loaded for
/// the answer.
pub fn has_driver() -> bool {
    static PRESENT: LazyLock<bool> =
        LazyLock::new(|| Path::new("/dev/nvidiactl").exists() || is_loaded());
    *PRESENT
}

/// Whether the driver's library is loaded, or can be.
fn is_loaded() -> bool {
    // SAFETY: only tries to load a shared library.
    unsafe { sys::is_culib_present() }
}

/// The CUDA version of the driver in CUDA's numbering: 12040 for 12.4.
fn driver_version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: writes one integer through a pointer to a live one; needs no initialisation.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(in_words)?;
    Ok(version)
}

fn open_context(ordinal: usize) -> Result<Arc<CudaContext>> {
    // First, because every other call of the binding panics if the library is missing.
    ensure!(is_loaded(), NO_DRIVER);
    let version = driver_version()?;
    ensure!(
        version >= OLDEST_DRIVER,
        "the NVIDIA driver is too old: it supports CUDA {}.{}, but 12.0 is required; update the driver to 525 or later",
        version / 1000,
        version % 1000 / 10
    );
    cudarc::driver::result::init().map_err(|error| match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => no_gpu(),
        _ => anyhow!("the NVIDIA driver does not start: {}", description(&error)),
    })?;
    let count = CudaContext::device_count().map_err(in_words)?;
    if count == 0 {
        return Err(no_gpu());
    }
    ensure!(
        ordinal < count as usize,
        "GPU {ordinal} does not exist: this machine has {count}, numbered from 0"
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

/// Whether the GPU has a memory pool, from which memory is allocated in the order of a stream's work.
pub(super) fn has_memory_pool(context: &CudaContext) -> bool {
    let supported = Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    context.attribute(supported).is_ok_and(|yes| yes == 1)
}

/// Whether the GPU has a memory pool; if so, the pool is set to keep freed memory.
fn keep_pool(context: &CudaContext) -> bool {
    if !has_memory_pool(context) {
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
