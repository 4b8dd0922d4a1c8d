//! The scale of `normalize` for samples of 32 bits, whose results have 16 or 8.
//!
//! The definition is that of fewer bits, in exact arithmetic: `lo + floor((clamp(p, min, max) −
//! min)·(hi − lo) / (max − min) + 1/2)`. The result is the largest k of lo..=hi for which
//! (2(k − lo) − 1)·(max − min) ≤ 2(hi − lo)·(p − min), a comparison of whole numbers of 2⁻¹⁴⁹.
//!
//! **Integers.** n = x·(hi − lo) + ⌊d/2⌋ < 2⁴⁹ is exact in f64. ⌊n·(1/d)⌋ is off by one at most, since n/d
//! < 2¹⁷ is computed with an error of less than 2⁻³⁴, and the remainder, exact too, puts it right.
//!
//! **Floating point.** y = (p − min)·f + 1/2 with f = (hi − lo)/(max − min), all in f64, has four rounding
//! errors of 2⁻⁵³ in a product of less than 2¹⁶, and one of 2⁻³⁸ in the sum: it lies within 2⁻³⁴ of the
//! exact value. Where no whole number is within 2⁻³³ of y, ⌊y⌋ is the result; elsewhere (ties, above
//! all) the comparison above decides between the two candidates.

use super::extremes::is_flat;
use super::{Fixed, LANES, is_nonfinite};
use crate::gpu::launch::wide_stretch::Scaling;
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples, Shape, Values, number};
use crate::ops::MinMax;
use crate::ops::cpu::{CHUNK, Sample};
use crate::ops::quotient::sample;
use crate::ops::samples_from;
use anyhow::{Result, bail};
use rayon::prelude::*;

/// How near to a whole number y must be for the exact comparison to decide: 2⁻³³.
const NEAR: f64 = 1.0 / (1u64 << 33) as f64;

/// The scale of one channel: from `min`…`max`, samples in memory of different values, to `lo`…`hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The sample that becomes `lo`.
    pub min: u32,
    /// The sample that becomes `hi`.
    pub max: u32,
    /// The least result.
    pub lo: u16,
    /// The greatest.
    pub hi: u16,
}

impl Scale {
    /// The scale of a channel of colour to `lo`…`hi` of this depth. A flat one keeps its value,
    /// rounded, as far as the depth has it.
    pub fn for_colour(values: Values, range: MinMax<u32>, target: MinMax<u16>, to: Depth) -> Scale {
        if is_flat(values, range.map(u64::from)) {
            Scale::keeping(values, to)
        } else {
            Scale {
                min: range.min,
                max: range.max,
                lo: target.min,
                hi: target.max,
            }
        }
    }

    /// The scale that keeps values and rounds them: 0…255 or 0…65535 to itself.
    fn keeping(values: Values, to: Depth) -> Scale {
        let (zero, full) = (number::TOP, to.full());
        let (min, max) = match (values.depth, values.signed) {
            (Depth::Float, _) => (zero, number::key(f32::from(full).to_bits())),
            (_, true) => (zero, zero + u32::from(full)),
            (_, false) => (0, full.into()),
        };
        let (lo, hi) = (0, full);
        Scale { min, max, lo, hi }
    }

    /// The scale of alpha: 0…1 of floating point, or all values of integers, to all of the depth.
    pub fn for_alpha(values: Values, to: Depth) -> Scale {
        let (min, max) = match values.depth {
            Depth::Float => (number::TOP, number::key(1f32.to_bits())),
            _ => (0, u32::MAX),
        };
        let (lo, hi) = (0, to.full());
        Scale { min, max, lo, hi }
    }

    /// The value of `min` and the difference to that of `max`, both as doubles; of integers, where only
    /// the difference counts, it stands for both.
    fn ends(&self, depth: Depth) -> (f64, f64) {
        match depth {
            Depth::Float => (value(self.min), value(self.max) - value(self.min)),
            _ => (
                f64::from(self.max - self.min),
                f64::from(self.max - self.min),
            ),
        }
    }

