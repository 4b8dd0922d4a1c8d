//! Where operations run.

use super::error::{Error, Result};
use crate::gpu::{self, Choice, Devices, GpuSet};
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::Arc;

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
impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
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
