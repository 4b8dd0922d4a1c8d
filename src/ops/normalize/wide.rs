//! `normalize` for 32- and 64-bit samples, which become 16 bits without sign, or 8.

use super::{ALL_IGNORED, Normalize, channel_description, clip_collapsed};
use crate::gpu::job::Job;
use crate::image::metadata::{Held, Stretch as Stretched};
use crate::image::{Depth, Image, Samples, Shape, Values, number};
use crate::ops::histogram::Clip;
use crate::ops::wide::extremes::Collapsed;
use crate::ops::wide::scale::{self, Scale};
use crate::ops::wide::{self, Extremes, check_odd, double, on_gpu};
use crate::ops::{Bound, DeviceImage, MinMax, OpResult, SampleTypes, Statistics, Summary};
use crate::timing::Timeline;
use anyhow::{Result, bail};
use rayon::prelude::*;
use std::cell::RefCell;
use std::sync::OnceLock;

/// Ranges without the samples that `--ignore` excludes.
#[derive(Debug, Default)]
struct Kept {
    /// As those of `Stretch`.
    ranges: Vec<MinMax<u64>>,
    /// As those of `Stretch`.
    collapsed: Vec<Option<Collapsed>>,
    /// Whether all samples are excluded.
    nothing: bool,
}

/// Normalize bound to its input ranges.
pub(super) struct Stretch<'a> {
    op: &'a Normalize,
    types: SampleTypes,
    /// In samples in memory: one of all colours, or one for each.
    ranges: Vec<MinMax<u64>>,
    /// Whether the samples were searched for NaN and infinities.
    counted: bool,
    /// For each range whose two percentiles are equal: their value, and the smallest and the largest
    /// sample.
    collapsed: Vec<Option<Collapsed>>,
    /// The measurement without the values of `--ignore`, which replaces the range above once the image is
    /// available.
    kept: OnceLock<Kept>,
    /// Whether all samples are known to lie in their range.
    inside: bool,
    /// Whether all are whole numbers, once that has been checked.
    integers: OnceLock<bool>,
}

