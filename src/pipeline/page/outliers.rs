//! Whether a few samples, as hot pixels are, decide the range of an image, so that all others come out nearly
//! alike. That is estimated from the samples at the points of a lattice, which costs next to nothing, and only for
//! pages whose own minimum and maximum are the range.

use crate::exec::{Pixels, Task};
use crate::image::Image;
use crate::image::number::Number;
use crate::ops::normalize::OUTLIERS;
use crate::ops::{SampleTypes, Statistic};
use std::ops::Range;

/// The part of the range that 99.8 % of the samples fill at least, unless outliers decide it.
const LEAST_PART: f64 = 1.0 / 16.0;

/// The fewest samples that tell what most of an image is like.
const FEWEST: usize = 400;

/// The values at 0.1 and 99.9 % of the samples of a lattice: of all colours together, or of each.
pub struct Spread(Vec<(f64, f64)>);

impl Spread {
    /// That of the pixels that `tasks` are given, if they are one `normalize` by the page's own range. `None` where a
    /// GPU decoded the pixels: to copy the points of the lattice to the host would stall its queue, so that nothing is
    /// said of these images.
    pub fn measure(tasks: &[Task], pixels: &Pixels) -> Option<Spread> {
        let ([task], Pixels::Host(image)) = (tasks, pixels) else {
            return None;
        };
        let own_range = task.statistics.is_none() && task.op.statistic() == Statistic::MinMax;
        if !own_range || task.op.name() != "normalize" {
            return None;
        }
        let colours = image.shape().colours();
        let groups: Vec<Range<usize>> = if task.op.per_channel() {
            (0..colours).map(|colour| colour..colour + 1).collect()
        } else {
            std::iter::once(0..colours).collect()
        };
        let spreads = groups.into_iter().map(|channels| {
            let mut values = lattice(image, &task.types, channels);
            if values.len() < FEWEST {
                return None;
            }
            let cut = values.len() / 1000;
            let last = values.len() - 1 - cut;
            let low = *values.select_nth_unstable_by(cut, f64::total_cmp).1;
            let high = *values.select_nth_unstable_by(last, f64::total_cmp).1;
            Some((low, high))
        });
        spreads.collect::<Option<Vec<_>>>().map(Spread)
    }

    /// The warning about the `ranges` that were used. None where `--clip` would change nothing, since it leaves one
    /// value.
    pub fn warning(&self, ranges: &[(Number, Number)]) -> Option<String> {
        let decided = |((low, high), (min, max)): (&(f64, f64), &(Number, Number))| {
            low < high && high - low < LEAST_PART * (max.as_f64() - min.as_f64())
        };
        let any = self.0.len() == ranges.len() && self.0.iter().zip(ranges).any(decided);
        any.then(|| OUTLIERS.into())
    }
}

/// The values of some channels at the points of a lattice, in the units of the file; of floating point the finite
/// ones.
fn lattice(image: &Image, types: &SampleTypes, channels: Range<usize>) -> Vec<f64> {
    let shape = image.shape();
    let step = u64::from(types.read.depth.steps(types.depth));
    let indices = shape.lattice().flat_map(|pixel| {
        let first = pixel * shape.channels;
        channels.clone().map(move |channel| first + channel)
    });
    let value = |index| {
        let sample = image.samples().at(index) / step;
        types.read.number(sample).as_f64()
    };
    indices
        .map(value)
        .filter(|value| value.is_finite())
        .collect()
}
