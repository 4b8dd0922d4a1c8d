//! Normalize: stretches the range of the colour samples to the full depth, with exact rounding. The
//! two kernels are those of "CUDA: performance aspects of typical tasks" (habr.com post 119435,
//! 2011): minimum and maximum in one pass, then the scale with the "+ 0.5" rounding.
//!
//! Exact definition, for a sample p of a channel whose range is min..=max with d = max − min:
//! `out = lo + floor((clamp(p, min, max) − min)·(hi − lo) / d + 1/2)`, which in integers is
//! `lo + (x·(hi − lo) + ⌊d/2⌋) / d` and cannot overflow 32 bits (65535² + 32767 < 2³²).
//! The range is that of the samples, or lies between two of their percentiles (`--clip`), or is
//! given.
//! Alpha neither counts nor changes. A flat channel (d = 0) keeps its values. Samples of 32 bits become
//! 16 or 8 by the same formula (`wide`).

mod lanes;
mod range;
mod scale;
mod wide;

use super::extremes::{DeviceExtremes, Ranges};
use super::histogram::Clip;
use super::wide::finite;
use super::{
    Access, Bound, DeviceImage, OpResult, Operation, SampleTypes, Scope, Statistic, Statistics,
    Summary, Verb, never_wide, with_samples,
};
use crate::device::Work;
use crate::device::cuda::Arg;
use crate::device::job::Job;
use crate::image::{Depth, Image, Samples, Shape};
use crate::metadata::Effect;
use crate::timing::Timeline;
use anyhow::{Context, Result, bail};
use lanes::{ScaleLanes, scale_all};
pub use range::Range;
use scale::Scale;

/// Stretch the range of values to the full depth, exactly rounded
#[derive(clap::Args, Clone, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Normalize {
    /// Take this input range instead of the image's own minimum and maximum; values outside are clamped to it. Signed images have signed values
    #[arg(long, value_name = "MIN:MAX", allow_hyphen_values = true, conflicts_with_all = ["range_from", "across"])]
    pub range: Option<Range>,

    /// Stretch to this output range instead of the whole depth (0:65535, or 0:255 for 8 bits; -32768:32767, or -128:127 for signed ones)
    #[arg(long, value_name = "LO:HI", allow_hyphen_values = true, value_parser = Range::of_results)]
    pub to: Option<Range>,

    /// Take this value for floating-point samples that are NaN or infinite, which are refused without it; they do not count in the range
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, value_parser = finite)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan: Option<f32>,

    /// Measure and stretch each colour channel by itself
    #[arg(long, conflicts_with = "range")]
    pub per_channel: bool,

    /// Leave out the darkest LOW and the brightest 100 − HIGH percent when the range is measured, as 0.1:99.9
    #[arg(long, value_name = "LOW:HIGH", conflicts_with = "range")]
    pub clip: Option<Clip>,

    /// Of which pages of a stack the range is measured: of all, so that none flickers, or of each by itself
    #[arg(long, value_name = "SCOPE", default_value = "stack")]
    pub scope: Scope,
}

impl Verb for Normalize {
    const NAME: &'static str = "normalize";
    const ALIASES: &'static [&'static str] = &["normalise"];
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg normalize in.png out.png                   its range to 0…65535\n\
\x20 gpuimg normalize in.tif preview.png --depth 8     a preview for a screen\n\
\x20 gpuimg normalize --clip 0.1:99.9 in.tif out.tif   without the outliers\n\
\x20 gpuimg normalize --range 400:3700 in.tif out.tif  a window of your own\n\
\x20 gpuimg normalize series/ out/ --across            one contrast for a series\n\
\x20 gpuimg normalize - - --format png < in.tif > out.png";
    const MEASURES: bool = true;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        let range = Some(Range::of_whole(100, 201));
        let to = Some(Range::of_whole(7, 250));
        let clip = Some(Clip::of_percent(5, 90));
        let options = |range, to, clip, per_channel| Normalize {
            range,
            to,
            clip,
            per_channel,
            ..Normalize::default()
        };
        let examples = [
            options(None, None, None, false),
            options(range, None, None, false),
            options(None, to, None, false),
            options(None, None, None, true),
            options(None, to, None, true),
            options(None, None, clip, false),
            options(None, None, clip, true),
        ];
        examples.into_iter().map(Verb::operation).collect()
    }
}

