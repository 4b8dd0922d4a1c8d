//! Normalize is exact: against a formula of its own form, in wider integers, over the ranges.

use crate::support::gpu;
use gpuimg::internals::engine::executor;
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::OpResult;
use gpuimg::internals::ops::normalize::{Normalize, Range};
use gpuimg::internals::timing::Timeline;

/// floor(x·span/d + 1/2) = floor((2·x·span + d) / 2d)
fn rounded(x: u64, span: u64, d: u64) -> u64 {
    (2 * x * span + d) / (2 * d)
}

/// Scales 0..=65535 from the range 0..=d to `to`, on the GPU if there is one given; every value is
/// compared.
fn check(d: u16, to: Range, gpu: Option<&Gpu>) {
    let values: Vec<u16> = (0..=65535).collect();
    let shape = Shape {
        width: values.len(),
        height: 1,
        channels: 1,
        depth: Depth::Sixteen,
    };
    let op = Normalize {
        range: Some(Range::from_integers(0, d.into()).into()),
        to: Some(to),
        ..Normalize::default()
    };
    let image = Image::new(shape, values.into());
    let mut timeline = Timeline::default();
    let output = match gpu {
        Some(gpu) => executor::on_gpu(&op, image, gpu, &mut timeline),
        None => executor::on_cpu(&op, image, &mut timeline),
    };
    let OpResult::Image(image) = output.expect("normalized").result else {
        panic!("an image was expected")
    };
    let Samples::U16(found) = image.samples() else {
        panic!("16 bits were expected")
    };
    let (lo, hi) = (to.min.as_f64(), to.max.as_f64());
    for (x, &value) in found.iter().enumerate() {
        let x = (x as u64).min(d.into());
        let expected = lo as u64 + rounded(x, (hi - lo) as u64, d.into());
        assert_eq!(u64::from(value), expected, "{x} of 0..={d} to {to:?}");
    }
}

const ALL: Range = Range::from_integers(0, 65535);

#[test]
fn exact_for_one_range_in_97_and_all_small_ones() {
    for d in (1..600)
        .chain((600..=65535).step_by(97))
        .chain([65533, 65534, 65535])
    {
        check(d, ALL, None);
    }
}

#[test]
fn exact_for_other_output_ranges() {
    for to in [
        Range::from_integers(0, 255),
        Range::from_integers(1, 65534),
        Range::from_integers(30000, 30001),
    ] {
        for d in [1, 2, 3, 255, 256, 4095, 32767, 32768, 65535] {
            check(d, to, None);
        }
    }
}

#[test]
fn exact_on_the_gpu() {
    let ranges: Vec<u16> = (1..100)
        .chain((100..=65535).step_by(97))
        .chain([65533, 65534, 65535])
        .collect();
    let Some(gpu) = gpu(ranges.len() * 65536) else {
        return;
    };
    for d in ranges {
        check(d, ALL, Some(gpu));
        check(d, Range::from_integers(1, 65534), Some(gpu));
    }
}

/// All 2³¹ pairs of range and value: a minute or so. `cargo test --release -- --ignored`
#[test]
#[ignore = "takes a minute"]
fn exact_for_every_range() {
    for d in 1..=65535 {
        check(d, ALL, None);
    }
}
