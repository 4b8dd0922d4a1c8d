//! The samples at two ranks among all, without sorting them: their upper halves are counted, then the
//! lower halves of those samples whose upper half is that of a rank.

use super::is_odd;
use crate::image::Depth;
use crate::ops::histogram::Clip;
use rayon::prelude::*;

/// Samples of a piece of parallel work, a multiple of every channel count: enough to be worth a table
/// of counts of its own.
const PART: usize = 12 << 17;

/// Bins of half a sample.
const BINS: usize = 1 << 16;

/// Which samples of a pixel count.
#[derive(Clone, Copy)]
pub(super) struct Channels {
    /// Samples a pixel.
    pub all: usize,
    /// The first that counts.
    pub first: usize,
    /// How many count.
    pub count: usize,
}

/// What was found.
pub(super) struct Found {
    /// The samples at both ranks; `None` if none is finite.
    pub range: Option<(u32, u32)>,
    /// How many samples are no finite numbers.
    pub odd: u64,
}

/// The finite samples at the percentiles of `clip`.
pub(super) fn percentiles(samples: &[u32], depth: Depth, channels: Channels, clip: Clip) -> Found {
    let finite = |sample: u32| !is_odd(depth, sample);
    let upper = counts(samples, channels, |sample| {
        finite(sample).then_some(sample >> 16)
    });
    let count = upper.iter().sum::<u64>();
    let pixels = samples.len() / channels.all;
    let odd = (pixels * channels.count) as u64 - count;
    if count == 0 {
        return Found { range: None, odd };
    }
    let ranks = clip.ranks(count);
    let at = |rank: u64| {
        let (high, before) = bin(&upper, rank);
        let lower = counts(samples, channels, |sample| {
            (finite(sample) && sample >> 16 == high).then_some(sample & 0xffff)
        });
        high << 16 | bin(&lower, rank - before).0
    };
    Found {
        range: Some((at(ranks.0), at(ranks.1))),
        odd,
    }
}

/// How many samples are no finite numbers.
pub(super) fn odd(samples: &[u32], depth: Depth, channels: Channels) -> u64 {
    let pixels = samples.par_chunks_exact(channels.all);
    let of_pixel = |pixel: &[u32]| {
        let counted = &pixel[channels.first..channels.first + channels.count];
        counted
            .iter()
            .filter(|&&sample| is_odd(depth, sample))
            .count() as u64
    };
    pixels.map(of_pixel).sum()
}

/// How many samples fall into each bin.
fn counts(
    samples: &[u32],
    channels: Channels,
    bin: impl Fn(u32) -> Option<u32> + Sync,
) -> Vec<u64> {
    let table = |part: &[u32]| {
        let mut bins = vec![0u64; BINS];
        let mut count = |sample: u32| {
            if let Some(bin) = bin(sample) {
                bins[bin as usize] += 1;
            }
        };
        match channels.all {
            1 => part.iter().for_each(|&sample| count(sample)),
            all => {
                for pixel in part.chunks_exact(all) {
                    let counted = &pixel[channels.first..channels.first + channels.count];
                    counted.iter().for_each(|&sample| count(sample));
                }
            }
        }
        bins
    };
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let parts = samples.par_chunks(PART).map(table);
    parts.reduce_with(add).unwrap_or_else(|| vec![0; BINS])
}

/// The bin of the sample with this rank, and how many samples are in those before it.
fn bin(bins: &[u64], rank: u64) -> (u32, u64) {
    let mut before = 0;
    for (bin, &count) in bins.iter().enumerate() {
        if before + count > rank {
            return (bin as u32, before);
        }
        before += count;
    }
    (0, 0)
}
