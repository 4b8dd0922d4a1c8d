//! Counts how often each value occurs in each channel, exactly, and finds percentiles.

use super::clip::Clip;
use super::{DeviceImage, MinMax, with_samples};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::gpu::launch::histogram as launch;
use crate::image::{Depth, Image, Shape, Values};
use crate::ops::cpu::Sample;
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt;

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

    /// The bytes that counting moves in an image of this shape.
    pub(super) fn work(shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        Work {
            // Counting a sample takes as long as about eight passes through the samples.
            touched: 8 * bytes,
            transferred: bytes,
            ..Work::default()
        }
    }

    /// Counts by the definition.
    pub(super) fn naive(image: &Image) -> Counts {
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
    pub(super) fn cpu(image: &Image, timeline: &mut Timeline) -> Counts {
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
    pub(super) fn on_gpu(image: &DeviceImage, job: &mut Job) -> Result<Counts> {
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
    pub fn without(&self, samples: &[u16]) -> Cow<'_, Counts> {
        if samples.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut kept = self.clone();
        for bins in kept.bins.chunks_exact_mut(values(self.depth)) {
            samples
                .iter()
                .for_each(|&sample| bins[usize::from(sample)] = 0);
        }
        Cow::Owned(kept)
    }

    /// The same as counts of samples of the type that a file stores. Samples of 8 bits may have been counted after the
    /// conversion to 16 bits, as multiples of 257.
    pub fn in_depth(&self, stored: Depth) -> Cow<'_, Counts> {
        let step = stored.steps(self.depth);
        if step == 1 {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Counts {
            depth: stored,
            bins: self.bins.iter().copied().step_by(step.into()).collect(),
            ..*self
        })
    }

    /// The ranges of the colour channels between the percentiles of `clip`: one for all, or one for
    /// each.
    pub fn ranges(&self, clip: Clip, per_channel: bool) -> Vec<MinMax<u16>> {
        let colours = self.channels - usize::from(self.channels.is_multiple_of(2));
        let mut each = self.each().take(colours);
        if per_channel || colours == 1 {
            return each.map(|bins| range(clip, bins)).collect();
        }
        let mut sum = each.next().map(<[u64]>::to_vec).unwrap_or_default();
        for more in each {
            sum.iter_mut()
                .zip(more)
                .for_each(|(bin, more)| *bin += more);
        }
        vec![range(clip, &sum)]
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

/// The range between both percentiles of the samples counted in `bins`; from 0 to 0 if there are none.
fn range(clip: Clip, bins: &[u64]) -> MinMax<u16> {
    let (low, high) = clip.ranks(bins.iter().sum());
    MinMax {
        min: sample_of_rank(bins, low),
        max: sample_of_rank(bins, high),
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

/// The bins of all channels; each core counts its chunks in its own table.
fn count<T: Sample>(samples: &[T], channels: usize) -> Vec<u64> {
    match T::FULL.value() {
        0xff => count_values::<T, 0x100>(samples, channels),
        _ => count_values::<T, 0x1_0000>(samples, channels),
    }
}

/// The bins of samples that have `VALUES` values.
fn count_values<T: Sample, const VALUES: usize>(samples: &[T], channels: usize) -> Vec<u64> {
    let chunk = CHUNK.next_multiple_of(12); // a multiple of every channel count
    let table = |samples: &[T]| match channels {
        1 => count_chunk::<T, VALUES, 1>(samples),
        2 => count_chunk::<T, VALUES, 2>(samples),
        3 => count_chunk::<T, VALUES, 3>(samples),
        _ => count_chunk::<T, VALUES, 4>(samples),
    };
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let bins = samples.par_chunks(chunk).map(table).reduce_with(add);
    bins.unwrap_or_else(|| vec![0; channels * VALUES])
}

fn count_chunk<T: Sample, const VALUES: usize, const CHANNELS: usize>(samples: &[T]) -> Vec<u64> {
    // Two tables, used alternately: equal neighbours do not wait for each other's addition.
    let mut first = vec![0u32; CHANNELS * VALUES];
    let mut second = first.clone();
    // Of known lengths, so that no index needs a check.
    let a: &mut [[u32; VALUES]; CHANNELS] = tables(&mut first);
    let b: &mut [[u32; VALUES]; CHANNELS] = tables(&mut second);
    let add = |tables: &mut [[u32; VALUES]; CHANNELS], pixel: &[T; CHANNELS]| {
        for (table, sample) in tables.iter_mut().zip(pixel) {
            table[usize::from(sample.value()) % VALUES] += 1;
        }
    };
    let (pairs, rest) = samples.as_chunks::<CHANNELS>().0.as_chunks::<2>();
    for [left, right] in pairs {
        add(a, left);
        add(b, right);
    }
    rest.iter().for_each(|pixel| add(a, pixel));
    let bins = first.into_iter().zip(second);
    bins.map(|(a, b)| u64::from(a) + u64::from(b)).collect()
}

/// The counts of each channel, as arrays.
fn tables<const VALUES: usize, const CHANNELS: usize>(
    counts: &mut [u32],
) -> &mut [[u32; VALUES]; CHANNELS] {
    let tables = counts.as_chunks_mut::<VALUES>().0.first_chunk_mut();
    tables.unwrap_or_else(|| unreachable!("a table for each channel"))
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
        let range = |text: &str| pair(super::range(text.parse().expect("valid"), &bins));
        assert_eq!(range("0:100"), (0, 60_000));
        assert_eq!(range("0:99.9"), (0, 60_000)); // ⌈998.001⌉
        assert_eq!(range("0:99.8"), (0, 998)); // ⌈997.002⌉
        assert_eq!(range("0.1:99"), (0, 990)); // ⌊0.999⌋, ⌈989.01⌉
        assert_eq!(range("1:50%"), (9, 500)); // ⌊9.99⌋, ⌈499.5⌉
        assert_eq!(pair(super::range(Clip::NONE, &bins)), (0, 60_000));
        for wrong in ["", "1", "5:5", "9:1", "-1:5", "0:101", "0:1.0000001", "a:b"] {
            assert!(wrong.parse::<Clip>().is_err(), "{wrong}");
        }
    }
}
