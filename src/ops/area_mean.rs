//! The mean of the area that each new pixel covers, for images that become smaller: `--fit` and the levels of pyramids.
//!
//! Integers are the exact mean, rounded half up, as `fit` defines it; samples with a sign too, since memory has them with half
//! the range added. Floating point is summed in 64 bits, first the rows from top to bottom and then the columns from left to
//! right, and rounded once to the sample type. A NaN in the area makes the mean NaN.

use super::cpu::Sample;
use crate::image::number::{from_key, from_key64, key, key64};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples, Shape};
use bytemuck::Pod;
use rayon::prelude::*;
use std::ops::Range;

/// Makes a page smaller whose rows come in bands, from top to bottom.
pub struct Reduction {
    sums: Sums,
}

/// The sums for a depth.
enum Sums {
    /// 8 or 16 bits, of at most 65537 rows, so that 65535 times the weights, which make up the height, are of 32 bits; and of at
    /// most 2³² pixels.
    Short(Rows<u32>),
    /// 8 or 16 bits.
    Long(Rows<u64>),
    /// Integers of 32 bits.
    Wide(Rows<WideSum>),
    /// Keys of floating point of 32 bits.
    Float(Rows<FloatSum>),
    /// Keys of floating point of 64 bits.
    Double(Rows<DoubleSum>),
}

/// The rows so far.
struct Rows<S> {
    from: Shape,
    to: Shape,
    /// How rows and columns share steps.
    down: Axis,
    across: Axis,
    /// For each new column, the old ones that it covers and the steps that it shares with the first and the last; computing
    /// them for every row would take longer than the sums.
    columns: Vec<Covered>,
    divisor: Divisor,
    /// Old rows so far.
    read: usize,
    /// New rows so far.
    made: usize,
    /// For each sample of an old row, the sum of the rows that the next new row covers, so far.
    partial: Vec<S>,
}

impl Reduction {
    /// Pages of shape `from` become pages of shape `to`, which has fewer or as many rows and columns, and the same channels
    /// and depth.
    pub fn new(from: Shape, to: Shape) -> Reduction {
        let sums = match from.depth {
            Depth::Eight | Depth::Sixteen
                if from.height <= 65537 && from.width * from.height <= 1 << 32 =>
            {
                Sums::Short(Rows::new(from, to, Axis::reduced))
            }
            Depth::Eight | Depth::Sixteen => Sums::Long(Rows::new(from, to, Axis::reduced)),
            Depth::ThirtyTwo => Sums::Wide(Rows::new(from, to, Axis::reduced)),
            // Smaller weights would round the sums otherwise.
            Depth::Float => Sums::Float(Rows::new(from, to, Axis::new)),
            Depth::Double => Sums::Double(Rows::new(from, to, Axis::new)),
        };
        Reduction { sums }
    }

    /// Adds the next rows of the page, whose shape but for the height is that of the page. Returns the samples of the new rows
    /// that are complete.
    pub fn add(&mut self, band: &Image) -> Samples {
        match (&mut self.sums, band.samples()) {
            (Sums::Short(rows), Samples::U8(band)) => rows.add(band).into(),
            (Sums::Short(rows), Samples::U16(band)) => rows.add(band).into(),
            (Sums::Long(rows), Samples::U8(band)) => rows.add(band).into(),
            (Sums::Long(rows), Samples::U16(band)) => rows.add(band).into(),
            (Sums::Wide(rows), Samples::U32(band)) => rows.add(band).into(),
            (Sums::Float(rows), Samples::U32(band)) => rows.add(band).into(),
            (Sums::Double(rows), Samples::U64(band)) => rows.add(band).into(),
            _ => unreachable!("a band of another depth than its page"),
        }
    }
}

