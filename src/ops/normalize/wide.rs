//! `normalize` for 32- and 64-bit samples, which become unsigned samples of 16 or 8 bits.

use super::{ALL_IGNORED, Normalize, channel_description, clip_collapsed};
use crate::gpu::job::Job;
use crate::image::metadata::{Held, Stretch};
use crate::image::{Depth, Image, Samples, Shape, number};
use crate::ops::clip::Clip;
use crate::ops::wide::extremes::Collapsed;
use crate::ops::wide::scale::{self, Scale};
use crate::ops::wide::{self, Extremes, check_finite, double, on_gpu};
use crate::ops::{Bound, DeviceImage, MinMax, OpResult, SampleTypes, Statistics, Summary};
use crate::timing::Timeline;
use anyhow::{Result, bail};
use rayon::prelude::*;
use std::cell::RefCell;
use std::sync::OnceLock;

/// Ranges without the samples that `--ignore` excludes.
#[derive(Debug, Default)]
struct Kept {
    /// As `BoundNormalize::ranges`.
    ranges: Vec<MinMax<u64>>,
    /// As `BoundNormalize::collapsed`.
    collapsed: Vec<Option<Collapsed>>,
    /// Whether all samples are excluded.
    all_ignored: bool,
}

/// Normalize bound to its input ranges.
pub(super) struct BoundNormalize<'a> {
    op: &'a Normalize,
    types: SampleTypes,
    /// In samples in memory: one for all colours, or one for each.
    ranges: Vec<MinMax<u64>>,
    /// Whether the samples are known to be finite or replaced.
    finite: bool,
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

impl<'a> BoundNormalize<'a> {
    /// The operation with the ranges that the user gave or that were measured.
    ///
    /// # Errors
    /// Samples that are not finite, without a replacement.
    pub(super) fn new(
        op: &'a Normalize,
        types: SampleTypes,
        statistics: &Statistics,
    ) -> Result<BoundNormalize<'a>> {
        let mut inside = false;
        let (ranges, finite, collapsed) = match (op.range(&types)?, statistics) {
            (Some(range), _) => (vec![range.wide(types.read)], false, Vec::new()),
            (None, Statistics::Wide(extremes)) => {
                let replacement = wide::replacement(op.nan, types.read.depth);
                let ranges = extremes.ranges(types.colours(), op.per_channel, replacement)?;
                inside = !extremes.percentiles && extremes.nonfinite == 0;
                (ranges, true, extremes.collapsed.clone())
            }
            _ => bail!("the range was not measured"),
        };
        Ok(BoundNormalize {
            op,
            types,
            ranges,
            finite,
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

    /// Measures the ranges without ignored values, if there are any. `percentiles` measures an
    /// image with one channel.
    fn measure_without_ignored(
        &self,
        image: &Image,
        percentiles: impl Fn(&Image) -> Extremes,
    ) -> Result<()> {
        if self.op.ignore.is_empty() {
            return Ok(());
        }
        match image.samples() {
            Samples::U64(samples) => self.measure_kept(image.shape(), samples, percentiles),
            _ => self.measure_kept(image.shape(), wide::samples(image)?, percentiles),
        }
        Ok(())
    }

    fn measure_kept<T: Copy + Into<u64> + Send + Sync>(
        &self,
        shape: Shape,
        samples: &[T],
        percentiles: impl Fn(&Image) -> Extremes,
    ) where
        Samples: From<Vec<T>>,
    {
        let ignored = self.op.ignored(self.types.read);
        let colours = self.types.colours();
        let width = if self.op.per_channel { 1 } else { colours };
        let channels = (0..colours).step_by(width).map(|at| at..at + width);
        let mut kept = Kept {
            all_ignored: true,
            ..Kept::default()
        };
        for channels in channels {
            let first = samples[channels.start].into();
            let pixels = samples.par_chunks_exact(shape.channels);
            let samples = pixels.flat_map_iter(|pixel| pixel[channels.clone()].iter().copied());
            let left: Vec<T> = samples
                .filter(|&sample| !ignored.contains(&sample.into()))
                .collect();
            let shape = Shape {
                width: left.len(),
                height: 1,
                channels: 1,
                ..shape
            };
            let measured = percentiles(&Image::new(shape, left.into()));
            let range = measured.ranges.first().filter(|range| !range.is_none());
            kept.all_ignored &= range.is_none();
            // If all samples are excluded, nothing is scaled.
            kept.ranges
                .push(range.copied().unwrap_or(MinMax::one(first)));
            kept.collapsed
                .push(measured.collapsed.first().copied().flatten());
        }
        self.kept.get_or_init(|| kept);
    }

    /// Checks whether all samples are whole numbers, if that is needed.
    fn check_integers(&self, samples: &[u32]) {
        if self.op.undo && self.inside && self.types.read.depth == Depth::Float {
            let minus_zero = number::key((-0f32).to_bits());
            let whole = |&key: &u32| key != minus_zero && number::from_key(key).fract() == 0.0;
            self.integers.get_or_init(|| samples.par_iter().all(whole));
        }
    }

    /// The record of how values are scaled, for `--undo`.
    fn record(&self) -> Option<Stretch> {
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
        Stretch::new(read, &ranges, written, (target.min, target.max), held)
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
        wide::replacement(self.op.nan, self.types.read.depth).unwrap_or(0) as u32
    }
}

impl Bound for BoundNormalize<'_> {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        check_finite(Extremes::naive(image).nonfinite, self.op.nan)?;
        let (shape, to) = (image.shape(), self.types.written.depth);
        if let Ok(samples) = wide::samples(image) {
            self.check_integers(samples);
        }
        let clip = self.op.clip.unwrap_or(Clip::NONE);
        self.measure_without_ignored(image, |image| {
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
        if !self.finite && self.op.nan.is_none() {
            check_finite(Extremes::cpu(&image, timeline).nonfinite, None)?;
        }
        let (shape, to) = (image.shape(), self.types.written.depth);
        if let Ok(samples) = wide::samples(&image) {
            self.check_integers(samples);
        }
        let clip = self.op.clip.unwrap_or(Clip::NONE);
        let spans = RefCell::new(&mut *timeline);
        self.measure_without_ignored(&image, |image| {
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
        if !self.finite && self.op.nan.is_none() && image.shape.depth == Depth::Float {
            check_finite(Extremes::on_gpu(&image, job)?.nonfinite, None)?;
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
            stretch: self.op.undo.then(|| self.record()).flatten(),
            ..Summary::default()
        };
        let kept = self.kept.get();
        if kept.is_some_and(|kept| kept.all_ignored) {
            summary.warnings.push(ALL_IGNORED.into());
        }
        let collapsed = kept.map_or(&self.collapsed, |kept| &kept.collapsed);
        for (index, collapse) in collapsed.iter().enumerate() {
            if let Some(Collapsed { percentile, whole }) = *collapse {
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
