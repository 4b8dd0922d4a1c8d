//! Chooses the device: the one that the user requested, or the faster one by an estimate, with a
//! reason.

pub(crate) mod cast;
pub mod choice;
pub mod driver;
mod estimate;
pub mod job;
#[rustfmt::skip]
pub(crate) mod launch;
pub mod link;
pub(crate) mod modules;
mod set;
pub mod slots;
pub mod visible;

pub use estimate::{Work, estimate};
pub use set::{GpuSet, was_started};

use crate::image::buffer;
use crate::timing::{Peaks, Timeline};
use anyhow::{Result, bail};
use choice::Situation;
use driver::{Gpu, has_driver};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thiserror::Error;

/// The choice made with `--device`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The faster of the two, by an estimate.
    #[default]
    Auto,
    /// This GPU, or an error, never the CPU instead. Without a number: the first GPU, or all in a
    /// batch.
    Gpu(Option<usize>),
    /// The CPU; CUDA is not initialised.
    Cpu,
}

impl Choice {
    /// The number of the requested GPU, or of the first.
    pub fn ordinal(self) -> usize {
        match self {
            Choice::Gpu(ordinal) => ordinal.unwrap_or(0),
            Choice::Auto | Choice::Cpu => 0,
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        match text {
            "auto" => Ok(Choice::Auto),
            "cpu" => Ok(Choice::Cpu),
            "gpu" => Ok(Choice::Gpu(None)),
            _ => text
                .strip_prefix("gpu:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(|ordinal| Choice::Gpu(Some(ordinal)))
                .ok_or_else(|| "expected auto, cpu, gpu or gpu:N".into()),
        }
    }
}

/// Marks an error as "the requested GPU cannot be used": exit status 3.
#[derive(Debug, Error)]
#[error("the GPU is not usable")]
pub struct Unusable;

/// Marks an error as a failure of a GPU during its work.
#[derive(Debug, Error)]
#[error("the GPU failed")]
pub struct Failed;

/// Marks an error as "there is not so much free device memory": a smaller amount may be available.
#[derive(Debug, Error)]
#[error("the GPU's memory does not suffice")]
pub struct NoMemory;

/// The devices of one run, or of one thread of a batch: the CPU, and the GPU from the time when it
/// is first needed. A requested GPU starts at once, while the first file is read.
#[derive(Debug)]
pub struct Devices {
    choice: Choice,
    gpus: Arc<GpuSet>,
    /// The worker index of this thread in a batch, which selects the GPU; `None` outside a batch.
    worker: Option<usize>,
    gpu: OnceLock<Gpu>,
    broken: AtomicBool,
}

impl Devices {
    /// Prepares the devices for `choice`, for one image after the other.
    pub fn new(choice: Choice) -> Devices {
        Devices::in_set(choice, Arc::new(GpuSet::new(choice, 1, |_| ())), None)
    }

    /// The devices of worker `worker` of a batch: a stream of its own on one of `gpus`. With `auto`
    /// the CPU works until the GPUs are ready.
    pub fn of_worker(choice: Choice, gpus: &Arc<GpuSet>, worker: usize) -> Devices {
        Devices::in_set(choice, gpus.clone(), Some(worker))
    }

    /// Devices that are never started, for a plan: they only name the device that would do the work.
    pub fn idle(choice: Choice) -> Devices {
        Devices::in_set(choice, Arc::new(GpuSet::idle(choice)), None)
    }

    /// The devices of one call among several that share `gpus`, each with a stream of its own.
    pub fn of_set(choice: Choice, gpus: &Arc<GpuSet>) -> Devices {
        Devices::in_set(choice, gpus.clone(), None)
    }

    /// The devices of one call that works on this stream of a GPU.
    pub fn on_stream(choice: Choice, gpus: &Arc<GpuSet>, stream: Gpu) -> Devices {
        Devices {
            gpu: OnceLock::from(stream),
            ..Devices::in_set(choice, gpus.clone(), None)
        }
    }

    /// The stream that was used.
    pub fn into_stream(self) -> Option<Gpu> {
        self.gpu.into_inner()
    }

    fn in_set(choice: Choice, gpus: Arc<GpuSet>, worker: Option<usize>) -> Devices {
        Devices {
            choice,
            gpus,
            worker,
            gpu: OnceLock::new(),
            broken: AtomicBool::new(false),
        }
    }

    /// The GPU that runs `work`, or `None` for the CPU, and a line with the choice and its reason.
    /// If `auto` chooses the CPU by its estimate, CUDA is not initialised.
    pub fn choose(&self, work: &Work, timeline: &mut Timeline) -> Result<(Option<&Gpu>, String)> {
        let situation = self.situation();
        if situation.starting {
            self.gpus.consider(work);
        }
        choice::choose(self.choice, work, &situation, || {
            let gpu = self.open(timeline)?;
            Ok((gpu, gpu.name.clone()))
        })
    }

    /// Whether the GPU of this thread can be used without waiting.
    fn is_gpu_ready(&self) -> bool {
        self.gpus.is_ready_for(self.worker.unwrap_or(0))
    }

    /// The state of the devices that a choice depends on.
    fn situation(&self) -> Situation {
        let ready = self.is_gpu_ready();
        let auto_worker = self.worker.filter(|_| self.choice == Choice::Auto);
        Situation {
            threads: rayon::current_num_threads(),
            broken: self.broken.load(Ordering::Relaxed),
            starting: auto_worker.is_some() && !ready,
            others_use_gpus: auto_worker.is_some_and(|worker| ready && !self.gpus.serves(worker)),
            // Another call may have started it.
            started: self.worker.is_some() || self.gpu.get().is_some() || ready,
            driver: self.choice == Choice::Auto && has_driver(),
        }
    }

    /// The device that would run `work`, and why, as a line of a plan; no GPU is started.
    pub fn foresee(&self, work: &Work) -> String {
        let name = self.opened().map_or("not started yet", |gpu| &gpu.name);
        match choice::choose(self.choice, work, &self.situation(), || {
            Ok(((), name.into()))
        }) {
            Ok((_, line)) => line,
            Err(error) => error.to_string(),
        }
    }

    /// The line that names the CPU, for work that a GPU cannot do, and `why`.
    ///
    /// # Errors
    /// A GPU was asked for.
    pub fn only_cpu(&self, why: &str) -> Result<String> {
        let threads = rayon::current_num_threads();
        match self.choice {
            Choice::Gpu(_) => bail!("{why} (--device cpu does it)"),
            Choice::Cpu => Ok(choice::cpu_line(threads, "as requested")),
            Choice::Auto => Ok(choice::cpu_line(threads, &format!("chosen by auto: {why}"))),
        }
    }

    /// The GPU that will run `work`, if it is ready to decode the image first; `None`: the host
    /// decodes it, for example while CUDA starts. With `auto` a GPU decodes only in a batch.
    pub fn choose_decoder(&self, work: &Work, timeline: &mut Timeline) -> Result<Option<&Gpu>> {
        let possible = match self.choice {
            Choice::Cpu => false,
            Choice::Gpu(_) => true,
            Choice::Auto => self.worker.is_some(),
        };
        if !possible {
            return Ok(None);
        }
        if self.gpu.get().is_none() && !self.is_gpu_ready() {
            if self.choice == Choice::Auto {
                self.gpus.consider(work);
            }
            return Ok(None);
        }
        Ok(self.choose(work, timeline)?.0)
    }

    /// The bytes of samples per second that one core decoded, of images that a GPU could have decoded; 0 before the first.
    pub fn rate(&self) -> f64 {
        self.gpus.rate()
    }

    /// Learns the time in which the host decoded an image that a GPU could have decoded.
    pub fn learn(&self, bytes: usize, time: Duration) {
        self.gpus.learn(bytes, time);
    }

    /// The line that names a GPU.
    pub fn line(&self, gpu: &Gpu) -> String {
        choice::gpu_line(self.choice, &gpu.name)
    }

    /// Whether the device is chosen for each image.
    pub fn is_auto(&self) -> bool {
        self.choice == Choice::Auto
    }

    /// Whether `auto` may choose a GPU, after whose failure the CPU repeats the work.
    pub fn may_use_gpu(&self) -> bool {
        self.choice == Choice::Auto && has_driver()
    }

    /// After a failure of the GPU: with `auto`, gives all further work to the CPU and returns true; the CPU may then repeat the
    /// work that failed. Returns false if a GPU was requested.
    pub fn fall_back_to_cpu(&self) -> bool {
        let auto = self.choice == Choice::Auto;
        if auto {
            self.broken.store(true, Ordering::Relaxed);
        }
        auto
    }

    /// Whether the GPU of `auto` has failed, so that the CPU does all work.
    pub fn has_failed(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// The error of work that failed on a GPU; if the GPU that was asked for does not respond any
    /// more, marked as `Unusable`.
    pub fn unusable_if_lost(&self, error: anyhow::Error) -> anyhow::Error {
        let lost = self.gpu.get().is_some_and(|gpu| gpu.is_lost());
        if lost && matches!(self.choice, Choice::Gpu(_)) {
            error.context(Unusable)
        } else {
            error
        }
    }

    /// The GPU, if one is in use.
    pub fn opened(&self) -> Option<&Gpu> {
        self.gpu.get()
    }

    /// The peaks of the GPU, if one was used.
    pub fn peaks(&self) -> Peaks {
        self.gpu.get().map(Gpu::peaks).unwrap_or_default()
    }

    /// Memory for the buffer pool of a thread that processes one image after another: page-locked once its GPU has been used.
    pub fn pool_block(&self, bytes: usize) -> Option<buffer::Block> {
        let page_locked = self.gpu.get().and_then(|gpu| gpu.page_locked(bytes));
        page_locked.or_else(|| {
            let mapped = buffer::mapped(bytes)?;
            Some(Box::new(mapped) as buffer::Block)
        })
    }

    fn open(&self, timeline: &mut Timeline) -> Result<&Gpu> {
        if let Some(gpu) = self.gpu.get() {
            return Ok(gpu);
        }
        let gpu = self.gpus.stream(self.worker, timeline)?;
        // From now on the memory of this thread is page-locked.
        buffer::clear_pool();
        Ok(self.gpu.get_or_init(|| gpu))
    }
}
