//! Hot pixels: a sample that exceeds the median of its up to 8 neighbours by more than a threshold is
//! replaced by it. Neighbours are those of the same channel in the image as it was, and at the border
//! only those that exist; for an even number the median is ⌊(a + b)/2 + 1/2⌋, and in floating point (a + b)/2 in doubles,
//! rounded to 32 bits if it replaces the sample. Alpha and images of one pixel do not change.

use crate::image::buffer::Buffer;
use crate::image::number::{from_key, key};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Shape};
use crate::ops::samples_from;
use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;
use std::ops::BitOr;

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
pub(super) trait Comparable: Pod + Ord + BitOr<Output = Self> + Send + Sync {
    /// The smallest and the largest that there is.
    const LEAST: Self;
    const MOST: Self;

    /// A threshold, as the excess of samples is compared with it.
    type Threshold: Copy + Send + Sync;

    /// The threshold for a whole number.
    fn threshold(value: u16) -> Self::Threshold;

    /// `LEAST`, unless the sample may exceed a median that is not smaller than `bound` by more than the threshold.
    fn excess(self, bound: Self, threshold: Self::Threshold) -> Self;

    /// The sample, or the mean of the two middle neighbours if it exceeds that by more than the threshold.
    fn replaced(self, middle: [Self; 2], threshold: Self::Threshold) -> Self;
}

/// The integers are computed in their own type, for which vectors have the most lanes.
macro_rules! comparable {
    ($type:ident) => {
        impl Comparable for $type {
            const LEAST: $type = 0;
            const MOST: $type = $type::MAX;

            type Threshold = $type;

            fn threshold(value: u16) -> $type {
                // No sample exceeds the largest one.
                $type::try_from(value).unwrap_or($type::MAX)
            }

            #[inline(always)]
            fn excess(self, bound: $type, threshold: $type) -> $type {
                self.saturating_sub(bound).saturating_sub(threshold)
            }

            #[inline(always)]
            fn replaced(self, [low, high]: [$type; 2], threshold: $type) -> $type {
                let middle = (u32::from(low) + u32::from(high)).div_ceil(2) as $type;
                if self.saturating_sub(middle) > threshold {
                    middle
                } else {
                    self
                }
            }
        }
    };
}

comparable!(u8);
comparable!(u16);

impl Comparable for u32 {
    const LEAST: u32 = 0;
    const MOST: u32 = u32::MAX;

    type Threshold = f64;

    fn threshold(value: u16) -> f64 {
        value.into()
    }

