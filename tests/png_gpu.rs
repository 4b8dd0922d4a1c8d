//! What a GPU makes of an image is the file that the CPU writes, byte for byte.

use crate::support::png_encode::{KINDS, encoded, image, tiled};
use crate::support::{SIZES, gpu};
use gpuimg::internals::formats::gpu::png;
use gpuimg::internals::formats::png::Mode;
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::DeviceImage;
use gpuimg::internals::os::Target;
use gpuimg::internals::timing::Timeline;

fn on_gpu(gpu: &Gpu, image: &Image) -> Vec<u8> {
    let shape = image.shape();
    let mut image = image.clone();
    let memory = image.samples_mut().as_bytes_mut();
    let compressed = gpu.job(memory, &mut Timeline::default(), |job| {
        let samples = job.upload()?;
        png::compress(&DeviceImage { shape, samples }, job)
    });
    let compressed = compressed.expect("the GPU compresses");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let target = Target::create(&path, false).unwrap();
    let len = compressed
        .write(image.samples().as_bytes(), &Metadata::default(), &target)
        .unwrap();
    target.commit(len).unwrap();
    std::fs::read(path).unwrap()
}

fn compare(gpu: &Gpu, image: &Image, what: &str) {
    let (found, expected) = (on_gpu(gpu, image), encoded(image, Mode::Fast));
    let first = found.iter().zip(&expected).position(|(a, b)| a != b);
    assert!(
        found == expected,
        "{what} {}: {} bytes against {}, the first other at {first:?}",
        image.shape(),
        found.len(),
        expected.len()
    );
}

const DEPTHS: [Depth; 2] = [Depth::Eight, Depth::Sixteen];

/// Every size, channel count, depth and kind of content.
#[test]
fn small_images() {
    let cases = SIZES.len() * 4 * 2 * KINDS.len();
    let Some(gpu) = gpu(cases) else { return };
    let mut tried = 0;
    for (width, height) in SIZES {
        for channels in 1..=4 {
            for depth in DEPTHS {
                for kind in KINDS {
                    compare(gpu, &image(kind, width, height, channels, depth), kind);
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, cases);
}

/// Every kernel on images small enough to run under a checker of memory accesses and races.
#[test]
fn every_kernel_on_small_images() {
    let sizes = [(1, 1), (7, 1), (1, 7), (67, 66), (300, 211)];
    let Some(gpu) = gpu(sizes.len() * 4 * 4) else {
        return;
    };
    for (width, height) in sizes {
        for channels in 1..=4 {
            for kind in ["field", "background", "noise", "fibonacci"] {
                let depth = DEPTHS[channels % 2];
                compare(gpu, &image(kind, width, height, channels, depth), kind);
            }
        }
    }
}

/// Segments of many rows and blocks, the last of each broken off.
#[test]
fn many_segments() {
    let sizes = [
        (1531, 1201, 1),
        (701, 997, 3),
        (2048, 700, 2),
        (333, 2003, 4),
    ];
    let cases = sizes.len() * 2 * KINDS.len();
    let Some(gpu) = gpu(cases) else { return };
    for (width, height, channels) in sizes {
        for depth in DEPTHS {
            for kind in KINDS {
                compare(gpu, &image(kind, width, height, channels, depth), kind);
            }
        }
    }
}

/// What comes again at a distance, which the CPU and the GPU count alike: near enough, at the edge, and too far away.
#[test]
fn tiles_of_every_width() {
    let widths = [
        2, 3, 17, 100, 500, 1000, 2000, 3000, 4000, 5000, 5500, 6000, 6500, 7000, 8000,
    ];
    let Some(gpu) = gpu(widths.len()) else { return };
    for wide in widths {
        let image = grey(8100, 150, |i| tiled(i % 8100, i / 8100, wide));
        compare(gpu, &image, &format!("tiles of {wide}"));
    }
}

/// Rows longer than a segment, and so many rows that a segment is full of filter bytes.
#[test]
fn rows_of_every_length() {
    let shapes = [
        (700_001, 3, 1, Depth::Sixteen),
        (400_000, 2, 3, Depth::Eight),
        (524_287, 4, 1, Depth::Sixteen),
        (1_048_575, 2, 1, Depth::Eight),
        (1_048_576, 2, 1, Depth::Eight),
        (2, 400_001, 1, Depth::Sixteen),
        (1, 1_200_000, 1, Depth::Eight),
    ];
    let kinds = ["noise", "field", "sparse", "zero"];
    let Some(gpu) = gpu(shapes.len() * kinds.len()) else {
        return;
    };
    for (width, height, channels, depth) in shapes {
        for kind in kinds {
            compare(gpu, &image(kind, width, height, channels, depth), kind);
        }
    }
}

/// A 16-bit grey image whose samples, row by row, are what `sample` says of their place.
fn grey(width: usize, height: usize, sample: impl FnMut(usize) -> u16) -> Image {
    let shape = Shape {
        width,
        height,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let samples: Vec<u16> = (0..shape.samples()).map(sample).collect();
    Image::new(shape, Samples::from(samples))
}

/// Runs of zeros of every length, which end anywhere, over the borders of blocks and words too.
#[test]
fn runs_of_every_length() {
    let Some(gpu) = gpu(3) else { return };
    for spread in [40, 700, 30_000] {
        let (mut left, mut value, mut state) = (0usize, 0u16, spread as u64);
        let image = grey(1021, 531, |_| {
            if left == 0 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                left = 1 + (state >> 40) as usize % spread;
                // A run follows each short piece of noise.
                value = if value == 0 { 1 } else { 0 };
                left = if value == 0 { left } else { left % 9 + 1 };
            }
            left -= 1;
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            if value == 0 {
                0
            } else {
                (state >> 44) as u16 | 1
            }
        });
        compare(gpu, &image, "runs");
    }
}

/// Data that codes fitted to samples make longer than it was, and longer than the image's memory.
#[test]
fn samples_that_mislead() {
    let Some(gpu) = gpu(2) else { return };
    for parts in [64, 3] {
        let mut state = 1u64;
        let image = grey(2048, 300, |at| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Some groups of eight bytes have few values, others all.
            let drawn = (at / 4) % parts == 0;
            let random = (state >> 41) as u16;
            if drawn { random & 0x0101 } else { random }
        });
        compare(gpu, &image, "mislead");
    }
}
