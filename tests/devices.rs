//! One definition, two devices: naive → rayon → CUDA give the same result for every operation,
//! size, channel count, depth and kind of content.

use crate::support::{KINDS, Kind, SIZES, gpu, image};
use gpuimg::internals::engine::executor;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::exact::Exact;
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
