//! Samples of 64-bit floating point, on the CPU: the range, the scale of `normalize` and the sum, exact as
//! those of 32 bits are. A number is a whole number of steps of 2⁻¹⁰⁷⁴ (`Fixed64`).
//!
//! **The scale** is that of `scale`. y = (p − min)·f + 1/2 with f = (hi − lo)/(max − min) has the same
//! rounding errors there, of 2⁻⁵³ each, so that the same bound holds: where no whole number is within 2⁻³³
//! of y, ⌊y⌋ is the result, and elsewhere the exact comparison decides. So that nothing overflows or loses
//! bits below the least exponent, ranges at the limits of f64 are first multiplied by a power of two.

use super::LANES;
use super::fixed::{Fixed64, parts64};
use super::lanes::FiniteLanes;
use super::sum::Sums;
use crate::image::number::{FINITE64, from_key64};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::clip::Clip;
use crate::ops::cpu::{CHUNK, Sample};
use crate::ops::exact::Exact;
use crate::ops::min_max::{MinMax, MinMaxLanes};
use crate::ops::quotient::sample;
use crate::ops::samples_from;
use anyhow::{Context, Result, bail};
use rayon::prelude::*;

/// How near to a whole number y must be for the exact comparison to decide: 2⁻³³.
const NEAR: f64 = 1.0 / (1u64 << 33) as f64;

/// The 64-bit samples of an image.
///
/// # Errors
/// An image of fewer bits.
pub fn samples(image: &Image) -> Result<&[u64]> {
    match image.samples() {
        Samples::U64(samples) => Some(&samples[..]),
        _ => None,
    }
    .context("its samples are not of 64 bits")
}

/// Whether a sample is not a finite number.
#[inline(always)]
pub(super) fn is_nonfinite(key: u64) -> bool {
    !FINITE64.contains(&key)
}

/// The value of a sample, or `nan` if it is not finite.
#[inline(always)]
fn value(key: u64, nan: f64) -> f64 {
    let value = from_key64(key);
    if is_nonfinite(key) { nan } else { value }
}

per_level! {
    highest Avx512;

    pub(super) fn finite_lanes(chunk: &[u64]) -> FiniteLanes<u64> {
        let (mut min, mut max, mut nonfinite) = ([u64::MAX; LANES], [0; LANES], [0; LANES]);
        for block in chunk.chunks(LANES) {
            for (lane, &key) in block.iter().enumerate() {
                let none = is_nonfinite(key);
                min[lane] = min[lane].min(if none { u64::MAX } else { key });
                max[lane] = max[lane].max(if none { 0 } else { key });
                nonfinite[lane] += u64::from(none);
            }
        }
        FiniteLanes {
            range: MinMaxLanes { min, max },
            nonfinite: nonfinite.iter().sum(),
        }
    }
}

/// As `extremes::percentiles_naively`, on all cores: 16 bits of a sample at a time, of those that have the bits before it.
pub(super) fn percentiles(
    samples: &[u64],
    all: usize,
    channels: std::ops::Range<usize>,
    clip: Clip,
) -> Option<MinMax<u64>> {
    let counts = |high: u64, shift: u32| {
        let table = |chunk: &[u64]| {
            let mut bins = vec![0u64; 1 << 16];
            let pixels = chunk.chunks_exact(all);
            for &key in pixels.flat_map(|pixel| &pixel[channels.clone()]) {
                let known = key.checked_shr(shift + 16).unwrap_or(0);
                if !is_nonfinite(key) && known == high {
                    bins[(key >> shift & 0xffff) as usize] += 1;
                }
            }
            bins
        };
        let add = |mut a: Vec<u64>, b: Vec<u64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        let tables = samples.par_chunks(12 << 17).map(table);
        tables.reduce_with(add).unwrap_or_default()
    };
    let first = counts(0, 48);
    let count = first.iter().sum::<u64>();
    let at = |mut rank: u64| {
        let mut bins = first.clone();
        let mut high = 0;
        for shift in [48, 32, 16, 0] {
            if shift < 48 {
                bins = counts(high, shift);
            }
            let bin = bins.iter().position(|&count| {
                let here = count > rank;
                rank -= if here { 0 } else { count };
                here
            });
            high = high << 16 | bin? as u64;
        }
        Some(high)
    };
    let (low, high) = clip.ranks(count);
    Some(MinMax {
        min: at(low)?,
        max: at(high)?,
    })
}

/// The scale of one channel: from values `min`…`max` to `lo`…`hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The value that becomes `lo`.
    pub min: f64,
    /// The value that becomes `hi`.
    pub max: f64,
    /// The least result.
    pub lo: u16,
    /// The greatest.
    pub hi: u16,
}

