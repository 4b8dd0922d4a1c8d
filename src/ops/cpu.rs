//! The CPU as a device: samples are divided into chunks, which rayon distributes over the cores.

use crate::image::buffer::Buffer;
use anyhow::Result;
use rayon::prelude::*;

/// Samples handled together by vector code. A multiple of every channel count (1–4), so that a
/// sample's channel is `lane % channels`, and of the widest vectors (32 samples of 16 bits).
pub const LANES: usize = 96;

/// Samples in a chunk: whole lanes, about 384 KiB of 16-bit samples, large enough to hide the cost
/// of handing work to a core and small enough for a level-2 cache.
pub const CHUNK: usize = 2048 * LANES;

/// A sample type: u8 or u16.
pub trait Sample: bytemuck::Pod + Ord + Send + Sync {
    /// 0
    const ZERO: Self;
    /// The largest value.
    const FULL: Self;
    /// The value as 16 bits.
    fn value(self) -> u16;
    /// The low bits of `value`, which must fit.
    fn from_value(value: u16) -> Self;
    /// Sums each lane over at most 65537 blocks. Neighbours are added as the halves of one word of
    /// twice the size, so that vectors need no widening, only a mask and a shift.
    fn sum_blocks(blocks: &[[Self; LANES]]) -> [u32; LANES];
}

impl Sample for u8 {
    const ZERO: u8 = 0;
    const FULL: u8 = u8::MAX;
    #[inline(always)]
    fn value(self) -> u16 {
        self.into()
    }
    #[inline(always)]
    fn from_value(value: u16) -> u8 {
        value as u8
    }
    #[inline(always)]
    fn sum_blocks(blocks: &[[u8; LANES]]) -> [u32; LANES] {
        let mut sums = [0; LANES];
        // A number of bytes whose sum fits into 16 bits.
        for blocks in blocks.chunks(257) {
            let (mut low, mut high) = ([0u16; LANES / 2], [0u16; LANES / 2]);
            for block in blocks {
                let pairs: [u16; LANES / 2] = bytemuck::cast(*block);
                for i in 0..LANES / 2 {
                    low[i] += pairs[i] & 0xff;
                    high[i] += pairs[i] >> 8;
                }
            }
            let halves = neighbours(low, high);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += u32::from(halves[i % 2][i / 2]);
            }
        }
        sums
    }
}

impl Sample for u16 {
    const ZERO: u16 = 0;
    const FULL: u16 = u16::MAX;
    #[inline(always)]
    fn value(self) -> u16 {
        self
    }
    #[inline(always)]
    fn from_value(value: u16) -> u16 {
        value
    }
    #[inline(always)]
    fn sum_blocks(blocks: &[[u16; LANES]]) -> [u32; LANES] {
        let (mut low, mut high) = ([0u32; LANES / 2], [0u32; LANES / 2]);
        for block in blocks {
            let pairs: [u32; LANES / 2] = bytemuck::cast(*block);
            for i in 0..LANES / 2 {
                low[i] += pairs[i] & 0xffff;
                high[i] += pairs[i] >> 16;
            }
        }
        let halves = neighbours(low, high);
        std::array::from_fn(|i| halves[i % 2][i / 2])
    }
}

/// The results of the lower and the upper halves of words, in the order of the samples in memory.
#[inline(always)]
fn neighbours<T>(low: T, high: T) -> [T; 2] {
    if cfg!(target_endian = "big") {
        [high, low]
    } else {
        [low, high]
    }
}

/// Folds `map` of every chunk, starting with `nothing`. Every chunk begins at lane 0.
pub fn reduce<T: Sync, R: Copy + Send + Sync>(
    samples: &[T],
    nothing: R,
    map: impl Fn(&[T]) -> R + Sync + Send,
    fold: impl Fn(R, R) -> R + Sync + Send,
) -> R {
    if samples.len() <= CHUNK {
        return fold(nothing, map(samples));
    }
    samples.par_chunks(CHUNK).map(map).reduce(|| nothing, fold)
}

