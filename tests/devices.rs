//! One definition, two devices: naive → rayon → CUDA give the same result for every operation,
//! size, channel count, depth and kind of content.

use crate::support::formats::{format, written};
use crate::support::{KINDS, Kind, SIZES, folder, gpu, image, run};
use gpuimg::internals::engine::executor;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::debayer::{Debayer, Method, Pattern};
use gpuimg::internals::ops::exact::Exact;
use gpuimg::internals::ops::lut::{Lut, Palette};
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::sum::{Sum, Total};
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::ops::{self, MinMax, OpResult, Operation, naive};
use gpuimg::internals::timing::Timeline;

fn every_image(mut visit: impl FnMut(&Image, &str)) {
    for (width, height) in SIZES {
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                for kind in KINDS {
                    let image = image(width, height, channels, depth, kind);
                    visit(&image, &format!("{kind:?} {}", image.shape()));
                }
            }
        }
    }
}

/// 13 sizes × 4 channel counts × 2 depths × 4 kinds.
const IMAGES: usize = 13 * 4 * 2 * 4;

/// The number of examples: 7 of normalize, 7 symmetries, histogram, 2 of sum, and of whatever
/// operation is added.
fn examples() -> usize {
    let (every, examples) = (ops::OPS.len(), ops::examples().len());
    assert!(examples >= 17 && examples >= every, "{every}, {examples}");
    examples
}

/// Every kernel in every form, on images small enough to run under a checker of memory accesses
/// and races.
#[test]
fn every_kernel_on_small_images() {
    let sizes = [(1, 1), (7, 1), (1, 7), (67, 66), (129, 5)];
    let Some(gpu) = gpu(sizes.len() * 4 * 2 * examples()) else {
        return;
    };
    for op in ops::examples() {
        for (width, height) in sizes {
            for channels in 1..=4 {
                for depth in [Depth::Eight, Depth::Sixteen] {
                    let image = image(width, height, channels, depth, Kind::Noise);
                    let mut timeline = Timeline::default();
                    let found =
                        executor::on_gpu(&*op, image.clone(), gpu, &mut timeline).expect("CUDA");
                    assert!(
                        found == naive(&*op, &image).expect("valid"),
                        "{} of {}",
                        op.properties().name,
                        image.shape()
                    );
                }
            }
        }
    }
}

/// The operations that are not among the examples, because they need grey images or because their definition is slow: a GPU gives
/// what the CPU gives, and on small images what the definition says.
#[test]
fn curves_colours_and_mosaics_on_a_gpu() {
    let sizes = [
        (2, 2),
        (3, 2),
        (2, 5),
        (66, 17),
        (65, 33),
        (129, 66),
        (1001, 263),
    ];
    // 5 operations on 1 to 4 channels, and 11 on grey.
    let expected = sizes.len() * 2 * KINDS.len() * (4 * 5 + 11);
    let Some(gpu) = gpu(expected) else { return };
    let normalize = |curve: Option<&str>, range: Option<&str>, per_channel| Normalize {
        curve: curve.map(|curve| curve.parse().expect("a curve")),
        range: range.map(|range| range.parse().expect("a range")),
        per_channel,
        ..Normalize::default()
    };
    let mut operations: Vec<Box<dyn Operation>> = vec![
        Box::new(normalize(Some("gamma:2.2"), None, false)),
        Box::new(normalize(Some("asinh:0.1"), None, true)),
        Box::new(normalize(Some("log"), Some("20:200"), false)),
        Box::new(normalize(None, Some("zscale"), false)),
        Box::new(normalize(None, Some("stf"), false)),
    ];
    for palette in [Palette::Gray, Palette::Viridis, Palette::Fire] {
        operations.push(Box::new(Lut { palette }));
    }
    for method in [Method::Bilinear, Method::Malvar] {
        for pattern in [Pattern::Rggb, Pattern::Bggr, Pattern::Grbg, Pattern::Gbrg] {
            operations.push(Box::new(Debayer { pattern, method }));
        }
    }
    let mut cases = 0;
    for (width, height) in sizes {
        for (channels, depth, kind) in (1..=4).flat_map(|channels| {
            let depths = [Depth::Eight, Depth::Sixteen].into_iter();
            depths.flat_map(move |depth| KINDS.map(|kind| (channels, depth, kind)))
        }) {
            let image = image(width, height, channels, depth, kind);
            for op in &operations {
                if ops::check(&**op, &image.shape()).is_err() {
                    continue;
                }
                let what = format!("{op:?} of {kind:?} {}", image.shape());
                let mut timeline = Timeline::default();
                let found =
                    executor::on_gpu(&**op, image.clone(), gpu, &mut timeline).expect("GPU");
                let on_cpu = executor::on_cpu(&**op, image.clone(), &mut timeline).expect("CPU");
                assert!(found == on_cpu, "{what}");
                if image.shape().samples() < 40 {
                    assert!(found == naive(&**op, &image).expect("valid"), "{what}");
                }
                cases += 1;
            }
        }
    }
    assert_eq!(cases, expected);
}