impl Scale {
    /// The scale of a channel of colour to `lo`…`hi` of this depth. A flat one keeps its value,
    /// rounded, as far as the depth has it.
    pub fn for_colour(range: MinMax<u64>, target: MinMax<u16>, to: Depth) -> Scale {
        let MinMax { min, max } = range.map(from_key64);
        let full = to.full();
        if min == max {
            Scale {
                min: 0.0,
                max: full.into(),
                lo: 0,
                hi: full,
            }
        } else {
            Scale {
                min,
                max,
                lo: target.min,
                hi: target.max,
            }
        }
    }

    /// The scale of alpha: 0…1 to all of the depth.
    pub fn for_alpha(to: Depth) -> Scale {
        let (lo, hi) = (0, to.full());
        Scale {
            min: 0.0,
            max: 1.0,
            lo,
            hi,
        }
    }

    /// The definition, for a finite number.
    pub fn exact(&self, value: f64) -> u16 {
        let (mut k, mut above) = (self.lo, u32::from(self.hi) + 1);
        // The result is in k..above.
        while u32::from(k) + 1 < above {
            let middle = ((u32::from(k) + above) / 2) as u16;
            if self.is_reached(value, middle) {
                k = middle
            } else {
                above = middle.into()
            }
        }
        k
    }

    /// Whether the result of a value is `k` or more, for k above `lo`.
    fn is_reached(&self, value: f64, k: u16) -> bool {
        let clamped = value.clamp(self.min, self.max);
        let fixed = |value: f64| Fixed64::from_f64(value);
        let x = fixed(clamped).minus(fixed(self.min));
        let d = fixed(self.max).minus(fixed(self.min));
        let (steps, span) = (u64::from(k - self.lo), u64::from(self.hi - self.lo));
        d.times(2 * steps - 1) <= x.times(2 * span)
    }

    /// The same, quicker where both differences are numbers of 64 bits, as of whole numbers.
    fn is_reached_quickly(&self, value: f64, k: u16) -> bool {
        let clamped = value.clamp(self.min, self.max);
        let differences = difference(clamped, self.min).zip(difference(self.max, self.min));
        let known = differences.and_then(|(x, d)| {
            let (steps, span) = (u128::from(k - self.lo), u128::from(self.hi - self.lo));
            let ((_, x_exponent, x), (_, d_exponent, d)) = (parts64(x), parts64(d));
            let (left, right) = (u128::from(d) * (2 * steps - 1), u128::from(x) * (2 * span));
            // Products of less than 2⁷¹.
            let shifted = |product: u128, by: u32| (by <= 56).then(|| product << by);
            if d_exponent >= x_exponent {
                shifted(left, d_exponent - x_exponent).map(|left| left <= right)
            } else {
                shifted(right, x_exponent - d_exponent).map(|right| left <= right)
            }
        });
        known.unwrap_or_else(|| self.is_reached(value, k))
    }
}

/// The difference of two numbers, if it is a number of 64 bits.
fn difference(a: f64, b: f64) -> Option<f64> {
    // The error of a sum is a number of 64 bits, computed by Knuth's TwoSum.
    let sum = a - b;
    let rounded_b = sum - a;
    let error = (a - (sum - rounded_b)) - (b + rounded_b);
    (error == 0.0 && sum.is_finite()).then_some(sum)
}

/// Scales the samples of an image by the definition. `nan` replaces samples that are not finite.
pub fn scale_naively(from: &[u64], shape: Shape, to: Depth, scales: &[Scale], nan: f64) -> Image {
    let scaled = from.iter().enumerate();
    let scaled = scaled.map(|(i, &key)| scales[i % scales.len()].exact(value(key, nan)));
    let samples = samples_from(to, scaled.map(u64::from));
    Image::new(Shape { depth: to, ..shape }, samples)
}

/// The same on all cores.
///
/// # Errors
/// No memory for the result.
pub fn scale(from: &[u64], shape: Shape, to: Depth, scales: &[Scale], nan: f64) -> Result<Image> {
    let shape_to = Shape { depth: to, ..shape };
    let mut samples = Samples::any(&shape_to)?;
    let scaler = Scaler::new(scales, nan);
    match &mut samples {
        Samples::U8(to) => scaler.all(from, to),
        Samples::U16(to) => scaler.all(from, to),
        Samples::U32(_) | Samples::U64(_) => bail!("normalize writes only 8- and 16-bit samples"),
    }
    Ok(Image::new(shape_to, samples))
}

/// The constants of each lane, laid out for vector instructions.
struct Scaler {
    nan: f64,
    scales: [Scale; LANES],
    min: [f64; LANES],
    max: [f64; LANES],
    /// The power of two that values are multiplied by, and min times it.
    power: [f64; LANES],
    least: [f64; LANES],
    factor: [f64; LANES],
    lo: [f64; LANES],
}

