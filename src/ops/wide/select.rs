//! The samples at two ranks among all, without sorting them: their upper halves are counted, then the
//! lower halves of those samples whose upper half is that of a rank.

use super::is_nonfinite;
use crate::image::Depth;
use crate::ops::MinMax;
use crate::ops::clip::Clip;
use rayon::prelude::*;

/// Samples in a chunk of parallel work, a multiple of every channel count: enough to be worth a table
/// of counts of its own.
const CHUNK: usize = 12 << 17;

/// Bins of half a sample.
pub(super) const BINS: usize = 1 << 16;

/// Which samples of a pixel count.
#[derive(Clone, Copy)]
pub struct Channels {
    /// Samples per pixel.
    pub all: usize,
    /// The first that counts.
    pub first: usize,
    /// How many count.
    pub count: usize,
}

/// The half of a sample by which finite samples are counted.
#[derive(Clone, Copy)]
pub enum Half {
    /// By their upper 16 bits.
    Upper,
    /// Those with these upper bits, by their lower 16.
    LowerOf(u32),
}

/// The finite samples at the percentiles of `clip`, where `upper` has the counts by their upper halves and
/// `counts` makes others; `None` if none is finite.
///
/// # Errors
/// Those of `counts`.
pub(super) fn between<E>(
    upper: &[u64],
    clip: Clip,
    mut counts: impl FnMut(Half) -> Result<Vec<u64>, E>,
) -> Result<Option<MinMax<u32>>, E> {
    let count = upper.iter().sum::<u64>();
    if count == 0 {
        return Ok(None);
    }
    let mut at = |rank: u64| -> Result<u32, E> {
        let (high, before) = bin(upper, rank);
        let lower = counts(Half::LowerOf(high))?;
        Ok(high << 16 | bin(&lower, rank - before).0)
    };
    let (low, high) = clip.ranks(count);
    Ok(Some(MinMax {
        min: at(low)?,
        max: at(high)?,
    }))
}

/// How many finite samples fall into each bin, counted on all cores.
pub(super) fn counts(samples: &[u32], depth: Depth, channels: Channels, half: Half) -> Vec<u64> {
    let finite = |sample: u32| !is_nonfinite(depth, sample);
    match half {
        Half::Upper => {
            let bin = |sample: u32| finite(sample).then_some(sample >> 16);
            count_bins(samples, channels, bin)
        }
        Half::LowerOf(high) => count_bins(samples, channels, |sample| {
            (finite(sample) && sample >> 16 == high).then_some(sample & 0xffff)
        }),
    }
}

/// How many samples fall into each bin.
fn count_bins(
    samples: &[u32],
    channels: Channels,
    bin: impl Fn(u32) -> Option<u32> + Sync,
) -> Vec<u64> {
    let table = |chunk: &[u32]| {
        let mut bins = vec![0u64; BINS];
        let mut count = |sample: u32| {
            if let Some(bin) = bin(sample) {
                bins[bin as usize] += 1;
            }
        };
        match channels.all {
            1 => chunk.iter().for_each(|&sample| count(sample)),
            all => {
                for pixel in chunk.chunks_exact(all) {
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
    let tables = samples.par_chunks(CHUNK).map(table);
    tables.reduce_with(add).unwrap_or_else(|| vec![0; BINS])
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