impl<'a> Stretch<'a> {
    /// # Errors
    /// Samples that are not finite, without a replacement.
    pub(super) fn new(
        op: &'a Normalize,
        types: SampleTypes,
        statistics: &Statistics,
    ) -> Result<Stretch<'a>> {
        let mut inside = false;
        let (ranges, counted, collapsed) = match (op.range(&types)?, statistics) {
            (Some(range), _) => (vec![range.wide(types.read)], false, Vec::new()),
            (None, Statistics::Wide(extremes)) => {
                let only = stand_in(op.nan, types.read);
                let ranges = extremes.ranges(types.colours(), op.per_channel, only)?;
                inside = !extremes.percentiles && extremes.odd == 0;
                (ranges, true, extremes.collapsed.clone())
            }
            _ => bail!("the range was not measured"),
        };
        Ok(Stretch {
            op,
            types,
            ranges,
            counted,
            collapsed,
            kept: OnceLock::new(),
            inside,
            integers: OnceLock::new(),
        })
    }

    /// The ranges: those without ignored values, or those of all.
    fn ranges(&self) -> &[MinMax<u64>] {
        self.kept.get().map_or(&self.ranges, |kept| &kept.ranges)
    }

    /// Measures the ranges without ignored values, if there are any. `between` finds the percentiles of an
    /// image with one channel.
    fn leave_out(&self, image: &Image, between: impl Fn(&Image) -> Extremes) -> Result<()> {
        if self.op.ignore.is_empty() {
            return Ok(());
        }
        match image.samples() {
            Samples::U64(samples) => self.leave_out_of(image.shape(), samples, between),
            _ => self.leave_out_of(image.shape(), wide::samples(image)?, between),
        }
        Ok(())
    }

    fn leave_out_of<T: Copy + Into<u64> + Send + Sync>(
        &self,
        shape: Shape,
        samples: &[T],
        between: impl Fn(&Image) -> Extremes,
    ) where
        Samples: From<Vec<T>>,
    {
        let ignored = self.op.ignored(self.types.read);
        let colours = self.types.colours();
        let width = if self.op.per_channel { 1 } else { colours };
        let channels = (0..colours).step_by(width).map(|at| at..at + width);
        let mut kept = Kept {
            nothing: true,
            ..Kept::default()
        };
        for channels in channels {
            let first = samples[channels.start].into();
            let pixels = samples.par_chunks_exact(shape.channels);
            let of_range = pixels.flat_map_iter(|pixel| pixel[channels.clone()].iter().copied());
            let left: Vec<T> = of_range
                .filter(|&sample| !ignored.contains(&sample.into()))
                .collect();
            let shape = Shape {
                width: left.len(),
                height: 1,
                channels: 1,
                ..shape
            };
            let found = between(&Image::new(shape, left.into()));
            let range = found.ranges.first().filter(|range| !range.is_none());
            kept.nothing &= range.is_none();
            // If all samples are excluded, nothing is scaled.
            kept.ranges
                .push(range.copied().unwrap_or(MinMax::one(first)));
            kept.collapsed
                .push(found.collapsed.first().copied().flatten());
        }
        self.kept.get_or_init(|| kept);
    }

    /// Checks whether all samples are whole numbers, if that is needed.
    fn look(&self, samples: &[u32]) {
        if self.op.undo && self.inside && self.types.read.depth == Depth::Float {
            let minus_zero = number::key((-0f32).to_bits());
            let whole = |&key: &u32| key != minus_zero && number::from_key(key).fract() == 0.0;
            self.integers.get_or_init(|| samples.par_iter().all(whole));
        }
    }

    /// How values are scaled, for `--undo`.
    fn stretched(&self) -> Option<Stretched> {
        let SampleTypes { read, written, .. } = self.types;
        let held = match (self.inside, self.integers.get()) {
            (false, _) => Held::Clamped,
            (true, Some(true)) => Held::Integers,
            (true, _) => Held::Inside,
        };
        let ranges = self.ranges().iter();
        let ranges: Vec<_> = ranges
            .map(|range| (range.min as u32, range.max as u32))
            .collect();
        let target = self.op.target(written);
        Stretched::new(read, &ranges, written, (target.min, target.max), held)
    }

    /// The range of each channel: one may serve all colours, and alpha has none.
    fn range_by_channel(&self) -> impl Iterator<Item = Option<MinMax<u64>>> {
        let ranges = self.ranges();
        let colours = self.types.colours();
        let range = move |channel| *ranges.get(channel).unwrap_or(&ranges[0]);
        (0..self.types.channels).map(move |channel| (channel < colours).then(|| range(channel)))
    }

    /// The scale of each channel.
    fn scales(&self) -> Vec<Scale> {
        let SampleTypes { read, written, .. } = self.types;
        let target = self.op.target(written);
        let scale = |range: Option<MinMax<u64>>| match range {
            Some(range) => {
                let range = range.map(|sample| sample as u32);
                Scale::for_colour(read, range, target, written.depth)
            }
            None => Scale::for_alpha(read, written.depth),
        };
        self.range_by_channel().map(scale).collect()
    }

    /// The scale of each channel of 64-bit floating point.
    fn scales_of_doubles(&self) -> Vec<double::Scale> {
        let written = self.types.written;
        let target = self.op.target(written);
        let scale = |range: Option<MinMax<u64>>| match range {
            Some(range) => double::Scale::for_colour(range, target, written.depth),
            None => double::Scale::for_alpha(written.depth),
        };
        self.range_by_channel().map(scale).collect()
    }

    /// The replacement for samples that are not finite. Without it there are no such samples.
    fn nan(&self) -> u32 {
        wide::stand_in(self.op.nan).unwrap_or(0)
    }
}

