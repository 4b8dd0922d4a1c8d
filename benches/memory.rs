//! The operations in memory, on the CPU, without codecs: GB/s read plus written, against what a
//! parallel copy (or, for `sum`, a parallel read) of the same bytes gives in the same run.
//! `cargo bench --bench memory [-- SIDE]`

#![allow(
    clippy::disallowed_macros,
    reason = "a bench prints to whoever started it"
)]

use gpuimg::internals::engine::executor;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::Operation;
use gpuimg::internals::ops::calibrate::{Calibrate, Frame};
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::project::{Accumulator, Project, Projection, project_columns};
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::timing::Timeline;
use rayon::prelude::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Pieces of a parallel copy: as large as a core's share of the cache.
const PIECE: usize = 1 << 18;
const RUNS: usize = 9;

fn main() {
    let side = std::env::args()
        .skip(1)
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(8192);
    println!(
        "{} threads; GB/s = 10⁹ bytes read plus written a second; median of {RUNS}",
        rayon::current_num_threads()
    );
    println!("{:<28}{:>10}{:>10}  of ceiling", "operation", "ms", "GB/s");
    for (channels, depth) in [(1, Depth::Sixteen), (3, Depth::Sixteen), (1, Depth::Eight)] {
        let shape = Shape {
            width: side,
            height: side,
            channels,
            depth,
        };
        println!("-- {shape}");
        table(&image(shape));
    }
}

/// An image in the same kind of memory as the decoders give, so that the ceilings touch no other.
fn image(shape: Shape) -> Image {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as u16 % 4000 + 100
    };
    let mut samples = Samples::zeroed(&shape).expect("memory");
    match &mut samples {
        Samples::U8(samples) => samples.fill_with(|| next() as u8),
        Samples::U16(samples) => samples.fill_with(next),
        Samples::U32(_) | Samples::U64(_) => unreachable!("8 or 16 bits were expected"),
    }
    Image::new(shape, samples)
}

fn table(image: &Image) {
    let shape = image.shape();
    let bytes = shape.bytes() as f64;
    let from = image.samples().as_bytes();
    let mut to = image.samples().clone();
    // To memory that has been written before: the ceiling for operations in place.
    let copied = median(|| timed(|| copy(to.as_bytes_mut(), from)));
    row("parallel copy", copied, 2.0 * bytes, None);
    // To memory that the system provides and zeroes page by page at the first touch: the ceiling
    // for operations that make a new image.
    let fresh = median(|| {
        let start = Instant::now();
        let mut to = Samples::zeroed(&shape).expect("memory");
        copy(to.as_bytes_mut(), from);
        let time = start.elapsed();
        black_box(to);
        time
    });
    row("parallel copy, fresh memory", fresh, 2.0 * bytes, None);
    let words: &[u64] = bytemuck::cast_slice(from);
    let read = median(|| {
        let pieces = words.par_chunks(PIECE / 8).map(mixed);
        timed(|| black_box(pieces.reduce(|| 0, |a, b| a ^ b)))
    });
    row("parallel read", read, bytes, None);

    // Two passes: a read, and a copy onto itself.
    let normalize = Normalize::default();
    operation("normalize", &normalize, image, copied + read, "copy + read");
    for (name, op) in [
        ("rotate 180", Symmetry::Rotate180),
        ("flip horizontal", Symmetry::FlipHorizontal),
        ("flip vertical", Symmetry::FlipVertical),
        ("transpose", Symmetry::Transpose),
        ("rotate 90", Symmetry::Rotate90),
    ] {
        operation(name, &op, image, copied, "copy");
    }
    // Not a square: these operations cannot work in place.
    let oblong = self::image(Shape {
        width: shape.width * 2,
        height: shape.height / 2,
        ..shape
    });
    for (name, op) in [
        ("transpose, not square", Symmetry::Transpose),
        ("rotate 90, not square", Symmetry::Rotate90),
    ] {
        operation(name, &op, &oblong, fresh, "copy, fresh");
    }
    many(image, copied);
    let sum = |all| Sum { all, nan: None };
    operation("sum", &sum(false), image, read, "read");
    operation("sum --all", &sum(true), image, read, "read");
}

