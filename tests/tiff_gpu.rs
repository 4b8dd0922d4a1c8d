//! What a GPU decodes from deflate and LZW strips and tiles of a TIFF is what the CPU decodes, and what the CPU refuses no GPU accepts.

use crate::support::gpu_pages::{processed, started};
use crate::support::png::zlib;
use crate::support::png_gpu_decode::{compare, compare_or_leave, on_gpu, same_verdict, with_fixed};
use crate::support::stacks::stack;
use crate::support::tiff::{Build, libdeflate};
use crate::support::{KINDS, Kind, Numbers, folder, gpu, image, run};
use gpuimg::internals::formats::{Reader, Reading};
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::gpu::{Choice, Devices};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::Operation;
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::os::Source;
use std::fs;

/// A maker of zlib streams.
pub type Maker = fn(&[u8]) -> Vec<u8>;

pub const MAKERS: [(&str, Maker); 8] = [
    ("stored", |raw| zlib(raw, 0)),
    ("zlib 1", |raw| zlib(raw, 1)),
    ("zlib 6", |raw| zlib(raw, 6)),
    ("zlib 9", |raw| zlib(raw, 9)),
    ("libdeflate 1", libdeflate::<1>),
    ("libdeflate 6", libdeflate::<6>),
    ("libdeflate 12", libdeflate::<12>),
    ("fixed", |raw| with_fixed(raw)),
];

/// The Compression tags of deflate and LZW.
const DEFLATE: u64 = 8;
const LZW: u64 = 5;

/// Strips of one row, of some, of all; tiles that fit and that reach beyond the image.
fn layouts() -> Vec<Build> {
    let mut layouts = Vec::new();
    for strip in [1, 7, 64, usize::MAX] {
        layouts.push(Build {
            strip,
            ..Build::default()
        });
    }
    for tile in [(16, 16), (64, 32), (512, 16)] {
        layouts.push(Build {
            tile: Some(tile),
            ..Build::default()
        });
    }
    layouts
}

