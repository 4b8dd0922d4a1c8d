//! Hot pixels: a sample that exceeds the median of its up to 8 neighbours by more than a threshold is
//! replaced by it. Neighbours are those of the same channel in the image as it was, and at the border
//! only those that exist; for an even number the median is ⌊(a + b)/2 + 1/2⌋, and in floating point (a + b)/2 in doubles,
//! rounded to 32 bits if it replaces the sample. Alpha and images of one pixel do not change.

use crate::image::buffer::Buffer;
use crate::image::number::{from_key, key};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Shape};
use crate::ops::cpu::Sample;
use crate::ops::samples_from;
use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;

/// The definition; without a threshold the image stays as it is.
pub(super) fn naive(image: Image, threshold: Option<u16>) -> Image {
    let Some(threshold) = threshold else {
        return image;
    };
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
        let middle = [near[(near.len() - 1) / 2], near[near.len() / 2]];
        if shape.depth == Depth::Float {
            let [low, high] = middle.map(|key| f64::from(from_key(key as u32)));
            let (sample, middle) = (f64::from(from_key(from[i] as u32)), (low + high) / 2.0);
            return match sample - middle > f64::from(threshold) {
                true => u64::from(key((middle as f32).to_bits())),
                false => from[i],
            };
        }
        let middle = (middle[0] + middle[1]).div_ceil(2);
        if from[i] > middle + u64::from(threshold) {
            middle
        } else {
            from[i]
        }
    };
    let out = samples_from(shape.depth, (0..shape.samples()).map(replaced));
    Image::new(shape, out)
}

/// Calls `prepare` with each band of rows and the index of its first sample, and replaces the hot samples of what it makes of
/// them, in place unless the memory is shared. A band stays in a core's cache between the two. `prepare` is also called with
/// copies of single rows, whose `kept` is false: those above and below a band, which other cores change.
///
/// # Errors
/// No memory.
pub(super) fn replace_in_bands<T: Comparable>(
    shape: &Shape,
    samples: &mut Buffer<T>,
    threshold: u16,
    prepare: impl Fn(Piece<T>) + Sync,
) -> Result<()> {
    let (row, len) = (shape.row(), samples.len());
    let band = BAND.div_ceil(row).max(LEAST_ROWS) * row;
    let changed = samples.memory_for_change()?;
    let prepared = |start: usize| {
        let mut samples = samples[start..start + row].to_vec();
        prepare(Piece {
            start,
            samples: &mut samples,
            kept: false,
        });
        samples
    };
    let edges: Vec<Edges<T>> = (0..len.div_ceil(band))
        .into_par_iter()
        .map(|index| Edges {
            above: (index * band).checked_sub(row).map(prepared),
            below: Some((index + 1) * band)
                .filter(|below| *below < len)
                .map(prepared),
        })
        .collect();
    let threshold = T::threshold(threshold);
    let replace = |start: usize, samples: &mut [T], edges: Edges<T>| {
        prepare(Piece {
            start,
            samples,
            kept: true,
        });
        replace_in_band(shape, samples, edges, threshold);
    };
    match changed {
        None => {
            let bands = samples.par_chunks_mut(band).zip(edges).enumerate();
            bands.for_each(|(index, (samples, edges))| replace(index * band, samples, edges));
        }
        Some(mut changed) => {
            let bands = changed.par_chunks_mut(band).zip(samples.par_chunks(band));
            let bands = bands.zip(edges).enumerate();
            bands.for_each(|(index, ((to, from), edges))| {
                to.copy_from_slice(from);
                replace(index * band, to, edges);
            });
            *samples = changed;
        }
    }
    Ok(())
}

/// Samples of a band: about 384 KiB of 16-bit samples, which fit in a level-2 cache.
const BAND: usize = 192 << 10;

/// The fewest rows of a band: the rows next to it are prepared twice.
const LEAST_ROWS: usize = 16;