impl<S> Rows<S> {
    fn new(from: Shape, to: Shape, axis: impl Fn(usize, usize) -> Axis) -> Rows<S> {
        let down = axis(from.height, to.height);
        let across = axis(from.width, to.width);
        Rows {
            from,
            to,
            down,
            across,
            columns: (0..to.width).map(|new| across.covered(new)).collect(),
            divisor: Divisor::new((down.new * across.new) as u64),
            read: 0,
            made: 0,
            partial: Vec::new(),
        }
    }

    /// Computes each new row separately: first the weighted sum of the rows that it covers, in vector code, and then that of
    /// the columns, in one row.
    fn add<T: Pod + Send + Sync>(&mut self, band: &[T]) -> Vec<T>
    where
        S: Sum<T>,
    {
        let (from, to) = (self.from, self.to);
        let rows = self.read..self.read + band.len() / from.row();
        let complete = rows.end * to.height / from.height;
        let band = Band {
            samples: band,
            rows,
        };
        let first = self.made;
        let partial = std::mem::take(&mut self.partial);
        // Only the first new row may have begun in the band before.
        let begin = |new: usize, sums: &mut Vec<S>| {
            sums.clear();
            if new == first {
                sums.extend_from_slice(&partial);
            }
            sums.resize(from.row(), S::default());
        };
        let mut result = vec![T::zeroed(); (complete - first) * to.row()];
        let new_rows = result.par_chunks_mut(to.row()).enumerate();
        new_rows.for_each_init(Vec::new, |sums, (index, row)| {
            begin(first + index, sums);
            band.sum_rows(self.down.covered(first + index), self.down, sums);
            self.average_columns(sums, row);
        });
        let mut incomplete = Vec::new();
        if complete < to.height {
            begin(complete, &mut incomplete);
            band.sum_rows(self.down.covered(complete), self.down, &mut incomplete);
        }
        self.partial = incomplete;
        self.read = band.rows.end;
        self.made = complete;
        result
    }

    /// A row of the result from the sums of the rows that it covers.
    fn average_columns<T: Copy>(&self, sums: &[S], row: &mut [T])
    where
        S: Sum<T>,
    {
        match self.from.channels {
            1 => self.average_pixels::<T, 1>(sums, row),
            2 => self.average_pixels::<T, 2>(sums, row),
            3 => self.average_pixels::<T, 3>(sums, row),
            _ => self.average_pixels::<T, 4>(sums, row),
        }
    }

    /// The same for a number of channels.
    fn average_pixels<T: Copy, const CHANNELS: usize>(&self, sums: &[S], row: &mut [T])
    where
        S: Sum<T>,
    {
        let (sums, _) = sums.as_chunks::<CHANNELS>();
        let (pixels, _) = row.as_chunks_mut::<CHANNELS>();
        match self.across {
            Axis { old: 1, new: 2 } => {
                return average_boxes(sums.as_chunks::<2>().0, &self.divisor, pixels);
            }
            Axis { old: 1, new: 4 } => {
                return average_boxes(sums.as_chunks::<4>().0, &self.divisor, pixels);
            }
            _ => {}
        }
        for (pixel, covered) in pixels.iter_mut().zip(&self.columns) {
            let mut totals = [S::Total::default(); CHANNELS];
            let mut add = |old: &[S; CHANNELS], weight| {
                for (total, sum) in totals.iter_mut().zip(old) {
                    sum.add_to(total, weight);
                }
            };
            let old = &sums[covered.old.clone()];
            add(&old[0], covered.first);
            if let Some((last, middle)) = old[1..].split_last() {
                for old in middle {
                    add(old, self.across.old);
                }
                add(last, covered.last);
            }
            for (sample, total) in pixel.iter_mut().zip(totals) {
                *sample = S::mean(total, &self.divisor);
            }
        }
    }
}

/// Some rows of a page.
struct Band<'a, T> {
    samples: &'a [T],
    /// Their numbers in the page.
    rows: Range<usize>,
}

