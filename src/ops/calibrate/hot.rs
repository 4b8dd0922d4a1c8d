//! Hot pixels: a sample that exceeds the median of its up to 8 neighbours by more than a threshold is
//! replaced by it. Neighbours are those of the same channel in the image as it was, and at the border
//! only those that exist; for an even number the median is ⌊(a + b)/2 + 1/2⌋. Alpha and
//! images of one pixel do not change.

use crate::image::simd::per_level;
use crate::image::{Image, Samples, Shape};
use crate::ops::cpu::Sample;
use crate::ops::samples_from;
use anyhow::Result;
use rayon::prelude::*;

/// The definition.
pub(super) fn naive(image: &Image, threshold: u16) -> Image {
    let shape = image.shape();
    let from: Vec<u64> = (0..shape.samples())
        .map(|i| image.samples().at(i))
        .collect();
    let replaced = |i: usize| {
        let (x, y) = (i / shape.channels % shape.width, i / shape.row());
        let mut near = Vec::new();
        for row in y.saturating_sub(1)..=(y + 1).min(shape.height - 1) {
            for column in x.saturating_sub(1)..=(x + 1).min(shape.width - 1) {
                if (column, row) != (x, y) {
                    let index = row * shape.row() + column * shape.channels + i % shape.channels;
                    near.push(from[index]);
                }
            }
        }
        near.sort_unstable();
        if near.is_empty() || i % shape.channels >= shape.colours() {
            return from[i];
        }
        let middle = (near[(near.len() - 1) / 2] + near[near.len() / 2]).div_ceil(2);
        if from[i] > middle + u64::from(threshold) {
            middle
        } else {
            from[i]
        }
    };
    let out = samples_from(shape.depth, (0..shape.samples()).map(replaced));
    Image::new(shape, out)
}

/// The same on all cores.
///
/// # Errors
/// No memory for the result.
pub(super) fn cpu(image: &Image, threshold: u16) -> Result<Image> {
    let shape = image.shape();
    let mut out = Samples::any(&shape)?;
    match (image.samples(), &mut out) {
        (Samples::U8(from), Samples::U8(to)) => rows(&shape, from, to, threshold),
        (Samples::U16(from), Samples::U16(to)) => rows(&shape, from, to, threshold),
        // `any` gives samples of the shape's depth, which is the image's.
        _ => {}
    }
    Ok(Image::new(shape, out))
}

fn rows<T: Sample>(shape: &Shape, from: &[T], to: &mut [T], threshold: u16) {
    let (row, channels) = (shape.row(), shape.channels);
    // No sample exceeds the largest one.
    let threshold = T::from_value(threshold.min(T::FULL.value()));
    to.par_chunks_mut(row).enumerate().for_each(|(y, to)| {
        let near = Rows {
            above: y.checked_sub(1).map(|y| &from[y * row..(y + 1) * row]),
            own: &from[y * row..(y + 1) * row],
            below: from.get((y + 1) * row..(y + 2) * row),
            channels,
        };
        let inner = match (near.above, near.below) {
            (Some(above), Some(below)) if row > 2 * channels => {
                let inner = channels..row - channels;
                replace_inner(&mut to[inner.clone()], above, near.own, below, threshold);
                inner
            }
            _ => row..row,
        };
        for i in (0..inner.start).chain(inner.end..row) {
            to[i] = near.replaced_at_border(i, threshold);
        }
        if shape.colours() < channels {
            let alpha = (shape.colours()..row).step_by(channels);
            alpha.for_each(|i| to[i] = near.own[i]);
        }
    });
}

/// A row of samples and those above and below it, as far as they exist.
struct Rows<'a, T> {
    above: Option<&'a [T]>,
    own: &'a [T],
    below: Option<&'a [T]>,
    channels: usize,
}