/// The most samples of a piece of an image of this shape.
pub(super) fn largest_piece(shape: &Shape) -> usize {
    let rows = BAND.div_ceil(shape.row()).max(LEAST_ROWS);
    rows.min(shape.height) * shape.row()
}

/// Whole rows of an image that are to be prepared.
pub(super) struct Piece<'a, T> {
    /// The index of the first sample.
    pub start: usize,
    /// The samples, which change in place.
    pub samples: &'a mut [T],
    /// Whether they are a part of the result, and not a copy.
    pub kept: bool,
}

/// The rows above and below a band, as far as they exist.
struct Edges<T> {
    above: Option<Vec<T>>,
    below: Option<Vec<T>>,
}

/// Replaces the hot samples of a band of rows, in place.
fn replace_in_band<T: Comparable>(
    shape: &Shape,
    samples: &mut [T],
    edges: Edges<T>,
    threshold: T::Threshold,
) {
    let row = shape.row();
    // The rows as they were.
    let (mut above, mut own) = (edges.above, vec![T::LEAST; row]);
    let absent = [T::LEAST, T::MOST].map(|sample| vec![sample; row]);
    for start in (0..samples.len()).step_by(row) {
        let (done, rest) = samples.split_at_mut(start + row);
        let to = &mut done[start..];
        own.copy_from_slice(to);
        let near = Rows {
            above: above.as_deref(),
            own: &own,
            below: rest.get(..row).or(edges.below.as_deref()),
            absent: absent.each_ref().map(Vec::as_slice),
            channels: shape.channels,
        };
        near.replace(to, shape.colours(), threshold);
        let before = above.replace(own);
        own = before.unwrap_or_else(|| vec![T::LEAST; row]);
    }
}

/// A sample of 8 or 16 bits, or the key of a floating-point number.
pub(super) trait Comparable: Pod + Ord + Send + Sync {
    /// The smallest and the largest that there is.
    const LEAST: Self;
    const MOST: Self;

    /// A threshold, as the excess of samples is compared with it.
    type Threshold: Copy + Send + Sync;

    /// The threshold for a whole number.
    fn threshold(value: u16) -> Self::Threshold;

    /// The sample, or the mean of the two middle neighbours if it exceeds that by more than the threshold.
    fn replaced(self, middle: [Self; 2], threshold: Self::Threshold) -> Self;
}

impl<T: Sample> Comparable for T {
    const LEAST: T = T::ZERO;
    const MOST: T = T::FULL;

    type Threshold = T;

    fn threshold(value: u16) -> T {
        // No sample exceeds the largest one.
        T::from_value(value.min(T::FULL.value()))
    }

    #[inline(always)]
    fn replaced(self, [low, high]: [T; 2], threshold: T) -> T {
        let middle = (u32::from(low.value()) + u32::from(high.value())).div_ceil(2) as u16;
        if self.value().saturating_sub(middle) > threshold.value() {
            T::from_value(middle)
        } else {
            self
        }
    }
}

impl Comparable for u32 {
    const LEAST: u32 = 0;
    const MOST: u32 = u32::MAX;

    type Threshold = f64;

    fn threshold(value: u16) -> f64 {
        value.into()
    }

    #[inline(always)]
    fn replaced(self, middle: [u32; 2], threshold: f64) -> u32 {
        let [low, high] = middle.map(|key| f64::from(from_key(key)));
        let middle = (low + high) / 2.0;
        if f64::from(from_key(self)) - middle > threshold {
            key((middle as f32).to_bits())
        } else {
            self
        }
    }
}

/// A row of samples and those above and below it, as far as they exist.
struct Rows<'a, T> {
    above: Option<&'a [T]>,
    own: &'a [T],
    below: Option<&'a [T]>,
    /// Rows of the smallest and of the largest sample, in place of neighbours that do not exist.
    absent: [&'a [T]; 2],
    channels: usize,
}

