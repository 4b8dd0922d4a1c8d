//! Horizontal differencing (Predictor 2; TIFF 6.0, section 14): a sample is stored as its
//! difference, modulo 2⁸, 2¹⁶, 2³² or 2⁶⁴, from the sample of the same channel one pixel to the left. And
//! that of floating point (Predictor 3; Adobe Photoshop TIFF Technical Note 3): of each row first the
//! most significant bytes of all samples, then the next ones, and so on; and each byte as its
//! difference from the one as many channels before.

use crate::formats::raw::Order;
use crate::image::Depth;
use std::array;

/// What is stored in place of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictor {
    /// Differences of samples (2).
    Samples,
    /// Differences of the bytes of floating-point numbers (3).
    Bytes,
}

impl Predictor {
    /// The one that compressed pages of a depth are written with.
    pub fn for_depth(depth: Depth) -> Predictor {
        match depth {
            Depth::Float | Depth::Double => Predictor::Bytes,
            _ => Predictor::Samples,
        }
    }

    /// The value of the Predictor tag.
    pub fn tag(self) -> usize {
        match self {
            Predictor::Samples => 2,
            Predictor::Bytes => 3,
        }
    }
}

/// Converts differences in the file's byte order to samples in the machine's, row by row; `row` is
/// the number of bytes in a row. Halves of 16 bits are as samples of 16 bits.
pub fn undo(rows: &mut [u8], row: usize, channels: usize, depth: Depth, order: Order) {
    let swap = order != Order::NATIVE;
    for row in rows.chunks_exact_mut(row) {
        match (depth, channels, swap) {
            (Depth::Eight, 5.., _) => sum_many::<1>(row, channels, order),
            (Depth::Sixteen, 5.., _) => sum_many::<2>(row, channels, order),
            (Depth::ThirtyTwo | Depth::Float, 5.., _) => sum_many::<4>(row, channels, order),
            (Depth::Double, 5.., _) => sum_many::<8>(row, channels, order),
            (Depth::Eight, 1, _) => sum8::<1>(row),
            (Depth::Eight, 2, _) => sum8::<2>(row),
            (Depth::Eight, 3, _) => sum8::<3>(row),
            (Depth::Eight, _, _) => sum8::<4>(row),
            (Depth::Sixteen, 1, false) => sum16::<1, false>(row),
            (Depth::Sixteen, 2, false) => sum16::<2, false>(row),
            (Depth::Sixteen, 3, false) => sum16::<3, false>(row),
            (Depth::Sixteen, _, false) => sum16::<4, false>(row),
            (Depth::Sixteen, 1, true) => sum16::<1, true>(row),
            (Depth::Sixteen, 2, true) => sum16::<2, true>(row),
            (Depth::Sixteen, 3, true) => sum16::<3, true>(row),
            (Depth::Sixteen, _, true) => sum16::<4, true>(row),
            (Depth::ThirtyTwo | Depth::Float, channels, swap) => sum32(row, channels, swap),
            (Depth::Double, channels, swap) => sum64(row, channels, swap),
        }
    }
}

/// Of pixels of any number of samples, of `N` bytes each, which are read as several pages.
fn sum_many<const N: usize>(row: &mut [u8], channels: usize, order: Order) {
    let number = |mut sample: [u8; N], order| {
        if order == Order::Big {
            sample.reverse();
        }
        let mut number = [0; 8];
        number[..N].copy_from_slice(&sample);
        u64::from_le_bytes(number)
    };
    let samples = row.as_chunks_mut::<N>().0;
    for i in 0..samples.len() {
        let left = match i.checked_sub(channels) {
            Some(left) => number(samples[left], Order::NATIVE),
            None => 0,
        };
        let sum = number(samples[i], order).wrapping_add(left);
        samples[i].copy_from_slice(&sum.to_le_bytes()[..N]);
        if Order::NATIVE == Order::Big {
            samples[i].reverse();
        }
    }
}

fn sum8<const CHANNELS: usize>(row: &mut [u8]) {
    let mut left = [0u8; CHANNELS];
    for pixel in row.as_chunks_mut::<CHANNELS>().0 {
        for (sample, left) in pixel.iter_mut().zip(&mut left) {
            *left = left.wrapping_add(*sample);
            *sample = *left;
        }
    }
}

fn sum16<const CHANNELS: usize, const SWAP: bool>(row: &mut [u8]) {
    let mut left = [0u16; CHANNELS];
    let samples = row.as_chunks_mut::<2>().0;
    for pixel in samples.as_chunks_mut::<CHANNELS>().0 {
        for (sample, left) in pixel.iter_mut().zip(&mut left) {
            let difference = u16::from_ne_bytes(*sample);
            *left = left.wrapping_add(if SWAP {
                difference.swap_bytes()
            } else {
                difference
            });
            *sample = left.to_ne_bytes();
        }
    }
}