impl<T: Sample> Rows<'_, T> {
    /// The result for sample `i`, some of whose neighbours may not exist.
    fn replaced_at_border(&self, i: usize, threshold: T) -> T {
        let own = self.own[i];
        let (mut near, mut count) = ([T::FULL; 8], 0);
        let mut add = |sample: Option<&T>| {
            if let Some(&sample) = sample {
                near[count] = sample;
                count += 1;
            }
        };
        let (left, right) = (i.checked_sub(self.channels), i + self.channels);
        for line in [self.above, self.below].into_iter().flatten() {
            add(left.and_then(|left| line.get(left)));
            add(line.get(i));
            add(line.get(right));
        }
        add(left.and_then(|left| self.own.get(left)));
        add(self.own.get(right));
        if count == 0 {
            return own;
        }
        let near = &mut near[..count];
        near.sort_unstable();
        replaced(own, [near[(count - 1) / 2], near[count / 2]], threshold)
    }
}

/// A sample, or the mean of the two middle neighbours if it exceeds that by more than the threshold.
#[inline(always)]
fn replaced<T: Sample>(sample: T, [low, high]: [T; 2], threshold: T) -> T {
    let middle = (u32::from(low.value()) + u32::from(high.value())).div_ceil(2) as u16;
    if sample.value().saturating_sub(middle) > threshold.value() {
        T::from_value(middle)
    } else {
        sample
    }
}

per_level! {
    highest Avx512;

    /// Replaces the samples of `inner` that are hot. It has the row `own` without its first and last pixel; the
    /// neighbours of its samples are as far apart as the rows are longer than it on each side.
    fn replace_inner[T: Sample](inner: &mut [T], above: &[T], own: &[T], below: &[T], threshold: T) {
        let len = inner.len();
        let channels = (own.len() - len) / 2;
        let [above, own, below] = [above, own, below]
            .map(|row| [0, 1, 2].map(|column| &row[column * channels..][..len]));
        for i in 0..len {
            let middle = middle_two(
                sorted([above[0][i], above[1][i], above[2][i], own[0][i]]),
                sorted([own[2][i], below[0][i], below[1][i], below[2][i]]),
            );
            inner[i] = replaced(own[1][i], middle, threshold);
        }
    }
}

/// Two samples in order.
#[inline(always)]
fn ordered<T: Sample>(a: T, b: T) -> [T; 2] {
    [a.min(b), a.max(b)]
}

/// Four samples in order.
#[inline(always)]
fn sorted<T: Sample>([a, b, c, d]: [T; 4]) -> [T; 4] {
    let ([a, b], [c, d]) = (ordered(a, b), ordered(c, d));
    let ([least, b], [c, most]) = (ordered(a, c), ordered(b, d));
    let [b, c] = ordered(b, c);
    [least, b, c, most]
}

/// The fourth and the fifth of eight samples, each half of them sorted. The smaller sample of each pair `a[i]`,
/// `b[3 − i]` is one of the four smallest of all (Batcher's bitonic merge).
#[inline(always)]
fn middle_two<T: Sample>(a: [T; 4], b: [T; 4]) -> [T; 2] {
    let pairs: [[T; 2]; 4] = std::array::from_fn(|i| ordered(a[i], b[3 - i]));
    let low = pairs.map(|[low, _]| low);
    let high = pairs.map(|[_, high]| high);
    [
        low[0].max(low[1]).max(low[2].max(low[3])),
        high[0].min(high[1]).min(high[2].min(high[3])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every order of eight samples that are 0 or 1, which decides for all samples (the zero-one principle).
    #[test]
    fn the_network_selects_the_middle() {
        for bits in 0u16..256 {
            let samples: [u8; 8] = std::array::from_fn(|i| (bits >> i & 1) as u8);
            let [a, b, c, d, e, f, g, h] = samples;
            let mut expected = samples;
            expected.sort_unstable();
            assert_eq!(
                middle_two(sorted([a, b, c, d]), sorted([e, f, g, h])),
                expected[3..5],
                "{samples:?}"
            );
        }
    }
}
