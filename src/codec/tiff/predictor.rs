//! Horizontal differencing (Predictor 2; TIFF 6.0, section 14): a sample is stored as its
//! difference, modulo 2⁸ or 2¹⁶, from the sample of the same channel one pixel to the left.

use crate::codec::raw::Order;
use crate::image::Depth;

/// Converts differences in the file's byte order to samples in the machine's, row by row; `row` is
/// the number of bytes in a row.
pub fn undo(rows: &mut [u8], row: usize, channels: usize, depth: Depth, order: Order) {
    let swap = order != Order::NATIVE;
    for row in rows.chunks_exact_mut(row) {
        match (depth, channels, swap) {
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
        }
    }
}
