//! Sum: exact totals of the samples, for each channel and over all colours; minimum and
//! maximum on request. As in step 7 of "GPGPU optimisation by the example of a sum" (after Mark
//! Harris's seven reductions), each thread adds many elements before the tree.

mod totals;

pub use totals::{Printed, Total, Totals, failure};

use super::exact::Exact;
use super::extremes::{from_words, min_max_chunk};
use super::min_max::{MinMax, MinMaxLanes};
use super::wide::sum::Sums;
use super::wide::{self, double, finite};
use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
    with_samples,
};
use crate::gpu::job::Job;
use crate::gpu::launch::normalize::Minmax;
use crate::gpu::launch::sum as launch;
use crate::image::metadata::Effect;
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::cpu::{self, LANES, Sample};
use crate::timing::Timeline;
use anyhow::Result;
use serde::Serialize;

/// Add up the samples exactly, for each channel and in total
#[derive(clap::Args, Clone, Copy, Debug, Default, Serialize)]
#[group(skip)]
pub struct Sum {
    /// Print the minimum, maximum and mean too
    #[arg(long)]
    pub all: bool,

    /// Replace NaN and infinite samples with this value (0 leaves them out of the sum). Without this option they are refused
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true, value_parser = finite)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nan: Option<f64>,
}

impl Verb for Sum {
    const NAME: &'static str = "sum";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg sum in.tif                         the exact sum of the samples\n\
\x20 gpuimg sum --all *.tif                    also minimum, maximum and mean\n\
\x20 gpuimg sum --all --json in/ > sums.jsonl  one JSON object per page";
    const MAKES_IMAGES: bool = false;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        let sum = |all| Box::new(Sum { all, nan: None }) as Box<dyn Operation>;
        vec![sum(false), sum(true)]
    }
}

impl Operation for Sum {
    fn properties(&self) -> Properties {
        Properties {
            wide_samples: true,
            merges_cheaply: true,
            ..Properties::new(Sum::NAME, Access::Reduction, Effect::Numbers)
        }
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Sum {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let shape = image.shape();
        if shape.depth.is_wide() {
            let sums = match image.samples() {
                Samples::U64(samples) => {
                    double::sums_naively(samples, shape.channels, self.nan.unwrap_or(0.0))
                }
                _ => wide::sum::naive(
                    wide::samples(image)?,
                    shape.channels,
                    shape.depth,
                    self.replacement(),
                ),
            };
            return self.wide_totals(shape, &wide::Extremes::naive(image), sums);
        }
        let mut sums = vec![0; shape.channels];
        let mut ranges = vec![MinMax::NONE; shape.channels];
        with_samples!(image.samples(), samples => for (i, sample) in samples.iter().enumerate() {
            let (value, channel) = (Sample::value(*sample), i % shape.channels);
            sums[channel] += u64::from(value);
            ranges[channel].include(value);
        });
        let all = sums.into_iter().zip(ranges);
        Ok(self.finished(shape, all))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let shape = image.shape();
        if shape.depth.is_wide() {
            let extremes = if self.all {
                wide::Extremes::cpu(&image, timeline)
            } else {
                wide::Extremes::default()
            };
            let sums: Result<Sums> = timeline.host("sum", shape.bytes() as u64, || {
                Ok(match image.samples() {
                    Samples::U64(samples) => {
                        double::sums(samples, shape.channels, self.nan.unwrap_or(0.0))
                    }
                    _ => {
                        let samples = wide::samples(&image)?;
                        wide::sum::cpu(samples, shape.channels, shape.depth, self.replacement())
                    }
                })
            });
            return self.wide_totals(shape, &extremes, sums?);
        }
        let lanes = timeline.host(
            "sum",
            shape.bytes() as u64,
            || with_samples!(image.samples(), samples => sum_lanes(samples, self.all)),
        );
        let mut sums = vec![0; shape.channels];
        for (lane, sum) in lanes.sum.into_iter().enumerate() {
            sums[lane % shape.channels] += sum;
        }
        let ranges = lanes.range.by_channel(shape.channels);
        Ok(self.finished(shape, sums.into_iter().zip(ranges)))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let shape = image.shape;
        if shape.depth.is_wide() {
            let extremes = if self.all {
                wide::Extremes::on_gpu(&image, job)?
            } else {
                wide::Extremes::default()
            };
            let sums = wide::on_gpu::sums(&image, self.replacement(), job)?;
            return self.wide_totals(shape, &extremes, sums);
        }
        let bytes = shape.bytes() as u64;
        let form = shape.sample_form();
        let kernel = job.kernel::<launch::Sum>(&form)?;
        let grid = job.reduction_grid(bytes);
        let mut sums = job.words(&[0u64; 4])?;
        let arguments = launch::Sum {
            src: image.samples.view(),
            samples: shape.samples() as u64,
            totals: sums.view_mut(),
        };
        job.launch(&kernel, grid, bytes, arguments)?;
        let mut ranges = job.words(&[u32::MAX; 8])?;
        if self.all {
            let minmax = job.kernel::<Minmax>(&form)?;
            let arguments = Minmax {
                src: image.samples.view(),
                samples: shape.samples() as u64,
                ranges: ranges.view_mut(),
            };
            job.launch(&minmax, grid, bytes, arguments)?;
        }
        let (sums, ranges) = (
            job.read_words::<u64>(&sums)?,
            job.read_words::<u32>(&ranges)?,
        );
        let ranges = ranges.chunks_exact(2).take(shape.channels);
        let ranges = ranges.map(|pair| from_words(pair, shape.depth));
        let channels = sums.into_iter().zip(ranges);
        Ok(self.finished(shape, channels))
    }
}

impl Sum {
    /// The result, from the sum and the range of each channel of 8 or 16 bits.
    fn finished<I>(
        &self,
        shape: Shape,
        channels: impl Iterator<Item = (u64, MinMax<u16>)>,
    ) -> OpResult<I> {
        let channels = channels.map(|(sum, range)| Total {
            sum: Exact::Whole(sum.into()),
            range: self.all.then_some(range.map(u64::from)),
        });
        OpResult::Totals(Totals::new(shape, channels.collect()))
    }

