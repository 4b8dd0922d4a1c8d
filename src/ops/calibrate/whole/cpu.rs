//! The samples of an image on the CPU, in chunks on all cores.

use super::super::hot;
use super::Whole;
use super::factors::Lanes;
use crate::image::buffer::Buffer;
use crate::image::simd::per_level;
use crate::image::{Image, Samples, Shape};
use crate::ops::cpu::{LANES, Sample, for_each_chunk_of};
use crate::ops::quotient::{floored, sample};
use anyhow::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples in a chunk of parallel work: whole lanes.
const CHUNK: usize = 512 * LANES;

/// Quotients beyond this saturate, even after the shift, which is at most half of it.
const MOST: f64 = (1u64 << 20) as f64;

/// How near to a half a quotient is decided exactly. Of one below `MOST`, the mean, the product and the
/// division are each rounded by less than 2⁻⁵³ of it: by less than 2⁻³¹ in all.
const NEAR: f64 = 1.0 / (1u64 << 30) as f64;

/// A sum with it is rounded to a whole number.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

impl Whole {
    /// The definition for an image of this shape, in place unless the memory is shared. Counts the samples that are clamped.
    pub(super) fn on_cores<T: Frameable>(
        &self,
        shape: &Shape,
        samples: &mut Buffer<T>,
        clamped: &AtomicU64,
    ) -> Result<()> {
        let lanes = Lanes::new(&self.factors, shape.colours());
        let most = CHUNK.max(hot::largest_piece(shape));
        // The samples of a missing frame: too many for the stack.
        let filled = |value: u16| vec![T::from_value(value); most];
        let (zero, one) = (filled(self.values.zero()), filled(1));
        let shift = f64::from(self.shift());
        let (dark, flat) = (T::samples(&self.dark), T::samples(&self.flat));
        let calibrate = |start: usize, samples: &mut [T]| {
            let range = start..start + samples.len();
            let d = dark.map_or(&zero[..samples.len()], |dark| &dark[range.clone()]);
            let q = flat.map_or(&one[..samples.len()], |flat| &flat[range]);
            calibrate_chunk(samples, d, q, &lanes, shift)
        };
        let count = |found: u64| clamped.fetch_add(found, Ordering::Relaxed);
        let Some(threshold) = self.settings.hot else {
            return for_each_chunk_of(CHUNK, samples, |index, samples| {
                count(calibrate(index * CHUNK, samples));
            });
        };
        hot::replace_in_bands(shape, samples, threshold, |piece| {
            let found = calibrate(piece.start, piece.samples);
            if piece.kept {
                count(found);
            }
        })
    }
}

/// Samples of a type that a frame may have.
pub(super) trait Frameable: Sample + hot::Comparable {
    /// The samples of a frame of this type.
    fn samples(frame: &Option<Image>) -> Option<&[Self]>;
}

impl Frameable for u8 {
    fn samples(frame: &Option<Image>) -> Option<&[u8]> {
        match frame.as_ref()?.samples() {
            Samples::U8(samples) => Some(samples),
            _ => None,
        }
    }
}

impl Frameable for u16 {
    fn samples(frame: &Option<Image>) -> Option<&[u16]> {
        match frame.as_ref()?.samples() {
            Samples::U16(samples) => Some(samples),
            _ => None,
        }
    }
}

per_level! {
    highest Avx2;

    /// Returns how many samples are clamped.
    fn calibrate_chunk[T: Sample](p: &mut [T], d: &[T], q: &[T], lanes: &Lanes, shift: f64) -> u64 {
        let mut clamped = 0;
        let (p, rest) = p.as_chunks_mut::<LANES>();
        let (d, rest_of_d) = d.as_chunks::<LANES>();
        let (q, rest_of_q) = q.as_chunks::<LANES>();
        for (p, (d, q)) in p.iter_mut().zip(d.iter().zip(q)) {
            match nearly(p, d, q, lanes, shift) {
                Some((out, found)) => {
                    *p = out;
                    clamped += found;
                }
                None => clamped += exactly(p, d, q, lanes, shift),
            }
        }
        clamped + exactly(rest, rest_of_d, rest_of_q, lanes, shift)
    }
}

