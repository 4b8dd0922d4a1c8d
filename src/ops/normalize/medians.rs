//! `--range stf` for samples of 32 and 64 bits: the medians, measured exactly by selection, and the range and the midtones.
//!
//! The definition is that of `stf`, in values instead of fractions of the full depth. Values become fractions x of this full range:
//!
//! * Integers: all values of the type.
//! * Floating point: 0…1 if all colour samples lie in it, as Siril's do. Otherwise the smallest to the largest of them.
//!
//! The arithmetic is 64-bit floating point. It uses only +, −, · and /, always in the same order, so every machine gives the same
//! range. The end c of the range is rounded to the nearest sample, and the distance of c from the mean of the medians to a multiple of
//! 2⁻³² of the full range, at least one. Samples that are NaN or infinite do not count.

use super::curve::Curve;
use super::stf;
use crate::image::{Depth, Image, number};
use crate::ops::MinMax;
use crate::timing::Timeline;
use rayon::prelude::*;

/// What D = 1.4826·MAD is multiplied with.
const CLIPPING: f64 = 2.8;

/// 1.4826·MAD is an estimate of the standard deviation.
const DEVIATION: f64 = 1.4826;

/// D as a part of the full range, if MAD is 0.
const LEAST_DEVIATION: f64 = 0.001;

/// Steps in the full range, for the midtones.
const STEPS: u64 = 1 << 32;

/// The medians of the finite colour samples, channel by channel, as 64-bit floating point. Integers are samples in memory,
/// which begin at 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Medians {
    /// Of each colour channel that has a finite sample.
    channels: Vec<Channel>,
    /// How many samples of the image, alpha included, are not finite.
    pub(super) nonfinite: u64,
}

/// The values of a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Channel {
    min: f64,
    max: f64,
    /// The median. That of an even number of values is the mean of the two in the middle.
    median: f64,
    /// The median of the distances from the median.
    deviation: f64,
}

/// The value of a sample of 32 or 64 bits, if it is finite.
fn value(depth: Depth, sample: u64) -> Option<f64> {
    let value = match depth {
        Depth::Float => number::from_key(sample as u32).into(),
        Depth::Double => number::from_key64(sample),
        Depth::Eight | Depth::Sixteen | Depth::ThirtyTwo => sample as f64,
    };
    value.is_finite().then_some(value)
}

/// The sample nearest to a value.
fn nearest(depth: Depth, value: f64) -> u64 {
    match depth {
        Depth::Float => number::key((value as f32).to_bits()).into(),
        Depth::Double => number::key64(value.to_bits()),
        Depth::Eight | Depth::Sixteen | Depth::ThirtyTwo => (value + 0.5).floor() as u64,
    }
}

impl Medians {
    /// The definition: sorts all samples.
    pub fn naive(image: &Image) -> Medians {
        Medians::measure(image, |values| {
            values.sort_unstable_by(f64::total_cmp);
            let count = values.len();
            values[(count - 1) / 2].midpoint(values[count / 2])
        })
    }

    /// The same, without sorting.
    pub fn cpu(image: &Image, timeline: &mut Timeline) -> Medians {
        let bytes = image.shape().bytes() as u64;
        timeline.host("select", bytes, || Medians::measure(image, select_median))
    }

    /// `median` computes the median of at least one value, and may reorder the values.
    fn measure(image: &Image, median: impl Fn(&mut [f64]) -> f64) -> Medians {
        let shape = image.shape();
        let mut medians = Medians {
            channels: Vec::new(),
            nonfinite: 0,
        };
        for channel in 0..shape.channels {
            let pixels = (0..shape.pixels()).into_par_iter();
            let samples = pixels.map(|pixel| image.samples().at(pixel * shape.channels + channel));
            let values = samples.filter_map(|sample| value(shape.depth, sample));
            let mut values: Vec<f64> = values.collect();
            medians.nonfinite += (shape.pixels() - values.len()) as u64;
            if channel < shape.colours() {
                medians
                    .channels
                    .extend(Channel::measure(&mut values, &median));
            }
        }
        medians
    }

    /// The range, as samples in memory, and the midtones, for an image of this depth; `None` if no sample is finite.
    pub(super) fn range_and_midtones(&self, depth: Depth) -> Option<(MinMax<u64>, Curve)> {
        let full = self.full_range(depth)?;
        let width = full.max - full.min;
        let count = self.channels.len() as f64;
        let medians = self.channels.iter().map(|channel| channel.median);
        let median = medians.clone().sum::<f64>() / count;
        let deviations = self.channels.iter().map(|channel| match channel.deviation {
            0.0 => LEAST_DEVIATION * width,
            deviation => DEVIATION * deviation,
        });
        let clipping = CLIPPING * (deviations.sum::<f64>() / count);
        let middle = full.min.midpoint(full.max);
        let is_inverted = medians.clone().all(|median| median > middle);
        let end = if is_inverted {
            (median + clipping).min(full.max)
        } else {
            (median - clipping).max(full.min)
        };
        let end = nearest(depth, end);
        let distance = (value(depth, end).unwrap_or(median) - median).abs() / width;
        let distance = (distance * STEPS as f64 + 0.5) as u64;
        let midtones = stf::midtones(distance.clamp(1, STEPS), STEPS, is_inverted);
        let [min, max] = [full.min, full.max].map(|value| nearest(depth, value));
        let range = if is_inverted {
            MinMax { min, max: end }
        } else {
            MinMax { min: end, max }
        };
        Some((range, midtones))
    }

    /// The values that become 0 and 1; `None` if no sample is finite.
    fn full_range(&self, depth: Depth) -> Option<MinMax<f64>> {
        let minima = self.channels.iter().map(|channel| channel.min);
        let maxima = self.channels.iter().map(|channel| channel.max);
        let (min, max) = (
            minima.min_by(f64::total_cmp)?,
            maxima.max_by(f64::total_cmp)?,
        );
        let (min, max) = match depth {
            Depth::Float | Depth::Double if min < 0.0 || max > 1.0 => (min, max),
            Depth::Float | Depth::Double => (0.0, 1.0),
            Depth::Eight | Depth::Sixteen | Depth::ThirtyTwo => (0.0, u32::MAX.into()),
        };
        Some(MinMax { min, max })
    }
}

impl Channel {
    /// `median` is that of `Medians::measure`. Returns `None` if there are no values.
    fn measure(values: &mut [f64], median: impl Fn(&mut [f64]) -> f64) -> Option<Channel> {
        let min = values.par_iter().copied().min_by(f64::total_cmp)?;
        let max = values.par_iter().copied().max_by(f64::total_cmp)?;
        let middle = median(values);
        values
            .par_iter_mut()
            .for_each(|value| *value = (*value - middle).abs());
        Some(Channel {
            min,
            max,
            median: middle,
            deviation: median(values),
        })
    }
}

/// The median of at least one value; reorders the values.
fn select_median(values: &mut [f64]) -> f64 {
    let count = values.len();
    let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f64::total_cmp);
    if !count.is_multiple_of(2) {
        return upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp);
    lower.unwrap_or(upper).midpoint(upper)
}