impl<T: Copy> Band<'_, T> {
    /// Adds the weighted rows of the band that a new row covers, for each sample of a row.
    fn sum_rows<S: Sum<T>>(&self, covered: Covered, axis: Axis, sums: &mut [S]) {
        let Covered { old: rows, .. } = &covered;
        for old in rows.start.max(self.rows.start)..rows.end.min(self.rows.end) {
            let weight = match old {
                old if old == rows.start => covered.first,
                old if old + 1 == rows.end => covered.last,
                _ => axis.old,
            };
            let row = (old - self.rows.start) * sums.len();
            add_row(&self.samples[row..][..sums.len()], weight, sums);
        }
    }
}

per_level! {
    highest Avx512;

    fn add_row[T: Copy, S: Sum<T>](row: &[T], weight: usize, sums: &mut [S]) {
        for (sum, sample) in sums.iter_mut().zip(row) {
            sum.add(weight, *sample);
        }
    }
}

per_level! {
    highest Avx512;

    /// A row of the result where each new pixel covers `SIDE` whole columns.
    fn average_boxes[T: Copy, S: Sum<T>, const SIDE: usize, const CHANNELS: usize](
        sums: &[[[S; CHANNELS]; SIDE]],
        divisor: &Divisor,
        row: &mut [[T; CHANNELS]],
    ) {
        for (pixel, covered) in row.iter_mut().zip(sums) {
            for channel in 0..CHANNELS {
                let mut total = S::Total::default();
                for old in covered {
                    old[channel].add_to(&mut total, 1);
                }
                pixel[channel] = S::mean(total, divisor);
            }
        }
    }
}

/// How the old and the new pixels of an axis share steps: the width of each in steps.
#[derive(Clone, Copy)]
struct Axis {
    old: usize,
    new: usize,
}

impl Axis {
    /// An axis of `from` old pixels and `to` new ones: an old pixel has `to` steps.
    fn new(from: usize, to: usize) -> Axis {
        Axis { old: to, new: from }
    }

    /// The same in the longest steps.
    fn reduced(from: usize, to: usize) -> Axis {
        let (mut divisor, mut rest) = (from, to);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Axis::new(from / divisor, to / divisor)
    }

    /// The old pixels that share steps with a new one.
    fn covered(self, new: usize) -> Covered {
        let (start, end) = (new * self.new, (new + 1) * self.new);
        let old = start / self.old..end.div_ceil(self.old);
        Covered {
            first: shared(old.start, self.old, new, self.new),
            last: shared(old.end - 1, self.old, new, self.new),
            old,
        }
    }
}

/// The old pixels that a new one covers.
struct Covered {
    old: Range<usize>,
    /// The steps that it shares with the first and the last; it covers those between completely.
    first: usize,
    last: usize,
}

/// The steps that an old and a new pixel share along one axis; each is given by its number, and by
/// its width in steps.
pub fn shared(old: usize, old_width: usize, new: usize, new_width: usize) -> usize {
    let end = ((old + 1) * old_width).min((new + 1) * new_width);
    end.saturating_sub((old * old_width).max(new * new_width))
}

/// The sum of all weights, by which totals are divided.
struct Divisor {
    whole: u64,
    /// floor(whole / 2) + 1/2.
    half: f64,
    reciprocal: f64,
}

impl Divisor {
    fn new(whole: u64) -> Divisor {
        Divisor {
            whole,
            half: (whole / 2) as f64 + 0.5,
            reciprocal: 1.0 / whole as f64,
        }
    }
}

/// A number that sums of one column of samples fit into.
trait Sum<T>: Copy + Default + Send + Sync {
    /// A number that sums of all samples fit into.
    type Total: Copy + Default;

    /// Adds `weight` times a sample.
    fn add(&mut self, weight: usize, sample: T);

    /// Adds `weight` times this sum to a total.
    fn add_to(self, total: &mut Self::Total, weight: usize);

    /// The mean of samples with this total.
    fn mean(total: Self::Total, divisor: &Divisor) -> T;
}

