//! Extremes, percentiles, sums and scale of samples of 32 bits on a GPU: kernels/wide_*.cu.

use super::scale::Scale;
use super::select::{self, Half};
use super::sum::Sums;
use super::{Extremes, Fixed};
use crate::gpu::job::Job;
use crate::gpu::launch::wide_count::Count;
use crate::gpu::launch::wide_stretch::Stretch;
use crate::gpu::launch::wide_sum::EXPONENTS;
use crate::gpu::launch::{wide_extremes, wide_sum};
use crate::image::{Depth, Shape, number};
use crate::ops::clip::Clip;
use crate::ops::exact::Exact;
use crate::ops::{DeviceImage, MinMax};
use anyhow::{Context, Result};

impl Extremes {
    /// As `Extremes::cpu`, of an image on a GPU. Waits for all queued work.
    ///
    /// # Errors
    /// Those of the GPU.
    pub fn on_gpu(image: &DeviceImage, job: &mut Job) -> Result<Extremes> {
        let shape = image.shape;
        let form = format!("c{}", shape.channels);
        let kernel = job.kernel::<wide_extremes::Extremes>(&form)?;
        let mut words = job.words(&[u64::MAX; 5])?;
        let (least, span) = finite(shape.depth);
        let bytes = shape.bytes() as u64;
        let arguments = wide_extremes::Extremes {
            src: image.samples.view(),
            samples: shape.samples() as u64,
            least,
            span,
            ranges: words.view_mut(),
        };
        job.launch(&kernel, job.reduction_grid(bytes), bytes, arguments)?;
        let found = job.read_words::<u64>(&words)?;
        let (count, pairs) = found.split_last().context("no words")?;
        let range = |pair: &u64| MinMax {
            min: *pair & u64::from(u32::MAX),
            max: !*pair >> 32,
        };
        Ok(Extremes {
            ranges: pairs[..shape.channels].iter().map(range).collect(),
            nonfinite: count.wrapping_add(1),
            ..Extremes::default()
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
    let kernel = job.kernel::<Count>("")?;
    let (least, span) = finite(shape.depth);
    let bytes = shape.bytes() as u64;
    let grid = job.reduction_grid(bytes);
    Extremes::selected(&shape, clip, per_channel, |channels, half| {
        let mut bins = job.zeroed(select::BINS * size_of::<u64>())?;
        let arguments = Count {
            src: image.samples.view(),
            samples: shape.samples() as u64,
            channels: channels.all as u32,
            first: channels.first as u32,
            counted: channels.count as u32,
            least,
            span,
            upper: match half {
                Half::Upper => select::BINS as u32,
                Half::LowerOf(upper) => upper,
            },
            bins: bins.view_mut(),
        };
        job.launch(&kernel, grid, bytes, arguments)?;
        job.read_words(&bins)
    })
}

/// Words of the sums of a channel.
pub const TOTALS: usize = 2 * EXPONENTS as usize;

/// As `sum::cpu`, of an image on a GPU. Waits for all queued work.
///
/// # Errors
/// Those of the GPU.
pub fn sums(image: &DeviceImage, nan: u32, job: &mut Job) -> Result<Sums> {
    let Shape {
        channels, depth, ..
    } = image.shape;
    let kernel = job.kernel::<wide_sum::Sum>(&format!("c{channels}"))?;
    let mut words = job.words(&vec![0u64; channels * TOTALS + 1])?;
    let bytes = image.shape.bytes() as u64;
    let arguments = wide_sum::Sum {
        src: image.samples.view(),
        samples: image.shape.samples() as u64,
        is_real: (depth == Depth::Float).into(),
        nan,
        totals: words.view_mut(),
    };
    job.launch(&kernel, job.reduction_grid(bytes), bytes, arguments)?;
    totals(&job.read_words(&words)?, depth)
}

/// The sums in the words that the kernel leaves of samples of this depth.
///
/// # Errors
/// No words.
pub fn totals(words: &[u64], depth: Depth) -> Result<Sums> {
    let (&nonfinite, parts) = words.split_last().context("no words")?;
    let (parts, _) = parts.as_chunks::<2>();
    let sum = |parts: &[[u64; 2]]| match depth {
        Depth::Float => Exact::Real(real(parts)),
        _ => Exact::Whole(i128::from(parts[0][0]) + (i128::from(parts[0][1] as i64) << 32)),
    };
    let sums = parts.chunks(EXPONENTS as usize).map(sum).collect();
    Ok(Sums { sums, nonfinite })
}

/// The sum of (low + 2³²·high)·2^(e − 149), where `high` has a sign, over the exponents e.
fn real(parts: &[[u64; 2]]) -> Fixed {
    let mut sum = Fixed::default();
    for (exponent, [low, high]) in (0..).zip(parts) {
        let high = *high as i64;
        let upper = Fixed::from_parts(high.unsigned_abs(), exponent + 32);
        sum = sum.plus(Fixed::from_parts(*low, exponent));
        sum = if high < 0 {
            sum.minus(upper)
        } else {
            sum.plus(upper)
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
    let kernel = job.kernel::<Stretch>(&shape.sample_form())?;
    let scales: Vec<_> = scales
        .iter()
        .map(|scale| scale.packed(from.depth))
        .collect();
    let scales = job.words(&scales)?;
    let mut samples = job.alloc(shape.bytes())?;
    let grid = u32::try_from(shape.samples().div_ceil(4096))?;
    let bytes = from.bytes() + shape.bytes();
    let arguments = Stretch {
        src: image.samples.view(),
        dst: samples.view_mut(),
        samples: shape.samples() as u64,
        scales: scales.view(),
        is_real: (from.depth == Depth::Float).into(),
        nan,
    };
    job.launch(&kernel, grid, bytes as u64, arguments)?;
    Ok(DeviceImage { shape, samples })
}
