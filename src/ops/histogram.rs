//! Histogram: counts exactly how often each value occurs in each channel, and finds percentiles.

use super::{
    Access, Bound, DeviceImage, MinMax, OpResult, Operation, Properties, SampleTypes, Statistics,
    Verb, with_samples,
};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::gpu::launch::histogram as launch;
use crate::image::metadata::Effect;
use crate::image::{Depth, Image, Shape, Values};
use crate::ops::cpu::Sample;
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;

/// Samples per parallel task: enough to be worth a separate table of counts.
const CHUNK: usize = 1 << 21;

/// How often each value occurs in each channel, for images with the same channels and sample type.
#[derive(Clone, PartialEq, Eq)]
pub struct Counts {
    /// Samples per pixel of these images: 1–4, alpha last.
    pub channels: usize,
    /// Bits per sample.
    pub depth: Depth,
    /// Whether samples are signed. Bins are in the order of samples in memory: the first is the
    /// smallest value.
    pub signed: bool,
    /// 256 or 65,536 bins for each channel, one channel after the other.
    pub bins: Vec<u64>,
}

/// The type of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelType {
    /// Samples per pixel.
    pub channels: usize,
    /// The type of the samples.
    pub values: Values,
}

impl Counts {
    /// All bins 0.
    pub fn new(channels: usize, depth: Depth) -> Counts {
        Counts {
            channels,
            depth,
            signed: false,
            bins: vec![0; channels * values(depth)],
        }
    }

    /// Adds the counts of other images of the same type.
    pub fn add(&mut self, other: &Counts) {
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
    }

    /// Adds the counts of another page.
    ///
    /// # Errors
    /// It has another pixel type.
    pub fn join(&mut self, other: &Counts) -> Result<()> {
        ensure!(
            self.pixel_type() == other.pixel_type(),
            "its pages differ in channels or sample type (use --pages N to select one)"
        );
        self.add(other);
        Ok(())
    }

    /// The type of the pixels. Only counts of the same type can be added.
    pub fn pixel_type(&self) -> PixelType {
        let (depth, signed) = (self.depth, self.signed);
        PixelType {
            channels: self.channels,
            values: Values { depth, signed },
        }
    }

    /// The bins of each channel.
    pub fn each(&self) -> impl Iterator<Item = &[u64]> {
        self.bins.chunks_exact(values(self.depth))
    }

    /// The same without samples of these values in memory.
    pub fn without(&self, samples: &[u16]) -> Counts {
        let mut kept = self.clone();
        for bins in kept.bins.chunks_exact_mut(values(self.depth)) {
            samples
                .iter()
                .for_each(|&sample| bins[usize::from(sample)] = 0);
        }
        kept
    }

    /// The ranges of the colour channels between the percentiles of `clip`: one for all, or one for
    /// each.
    pub fn ranges(&self, clip: Clip, per_channel: bool) -> Vec<MinMax<u16>> {
        let colours = self.channels - usize::from(self.channels.is_multiple_of(2));
        let mut each: Vec<Vec<u64>> = self.each().take(colours).map(<[u64]>::to_vec).collect();
        if !per_channel {
            let mut all = each.split_off(0).into_iter();
            let mut sum = all.next().unwrap_or_default();
            for more in all {
                sum.iter_mut()
                    .zip(more)
                    .for_each(|(bin, more)| *bin += more);
            }
            each.push(sum);
        }
        each.iter().map(|bins| clip.range(bins)).collect()
    }
}

/// Prints the bins as their CRC-32: a resumed run compares this text to decide whether its set is
/// the same.
impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let bins: Vec<u64> = self.bins.iter().map(|bin| bin.to_le()).collect();
        let bins = crc32fast::hash(bytemuck::cast_slice(&bins));
        f.debug_struct("Counts")
            .field("channels", &self.channels)
            .field("depth", &self.depth)
            .field("signed", &self.signed)
            .field("bins", &format_args!("{bins:08x}"))
            .finish()
    }
}

fn values(depth: Depth) -> usize {
    usize::from(depth.full()) + 1
}

/// Two percentiles, in millionths of a percent, from 0 to 10⁸.
///
/// With the N samples in order, counted from 0, the lower percentile is the sample at ⌊p·(N − 1)⌋
/// and the upper the sample at ⌈p·(N − 1)⌉: no value between two samples is invented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Clip {
    low: u64,
    high: u64,
}

