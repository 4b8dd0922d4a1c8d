//! The result of an accumulator: means, sums that fit, or the samples as they are.

use super::accumulate::{CHUNK, Fold};
use super::float::{self, Whole};
use super::{Accumulator, Projection, alpha_steps, is_alpha};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples, Values, number};
use crate::ops::cpu::Sample;
use crate::ops::quotient::{floored, sample};
use crate::ops::with_samples;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

impl Accumulator {
    /// The projection of all images that were added.
    ///
    /// # Errors
    /// No image, a sum that does not fit, and a GPU's.
    pub fn finish(mut self) -> Result<Image> {
        ensure!(self.images() > 0, "no images to project");
        self.join_gpus()?;
        let to = self.project.output(self.shape);
        let mut out = Samples::any(&to)?;
        let images = self.images();
        let chunks = std::mem::take(&mut self.chunks);
        let chunks = chunks.into_iter().map(Mutex::into_inner);
        let chunks: Vec<Vec<u32>> = chunks
            .map(|chunk| chunk.unwrap_or_else(PoisonError::into_inner))
            .collect();
        if let Samples::U32(wide) = &mut out {
            if to.depth == Depth::Float {
                self.convert_to_reals(&chunks, wide);
            } else {
                self.convert_to_wide(&chunks, wide);
            }
            return Ok(Image::new(to, out));
        }
        let fit = match self.project.how {
            Projection::Sum => Some(self.fit(&chunks)?),
            _ => None,
        };
        with_samples!(&mut out, out => {
            let pairs = out.par_chunks_mut(CHUNK).zip(&chunks).enumerate();
            pairs.for_each(|(index, (out, known))| match (self.fold, &fit) {
                (Fold::Lower | Fold::Raise, _) => {
                    let known: &[_] = bytemuck::cast_slice(known);
                    out.copy_from_slice(&known[..out.len()]);
                }
                (Fold::Add, None) => mean(known, images as f64, out),
                (Fold::Add, Some(fit)) => {
                    for (i, (out, &sum)) in out.iter_mut().zip(known).enumerate() {
                        let value = if is_alpha(&self.shape, index * CHUNK + i) { fit.alpha(sum) } else { fit.sample(sum) };
                        *out = Sample::from_value(value);
                    }
                }
            });
        });
        Ok(Image::new(to, out))
    }

    /// Numbers in floating point.
    fn convert_to_reals(&self, chunks: &[Vec<u32>], out: &mut [u32]) {
        let whole = Whole::new(self.shape, self.values.signed);
        let images = self.images() as f64;
        let pairs = out.par_chunks_mut(CHUNK).zip(chunks).enumerate();
        pairs.for_each(|(index, (out, known))| {
            for (i, out) in out.iter_mut().enumerate() {
                let place = index * CHUNK + i;
                let value = match (self.fold, self.shape.depth) {
                    (Fold::Add, _) => whole.total(self.project.how, place, known[i].into(), images),
                    (_, Depth::Eight) => {
                        let known: &[u8] = bytemuck::cast_slice(known);
                        whole.mean(place, known[i].into(), 1.0)
                    }
                    _ => {
                        let known: &[u16] = bytemuck::cast_slice(known);
                        whole.mean(place, known[i].into(), 1.0)
                    }
                };
                *out = float::sample(value);
            }
        });
    }

    /// Sums as samples of 32 bits, which have room for all.
    fn convert_to_wide(&self, chunks: &[Vec<u32>], out: &mut [u32]) {
        let images = self.images() as u64;
        // Σ(p − zero) lies between −2³¹ and 2³¹, so that 32 bits suffice for every step.
        let zero = images as u32 * u32::from(self.values.zero());
        let new_zero = if self.values.signed { number::TOP } else { 0 };
        let steps = alpha_steps(self.shape.depth, Depth::ThirtyTwo);
        let pairs = out.par_chunks_mut(CHUNK).zip(chunks).enumerate();
        pairs.for_each(|(index, (out, sums))| {
            for (i, (out, &sum)) in out.iter_mut().zip(sums).enumerate() {
                *out = if is_alpha(&self.shape, index * CHUNK + i) {
                    ((2 * u64::from(sum) + images) / (2 * images) * steps) as u32
                } else {
                    sum.wrapping_sub(zero).wrapping_add(new_zero)
                };
            }
        });
    }

    /// How sums become samples.
    ///
    /// # Errors
    /// Sums that do not fit, and are neither to be clamped nor scaled.
    fn fit(&self, chunks: &[Vec<u32>]) -> Result<Fit> {
        let images = self.images() as i64;
        let to = self.project.output(self.shape);
        let written = Values {
            depth: to.depth,
            ..self.values
        };
        let zero = images * i64::from(self.values.zero());
        let range = |(index, sums): (usize, &Vec<u32>)| {
            let sums = sums.iter().enumerate();
            let colours = sums.filter(|(i, _)| !is_alpha(&self.shape, index * CHUNK + i));
            let values = colours.map(|(_, &sum)| i64::from(sum) - zero);
            values.fold((i64::MAX, i64::MIN), |(min, max), v| {
                (min.min(v), max.max(v))
            })
        };
        let ranges = chunks.par_iter().enumerate().map(range);
        let (min, max) =
            ranges.reduce(|| (i64::MAX, i64::MIN), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (least, most) = (i64::from(written.least()), i64::from(written.most()));
        let wider = if to.depth == self.shape.depth && self.shape.depth.bits() == 8 {
            "16 or 32"
        } else {
            "32"
        };
        ensure!(
            self.project.saturate || self.project.scale || least <= min && max <= most,
            "the sums range from {min} to {max}, but {written} can hold only {least} to {most} (use --saturate to clamp, --scale to scale to {most}, --to {wider} for more bits, or project mean)"
        );
        Ok(Fit {
            images,
            zero,
            scale: self.project.scale.then_some(min.abs().max(max.abs())),
            least,
            most,
            steps: self.shape.depth.steps(to.depth),
        })
    }
}

/// How sums of samples become samples.
struct Fit {
    images: i64,
    /// The sum of as many samples whose value is 0.
    zero: i64,
    /// The largest sum, without its sign, if it is to become the largest value.
    scale: Option<i64>,
    least: i64,
    most: i64,
    /// How many steps of the result make one of the images.
    steps: u16,
}

impl Fit {
    fn sample(&self, sum: u32) -> u16 {
        let sum = i64::from(sum) - self.zero;
        let value = match self.scale {
            None => sum,
            Some(0) => 0,
            // 2·2³²·2¹⁶ + 2³² is far below 2⁶³.
            Some(largest) => (2 * sum * self.most + largest).div_euclid(2 * largest),
        };
        (value.clamp(self.least, self.most) - self.least) as u16
    }

    fn alpha(&self, sum: u32) -> u16 {
        let mean = (2 * i64::from(sum) + self.images) / (2 * self.images);
        mean as u16 * self.steps
    }
}

per_level! {
    highest Avx2;

    /// ⌊sum / images + 1/2⌋; 2·2³² + 2¹⁷ is far below 2⁵³.
    fn mean[T: Sample](sums: &[u32], images: f64, out: &mut [T]) {
        for (out, &sum) in out.iter_mut().zip(sums) {
            *out = sample(floored(2.0 * f64::from(sum) + images, 2.0 * images));
        }
    }
}