impl<T: Comparable> Rows<'_, T> {
    /// Replaces the hot samples of `to`, which is the own row. The first `colours` channels are not alpha.
    fn replace(&self, to: &mut [T], colours: usize, threshold: T::Threshold) {
        let (row, channels) = (to.len(), self.channels);
        let inner = match (self.above, self.below) {
            (None, None) => row..row,
            _ if row <= 2 * channels => row..row,
            (above, below) => {
                let inner = channels..row - channels;
                let neighbours = self.neighbours(above, below, inner.len());
                let is_odd = above.is_none() || below.is_none();
                replace_inner(&mut to[inner.clone()], neighbours, is_odd, threshold);
                inner
            }
        };
        for i in (0..inner.start).chain(inner.end..row) {
            to[i] = self.replaced_at_border(i, threshold);
        }
        if colours < channels {
            let alpha = (colours..row).step_by(channels);
            alpha.for_each(|i| to[i] = self.own[i]);
        }
    }

    /// The neighbours of each of so many samples, from the second pixel on. In a row at the border they have five, whose
    /// median is the fourth of eight with one smaller and two larger samples.
    fn neighbours<'s>(
        &'s self,
        above: Option<&'s [T]>,
        below: Option<&'s [T]>,
        len: usize,
    ) -> [&'s [T]; 8] {
        let [least, most] = self.absent;
        let shifted = |row: &'s [T]| [0, 1, 2].map(|pixel| &row[pixel * self.channels..][..len]);
        let of_row = |row: Option<&'s [T]>| match row {
            Some(row) => shifted(row),
            None => [&least[..len], &most[..len], &most[..len]],
        };
        let [[a, b, c], [d, _, e], [f, g, h]] = [of_row(above), shifted(self.own), of_row(below)];
        [a, b, c, d, e, f, g, h]
    }

    /// The result for sample `i`, some of whose neighbours may not exist.
    fn replaced_at_border(&self, i: usize, threshold: T::Threshold) -> T {
        let own = self.own[i];
        let (mut near, mut count) = ([T::MOST; 8], 0);
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
        // The smaller samples that make the lower median the fourth of eight.
        near[count..count + 3 - (count - 1) / 2].fill(T::LEAST);
        let [a, b, c, d, e, f, g, h] = near;
        let [low, high] = middle_two(sorted([a, b, c, d]), sorted([e, f, g, h]));
        let high = if count % 2 == 1 { low } else { high };
        own.replaced([low, high], threshold)
    }
}

per_level! {
    highest Avx512;

    /// Replaces the hot samples of `inner`, whose neighbours are `near`. If their number `is_odd`, the fourth is their median.
    fn replace_inner[T: Comparable](inner: &mut [T], near: [&[T]; 8], is_odd: bool, threshold: T::Threshold) {
        let len = inner.len();
        let [a, b, c, d, e, f, g, h] = near.map(|samples| &samples[..len]);
        for i in 0..len {
            let [low, high] = middle_two(
                sorted([a[i], b[i], c[i], d[i]]),
                sorted([e[i], f[i], g[i], h[i]]),
            );
            let high = if is_odd { low } else { high };
            inner[i] = inner[i].replaced([low, high], threshold);
        }
    }
}

/// Two samples in order.
#[inline(always)]
fn ordered<T: Ord + Copy>(a: T, b: T) -> [T; 2] {
    [a.min(b), a.max(b)]
}

/// Four samples in order.
#[inline(always)]
fn sorted<T: Ord + Copy>([a, b, c, d]: [T; 4]) -> [T; 4] {
    let ([a, b], [c, d]) = (ordered(a, b), ordered(c, d));
    let ([least, b], [c, most]) = (ordered(a, c), ordered(b, d));
    let [b, c] = ordered(b, c);
    [least, b, c, most]
}

/// The fourth and the fifth of eight samples, each half of them sorted. The smaller sample of each pair `a[i]`,
/// `b[3 − i]` is one of the four smallest of all (Batcher's bitonic merge).
#[inline(always)]
fn middle_two<T: Ord + Copy>(a: [T; 4], b: [T; 4]) -> [T; 2] {
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