/// Changes every chunk, in place unless the memory is shared. Every chunk begins at lane 0.
///
/// # Errors
/// No memory for the changed samples.
pub fn for_each_chunk<T: Sample>(
    samples: &mut Buffer<T>,
    change: impl Fn(&mut [T]) + Sync + Send,
) -> Result<()> {
    for_each_chunk_of(CHUNK, samples, |_, chunk| change(chunk))
}

/// The same with chunks of `size` samples, and the index of each.
///
/// # Errors
/// No memory for the changed samples.
pub fn for_each_chunk_of<T: Sample>(
    size: usize,
    samples: &mut Buffer<T>,
    change: impl Fn(usize, &mut [T]) + Sync + Send,
) -> Result<()> {
    let copy_and_change = |index: usize, from: &[T], to: &mut [T]| {
        // A chunk is copied just before it is changed, so that it is in the cache.
        to.copy_from_slice(from);
        change(index, to);
    };
    change_chunks(size, samples, &change, copy_and_change)
}

/// Changes every chunk of `size` samples with `in_place`, or with `into` if the memory is shared: this writes the changed samples
/// of one chunk to another, which has undefined values. Both are given the index of the chunk.
///
/// # Errors
/// No memory for the changed samples.
pub fn change_chunks<T: Sample>(
    size: usize,
    samples: &mut Buffer<T>,
    in_place: impl Fn(usize, &mut [T]) + Sync + Send,
    into: impl Fn(usize, &[T], &mut [T]) + Sync + Send,
) -> Result<()> {
    let Some(mut changed) = samples.memory_for_change()? else {
        if samples.len() <= size {
            in_place(0, samples);
        } else {
            let chunks = samples.par_chunks_mut(size).enumerate();
            chunks.for_each(|(index, chunk)| in_place(index, chunk));
        }
        return Ok(());
    };
    if samples.len() <= size {
        into(0, samples, &mut changed);
    } else {
        let chunks = samples.par_chunks(size).zip(changed.par_chunks_mut(size));
        chunks
            .enumerate()
            .for_each(|(index, (from, to))| into(index, from, to));
    }
    *samples = changed;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_samples_are_changed_in_new_memory() -> Result<()> {
        for len in [1, 7, 8, 9, 31] {
            let old: Vec<u16> = (0..len).collect();
            let expected: Vec<u16> = (0..len).map(|i| 100 * (i / 8) + i + 1).collect();
            let change = |index: usize, chunk: &mut [u16]| {
                chunk
                    .iter_mut()
                    .for_each(|it| *it += 100 * index as u16 + 1);
            };
            let mut own = Buffer::from(old.clone());
            let at = own.as_ptr();
            for_each_chunk_of(8, &mut own, change)?;
            assert_eq!((own.as_ptr(), &own[..]), (at, &expected[..]));
            let kept = Buffer::from(old.clone()).shared();
            let mut shared = kept.clone();
            for_each_chunk_of(8, &mut shared, change)?;
            assert_eq!((&kept[..], &shared[..]), (&old[..], &expected[..]));
        }
        Ok(())
    }

    /// On big-endian machines the sum of 16 bits was that of samples whose bytes had changed places.
    #[test]
    fn sums_had_their_bytes_exchanged_on_big_endian_machines() {
        let block: [u16; LANES] = std::array::from_fn(|i| 0x0102 + 3 * i as u16);
        let expected: [u32; LANES] = std::array::from_fn(|i| 2 * (0x0102 + 3 * i as u32));
        assert_eq!(Sample::sum_blocks(&[block, block]), expected);
        let block: [u8; LANES] = std::array::from_fn(|i| 200 + i as u8 % 50);
        let expected: [u32; LANES] = std::array::from_fn(|i| 300 * (200 + i as u32 % 50));
        assert_eq!(Sample::sum_blocks(&[block; 300]), expected);
    }
}
