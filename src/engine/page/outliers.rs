//! Detects outliers, such as hot pixels, that determine the range of an image, so that all other samples become nearly equal.
//! The estimate uses only the samples at the points of a lattice, so it takes almost no time. It is made only for pages that
//! are scaled from their own minimum and maximum.

use crate::engine::executor::{Pixels, Task};
use crate::image::metadata::Hint;
use crate::image::number::{FINITE, FINITE64, Number};
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::Statistic;
use std::ops::Range;

/// Outliers determine the range if 99.8 % of the samples fill less than this share of it.
const MIN_FILLED_SHARE: f64 = 1.0 / 16.0;

/// The fewest samples for a reliable estimate.
const MIN_SAMPLES: usize = 400;

/// The values of the 0.1th and the 99.9th percentile of the samples of a lattice: one pair for all colours, or one for each.
pub struct Spread(Vec<(f64, f64)>);

impl Spread {
    /// Measures the input of `tasks`, if they are a single `normalize` that measures the page's own range. Returns `None` if a
    /// GPU decoded the pixels: copying the points of the lattice to the host would stall the GPU's queue.
    pub fn measure(tasks: &[Task], pixels: &Pixels) -> Option<Spread> {
        let ([task], Pixels::Host(image)) = (tasks, pixels) else {
            return None;
        };
        let own_range =
            task.statistics.is_none() && task.op.properties().statistic == Statistic::MinMax;
        if !own_range || task.op.properties().name != "normalize" {
            return None;
        }
        let colours = image.shape().colours();
        let groups: Vec<Range<usize>> = if task.op.properties().per_channel {
            (0..colours).map(|colour| colour..colour + 1).collect()
        } else {
            std::iter::once(0..colours).collect()
        };
        let spreads = groups.into_iter().map(|channels| {
            let mut values = lattice(image, channels);
            if values.len() < MIN_SAMPLES {
                return None;
            }
            let cut = values.len() / 1000;
            let (_, &mut low, above) = values.select_nth_unstable(cut);
            let (_, &mut high, _) = above.select_nth_unstable(above.len() - 1 - cut);
            let step = u64::from(task.types.read.depth.steps(task.types.depth));
            let value = |sample: u64| task.types.read.number(sample / step).as_f64();
            Some((value(low), value(high)))
        });
        spreads.collect::<Option<Vec<_>>>().map(Spread)
    }

    /// The hint about the `ranges` that were used. There is none if 99.8 % of the samples are equal: `--clip` would leave a
    /// range of one value, which cannot be scaled.
    pub fn hint(&self, ranges: &[(Number, Number)]) -> Option<Hint> {
        let determined_by_outliers =
            |((low, high), (min, max)): (&(f64, f64), &(Number, Number))| {
                low < high && high - low < MIN_FILLED_SHARE * (max.as_f64() - min.as_f64())
            };
        let any =
            self.0.len() == ranges.len() && self.0.iter().zip(ranges).any(determined_by_outliers);
        any.then_some(Hint::Outliers)
    }
}

/// The hint about an image that was reduced to 8 bits and shows almost nothing: no colour sample at the points of the lattice has a
/// sixteenth of the full range. `ranges` are those from which its values were scaled, if they were. There is no hint about an image
/// of one value, which cannot be scaled.
pub fn hint_of_darkness(from: Depth, image: &Image, ranges: &[(Number, Number)]) -> Option<Hint> {
    let shape = image.shape();
    if from == Depth::Eight || shape.depth != Depth::Eight {
        return None;
    }
    let values = lattice(image, 0..shape.colours());
    let is_dark = values.len() >= MIN_SAMPLES && values.iter().all(|&sample| sample < 16);
    let hint = match ranges {
        [] => Some(Hint::AlmostBlack),
        _ if ranges.iter().any(|(min, max)| min < max) => Some(Hint::AlmostBlackInRange),
        _ => None,
    };
    hint.filter(|_| is_dark)
}

/// The samples of some channels at the points of a lattice, without infinities and NaN. They are integers as they are stored in
/// memory, which have the same order as the values that they represent.
fn lattice(image: &Image, channels: Range<usize>) -> Vec<u64> {
    match image.samples() {
        Samples::U8(samples) => at_points(samples, image.shape(), channels),
        Samples::U16(samples) => at_points(samples, image.shape(), channels),
        Samples::U32(samples) => at_points(samples, image.shape(), channels),
        Samples::U64(samples) => at_points(samples, image.shape(), channels),
    }
}

fn at_points<S: Copy + Into<u64>>(samples: &[S], shape: Shape, channels: Range<usize>) -> Vec<u64> {
    let finite = match shape.depth {
        Depth::Float => u64::from(*FINITE.start())..=u64::from(*FINITE.end()),
        Depth::Double => FINITE64,
        _ => 0..=u64::MAX,
    };
    let samples_of = |pixel| &samples[pixel * shape.channels..][channels.clone()];
    let all = shape.lattice().flat_map(samples_of);
    all.map(|&sample| sample.into())
        .filter(|sample| finite.contains(sample))
        .collect()
}
