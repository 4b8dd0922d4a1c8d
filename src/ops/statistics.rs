//! The statistics that an operation can need from a whole image, stack or set before it runs on any
//! chunk.

use super::clip::Clip;
use super::counts::Counts;
use super::extremes::{DeviceExtremes, Extremes};
use super::normalize::{Medians, Sampled};
use super::{DeviceImage, Join, wide};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::image::{Image, Shape};
use crate::timing::Timeline;
use anyhow::{Result, bail};

/// A statistic to be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    /// No statistic.
    #[default]
    None,
    /// The smallest and the largest sample of each channel.
    MinMax,
    /// The samples at two percentiles, of each colour channel or of all together. For 8 and 16 bits this is a
    /// histogram, which has the percentiles of any set of channels; for 32 bits, the two samples.
    Percentiles(Clip, bool),
    /// A thousand samples, in order of size. Samples of more than 16 bits are selected on the CPU alone.
    Sampled,
    /// The median of each colour channel, and the median of the distances from it. For 8 and 16 bits this is a histogram.
    /// More bits are measured on the CPU alone.
    Medians,
}

/// A measured statistic.
#[derive(Debug)]
pub enum Statistics {
    /// No statistic.
    None,
    /// The smallest and the largest sample of each channel.
    MinMax(Extremes),
    /// How often each value occurs in each channel.
    Histogram(Counts),
    /// The same of other images: samples of this one may lie outside their range.
    OtherHistogram(Counts),
    /// Two 32-bit samples of each channel: the extremes, or percentiles.
    Wide(wide::Extremes),
    /// A thousand samples.
    Sampled(Sampled),
    /// The medians of samples of 32 or 64 bits.
    Medians(Medians),
    /// The smallest and the largest sample, still in the memory of the GPU that measures them: the
    /// host can queue the operation that uses them without waiting.
    OnDevice(DeviceExtremes),
}

impl Statistic {
    /// The bytes that measuring moves in an image of this shape.
    pub fn work(self, shape: &Shape) -> Work {
        match self {
            Statistic::None => Work::default(),
            Statistic::MinMax | Statistic::Sampled => Work::moving(shape.bytes()),
            Statistic::Percentiles(..) | Statistic::Medians => Counts::work(shape),
        }
    }

    /// Whether the statistics of bands of an image of this shape cannot be merged.
    pub fn needs_whole_image(self, shape: &Shape) -> bool {
        match self {
            Statistic::None | Statistic::MinMax => false,
            Statistic::Percentiles(..) | Statistic::Medians => shape.depth.is_wide(),
            Statistic::Sampled => true,
        }
    }

    /// The definition: serial and simple.
    pub fn naive(self, image: &Image) -> Statistics {
        match (self, image.shape().depth.is_wide()) {
            (Statistic::None, _) => Statistics::None,
            (Statistic::MinMax, false) => Statistics::MinMax(Extremes::naive(image)),
            (Statistic::MinMax, true) => Statistics::Wide(wide::Extremes::naive(image)),
            (Statistic::Percentiles(..) | Statistic::Medians, false) => {
                Statistics::Histogram(Counts::naive(image))
            }
            (Statistic::Percentiles(clip, each), true) => {
                Statistics::Wide(wide::Extremes::percentiles_naively(image, clip, each))
            }
            (Statistic::Sampled, _) => Statistics::Sampled(Sampled::naive(image)),
            (Statistic::Medians, true) => Statistics::Medians(Medians::naive(image)),
        }
    }

    /// The same, computed on all cores.
    pub fn cpu(self, image: &Image, timeline: &mut Timeline) -> Statistics {
        match (self, image.shape().depth.is_wide()) {
            (Statistic::None, _) => Statistics::None,
            (Statistic::MinMax, false) => Statistics::MinMax(Extremes::cpu(image, timeline)),
            (Statistic::MinMax, true) => Statistics::Wide(wide::Extremes::cpu(image, timeline)),
            (Statistic::Percentiles(..) | Statistic::Medians, false) => {
                Statistics::Histogram(Counts::cpu(image, timeline))
            }
            (Statistic::Percentiles(clip, each), true) => {
                Statistics::Wide(wide::Extremes::percentiles(image, clip, each, timeline))
            }
            (Statistic::Sampled, _) => Statistics::Sampled(Sampled::cpu(image, timeline)),
            (Statistic::Medians, true) => Statistics::Medians(Medians::cpu(image, timeline)),
        }
    }

    /// The same from a GPU. Min and max are queued and stay in device memory, except for 32-bit samples; for
    /// those, and for all other statistics, this waits.
    pub fn cuda(self, image: &DeviceImage, job: &mut Job) -> Result<Statistics> {
        Ok(match self {
            Statistic::None => Statistics::None,
            Statistic::MinMax if image.shape.depth.is_wide() => {
                Statistics::Wide(wide::Extremes::on_gpu(image, job)?)
            }
            Statistic::MinMax => Statistics::OnDevice(DeviceExtremes::measure(image, job)?),
            Statistic::Percentiles(clip, each) if image.shape.depth.is_wide() => {
                Statistics::Wide(wide::on_gpu::percentiles(image, clip, each, job)?)
            }
            Statistic::Sampled | Statistic::Medians if image.shape.depth.is_wide() => {
                bail!("internal error: a GPU was to select samples of 32 bits")
            }
            Statistic::Sampled => Statistics::Sampled(Sampled::on_gpu(image, job)?),
            Statistic::Percentiles(..) | Statistic::Medians => {
                Statistics::Histogram(Counts::on_gpu(image, job)?)
            }
        })
    }
}

impl Statistics {
    /// The same statistic in host memory; waits for all queued work.
    pub fn on_host(self, job: &mut Job) -> Result<Statistics> {
        Ok(match self {
            Statistics::OnDevice(extremes) => Statistics::MinMax(extremes.read(job)?),
            known => known,
        })
    }
}

impl Join for Statistics {
    fn join(&mut self, more: &Statistics) -> Result<()> {
        match (self, more) {
            (Statistics::None, Statistics::None) => (),
            (Statistics::MinMax(known), Statistics::MinMax(more)) => known.join(more),
            (Statistics::Histogram(known), Statistics::Histogram(more)) => known.join(more)?,
            (Statistics::Wide(known), Statistics::Wide(more)) => known.join(more)?,
            (Statistics::Medians(_), Statistics::Medians(_)) => bail!(
                "medians of 32-bit samples are supported only for each page separately (use --scope page)"
            ),
            _ => bail!("its parts were measured with different options"),
        }
        Ok(())
    }
}