impl<T: Sample> Sum<T> for u32 {
    /// A whole number of less than 2⁴⁸, for fast conversions and products.
    type Total = f64;

    #[inline(always)]
    fn add(&mut self, weight: usize, sample: T) {
        *self += weight as u32 * u32::from(sample.value());
    }

    #[inline(always)]
    fn add_to(self, total: &mut f64, weight: usize) {
        *total += weight as f64 * f64::from(self);
    }

    #[inline(always)]
    fn mean(total: f64, divisor: &Divisor) -> T {
        // floor(total / whole + 1/2) = floor((total + floor(whole/2)) / whole). The half that is added keeps the quotient at least
        // 2⁻³³ away from a whole number for a divisor of at most 2³², and the error of the product is less than 2⁻³⁵.
        T::from_value(((total + divisor.half) * divisor.reciprocal) as u16)
    }
}

impl<T: Sample> Sum<T> for u64 {
    type Total = u64;

    #[inline(always)]
    fn add(&mut self, weight: usize, sample: T) {
        *self += weight as u64 * u64::from(sample.value());
    }

    #[inline(always)]
    fn add_to(self, total: &mut u64, weight: usize) {
        *total += weight as u64 * self;
    }

    fn mean(total: u64, divisor: &Divisor) -> T {
        let whole = divisor.whole;
        T::from_value(((2 * total + whole) / (2 * whole)) as u16)
    }
}

/// A sum of integers of 32 bits.
#[derive(Clone, Copy, Default)]
struct WideSum(u64);

impl Sum<u32> for WideSum {
    type Total = u128;

    #[inline(always)]
    fn add(&mut self, weight: usize, sample: u32) {
        self.0 += weight as u64 * u64::from(sample);
    }

    #[inline(always)]
    fn add_to(self, total: &mut u128, weight: usize) {
        *total += weight as u128 * u128::from(self.0);
    }

    fn mean(total: u128, divisor: &Divisor) -> u32 {
        let whole = u128::from(divisor.whole);
        ((2 * total + whole) / (2 * whole)) as u32
    }
}

/// A sum of floating-point numbers of 32 bits.
#[derive(Clone, Copy, Default)]
struct FloatSum(f64);

impl Sum<u32> for FloatSum {
    type Total = f64;

    #[inline(always)]
    fn add(&mut self, weight: usize, sample: u32) {
        self.0 += weight as f64 * f64::from(from_key(sample));
    }

    #[inline(always)]
    fn add_to(self, total: &mut f64, weight: usize) {
        *total += weight as f64 * self.0;
    }

    fn mean(total: f64, divisor: &Divisor) -> u32 {
        let mean = (total / divisor.whole as f64) as f32;
        // The bits of a computed NaN differ from processor to processor.
        key(if mean.is_nan() { f32::NAN } else { mean }.to_bits())
    }
}

/// A sum of floating-point numbers of 64 bits.
#[derive(Clone, Copy, Default)]
struct DoubleSum(f64);

impl Sum<u64> for DoubleSum {
    type Total = f64;

    #[inline(always)]
    fn add(&mut self, weight: usize, sample: u64) {
        self.0 += weight as f64 * from_key64(sample);
    }

    #[inline(always)]
    fn add_to(self, total: &mut f64, weight: usize) {
        *total += weight as f64 * self.0;
    }