/// The same from file to file: results that are larger than their input, chains, and samples of 32 bits.
#[test]
fn files_with_curves_and_colours_on_a_gpu() {
    let Some(_) = gpu(40) else { return };
    let root = folder(&[]);
    for (name, depth, channels) in [
        ("u8.png", Depth::Eight, 1),
        ("u16.png", Depth::Sixteen, 1),
        ("u16.tif", Depth::Sixteen, 1),
        ("rgb.tif", Depth::Sixteen, 3),
        ("f32.tif", Depth::Float, 1),
    ] {
        let image = image(1031, 517, channels, depth, Kind::Narrow);
        let id = if name.ends_with("png") { "png" } else { "tiff" };
        let file = written(format(id), &[image], &Metadata::default()).expect("a file");
        std::fs::write(root.path().join(name), file).expect("a file");
    }
    let mut cases = 0;
    for (kinds, line) in [
        ("u8 u16", "lut viridis IN OUT"),
        ("u8 u16", "lut fire IN OUT --depth 16"),
        ("u8 u16", "debayer RGGB IN OUT"),
        ("u8 u16", "debayer GBRG IN OUT --method malvar --depth 8"),
        ("u8 u16 rgb f32", "normalize IN OUT --curve asinh"),
        (
            "u8 u16 rgb f32",
            "normalize IN OUT --curve gamma:2 --depth 8",
        ),
        ("u8 u16 rgb", "normalize IN OUT --range zscale"),
        ("u8 u16 rgb", "normalize IN OUT --range stf"),
        ("u8 u16 f32", "run normalize_+_lut_ironbow IN OUT"),
        (
            "u8 u16",
            "run normalize_--curve_log_+_lut_magma_+_rotate_90 IN OUT",
        ),
        (
            "u8 u16",
            "run debayer_BGGR_+_normalize_+_crop_3,5,500x311 IN OUT",
        ),
    ] {
        for input in ["u8.png", "u16.png", "u16.tif", "rgb.tif", "f32.tif"] {
            if !kinds
                .split(' ')
                .any(|kind| input.split('.').next() == Some(kind))
            {
                continue;
            }
            let written = ["cpu", "gpu"].map(|device| {
                let line = format!("{line} --device {device} --overwrite");
                let words = line.split(' ').map(|word| match word {
                    "IN" => input.into(),
                    "OUT" => "out.tif".into(),
                    word => word.replace('_', " "),
                });
                let words: Vec<String> = words.collect();
                let done = run(
                    root.path(),
                    &words.iter().map(|word| &**word).collect::<Vec<_>>(),
                    &[],
                );
                assert_eq!(done.code, 0, "{input}, {line}: {}", done.stderr);
                std::fs::read(root.path().join("out.tif")).expect("a file")
            });
            assert!(written[0] == written[1], "{input}, {line}");
            cases += 1;
        }
    }
    assert_eq!(cases, 4 * 3 + 2 * 5 + 2 * 4 + 4 + 2 * 3);
}

