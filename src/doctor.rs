//! `gpuimg doctor`: reports the machine's processor, memory and GPUs, tests the copies to and from
//! each GPU, and prints the plan of an example.

use crate::engine::{Destination, NamedSource, Resources, plan_file};
use crate::formats::{self, Reading, png};
use crate::gpu::driver::Gpu;
use crate::gpu::launch::normalize::Minmax;
use crate::gpu::link::{self, Link};
use crate::gpu::{Choice, Devices, Unusable};
use crate::image::buffer::Buffer;
use crate::image::simd::{self, Level};
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::normalize::Normalize;
use crate::os::console;
use crate::os::limits;
use crate::os::outcome::Outcome;
use crate::os::{Source, Target};
use anyhow::{Result, ensure};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Prints the report; fails only if a requested GPU cannot be used.
pub fn run(choice: Choice) -> Result<Outcome> {
    let mut out = String::new();
    let _ = writeln!(out, "gpuimg {}", env!("CARGO_PKG_VERSION"));
    cpu(&mut out);
    system_notes(&mut out);
    let ordinal = match choice {
        Choice::Gpu(ordinal) => ordinal.unwrap_or(0),
        _ => 0,
    };
    let mut healthy = Ok(());
    if choice == Choice::Cpu {
        line(
            &mut out,
            "GPU",
            "not checked (--device or GPUIMG_DEVICE is cpu)",
        );
    } else {
        healthy = Gpu::open(ordinal).and_then(|gpu| describe_gpu(&mut out, ordinal, &gpu));
        if let Err(error) = &healthy {
            line(
                &mut out,
                "GPU",
                &format!("not usable: {}", error.root_cause()),
            );
        }
    }
    // A requested GPU that cannot be used runs nothing.
    if healthy.is_ok() || choice == Choice::Auto {
        line(&mut out, "plan", "gpuimg normalize in.png out.png");
        for planned in example_plan(choice)?.lines() {
            let _ = writeln!(out, "  {planned}");
        }
    }
    console::print_lines(&out)?;
    match (choice, healthy) {
        (Choice::Gpu(_), Err(error)) => Err(error),
        // A GPU that fails sets the exit status; a machine without a GPU does not.
        (_, Err(error)) if !error.is::<Unusable>() => Ok(Outcome::SomeFailed),
        _ => Ok(Outcome::Done),
    }
}

fn line(out: &mut String, what: &str, text: &str) {
    let _ = writeln!(out, "{what:<16}{text}");
}

fn cpu(out: &mut String) {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown", |(_, model)| model.trim());
    let threads = rayon::current_num_threads();
    line(out, "CPU", &format!("{model}, using {threads} threads"));
    let (level, highest) = (simd::level(), Level::highest());
    let mut text = format!("{} used", level.name());
    if level < highest {
        let _ = write!(text, " (this CPU supports {})", highest.name());
    }
    if let Ok(name) = env::var("GPUIMG_SIMD") {
        let _ = write!(text, " (GPUIMG_SIMD={name})");
    }
    line(out, "CPU vectors", &text);
}

/// Adds notes on WSL and on containers, where a missing GPU has other remedies.
fn system_notes(out: &mut String) {
    let kernel = fs::read_to_string("/proc/version").unwrap_or_default();
    if kernel.to_lowercase().contains("microsoft") {
        line(
            out,
            "note",
            "this is WSL: it uses the Windows driver; do not install a Linux driver",
        );
    }
    let groups = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    let contained = ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .any(|mark| Path::new(mark).exists())
        || ["docker", "kubepods", "lxc", "containerd"]
            .iter()
            .any(|mark| groups.contains(mark));
    if contained {
        line(
            out,
            "note",
            "this is a container: start it with GPU access (docker run --gpus all)",
        );
    }
    if let Some(limits) = limits::control_groups() {
        line(out, "note", &limits);
    }
}

