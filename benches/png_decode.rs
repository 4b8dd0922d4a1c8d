//! PNG decoding in MB/s of raw samples, beside the png crate in the same run:
//! `cargo bench --bench png_decode [SIDE]` (side of the square images; 4096 if not given).
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[allow(dead_code)]
#[path = "../tests/png_files.rs"]
mod png_files;

use gpuimg::codec::png::decode;
use gpuimg::files::Source;
use png_files::{Plain, channels, idats, index, segments, zlib};
use std::hint::black_box;
use std::io::Cursor;
use std::time::Instant;

/// A smooth field with shot noise, as a camera sees it.
fn camera(side: usize, bits: u8, colour: u8) -> Plain {
    let count = channels(colour);
    let mut state = 1u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u32 << 24) as f32 - 0.5
    };
    let samples = (0..side * side * count)
        .map(|i| {
            let (x, y) = (i / count % side, i / count / side);
            let wave = |at: usize| (at as f32 * 6.0 / side as f32).sin();
            let field = 20000.0 + 6000.0 * wave(x) + 5000.0 * wave(y);
            let noise = (uniform() + uniform() + uniform() + uniform()) * 1.7;
            (field + field.sqrt() * noise) as u16 >> (16 - bits)
        })
        .collect();
    Plain {
        width: side,
        height: side,
        bits,
        colour,
        interlaced: false,
        samples,
        before: vec![],
    }
}

/// The best of a few runs, in seconds, of both in turn.
fn pair(mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (f64, f64) {
    let mut best = (f64::MAX, f64::MAX);
    for _ in 0..7 {
        let start = Instant::now();
        ours();
        best.0 = best.0.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        theirs();
        best.1 = best.1.min(start.elapsed().as_secs_f64());
    }
    best
}

fn measure(name: &str, plain: &Plain, file: Vec<u8>) {
    let raw = plain.samples.len() * usize::from(plain.bits) / 8;
    let ratio = file.len() as f64 / raw as f64;
    let source = Source::memory(file.clone());
    let (ours, theirs) = pair(
        || drop(black_box(decode(&source).unwrap())),
        || {
            let mut reader = png::Decoder::new_with_limits(
                Cursor::new(&file),
                png::Limits { bytes: usize::MAX },
            )
            .read_info()
            .unwrap();
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut bytes).unwrap();
            black_box(bytes);
        },
    );
    let rate = |seconds: f64| raw as f64 / seconds / 1e6;
    println!(
        "{name:34} {:7.0} MB/s, png crate {:7.0} MB/s, {:5.2} ×  (file {ratio:.3} of raw)",
        rate(ours),
        rate(theirs),
        theirs / ours
    );
}

fn main() {
    let side = std::env::args()
        .filter_map(|a| a.parse().ok())
        .next()
        .unwrap_or(4096);
    for (colour, bits, name) in [
        (0, 16, "grey 16"),
        (2, 16, "RGB 16"),
        (6, 16, "RGBA 16"),
        (0, 8, "grey 8"),
        (2, 8, "RGB 8"),
        (6, 8, "RGBA 8"),
    ] {
        let plain = camera(if colour == 0 { side } else { side / 2 }, bits, colour);
        for (filter, kind) in [
            (1, "Sub"),
            (2, "Up"),
            (3, "Average"),
            (4, "Paeth"),
            (5, "mixed"),
        ] {
            let of = |y: usize| {
                if filter == 5 {
                    [1, 2, 3, 4, 4, 2, 4][y % 7]
                } else {
                    filter
                }
            };
            let file = plain.file([&zlib(&plain.scanlines(of), 1)[..]]);
            measure(&format!("{name}, {kind}"), &plain, file);
        }
    }
    let plain = camera(side, 16, 0);
    let scanlines = plain.scanlines(|y| if y % 64 == 0 { 1 } else { 2 });
    let parts = segments(&scanlines, 64 * (scanlines.len() / side), true);
    let stream = idats(&parts, &scanlines);
    let mut indexed = plain.clone();
    indexed.before.push(index(64, &parts));
    let file = |plain: &Plain| plain.file(stream.iter().map(Vec::as_slice));
    measure("grey 16, segments, not told", &plain, file(&plain));
    measure("grey 16, segments", &plain, file(&indexed));
    let plain = camera(256, 16, 0);
    measure("grey 16, 256², Up", &plain, plain.encoded(2));
    measure("grey 16, 256², Paeth", &plain, plain.encoded(4));
}
