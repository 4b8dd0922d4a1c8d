//! `normalize` of samples of 32 bits: they become 16 bits without sign, or 8.

use super::Normalize;
use crate::device::job::Job;
use crate::image::Image;
use crate::ops::wide::scale::{self, Scale};
use crate::ops::wide::{self, Extremes, check_odd};
use crate::ops::{Bound, DeviceImage, OpResult, SampleTypes, Statistics, Summary};
use crate::timing::Timeline;
use anyhow::{Result, bail};

/// Normalize bound to the ranges that it stretches from.
pub(super) struct Stretch<'a> {
    op: &'a Normalize,
    types: SampleTypes,
    /// In samples in memory: one of all colours, or one for each.
    ranges: Vec<(u32, u32)>,
    /// Whether samples that are no finite numbers were looked for.
    counted: bool,
}

impl<'a> Stretch<'a> {
    /// # Errors
    /// Samples that are no finite numbers, where nothing stands for them.
    pub(super) fn new(
        op: &'a Normalize,
        types: SampleTypes,
        statistics: &Statistics,
    ) -> Result<Stretch<'a>> {
        let (ranges, counted) = match (op.range, statistics) {
            (Some(range), _) => (vec![range.wide(types.read)], false),
            (None, Statistics::Wide(extremes)) => {
                let ranges = extremes.ranges(types.colours(), op.per_channel, op.nan)?;
                (ranges, true)
            }
            _ => bail!("the range was not measured"),
        };
        Ok(Stretch {
            op,
            types,
            ranges,
            counted,
        })
    }

    /// The scale of each channel.
    fn scales(&self) -> Vec<Scale> {
        let SampleTypes { read, written, .. } = self.types;
        let full = (0, written.depth.full());
        let target = self.op.to.map_or(full, |to| to.samples(written));
        let scale = |channel: usize| match channel < self.types.colours() {
            true => {
                // One range may serve all colours.
                let range = *self.ranges.get(channel).unwrap_or(&self.ranges[0]);
                Scale::of_colour(read, range, target, written.depth)
            }
            false => Scale::of_alpha(read, written.depth),
        };
        (0..self.types.channels).map(scale).collect()
    }

    /// What stands for samples that are no finite numbers. Without it there are none.
    fn nan(&self) -> u32 {
        wide::stand_in(self.op.nan).unwrap_or(0)
    }
}

impl Bound for Stretch<'_> {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        check_odd(Extremes::naive(image).odd, self.op.nan)?;
        let (samples, to) = (wide::samples(image)?, self.types.written.depth);
        let scaled = scale::naive(samples, image.shape(), to, &self.scales(), self.nan());
        Ok(OpResult::Image(scaled))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        if !self.counted && self.op.nan.is_none() {
            check_odd(Extremes::cpu(&image, timeline).odd, None)?;
        }
        let (shape, to) = (image.shape(), self.types.written.depth);
        let samples = wide::samples(&image)?;
        let bytes = shape.bytes() + shape.samples() * to.bytes();
        let scaled = timeline.host("scale", bytes as u64, || {
            scale::cpu(samples, shape, to, &self.scales(), self.nan())
        });
        Ok(OpResult::Image(scaled?))
    }

    fn cuda(&self, _: DeviceImage, _: &mut Job) -> Result<OpResult<DeviceImage>> {
        bail!("normalize has no kernel for samples of 32 bits")
    }

    /// The ranges in values of the input file, and a warning if one of them is flat.
    fn summary(&self) -> Summary {
        let (read, written) = (self.types.read, self.types.written.depth);
        let mut summary = Summary::default();
        for (index, &(min, max)) in self.ranges.iter().enumerate() {
            let (from, to) = (read.number(min), read.number(max));
            summary.ranges.push((from, to));
            if from == to {
                let what = match self.ranges.len() {
                    1 => "the image".into(),
                    _ => format!("channel {}", index + 1),
                };
                summary.warnings.push(format!(
                    "{what} is flat (from {from} to {to}): its values are rounded to {written}, and \
                     not stretched"
                ));
            }
        }
        summary
    }
}