fn sum32(row: &mut [u8], channels: usize, swap: bool) {
    let mut left = [0u32; 4];
    for pixel in row.as_chunks_mut::<4>().0.chunks_mut(channels) {
        for (sample, left) in pixel.iter_mut().zip(&mut left) {
            let difference = u32::from_ne_bytes(*sample);
            *left = left.wrapping_add(if swap {
                difference.swap_bytes()
            } else {
                difference
            });
            *sample = left.to_ne_bytes();
        }
    }
}

fn sum64(row: &mut [u8], channels: usize, swap: bool) {
    let mut left = [0u64; 4];
    for pixel in row.as_chunks_mut::<8>().0.chunks_mut(channels) {
        for (sample, left) in pixel.iter_mut().zip(&mut left) {
            let difference = u64::from_ne_bytes(*sample);
            *left = left.wrapping_add(if swap {
                difference.swap_bytes()
            } else {
                difference
            });
            *sample = left.to_ne_bytes();
        }
    }
}

/// Converts rows of predictor 3 to floating-point numbers of `N` bytes in the machine's byte order; `row`
/// is the number of bytes in a row.
pub fn undo_bytes<const N: usize>(rows: &mut [u8], row: usize, channels: usize) {
    let mut planes = Vec::new();
    for row in rows.chunks_exact_mut(row) {
        for i in channels..row.len() {
            row[i] = row[i].wrapping_add(row[i - channels]);
        }
        planes.clear();
        planes.extend_from_slice(row);
        let samples = row.as_chunks_mut::<N>().0;
        let count = samples.len();
        let plane: [&[u8]; N] = array::from_fn(|plane| &planes[plane * count..][..count]);
        for (i, sample) in samples.iter_mut().enumerate() {
            *sample = plane.map(|plane| plane[i]);
            if Order::NATIVE == Order::Little {
                sample.reverse();
            }
        }
    }
}

/// Writes the rows of predictor 3 of native-endian numbers to `differences`, which has the same
/// length.
pub fn apply_bytes<const N: usize>(
    rows: &[u8],
    differences: &mut [u8],
    row: usize,
    channels: usize,
) {
    for (row, out) in rows
        .chunks_exact(row)
        .zip(differences.chunks_exact_mut(row))
    {
        let samples = row.as_chunks::<N>().0;
        for (i, &sample) in samples.iter().enumerate() {
            let mut bytes = sample;
            if Order::NATIVE == Order::Little {
                bytes.reverse();
            }
            for (plane, byte) in bytes.into_iter().enumerate() {
                out[plane * samples.len() + i] = byte;
            }
        }
        for i in (channels..out.len()).rev() {
            out[i] = out[i].wrapping_sub(out[i - channels]);
        }
    }
}

/// Writes the differences of native-endian samples to `differences`, which has the same length.
pub fn apply(rows: &[u8], differences: &mut [u8], row: usize, channels: usize, depth: Depth) {
    let step = channels * depth.bytes();
    for (row, out) in rows
        .chunks_exact(row)
        .zip(differences.chunks_exact_mut(row))
    {
        out[..step].copy_from_slice(&row[..step]);
        let (left, here, out) = (&row[..row.len() - step], &row[step..], &mut out[step..]);
        match depth {
            Depth::Eight => {
                for ((out, here), left) in out.iter_mut().zip(here).zip(left) {
                    *out = here.wrapping_sub(*left);
                }
            }
            Depth::Sixteen => {
                let (left, here) = (left.as_chunks::<2>().0, here.as_chunks::<2>().0);
                let out = out.as_chunks_mut::<2>().0;
                for ((out, &here), &left) in out.iter_mut().zip(here).zip(left) {
                    let difference =
                        u16::from_ne_bytes(here).wrapping_sub(u16::from_ne_bytes(left));
                    *out = difference.to_ne_bytes();
                }
            }
            Depth::ThirtyTwo | Depth::Float => {
                let (left, here) = (left.as_chunks::<4>().0, here.as_chunks::<4>().0);
                let out = out.as_chunks_mut::<4>().0;
                for ((out, &here), &left) in out.iter_mut().zip(here).zip(left) {
                    let difference =
                        u32::from_ne_bytes(here).wrapping_sub(u32::from_ne_bytes(left));
                    *out = difference.to_ne_bytes();
                }
            }
            Depth::Double => {
                let (left, here) = (left.as_chunks::<8>().0, here.as_chunks::<8>().0);
                let out = out.as_chunks_mut::<8>().0;
                for ((out, &here), &left) in out.iter_mut().zip(here).zip(left) {
                    let difference =
                        u64::from_ne_bytes(here).wrapping_sub(u64::from_ne_bytes(left));
                    *out = difference.to_ne_bytes();
                }
            }
        }
    }
}
