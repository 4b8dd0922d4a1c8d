//! What each level of vector instructions gains over the one below it, in memory and on one core:
//! `cargo bench --bench simd [-- SIDE]`. All levels take turns in one process, and a ratio is the
//! median of those of neighbouring measurements, in processor time: both hold on a busy machine.

#![allow(
    clippy::disallowed_macros,
    reason = "a bench prints to whoever started it"
)]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for the developer"
)]

#[allow(dead_code, reason = "not every bench takes every part")]
mod common;

use common::arguments::Arguments;
use common::kinds::Kind;
use gpuimg::internals::engine::executor;
use gpuimg::internals::formats::{self, FORMATS, Options, png, tiff};
use gpuimg::internals::image::simd::Level;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::Operation;
use gpuimg::internals::ops::calibrate::{Calibrate, Frame};
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::project::{Accumulator, Project, Projection, project_columns};
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::os::{Source, Target};
use gpuimg::internals::timing::Timeline;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

/// Measurements of each level.
const ROUNDS: usize = 15;

/// The least processor time of a measurement, in seconds: short work is repeated.
const LEAST: f64 = 2e-3;

fn main() {
    let side = Arguments::new()
        .find(|word| word.parse().ok())
        .unwrap_or(1024);
    let levels: Vec<Level> = Level::all().collect();
    print!("{:<34}{:>10}", "", "scalar ms");
    for pair in levels.windows(2) {
        print!("{:>18}", format!("{}/{}", pair[1].name(), pair[0].name()));
    }
    println!();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.unwrap().install(|| {
        for kind in [Kind::Noisy, Kind::Rgb, Kind::Noisy8] {
            let image = kind.image(side, side);
            println!("-- {} {}", kind.name(), image.shape());
            operations(&image, &levels);
        }
        let image = wide(side);
        println!("-- {}", image.shape());
        operation("normalize", &Normalize::default(), &image, &levels);
        operation("sum", &sum(true), &image, &levels);
        for kind in [Kind::Noisy, Kind::Smooth, Kind::Rgb, Kind::Noisy8] {
            println!("-- {}", kind.name());
            codecs(&kind.image(side, side), &levels);
        }
    });
}

fn sum(all: bool) -> Sum {
    Sum { all, nan: None }
}

/// Floating point of a smooth field.
fn wide(side: usize) -> Image {
    let shape = Shape {
        width: side,
        height: side,
        channels: 1,
        depth: Depth::ThirtyTwo,
    };
    let mut samples = Samples::zeroed(&shape).unwrap();
    if let Samples::U32(samples) = &mut samples {
        for (index, sample) in samples.iter_mut().enumerate() {
            *sample = (index as u32).wrapping_mul(2_654_435_761) >> 3;
        }
    }
    Image::new(shape, samples)
}

fn operations(image: &Image, levels: &[Level]) {
    operation("normalize", &Normalize::default(), image, levels);
    operation("sum", &sum(false), image, levels);
    operation("sum --all", &sum(true), image, levels);
    for (name, op) in [
        ("transpose", Symmetry::Transpose),
        ("flip horizontal", Symmetry::FlipHorizontal),
        ("rotate 180", Symmetry::Rotate180),
    ] {
        operation(name, &op, image, levels);
    }
    for how in [Projection::Mean, Projection::Min, Projection::Max] {
        let shape = image.shape();
        let accumulator = Accumulator::new(Project::plain(how), shape, false).unwrap();
        let name = format!("project {}, an image", how.name());
        row(&name, levels, || {
            timed(|| accumulator.add(image, &mut Timeline::default()).unwrap())
        });
    }
    let images: Vec<Samples> = (0..9).map(|_| image.samples().clone()).collect();
    row("project median of 9", levels, || {
        timed(|| drop(black_box(middle(image.shape(), &images))))
    });
    let frame = Frame::new("dark", image.clone(), false);
    for (name, hot) in [("calibrate, dark", None), ("calibrate, dark, hot", Some(0))] {
        let op = Calibrate::new(Some(frame.clone()), None, 100, hot).unwrap();
        operation(name, &op, image, levels);
    }
}

/// The clone that it works on is not timed.
fn operation(name: &str, op: &dyn Operation, image: &Image, levels: &[Level]) {
    row(name, levels, || {
        let image = image.clone();
        timed(|| black_box(executor::on_cpu(op, image, &mut Timeline::default()).is_ok()))
    });
}

fn codecs(image: &Image, levels: &[Level]) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.unwrap();
    let options = |png, tiff| Options {
        png,
        tiff,
        ..Options::default()
    };
    let (fast, small) = (png::Mode::Fast, png::Mode::Small);
    let none = tiff::Compression::None;
    for (name, id, options) in [
        ("png", "png", options(fast, none)),
        ("png, small", "png", options(small, none)),
        (
            "tiff, deflate",
            "tiff",
            options(fast, tiff::Compression::Deflate),
        ),
    ] {
        let format = FORMATS.iter().find(|format| format.id == id).unwrap();
        let path = folder.path().join(name);
        let target = Target::create(&path, true).unwrap();
        let encode = || formats::encode(image, format, &options, &target).unwrap();
        row(&format!("{name}: encode"), levels, || timed(encode));
        let end = encode();
        target.commit(end).unwrap();
        row(&format!("{name}: decode"), levels, || {
            timed(|| black_box(formats::decode(&Source::open(&path).unwrap()).unwrap()))
        });
    }
}

/// The processor time of this thread, in seconds.
fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let start = now();
    black_box(work());
    now() - start
}

/// Has the levels take turns, and prints each one's speed as a multiple of that of the one before.
fn row(name: &str, levels: &[Level], mut measure: impl FnMut() -> f64) {
    let mut enough = |level: Level| {
        level.use_from_now_on();
        let (mut time, mut times) = (0.0, 0);
        while time < LEAST {
            time += measure();
            times += 1;
        }
        time / f64::from(times)
    };
    // Once for warm-up.
    let _: f64 = levels.iter().map(|&level| enough(level)).sum();
    let rounds: Vec<Vec<f64>> = (0..ROUNDS)
        .map(|_| levels.iter().map(|&level| enough(level)).collect())
        .collect();
    let median = |of: &dyn Fn(&Vec<f64>) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    print!("{name:<34}{:>10.3}", 1e3 * median(&|times| times[0]));
    for k in 1..levels.len() {
        print!("{:>18.2}", median(&|times| times[k - 1] / times[k]));
    }
    println!();
}

fn middle(shape: Shape, images: &[Samples]) -> Result<Samples, anyhow::Error> {
    let median = Project::plain(Projection::Median);
    project_columns(&median, shape, false, 0, images, &mut Timeline::default())
}
