//! What a GPU decodes from a PNG is what the CPU decodes, and what the CPU refuses no GPU accepts.

use crate::support::png::{Plain, idats, index, kinds, segments, zlib};
use crate::support::png_encode;
use crate::support::png_gpu_decode::{
    compare, compare_or_leave, damaged, plain, same_verdict, with_fixed,
};
use crate::support::tiff::libdeflate;
use crate::support::{Numbers, gpu, skipped};
use gpuimg::internals::formats::png::Mode;
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::Depth;
use std::io::Write;

/// Sides that leave every rest in bytes, words, tiles, bands and lanes.
const SIZES: [(usize, usize); 13] = [
    (1, 1),
    (1, 37),
    (41, 1),
    (2, 2),
    (3, 5),
    (7, 9),
    (8, 8),
    (31, 33),
    (33, 31),
    (64, 25),
    (61, 97),
    (129, 67),
    (700, 40),
];

/// Every kind of PNG with every filter, and with all of them mixed.
fn every_kind(gpu: &Gpu, sizes: &[(usize, usize)]) -> usize {
    let mut tried = 0;
    for &(width, height) in sizes {
        for (colour, bits) in kinds() {
            for transparent in [false, true] {
                if transparent && colour > 3 {
                    continue;
                }
                let plain = plain(width, height, bits, colour, transparent);
                for filter in 0..7usize {
                    let scanlines = plain.scanlines(|y| match filter {
                        5 => (y * 7 % 5) as u8,
                        // Rows that need none above are rare.
                        6 => (2 + y % 3 - 2 * usize::from(y % 29 == 28).min(y % 3)) as u8,
                        _ => filter as u8,
                    });
                    let file = plain.file([&zlib(&scanlines, 6)[..]]);
                    let what = format!("{width}×{height}, colour {colour}, {bits} bits, {filter}");
                    compare(gpu, &file, &what);
                    tried += 1;
                }
            }
        }
    }
    tried
}

#[test]
fn every_kind_of_png() {
    let cases = SIZES.len() * 26 * 7;
    let Some(gpu) = gpu(cases) else { return };
    assert!(every_kind(gpu, &SIZES) >= SIZES.len() * 15 * 7);
}

/// Every kernel on images small enough to run under a checker of memory accesses and races.
#[test]
fn every_kernel_on_small_images_decoded() {
    let Some(gpu) = gpu(3) else { return };
    every_kind(gpu, &[(3, 5), (61, 37)]);
    for (what, file) in streams(&scenes()[1].1).into_iter().step_by(3) {
        compare(gpu, &file, &what);
    }
}

/// Images whose streams differ: noise, edges, runs, repetitions, and half of one and half of another.
fn scenes() -> Vec<(&'static str, Plain)> {
    let mut noisy = Plain::noisy(501, 307, 16, 0);
    let mut numbers = Numbers::new(3);
    for (i, sample) in noisy.samples.iter_mut().enumerate() {
        let noise = (numbers.next() >> 40) as u16 % 97;
        *sample = (i / 501 * 5 + i % 501 * 3) as u16 + noise;
    }
    let of = |make: &mut dyn FnMut(usize) -> u16| {
        let mut plain = noisy.clone();
        for (i, sample) in plain.samples.iter_mut().enumerate() {
            *sample = make(i);
        }
        plain
    };
    let mut random = Numbers::new(7);
    vec![
        ("constant", of(&mut |_| 1234)),
        (
            "half",
            of(&mut |i| match i % 501 < 250 {
                true => 777,
                false => noisy.samples[i],
            }),
        ),
        ("repeating", of(&mut |i| noisy.samples[i % 1733])),
        (
            "mask",
            of(&mut |i| 255 * u16::from((i / 501 / 40 + i % 501 / 60) & 1 == 0)),
        ),
        ("random", of(&mut |_| random.next() as u16)),
        ("noise", noisy.clone()),
        ("colours", Plain::noisy(300, 211, 8, 2)),
        ("tiny", Plain::noisy(5, 4, 8, 6)),
    ]
}

