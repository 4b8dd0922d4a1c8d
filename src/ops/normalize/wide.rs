//! `normalize` for 32- and 64-bit samples, which become unsigned samples of 16 or 8 bits.
//!
//! If there is a curve, values are first scaled to 0…65535 and rounded, for every output range. Then the curve is applied
//! as to 16-bit samples with the range 0:65535.

use super::scale::Scale as NarrowScale;
use super::{
    ALL_IGNORED, CurveTables, Normalize, Sampled, channel_description, clip_collapsed,
    zscale_of_integers,
};
use crate::gpu::job::Job;
use crate::image::metadata::{Held, Stretch};
use crate::image::{Depth, Image, Samples, Shape, Values, number};
use crate::ops::clip::Clip;
use crate::ops::depth;
use crate::ops::wide::extremes::Collapsed;
use crate::ops::wide::scale::{self, Scale};
use crate::ops::wide::{self, Extremes, check_finite, double, on_gpu};
use crate::ops::{
    Bound, DeviceImage, MinMax, OpResult, SampleTypes, Statistics, Summary, never_wide,
    samples_from,
};
use crate::timing::Timeline;
use anyhow::{Result, bail};
use rayon::prelude::*;
use std::cell::RefCell;
use std::sync::OnceLock;

/// The ranges of the samples that `--ignore` does not exclude.
#[derive(Debug, Default)]
struct Kept {
    /// Like `BoundNormalize::ranges`.
    ranges: Vec<MinMax<u64>>,
    /// Like `BoundNormalize::collapsed`.
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
    /// The measurement without the values of `--ignore`. It replaces `ranges` and `collapsed` once the image has been
    /// measured.
    kept: OnceLock<Kept>,
    /// Whether all samples are known to lie in their range.
    inside: bool,
    /// Warnings from the measurement.
    warnings: Vec<String>,
    tables: CurveTables,
    /// Whether all samples are whole numbers, once this has been checked.
    integers: OnceLock<bool>,
}

/// The range of 16-bit samples to which values are scaled before a curve.
const BEFORE_CURVE: MinMax<u16> = MinMax {
    min: 0,
    max: u16::MAX,
};

/// The range that zscale measures, as samples in memory. Ends in floating point are rounded to the nearest number of the samples'
/// type. If no sample is finite, all are replaced, and the range is the replacement.
fn zscale(
    sampled: &Sampled,
    read: Values,
    replacement: Option<u64>,
) -> (MinMax<u64>, Option<String>) {
    let Some(range) = sampled.range(|sample| read.number(sample).as_f64()) else {
        return (MinMax::one(replacement.unwrap_or(0)), None);
    };
    match read.depth {
        Depth::Double => (range.map(|end| number::key64(end.to_bits())), None),
        Depth::Float => {
            let key = |end: f64| number::key((end as f32).to_bits()).into();
            (range.map(key), None)
        }
        _ => zscale_of_integers(sampled, read, 1),
    }
}

