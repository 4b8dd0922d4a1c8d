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
    /// 8 or 16 bits, of at most 65537 rows: 65535 times the weights, which make up the height.
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
    /// For each new column, the old ones that it covers; computing them for every row would take longer than the sums.
    columns: Vec<Range<usize>>,
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
            Depth::Eight | Depth::Sixteen if from.height <= 65537 => {
                Sums::Short(Rows::new(from, to))
            }
            Depth::Eight | Depth::Sixteen => Sums::Long(Rows::new(from, to)),
            Depth::ThirtyTwo => Sums::Wide(Rows::new(from, to)),
            Depth::Float => Sums::Float(Rows::new(from, to)),
            Depth::Double => Sums::Double(Rows::new(from, to)),
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
    fn new(from: Shape, to: Shape) -> Rows<S> {
        let columns = (0..to.width).map(|new| covered(new, from.width, to.width));
        Rows {
            from,
            to,
            columns: columns.collect(),
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
            band.sum_rows(first + index, from, to, sums);
            self.average_columns(sums, row);
        });
        let mut incomplete = Vec::new();
        if complete < to.height {
            begin(complete, &mut incomplete);
            band.sum_rows(complete, from, to, &mut incomplete);
        }
        self.partial = incomplete;
        self.read = band.rows.end;
        self.made = complete;
        result
    }

    /// A row of the result from the sums of the rows that it covers.
    fn average_columns<T>(&self, sums: &[S], row: &mut [T])
    where
        S: Sum<T>,
    {
        let (from, to) = (self.from, self.to);
        let whole = (from.width * from.height) as u64;
        let pixels = row.chunks_exact_mut(from.channels).zip(&self.columns);
        for (new, (pixel, covered)) in pixels.enumerate() {
            let mut totals = [S::Total::default(); 4];
            for old in covered.clone() {
                let weight = shared(old, to.width, new, from.width);
                let old = &sums[old * from.channels..][..from.channels];
                for (total, sum) in totals.iter_mut().zip(old) {
                    sum.add_to(total, weight);
                }
            }
            for (sample, total) in pixel.iter_mut().zip(totals) {
                *sample = S::mean(total, whole);
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
    /// Adds the weighted rows of the band that new row `new` covers, for each sample of a row.
    fn sum_rows<S: Sum<T>>(&self, new: usize, from: Shape, to: Shape, sums: &mut [S]) {
        let covered = covered(new, from.height, to.height);
        for old in covered.start.max(self.rows.start)..covered.end.min(self.rows.end) {
            let weight = shared(old, to.height, new, from.height);
            let row = (old - self.rows.start) * from.row();
            add_row(&self.samples[row..][..from.row()], weight, sums);
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

/// The steps that an old and a new pixel share along one axis; each is given by its number, and by
/// its width in steps.
pub fn shared(old: usize, old_width: usize, new: usize, new_width: usize) -> usize {
    let end = ((old + 1) * old_width).min((new + 1) * new_width);
    end.saturating_sub((old * old_width).max(new * new_width))
}

/// The old pixels that share steps with a new one, where an axis of `from` old pixels has `to` new ones.
fn covered(new: usize, from: usize, to: usize) -> Range<usize> {
    new * from / to..((new + 1) * from).div_ceil(to)
}

/// A number that sums of one column of samples fit into.
trait Sum<T>: Copy + Default + Send + Sync {
    /// A number that sums of all samples fit into.
    type Total: Copy + Default;

    /// Adds `weight` times a sample.
    fn add(&mut self, weight: usize, sample: T);

    /// Adds `weight` times this sum to a total.
    fn add_to(self, total: &mut Self::Total, weight: usize);

    /// The mean of samples whose weights make up `whole`.
    fn mean(total: Self::Total, whole: u64) -> T;
}

/// The mean of samples of 8 or 16 bits, rounded half up.
fn rounded<T: Sample>(total: u64, whole: u64) -> T {
    // Of 65535 at most, since the weights make up `whole`.
    T::from_value(((2 * total + whole) / (2 * whole)) as u16)
}

impl<T: Sample> Sum<T> for u32 {
    type Total = u64;

    #[inline(always)]
    fn add(&mut self, weight: usize, sample: T) {
        *self += weight as u32 * u32::from(sample.value());
    }

    #[inline(always)]
    fn add_to(self, total: &mut u64, weight: usize) {
        *total += weight as u64 * u64::from(self);
    }

    fn mean(total: u64, whole: u64) -> T {
        rounded(total, whole)
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

    fn mean(total: u64, whole: u64) -> T {
        rounded(total, whole)
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

    fn mean(total: u128, whole: u64) -> u32 {
        let whole = u128::from(whole);
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

    fn mean(total: f64, whole: u64) -> u32 {
        let mean = (total / whole as f64) as f32;
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

    fn mean(total: f64, whole: u64) -> u64 {
        let mean = total / whole as f64;
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
