//! The operations in memory, on the CPU, without codecs: GB/s read plus written, against what a
//! parallel copy (or, for `sum`, a parallel read) of the same bytes gives in the same run.
//! `cargo bench --bench memory [-- SIDE]`

use gpuimg::image::{Depth, Image, Shape};
use gpuimg::ops::Op;
use gpuimg::ops::normalize::Normalize;
use gpuimg::ops::orient::Orient;
use gpuimg::ops::sum::Sum;
use gpuimg::stats::Timeline;
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
        "{} threads; {side}×{side}; GB/s = 10⁹ bytes read plus written a second; median of {RUNS}",
        rayon::current_num_threads()
    );
    println!(
        "{:<28}{:>10}{:>10}{:>12}",
        "operation", "ms", "GB/s", "of ceiling"
    );
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

fn image(shape: Shape) -> Image {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as u16 % 4000 + 100
    };
    let samples = match shape.depth {
        Depth::Eight => (0..shape.samples())
            .map(|_| next() as u8)
            .collect::<Vec<_>>()
            .into(),
        Depth::Sixteen => (0..shape.samples())
            .map(|_| next())
            .collect::<Vec<_>>()
            .into(),
    };
    Image::new(shape, samples)
}

fn table(image: &Image) {
    let bytes = image.shape().bytes() as f64;
    let from = image.samples().as_bytes();
    let mut to = vec![1u8; from.len()];
    let copy = median(|| {
        to.par_chunks_mut(PIECE)
            .zip(from.par_chunks(PIECE))
            .for_each(|(to, from)| to.copy_from_slice(from));
        black_box(&to);
    });
    row("parallel copy", copy, 2.0 * bytes, None);
    let read = median(|| {
        let words = |piece: &[u8]| {
            piece
                .chunks_exact(8)
                .map(|w| u64::from_ne_bytes([w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]]))
                .fold(0u64, |a, b| a ^ b)
        };
        black_box(from.par_chunks(PIECE).map(words).reduce(|| 0, |a, b| a ^ b));
    });
    row("parallel read", read, bytes, None);

    for (name, op, ceiling, moved) in [
        // Two passes: a read, and a copy onto itself.
        (
            "normalize",
            &Normalize::default() as &dyn Op,
            copy + read,
            3.0,
        ),
        ("transpose", &Orient::Transpose, copy, 2.0),
        ("rotate 90", &Orient::Rotate90, copy, 2.0),
        ("rotate 180", &Orient::Rotate180, copy, 2.0),
        ("sum", &Sum { all: false }, read, 1.0),
        ("sum --all", &Sum { all: true }, read, 1.0),
    ] {
        // The clone is not timed: the spans of the timeline are the operation's own.
        let mut times: Vec<Duration> = (0..RUNS)
            .map(|_| {
                let mut timeline = Timeline::default();
                black_box(op.cpu(image.clone(), &mut timeline).is_ok());
                timeline.spans().iter().map(|span| span.time).sum()
            })
            .collect();
        times.sort();
        row(name, times[RUNS / 2], moved * bytes, Some(ceiling));
    }
}

fn median(mut work: impl FnMut()) -> Duration {
    work();
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}

fn row(name: &str, time: Duration, bytes: f64, ceiling: Option<Duration>) {
    let seconds = time.as_secs_f64();
    let share = ceiling.map_or(String::new(), |ceiling| {
        format!("{:.0} %", 100.0 * ceiling.as_secs_f64() / seconds)
    });
    println!(
        "{name:<28}{:>10.2}{:>10.2}{share:>12}",
        seconds * 1e3,
        bytes / seconds / 1e9
    );
}