    /// For the kernel, for samples of this depth.
    pub(crate) fn packed(&self, depth: Depth) -> Scaling {
        let (least, d) = self.ends(depth);
        let span = f64::from(self.hi - self.lo);
        let factor = match depth {
            Depth::Float => span / d,
            _ => 1.0 / d,
        };
        Scaling {
            least,
            factor,
            span,
            min: self.min,
            max: self.max,
            lo: self.lo.into(),
            hi: self.hi.into(),
        }
    }

    /// The definition, for a sample that is a finite number.
    pub fn exact(&self, depth: Depth, sample: u32) -> u16 {
        let (mut k, mut above) = (self.lo, u32::from(self.hi) + 1);
        // The result is in k..above.
        while u32::from(k) + 1 < above {
            let middle = ((u32::from(k) + above) / 2) as u16;
            if self.reaches(depth, sample, middle) {
                k = middle
            } else {
                above = middle.into()
            }
        }
        k
    }

    /// Whether the result of a sample is `k` or more, for k above `lo`.
    fn reaches(&self, depth: Depth, sample: u32, k: u16) -> bool {
        let fixed = |sample: u32| match depth {
            Depth::Float => Fixed::from_key(sample),
            _ => Fixed::from_parts(sample.into(), 149),
        };
        let clamped = sample.clamp(self.min, self.max);
        let (x, d) = (
            fixed(clamped).minus(fixed(self.min)),
            fixed(self.max).minus(fixed(self.min)),
        );
        let (steps, span) = (u64::from(k - self.lo), u64::from(self.hi - self.lo));
        d.times(2 * steps - 1) <= x.times(2 * span)
    }
}

/// Scales the samples of an image by the definition. `nan` replaces samples that are not finite.
pub fn naive(from: &[u32], shape: Shape, to: Depth, scales: &[Scale], nan: u32) -> Image {
    let scaled = from.iter().enumerate().map(|(i, &sample)| {
        let sample = if is_nonfinite(shape.depth, sample) {
            nan
        } else {
            sample
        };
        scales[i % scales.len()].exact(shape.depth, sample)
    });
    let samples = samples_from(to, scaled.map(u64::from));
    Image::new(Shape { depth: to, ..shape }, samples)
}

/// The same on all cores.
///
/// # Errors
/// No memory for the result.
pub fn cpu(from: &[u32], shape: Shape, to: Depth, scales: &[Scale], nan: u32) -> Result<Image> {
    let shape_to = Shape { depth: to, ..shape };
    let mut samples = Samples::any(&shape_to)?;
    let lanes = Lanes::new(shape.depth, scales, nan);
    match &mut samples {
        Samples::U8(to) => lanes.all(from, to),
        Samples::U16(to) => lanes.all(from, to),
        Samples::U32(_) | Samples::U64(_) => bail!("normalize writes only 8- and 16-bit samples"),
    }
    Ok(Image::new(shape_to, samples))
}

/// The constants of each lane, laid out for vector instructions.
struct Lanes {
    depth: Depth,
    /// Replaces samples that are not finite.
    nan: u32,
    scales: [Scale; LANES],
    /// The values of `min` and `max`; of integers, 0 and d.
    least: [f64; LANES],
    most: [f64; LANES],
    /// (hi − lo)/d; of integers, 1/d.
    factor: [f64; LANES],
    span: [f64; LANES],
    lo: [f64; LANES],
}

impl Lanes {
    fn new(depth: Depth, scales: &[Scale], nan: u32) -> Lanes {
        let scales: [Scale; LANES] = std::array::from_fn(|lane| scales[lane % scales.len()]);
        let ends = scales.map(|scale| match depth {
            Depth::Float => (value(scale.min), value(scale.max)),
            _ => (0.0, f64::from(scale.max - scale.min)),
        });
        let span = scales.map(|scale| f64::from(scale.hi - scale.lo));
        Lanes {
            depth,
            nan,
            scales,
            least: ends.map(|(least, _)| least),
            most: ends.map(|(_, most)| most),
            factor: std::array::from_fn(|lane| {
                let (least, most) = ends[lane];
                match depth {
                    Depth::Float => span[lane] / (most - least),
                    _ => 1.0 / most,
                }
            }),
            span,
            lo: scales.map(|scale| scale.lo.into()),
        }
    }

