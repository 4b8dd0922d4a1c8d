//! The smallest and the largest sample of each channel: the first of the two kernels of "CUDA:
//! performance aspects of typical tasks" (habr.com post 119435, 2011), which finds both in one
//! pass.
//!
//! On the CPU samples are grouped into lanes, so that one loop serves every channel count; the
//! compiler makes vector code for each kind of processor.

use super::min_max::{MinMax, MinMaxLanes};
use super::{DeviceImage, samples_from, with_samples};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::normalize::Minmax;
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Shape};
use crate::ops::cpu::{self, LANES, Sample};
use crate::timing::Timeline;
use anyhow::Result;

/// The smallest and the largest sample of each channel, alpha included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// Bits per sample.
    pub depth: Depth,
    /// Those of each channel; an image has at least one pixel, so there are none without a sample.
    pub channels: Vec<MinMax<u16>>,
}

impl Extremes {
    /// The definition.
    pub(super) fn naive(image: &Image) -> Extremes {
        let shape = image.shape();
        let mut channels = vec![MinMax::NONE; shape.channels];
        with_samples!(image.samples(), samples => for (i, sample) in samples.iter().enumerate() {
            channels[i % shape.channels].include(Sample::value(*sample));
        });
        Extremes {
            depth: shape.depth,
            channels,
        }
    }

    /// The same, computed on all cores.
    pub(super) fn cpu(image: &Image, timeline: &mut Timeline) -> Extremes {
        let shape = image.shape();
        let channels = timeline.host("minmax", shape.bytes() as u64, || {
            let lanes = with_samples!(image.samples(), samples => cpu::reduce(samples, MinMaxLanes::NONE, min_max_chunk, MinMaxLanes::merge));
            lanes.by_channel(shape.channels)
        });
        Extremes {
            depth: shape.depth,
            channels,
        }
    }

    /// An image of two pixels, of the smallest and of the largest samples.
    pub fn pixels(&self) -> Image {
        let shape = Shape {
            width: 2,
            height: 1,
            channels: self.channels.len(),
            depth: self.depth,
        };
        let least = self.channels.iter().map(|channel| channel.min);
        let samples = least.chain(self.channels.iter().map(|channel| channel.max));
        Image::new(shape, samples_from(self.depth, samples.map(u64::from)))
    }

    /// Merges the extremes of another chunk or page with the same number of channels.
    pub(super) fn join(&mut self, more: &Extremes) {
        for (known, more) in self.channels.iter_mut().zip(&more.channels) {
            *known = known.merge(*more);
        }
    }

    /// The ranges of the first `colours` channels: one for each, or one for all.
    pub(super) fn ranges(&self, colours: usize, per_channel: bool) -> Vec<MinMax<u16>> {
        let each = self.channels.iter().take(colours).copied();
        if per_channel {
            each.collect()
        } else {
            vec![each.fold(MinMax::NONE, MinMax::merge)]
        }
    }
}

/// The same in the form that the kernels use: for each of four channels, the minimum, and the full value minus the
/// maximum.
#[derive(Debug)]
pub struct DeviceExtremes {
    shape: Shape,
    /// Eight words of 32 bits.
    pub(super) words: Buffer,
}

impl DeviceExtremes {
    /// Queues the min/max kernel over an image.
    pub(super) fn measure(image: &DeviceImage, job: &mut Job) -> Result<DeviceExtremes> {
        let shape = image.shape;
        let bytes = shape.bytes() as u64;
        let minmax = job.kernel::<Minmax>(&shape.sample_form())?;
        let mut words = job.words(&[u32::MAX; 8])?;
        let arguments = Minmax {
            src: image.samples.view(),
            samples: shape.samples() as u64,
            ranges: words.view_mut(),
        };
        job.launch(&minmax, job.reduction_grid(bytes), bytes, arguments)?;
        Ok(DeviceExtremes { shape, words })
    }

    /// Waits for all queued work and copies the extremes to the host.
    pub(super) fn read(&self, job: &mut Job) -> Result<Extremes> {
        let words = job.read_words::<u32>(&self.words)?;
        let Shape {
            channels, depth, ..
        } = self.shape;
        let pairs = words.chunks_exact(2).take(channels);
        Ok(Extremes {
            depth,
            channels: pairs.map(|pair| from_words(pair, depth)).collect(),
        })
    }
}

/// Those of a channel, from the minimum, and the full value minus the maximum. Words that the kernel has not changed exceed
/// the full value: they give the minimum and maximum of no sample.
pub(super) fn from_words(words: &[u32], depth: Depth) -> MinMax<u16> {
    let full = depth.full();
    MinMax {
        min: words[0] as u16,
        max: full - (words[1] as u16).min(full),
    }
}

per_level! {
    highest Avx512;

    pub(super) fn min_max_chunk[T: Sample](samples: &[T]) -> MinMaxLanes<u16, LANES> {
        let mut min = [T::FULL; LANES];
        let mut max = [T::ZERO; LANES];
        let (blocks, rest) = samples.as_chunks::<LANES>();
        for (lane, &value) in rest.iter().enumerate() {
            min[lane] = value;
            max[lane] = value;
        }
        for block in blocks {
            for lane in 0..LANES {
                min[lane] = min[lane].min(block[lane]);
                max[lane] = max[lane].max(block[lane]);
            }
        }
        MinMaxLanes { min: min.map(Sample::value), max: max.map(Sample::value) }
    }
}