impl Clip {
    /// One hundred percent.
    const WHOLE: u64 = 100_000_000;

    /// From the smallest sample to the largest.
    pub const NONE: Clip = Clip {
        low: 0,
        high: Clip::WHOLE,
    };

    /// Without the outliers: from 0.1 to 99.9 percent.
    pub const AUTO: Clip = Clip {
        low: Clip::WHOLE / 1000,
        high: Clip::WHOLE / 1000 * 999,
    };

    /// From `low` to `high` percent.
    pub fn from_percentages(low: u64, high: u64) -> Clip {
        let one_percent = Clip::WHOLE / 100;
        Clip {
            low: low * one_percent,
            high: high * one_percent,
        }
    }

    /// The ranks of both percentiles among `count` sorted samples.
    pub fn ranks(&self, count: u64) -> (u64, u64) {
        let rank = |p: u64| u128::from(p) * u128::from(count.saturating_sub(1));
        let low = rank(self.low) / u128::from(Clip::WHOLE);
        let high = rank(self.high).div_ceil(u128::from(Clip::WHOLE));
        (low as u64, high as u64)
    }

    /// The range between both percentiles of the samples counted in `bins`; from 0 to 0 if there are none.
    fn range(&self, bins: &[u64]) -> MinMax<u16> {
        let (low, high) = self.ranks(bins.iter().sum());
        MinMax {
            min: sample_of_rank(bins, low),
            max: sample_of_rank(bins, high),
        }
    }
}

/// The sample with this rank.
fn sample_of_rank(bins: &[u64], rank: u64) -> u16 {
    let mut before = 0;
    let bin = bins.iter().position(|&count| {
        before += count;
        before > rank
    });
    bin.unwrap_or(0) as u16
}

impl FromStr for Clip {
    type Err = String;

    fn from_str(text: &str) -> Result<Clip, String> {
        let (low, high) = text
            .split_once(':')
            .ok_or("expected two percentages separated by a colon, e.g. 0.1:99.9")?;
        let clip = Clip {
            low: percent(low)?,
            high: percent(high)?,
        };
        if clip.low < clip.high {
            Ok(clip)
        } else {
            Err("the first percentage must be below the second".into())
        }
    }
}

/// Parses a percentage into millionths of a percent.
fn percent(text: &str) -> Result<u64, String> {
    let text = text.trim().trim_end_matches('%');
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = (!whole.is_empty() && digits(whole) && digits(decimals) && decimals.len() <= 6)
        .then(|| format!("{whole}{decimals:0<6}").parse().ok())
        .flatten();
    parsed.filter(|&value| value <= Clip::WHOLE).ok_or_else(|| {
        format!("'{text}' is not a percentage from 0 to 100 with at most 6 decimals")
    })
}

/// Count how often each value occurs, exactly, in each channel
#[derive(clap::Args, Clone, Copy, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Histogram;

impl Histogram {
    /// Counts by the definition.
    pub(super) fn count_naively(image: &Image) -> Counts {
        let shape = image.shape();
        let mut counts = Counts::new(shape.channels, shape.depth);
        with_samples!(image.samples(), samples => {
            for (i, sample) in samples.iter().enumerate() {
                counts.bins[i % shape.channels * values(shape.depth) + usize::from(sample.value())] += 1;
            }
        });
        counts
    }

    /// Counts on all cores.
    pub(super) fn count(image: &Image, timeline: &mut Timeline) -> Counts {
        let shape = image.shape();
        timeline.host("histogram", shape.bytes() as u64, || {
            let bins = with_samples!(image.samples(), samples => count(samples, shape.channels));
            Counts {
                channels: shape.channels,
                depth: shape.depth,
                signed: false,
                bins,
            }
        })
    }

    /// Counts on the GPU.
    pub(super) fn count_on_gpu(image: &DeviceImage, job: &mut Job) -> Result<Counts> {
        let shape = image.shape;
        let bytes = shape.bytes() as u64;
        let kernel = job.kernel::<launch::Histogram>(&shape.sample_form())?;
        let mut counts = Counts::new(shape.channels, shape.depth);
        let mut bins = job.zeroed(size_of_val(counts.bins.as_slice()))?;
        let arguments = launch::Histogram {
            src: image.samples.view(),
            samples: shape.samples() as u64,
            bins: bins.view_mut(),
        };
        job.launch(&kernel, job.reduction_grid(bytes), bytes, arguments)?;
        counts.bins = job.read_words(&bins)?;
        Ok(counts)
    }
}

