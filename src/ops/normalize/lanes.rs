//! Scales samples on the CPU with vector instructions. Samples are grouped into lanes, so that one
//! loop works for every number of channels. The compiler generates vector code for each SIMD level.

use super::scale::Scale;
use crate::image::buffer::Buffer;
use crate::image::simd::per_level;
use crate::ops::cpu::{self, CHUNK, LANES, Sample};
use anyhow::Result;
use std::array;

/// The constants of each lane's scale, laid out for vector instructions.
pub(super) struct ScaleLanes {
    min: [u16; LANES],
    max: [u16; LANES],
    lo: [u16; LANES],
    whole: [u16; LANES],
    fraction: [[u32; LANES]; 2],
    half: [[u32; LANES]; 2],
    uniform: bool,
}

/// The constants of a scale that depend on d = max − min and span = hi − lo.
struct Constants {
    /// The integer part of span / d.
    whole: u16,
    /// The fraction of span / d, times 2³² and rounded up: its upper and its lower 16 bits.
    fraction: [u32; 2],
    /// What rounds to the nearest integer, floor(d / 2) / d, in the same form.
    half: [u32; 2],
}

impl Constants {
    fn new(scale: &Scale) -> Constants {
        let d = u64::from(scale.max - scale.min);
        let span = u64::from(scale.hi - scale.lo);
        let fixed_point = |numerator: u64| {
            let word = (numerator << 32).div_ceil(d) as u32;
            [word >> 16, word & 0xffff]
        };
        Constants {
            whole: (span / d) as u16,
            fraction: fixed_point(span % d),
            half: fixed_point(d / 2),
        }
    }
}

impl ScaleLanes {
    pub(super) fn new(scales: &[Scale]) -> ScaleLanes {
        let constants: Vec<Constants> = scales.iter().map(Constants::new).collect();
        let scale = |lane: usize| scales[lane % scales.len()];
        let constants = |lane: usize| &constants[lane % scales.len()];
        ScaleLanes {
            min: array::from_fn(|lane| scale(lane).min),
            max: array::from_fn(|lane| scale(lane).max),
            lo: array::from_fn(|lane| scale(lane).lo),
            whole: array::from_fn(|lane| constants(lane).whole),
            fraction: [0, 1].map(|part| array::from_fn(|lane| constants(lane).fraction[part])),
            half: [0, 1].map(|part| array::from_fn(|lane| constants(lane).half[part])),
            uniform: scales.iter().all(|scale| *scale == scales[0]),
        }
    }

    /// `Scale::exact` without a division: x · span / d is x · `whole` and the upper half of x · `fraction` + `half`. Both constants are
    /// at most 2⁻³² too large, so that the sum is at most (x + 1) · 2⁻³² too large. This is less than 1 / d, since x and d are below
    /// 2¹⁶: no integer is passed. The product has 48 bits and is added up from two of 32, which cannot overflow: 65535² + 2 · 65535
    /// is 2³² − 1.
    #[inline(always)]
    fn apply<T: Sample>(&self, value: T, lane: usize) -> T {
        let x = value.value().clamp(self.min[lane], self.max[lane]) - self.min[lane];
        let ([upper, lower], [half_upper, half_lower]) = (&self.fraction, &self.half);
        let wide = u32::from(x);
        let low = (wide * lower[lane] + half_lower[lane]) >> 16;
        let high = (wide * upper[lane] + half_upper[lane] + low) >> 16;
        T::from_value(self.lo[lane] + x * self.whole[lane] + high as u16)
    }
}

pub(super) fn scale_all<T: Sample>(samples: &mut Buffer<T>, lanes: &ScaleLanes) -> Result<()> {
    let in_place = |_: usize, chunk: &mut [T]| {
        if lanes.uniform {
            scale_uniform(chunk, lanes)
        } else {
            scale_chunk(chunk, lanes)
        }
    };
    let into = |_: usize, from: &[T], to: &mut [T]| {
        if lanes.uniform {
            scale_uniform_into(from, to, lanes)
        } else {
            scale_chunk_into(from, to, lanes)
        }
    };
    cpu::change_chunks(CHUNK, samples, in_place, into)
}

per_level! {
    highest Avx512;

    fn scale_uniform[T: Sample](samples: &mut [T], lanes: &ScaleLanes) {
        for value in samples {
            *value = lanes.apply(*value, 0);
        }
    }
}

per_level! {
    highest Avx512;

    fn scale_chunk[T: Sample](samples: &mut [T], lanes: &ScaleLanes) {
        for block in samples.chunks_mut(LANES) {
            for (lane, value) in block.iter_mut().enumerate() {
                *value = lanes.apply(*value, lane);
            }
        }
    }
}

// A third faster than a copy and then a change in place.
per_level! {
    highest Avx512;

    fn scale_uniform_into[T: Sample](from: &[T], to: &mut [T], lanes: &ScaleLanes) {
        for (value, scaled) in from.iter().zip(to) {
            *scaled = lanes.apply(*value, 0);
        }
    }
}

per_level! {
    highest Avx512;

    fn scale_chunk_into[T: Sample](from: &[T], to: &mut [T], lanes: &ScaleLanes) {
        for (block, scaled) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
            for (lane, (value, scaled)) in block.iter().zip(scaled).enumerate() {
                *scaled = lanes.apply(*value, lane);
            }
        }
    }
}