/// More than 2³¹ samples: indices of 32 bits would fail here. Both devices against what can be
/// known about the image beforehand, and against each other.
#[test]
#[ignore = "takes 14 GiB of memory"]
fn past_two_to_the_31_samples() {
    // Rows of an odd length; sample i is i mod 65521, except for one 65535 at the very end.
    let shape = Shape {
        width: 65_537,
        height: 33_001,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let count = shape.samples() as u64;
    assert!(count > 1 << 31);
    let mut samples = Samples::zeroed(&shape).expect("memory");
    let Samples::U16(values) = &mut samples else {
        panic!("16 bits")
    };
    values
        .iter_mut()
        .enumerate()
        .for_each(|(i, value)| *value = (i % 65_521) as u16);
    values[count as usize - 1] = 65_535;
    let image = Image::new(shape, samples);

    let ramp = |n: u64| n * n.saturating_sub(1) / 2;
    let whole = (count - 1) / 65_521;
    let sum = whole * ramp(65_521) + ramp((count - 1) % 65_521) + 65_535;
    let sum_all = Sum {
        all: true,
        nan: None,
    };
    let found = executor::on_cpu(&sum_all, image.clone(), &mut Timeline::default()).expect("CPU");
    let OpResult::Totals(totals) = &found.result else {
        panic!("totals")
    };
    assert_eq!(
        totals.channels[0],
        Total {
            sum: Exact::Whole(sum.into()),
            range: Some(MinMax {
                min: 0,
                max: 65_535
            })
        }
    );

    let gpu = gpu(3);
    let ops: [&dyn Operation; 3] = [&sum_all, &Normalize::default(), &Symmetry::Rotate90];
    for op in ops {
        let on_cpu = executor::on_cpu(op, image.clone(), &mut Timeline::default()).expect("CPU");
        if op.properties().name == "rotate" {
            let OpResult::Image(turned) = &on_cpu.result else {
                panic!("an image")
            };
            let Samples::U16(turned) = turned.samples() else {
                panic!("16 bits")
            };
            // The last sample comes to the left end of the last row.
            assert_eq!(turned[(shape.width - 1) * shape.height], 65_535);
        }
        if let Some(gpu) = gpu {
            let on_gpu =
                executor::on_gpu(op, image.clone(), gpu, &mut Timeline::default()).expect("GPU");
            assert!(on_cpu == on_gpu, "{} differs", op.properties().name);
        }
    }
}

#[test]
fn the_cpu_gives_what_the_definition_says() {
    let mut cases = 0;
    for op in ops::examples() {
        every_image(|image, what| {
            let expected = naive(&*op, image).expect("valid");
            let found =
                executor::on_cpu(&*op, image.clone(), &mut Timeline::default()).expect(what);
            assert!(
                found == expected,
                "{} differs on the CPU: {what}",
                op.properties().name
            );
            cases += 1;
        });
    }
    assert_eq!(cases, IMAGES * examples());
}

#[test]
fn the_gpu_gives_what_the_definition_says() {
    let Some(gpu) = gpu(IMAGES * examples()) else {
        return;
    };
    let mut cases = 0;
    for op in ops::examples() {
        every_image(|image, what| {
            let expected = naive(&*op, image).expect("valid");
            let mut timeline = Timeline::default();
            let found = executor::on_gpu(&*op, image.clone(), gpu, &mut timeline).expect(what);
            assert!(
                found == expected,
                "{} differs on the GPU: {what}",
                op.properties().name
            );
            cases += 1;
        });
    }
    assert_eq!(cases, IMAGES * examples());
}
