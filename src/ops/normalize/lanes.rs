//! The passes of `normalize` on the CPU, for vector instructions: samples are taken by lanes, so that
//! one loop serves every channel count. The compiler makes the vectors, for each kind of processor.

use super::range::Ranges;
use super::scale::Scale;
use crate::device::cpu::{self, LANES, Sample};
use crate::image::Shape;

/// Minimum and maximum of each lane: of the samples whose index leaves the same remainder.
pub(in crate::ops) type MinMaxLanes = ([u16; LANES], [u16; LANES]);

/// The range of no sample at all.
pub(in crate::ops) const NO_RANGE: MinMaxLanes = ([u16::MAX; LANES], [0; LANES]);

/// The range of two sets of samples together.
pub(in crate::ops) fn fold_ranges(mut a: MinMaxLanes, b: MinMaxLanes) -> MinMaxLanes {
    for lane in 0..LANES {
        a.0[lane] = a.0[lane].min(b.0[lane]);
        a.1[lane] = a.1[lane].max(b.1[lane]);
    }
    a
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
pub(in crate::ops) fn min_max_chunk<T: Sample>(samples: &[T]) -> MinMaxLanes {
    let mut min = [T::FULL; LANES];
    let mut max = [T::ZERO; LANES];
    let (blocks, rest) = samples.as_chunks::<LANES>();
    for (lane, &value) in rest.iter().enumerate() {
        min[lane] = value;
        max[lane] = value;
    }
    for block in blocks {
        for lane in 0..LANES {
            min[lane] = min[lane].min(block[lane]);
            max[lane] = max[lane].max(block[lane]);
        }
    }
    (min.map(Sample::value), max.map(Sample::value))
}

/// The constants of each lane's scale, laid out for vector instructions.
pub(super) struct ScaleLanes {
    min: [u16; LANES],
    max: [u16; LANES],
    d: [u32; LANES],
    half: [u32; LANES],
    span: [u32; LANES],
    lo: [u32; LANES],
    factor: [f32; LANES],
    uniform: bool,
}

impl ScaleLanes {
    pub(super) fn new(scales: &[Scale]) -> ScaleLanes {
        let lane = |lane: usize| scales[lane % scales.len()];
        let lanes = std::array::from_fn::<Scale, LANES, _>(lane);
        let d = lanes.map(|scale| u32::from(scale.max - scale.min));
        let span = lanes.map(|scale| u32::from(scale.hi - scale.lo));
        ScaleLanes {
            min: lanes.map(|scale| scale.min),
            max: lanes.map(|scale| scale.max),
            d,
            half: d.map(|d| d / 2),
            span,
            lo: lanes.map(|scale| scale.lo.into()),
            factor: std::array::from_fn(|lane| {
                (f64::from(span[lane]) / f64::from(d[lane]) * (1.0 - 1.0 / (1 << 20) as f64)) as f32
            }),
            uniform: scales.iter().all(|scale| *scale == scales[0]),
        }
    }

    /// `Scale::exact` without a division: an estimate in f32 that is right or one too small, then
    /// the integer remainder says which. The factor is 2⁻²⁰ too small, more than the three
    /// roundings of 2⁻²⁴ can make up for and, at 65535, less than 1/8 of a step; adding 2²³ rounds
    /// to the nearest integer and leaves it in the low bits of the float.
    #[inline(always)]
    fn apply<T: Sample>(&self, value: T, lane: usize) -> T {
        const SHIFT: f32 = (1 << 23) as f32;
        let clamped = value.value().clamp(self.min[lane], self.max[lane]);
        let x = u32::from(clamped - self.min[lane]);
        let estimate = (x as i32 as f32 * self.factor[lane] + SHIFT)
            .to_bits()
            .wrapping_sub(SHIFT.to_bits());
        let numerator = x
            .wrapping_mul(self.span[lane])
            .wrapping_add(self.half[lane]);
        let remainder = numerator.wrapping_sub(estimate.wrapping_mul(self.d[lane]));
        T::from_value((self.lo[lane] + estimate + u32::from(remainder >= self.d[lane])) as u16)
    }
}

pub(super) fn scale_all<T: Sample>(samples: &mut [T], lanes: &ScaleLanes) {
    cpu::for_each_chunk(samples, |chunk| {
        if lanes.uniform {
            scale_uniform(chunk, lanes)
        } else {
            scale_chunk(chunk, lanes)
        }
    });
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512dq", "x86_64+avx2"))]
fn scale_uniform<T: Sample>(samples: &mut [T], lanes: &ScaleLanes) {
    for value in samples {
        *value = lanes.apply(*value, 0);
    }
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512dq", "x86_64+avx2"))]
fn scale_chunk<T: Sample>(samples: &mut [T], lanes: &ScaleLanes) {
    for block in samples.chunks_mut(LANES) {
        for (lane, value) in block.iter_mut().enumerate() {
            *value = lanes.apply(*value, lane);
        }
    }
}

/// The ranges of the colours in those of the lanes: one for all, or one for each.
pub(super) fn fold_lanes(lanes: &MinMaxLanes, shape: &Shape, per_channel: bool) -> Ranges {
    let mut ranges = vec![(u16::MAX, 0); if per_channel { shape.colours() } else { 1 }];
    for lane in 0..LANES {
        let channel = lane % shape.channels;
        if channel < shape.colours() {
            let range = &mut ranges[if per_channel { channel } else { 0 }];
            *range = (range.0.min(lanes.0[lane]), range.1.max(lanes.1[lane]));
        }
    }
    ranges
}
