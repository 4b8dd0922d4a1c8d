//! Results in floating point: of whole numbers with `--to f32`, and of floating-point images.

use super::{Projection, is_alpha};
use crate::image::number::{FINITE, key};
use crate::image::{Shape, Values};
use anyhow::{Result, ensure};

/// The value of whole samples.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    shape: Shape,
    zero: f64,
    full: f64,
}

impl Whole {
    /// The samples of images of this shape.
    pub fn new(shape: Shape, signed: bool) -> Whole {
        let values = Values {
            depth: shape.depth,
            signed,
        };
        Whole {
            shape,
            zero: values.zero().into(),
            full: shape.depth.full().into(),
        }
    }

    /// The mean of `count` samples at index `i` of an image. Alpha is from 0 to 1.
    pub fn mean(&self, i: usize, sum: f64, count: f64) -> f64 {
        if is_alpha(&self.shape, i) {
            sum / (count * self.full)
        } else {
            self.sum(sum, count) / count
        }
    }

    /// The sum of the values of `count` samples, which is exact.
    pub fn sum(&self, sum: f64, count: f64) -> f64 {
        sum - count * self.zero
    }

    /// The projection of `count` samples at index `i`, whose sum is `sum`.
    pub fn total(&self, how: Projection, i: usize, sum: f64, count: f64) -> f64 {
        if how == Projection::Sum && !is_alpha(&self.shape, i) {
            self.sum(sum, count)
        } else {
            self.mean(i, sum, count)
        }
    }
}

/// The sample of 32 bits for a value.
#[inline(always)]
pub(super) fn sample(value: f64) -> u32 {
    key((value as f32).to_bits())
}

/// For the definition: the sum of the values that are combined, in the order of the images, and their number.
pub(super) fn combined(how: Projection, values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    match how {
        Projection::Sum | Projection::Mean => {
            let sum = values.iter().fold(0.0, |sum, value| sum + value);
            (sum, count as f64)
        }
        Projection::Min => (sorted[0], 1.0),
        Projection::Max => (sorted[count - 1], 1.0),
        Projection::Median => (sorted[(count - 1) / 2] + sorted[count / 2], 2.0),
    }
}

/// Refuses sums that became infinite when they were rounded.
///
/// # Errors
/// Such a sum.
pub(super) fn check_finite(samples: &[u32]) -> Result<()> {
    ensure!(
        samples.iter().all(|sample| FINITE.contains(sample)),
        "a sum exceeds the largest 32-bit floating-point number (use project mean)"
    );
    Ok(())
}
