//! `gpuimg doctor`: reports the machine's processor, memory and GPUs, tests the copies to and from
//! each GPU, and prints the plan of an example; as text and as one JSON object.

mod health;

use crate::engine::{Destination, NamedSource, Resources, plan_file};
use crate::formats::{self, Reading, png};
use crate::gpu::{Choice, Devices, Unusable};
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::normalize::Normalize;
use crate::os::console;
use crate::os::outcome::Outcome;
use crate::os::{Source, Target};
use anyhow::Result;
use health::{BYTES, Copies, Cpu, GpuHealth, Health, Link};
use std::env;
use std::fmt::Write as _;
use std::path::Path;

/// Prints the report, or with `json` one object; fails only if a requested GPU cannot be used.
pub fn run(choice: Choice, json: bool) -> Result<Outcome> {
    let mut health = Health::of_system();
    let number = match choice {
        Choice::Gpu(number) => number.unwrap_or(0),
        _ => 0,
    };
    let mut healthy = Ok(());
    if choice == Choice::Cpu {
        health.gpu_problem = Some("not checked (--device or GPUIMG_DEVICE is cpu)".into());
    } else {
        healthy = health.examine_gpu(number);
        let problem = healthy.as_ref().err();
        health.gpu_problem = problem.map(|error| format!("not usable: {}", error.root_cause()));
    }
    // A requested GPU that cannot be used runs nothing.
    if healthy.is_ok() || choice == Choice::Auto {
        health.plan = Some(example_plan(choice)?);
    }
    if json {
        console::print(&serde_json::to_string(&health)?)?;
    } else {
        console::print_lines(&text(&health))?;
    }
    match (choice, healthy) {
        (Choice::Gpu(_), Err(error)) => Err(error),
        // A GPU that fails sets the exit status; a machine without a GPU does not.
        (_, Err(error)) if !error.is::<Unusable>() => Ok(Outcome::SomeFailed),
        _ => Ok(Outcome::Done),
    }
}

/// The report for people.
fn text(health: &Health) -> String {
    let mut out = format!("gpuimg {}\n", health.version);
    cpu(&mut out, &health.cpu);
    for note in &health.notes {
        line(&mut out, "note", note);
    }
    if let Some(found) = &health.gpu {
        gpu(&mut out, found);
    }
    if let Some(problem) = &health.gpu_problem {
        line(&mut out, "GPU", problem);
    }
    if let Some(plan) = &health.plan {
        line(&mut out, "plan", "gpuimg normalize in.png out.png");
        for planned in plan.lines() {
            let _ = writeln!(out, "  {planned}");
        }
    }
    out
}

fn line(out: &mut String, what: &str, text: &str) {
    let _ = writeln!(out, "{what:<16}{text}");
}

fn cpu(out: &mut String, cpu: &Cpu) {
    let text = format!("{}, using {} threads", cpu.model, cpu.threads);
    line(out, "CPU", &text);
    let mut text = format!("{} used", cpu.vectors);
    if cpu.vectors != cpu.best_vectors {
        let _ = write!(text, " (this CPU supports {})", cpu.best_vectors);
    }
    if let Ok(name) = env::var("GPUIMG_SIMD") {
        let _ = write!(text, " (GPUIMG_SIMD={name})");
    }
    line(out, "CPU vectors", &text);
}

fn gpu(out: &mut String, gpu: &GpuHealth) {
    let driver = gpu.driver.as_deref();
    let driver = driver.unwrap_or("version unknown (NVML not found)");
    let text = format!("{driver}, supports CUDA {}", gpu.cuda);
    line(out, "driver", &text);
    line(
        out,
        &format!("GPU {}", gpu.number),
        &format!(
            "{}, compute capability {}, {} multiprocessors, {} MiB of level-2 cache; opened in {:.0} ms",
            gpu.name,
            gpu.compute_capability,
            gpu.multiprocessors,
            gpu.level_2_cache_bytes >> 20,
            gpu.open_ms
        ),
    );
    let mib = |bytes: u64| bytes >> 20;
    let text = format!(
        "{} MiB, {} free",
        mib(gpu.memory_bytes),
        mib(gpu.free_bytes)
    );
    line(out, "memory", &text);
    if let Some(stays) = gpu.persistence {
        line(out, "start", persistence(stays));
    }
    if gpu.partitioned == Some(true) {
        line(
            out,
            "note",
            "this GPU is partitioned (MIG): the figures are those of one instance",
        );
    }
    if let Some(kernels) = &gpu.kernels {
        let text = format!(
            "embedded code for {}; the driver loads that of normalize in {:.1} ms",
            kernels.code, kernels.load_ms
        );
        line(out, "kernels", &text);
    }
    if let Some(copies) = &gpu.copies {
        line(out, "pinned memory", &copies_text(copies));
        let link = gpu.link.as_ref().map(link_text);
        let link = link.unwrap_or("unknown: neither NVML nor sysfs reports it".into());
        line(out, "link", &link);
    }
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
fn link_text(link: &Link) -> String {
    let text = format!(
        "PCIe {}.0 ×{} now, {}.0 ×{} at most",
        link.generation, link.lanes, link.best_generation, link.best_lanes
    );
    if (link.generation, link.lanes) == (link.best_generation, link.best_lanes) {
        return text;
    }
    if link.lanes < link.best_lanes {
        return format!(
            "{text}: WARNING: fewer lanes than possible; check that the GPU is seated in a full-width slot"
        );
    }
    format!(
        "{text}: WARNING: slower generation than possible; an idle GPU may do that to save power"
    )
}

fn copies_text(copies: &Copies) -> String {
    let (up, down) = (copies.up_gb_per_s, copies.down_gb_per_s);
    if copies.pinned {
        return format!(
            "{} MiB pinned in {:.1} ms; {up:.1} GB/s up, {down:.1} down, data verified",
            BYTES >> 20,
            copies.pin_ms
        );
    }
    format!(
        "WARNING: the driver cannot pin memory (see ulimit -l): {up:.1} GB/s up, {down:.1} down through its own buffers"
    )
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
    let devices = Devices::idle(choice);
    let resources = Resources::new(&devices, Reading::default());
    let plans = plan_file(&[&Normalize::default()], input, Some(&output), &resources)?.plans;
    Ok(plans.join("\n"))
}
