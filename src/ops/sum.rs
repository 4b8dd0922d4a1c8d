//! Sum: exact 64-bit totals of the samples, for each channel and over all colours; minimum and
//! maximum on request. As in step 7 of "GPGPU optimisation by the example of a sum" (after Mark
//! Harris's seven reductions), each thread adds many elements before the tree.

mod totals;

pub use totals::{Total, Totals, failure};

use super::extremes::{MinMaxLanes, NO_RANGE, fold_ranges, min_max_chunk};
use super::{
    Access, Bound, DeviceImage, OpResult, Operation, SampleTypes, Statistics, Verb, with_samples,
};
use crate::device::Work;
use crate::device::cpu::{self, LANES, Sample};
use crate::device::cuda::Arg;
use crate::device::job::Job;
use crate::image::{Image, Shape};
use crate::metadata::Effect;
use crate::timing::Timeline;
use anyhow::Result;
use serde::Serialize;

/// Add up the samples, exactly, in each channel and together
#[derive(clap::Args, Clone, Copy, Debug, Default, Serialize)]
#[group(skip)]
pub struct Sum {
    /// Tell the minimum, maximum and mean too
    #[arg(long)]
    pub all: bool,
}

impl Verb for Sum {
    const NAME: &'static str = "sum";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg sum in.tif                         the exact sum of the samples\n\
\x20 gpuimg sum --all *.tif                    minimum, maximum and mean too\n\
\x20 gpuimg sum --all --json in/ > sums.jsonl  a JSON object for each page";
    const MAKES_IMAGES: bool = false;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        vec![Box::new(Sum { all: false }), Box::new(Sum { all: true })]
    }
}

impl Operation for Sum {
    fn name(&self) -> &'static str {
        Sum::NAME
    }

    fn access(&self) -> Access {
        Access::Reduction
    }

    fn effect(&self) -> Effect {
        Effect::Numbers
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        Work {
            touched: bytes,
            transferred: bytes,
            ..Work::default()
        }
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Sum {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let shape = image.shape();
        let mut channels = vec![
            Total {
                sum: 0,
                range: self.all.then_some((u16::MAX, 0))
            };
            shape.channels
        ];
        with_samples!(image.samples(), samples => for (i, sample) in samples.iter().enumerate() {
            let value = Sample::value(*sample);
            let total = &mut channels[i % shape.channels];
            total.sum += u64::from(value);
            total.range = total.range.map(|(min, max)| (min.min(value), max.max(value)));
        });
        Ok(finished(shape, channels))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let shape = image.shape();
        let lanes = timeline.host(
            "sum",
            shape.bytes() as u64,
            || with_samples!(image.samples(), samples => sum_lanes(samples, self.all)),
        );
        let mut channels = vec![
            Total {
                sum: 0,
                range: self.all.then_some((u16::MAX, 0))
            };
            shape.channels
        ];
        for lane in 0..LANES {
            let total = &mut channels[lane % shape.channels];
            total.sum += lanes.sum[lane];
            total.range = total
                .range
                .map(|(min, max)| (min.min(lanes.range.0[lane]), max.max(lanes.range.1[lane])));
        }
        Ok(finished(shape, channels))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let shape = image.shape;
        let bytes = shape.bytes() as u64;
        let form = shape.sample_form();
        let [sum] = job.kernels("sum", ["sum"], &form)?;
        let (samples, count) = (
            Arg::Buffer(&image.samples),
            Arg::U64(shape.samples() as u64),
        );
        let grid = job.reduction_grid(bytes);
        let sums = job.words(&[0u64; 4])?;
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&sum, grid, bytes, &[samples, count, Arg::Buffer(&sums)]) }?;
        let ranges = job.words(&[u32::MAX; 8])?;
        if self.all {
            let [minmax] = job.kernels("normalize", ["minmax"], &form)?;
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            unsafe {
                job.launch(
                    &minmax,
                    grid,
                    bytes,
                    &[samples, count, Arg::Buffer(&ranges)],
                )
            }?;
        }
        let (sums, ranges) = (
            job.read_words::<u64>(&sums)?,
            job.read_words::<u32>(&ranges)?,
        );
        // The kernel keeps the full value less the maximum.
        let range = |pair: &[u32]| (pair[0] as u16, shape.depth.full() - pair[1] as u16);
        let total = |(&sum, pair): (&u64, &[u32])| Total {
            sum,
            range: self.all.then(|| range(pair)),
        };
        let channels = sums.iter().zip(ranges.chunks_exact(2)).take(shape.channels);
        Ok(finished(shape, channels.map(total).collect()))
    }
}

fn finished<I>(shape: Shape, channels: Vec<Total>) -> OpResult<I> {
    let totals = Totals {
        shape,
        channels,
        page: 1,
        one_of_several: false,
        zero: 0,
    };
    OpResult::Totals(totals)
}

/// The totals of each lane; a lane holds the samples whose index leaves the same remainder.
#[derive(Clone, Copy)]
struct Lanes {
    sum: [u64; LANES],
    range: MinMaxLanes,
}

fn sum_lanes<T: Sample>(samples: &[T], all: bool) -> Lanes {
    let nothing = Lanes {
        sum: [0; LANES],
        range: NO_RANGE,
    };
    let fold = |mut a: Lanes, b: Lanes| {
        for lane in 0..LANES {
            a.sum[lane] += b.sum[lane];
        }
        a.range = fold_ranges(a.range, b.range);
        a
    };
    // The second pass over a chunk finds it in the cache.
    let chunk = |chunk: &[T]| Lanes {
        sum: sum_chunk(chunk),
        range: if all { min_max_chunk(chunk) } else { NO_RANGE },
    };
    cpu::reduce(samples, nothing, chunk, fold)
}

/// 32 bits are enough inside a chunk: its 2048 blocks of 65535 stay below 2³².
#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
fn sum_chunk<T: Sample>(samples: &[T]) -> [u64; LANES] {
    let (blocks, rest) = samples.as_chunks::<LANES>();
    let mut sums = T::sum_blocks(blocks);
    for (sum, &value) in sums.iter_mut().zip(rest) {
        *sum += u32::from(value.value());
    }
    sums.map(u64::from)
}
