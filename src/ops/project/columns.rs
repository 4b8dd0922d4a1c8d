//! Projections that need all images at once, for a range of their samples at a time.

use super::clipped::{clip, clip_reals};
use super::float::{Whole, check_finite, sample};
use super::median::{check_images, middles, sort};
use super::{Project, Projection, WIDTH, is_alpha};
use crate::image::number::from_key;
use crate::image::simd::per_level;
use crate::image::{Samples, Shape};
use crate::ops::cpu::Sample;
use crate::ops::never_wide;
use crate::ops::quotient::{floored, sample as whole_sample};
use crate::timing::Timeline;
use anyhow::{Result, bail};
use rayon::prelude::*;
use std::borrow::Borrow;

/// The projection of the samples of all images, in their order. Each of `images` has the same range of the samples of an
/// image of this shape, from index `first` on.
///
/// # Errors
/// No image or too many, images that differ, no memory, sums that exceed the largest number, and a projection of whole numbers that
/// does not need all images at once, except their minimum and maximum without conversion: an `Accumulator` computes it.
pub fn project_columns(
    project: &Project,
    shape: Shape,
    signed: bool,
    first: usize,
    images: &[impl Borrow<Samples>],
    timeline: &mut Timeline,
) -> Result<Samples> {
    let (depth, len) = check_images(images)?;
    let mut out = Samples::any(&Shape {
        width: len,
        height: 1,
        channels: 1,
        depth: project.output(shape).depth,
    })?;
    let columns = Columns {
        project,
        shape,
        whole: Whole::new(shape, signed),
        first,
    };
    let bytes = (images.len() * len * depth.bytes()) as u64;
    let images: Vec<&Samples> = images.iter().map(Borrow::borrow).collect();
    timeline.host(project.how.name(), bytes, || match &mut out {
        Samples::U8(out) => columns.rounded(&bytes_of_each(&images), out),
        Samples::U16(out) => columns.rounded(&words_of_each(&images), out),
        Samples::U32(out) => match images[0] {
            Samples::U8(_) => columns.exact(&bytes_of_each(&images), out),
            Samples::U16(_) => columns.exact(&words_of_each(&images), out),
            _ => {
                columns.real(&keys_of_each(&images), out);
                Ok(())
            }
        },
        Samples::U64(_) => never_wide!(),
    })?;
    if let (Samples::U32(out), Projection::Sum) = (&out, project.how) {
        check_finite(out)?;
    }
    Ok(out)
}

/// A range of the samples of all images.
struct Columns<'a> {
    project: &'a Project,
    /// The shape of an image.
    shape: Shape,
    whole: Whole,
    /// The index of the first sample in the image.
    first: usize,
}

impl Columns<'_> {
    /// Whole numbers, rounded to whole numbers.
    fn rounded<T: Sample>(&self, images: &[&[T]], out: &mut [T]) -> Result<()> {
        match (self.project.how, self.project.sigma) {
            (_, Some(sigma)) => for_each_block(images, out, |_, stack| {
                let kept = clip(stack, sigma);
                std::array::from_fn(|i| {
                    let (sum, count) = (f64::from(kept.sum[i]), f64::from(kept.count[i]));
                    whole_sample(floored(2.0 * sum + count, 2.0 * count))
                })
            }),
            (Projection::Min, None) => for_each_block(images, out, |_, stack| least(stack)),
            (Projection::Max, None) => for_each_block(images, out, |_, stack| greatest(stack)),
            (Projection::Median, None) => for_each_block(images, out, |_, stack| {
                middles(stack).map(|[low, high]| {
                    let sum = u32::from(low.value()) + u32::from(high.value());
                    T::from_value(sum.div_ceil(2) as u16)
                })
            }),
            (Projection::Sum | Projection::Mean, None) => return self.unsupported(),
        }
        Ok(())
    }

    /// Whole numbers, not rounded to whole numbers.
    fn exact<T: Sample>(&self, images: &[&[T]], out: &mut [u32]) -> Result<()> {
        match (self.project.how, self.project.sigma) {
            (_, Some(sigma)) => for_each_block(images, out, |start, stack| {
                let kept = clip(stack, sigma);
                std::array::from_fn(|i| {
                    let (sum, count) = (kept.sum[i].into(), kept.count[i].into());
                    sample(self.whole.mean(self.first + start + i, sum, count))
                })
            }),
            (Projection::Median, None) => for_each_block(images, out, |start, stack| {
                let middles = middles(stack);
                std::array::from_fn(|i| {
                    let [low, high] = middles[i].map(|middle| f64::from(middle.value()));
                    sample(self.whole.mean(self.first + start + i, low + high, 2.0))
                })
            }),
            (_, None) => return self.unsupported(),
        }
        Ok(())
    }

    fn unsupported(&self) -> Result<()> {
        bail!(
            "internal error: the {} of whole numbers is computed by an accumulator",
            self.project.how.name()
        )
    }

    /// Floating-point numbers.
    fn real(&self, images: &[&[u32]], out: &mut [u32]) {
        let count = images.len() as f64;
        match (self.project.how, self.project.sigma) {
            (_, Some(sigma)) => {
                for_each_block(images, out, |_, stack| clip_reals(stack, sigma).map(sample));
            }
            (Projection::Mean, None) => {
                for_each_block(images, out, |_, stack| {
                    sums(stack).map(|sum| sample(sum / count))
                });
            }
            (Projection::Sum, None) => for_each_block(images, out, |start, stack| {
                let sums = sums(stack);
                std::array::from_fn(|i| {
                    if is_alpha(&self.shape, self.first + start + i) {
                        sample(sums[i] / count)
                    } else {
                        sample(sums[i])
                    }
                })
            }),
            (Projection::Min, None) => for_each_block(images, out, |_, stack| least(stack)),
            (Projection::Max, None) => for_each_block(images, out, |_, stack| greatest(stack)),
            (Projection::Median, None) => for_each_block(images, out, |_, stack| {
                sort(stack);
                let middle = [(stack.len() - 1) / 2, stack.len() / 2].map(|rank| stack[rank]);
                std::array::from_fn(|i| {
                    let [low, high] = middle.map(|keys| f64::from(from_key(keys[i])));
                    sample((low + high) / 2.0)
                })
            }),
        }
    }
}