/// Converts an image of 16-bit samples from 0 to 255 to 8 bits.
fn as_bytes(image: &Image) -> Image {
    let shape = Shape {
        depth: Depth::Eight,
        ..image.shape()
    };
    let samples: Vec<u8> = match image.samples() {
        Samples::U16(samples) => samples.par_iter().map(|&sample| sample as u8).collect(),
        _ => never_wide!(),
    };
    Image::new(shape, samples.into())
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
        let (mut inside, mut warnings, mut curve) = (false, Vec::new(), op.curve);
        let (ranges, finite, collapsed) = match (op.range(&types)?, statistics) {
            (Some(range), _) => (vec![range.wide(types.read)], false, Vec::new()),
            (None, Statistics::Wide(extremes)) => {
                let replacement = wide::replacement(op.nan, types.read.depth);
                let ranges = extremes.ranges(types.colours(), op.per_channel, replacement)?;
                inside = !extremes.percentiles && extremes.nonfinite == 0;
                (ranges, true, extremes.collapsed.clone())
            }
            (None, Statistics::Sampled(sampled)) => {
                check_finite(sampled.nonfinite, op.nan)?;
                let replacement = wide::replacement(op.nan, types.read.depth);
                let (range, warning) = zscale(sampled, types.read, replacement);
                warnings.extend(warning);
                (vec![range], true, Vec::new())
            }
            (None, Statistics::Medians(medians)) => {
                check_finite(medians.nonfinite, op.nan)?;
                let replacement = wide::replacement(op.nan, types.read.depth);
                let measured = medians.range_and_midtones(types.read.depth);
                curve = measured.map(|(_, midtones)| midtones);
                let range = measured.map(|(range, _)| range);
                let range = range.unwrap_or(MinMax::one(replacement.unwrap_or(0)));
                (vec![range], true, Vec::new())
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
            warnings,
            tables: CurveTables::new(curve),
        })
    }

    /// The ranges: without ignored values if these have been measured, otherwise of all samples.
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
            let remaining: Vec<T> = samples
                .filter(|&sample| !ignored.contains(&sample.into()))
                .collect();
            let shape = Shape {
                width: remaining.len(),
                height: 1,
                channels: 1,
                ..shape
            };
            let measured = percentiles(&Image::new(shape, remaining.into()));
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

    /// Whether a curve changes the values of a range: there is a curve, and the range is not empty.
    fn has_curve(&self, range: MinMax<u64>) -> bool {
        let MinMax { min, max } = range.map(|sample| self.types.read.number(sample));
        self.tables.has_curve() && min < max
    }

    /// The samples that the ends of a range become before a curve, or without one.
    fn scaled_range(&self, range: MinMax<u64>) -> MinMax<u16> {
        if self.has_curve(range) {
            BEFORE_CURVE
        } else {
            self.op.target(self.types.written)
        }
    }

    /// The scale of each channel.
    fn scales(&self) -> Vec<Scale> {
        let SampleTypes { read, written, .. } = self.types;
        let scale = |range: Option<MinMax<u64>>| match range {
            Some(range) => {
                let target = self.scaled_range(range);
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
        let scale = |range: Option<MinMax<u64>>| match range {
            Some(range) => {
                let target = self.scaled_range(range);
                double::Scale::for_colour(range, target, written.depth)
            }
            None => double::Scale::for_alpha(written.depth),
        };
        self.range_by_channel().map(scale).collect()
    }

    /// For each channel, the scale that the curve is applied with; none for channels that the curve does not change.
    fn curve_scales(&self) -> Vec<Option<NarrowScale>> {
        let MinMax { min, max } = BEFORE_CURVE;
        let MinMax { min: lo, max: hi } = self.op.target(self.types.written);
        let ranges = self.range_by_channel();
        let scales = ranges.map(|range| {
            let range = range.filter(|&range| self.has_curve(range));
            range.map(|_| NarrowScale { min, max, lo, hi })
        });
        scales.collect()
    }

    /// The depth of scaled samples before a curve, or without one.
    fn scaled_depth(&self) -> Depth {
        if self.tables.has_curve() {
            Depth::Sixteen
        } else {
            self.types.written.depth
        }
    }

    /// The replacement for samples that are not finite. Without it there are no such samples.
    fn nan(&self) -> u32 {
        wide::replacement(self.op.nan, self.types.read.depth).unwrap_or(0) as u32
    }
}

impl Bound for BoundNormalize<'_> {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        check_finite(Extremes::naive(image).nonfinite, self.op.nan)?;
        let (shape, to) = (image.shape(), self.scaled_depth());
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
        if !self.tables.has_curve() {
            return Ok(OpResult::Image(scaled));
        }
        let curves = self.curve_scales();
        let results = (0..shape.samples()).map(|i| {
            let sample = scaled.samples().at(i) as u16;
            self.tables.exact(curves[i % shape.channels], sample).into()
        });
        let depth = self.types.written.depth;
        let samples = samples_from(depth, results);
        Ok(OpResult::Image(Image::new(
            Shape { depth, ..shape },
            samples,
        )))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        if !self.finite && self.op.nan.is_none() {
            check_finite(Extremes::cpu(&image, timeline).nonfinite, None)?;
        }
        let (shape, to) = (image.shape(), self.scaled_depth());
        if let Ok(samples) = wide::samples(&image) {
            self.check_integers(samples);
        }
        let clip = self.op.clip.unwrap_or(Clip::NONE);
        let shared = RefCell::new(&mut *timeline);
        self.measure_without_ignored(&image, |image| {
            Extremes::percentiles(image, clip, true, &mut shared.borrow_mut())
        })?;
        let bytes = shape.bytes() + shape.samples() * to.bytes();
        let mut scaled = timeline.host("scale", bytes as u64, || match image.samples() {
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
        })?;
        if self.tables.has_curve() {
            let bytes = 2 * scaled.shape().bytes() as u64;
            timeline.host("curve", bytes, || {
                self.tables.apply(&mut scaled, &self.curve_scales())
            })?;
            if self.types.written.depth == Depth::Eight {
                scaled = as_bytes(&scaled);
            }
        }
        Ok(OpResult::Image(scaled))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        if !self.finite && self.op.nan.is_none() && image.shape.depth == Depth::Float {
            check_finite(Extremes::on_gpu(&image, job)?.nonfinite, None)?;
        }
        let to = self.scaled_depth();
        let mut scaled = on_gpu::scale(&image, to, &self.scales(), self.nan(), job)?;
        if self.tables.has_curve() {
            let scales = self.curve_scales();
            self.tables.apply_on_gpu(&mut scaled, &scales, job)?;
            if self.types.written.depth == Depth::Eight {
                scaled = depth::narrow_on_gpu(&scaled, |_| true, job)?;
            }
        }
        Ok(OpResult::Image(scaled))
    }

    /// The ranges in values of the input file, with a warning for each range that is empty.
    fn summary(&self) -> Summary {
        let (read, written) = (self.types.read, self.types.written.depth);
        let mut summary = Summary {
            announces: self.op.announces(),
            stretch: self.op.undo.then(|| self.record()).flatten(),
            warnings: self.warnings.clone(),
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
