//! Exact sums of samples of 32 bits, which do not depend on the order, and so not on the threads.
//!
//! **Floating point.** A block whose exponents are no further apart than `SPREAD` is added in f64, lane by lane:
//! its samples are whole numbers of the least step among them, and of less than 2⁴⁴ of these, so that the sums
//! of 32 rows have less than 2⁴⁹ and every addition is exact. The samples of other blocks are added one by
//! one, by their exponent, as whole numbers of 24 bits.

use super::fixed::{Fixed, parts};
use super::{LANES, is_nonfinite};
use crate::image::simd::per_level;
use crate::image::{Depth, number};
use crate::ops::cpu;
use crate::ops::exact::Exact;

/// Rows of lanes in a block that is added in f64.
const ROWS: usize = 32;

/// How far apart the exponents of such a block may be: 24 bits and these are 44.
const SPREAD: u32 = 20;

/// The exponent of NaN and infinities.
const ODD: u32 = 255;

/// The sums of the channels' samples, and how many samples are not finite.
#[derive(Debug, PartialEq)]
pub struct Sums {
    /// Of each channel.
    pub sums: Vec<Exact>,
    /// Of all channels.
    pub nonfinite: u64,
}

impl Sums {
    /// From the sum of each channel.
    pub(super) fn new(sums: impl Iterator<Item = Exact>, nonfinite: u64) -> Sums {
        let sums = sums.collect();
        Sums { sums, nonfinite }
    }
}

/// The definition; `nan` replaces samples that are not finite.
pub fn naive(samples: &[u32], channels: usize, depth: Depth, nan: u32) -> Sums {
    let mut sums = vec![Exact::zero(depth); channels];
    let mut nonfinite = 0;
    for (i, &sample) in samples.iter().enumerate() {
        let is_nonfinite = is_nonfinite(depth, sample);
        nonfinite += u64::from(is_nonfinite);
        let sample = if is_nonfinite { nan } else { sample };
        let one = match depth {
            Depth::Float => Exact::Real(Fixed::from_key(sample)),
            _ => Exact::Whole(sample.into()),
        };
        sums[i % channels] = sums[i % channels].plus(one);
    }
    Sums { sums, nonfinite }
}

/// The same on all cores.
pub fn cpu(samples: &[u32], channels: usize, depth: Depth, nan: u32) -> Sums {
    let mut sums = vec![Exact::zero(depth); channels];
    let mut nonfinite = 0;
    match depth {
        Depth::Float => {
            let add = |mut a: Reals, b: Reals| {
                a.sums
                    .iter_mut()
                    .zip(b.sums)
                    .for_each(|(a, b)| *a = a.plus(b));
                a.nonfinite += b.nonfinite;
                a
            };
            let chunk = |chunk: &[u32]| match channels {
                1 => reals::<1>(chunk, nan),
                2 => reals::<2>(chunk, nan),
                3 => reals::<3>(chunk, nan),
                _ => reals::<4>(chunk, nan),
            };
            let found = cpu::reduce(samples, Reals::default(), chunk, add);
            let both = sums.iter_mut().zip(found.sums);
            both.for_each(|(sum, found)| *sum = Exact::Real(found));
            nonfinite = found.nonfinite;
        }
        _ => {
            let add = |mut a: [u128; LANES], b: [u128; LANES]| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                a
            };
            let lanes = cpu::reduce(samples, [0; LANES], integers, add);
            for (lane, sum) in lanes.into_iter().enumerate() {
                sums[lane % channels] = sums[lane % channels].plus(Exact::Whole(sum as i128));
            }
        }
    }
    Sums { sums, nonfinite }
}

/// The sums of floating-point samples.
#[derive(Clone, Copy, Default)]
struct Reals {
    /// Of each channel; those after the last are 0.
    sums: [Fixed; 4],
    /// How many samples are not finite.
    nonfinite: u64,
}

/// Those of a chunk.
fn reals<const C: usize>(chunk: &[u32], nan: u32) -> Reals {
    // By channel and exponent; two tables, used alternately: equal neighbours do not wait for each
    // other's addition. A chunk's 256 blocks of 24 lanes have less than 2⁶² in all.
    let mut tables = [[[0i64; 256]; C]; 2];
    let mut found = Reals::default();
    let (rows, rest) = chunk.as_chunks::<LANES>();
    for rows in rows.chunks(ROWS) {
        let block = block(rows);
        match block.factor() {
            Some((exponent, factor)) => {
                for (lane, sum) in block.sums.into_iter().enumerate() {
                    tables[0][lane % C][exponent] += (sum * factor) as i64;
                }
            }
            None => found.nonfinite += one_by_one(rows.as_flattened(), nan, &mut tables),
        }
    }
    found.nonfinite += one_by_one(rest, nan, &mut tables);
    for (channel, sum) in found.sums.iter_mut().take(C).enumerate() {
        for exponent in 0..=253 {
            let all: i64 = tables.iter().map(|table| table[channel][exponent]).sum();
            if all != 0 {
                let part = Fixed::from_parts(all.unsigned_abs(), exponent as u32);
                *sum = if all < 0 {
                    sum.minus(part)
                } else {
                    sum.plus(part)
                };
            }
        }
    }
    found
}