/// The results, and how many are clamped; `None` if one is too near to a half for doubles to decide.
#[inline(always)]
fn nearly<T: Sample>(
    p: &[T; LANES],
    d: &[T; LANES],
    q: &[T; LANES],
    lanes: &Lanes,
    shift: f64,
) -> Option<([T; LANES], u64)> {
    let mut out = *p;
    let (mut far, mut clamped) = ([0.0; LANES], 0);
    for lane in 0..LANES {
        let x = f64::from(i32::from(p[lane].value()) - i32::from(d[lane].value()));
        let quotient = x * lanes.mean[lane] / f64::from(q[lane].value());
        let whole = (quotient + ROUND) - ROUND;
        far[lane] = (quotient - whole).abs();
        let value = whole + shift;
        let bounded = value.max(0.0).min(f64::from(T::FULL.value()));
        clamped += u64::from(value != bounded) & lanes.counted[lane];
        out[lane] = if lanes.is_alpha[lane] {
            p[lane]
        } else {
            sample(bounded)
        };
    }
    // A flag of each lane: the largest of them would have vectors wait for one another.
    let near = far.iter().fold(false, |near, &it| near | (it > 0.5 - NEAR));
    (!near && shift.abs() <= MOST / 2.0).then_some((out, clamped))
}

/// The results by the definition, in place. Returns how many are clamped.
#[inline(always)]
fn exactly<T: Sample>(p: &mut [T], d: &[T], q: &[T], lanes: &Lanes, shift: f64) -> u64 {
    let mut clamped = 0;
    for (lane, (p, (&d, &q))) in p.iter_mut().zip(d.iter().zip(q)).enumerate() {
        let x = f64::from(i32::from(p.value()) - i32::from(d.value()));
        let q = f64::from(q.value());
        let rest = if x < 0.0 {
            lanes.down[lane]
        } else {
            lanes.up[lane]
        };
        let twice = x * lanes.whole[lane] + (x * rest).floor();
        let out = floored(twice + q, 2.0 * q) + shift;
        let bounded = out.max(0.0).min(f64::from(T::FULL.value()));
        if !lanes.is_alpha[lane] {
            *p = sample(bounded);
            clamped += u64::from(out != bounded);
        }
    }
    clamped
}

#[cfg(test)]
mod tests {
    use super::super::factors::Factor;
    use super::*;

    /// Quotients at halves, as near to them as they can be, beyond the largest sample, and anywhere; with
    /// shifts that leave room for the quick way and such that do not.
    #[test]
    fn quick_and_exact_results_are_those_of_the_definition() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (mut cases, mut quick) = (0, 0);
        for round in 0..4000 {
            let pixels = [1, 2, 3, 7, 1 << 22, (1 << 36) - 1][round % 6];
            let sum = (1 + random(65_535 * pixels)) / [1, 1 << 8, 1 << 15][round / 6 % 3];
            let factor = Factor {
                sum: sum.max(1),
                pixels,
            };
            let lanes = Lanes::new(&[factor], 1);
            let shift = [0, -5, 32_768, 1 << 30][round / 18 % 4];
            let most = [65_536, 300, 2][round / 72 % 3];
            let mut samples =
                |least: u64, most| [(); LANES].map(|()| (least + random(most)) as u16);
            let (p, d, mut q) = (samples(0, 65_536), samples(0, 500), samples(1, most - 1));
            if round % 2 == 0 {
                // Near a half: q is twice the product, or next to it.
                for lane in 0..LANES {
                    let x = u64::from(p[lane].saturating_sub(d[lane]));
                    let twice = u128::from(2 * x) * u128::from(factor.sum) / u128::from(pixels);
                    q[lane] = (twice / (2 * (lane as u128 % 50) + 1)).clamp(1, 65_535) as u16;
                }
            }
            let unclamped: Vec<i128> = (0..LANES)
                .map(|lane| {
                    let [p, d, q] = [p, d, q].map(|it| i128::from(it[lane]));
                    let (sum, n) = (i128::from(factor.sum), i128::from(pixels));
                    (2 * (p - d) * sum + n * q).div_euclid(2 * n * q) + shift
                })
                .collect();
            let outside = |out: &&i128| !(0..=65_535).contains(*out);
            let clamped = unclamped.iter().filter(outside).count() as u64;
            let expected = unclamped.iter().map(|&out| out.clamp(0, 65_535) as u16);
            let expected: Vec<u16> = expected.collect();
            let shift = shift as f64;
            let (mut both, mut exact) = (p, p);
            let counts = [
                calibrate_chunk(&mut both, &d, &q, &lanes, shift),
                exactly(&mut exact, &d, &q, &lanes, shift),
            ];
            assert_eq!(exact[..], expected[..], "exactly: {factor:?}, {shift}");
            assert_eq!(both[..], expected[..], "{factor:?}, {shift}");
            assert_eq!(counts, [clamped; 2], "{factor:?}, {shift}");
            quick += usize::from(nearly(&p, &d, &q, &lanes, shift).is_some());
            cases += 1;
        }
        assert!(cases == 4000 && quick > 500 && quick < 3500, "{quick}");
    }
}
