//! Extremes, percentiles, sums and scale of samples of 32 bits on a GPU: kernels/wide_*.cu.

use super::scale::Scale;
use super::select::{self, Half};
use super::sum::Sums;
use super::{Extremes, Fixed};
use crate::device::cuda::Arg;
use crate::device::job::Job;
use crate::image::{Depth, Shape, number};
use crate::ops::DeviceImage;
use crate::ops::histogram::Clip;
use crate::ops::sum::Exact;
use anyhow::{Context, Result};

impl Extremes {
    /// As `Extremes::cpu`, of an image on a GPU. Waits for all queued work.
    ///
    /// # Errors
    /// Those of the GPU.
    pub fn on_gpu(image: &DeviceImage, job: &mut Job) -> Result<Extremes> {
        let shape = image.shape;
        let form = format!("c{}", shape.channels);
        let [kernel] = job.kernels("wide_extremes", ["extremes"], &form)?;
        let words = job.words(&[u64::MAX; 5])?;
        let (least, span) = finite(shape.depth);
        let args = [
            Arg::Buffer(&image.samples),
            Arg::U64(shape.samples() as u64),
            Arg::U32(least),
            Arg::U32(span),
            Arg::Buffer(&words),
        ];
        let bytes = shape.bytes() as u64;
        let grid = job.reduction_grid(bytes);
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&kernel, grid, bytes, &args) }?;
        let found = job.read_words::<u64>(&words)?;
        let (count, pairs) = found.split_last().context("no words")?;
        let range = |pair: &u64| (*pair & u64::from(u32::MAX), !*pair >> 32);
        Ok(Extremes {
            ranges: pairs[..shape.channels].iter().map(range).collect(),
            odd: count.wrapping_add(1),
            percentiles: false,
            collapsed: Vec::new(),
        })
    }
}

/// The keys or integers that are numbers: the least, and how many follow it.
fn finite(depth: Depth) -> (u32, u32) {
    match depth {
        Depth::Float => {
            let (least, greatest) = (*number::FINITE.start(), *number::FINITE.end());
            (least, greatest - least)
        }
        _ => (0, u32::MAX),
    }
}

/// As `Extremes::percentiles`, of an image on a GPU. Waits for all queued work.
///
/// # Errors
/// Those of the GPU.
pub fn percentiles(
    image: &DeviceImage,
    clip: Clip,
    per_channel: bool,
    job: &mut Job,
) -> Result<Extremes> {
    let shape = image.shape;
    let [kernel] = job.kernels("wide_count", ["count"], "")?;
    let (least, span) = finite(shape.depth);
    let bytes = shape.bytes() as u64;
    let grid = job.reduction_grid(bytes);
    Extremes::selected(&shape, clip, per_channel, |channels, half| {
        let bins = job.zeroed(select::BINS * size_of::<u64>())?;
        let args = [
            Arg::Buffer(&image.samples),
            Arg::U64(shape.samples() as u64),
            Arg::U32(channels.all as u32),
            Arg::U32(channels.first as u32),
            Arg::U32(channels.count as u32),
            Arg::U32(least),
            Arg::U32(span),
            Arg::U32(match half {
                Half::Upper => select::BINS as u32,
                Half::LowerOf(upper) => upper,
            }),
            Arg::Buffer(&bins),
        ];
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&kernel, grid, bytes, &args) }?;
        job.read_words(&bins)
    })
}

/// Exponents of floating-point numbers: each is m·2^(e − 149) with m < 2²⁴ and e below this.
const EXPONENTS: usize = 254;

/// Words of the sums of a channel.
pub const TOTALS: usize = 2 * EXPONENTS;

/// As `sum::cpu`, of an image on a GPU. Waits for all queued work.
///
/// # Errors
/// Those of the GPU.
pub fn sums(image: &DeviceImage, nan: u32, job: &mut Job) -> Result<Sums> {
    let Shape {
        channels, depth, ..
    } = image.shape;
    let [kernel] = job.kernels("wide_sum", ["sum"], &format!("c{channels}"))?;
    let words = job.words(&vec![0u64; channels * TOTALS + 1])?;
    let bytes = image.shape.bytes() as u64;
    let args = [
        Arg::Buffer(&image.samples),
        Arg::U64(image.shape.samples() as u64),
        Arg::U32((depth == Depth::Float).into()),
        Arg::U32(nan),
        Arg::Buffer(&words),
    ];
    let grid = job.reduction_grid(bytes);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&kernel, grid, bytes, &args) }?;
    totals(&job.read_words(&words)?, depth)
}

/// The sums in the words that the kernel leaves of samples of this depth.
///
/// # Errors
/// No words.
pub fn totals(words: &[u64], depth: Depth) -> Result<Sums> {
    let (&odd, parts) = words.split_last().context("no words")?;
    let (parts, _) = parts.as_chunks::<2>();
    let sum = |parts: &[[u64; 2]]| match depth {
        Depth::Float => Exact::Real(real(parts)),
        _ => Exact::Whole(i128::from(parts[0][0]) + (i128::from(parts[0][1] as i64) << 32)),
    };
    let sums = parts.chunks(EXPONENTS).map(sum).collect();
    Ok(Sums { sums, odd })
}

/// The sum of (low + 2³²·high)·2^(e − 149), where `high` has a sign, over the exponents e.
fn real(parts: &[[u64; 2]]) -> Fixed {
    let mut sum = Fixed::default();
    for (exponent, [low, high]) in (0..).zip(parts) {
        let high = *high as i64;
        let upper = Fixed::of(high.unsigned_abs(), exponent + 32);
        sum = sum.plus(Fixed::of(*low, exponent));
        sum = match high < 0 {
            true => sum.minus(upper),
            false => sum.plus(upper),
        };
    }
    sum
}

/// As `scale::cpu`, of an image on a GPU.
///
/// # Errors
/// Those of the GPU.
pub fn scale(
    image: &DeviceImage,
    to: Depth,
    scales: &[Scale],
    nan: u32,
    job: &mut Job,
) -> Result<DeviceImage> {
    let from = image.shape;
    let shape = Shape { depth: to, ..from };
    let [kernel] = job.kernels("wide_stretch", ["stretch"], &shape.sample_form())?;
    let words: Vec<[u64; 5]> = scales
        .iter()
        .map(|scale| scale.packed(from.depth))
        .collect();
    let constants = job.words(&words)?;
    let samples = job.alloc(shape.bytes())?;
    let args = [
        Arg::Buffer(&image.samples),
        Arg::Buffer(&samples),
        Arg::U64(shape.samples() as u64),
        Arg::Buffer(&constants),
        Arg::U32((from.depth == Depth::Float).into()),
        Arg::U32(nan),
    ];
    let grid = u32::try_from(shape.samples().div_ceil(4096))?;
    let bytes = from.bytes() + shape.bytes();
    // SAFETY: the arguments are those of the kernel's header, with one scale for each channel, and their
    // counts are the buffers'; device memory is aligned to 256 bytes.
    unsafe { job.launch(&kernel, grid, bytes as u64, &args) }?;
    Ok(DeviceImage { shape, samples })
}