impl Operation for Normalize {
    fn name(&self) -> &'static str {
        Normalize::NAME
    }

    fn access(&self) -> Access {
        Access::Pointwise
    }

    fn effect(&self) -> Effect {
        Effect::Values
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        Work {
            touched: 2 * bytes,
            transferred: 2 * bytes,
            ..Work::default()
        }
    }

    fn check(&self, _: &Shape) -> Result<()> {
        Ok(())
    }

    fn made(&self, depth: Depth) -> Depth {
        match depth.is_wide() {
            true => Depth::Sixteen,
            false => depth,
        }
    }

    fn not_on_gpu(&self, shape: &Shape) -> Option<&'static str> {
        let wide = shape.depth.is_wide();
        wide.then_some("normalize has no kernel for samples of 32 bits yet")
    }

    fn fits(&self, types: &SampleTypes) -> Result<()> {
        let range = self.range.map(|range| range.fits("--range", types.read));
        let to = self.to.map(|to| to.fits("--to", types.written));
        range.unwrap_or(Ok(())).and(to.unwrap_or(Ok(())))
    }

    fn statistic(&self) -> Statistic {
        match (self.range, self.clip) {
            (Some(_), _) => Statistic::None,
            // A histogram takes longer than min/max, and only percentiles need it.
            (None, Some(clip)) => Statistic::Percentiles(clip, self.per_channel),
            (None, None) => Statistic::MinMax,
        }
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn bind<'a>(
        &'a self,
        types: SampleTypes,
        statistics: &'a Statistics,
    ) -> Result<Box<dyn Bound + 'a>> {
        let read = types.read;
        if types.depth.is_wide() {
            return Ok(Box::new(wide::Stretch::new(self, types, statistics)?));
        }
        let (colours, per_channel) = (types.colours(), self.per_channel);
        let (ranges, of, measured) = match (self.range, statistics) {
            (Some(range), _) => (vec![range.samples(read)], read.depth, false),
            (None, Statistics::MinMax(extremes)) => {
                (extremes.ranges(colours, per_channel), extremes.depth, true)
            }
            (None, Statistics::Histogram(counts)) => {
                let clip = self.clip.unwrap_or(Clip::NONE);
                (counts.ranges(clip, per_channel), counts.depth, false)
            }
            (None, Statistics::OnDevice(extremes)) => {
                return Ok(Box::new(Stretch {
                    op: self,
                    types,
                    ranges: Known::OnDevice(extremes),
                }));
            }
            (None, Statistics::None | Statistics::Wide(_)) => bail!("the range was not measured"),
        };
        // Bounds given for 8 bits are widened as the samples were.
        let step = of.steps(types.depth);
        let ranges = ranges.into_iter().map(|(a, b)| (a * step, b * step));
        Ok(Box::new(Stretch {
            op: self,
            types,
            ranges: Known::OnHost {
                ranges: ranges.collect(),
                measured,
            },
        }))
    }
}

/// Normalize bound to the ranges that it stretches from.
struct Stretch<'a> {
    op: &'a Normalize,
    types: SampleTypes,
    ranges: Known<'a>,
}

/// The ranges, on the host or in device memory.
enum Known<'a> {
    OnHost {
        /// In the values of samples in memory.
        ranges: Ranges,
        /// Whether the ranges are the exact extremes of the samples, so that nothing needs
        /// clamping.
        measured: bool,
    },
    OnDevice(&'a DeviceExtremes),
}

