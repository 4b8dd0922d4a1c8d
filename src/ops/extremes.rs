//! The smallest and the largest sample of each channel: the first of the two kernels of "CUDA:
//! performance aspects of typical tasks" (habr.com post 119435, 2011), which finds both in one
//! pass.
//!
//! On the CPU samples are grouped into lanes, so that one loop serves every channel count; the
//! compiler makes vector code for each kind of processor.

use super::{DeviceImage, with_samples};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::normalize::Minmax;
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::cpu::{self, LANES, Sample};
use crate::timing::Timeline;
use anyhow::Result;

/// Minimum and maximum, in samples, of each channel with its own range: one range for all colours, or one
/// for each. `min > max` is impossible, because every channel has a sample.
pub type Ranges = Vec<(u16, u16)>;

/// The smallest and the largest sample of each channel, alpha included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// Bits per sample.
    pub depth: Depth,
    /// (min, max) of each channel; an image has at least one pixel, so min ≤ max.
    pub channels: Ranges,
}

impl Extremes {
    /// The definition.
    pub(super) fn naive(image: &Image) -> Extremes {
        let shape = image.shape();
        let mut channels = vec![(u16::MAX, 0); shape.channels];
        with_samples!(image.samples(), samples => for (i, sample) in samples.iter().enumerate() {
            let value = Sample::value(*sample);
            let (min, max) = &mut channels[i % shape.channels];
            (*min, *max) = ((*min).min(value), (*max).max(value));
        });
        Extremes {
            depth: shape.depth,
            channels,
        }
    }

    /// The same, computed on all cores.
    pub(super) fn cpu(image: &Image, timeline: &mut Timeline) -> Extremes {
        let shape = image.shape();
        let mut channels = vec![(u16::MAX, 0); shape.channels];
        timeline.host("minmax", shape.bytes() as u64, || {
            let lanes = with_samples!(image.samples(), samples => cpu::reduce(samples, NO_RANGE, min_max_chunk, fold_ranges));
            for lane in 0..LANES {
                let (min, max) = &mut channels[lane % shape.channels];
                (*min, *max) = ((*min).min(lanes.0[lane]), (*max).max(lanes.1[lane]));
            }
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
        let (least, most): (Vec<u16>, Vec<u16>) = self.channels.iter().copied().unzip();
        let samples = least.into_iter().chain(most);
        let samples = match self.depth {
            Depth::Eight => Samples::U8(samples.map(|sample| sample as u8).collect()),
            _ => Samples::U16(samples.collect()),
        };
        Image::new(shape, samples)
    }

    /// Merges the extremes of another part with the same number of channels.
    pub(super) fn join(&mut self, more: &Extremes) {
        for (known, more) in self.channels.iter_mut().zip(&more.channels) {
            *known = (known.0.min(more.0), known.1.max(more.1));
        }
    }

    /// The ranges of the first `colours` channels: one for each, or one for all.
    pub(super) fn ranges(&self, colours: usize, per_channel: bool) -> Ranges {
        let each = self.channels.iter().take(colours).copied();
        if per_channel {
            each.collect()
        } else {
            vec![each.fold((u16::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)))]
        }
    }
}

/// The same in the form that the kernels use: for each of four channels, the minimum, and the full value
/// minus the maximum.
#[derive(Debug)]
pub struct DeviceExtremes {
    shape: Shape,
    /// Eight words of 32 bits.
    pub(super) words: Buffer,
}

impl DeviceExtremes {
    /// Queues the min/max kernel over an image.
    pub(super) fn find(image: &DeviceImage, job: &mut Job) -> Result<DeviceExtremes> {
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
            channels: pairs
                .map(|pair| (pair[0] as u16, depth.full() - pair[1] as u16))
                .collect(),
        })
    }
}

/// Minimum and maximum of each lane; a lane holds the samples whose index leaves the same
/// remainder.
pub(super) type MinMaxLanes = ([u16; LANES], [u16; LANES]);

/// The neutral element of `fold_ranges`: the range of no sample.
pub(super) const NO_RANGE: MinMaxLanes = ([u16::MAX; LANES], [0; LANES]);

/// The range of two sets of samples together, lane by lane.
pub(super) fn fold_ranges(mut a: MinMaxLanes, b: MinMaxLanes) -> MinMaxLanes {
    for lane in 0..LANES {
        a.0[lane] = a.0[lane].min(b.0[lane]);
        a.1[lane] = a.1[lane].max(b.1[lane]);
    }
    a
}

per_level! {
    highest Avx512;

    pub(super) fn min_max_chunk[T: Sample](samples: &[T]) -> MinMaxLanes {
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
        (min.map(Sample::value), max.map(Sample::value))
    }
}