impl Scaler {
    fn new(scales: &[Scale], nan: f64) -> Scaler {
        let scales: [Scale; LANES] = std::array::from_fn(|lane| scales[lane % scales.len()]);
        let power = scales.map(|scale| match scale.max - scale.min {
            // In such a range the bits that a factor of 2⁻⁸ takes from the smallest values do not matter.
            d if d > f64::MAX / 256.0 => 1.0 / 256.0,
            // Then the ends are small too.
            d if d < f64::MIN_POSITIVE * 2f64.powi(120) => 2f64.powi(200),
            _ => 1.0,
        });
        let least = std::array::from_fn(|lane| scales[lane].min * power[lane]);
        Scaler {
            nan,
            min: scales.map(|scale| scale.min),
            max: scales.map(|scale| scale.max),
            power,
            least,
            factor: std::array::from_fn(|lane| {
                let Scale { max, lo, hi, .. } = scales[lane];
                f64::from(hi - lo) / (max * power[lane] - least[lane])
            }),
            lo: scales.map(|scale| scale.lo.into()),
            scales,
        }
    }

    fn all<T: Sample>(&self, from: &[u64], to: &mut [T]) {
        let chunks = to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK));
        chunks.for_each(|(to, from)| scale_chunk(self, from, to));
    }

    /// y of a value.
    #[inline(always)]
    fn lifted(&self, value: f64, lane: usize) -> f64 {
        let (min, max) = (self.min[lane], self.max[lane]);
        // Comparisons, since `max` and `min` would look for NaN too.
        let raised = if value < min { min } else { value };
        let clamped = if raised > max { max } else { raised };
        (clamped * self.power[lane] - self.least[lane]) * self.factor[lane] + 0.5
    }

    /// The results of up to `LANES` samples, where need be by the exact comparison.
    #[cold]
    fn decide<T: Sample>(&self, from: &[u64], to: &mut [T]) {
        for (lane, (&key, to)) in from.iter().zip(to).enumerate() {
            let value = value(key, self.nan);
            let scale = &self.scales[lane];
            let y = self.lifted(value, lane);
            // The exact value is within NEAR of y, so that the result is one of two at most.
            let low = ((y - NEAR).floor() + self.lo[lane]) as u16;
            let high = ((y + NEAR).floor() + self.lo[lane]) as u16;
            let reached = low < high.min(scale.hi) && scale.is_reached_quickly(value, low + 1);
            *to = T::from_value(low + u16::from(reached));
        }
    }
}

