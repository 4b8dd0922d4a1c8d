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

use super::area_mean::{Reduction, shared};
use super::{DeviceImage, samples_from};
use crate::gpu::driver::{View, ViewMut};
use crate::gpu::job::Job;
use crate::gpu::launch::fit as launch;
use crate::image::{Image, Shape};
use anyhow::Result;
use std::num::NonZeroUsize;

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
        Image::new(to, Reduction::new(from, to).add(&image))
    }

    /// The same of an image on a GPU, queued on the job's stream.
    ///
    /// # Errors
    /// Those of the GPU.
    pub fn cuda(self, image: &DeviceImage, job: &mut Job) -> Result<DeviceImage> {
        let (from, to) = (image.shape, self.output(image.shape));
        let kernel = job.kernel::<launch::Fit>(&from.depth.form())?;
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
