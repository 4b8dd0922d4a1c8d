//! Which device does the work: what the user chose, or the faster one by an estimate, and why.

pub mod cpu;
pub mod cuda;
mod job;
pub mod link;
mod modules;

use crate::stats::{Limit, Peaks, Timeline};
use anyhow::{Result, anyhow};
use cuda::Gpu;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock};
use std::thread::{self, JoinHandle};

/// What was asked for with `--device`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The faster of the two, by an estimate.
    #[default]
    Auto,
    /// This GPU, or an error: never the CPU instead.
    Gpu(usize),
    /// The CPU; CUDA is not touched.
    Cpu,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        match text {
            "auto" => Ok(Choice::Auto),
            "cpu" => Ok(Choice::Cpu),
            "gpu" => Ok(Choice::Gpu(0)),
            _ => text
                .strip_prefix("gpu:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(Choice::Gpu)
                .ok_or_else(|| "expected auto, cpu, gpu or gpu:N".into()),
        }
    }
}

/// Marks an error as "the demanded GPU cannot be used": exit status 3.
#[derive(Debug)]
pub struct Unusable;

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the GPU is not usable")
    }
}

/// The bytes that an operation on one image makes each device move.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Read plus written by the operation's passes over the samples.
    pub touched: u64,
    /// Sent to the card and fetched from it.
    pub transferred: u64,
}

/// CUDA's start-up on a warm driver, in seconds: 0.20–0.33 were measured on H100 hosts.
const GPU_START: f64 = 0.25;
/// Bytes a second over PCIe with pinned memory, pinning included (4.0 × 16 lanes; 5.0 is faster).
const GPU_TRANSFER: f64 = 15e9;
/// Bytes a second that one core moves in the CPU passes, up to the limit of a socket's memory.
const CPU_CORE: f64 = 5e9;
/// Bytes a second that all cores together move at best.
const CPU_ALL: f64 = 60e9;

/// Estimated seconds of the passes on the CPU and on the GPU, CUDA's start counted unless it has `started`.
pub fn estimate(work: &Work, cores: usize, started: bool) -> (f64, f64) {
    let cpu = work.touched as f64 / (CPU_CORE * cores as f64).min(CPU_ALL);
    let start = if started { 0.0 } else { GPU_START };
    (cpu, start + work.transferred as f64 / GPU_TRANSFER)
}

/// The devices of one run: the CPU, and the GPU from when it is needed on. A GPU that was asked
/// for starts at once, beside the reading of the first file.
#[derive(Debug)]
pub struct Devices {
    choice: Choice,
    starting: Mutex<Option<JoinHandle<Result<Gpu>>>>,
    gpu: OnceLock<Gpu>,
}

impl Devices {
    /// Prepares for `choice`.
    pub fn new(choice: Choice) -> Devices {
        let starting = match choice {
            Choice::Gpu(ordinal) => Some(thread::spawn(move || Gpu::open(ordinal))),
            Choice::Auto | Choice::Cpu => None,
        };
        Devices {
            choice,
            starting: Mutex::new(starting),
            gpu: OnceLock::new(),
        }
    }

    /// The GPU that shall do `work`, or `None` for the CPU; with a line that says which and why.
    /// Where `auto` takes the CPU by its estimate, CUDA is not touched.
    pub fn choose(&self, work: &Work, timeline: &mut Timeline) -> Result<(Option<&Gpu>, String)> {
        let cores = rayon::current_num_threads();
        match self.choice {
            Choice::Cpu => Ok((None, format!("CPU ({cores} threads), as asked"))),
            Choice::Gpu(ordinal) => {
                let gpu = self.open(ordinal, timeline)?;
                Ok((Some(gpu), format!("GPU {ordinal} ({}), as asked", gpu.name)))
            }
            Choice::Auto => {
                let (cpu, gpu) = estimate(work, cores, self.gpu.get().is_some());
                let compared = format!(
                    "{:.1} ms estimated, {:.1} for the GPU with its start",
                    cpu * 1e3,
                    gpu * 1e3
                );
                if cpu <= gpu {
                    return Ok((
                        None,
                        format!("CPU ({cores} threads), chosen by auto: {compared}"),
                    ));
                }
                match self.open(0, timeline) {
                    Ok(gpu) => Ok((
                        Some(gpu),
                        format!(
                            "GPU 0 ({}), chosen by auto: the CPU would take {compared}",
                            gpu.name
                        ),
                    )),
                    Err(error) => Ok((
                        None,
                        format!(
                            "CPU ({cores} threads), chosen by auto: {}",
                            error.root_cause()
                        ),
                    )),
                }
            }
        }
    }

    /// The card's peaks, where a GPU was used.
    pub fn peaks(&self) -> Peaks {
        self.gpu.get().map(Gpu::peaks).unwrap_or_default()
    }

    fn open(&self, ordinal: usize, timeline: &mut Timeline) -> Result<&Gpu> {
        if let Some(gpu) = self.gpu.get() {
            return Ok(gpu);
        }
        let starting = self
            .starting
            .lock()
            .ok()
            .and_then(|mut starting| starting.take());
        let opened = match starting {
            Some(thread) => thread
                .join()
                .unwrap_or_else(|_| Err(anyhow!("the NVIDIA driver failed").context(Unusable))),
            None => Gpu::open(ordinal),
        }?;
        timeline.push(
            "device start",
            opened.opened.0,
            opened.opened.1,
            0,
            Limit::Host,
        );
        Ok(self.gpu.get_or_init(|| opened))
    }
}