/// The operations that work with several images, against the copy of as many bytes as they move.
fn many(image: &Image, copied: Duration) {
    let (shape, bytes) = (image.shape(), image.shape().bytes() as f64);
    let as_much = |moved: f64| copied.mul_f64(moved / (2.0 * bytes));
    for how in [Projection::Mean, Projection::Min, Projection::Max] {
        let accumulator = Accumulator::new(Project::plain(how), shape, false).expect("no median");
        // The image is read; what is known of it is read and written.
        let moved = bytes + 2.0 * Accumulator::memory(Project::plain(how), &shape) as f64;
        let time = median(|| {
            timed(|| {
                accumulator
                    .add(image, &mut Timeline::default())
                    .expect("fits")
            })
        });
        let name = format!("project {}, an image", how.name());
        row(&name, time, moved, Some((as_much(moved), "copy")));
    }
    let images: Vec<Samples> = (0..9).map(|_| image.samples().clone()).collect();
    let moved = 10.0 * bytes;
    let time = median(|| timed(|| drop(black_box(middle(shape, &images).expect("memory")))));
    row(
        "project median of 9",
        time,
        moved,
        Some((as_much(moved), "copy")),
    );
    // Frames of other values than the image, so that the results are noise, too.
    let frame = |name: &str, change: fn(u16) -> u16| {
        let mut frame = Frame::new(name, image.clone(), false);
        match frame.image.samples_mut() {
            Samples::U8(samples) => samples
                .iter_mut()
                .for_each(|v| *v = change((*v).into()) as u8),
            Samples::U16(samples) => samples.iter_mut().for_each(|v| *v = change(*v)),
            Samples::U32(_) | Samples::U64(_) => unreachable!("8 or 16 bits were expected"),
        }
        Some(frame)
    };
    let dark = frame("dark", |v| v / 16);
    let flat = frame("flat", |v| v % 64 + 100);
    // Above the noise there are no hot samples; in it, every block of samples has some.
    for (name, flat, hot) in [
        ("calibrate, dark", None, None),
        ("calibrate, dark, hot", None, Some(u16::MAX)),
        ("calibrate, dark and flat", flat.clone(), None),
        ("calibrate, dark, flat, hot", flat.clone(), Some(u16::MAX)),
        ("… in the noise", flat, Some(0)),
    ] {
        let mut moved = bytes * if flat.is_some() { 4.0 } else { 3.0 };
        if hot.is_some() {
            moved += 2.0 * bytes;
        }
        let op = Calibrate::new(dark.clone(), flat, 100, hot).expect("frames");
        operation(name, &op, image, as_much(moved), "copy");
    }
}

fn copy(to: &mut [u8], from: &[u8]) {
    to.par_chunks_mut(PIECE)
        .zip(from.par_chunks(PIECE))
        .for_each(|(to, from)| to.copy_from_slice(from));
}

/// Registers of 16 bytes are enough to wait for memory alone.
fn mixed(words: &[u64]) -> u64 {
    let mut lanes = [0; 64];
    for block in words.as_chunks::<64>().0 {
        for (lane, word) in lanes.iter_mut().zip(block) {
            *lane ^= word;
        }
    }
    lanes.iter().fold(0, |a, b| a ^ b)
}

/// The times are the operation's own spans: the clone that it works on is not timed.
fn operation(name: &str, op: &dyn Operation, image: &Image, ceiling: Duration, of: &str) {
    let mut moved = 0.0;
    let time = median(|| {
        let mut timeline = Timeline::default();
        black_box(executor::on_cpu(op, image.clone(), &mut timeline).is_ok());
        let spans = timeline.spans();
        moved = spans.iter().map(|span| span.bytes as f64).sum();
        spans.iter().map(|span| span.time).sum()
    });
    row(name, time, moved, Some((ceiling, of)));
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The median of a few measurements, after one for warm-up.
fn median(mut measure: impl FnMut() -> Duration) -> Duration {
    measure();
    let mut times: Vec<Duration> = (0..RUNS).map(|_| measure()).collect();
    times.sort();
    times[RUNS / 2]
}

fn row(name: &str, time: Duration, bytes: f64, ceiling: Option<(Duration, &str)>) {
    let seconds = time.as_secs_f64();
    let share = ceiling.map_or(String::new(), |(ceiling, of)| {
        format!("{:>5.0} % of {of}", 100.0 * ceiling.as_secs_f64() / seconds)
    });
    println!(
        "{name:<28}{:>10.2}{:>10.2}{share}",
        seconds * 1e3,
        bytes / seconds / 1e9
    );
}

fn middle(shape: Shape, images: &[Samples]) -> Result<Samples, anyhow::Error> {
    let median = Project::plain(Projection::Median);
    project_columns(&median, shape, false, 0, images, &mut Timeline::default())
}
