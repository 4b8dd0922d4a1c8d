//! Exact sums of samples of 32 bits. Those of floating point are added by their exponent, whole
//! numbers of 24 bits each; the result does not depend on the order, and so not on the threads.

use super::fixed::{Fixed, parts};
use super::{LANES, is_odd};
use crate::device::cpu;
use crate::image::Depth;
use crate::ops::sum::Exact;
use crate::simd::per_level;

/// The sums of the channels' samples; `nan` stands for those that are no finite numbers.
pub fn naive(samples: &[u32], channels: usize, depth: Depth, nan: u32) -> Vec<Exact> {
    let mut sums = vec![Exact::zero(depth); channels];
    for (i, &sample) in samples.iter().enumerate() {
        let sample = if is_odd(depth, sample) { nan } else { sample };
        let one = match depth {
            Depth::Float => Exact::Real(Fixed::of_key(sample)),
            _ => Exact::Whole(sample.into()),
        };
        sums[i % channels] = sums[i % channels].plus(one);
    }
    sums
}

/// The same on all cores.
pub fn cpu(samples: &[u32], channels: usize, depth: Depth, nan: u32) -> Vec<Exact> {
    let mut sums = vec![Exact::zero(depth); channels];
    match depth {
        Depth::Float => {
            let add = |mut a: [Fixed; 4], b: [Fixed; 4]| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a = a.plus(b));
                a
            };
            let chunk = |chunk: &[u32]| match channels {
                1 => reals::<1>(chunk, nan),
                2 => reals::<2>(chunk, nan),
                3 => reals::<3>(chunk, nan),
                _ => reals::<4>(chunk, nan),
            };
            let found = cpu::reduce(samples, [Fixed::default(); 4], chunk, add);
            sums.iter_mut()
                .zip(found)
                .for_each(|(sum, found)| *sum = Exact::Real(found));
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
    sums
}

/// The sums of a chunk's floating-point samples, channel by channel.
fn reals<const C: usize>(chunk: &[u32], nan: u32) -> [Fixed; 4] {
    // By channel and exponent; two tables, used alternately: equal neighbours do not wait for each
    // other's addition. A chunk has less than 2³⁹ samples of 24 bits.
    let mut tables = [[[0i64; 256]; C]; 2];
    let mut add = |pixel: &[u32; C], which: usize| {
        for (&key, table) in pixel.iter().zip(&mut tables[which]) {
            let key = if is_odd(Depth::Float, key) { nan } else { key };
            let (negative, exponent, mantissa) = parts(key);
            let mantissa = i64::from(mantissa);
            table[(exponent & 0xff) as usize] += if negative { -mantissa } else { mantissa };
        }
    };
    let (pixels, _) = chunk.as_chunks::<C>();
    let (pairs, rest) = pixels.as_chunks::<2>();
    for [first, second] in pairs {
        add(first, 0);
        add(second, 1);
    }
    rest.iter().for_each(|pixel| add(pixel, 0));
    let mut sums = [Fixed::default(); 4];
    for (channel, sum) in sums.iter_mut().take(C).enumerate() {
        for exponent in 0..=253 {
            let all: i64 = tables.iter().map(|table| table[channel][exponent]).sum();
            if all != 0 {
                let part = Fixed::of(all.unsigned_abs(), exponent as u32);
                *sum = if all < 0 {
                    sum.minus(part)
                } else {
                    sum.plus(part)
                };
            }
        }
    }
    sums
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