per_level! {
    highest Avx512;

    fn scale_chunk[T: Sample](scaler: &Scaler, from: &[u64], to: &mut [T]) {
        let (from, rest) = from.as_chunks::<LANES>();
        let (to, rest_of_to) = to.as_chunks_mut::<LANES>();
        for (from, to) in from.iter().zip(to) {
            let (mut out, mut far) = ([T::ZERO; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let y = scaler.lifted(value(from[lane], scaler.nan), lane);
                let whole = y.floor();
                far[lane] = (y - whole - 0.5).abs();
                out[lane] = sample(whole + scaler.lo[lane]);
            }
            *to = out;
            if far.iter().fold(false, |near, &it| near | (it >= 0.5 - NEAR)) {
                scaler.decide(from, to);
            }
        }
        scaler.decide(rest, rest_of_to);
    }
}

/// The sum of each channel, where `nan` replaces samples that are not finite.
pub fn sums_naively(samples: &[u64], channels: usize, nan: f64) -> Sums {
    let (mut sums, mut nonfinite) = (vec![Fixed64::default(); channels], 0);
    for (i, &key) in samples.iter().enumerate() {
        nonfinite += u64::from(is_nonfinite(key));
        sums[i % channels] = sums[i % channels].plus(Fixed64::from_f64(value(key, nan)));
    }
    Sums::new(sums.into_iter().map(Exact::Double), nonfinite)
}

/// The same on all cores: mantissas are added up by their exponent.
pub fn sums(samples: &[u64], channels: usize, nan: f64) -> Sums {
    let nothing = || (vec![Fixed64::default(); channels], 0);
    let chunk_sums = |chunk: &[u64]| {
        // Those of a chunk have less than 2⁷¹.
        let mut tables = vec![[0i128; 2048]; channels];
        let mut nonfinite = 0;
        for pixel in chunk.chunks_exact(channels) {
            for (&key, table) in pixel.iter().zip(&mut tables) {
                nonfinite += u64::from(is_nonfinite(key));
                let (negative, exponent, mantissa) = parts64(value(key, nan));
                let mantissa = i128::from(mantissa);
                table[(exponent & 0x7ff) as usize] += if negative { -mantissa } else { mantissa };
            }
        }
        let sum = |table: &[i128; 2048]| {
            let parts = (0..2046u32).zip(table).filter(|(_, part)| **part != 0);
            let parts = parts.map(|(exponent, &part)| Fixed64::from_integer(part, exponent));
            parts.fold(Fixed64::default(), Fixed64::plus)
        };
        (tables.iter().map(sum).collect(), nonfinite)
    };
    let both = |mut a: (Vec<Fixed64>, u64), b: (Vec<Fixed64>, u64)| {
        let pairs = a.0.iter_mut().zip(b.0);
        pairs.for_each(|(a, b)| *a = a.plus(b));
        a.1 += b.1;
        a
    };
    // Chunks begin with a whole pixel.
    let chunks = samples.par_chunks(CHUNK).map(chunk_sums);
    let (sums, nonfinite) = chunks.reduce(nothing, both);
    Sums::new(sums.into_iter().map(Exact::Double), nonfinite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::number::key64;
    use crate::ops::wide::extremes::{Extremes, percentiles_naively};

    /// Values that make every kind of range: ties, numbers at the limits of f64, without an exponent, of both
    /// signs, and NaN.
    fn images() -> Vec<Vec<f64>> {
        let mut numbers = 0x2545_f491_4f6c_dd1du64;
        let mut random = move || {
            numbers ^= numbers << 13;
            numbers ^= numbers >> 7;
            numbers ^= numbers << 17;
            numbers
        };
        let mut part = move || (random() >> 11) as f64 / (1u64 << 53) as f64;
        let count = 24 * 9 + 12;
        let mut images = Vec::new();
        for (scale, offset) in [
            (1.0, 0.0),
            (f64::MAX, -f64::MAX / 2.0),
            (1e-310, 0.0),
            (f64::MIN_POSITIVE, f64::MIN_POSITIVE),
            (1e-3, 1e9),
            (1e-13, 1.0),
            (1e300, 1e200),
        ] {
            images.push((0..count).map(|_| part() * scale + offset).collect());
        }
        // Halves and whole numbers of results.
        images.push((0..count).map(|i| f64::from(i) * 0.5).collect());
        images.push(
            (0..count)
                .map(|i| f64::from(i % 131) * 1001.0 - 7.0)
                .collect(),
        );
        images.push(
            (0..count)
                .map(|i| f64::from_bits(u64::from(i as u32 % 9)))
                .collect(),
        );
        images.push(
            (0..count)
                .map(|i| if i % 2 == 0 { f64::MAX } else { f64::MIN })
                .collect(),
        );
        images.push(
            (0..count)
                .map(|i| f64::from(i) * 1e-3 + 2f64.powi(-60))
                .collect(),
        );
        images
    }

    #[test]
    fn what_is_quick_is_exact() {
        for (index, mut values) in images().into_iter().enumerate() {
            for nonfinite in [false, true] {
                if nonfinite {
                    values[17] = f64::NAN;
                    values[100] = f64::INFINITY;
                }
                let keys: Vec<u64> = values.iter().map(|value| key64(value.to_bits())).collect();
                for channels in 1..=4 {
                    let extremes = Extremes::from_samples_naively(&keys, channels, is_nonfinite);
                    let quick = Extremes::from_samples(&keys, channels, finite_lanes);
                    assert_eq!(quick, extremes);
                    assert_eq!(extremes.nonfinite, if nonfinite { 2 } else { 0 });
                    assert_eq!(
                        sums(&keys, channels, 0.25),
                        sums_naively(&keys, channels, 0.25)
                    );
                    for clip in [Clip::NONE, Clip::from_percentages(5, 90)] {
                        for here in [0..1, 0..channels, channels - 1..channels] {
                            assert_eq!(
                                percentiles(&keys, channels, here.clone(), clip),
                                percentiles_naively(&keys, channels, here, clip, is_nonfinite)
                            );
                        }
                    }
                    let shape = Shape {
                        width: keys.len() / channels,
                        height: 1,
                        channels,
                        depth: Depth::Double,
                    };
                    for (to, min, max) in [(Depth::Sixteen, 0, 65535), (Depth::Eight, 3, 250)] {
                        let target = MinMax { min, max };
                        let scales: Vec<Scale> = extremes
                            .ranges
                            .iter()
                            .map(|&range| Scale::for_colour(range, target, to))
                            .collect();
                        let quick = scale(&keys, shape, to, &scales, 0.25).expect("memory");
                        let naive = scale_naively(&keys, shape, to, &scales, 0.25);
                        assert!(quick == naive, "image {index}, {channels} channels, {to}");
                    }
                }
            }
        }
    }
}