/// Noise on a gradient, and a flat corner.
fn scene(width: usize, height: usize) -> Image {
    let shape = Shape {
        width,
        height,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let mut numbers = Numbers::new(29);
    let samples: Vec<u16> = (0..shape.samples())
        .map(|i| {
            let (x, y) = (i % width, i / width);
            let noise = (numbers.next() >> 40) as u16 % 89;
            match x < width / 3 && y < height / 2 {
                true => 500,
                false => (3 * x + 5 * y) as u16 + noise,
            }
        })
        .collect();
    Image::new(shape, Samples::from(samples))
}

fn every_layout(gpu: &Gpu, sizes: &[(usize, usize)], kinds: &[Kind]) -> usize {
    let mut tried = 0;
    for &(width, height) in sizes {
        // No kernel takes samples of 64 bits.
        for depth in Depth::ALL
            .into_iter()
            .filter(|&depth| depth != Depth::Double)
        {
            for channels in 1..=4 {
                for &kind in kinds {
                    let image = image(width, height, channels, depth, kind);
                    for (i, layout) in layouts().into_iter().enumerate() {
                        let (name, zlib) = MAKERS[(tried + i) % MAKERS.len()];
                        for compression in [DEFLATE, LZW] {
                            let build = Build {
                                compression,
                                zlib,
                                big_endian: tried % 2 == 1,
                                predictor: (tried / 2) % 2 == 1,
                                ..layout.clone()
                            };
                            let what = format!(
                                "{}, compression {compression}, {:?} {:?}, predictor {}, big endian {}, {name}",
                                image.shape(),
                                build.tile,
                                build.strip,
                                build.predictor,
                                build.big_endian
                            );
                            compare(gpu, &build.file(&image), &what);
                        }
                        tried += 1;
                    }
                }
            }
        }
    }
    tried
}

#[test]
fn every_layout_of_tiff() {
    let sizes = [(1, 1), (2, 3), (37, 41), (129, 67), (300, 16)];
    let cases = sizes.len() * 4 * 4 * KINDS.len() * layouts().len();
    let Some(gpu) = gpu(cases) else { return };
    assert_eq!(every_layout(gpu, &sizes, &KINDS), cases);
}

/// Every kernel on images small enough to run under a checker of memory accesses and races.
#[test]
fn every_kernel_on_small_images_of_tiff() {
    let Some(gpu) = gpu(1) else { return };
    every_layout(gpu, &[(37, 41)], &[Kind::Narrow]);
}

/// Signed samples lie in memory with half the range added.
#[test]
fn signed_samples_of_deflate_strips() {
    let Some(gpu) = gpu(4) else { return };
    for depth in [Depth::Eight, Depth::Sixteen, Depth::ThirtyTwo] {
        let image = image(77, 41, 1, depth, Kind::Noise);
        let build = Build {
            compression: 8,
            predictor: true,
            strip: 8,
            ..Build::default()
        };
        compare(
            gpu,
            &build.tag(339, 3, &[2]).file(&image),
            &format!("{depth}"),
        );
    }
}

#[test]
fn every_maker_of_streams_in_every_layout() {
    let cases = 2 * MAKERS.len() * layouts().len();
    let Some(gpu) = gpu(cases) else { return };
    let (image, mut left) = (scene(701, 509), Vec::new());
    for (name, zlib) in MAKERS {
        for layout in layouts() {
            for predictor in [false, true] {
                let what = format!("{name}, {:?} {:?}, {predictor}", layout.tile, layout.strip);
                let build = Build {
                    compression: 8,
                    zlib,
                    predictor,
                    ..layout.clone()
                };
                // Three blocks with the fixed code in each of hundreds of chunks are more than are looked for.
                let many = name == "fixed" && (layout.strip == 1 || layout.tile.is_some());
                if !compare_or_leave(gpu, &build.file(&image), &what) {
                    left.push((what, many));
                }
            }
        }
    }
    assert!(
        left.iter().all(|(_, many)| *many),
        "left to the CPU: {left:?}"
    );
    assert!(left.len() <= cases / 15, "left to the CPU: {left:?}");
}

/// A match may not reach into the strip before, nor a strip be longer or shorter than its rows.
#[test]
fn streams_keep_to_themselves() {
    let Some(gpu) = gpu(4) else { return };
    let image = scene(64, 64);
    // Without its own first window, each strip's matches reach before its first byte.
    fn cut(raw: &[u8]) -> Vec<u8> {
        let twice = [raw, raw].concat();
        let mut stream = zlib(&twice, 9);
        let sum = simd_adler32::adler32(&raw).to_be_bytes();
        let at = stream.len() - 4;
        stream[at..].copy_from_slice(&sum);
        stream
    }
    fn short(raw: &[u8]) -> Vec<u8> {
        zlib(&raw[..raw.len() - 1], 6)
    }
    fn long(raw: &[u8]) -> Vec<u8> {
        zlib(&[raw, &[0]].concat(), 6)
    }
    for (what, zlib) in [("twice", cut as Maker), ("short", short), ("long", long)] {
        let build = Build {
            compression: 8,
            strip: 16,
            zlib,
            ..Build::default()
        };
        let file = build.file(&image);
        assert!(!same_verdict(gpu, &file, what), "{what}");
    }
    let padded = Build {
        compression: 8,
        strip: 20,
        padded: true,
        ..Build::default()
    };
    assert!(on_gpu(gpu, &padded.file(&image)).is_err());
}

#[test]
fn damaged_strips() {
    let Some(gpu) = gpu(800) else { return };
    let (mut numbers, image) = (Numbers::new(31), scene(201, 190));
    let (mut accepted, mut refused) = (0, 0);
    for (name, zlib) in MAKERS {
        for layout in layouts() {
            let build = Build {
                compression: 8,
                zlib,
                predictor: true,
                ..layout
            };
            let file = build.file(&image);
            for variant in 0..16usize {
                let mut damaged = file.clone();
                for _ in 0..=variant % 3 {
                    // After the header, where the chunks lie; the directory follows them.
                    let place = match variant % 4 {
                        0 => 8 + numbers.next() as usize % 40,
                        _ => 8 + numbers.next() as usize % (file.len() - 8),
                    };
                    damaged[place] ^= 1 << (numbers.next() % 8);
                }
                match same_verdict(gpu, &damaged, &format!("{name}, variant {variant}")) {
                    true => accepted += 1,
                    false => refused += 1,
                }
            }
        }
    }
    assert!(refused > 400, "{accepted} accepted, {refused} refused");
}

/// A flipped bit changes one code, and with it all later ones of its segment, or where the segments begin.
#[test]
fn damaged_lzw_strips() {
    let cases = layouts().len() * 64;
    let Some(gpu) = gpu(cases) else { return };
    let (mut numbers, image) = (Numbers::new(37), scene(201, 190));
    let mut refused = 0;
    for layout in layouts() {
        let build = Build {
            compression: LZW,
            predictor: true,
            ..layout
        };
        let file = build.file(&image);
        for variant in 0..64 {
            let mut damaged = file.clone();
            for _ in 0..=variant % 3 {
                let place = 8 + numbers.next() as usize % (file.len() - 8);
                damaged[place] ^= 1 << (numbers.next() % 8);
            }
            let what = format!("{:?}, variant {variant}", build.tile);
            refused += usize::from(!same_verdict(gpu, &damaged, &what));
        }
    }
    assert!(refused > cases / 4, "{refused} of {cases} refused");
}

/// Each string of thousands of bytes repeats the one before, and each strip of noise has many Clear codes.
#[test]
fn long_strings_and_many_segments_of_lzw() {
    let Some(gpu) = gpu(6) else { return };
    for (width, height) in [(2048, 1500), (777, 2000)] {
        for kind in [Kind::Flat, Kind::Noise, Kind::Narrow] {
            let image = image(width, height, 1, Depth::Sixteen, kind);
            let build = Build {
                compression: LZW,
                strip: 160,
                ..Build::default()
            };
            compare(
                gpu,
                &build.file(&image),
                &format!("{width}×{height} {kind:?}"),
            );
        }
    }
}

/// The kernels counted the output of a stream in 32 bits: one of 2 MB without a Clear code gives more than 4 GB, and its positions
/// wrapped round.
#[test]
fn a_long_lzw_stream_wrapped_round() {
    let width = 1024;
    for (height, is_left) in [(300, false), (1500, true)] {
        let image = image(width, height, 1, Depth::Sixteen, Kind::Noise);
        let build = Build {
            compression: LZW,
            ..Build::default()
        };
        let source = Source::memory(build.file(&image));
        let reader = Reader::open(&source, &Reading::default()).expect("a TIFF");
        let refused = reader.packed().err().map(|why| why.to_string());
        let expected = is_left.then(|| "an LZW strip or tile exceeds 1 MiB".to_string());
        assert_eq!(refused, expected, "{width}×{height}");
    }
}

/// From file to file, with every page of a stack, the bytes of the CPU.
#[test]
fn stacks_of_compressed_strips_give_the_bytes_of_the_cpu() {
    let Some(_) = gpu(12) else { return };
    let (on_gpu, on_cpu) = (started(), Devices::new(Choice::Cpu));
    let pages: Vec<Image> = (0..3).map(|page| scene(1200 + page, 1000)).collect();
    let tiles = Build {
        compression: 8,
        predictor: true,
        tile: Some((256, 256)),
        ..Build::default()
    };
    let root = folder(&[
        ("plain.tif", &stack(&pages, &Metadata::default())),
        ("tiles.tif", &tiles.file(&pages[1])),
    ]);
    let args = [
        "flip",
        "vertical",
        "plain.tif",
        "stack.tif",
        "--tiff",
        "deflate",
    ];
    let made = run(root.path(), &args, &[]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let args = ["convert", "plain.tif", "lzw.tif", "--tiff", "lzw"];
    let made = run(root.path(), &args, &[]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let ops: [&dyn Operation; 3] = [
        &Normalize::default(),
        &Symmetry::Rotate90,
        &Symmetry::FlipHorizontal,
    ];
    for name in ["stack.tif", "tiles.tif", "lzw.tif"] {
        for op in ops {
            let what = format!("{}, {name}", op.properties().name);
            let outputs = ["gpu.tif", "cpu.tif"].map(|name| root.path().join(name));
            let input = root.path().join(name);
            let done = processed(op, &input, &outputs[0], &on_gpu).expect(&what);
            assert!(
                done.device.contains("was decoded"),
                "{what}: {:?}",
                done.notes
            );
            let expected = processed(op, &input, &outputs[1], &on_cpu).expect(&what);
            assert_eq!(done.warnings, expected.warnings, "{what}");
            assert_eq!(done.results.pages, expected.results.pages, "{what}");
            let [found, expected] = outputs.map(|path| fs::read(path).unwrap());
            assert!(found == expected, "{what}");
        }
    }
}
