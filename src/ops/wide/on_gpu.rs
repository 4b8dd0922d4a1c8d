//! Extremes and scale of samples of 32 bits on a GPU: kernels/wide_extremes.cu and wide_stretch.cu.

use super::Extremes;
use super::scale::Scale;
use crate::device::cuda::Arg;
use crate::device::job::Job;
use crate::image::{Depth, Shape, number};
use crate::ops::DeviceImage;
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
        let (least, greatest) = match shape.depth {
            Depth::Float => (*number::FINITE.start(), *number::FINITE.end()),
            _ => (0, u32::MAX),
        };
        let args = [
            Arg::Buffer(&image.samples),
            Arg::U64(shape.samples() as u64),
            Arg::U32(least),
            Arg::U32(greatest - least),
            Arg::Buffer(&words),
        ];
        let bytes = shape.bytes() as u64;
        let grid = job.reduction_grid(bytes);
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { job.launch(&kernel, grid, bytes, &args) }?;
        let found = job.read_words::<u64>(&words)?;
        let (count, pairs) = found.split_last().context("no words")?;
        let range = |pair: &u64| (*pair as u32, !(*pair >> 32) as u32);
        Ok(Extremes {
            ranges: pairs[..shape.channels].iter().map(range).collect(),
            odd: count.wrapping_add(1),
            percentiles: false,
            collapsed: Vec::new(),
        })
    }
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