impl Verb for Histogram {
    const NAME: &'static str = "histogram";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg histogram in/ -o all.hist                  count a whole set\n\
\x20 gpuimg histogram in/ --shard 1/3 -o parts/1.hist  the first of three machines\n\
\x20 gpuimg normalize in/ out/ --range-from all.hist   use its range";
    const MAKES_IMAGES: bool = false;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        vec![Box::new(Histogram)]
    }
}

impl Operation for Histogram {
    fn properties(&self) -> Properties {
        Properties::new(Histogram::NAME, Access::Reduction, Effect::Numbers)
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        Work {
            // Counting a sample takes as long as about eight passes through the samples.
            touched: 8 * bytes,
            transferred: bytes,
            ..Work::default()
        }
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Histogram {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        Ok(OpResult::Counts(Histogram::count_naively(image)))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        Ok(OpResult::Counts(Histogram::count(&image, timeline)))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        Ok(OpResult::Counts(Histogram::count_on_gpu(&image, job)?))
    }
}

/// The bins of all channels; each core counts its chunks in its own table.
fn count<T: Sample>(samples: &[T], channels: usize) -> Vec<u64> {
    let values = usize::from(T::FULL.value()) + 1;
    let chunk = CHUNK.next_multiple_of(12); // a multiple of every channel count
    let table = |samples: &[T]| match channels {
        1 => count_chunk::<T, 1>(samples, values),
        2 => count_chunk::<T, 2>(samples, values),
        3 => count_chunk::<T, 3>(samples, values),
        _ => count_chunk::<T, 4>(samples, values),
    };
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let bins = samples.par_chunks(chunk).map(table).reduce_with(add);
    bins.unwrap_or_else(|| vec![0; channels * values])
}

fn count_chunk<T: Sample, const C: usize>(samples: &[T], values: usize) -> Vec<u64> {
    // Two tables, used alternately: equal neighbours do not wait for each other's addition.
    let mut tables = [vec![0u32; C * values], vec![0u32; C * values]];
    let (pixels, _) = samples.as_chunks::<C>();
    for pair in pixels.chunks(2) {
        for (table, pixel) in tables.iter_mut().zip(pair) {
            for (channel, sample) in pixel.iter().enumerate() {
                table[channel * values + usize::from(sample.value())] += 1;
            }
        }
    }
    let [a, b] = tables;
    a.into_iter()
        .zip(b)
        .map(|(a, b)| u64::from(a) + u64::from(b))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_chunks_are_added() {
        let samples: Vec<u8> = (0..2 * CHUNK + 12_347)
            .map(|i| ((i * i) >> 9) as u8)
            .collect();
        let mut expected = vec![0; 3 * 256];
        for (i, &sample) in samples.iter().enumerate() {
            expected[i % 3 * 256 + usize::from(sample)] += 1;
        }
        assert!(count(&samples[..], 3) == expected);
    }

    #[test]
    fn percentiles_are_samples() {
        let mut bins = vec![0; 65536];
        // 1000 samples: 0, 1, …, 998, and one hot pixel.
        bins[..999].fill(1);
        bins[60_000] = 1;
        let pair = |MinMax { min, max }| (min, max);
        let range = |text: &str| pair(text.parse::<Clip>().expect("valid").range(&bins));
        assert_eq!(range("0:100"), (0, 60_000));
        assert_eq!(range("0:99.9"), (0, 60_000)); // ⌈998.001⌉
        assert_eq!(range("0:99.8"), (0, 998)); // ⌈997.002⌉
        assert_eq!(range("0.1:99"), (0, 990)); // ⌊0.999⌋, ⌈989.01⌉
        assert_eq!(range("1:50%"), (9, 500)); // ⌊9.99⌋, ⌈499.5⌉
        assert_eq!(pair(Clip::NONE.range(&bins)), (0, 60_000));
        for wrong in ["", "1", "5:5", "9:1", "-1:5", "0:101", "0:1.0000001", "a:b"] {
            assert!(wrong.parse::<Clip>().is_err(), "{wrong}");
        }
    }
}
