//! What the doctor finds: facts about the processor, the system and a GPU, and measured copies.

use crate::gpu::driver::Gpu;
use crate::gpu::launch::normalize::Minmax;
use crate::gpu::link;
use crate::image::buffer::Buffer;
use crate::image::simd::{self, Level};
use crate::os::limits;
use anyhow::{Result, ensure};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Version of the JSON object.
const SCHEMA: u32 = 1;

/// All that was found. It is also the JSON object (docs/SCHEMAS.md).
#[derive(Serialize)]
pub struct Health {
    schema: u32,
    pub version: &'static str,
    pub cpu: Cpu,
    /// What a user should know of the system.
    pub notes: Vec<String>,
    /// The facts about the GPU, as far as it could be asked.
    pub gpu: Option<GpuHealth>,
    /// Why the GPU cannot be used, or was not checked.
    pub gpu_problem: Option<String>,
    /// The plan of an example.
    pub plan: Option<String>,
}

/// The processor.
#[derive(Serialize)]
pub struct Cpu {
    pub model: String,
    pub threads: usize,
    /// The vector instructions that are used, and the best that it has.
    pub vectors: &'static str,
    pub best_vectors: &'static str,
}

/// A GPU that could be opened.
#[derive(Serialize)]
pub struct GpuHealth {
    pub number: usize,
    pub name: String,
    pub compute_capability: String,
    pub multiprocessors: u32,
    pub level_2_cache_bytes: u64,
    pub open_ms: f64,
    pub memory_bytes: u64,
    pub free_bytes: u64,
    /// The driver's version, if NVML is installed.
    pub driver: Option<String>,
    /// The CUDA version that the driver supports.
    pub cuda: String,
    /// Whether the driver stays loaded between processes, if known.
    pub persistence: Option<bool>,
    /// Whether the GPU is one instance of a partitioned one (MIG), if known.
    pub partitioned: Option<bool>,
    pub kernels: Option<Kernels>,
    pub copies: Option<Copies>,
    pub link: Option<Link>,
}

/// The loading of kernels.
#[derive(Serialize)]
pub struct Kernels {
    /// The embedded code for this GPU: `sm_90`.
    pub code: String,
    pub load_ms: f64,
}

/// Copies of `BYTES` to the GPU and back.
#[derive(Serialize)]
pub struct Copies {
    /// Whether the driver could pin the memory.
    pub pinned: bool,
    pub pin_ms: f64,
    pub up_gb_per_s: f64,
    pub down_gb_per_s: f64,
}

/// The PCIe link now, and the best that GPU and slot support together.
#[derive(Serialize)]
pub struct Link {
    pub generation: u32,
    pub lanes: u32,
    pub best_generation: u32,
    pub best_lanes: u32,
}

/// The bytes that are copied to the GPU and back.
pub const BYTES: usize = 64 << 20;

impl Health {
    /// The processor and the system, without a GPU.
    pub fn of_system() -> Health {
        Health {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            cpu: Cpu::new(),
            notes: notes(),
            gpu: None,
            gpu_problem: None,
            plan: None,
        }
    }

    /// Opens GPU `number`, and tests its kernels and copies.
    ///
    /// # Errors
    /// A GPU that cannot be used; what was found before stays.
    pub fn examine_gpu(&mut self, number: usize) -> Result<()> {
        let gpu = Gpu::open(number)?;
        let facts = gpu.facts()?;
        let managed = link::managed(facts.address);
        let found = self.gpu.insert(GpuHealth {
            number,
            name: gpu.name.clone(),
            compute_capability: dotted(facts.capability),
            multiprocessors: facts.multiprocessors,
            level_2_cache_bytes: facts.l2,
            open_ms: gpu.opened.1.as_secs_f64() * 1e3,
            memory_bytes: facts.memory.0,
            free_bytes: facts.memory.1,
            driver: managed.as_ref().map(|managed| managed.driver.clone()),
            cuda: dotted(facts.cuda),
            persistence: managed.as_ref().and_then(|managed| managed.stays),
            partitioned: managed.as_ref().map(|managed| managed.cut),
            kernels: None,
            copies: None,
            link: None,
        });
        let start = Instant::now();
        gpu.kernel::<Minmax>("u16_c1")?;
        found.kernels = Some(Kernels {
            code: facts.form,
            load_ms: start.elapsed().as_secs_f64() * 1e3,
        });
        found.copies = Some(Copies::measure(&gpu)?);
        // After the copies, which wake an idle link.
        found.link = link::link(facts.address).map(|state| Link {
            generation: state.now.0,
            lanes: state.now.1,
            best_generation: state.most.0,
            best_lanes: state.most.1,
        });
        Ok(())
    }
}

/// A version of two numbers.
fn dotted(version: (i32, i32)) -> String {
    format!("{}.{}", version.0, version.1)
}

impl Cpu {
    fn new() -> Cpu {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown", |(_, model)| model.trim());
        Cpu {
            model: model.into(),
            threads: rayon::current_num_threads(),
            vectors: simd::level().name(),
            best_vectors: Level::highest().name(),
        }
    }
}

/// Notes on WSL and on containers, where a missing GPU has other remedies, and on limits.
fn notes() -> Vec<String> {
    let mut notes = Vec::new();
    let kernel = fs::read_to_string("/proc/version").unwrap_or_default();
    if kernel.to_lowercase().contains("microsoft") {
        notes.push("this is WSL: it uses the Windows driver; do not install a Linux driver".into());
    }
    let groups = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    let contained = ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .any(|mark| Path::new(mark).exists())
        || ["docker", "kubepods", "lxc", "containerd"]
            .iter()
            .any(|mark| groups.contains(mark));
    if contained {
        notes.push("this is a container: start it with GPU access (docker run --gpus all)".into());
    }
    notes.extend(limits::control_groups());
    notes
}

impl Copies {
    /// Pins memory, copies it to the GPU and back, and compares.
    fn measure(gpu: &Gpu) -> Result<Copies> {
        let mut host = Buffer::<u8>::zeroed(BYTES)?;
        for (i, byte) in host.iter_mut().enumerate() {
            *byte = (i * 31) as u8;
        }
        let sent = host.clone();
        let mut device = gpu.alloc(BYTES)?;
        let start = Instant::now();
        let copies = gpu.with_pinned(&mut host, |pinned| -> Result<_> {
            let pin_ms = start.elapsed().as_secs_f64() * 1e3;
            let timed = |copies: &mut dyn FnMut() -> Result<()>| {
                copies()?;
                gpu.wait()?;
                let start = Instant::now();
                copies()?;
                gpu.wait()?;
                Ok::<f64, anyhow::Error>(BYTES as f64 / start.elapsed().as_secs_f64() / 1e9)
            };
            let up_gb_per_s = timed(&mut || pinned.upload(&mut device))?;
            gpu.fill(&mut device, 0)?;
            pinned.upload(&mut device)?;
            let down_gb_per_s = timed(&mut || pinned.download(&device))?;
            Ok(Copies {
                pinned: pinned.direct(),
                pin_ms,
                up_gb_per_s,
                down_gb_per_s,
            })
        })?;
        ensure!(host == sent, "the GPU returned different bytes");
        Ok(copies)
    }
}
