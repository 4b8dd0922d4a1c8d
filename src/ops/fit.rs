//! `--fit`: makes an image smaller, by the exact average of the area that each new pixel
//! covers.
//!
//! Exact definition: an image of w × h pixels whose longer side has more than N becomes one of
//! w' × h', with N for the longer side and `max(1, floor(N·s/l + 1/2))` for the side s beside the longer
//! one, l. In steps of 1/w' of an old pixel, new column i covers i·w to (i + 1)·w, and old column x
//! covers x·w' to (x + 1)·w'; rows likewise. With `a(x)` and `b(y)` the steps that an old pixel shares
//! with a new one, each channel separately, alpha too:
//! `out = floor(Σ a(x)·b(y)·p(x, y) / (w·h) + 1/2)`, since Σ a = w and Σ b = h. The sums are whole
//! numbers of at most 65535·w·h, so they can be computed in any order, on any device.

use super::{DeviceImage, never_wide, samples_from};
use crate::gpu::driver::{View, ViewMut};
use crate::gpu::job::Job;
use crate::gpu::launch::fit as launch;
use crate::image::simd::per_level;
use crate::image::{Image, Samples, Shape};
use crate::ops::cpu::Sample;
use anyhow::Result;
use rayon::prelude::*;
use std::num::NonZeroUsize;
use std::ops::Range;

/// The most pixels that the longer side of a result may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Fit(NonZeroUsize);

impl std::str::FromStr for Fit {
    type Err = String;

    fn from_str(text: &str) -> Result<Fit, String> {
        let most = text.trim().parse().ok().map(Fit);
        most.ok_or_else(|| "expected a positive number of pixels, e.g. 1024".into())
    }
}

impl Fit {
    /// The shape of the result for an image of this shape, which may be small enough already.
    pub fn output(self, shape: Shape) -> Shape {
        let most = self.0.get();
        let longer = shape.width.max(shape.height);
        if longer <= most {
            return shape;
        }
        let side = |side: usize| {
            let (side, longer) = (side as u128, longer as u128);
            let rounded = (2 * most as u128 * side + longer) / (2 * longer);
            (rounded as usize).max(1)
        };
        Shape {
            width: side(shape.width),
            height: side(shape.height),
            ..shape
        }
    }

    /// The definition: serial and simple.
    pub fn naive(self, image: &Image) -> Image {
        let (from, to) = (image.shape(), self.output(image.shape()));
        let value = |x: usize, y: usize, channel: usize| -> u128 {
            let index = y * from.row() + x * from.channels + channel;
            image.samples().at(index).into()
        };
        let whole = (from.width * from.height) as u128;
        let mut values = Vec::with_capacity(to.samples());
        for j in 0..to.height {
            for i in 0..to.width {
                for channel in 0..to.channels {
                    let mut sum = 0;
                    for y in 0..from.height {
                        for x in 0..from.width {
                            let across = shared(x, to.width, i, from.width);
                            let down = shared(y, to.height, j, from.height);
                            if across * down > 0 {
                                sum += (across * down) as u128 * value(x, y, channel);
                            }
                        }
                    }
                    values.push(((2 * sum + whole) / (2 * whole)) as u64);
                }
            }
        }
        Image::new(to, samples_from(to.depth, values.into_iter()))
    }

    /// The same, computed on all cores.
    pub fn cpu(self, image: Image) -> Image {
        let (from, to) = (image.shape(), self.output(image.shape()));
        if from == to {
            return image;
        }
        let samples = match image.samples() {
            Samples::U8(samples) => reduced(samples, from, to).into(),
            Samples::U16(samples) => reduced(samples, from, to).into(),
            Samples::U32(_) | Samples::U64(_) => never_wide!(),
        };
        Image::new(to, samples)
    }

    /// The same of an image on a GPU, queued on the job's stream.
    ///
    /// # Errors
    /// Those of the GPU.
    pub fn cuda(self, image: &DeviceImage, job: &mut Job) -> Result<DeviceImage> {
        let (from, to) = (image.shape, self.output(image.shape));
        let kernel = job.kernel::<launch::Fit>(&format!("u{}", from.depth.bits()))?;
        let mut samples = job.alloc(to.bytes())?;
        let bytes = (from.bytes() + to.bytes()) as u64;
        let arguments = arguments(image.samples.view(), from, samples.view_mut(), to);
        job.launch(&kernel, grid(from, to)?, bytes, arguments)?;
        let shape = to;
        Ok(DeviceImage { shape, samples })
    }
}