    fn mean(total: f64, divisor: &Divisor) -> u64 {
        let mean = total / divisor.whole as f64;
        key64(if mean.is_nan() { f64::NAN } else { mean }.to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(width: usize, height: usize, depth: Depth) -> Shape {
        Shape {
            width,
            height,
            channels: 1,
            depth,
        }
    }

    fn mean(samples: impl Into<Samples>, from: Shape, to: Shape) -> Samples {
        Reduction::new(from, to).add(&Image::new(from, samples.into()))
    }

    /// 3 × 2 pixels as one and a half columns each: (2·1 + 2 + 2·4 + 5) / 6 = 2.83, (2 + 2·3 + 5 + 2·6) / 6 = 4.17. Halves
    /// round up.
    #[test]
    fn means_by_hand() {
        let (from, to) = (shape(3, 2, Depth::ThirtyTwo), shape(2, 1, Depth::ThirtyTwo));
        let expected = Samples::from(vec![3u32, 4]);
        assert_eq!(mean(vec![1u32, 2, 3, 4, 5, 6], from, to), expected);
        let halves = [0, 1, u32::MAX, u32::MAX - 1, u32::MAX, u32::MAX];
        let (from, to) = (shape(2, 3, Depth::ThirtyTwo), shape(1, 3, Depth::ThirtyTwo));
        let expected = Samples::from(vec![1, u32::MAX, u32::MAX]);
        assert_eq!(mean(halves.to_vec(), from, to), expected);
        let floats = [0.5f32, 1.0, -2.0, 0.0].map(|value| key(value.to_bits()));
        let (from, to) = (shape(2, 2, Depth::Float), shape(1, 1, Depth::Float));
        let expected = Samples::from(vec![key((-0.125f32).to_bits())]);
        assert_eq!(mean(floats.to_vec(), from, to), expected);
        let doubles = [1.0, f64::NAN, 1.5, 2.0].map(|value: f64| key64(value.to_bits()));
        let (from, to) = (shape(2, 2, Depth::Double), shape(1, 2, Depth::Double));
        let expected = [f64::NAN, 1.75].map(|value| key64(value.to_bits()));
        let expected = Samples::from(expected.to_vec());
        assert_eq!(mean(doubles.to_vec(), from, to), expected);
    }

    /// The product in floating point rounds as the quotient of whole numbers does, on both sides of each half.
    #[test]
    fn products_round_as_quotients() {
        let mut cases = 0;
        let (odd, even) = ([1, 3, 5, 7, 9, 255, 65_535, 65_537], [2, 4, 48, 65_536]);
        let large = [(1 << 31) + 11, (1 << 32) - 5, 1 << 32];
        for whole in odd.into_iter().chain(even).chain(large) {
            let divisor = Divisor::new(whole);
            for value in (0..65_535).step_by(13).chain([65_534, 65_535]) {
                let last = ((2 * value + 1) * whole - 1) / 2;
                for total in [value * whole, last, last + 1] {
                    if total <= 65_535 * whole {
                        let product: u16 = <u32 as Sum<u16>>::mean(total as f64, &divisor);
                        let quotient: u16 = <u64 as Sum<u16>>::mean(total, &divisor);
                        assert_eq!(product, quotient, "{total} / {whole}");
                        cases += 1;
                    }
                }
            }
        }
        assert!(cases > 200_000, "{cases}");
    }

    /// Bands of any height give the bytes of the whole page.
    #[test]
    fn bands_do_not_matter() {
        for (height, new_height) in [(7, 3), (9, 4), (8, 4), (5, 5), (6, 1), (1, 1)] {
            let from = shape(5, height, Depth::Float);
            let to = shape(3, new_height, Depth::Float);
            let value = |index: usize| (index as f32 * 0.37).sin().to_bits();
            let samples: Vec<u32> = (0..from.samples()).map(|it| key(value(it))).collect();
            let image = Image::new(from, samples.into());
            let whole = Reduction::new(from, to).add(&image);
            assert_eq!(whole.len(), to.samples());
            for rows in 1..height {
                let mut reduction = Reduction::new(from, to);
                let mut bytes = Vec::new();
                for top in (0..height).step_by(rows) {
                    let band = image.rows(top..(top + rows).min(height));
                    bytes.extend_from_slice(reduction.add(&band).as_bytes());
                }
                assert!(
                    bytes == whole.as_bytes(),
                    "{height} to {new_height}, {rows}"
                );
            }
        }
    }
}