/// Files of one image from writers of every kind.
fn streams(plain: &Plain) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for mixed in [false, true] {
        let lines = plain.scanlines(|y| if mixed { [1, 2, 4, 3, 1][y % 5] } else { 1 });
        for level in [0, 1, 3, 6, 9] {
            let stream = zlib(&lines, level);
            files.push((format!("zlib {level} {mixed}"), plain.file([&stream[..]])));
            if level == 6 {
                let file = plain.file(stream.chunks(77));
                files.push((format!("many chunks {mixed}"), file));
            }
        }
        for (level, stream) in [
            (1, libdeflate::<1>(&lines)),
            (6, libdeflate::<6>(&lines)),
            (12, libdeflate::<12>(&lines)),
        ] {
            let file = plain.file([&stream[..]]);
            files.push((format!("libdeflate {level} {mixed}"), file));
        }
        for reset in [false, true] {
            let size = (lines.len() / 7 + 1).max(1);
            let parts = segments(&lines, size, reset);
            let stream = idats(&parts, &lines).concat();
            files.push((
                format!("flushed {reset} {mixed}"),
                plain.file([&stream[..]]),
            ));
        }
        let stream = with_fixed(&lines);
        files.push((format!("fixed {mixed}"), plain.file([&stream[..]])));
        let rows = plain.scanlines(|y| u8::from(y > 0 && mixed));
        let bytes = rows.len() / plain.height;
        let parts = segments(&rows, bytes * plain.height.div_ceil(3), true);
        if parts.len() == 3 {
            let mut own = plain.clone();
            own.before.push(index(plain.height.div_ceil(3), &parts));
            let data = idats(&parts, &rows);
            let file = own.file(data.iter().map(|part| &part[..]));
            files.push((format!("index {mixed}"), file));
        }
    }
    files
}

#[test]
fn every_writer() {
    let Some(gpu) = gpu(200) else { return };
    let (mut tried, mut left) = (0, vec![]);
    for (scene, plain) in scenes() {
        for (what, file) in streams(&plain) {
            let what = format!("{scene}, {what}");
            tried += 1;
            if !compare_or_leave(gpu, &file, &what) {
                left.push(what);
            }
        }
    }
    assert!(
        left.len() <= tried / 20,
        "of {tried}, left to the CPU: {left:?}"
    );
}

#[test]
fn our_own_files() {
    let Some(gpu) = gpu(2 * png_encode::KINDS.len()) else {
        return;
    };
    for kind in png_encode::KINDS {
        for (channels, depth) in [(1, Depth::Sixteen), (3, Depth::Eight), (4, Depth::Sixteen)] {
            let image = png_encode::image(kind, 901, 653, channels, depth);
            for mode in [Mode::Fast, Mode::Store] {
                let file = png_encode::encoded(&image, mode);
                compare(
                    gpu,
                    &file,
                    &format!("{kind}, {channels} channels, {mode:?}"),
                );
            }
        }
    }
}

/// Whatever is changed in a file, the GPU says no more of it than the CPU: the same image, or that
/// it is the CPU's.
#[test]
fn damaged_files() {
    let Some(gpu) = gpu(600) else { return };
    let mut numbers = Numbers::new(11);
    let (mut accepted, mut refused) = (0, 0);
    for (scene, plain) in scenes() {
        for (what, file) in streams(&plain).into_iter().step_by(2) {
            for variant in 0..4 {
                let damaged = damaged(&file, &mut numbers, variant);
                match same_verdict(
                    gpu,
                    &damaged,
                    &format!("{scene}, {what}, variant {variant}"),
                ) {
                    true => accepted += 1,
                    false => refused += 1,
                }
            }
        }
    }
    assert!(refused > 200, "{accepted} accepted, {refused} refused");
}

/// The files of a folder that other programs wrote (`GPUIMG_PNG_FOLDER`; `tests/interop/png_writers.py`
/// makes one), and 16 damaged variants of every 15th.
#[test]
fn foreign_files() {
    let Some(folder) = std::env::var_os("GPUIMG_PNG_FOLDER") else {
        return skipped("files of other writers: GPUIMG_PNG_FOLDER is not set");
    };
    let Some(gpu) = gpu(1) else { return };
    let mut numbers = Numbers::new(12);
    let (mut count, mut left, mut variants) = (0, 0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "png") {
            continue;
        }
        let (what, file) = (path.display().to_string(), std::fs::read(&path).unwrap());
        left += usize::from(!compare_or_leave(gpu, &file, &what));
        count += 1;
        for variant in (0..16).filter(|_| count % 15 == 0) {
            same_verdict(gpu, &damaged(&file, &mut numbers, variant % 4), &what);
            variants += 1;
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "{count} files, {left} of them left to the CPU, and {variants} damaged variants"
    );
    assert!(count > 0);
}
