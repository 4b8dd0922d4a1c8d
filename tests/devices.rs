//! One definition, two devices: naive → rayon → CUDA give the same result for every operation,
//! size, channel count, depth and kind of content.

use crate::support::{KINDS, SIZES, gpu, image};
use gpuimg::image::{Depth, Image};
use gpuimg::ops;
use gpuimg::stats::Timeline;

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
/// 5 forms of normalize, 7 symmetries, 2 of sum.
const OPS: usize = 14;

#[test]
fn the_cpu_gives_what_the_definition_says() {
    let mut cases = 0;
    for op in ops::examples() {
        every_image(|image, what| {
            let expected = op.naive(image);
            let found = op.cpu(image.clone(), &mut Timeline::default()).expect(what);
            assert!(
                found == expected,
                "{} differs on the CPU: {what}",
                op.name()
            );
            cases += 1;
        });
    }
    assert_eq!(cases, IMAGES * OPS);
}

#[test]
fn the_gpu_gives_what_the_definition_says() {
    let Some(gpu) = gpu(IMAGES * OPS) else { return };
    let mut cases = 0;
    for op in ops::examples() {
        every_image(|image, what| {
            let expected = op.naive(image);
            let mut timeline = Timeline::default();
            let found = op
                .cuda(image.clone(), &mut gpu.job(&mut timeline))
                .expect(what);
            assert!(
                found == expected,
                "{} differs on the GPU: {what}",
                op.name()
            );
            cases += 1;
        });
    }
    assert_eq!(cases, IMAGES * OPS);
}
