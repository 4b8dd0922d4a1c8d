//! `normalize` for 8- and 16-bit samples, after it is bound to the ranges.

use super::CurveTables;
use super::lanes::{ScaleLanes, scale_all};
use super::scale::Scale;
use super::{Normalize, channel_description};
use crate::gpu::job::Job;
use crate::gpu::launch::normalize as launch;
use crate::image::Image;
use crate::image::metadata::{Held, Stretch};
use crate::ops::extremes::DeviceExtremes;
use crate::ops::{
    Bound, DeviceImage, MinMax, OpResult, SampleTypes, Summary, samples_from, with_samples,
};
use crate::timing::Timeline;
use anyhow::{Context, Result};

/// Normalize bound to its input ranges.
pub(super) struct BoundNormalize<'a> {
    pub op: &'a Normalize,
    pub types: SampleTypes,
    pub ranges: RangeSource<'a>,
    pub tables: CurveTables,
}

/// The ranges, on the host or in device memory.
pub(super) enum RangeSource<'a> {
    OnHost {
        /// In samples in memory: one for all colours, or one for each.
        ranges: Vec<MinMax<u16>>,
        /// Whether the ranges are the exact extremes of the samples, so that all samples of an
        /// empty range are equal.
        measured: bool,
        /// Whether all samples are known to lie in their range, so that none is clamped.
        inside: bool,
        /// Warnings from the measurement.
        warnings: Vec<String>,
    },
    OnDevice(&'a DeviceExtremes),
}

impl BoundNormalize<'_> {
    /// The ranges, if the host has them.
    fn ranges(&self) -> Option<&[MinMax<u16>]> {
        match &self.ranges {
            RangeSource::OnHost { ranges, .. } => Some(ranges),
            RangeSource::OnDevice(_) => None,
        }
    }

    /// The scale of each channel: none for alpha and for flat channels.
    fn scales(&self) -> Result<Vec<Option<Scale>>> {
        let ranges = self.ranges().context("the range is still on the GPU")?;
        Ok(self.scales_of(ranges))
    }

    /// The scale of each channel for these ranges.
    fn scales_of(&self, ranges: &[MinMax<u16>]) -> Vec<Option<Scale>> {
        let MinMax { min: lo, max: hi } = self.op.target(self.types.written);
        let scale = |channel: usize| {
            // One range may serve all colours.
            let MinMax { min, max } = *ranges.get(channel).unwrap_or(&ranges[0]);
            (channel < self.types.colours() && min < max).then_some(Scale { min, max, lo, hi })
        };
        (0..self.types.channels).map(scale).collect()
    }

    /// Replaces samples on a GPU by the results of the curve. Waits for ranges that the GPU has measured.
    fn curve_on_gpu(&self, mut image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let scales = match &self.ranges {
            RangeSource::OnHost { ranges, .. } => self.scales_of(ranges),
            RangeSource::OnDevice(extremes) => {
                let (colours, per_channel) = (self.types.colours(), self.op.per_channel);
                self.scales_of(&extremes.read(job)?.ranges(colours, per_channel))
            }
        };
        self.tables.apply_on_gpu(&mut image, &scales, job)?;
        Ok(OpResult::Image(image))
    }

    /// The record of how values are scaled, for `--undo`.
    fn record(&self, ranges: &[MinMax<u16>], inside: bool) -> Option<Stretch> {
        let SampleTypes { read, written, .. } = self.types;
        let step = read.depth.steps(self.types.depth);
        let ranges = ranges.iter();
        let ranges: Vec<(u32, u32)> = ranges
            .map(|range| ((range.min / step).into(), (range.max / step).into()))
            .collect();
        let target = self.op.target(written);
        let target = (target.min, target.max);
        let held = if inside { Held::Inside } else { Held::Clamped };
        Stretch::new(read, &ranges, written, target, held)
    }

    /// The ranges in the form that the kernel reads: for each channel, min and full − max.
    fn kernel_ranges(&self, ranges: &[MinMax<u16>]) -> Vec<u32> {
        let each = (0..4).map(|channel| ranges[channel.min(ranges.len() - 1)]);
        let full = self.types.depth.full();
        each.flat_map(|range| [range.min.into(), (full - range.max).into()])
            .collect()
    }
}

impl Bound for BoundNormalize<'_> {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let (shape, scales) = (image.shape(), self.scales()?);
        let scaled = (0..shape.samples()).map(|i| {
            let sample = image.samples().at(i) as u16;
            self.tables.exact(scales[i % shape.channels], sample).into()
        });
        let samples = samples_from(shape.depth, scaled);
        Ok(OpResult::Image(Image::new(shape, samples)))
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let scales = self.scales()?;
        if self.tables.has_curve() {
            timeline.host("curve", 2 * image.shape().bytes() as u64, || {
                self.tables.apply(&mut image, &scales)
            })?;
            return Ok(OpResult::Image(image));
        }
        let scales = scales.into_iter();
        let scales: Vec<Scale> = scales
            .map(|scale| scale.unwrap_or(Scale::IDENTITY))
            .collect();
        if scales.iter().any(|&scale| scale != Scale::IDENTITY) {
            let lanes = ScaleLanes::new(&scales);
            timeline.host(
                "scale",
                2 * image.shape().bytes() as u64,
                || with_samples!(image.samples_mut(), samples => scale_all(samples, &lanes)),
            )?;
        }
        Ok(OpResult::Image(image))
    }

    fn cuda(&self, mut image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        if self.tables.has_curve() {
            return self.curve_on_gpu(image, job);
        }
        let shape = image.shape;
        let bytes = shape.bytes() as u64;
        let scale = job.kernel::<launch::Scale>(&shape.sample_form())?;
        let target = self.op.target(self.types.written);
        let on_gpu;
        let ranges = match &self.ranges {
            RangeSource::OnDevice(extremes) => &extremes.words,
            RangeSource::OnHost { ranges, .. } => {
                on_gpu = job.words(&self.kernel_ranges(ranges))?;
                &on_gpu
            }
        };
        let grid = u32::try_from(bytes.div_ceil(4096))?;
        let arguments = launch::Scale {
            src: None,
            dst: image.samples.view_mut(),
            samples: shape.samples() as u64,
            ranges: ranges.view(),
            per_channel: self.op.per_channel.into(),
            lo: target.min.into(),
            hi: target.max.into(),
        };
        job.launch(&scale, grid, 2 * bytes, arguments)?;
        Ok(OpResult::Image(image))
    }

    /// The ranges in values of the input file, with a warning for each range that is empty.
    fn summary(&self) -> Summary {
        let RangeSource::OnHost {
            ranges,
            measured,
            inside,
            warnings,
        } = &self.ranges
        else {
            return Summary::default();
        };
        let mut summary = Summary {
            warnings: warnings.clone(),
            announces: self.op.announces(),
            stretch: self.op.undo.then(|| self.record(ranges, *inside)).flatten(),
            ..Summary::default()
        };
        for (index, &MinMax { min, max }) in ranges.iter().enumerate() {
            let (from, to) = (self.types.value(min), self.types.value(max));
            summary.ranges.push((from.into(), to.into()));
            if min < max {
                continue;
            }
            let what = channel_description(index, ranges.len());
            summary.warnings.push(if *measured {
                format!("{what} is flat (every sample is {from}) and left unchanged")
            } else {
                format!(
                    "the range for {what} is empty (from {from} to {from}); it is left unchanged"
                )
            });
        }
        summary
    }
}