    #[inline(always)]
    fn excess(self, bound: u32, threshold: f64) -> u32 {
        // Rounding keeps the order. A difference that is NaN decides nothing.
        let is_below = from_key(self) - from_key(bound) < threshold as f32;
        u32::from(!is_below)
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

/// Samples that are tested together: a few vectors.
const BLOCK: usize = 64;

per_level! {
    highest Avx512;

    /// Replaces the hot samples of `inner`, whose neighbours are `near`. If their number `is_odd`, the fourth is their median.
    fn replace_inner[T: Comparable](inner: &mut [T], near: [&[T]; 8], is_odd: bool, threshold: T::Threshold) {
        let near = near.map(|samples| &samples[..inner.len()]);
        let whole = near.map(|samples| samples.as_chunks().0);
        let (blocks, rest) = inner.as_chunks_mut();
        for (index, block) in blocks.iter_mut().enumerate() {
            replace_in_block(block, whole.map(|blocks| &blocks[index]), is_odd, threshold);
        }
        if rest.is_empty() {
            return;
        }
        match inner.last_chunk_mut().zip(last_blocks(near)) {
            // It overlaps the block before: the median that a sample was replaced by is not hot.
            Some((block, near)) => replace_in_block(block, near, is_odd, threshold),
            None => {
                let mut block = padded(inner);
                let near = near.map(padded);
                replace_in_block(&mut block, near.each_ref(), is_odd, threshold);
                inner.copy_from_slice(&block[..inner.len()]);
            }
        }
    }
}

/// The last block of each, if they have as many samples.
#[inline(always)]
fn last_blocks<T>(near: [&[T]; 8]) -> Option<[&[T; BLOCK]; 8]> {
    let [a, b, c, d, e, f, g, h] = near.map(|samples| samples.last_chunk());
    Some([a?, b?, c?, d?, e?, f?, g?, h?])
}

/// Fewer samples than a block, and as many more as it needs.
fn padded<T: Comparable>(samples: &[T]) -> [T; BLOCK] {
    let mut block = [T::LEAST; BLOCK];
    block[..samples.len()].copy_from_slice(samples);
    block
}

/// Replaces the hot samples of a block, whose neighbours are `near`.
#[inline(always)]
fn replace_in_block<T: Comparable>(
    block: &mut [T; BLOCK],
    near: [&[T; BLOCK]; 8],
    is_odd: bool,
    threshold: T::Threshold,
) {
    let [a, b, c, d, e, f, g, h] = near;
    // The smallest of five neighbours is not larger than the fourth of all eight. Most blocks have no sample that
    // exceeds even that.
    let mut excess = T::LEAST;
    for i in 0..BLOCK {
        let bound = a[i].min(b[i]).min(c[i].min(d[i])).min(e[i]);
        excess = excess | block[i].excess(bound, threshold);
    }
    if excess == T::LEAST {
        return;
    }
    // In a loop of its own, the network becomes one of vectors for every type.
    let mut middle = [[T::LEAST; BLOCK]; 2];
    for i in 0..BLOCK {
        let [low, high] = middle_two(
            sorted([a[i], b[i], c[i], d[i]]),
            sorted([e[i], f[i], g[i], h[i]]),
        );
        middle[0][i] = low;
        middle[1][i] = if is_odd { low } else { high };
    }
    for i in 0..BLOCK {
        block[i] = block[i].replaced([middle[0][i], middle[1][i]], threshold);
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
    use crate::image::Samples;

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

    /// Every sample type, at lengths around those of blocks, with contents in which few, some or all blocks have hot samples:
    /// the bands give what the definition says.
    #[test]
    fn blocks_give_the_definition() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let numbers = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0];
        let (mut cases, mut changed) = (0, 0);
        for width in [1, 2, 3, 21, 33, 63, 64, 65, 66, 67, 128, 130, 195] {
            for (height, channels) in [(1, 1), (2, 3), (3, 4), (5, 2), (37, 1)] {
                for depth in [Depth::Eight, Depth::Sixteen, Depth::Float] {
                    for (threshold, rare) in [(0, 2), (3, 50), (40, 200), (65_535, 9)] {
                        let shape = Shape {
                            width,
                            height,
                            channels,
                            depth,
                        };
                        let sample = || {
                            let is_rare = random(rare) == 0;
                            match depth {
                                Depth::Float if is_rare && random(2) == 0 => {
                                    key(numbers[random(5) as usize].to_bits()).into()
                                }
                                Depth::Float => {
                                    let most = if is_rare { 4_000_000 } else { 90 };
                                    let value = random(most) as f32 / 8.0 - 5.0;
                                    key(value.to_bits()).into()
                                }
                                _ if is_rare => random(1 + u64::from(depth.full())),
                                _ => 100 + random(9),
                            }
                        };
                        let samples: Vec<u64> = std::iter::repeat_with(sample)
                            .take(shape.samples())
                            .collect();
                        let image = Image::new(shape, samples_from(depth, samples.into_iter()));
                        let expected = naive(image.clone(), Some(threshold));
                        let mut found = image.clone();
                        match found.samples_mut() {
                            Samples::U8(samples) => {
                                replace_in_bands(&shape, samples, threshold, |_| {})
                            }
                            Samples::U16(samples) => {
                                replace_in_bands(&shape, samples, threshold, |_| {})
                            }
                            Samples::U32(samples) => {
                                replace_in_bands(&shape, samples, threshold, |_| {})
                            }
                            Samples::U64(_) => unreachable!("no such depth"),
                        }
                        .expect("memory");
                        assert!(found == expected, "{shape}, {threshold}");
                        cases += 1;
                        changed += usize::from(found != image);
                    }
                }
            }
        }
        assert!(cases == 780 && changed > 400, "{cases}, {changed}");
    }
}