fn describe_gpu(out: &mut String, ordinal: usize, gpu: &Gpu) -> Result<()> {
    let facts = gpu.facts()?;
    let managed = link::managed(facts.address);
    let driver = managed
        .as_ref()
        .map_or("version unknown (NVML not found)", |managed| {
            &managed.driver
        });
    line(
        out,
        "driver",
        &format!("{driver}, supports CUDA {}.{}", facts.cuda.0, facts.cuda.1),
    );
    line(
        out,
        &format!("GPU {ordinal}"),
        &format!(
            "{}, compute capability {}.{}, {} multiprocessors, {} MiB of level-2 cache; opened in {:.0} ms",
            gpu.name,
            facts.capability.0,
            facts.capability.1,
            facts.multiprocessors,
            facts.l2 >> 20,
            gpu.opened.1.as_secs_f64() * 1e3
        ),
    );
    let (total, free) = facts.memory;
    let mib = |bytes: u64| bytes >> 20;
    line(
        out,
        "memory",
        &format!("{} MiB, {} free", mib(total), mib(free)),
    );
    if let Some(stays) = managed.as_ref().and_then(|managed| managed.stays) {
        line(out, "start", persistence(stays));
    }
    if managed.is_some_and(|managed| managed.cut) {
        line(
            out,
            "note",
            "this GPU is partitioned (MIG): the figures are those of one instance",
        );
    }
    let start = Instant::now();
    gpu.kernel::<Minmax>("u16_c1")?;
    line(
        out,
        "kernels",
        &format!(
            "embedded code for {}; the driver loads that of normalize in {:.1} ms",
            facts.form,
            start.elapsed().as_secs_f64() * 1e3
        ),
    );
    test_copies(out, gpu)?;
    // After the copies, which wake an idle link.
    match link::link(facts.address) {
        Some(state) => line(out, "link", &link_text(state)),
        None => line(out, "link", "unknown: neither NVML nor sysfs reports it"),
    }
    Ok(())
}

/// What persistence mode means for the first process that uses the GPU.
fn persistence(stays: bool) -> &'static str {
    if stays {
        "persistence mode is on: the driver stays loaded between processes"
    } else {
        "WARNING: persistence mode is off: each process that finds the GPU idle reloads the driver, which takes a second or more; enable it with nvidia-persistenced or nvidia-smi -pm 1"
    }
}

/// The current and maximal link, and a warning if the current one is slower.
fn link_text(Link { now, most }: Link) -> String {
    let text = format!(
        "PCIe {}.0 ×{} now, {}.0 ×{} at most",
        now.0, now.1, most.0, most.1
    );
    match now {
        now if now == most => text,
        now if now.1 < most.1 => format!(
            "{text}: WARNING: fewer lanes than possible; check that the GPU is seated in a full-width slot"
        ),
        _ => {
            format!(
                "{text}: WARNING: slower generation than possible; an idle GPU may do that to save power"
            )
        }
    }
}

/// Pins memory, copies it to the GPU and back, and compares.
fn test_copies(out: &mut String, gpu: &Gpu) -> Result<()> {
    const BYTES: usize = 64 << 20;
    let mut host = Buffer::<u8>::zeroed(BYTES)?;
    for (i, byte) in host.iter_mut().enumerate() {
        *byte = (i * 31) as u8;
    }
    let sent = host.clone();
    let mut device = gpu.alloc(BYTES)?;
    let start = Instant::now();
    let (registered, pin, up, down) = gpu.with_pinned(&mut host, |pinned| -> Result<_> {
        let pin = start.elapsed().as_secs_f64();
        let timed = |copies: &mut dyn FnMut() -> Result<()>| {
            copies()?;
            gpu.wait()?;
            let start = Instant::now();
            copies()?;
            gpu.wait()?;
            Ok::<f64, anyhow::Error>(BYTES as f64 / start.elapsed().as_secs_f64() / 1e9)
        };
        let up = timed(&mut || pinned.upload(&mut device))?;
        gpu.fill(&mut device, 0)?;
        pinned.upload(&mut device)?;
        let down = timed(&mut || pinned.download(&device))?;
        Ok((pinned.direct(), pin, up, down))
    })?;
    ensure!(host == sent, "the GPU returned different bytes");
    let text = if registered {
        format!(
            "{} MiB pinned in {:.1} ms; {up:.1} GB/s up, {down:.1} down, data verified",
            BYTES >> 20,
            pin * 1e3
        )
    } else {
        format!(
            "WARNING: the driver cannot pin memory (see ulimit -l): {up:.1} GB/s up, {down:.1} down through its own buffers"
        )
    };
    line(out, "pinned memory", &text);
    Ok(())
}

/// The plan of `normalize` for a page of a PNG file, made as that of any file; no device is started.
fn example_plan(choice: Choice) -> Result<String> {
    let shape = Shape {
        width: 2048,
        height: 2048,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let image = Image::new(shape, Samples::zeroed(&shape)?);
    let encoded = Target::in_memory();
    let length = formats::encode(&image, &png::FORMAT, &formats::Options::default(), &encoded)?;
    let source = Source::memory(encoded.into_bytes(length)?);
    let input = NamedSource {
        path: Path::new("in.png"),
        source: &source,
    };
    let output = Destination {
        path: "out.png".into(),
        ..Destination::default()
    };
    let resources = Resources {
        devices: &Devices::idle(choice),
        budget: None,
        reading: Reading::default(),
        require_regular_file: false,
        gpu_times: false,
    };
    let plans = plan_file(&[&Normalize::default()], input, Some(&output), &resources)?.plans;
    Ok(plans.join("\n"))
}