/// The sample that replaces those that are not finite.
fn stand_in(nan: Option<f64>, values: Values) -> Option<u64> {
    nan.map(|value| match values.depth {
        Depth::Double => number::key64(value.to_bits()),
        _ => number::key((value as f32).to_bits()).into(),
    })
}

impl Bound for Stretch<'_> {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        check_odd(Extremes::naive(image).odd, self.op.nan)?;
        let (shape, to) = (image.shape(), self.types.written.depth);
        if let Ok(samples) = wide::samples(image) {
            self.look(samples);
        }
        let clip = self.op.clip.unwrap_or(Clip::NONE);
        self.leave_out(image, |image| {
            Extremes::percentiles_naively(image, clip, true)
        })?;
        let scaled = match image.samples() {
            Samples::U64(samples) => {
                let (scales, nan) = (self.scales_of_doubles(), self.op.nan.unwrap_or(0.0));
                double::scale_naively(samples, shape, to, &scales, nan)
            }
            _ => scale::naive(wide::samples(image)?, shape, to, &self.scales(), self.nan()),
        };
        Ok(OpResult::Image(scaled))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        if !self.counted && self.op.nan.is_none() {
            check_odd(Extremes::cpu(&image, timeline).odd, None)?;
        }
        let (shape, to) = (image.shape(), self.types.written.depth);
        if let Ok(samples) = wide::samples(&image) {
            self.look(samples);
        }
        let clip = self.op.clip.unwrap_or(Clip::NONE);
        let spans = RefCell::new(&mut *timeline);
        self.leave_out(&image, |image| {
            Extremes::percentiles(image, clip, true, &mut spans.borrow_mut())
        })?;
        let bytes = shape.bytes() + shape.samples() * to.bytes();
        let scaled = timeline.host("scale", bytes as u64, || match image.samples() {
            Samples::U64(samples) => {
                let (scales, nan) = (self.scales_of_doubles(), self.op.nan.unwrap_or(0.0));
                double::scale(samples, shape, to, &scales, nan)
            }
            _ => scale::cpu(
                wide::samples(&image)?,
                shape,
                to,
                &self.scales(),
                self.nan(),
            ),
        });
        Ok(OpResult::Image(scaled?))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        if !self.counted && self.op.nan.is_none() && image.shape.depth == Depth::Float {
            check_odd(Extremes::on_gpu(&image, job)?.odd, None)?;
        }
        let to = self.types.written.depth;
        let scaled = on_gpu::scale(&image, to, &self.scales(), self.nan(), job);
        Ok(OpResult::Image(scaled?))
    }

    /// The ranges in values of the input file, and a warning if one of them is flat.
    fn summary(&self) -> Summary {
        let (read, written) = (self.types.read, self.types.written.depth);
        let mut summary = Summary {
            announces: self.op.auto,
            stretch: self.op.undo.then(|| self.stretched()).flatten(),
            ..Summary::default()
        };
        let kept = self.kept.get();
        if kept.is_some_and(|kept| kept.nothing) {
            summary.warnings.push(ALL_IGNORED.into());
        }
        let collapsed = kept.map_or(&self.collapsed, |kept| &kept.collapsed);
        for (index, found) in collapsed.iter().enumerate() {
            if let Some(Collapsed { percentile, whole }) = *found {
                summary.warnings.push(clip_collapsed(
                    channel_description(index, collapsed.len()),
                    [percentile, whole.min, whole.max].map(|sample| read.number(sample)),
                ));
            }
        }
        for (index, &MinMax { min, max }) in self.ranges().iter().enumerate() {
            let (from, to) = (read.number(min), read.number(max));
            summary.ranges.push((from, to));
            if from == to {
                let what = channel_description(index, self.ranges().len());
                summary.warnings.push(format!(
                    "{what} is flat (from {from} to {to}): its values are rounded to {written} without scaling"
                ));
            }
        }
        summary
    }
}