impl Stretch<'_> {
    /// The range of output samples.
    fn target(&self) -> (u16, u16) {
        let written = self.types.written;
        let full_range = (0, written.depth.full());
        self.op.to.map_or(full_range, |to| to.samples(written))
    }

    /// The ranges, if the host has them.
    fn ranges(&self) -> Option<&Ranges> {
        match &self.ranges {
            Known::OnHost { ranges, .. } => Some(ranges),
            Known::OnDevice(_) => None,
        }
    }

    /// The scale of each channel; `None` for alpha and for flat channels, whose values are kept.
    fn scales(&self) -> Result<Vec<Scale>> {
        let ranges = self.ranges().context("the range is still on the GPU")?;
        let (lo, hi) = self.target();
        let scale = |channel: usize| {
            // One range may serve all colours.
            let (min, max) = *ranges.get(channel).unwrap_or(&ranges[0]);
            match channel < self.types.colours() && min < max {
                true => Scale { min, max, lo, hi },
                false => Scale::IDENTITY,
            }
        };
        Ok((0..self.types.channels).map(scale).collect())
    }

    /// The ranges in the kernels' form: for each channel, min and full − max.
    fn words(&self, ranges: &Ranges) -> Vec<u32> {
        let each = (0..4).map(|channel| ranges[channel.min(ranges.len() - 1)]);
        each.flat_map(|(min, max)| [min.into(), (self.types.depth.full() - max).into()])
            .collect()
    }
}

impl Bound for Stretch<'_> {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let (shape, scales) = (image.shape(), self.scales()?);
        let mut values: Vec<u16> = match image.samples() {
            Samples::U8(samples) => samples.iter().map(|&value| value.into()).collect(),
            Samples::U16(samples) => samples.to_vec(),
            Samples::U32(_) => never_wide!(),
        };
        for (i, value) in values.iter_mut().enumerate() {
            *value = scales[i % shape.channels].exact(*value);
        }
        let bytes = || values.iter().map(|&value| value as u8);
        let samples = match shape.depth {
            Depth::Eight => bytes().collect::<Vec<u8>>().into(),
            _ => values.into(),
        };
        Ok(OpResult::Image(Image::new(shape, samples)))
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let scales = self.scales()?;
        if scales.iter().any(|&scale| scale != Scale::IDENTITY) {
            let lanes = ScaleLanes::new(&scales);
            timeline.host("scale", 2 * image.shape().bytes() as u64, || {
                with_samples!(image.samples_mut(), samples => scale_all(samples, &lanes));
            });
        }
        Ok(OpResult::Image(image))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let shape = image.shape;
        let bytes = shape.bytes() as u64;
        let [scale] = job.kernels("normalize", ["scale"], &shape.sample_form())?;
        let (lo, hi) = self.target();
        let sent;
        let ranges = match &self.ranges {
            Known::OnDevice(extremes) => &extremes.words,
            Known::OnHost { ranges, .. } => {
                sent = job.words(&self.words(ranges))?;
                &sent
            }
        };
        let pixels = Arg::Buffer(&image.samples);
        let args = [
            pixels,
            pixels,
            Arg::U64(shape.samples() as u64),
            Arg::Buffer(ranges),
            Arg::U32(self.op.per_channel.into()),
            Arg::U32(lo.into()),
            Arg::U32(hi.into()),
        ];
        let grid = u32::try_from(bytes.div_ceil(4096))?;
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&scale, grid, 2 * bytes, &args) }?;
        Ok(OpResult::Image(image))
    }

    /// The ranges in values of the input file, and a warning if one of them is flat.
    fn summary(&self) -> Summary {
        let Known::OnHost { ranges, measured } = &self.ranges else {
            return Summary::default();
        };
        let mut summary = Summary::default();
        for (index, &(min, max)) in ranges.iter().enumerate() {
            let (from, to) = (self.types.value(min), self.types.value(max));
            summary.ranges.push((from.into(), to.into()));
            if min < max {
                continue;
            }
            let what = match ranges.len() {
                1 => "the image".into(),
                _ => format!("channel {}", index + 1),
            };
            summary.warnings.push(match measured {
                true => format!("{what} is flat (every sample is {from}) and is left as it is"),
                false => format!(
                    "the range for {what} is empty (from {from} to {from}), and it is left as it is"
                ),
            });
        }
        summary
    }
}
