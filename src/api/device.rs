//! Where operations run.

use super::error::{Error, Result};
use crate::gpu::driver::Gpu;
use crate::gpu::{self, Choice, Devices, GpuSet};
use crate::image::buffer::{self, Block};
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of page-locked memory that a stream keeps for the next file: those of a large file of 16-bit samples.
const KEPT_PAGE_LOCKED: usize = 64 << 20;

/// Where operations run: on the CPU, on a GPU, or wherever they are faster.
///
/// The results have the same bytes everywhere. Keep a device and use it again: it starts its GPU once. It can be cloned and
/// shared by threads; each call has a CUDA stream of its own. A GPU is used through its primary context, which CuPy and
/// PyTorch use as well.
///
/// ```
/// use gpuimg::Device;
/// let device: Device = "cpu".parse()?;
/// assert_eq!(device.to_string(), "cpu");
/// # Ok::<(), gpuimg::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    choice: Choice,
    gpus: Arc<GpuSet>,
    /// The streams of calls that have ended, for images in the memory of the GPU.
    streams: Arc<Mutex<Vec<Stream>>>,
}

/// A stream of a GPU, with the memory that it keeps for its next call.
struct Stream {
    gpu: Gpu,
    /// Page-locked memory.
    blocks: Vec<Block>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.gpu.name).finish()
    }
}

impl Device {
    /// The CPU, with all threads of the current rayon pool. CUDA is not initialised.
    pub fn cpu() -> Device {
        Device::new(Choice::Cpu)
    }

    /// The faster of the two, by an estimate for each call, which counts the copies and, before the first call that uses the GPU,
    /// its start. If the GPU fails, the CPU repeats the work, and the report says so.
    pub fn auto() -> Device {
        Device::new(Choice::Auto)
    }

    /// The first GPU, or an error, never the CPU instead. It starts now, in the background.
    pub fn gpu() -> Device {
        Device::new(Choice::Gpu(None))
    }

    /// The GPU with this number, counted from 0 as the driver does; otherwise as [`Device::gpu`].
    pub fn gpu_number(number: usize) -> Device {
        Device::new(Choice::Gpu(Some(number)))
    }

    fn new(choice: Choice) -> Device {
        Device {
            choice,
            gpus: Arc::new(GpuSet::new(choice, 1, |_| ())),
            streams: Arc::default(),
        }
    }

    /// Whether this process, or one that it was forked from, has begun to start a GPU through this library. CUDA does not work in a
    /// process that was forked after that.
    pub fn gpu_was_started() -> bool {
        gpu::was_started()
    }

    /// Which one it is.
    pub(crate) fn choice(&self) -> Choice {
        self.choice
    }

    /// The devices of one call.
    pub(super) fn devices(&self) -> Devices {
        Devices::of_set(self.choice, &self.gpus)
    }

    /// Runs `work` on a stream of the GPU, which waits until the GPU is started. The stream and its memory are kept for later calls.
    ///
    /// # Errors
    /// A device that is not a GPU, a GPU that cannot be used, and those of `work`.
    pub(super) fn on_stream<R>(
        &self,
        work: impl FnOnce(&Devices) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        anyhow::ensure!(
            matches!(self.choice, Choice::Gpu(_)),
            "an image in the memory of a GPU needs the device gpu or gpu:N, not {self}"
        );
        let idle = self.idle_streams().pop();
        let Stream { gpu, mut blocks } = match idle {
            Some(stream) => stream,
            None => Stream {
                gpu: self.gpus.started()?.with_kept_memory()?,
                blocks: Vec::new(),
            },
        };
        let page_locked = gpu.page_locker();
        let block = move |bytes| {
            page_locked(bytes).or_else(|| Some(Box::new(buffer::mapped(bytes)?) as Block))
        };
        let devices = Devices::on_stream(self.choice, &self.gpus, gpu);
        let result =
            buffer::with_kept_blocks(&mut blocks, KEPT_PAGE_LOCKED, block, || work(&devices));
        // A stream on which something failed is not used again.
        if let Some(gpu) = devices.into_stream().filter(|gpu| gpu.wait().is_ok()) {
            self.idle_streams().push(Stream { gpu, blocks });
        }
        result
    }

    fn idle_streams(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`Device::auto`].
impl Default for Device {
    fn default() -> Device {
        Device::auto()
    }
}

/// Parses `auto`, `cpu`, `gpu` or `gpu:N`, as `--device` does.
impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device> {
        text.parse().map(Device::new).map_err(Error::argument)
    }
}

/// `auto`, `cpu`, `gpu` or `gpu:N`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.choice {
            Choice::Auto => f.write_str("auto"),
            Choice::Cpu => f.write_str("cpu"),
            Choice::Gpu(None) => f.write_str("gpu"),
            Choice::Gpu(Some(number)) => write!(f, "gpu:{number}"),
        }
    }
}

/// Starts rayon's global thread pool with so many threads, which all calls outside of another pool use.
///
/// Without it, rayon starts that pool when it is first needed, with a thread for each core. To use a pool of your own for some
/// calls, make them inside [`rayon::ThreadPool::install`](https://docs.rs/rayon).
///
/// # Errors
/// The global pool has been started already, or a thread cannot be started.
pub fn set_threads(threads: NonZeroUsize) -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get());
    let started = pool.build_global();
    started.map_err(|error| Error::argument(format!("cannot set the number of threads: {error}")))
}