/// Projects the samples of all images in blocks, on all cores. `project` receives the index of a block's first sample, and a copy
/// of the samples of each image; what it returns beyond the end of the range does not count.
pub(super) fn for_each_block<T, R>(
    images: &[&[T]],
    out: &mut [R],
    project: impl Fn(usize, &mut [[T; WIDTH]]) -> [R; WIDTH] + Sync,
) where
    T: bytemuck::Pod + Send + Sync,
    R: Copy + Send,
{
    let chunks = out.par_chunks_mut(WIDTH).enumerate();
    chunks.for_each_init(
        || vec![[T::zeroed(); WIDTH]; images.len()],
        |stack, (index, out)| {
            let start = index * WIDTH;
            for (row, image) in stack.iter_mut().zip(images) {
                row[..out.len()].copy_from_slice(&image[start..start + out.len()]);
            }
            out.copy_from_slice(&project(start, stack)[..out.len()]);
        },
    );
}

per_level! {
    highest Avx512;

    fn sums(stack: &[[u32; WIDTH]]) -> [f64; WIDTH] {
        let mut sums = [0.0; WIDTH];
        for row in stack {
            for i in 0..WIDTH {
                sums[i] += f64::from(from_key(row[i]));
            }
        }
        sums
    }
}

per_level! {
    highest Avx512;

    fn least[T: Ord + Copy](stack: &[[T; WIDTH]]) -> [T; WIDTH] {
        let mut least = stack[0];
        for row in &stack[1..] {
            for i in 0..WIDTH {
                least[i] = least[i].min(row[i]);
            }
        }
        least
    }
}

per_level! {
    highest Avx512;

    fn greatest[T: Ord + Copy](stack: &[[T; WIDTH]]) -> [T; WIDTH] {
        let mut greatest = stack[0];
        for row in &stack[1..] {
            for i in 0..WIDTH {
                greatest[i] = greatest[i].max(row[i]);
            }
        }
        greatest
    }
}

fn bytes_of_each<'s>(images: &[&'s Samples]) -> Vec<&'s [u8]> {
    let bytes = images.iter().map(|image| match image {
        Samples::U8(samples) => &samples[..],
        _ => &[],
    });
    bytes.collect()
}

fn words_of_each<'s>(images: &[&'s Samples]) -> Vec<&'s [u16]> {
    let words = images.iter().map(|image| match image {
        Samples::U16(samples) => &samples[..],
        _ => &[],
    });
    words.collect()
}

fn keys_of_each<'s>(images: &[&'s Samples]) -> Vec<&'s [u32]> {
    let keys = images.iter().map(|image| match image {
        Samples::U32(samples) => &samples[..],
        _ => &[],
    });
    keys.collect()
}