/// The arguments of the kernel that reduces an image of shape `from` with the samples `src` to the shape `to`.
pub(crate) fn arguments<'a>(
    src: View<'a>,
    from: Shape,
    dst: ViewMut<'a>,
    to: Shape,
) -> launch::Fit<'a> {
    launch::Fit {
        src,
        width: from.width as u64,
        height: from.height as u64,
        channels: from.channels as u64,
        dst,
        new_width: to.width as u64,
        new_height: to.height as u64,
        lanes: lanes(from, to) as u32,
    }
}

/// Threads of the kernel that work on one sample: as many as it covers columns.
fn lanes(from: Shape, to: Shape) -> usize {
    let covered = from.width.div_ceil(to.width);
    covered.next_power_of_two().min(32)
}

/// Blocks of the kernel.
///
/// # Errors
/// A result of more samples than a grid has threads.
pub fn grid(from: Shape, to: Shape) -> Result<u32> {
    Ok(u32::try_from(
        (to.samples() * lanes(from, to)).div_ceil(256),
    )?)
}

/// The steps that an old and a new pixel share along one axis; each is given by its number, and by
/// its width in steps.
fn shared(old: usize, old_width: usize, new: usize, new_width: usize) -> usize {
    let end = ((old + 1) * old_width).min((new + 1) * new_width);
    end.saturating_sub((old * old_width).max(new * new_width))
}

/// The old pixels that share steps with a new one, where an axis of `from` old pixels has `to` new ones.
fn covered(new: usize, from: usize, to: usize) -> Range<usize> {
    new * from / to..((new + 1) * from).div_ceil(to)
}

/// Computes each row of the result separately: first the weighted sum of the rows that it covers, in vector code, and then
/// that of the columns, in one row.
fn reduced<T: Sample>(samples: &[T], from: Shape, to: Shape) -> Vec<T> {
    // 65535 times the weights, which make up `from.height`.
    let small = from.height <= 65537;
    let mut result = vec![T::ZERO; to.samples()];
    let rows = result.par_chunks_mut(to.row()).enumerate();
    if small {
        rows.for_each_init(Vec::new, |sums: &mut Vec<u32>, (row, out)| {
            sum_rows(samples, row, from, to, sums);
            average_columns(sums, from, to, out);
        })
    } else {
        rows.for_each_init(Vec::new, |sums: &mut Vec<u64>, (row, out)| {
            sum_rows(samples, row, from, to, sums);
            average_columns(sums, from, to, out);
        })
    }
    result
}

/// A whole number that sums of one column fit into.
trait Sum: Copy + Default + Into<u64> + Send {
    /// Adds `weight` times `value`.
    fn add(&mut self, weight: usize, value: u16);
}

impl Sum for u32 {
    #[inline(always)]
    fn add(&mut self, weight: usize, value: u16) {
        *self += weight as u32 * u32::from(value);
    }
}

impl Sum for u64 {
    #[inline(always)]
    fn add(&mut self, weight: usize, value: u16) {
        *self += weight as u64 * u64::from(value);
    }
}

/// The weighted sums of the rows that new row `new` covers, for each sample of a row.
fn sum_rows<T: Sample, S: Sum>(
    samples: &[T],
    new: usize,
    from: Shape,
    to: Shape,
    sums: &mut Vec<S>,
) {
    sums.clear();
    sums.resize(from.row(), S::default());
    for old in covered(new, from.height, to.height) {
        let weight = shared(old, to.height, new, from.height);
        add_row(&samples[old * from.row()..][..from.row()], weight, sums);
    }
}

per_level! {
    highest Avx512;

    fn add_row[T: Sample, S: Sum](row: &[T], weight: usize, sums: &mut [S]) {
        for (sum, sample) in sums.iter_mut().zip(row) {
            sum.add(weight, sample.value());
        }
    }
}

/// A row of the result from the sums of the rows that it covers.
fn average_columns<T: Sample, S: Sum>(sums: &[S], from: Shape, to: Shape, out: &mut [T]) {
    let channels = from.channels;
    let whole = (from.width * from.height) as u64;
    for (new, pixel) in out.chunks_exact_mut(channels).enumerate() {
        let mut totals = [0u64; 4];
        for old in covered(new, from.width, to.width) {
            let weight = shared(old, to.width, new, from.width) as u64;
            let old = &sums[old * channels..][..channels];
            for (total, &sum) in totals.iter_mut().zip(old) {
                *total += weight * sum.into();
            }
        }
        for (sample, total) in pixel.iter_mut().zip(totals) {
            // Of 65535 at most, since the weights make up `whole`.
            *sample = T::from_value(((2 * total + whole) / (2 * whole)) as u16);
        }
    }
}
