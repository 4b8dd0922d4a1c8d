//! The median of many images, for a range of their samples at a time. The samples of each pixel are sorted by a network of
//! comparisons, whose order does not depend on the samples: a comparison is the minimum and the maximum of two vectors.
//!
//! A network has n/4·log²n comparisons of n samples. Of many images the median is therefore determined bit by bit, and so it is on
//! a GPU: the sample of rank k, counted from 0, is the largest number with at most k samples below it. That takes 16 or 8
//! comparisons of each sample, which need not be moved.

use super::accumulate::TOO_MANY;
use super::{MOST_IMAGES, WIDTH};
use crate::gpu::NoMemory;
use crate::gpu::driver::{Buffer, Gpu};
use crate::gpu::job::Job;
use crate::gpu::launch::project::Median;
use crate::image::simd::per_level;
use crate::image::{Depth, Samples, Shape};
use crate::ops::cpu::Sample;
use crate::timing::Timeline;
use anyhow::{Context, Result, bail, ensure};
use std::borrow::Borrow;
use std::ops::Range;

/// Bytes of samples that a GPU gets at a time.
const ON_GPU: usize = 256 << 20;

/// The median of the samples at each index, on a GPU, in ranges of samples that fit in its memory. All of `images` have the same
/// number of samples and the same depth.
///
/// # Errors
/// No image or too many, images that differ, and the GPU's.
pub fn median_on_gpu(
    images: &[impl Borrow<Samples>],
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Samples> {
    let (depth, len) = check_images(images)?;
    let send = |job: &mut Job, index: usize, range: Range<usize>, all: &mut Buffer, at: usize| {
        job.send_words(&images[index].borrow().as_bytes()[range], all, at)
    };
    medians(images.len(), depth, len, gpu, timeline, send)
}

/// As `median_on_gpu`, of images that are in the memory of the GPU.
///
/// # Errors
/// Those of `median_on_gpu`.
pub fn median_of_buffers(
    images: &[&Buffer],
    depth: Depth,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Samples> {
    let first = images.first().context("no images to project")?;
    ensure!(images.len() <= MOST_IMAGES, TOO_MANY);
    let len = first.len() / depth.bytes();
    let copy = |job: &mut Job, index: usize, range: Range<usize>, all: &mut Buffer, at: usize| {
        job.copy_part(images[index], range, all, at)
    };
    medians(images.len(), depth, len, gpu, timeline, copy)
}

/// The medians of `count` images. `queue` copies a range of the bytes of an image to the buffer, from a byte of it on.
fn medians(
    count: usize,
    depth: Depth,
    len: usize,
    gpu: &Gpu,
    timeline: &mut Timeline,
    queue: impl Fn(&mut Job, usize, Range<usize>, &mut Buffer, usize) -> Result<()>,
) -> Result<Samples> {
    let mut out = Samples::any(&Shape {
        width: len,
        height: 1,
        channels: 1,
        depth,
    })?;
    let mut most = (ON_GPU / (count * depth.bytes())).clamp(1, len);
    let mut first = 0;
    while first < len {
        let samples = most.min(len - first);
        let range = first * depth.bytes()..(first + samples) * depth.bytes();
        let size = range.len();
        let done = gpu.job(&mut [], timeline, |job| {
            let mut all = job.alloc(count * size)?;
            for index in 0..count {
                queue(job, index, range.clone(), &mut all, index * size)?;
            }
            let mut middle = job.alloc(size)?;
            let kernel = job.kernel::<Median>(&depth.form())?;
            let passes = depth.bits() as usize + 1;
            let grid = u32::try_from(samples.div_ceil(256))?;
            let arguments = Median {
                src: all.view(),
                samples: samples as u64,
                images: count as u32,
                dst: middle.view_mut(),
            };
            job.launch(&kernel, grid, (passes * all.len()) as u64, arguments)?;
            job.fetch(&middle, &mut out.as_bytes_mut()[range.clone()])
        });
        match done {
            Err(error) if error.is::<NoMemory>() && most > 1 => most = samples.div_ceil(2),
            done => {
                done?;
                first += samples;
            }
        }
    }
    Ok(out)
}

/// The depth of all images, and how many samples each has.
pub(super) fn check_images(images: &[impl Borrow<Samples>]) -> Result<(Depth, usize)> {
    let first = images.first().context("no images to project")?.borrow();
    ensure!(images.len() <= MOST_IMAGES, TOO_MANY);
    let layout = |image: &Samples| (image.sample_bytes(), image.len());
    let same = |image: &Samples| layout(image) == layout(first);
    ensure!(
        images.iter().all(|image| same(image.borrow())),
        "the images have different sample types"
    );
    let depth = match first {
        Samples::U8(_) => Depth::Eight,
        Samples::U16(_) => Depth::Sixteen,
        Samples::U32(_) => Depth::Float,
        Samples::U64(_) => bail!("64-bit images cannot be projected"),
    };
    Ok((depth, first.len()))
}

/// The most images whose samples are sorted: with more, a median is determined faster bit by bit (`cargo bench --bench simd`).
const MOST_SORTED: usize = 128;

/// The two middle samples at each index, which are the same for an odd number of images. At most 65535 images. Changes the order
/// of the samples at an index.
pub(super) fn middles<T: Sample>(stack: &mut [[T; WIDTH]]) -> [[T; 2]; WIDTH] {
    if stack.len() > MOST_SORTED {
        return middles_bit_by_bit(stack);
    }
    sort(stack);
    let [low, high] = [(stack.len() - 1) / 2, stack.len() / 2].map(|rank| stack[rank]);
    std::array::from_fn(|i| [low[i], high[i]])
}

/// Moves the smaller sample at each index to `low`. The compiler makes vector code only of a function that gets the two by exclusive
/// references, and of a loop that reads both before it writes: ten times as fast.
#[inline(always)]
fn exchange<T: Ord + Copy>(low: &mut [T; WIDTH], high: &mut [T; WIDTH]) {
    for i in 0..WIDTH {
        let (a, b) = (low[i], high[i]);
        low[i] = a.min(b);
        high[i] = a.max(b);
    }
}

per_level! {
    highest Avx512;

    /// Sorts the samples at each index: Batcher's merge exchange (Knuth, "The Art of Computer Programming", volume 3, 5.2.2,
    /// algorithm M).
    pub(super) fn sort[T: Ord + Copy](stack: &mut [[T; WIDTH]]) {
        let highest = stack.len().next_power_of_two() / 2;
        let mut p = highest;
        while p > 0 {
            let (mut q, mut r, mut distance) = (highest, 0, p);
            loop {
                for first in 0..stack.len() - distance {
                    if first & p == r {
                        let (head, tail) = stack.split_at_mut(first + distance);
                        exchange(&mut head[first], &mut tail[0]);
                    }
                }
                if q == p {
                    break;
                }
                (distance, r) = (q - p, p);
                q /= 2;
            }
            p /= 2;
        }
    }
}

per_level! {
    highest Avx512;

    /// As `middles`. The number of images fits into 16 bits.
    fn middles_bit_by_bit[T: Sample](stack: &[[T; WIDTH]]) -> [[T; 2]; WIDTH] {
        let rank = ((stack.len() - 1) / 2) as u16;
        let mut low = [0u16; WIDTH];
        for bit in (0..8 * size_of::<T>()).rev() {
            let candidate = low.map(|low| low | 1 << bit);
            let mut below = [0u16; WIDTH];
            for row in stack {
                for i in 0..WIDTH {
                    below[i] += u16::from(row[i].value() < candidate[i]);
                }
            }
            for i in 0..WIDTH {
                if below[i] <= rank {
                    low[i] = candidate[i];
                }
            }
        }
        if stack.len() % 2 == 1 {
            return low.map(|low| [T::from_value(low); 2]);
        }
        let (mut at_most, mut above) = ([0u16; WIDTH], [u16::MAX; WIDTH]);
        for row in stack {
            for i in 0..WIDTH {
                let value = row[i].value();
                at_most[i] += u16::from(value <= low[i]);
                let larger = if value > low[i] { value } else { u16::MAX };
                above[i] = above[i].min(larger);
            }
        }
        std::array::from_fn(|i| {
            let low = low[i];
            // Both are the same if one more sample than the lower half is at most that value.
            let high = if at_most[i] - rank >= 2 {
                low
            } else {
                above[i]
            };
            [low, high].map(T::from_value)
        })
    }
}
