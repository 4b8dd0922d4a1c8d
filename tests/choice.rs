//! The choice of a device, and what follows when a GPU fails, with a pretended GPU.

use anyhow::{Result, anyhow};
use gpuimg::internals::engine::{Done, Results, with_fallback};
use gpuimg::internals::gpu::choice::{Situation, choose};
use gpuimg::internals::gpu::{Choice, Devices, Failed, NoMemory, Unusable, Work};
use gpuimg::internals::image::{Depth, Shape};
use gpuimg::internals::timing::Timeline;
use std::cell::Cell;

/// A GPU that the CPU pretends to be.
#[derive(Debug, PartialEq)]
struct Pretended;

const IDLE: Situation = Situation {
    threads: 2,
    broken: false,
    starting: false,
    others_use_gpus: false,
    started: false,
    driver: true,
};

fn opened() -> Result<(Pretended, String)> {
    Ok((Pretended, "Pretended 100".into()))
}

fn refused() -> Result<(Pretended, String)> {
    Err(anyhow!("no driver").context(Unusable))
}

/// An operation on so many bytes, read and written, copied to the GPU and back.
fn work(bytes: u64) -> Work {
    Work {
        touched: 2 * bytes,
        transferred: 2 * bytes,
        ..Work::default()
    }
}

/// 28.6 ms for two cores, and for the GPU 277.6 ms with its start or 27.6 ms without.
const SMALL: u64 = 200_000_000;
/// 8.6 s for two cores, 8.3 s for the GPU with its start.
const LARGE: u64 = 60_000_000_000;
/// 0.14 ms for two cores, 1.0 ms for a GPU that has been started.
const TINY: u64 = 1_000_000;

#[test]
fn auto_takes_the_faster_device_by_its_estimate() {
    let unneeded = || -> Result<(Pretended, String)> { panic!("CUDA is not to be started") };
    let auto = |bytes, situation| choose(Choice::Auto, &work(bytes), &situation, opened);
    let (gpu, why) = choose(Choice::Auto, &work(SMALL), &IDLE, unneeded).expect("the CPU");
    assert_eq!(gpu, None);
    assert_eq!(
        why,
        "CPU (2 threads), chosen by auto: 28.6 ms estimated, 277.6 for the GPU including start-up"
    );
    // Without a driver nothing is estimated for a GPU.
    let without = Situation {
        driver: false,
        ..IDLE
    };
    let (_, why) = choose(Choice::Auto, &work(SMALL), &without, unneeded).expect("the CPU");
    assert!(why.contains("no NVIDIA driver") && !why.contains("estimated"));
    let (gpu, why) = auto(LARGE, IDLE).expect("the GPU");
    assert_eq!(gpu, Some(Pretended));
    assert_eq!(
        why,
        "GPU (Pretended 100), chosen by auto: CPU 8571.4 ms estimated, \
         8250.9 for the GPU including start-up"
    );
    // Once CUDA has been started, small work goes to the GPU too, unless its launches take longer than the work; before that
    // and after a failure no work does.
    let started = Situation {
        started: true,
        ..IDLE
    };
    let starting = Situation {
        starting: true,
        ..started
    };
    let others = Situation {
        others_use_gpus: true,
        ..started
    };
    let broken = Situation {
        broken: true,
        ..started
    };
    assert_eq!(auto(SMALL, started).expect("the GPU").0, Some(Pretended));
    assert_eq!(auto(TINY, started).expect("the CPU").0, None);
    for (situation, reason) in [
        (starting, "no GPU was started"),
        (others, "other workers use the GPU"),
        (broken, "the GPU failed"),
    ] {
        let (gpu, why) = auto(LARGE, situation).expect("the CPU");
        assert_eq!(gpu, None);
        assert_eq!(why, format!("CPU (2 threads), chosen by auto: {reason}"));
    }
}

#[test]
fn a_gpu_that_cannot_be_opened_is_a_reason_for_auto_and_an_error_for_gpu() {
    let (gpu, why) = choose(Choice::Auto, &work(LARGE), &IDLE, refused).expect("the CPU");
    assert_eq!(gpu, None);
    assert_eq!(why, "CPU (2 threads), chosen by auto: no driver");
    for choice in [Choice::Gpu(None), Choice::Gpu(Some(3))] {
        let error = choose(choice, &work(SMALL), &IDLE, refused).expect_err("no fallback");
        assert_eq!(gpuimg::internals::status(&error), 3);
        let (gpu, why) = choose(choice, &work(SMALL), &IDLE, opened).expect("the GPU");
        assert_eq!(gpu, Some(Pretended));
        let ordinal = choice.ordinal();
        assert_eq!(why, format!("GPU {ordinal} (Pretended 100), as requested"));
    }
    let (gpu, why) = choose(Choice::Cpu, &work(LARGE), &IDLE, opened).expect("the CPU");
    assert_eq!((gpu, &*why), (None, "CPU (2 threads), as requested"));
}

fn done() -> Done {
    Done {
        digests: Default::default(),
        shape: Shape {
            width: 3,
            height: 2,
            channels: 1,
            depth: Depth::Sixteen,
        },
        results: Results::default(),
        warnings: Vec::new(),
        notes: Vec::new(),
        damage: None,
        plan: String::new(),
        device: "CPU".into(),
        timeline: Timeline::default(),
    }
}

/// Tries an image on a GPU whose memory does not suffice even for the smallest band, and which is
/// not used after the first attempt; says how many attempts were made.
fn out_of_memory(choice: Choice, can_repeat: bool) -> (Result<Done>, usize) {
    let attempts = Cell::new(0);
    let attempt = || match attempts.replace(attempts.get() + 1) {
        0 => Err(anyhow!("no 4096 bytes of the GPU's memory")
            .context(NoMemory)
            .context(Failed)
            .context("cannot normalize a.png")),
        _ => Ok(done()),
    };
    let devices = Devices::new(choice);
    let result = with_fallback(attempt, can_repeat, &devices);
    (result, attempts.get())
}

#[test]
fn a_gpu_without_memory_leaves_the_image_to_the_cpu_with_auto_alone() {
    let (result, attempts) = out_of_memory(Choice::Auto, true);
    assert_eq!(attempts, 2);
    let warnings = result.expect("done by the CPU").warnings;
    let warnings: Vec<&str> = warnings
        .iter()
        .map(|warning| warning.text.as_str())
        .collect();
    assert_eq!(
        warnings,
        ["processed on the CPU because the GPU failed: no 4096 bytes of the GPU's memory"]
    );
    // `--device gpu` never falls back, and standard input cannot be read twice.
    for (choice, can_repeat) in [(Choice::Gpu(None), true), (Choice::Auto, false)] {
        let (result, attempts) = out_of_memory(choice, can_repeat);
        assert_eq!(attempts, 1);
        let error = format!("{:#}", result.expect_err("no fallback"));
        assert!(error.starts_with("cannot normalize a.png: "), "{error}");
        assert!(error.ends_with("the GPU's memory"), "{error}");
    }
}

/// An error of the file is the same on every device.
#[test]
fn an_error_that_is_not_the_gpus_is_not_tried_again() {
    let attempts = Cell::new(0);
    let attempt = || -> Result<Done> {
        attempts.set(attempts.get() + 1);
        Err(anyhow!("truncated").context("cannot read a.png"))
    };
    let devices = Devices::new(Choice::Auto);
    assert!(with_fallback(attempt, true, &devices).is_err());
    assert_eq!(attempts.get(), 1);
}