    /// The replacement for 32-bit samples that are not finite; without `--nan`, no sums are reported for them.
    fn replacement(&self) -> u32 {
        wide::replacement(self.nan, Depth::Float).unwrap_or(0) as u32
    }

    /// The result for samples of 32 and 64 bits.
    fn wide_totals<I>(
        &self,
        shape: Shape,
        extremes: &wide::Extremes,
        Sums { sums, nonfinite }: Sums,
    ) -> Result<OpResult<I>> {
        wide::check_finite(nonfinite, self.nan)?;
        let channels = sums.into_iter().enumerate().map(|(channel, sum)| Total {
            sum,
            // None where no sample is a number.
            range: (extremes.ranges.get(channel).copied())
                .filter(|range| self.all && !range.is_none()),
        });
        Ok(OpResult::Totals(Totals::new(shape, channels.collect())))
    }
}

/// The totals of each lane; a lane holds the samples whose index leaves the same remainder.
#[derive(Clone, Copy)]
struct Lanes {
    sum: [u64; LANES],
    range: MinMaxLanes<u16, LANES>,
}

fn sum_lanes<T: Sample>(samples: &[T], all: bool) -> Lanes {
    let nothing = Lanes {
        sum: [0; LANES],
        range: MinMaxLanes::NONE,
    };
    let fold = |mut a: Lanes, b: Lanes| {
        for lane in 0..LANES {
            a.sum[lane] += b.sum[lane];
        }
        a.range = a.range.merge(b.range);
        a
    };
    // The second pass over a chunk finds it in the cache.
    let chunk = |chunk: &[T]| Lanes {
        sum: sum_chunk(chunk),
        range: if all {
            min_max_chunk(chunk)
        } else {
            MinMaxLanes::NONE
        },
    };
    cpu::reduce(samples, nothing, chunk, fold)
}

per_level! {
    highest Avx2;

    /// 32 bits are enough inside a chunk: its 2048 blocks of 65535 stay below 2³².
    fn sum_chunk[T: Sample](samples: &[T]) -> [u64; LANES] {
        let (blocks, rest) = samples.as_chunks::<LANES>();
        let mut sums = T::sum_blocks(blocks);
        for (sum, &value) in sums.iter_mut().zip(rest) {
            *sum += u32::from(value.value());
        }
        sums.map(u64::from)
    }
}