/// Adds samples to the tables; returns how many are not finite.
fn one_by_one<const C: usize>(samples: &[u32], nan: u32, tables: &mut [[[i64; 256]; C]; 2]) -> u64 {
    let mut nonfinite = 0;
    let mut add = |pixel: &[u32; C], which: usize| {
        for (&key, table) in pixel.iter().zip(&mut tables[which]) {
            let is_nonfinite = is_nonfinite(Depth::Float, key);
            nonfinite += u64::from(is_nonfinite);
            let (negative, exponent, mantissa) = parts(if is_nonfinite { nan } else { key });
            let mantissa = i64::from(mantissa);
            table[(exponent & 0xff) as usize] += if negative { -mantissa } else { mantissa };
        }
    };
    let (pixels, _) = samples.as_chunks::<C>();
    let (pairs, rest) = pixels.as_chunks::<2>();
    for [first, second] in pairs {
        add(first, 0);
        add(second, 1);
    }
    rest.iter().for_each(|pixel| add(pixel, 0));
    nonfinite
}

/// The sums of a block of at most `ROWS` rows in f64, and the range of its magnitudes.
struct Block {
    sums: [f64; LANES],
    /// The bits of the largest magnitude.
    most: u32,
    /// Those of the smallest that is not 0, less 1; all ones where there is none.
    least: u32,
}

impl Block {
    /// The exponent of the samples' least step, as `parts` has it, and how many of these steps 1 is; `None`
    /// if the sums are not sure to be exact.
    fn factor(&self) -> Option<(usize, f64)> {
        // Numbers without an exponent have the step of those with the smallest.
        let (low, high) = (self.least.wrapping_add(1) >> 23, self.most >> 23);
        let low = low.max(1);
        let exact = high < ODD && high.saturating_sub(low) <= SPREAD;
        let factor = f64::from_bits(u64::from(1023 + 150 - low) << 52);
        exact.then_some((low as usize - 1, factor))
    }
}

per_level! {
    highest Avx512;

    fn block(rows: &[[u32; LANES]]) -> Block {
        let (mut sums, mut most, mut least) = ([0f64; LANES], [0; LANES], [u32::MAX; LANES]);
        for row in rows {
            for lane in 0..LANES {
                let bits = number::bits(row[lane]);
                let magnitude = bits & !number::TOP;
                sums[lane] += f64::from(f32::from_bits(bits));
                most[lane] = most[lane].max(magnitude);
                // 0 has no exponent of its own, and becomes the largest.
                least[lane] = least[lane].min(magnitude.wrapping_sub(1));
            }
        }
        Block {
            sums,
            most: most.into_iter().fold(0, u32::max),
            least: least.into_iter().fold(u32::MAX, u32::min),
        }
    }
}

per_level! {
    highest Avx2;

    /// The sums of a chunk's integers, lane by lane.
    fn integers(chunk: &[u32]) -> [u128; LANES] {
        let mut sums = [0u64; LANES];
        let (blocks, rest) = chunk.as_chunks::<LANES>();
        for block in blocks {
            for lane in 0..LANES {
                sums[lane] += u64::from(block[lane]);
            }
        }
        for (sum, &value) in sums.iter_mut().zip(rest) {
            *sum += u64::from(value);
        }
        sums.map(u128::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exponents as far apart as they may be in a block and one further, the smallest and the largest numbers,
    /// zeros of both signs and NaN; with every mantissa full, so that no bit is to spare.
    #[test]
    fn quick_sums_are_exact() {
        let (mut quick, mut slow) = (0, 0);
        for low in [0, 1, 2, 100, 127, 233, 234] {
            for spread in [0, 1, SPREAD, SPREAD + 1] {
                for count in [1, LANES, LANES * ROWS, LANES * ROWS + 5, cpu::CHUNK + 7] {
                    let high = (low + spread).min(254);
                    let sample = |i: usize| match (i * 7 + i / 97) % 11 {
                        0 => low << 23 | 1,
                        1 => 0,
                        2 => number::TOP,
                        3 => number::TOP | high << 23 | 0x7f_ffff,
                        _ => high << 23 | 0x7f_ffff,
                    };
                    let mut samples: Vec<u32> =
                        (0..count).map(|i| number::key(sample(i))).collect();
                    for nonfinite in [0, 1] {
                        if nonfinite == 1 {
                            samples[count / 2] = number::key(f32::NAN.to_bits());
                        }
                        for rows in samples.as_chunks::<LANES>().0.chunks(ROWS) {
                            match block(rows).factor() {
                                Some(_) => quick += 1,
                                None => slow += 1,
                            }
                        }
                        let nan = number::key((-3f32).to_bits());
                        for channels in 1..=4 {
                            let samples = &samples[..count - count % channels];
                            let is = cpu(samples, channels, Depth::Float, nan);
                            let expected = naive(samples, channels, Depth::Float, nan);
                            assert_eq!(is.sums, expected.sums, "{low} {spread} {count} {channels}");
                            assert_eq!(is.nonfinite, expected.nonfinite);
                        }
                    }
                }
            }
        }
        assert!(quick > 1000 && slow > 1000, "{quick} {slow}");
    }
}