    fn all<T: Sample>(&self, from: &[u32], to: &mut [T]) {
        let chunks = to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK));
        chunks.for_each(|(to, from)| match self.depth {
            Depth::Float => scale_reals(self, from, to),
            _ => scale_integers(self, from, to),
        });
    }

    /// The results of up to `LANES` floating-point samples, where need be by the exact comparison.
    #[cold]
    fn decide<T: Sample>(&self, from: &[u32], to: &mut [T]) {
        for (lane, (&key, to)) in from.iter().zip(to).enumerate() {
            *to = self.decided(key, lane);
        }
    }

    /// The result of one.
    fn decided<T: Sample>(&self, key: u32, lane: usize) -> T {
        let key = if is_nonfinite(self.depth, key) {
            self.nan
        } else {
            key
        };
        let scale = &self.scales[lane];
        let y = self.lifted(value(key), lane);
        let whole = y.floor();
        if (y - whole - 0.5).abs() < 0.5 - NEAR {
            return sample(whole + self.lo[lane]);
        }
        // The exact value is within NEAR of y, so that the result is one of two.
        let low = ((y - NEAR).floor() + self.lo[lane]) as u16;
        let reached = low < scale.hi && scale.reaches(self.depth, key, low + 1);
        T::from_value(low + u16::from(reached))
    }

    /// y of a value.
    #[inline(always)]
    fn lifted(&self, value: f64, lane: usize) -> f64 {
        let (least, most) = (self.least[lane], self.most[lane]);
        // Comparisons, since `max` and `min` would look for NaN too.
        let raised = if value < least { least } else { value };
        let clamped = if raised > most { most } else { raised };
        (clamped - self.least[lane]) * self.factor[lane] + 0.5
    }
}

#[inline(always)]
fn value(key: u32) -> f64 {
    number::from_key(key).into()
}

per_level! {
    highest Avx512;

    fn scale_reals[T: Sample](lanes: &Lanes, from: &[u32], to: &mut [T]) {
        let (least, most) = (*number::FINITE.start(), *number::FINITE.end());
        let (from, rest) = from.as_chunks::<LANES>();
        let (to, rest_of_to) = to.as_chunks_mut::<LANES>();
        for (from, to) in from.iter().zip(to) {
            let (mut out, mut far) = ([T::ZERO; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let key = from[lane];
                let nonfinite = key.wrapping_sub(least) > most - least;
                let y = lanes.lifted(value(if nonfinite { lanes.nan } else { key }), lane);
                let whole = y.floor();
                far[lane] = (y - whole - 0.5).abs();
                out[lane] = sample(whole + lanes.lo[lane]);
            }
            *to = out;
            // A flag of each lane: the largest of them would have vectors wait for one another.
            if far.iter().fold(false, |near, &it| near | (it >= 0.5 - NEAR)) {
                lanes.decide(from, to);
            }
        }
        lanes.decide(rest, rest_of_to);
    }
}

per_level! {
    highest Avx512;

    fn scale_integers[T: Sample](lanes: &Lanes, from: &[u32], to: &mut [T]) {
        const TOP: f64 = number::TOP as f64;
        for (from, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
            for (lane, (&value, to)) in from.iter().zip(to.iter_mut()).enumerate() {
                let scale = &lanes.scales[lane];
                let x = value.max(scale.min).min(scale.max) - scale.min;
                // Vectors convert integers with a sign only.
                let x = f64::from((x ^ number::TOP) as i32) + TOP;
                let d = lanes.most[lane];
                let n = x * lanes.span[lane] + (d * 0.5).floor();
                let estimate = (n * lanes.factor[lane]).floor();
                let rest = n - estimate * d;
                let more = if rest >= d { 1.0 } else { 0.0 };
                let less = if rest < 0.0 { 1.0 } else { 0.0 };
                *to = sample(estimate + more - less + lanes.lo[lane]);
            }
        }
    }
}
