//! Results of the type of the images, 8 or 16 bits.
//!
//! Exact definition, with q = max(f − b, 1), and m the mean of f − b over the channel:
//! `out = clamp(⌊(p − d)·m / q + 1/2⌋ + offset)`. Without a dark frame d is the sample whose value
//! is 0; without a flat field m / q is 1. Values below the dark frame are negative until the offset is
//! added.
//!
//! With m = S/n, S the sum over n pixels, and x = p − d, that is ⌊(U + q) / 2q⌋ with U = ⌊2xS/n⌋, since
//! a fraction below 1 added to a whole numerator carries over no whole multiple of the divisor. Doubles
//! compute it exactly. Let 2S/n = a + b with a whole, a < 2¹⁷, and 0 ≤ b < 1 a multiple of 1/n. x·a is
//! exact. For x ≥ 0 take b rounded up to a double, by less than 2⁻⁵³: x·b grows by less than 2⁻³⁷, and
//! rounding the product moves it by at most 2⁻³⁸; neither brings it below the whole number that it
//! reached, nor, while n ≤ 2³⁶, from k + 1 − 1/n or less up to k + 1. For x < 0 take b rounded down, and
//! the same holds of the ceiling of −x·b. So U is exact, |U| < 2³⁴, and so is the last quotient
//! (`quotient::floored`). Where the quotient is no nearer to a half than 2⁻³⁰, which is nearly everywhere, one
//! rounded to nearest tells as much (`cpu`, and in pairs of single precision kernels/calibrate.cu).

mod cpu;
pub(super) mod factors;
mod resident;

use super::hot;
use super::{ImageFrames, Settings, digest, launch};
use crate::gpu::driver::Tenant;
use crate::gpu::job::Job;
use crate::image::{Image, Values};
use crate::ops::{DeviceImage, samples_from, with_samples};
use crate::timing::Timeline;
use anyhow::Result;
use factors::Factor;
use resident::frames;
use std::sync::atomic::{AtomicU64, Ordering};

/// The frames, and the options that apply to integers.
#[derive(Debug)]
pub(super) struct Whole {
    values: Values,
    dark: Option<Image>,
    /// q of each sample.
    flat: Option<Image>,
    /// The mean m of each channel.
    factors: Vec<Factor>,
    settings: Settings,
    /// Keeps the frames on GPUs.
    tenant: Tenant,
}

impl Whole {
    /// With frames of the type `values`.
    ///
    /// # Errors
    /// A flat field that is not brighter than what is subtracted from it.
    pub fn new(frames: ImageFrames, settings: Settings, values: Values) -> Result<Whole> {
        let ImageFrames {
            dark, below, flat, ..
        } = frames;
        let (flat, factors) = match flat {
            Some(flat) => {
                let (flat, factors) = factors::from_flat(flat, below.as_ref(), values.zero())?;
                (Some(flat), factors)
            }
            None => {
                let channels = dark.as_ref().map_or(1, |dark| dark.shape().channels);
                (None, vec![Factor::ONE; channels])
            }
        };
        Ok(Whole {
            values,
            dark,
            flat,
            factors,
            settings,
            tenant: Tenant::default(),
        })
    }

    /// Whether a frame is subtracted from the images.
    pub fn has_dark(&self) -> bool {
        self.dark.is_some()
    }

    /// What decides the result.
    pub fn digests(&self) -> serde_json::Value {
        let sums = self.factors.iter().map(|factor| factor.sum);
        serde_json::json!({
            "dark": digest(&self.dark),
            "flat": digest(&self.flat),
            "sums": sums.collect::<Vec<_>>(),
        })
    }

    /// The whole number that is added at the end: the offset plus the sample whose value is 0.
    pub fn shift(&self) -> i32 {
        self.settings.offset + i32::from(self.values.zero())
    }

    /// The result for a sample of a colour before it is clamped, by the definition.
    pub fn unclamped(&self, image: &Image, i: usize) -> i128 {
        let at = |image: &Image| i128::from(image.samples().at(i));
        let zero = i128::from(self.values.zero());
        let p = at(image);
        let d = self.dark.as_ref().map_or(zero, at);
        let q = self.flat.as_ref().map_or(1, at);
        let Factor { sum, pixels } = self.factors[i % image.shape().channels];
        let (sum, n) = (i128::from(sum), i128::from(pixels));
        (2 * (p - d) * sum + n * q).div_euclid(2 * n * q) + i128::from(self.shift())
    }

    /// The definition.
    pub fn naive(&self, image: &Image) -> Image {
        let shape = image.shape();
        let exact = |i: usize| {
            if i % shape.channels >= shape.colours() {
                return image.samples().at(i);
            }
            let out = self.unclamped(image, i);
            out.clamp(0, shape.depth.full().into()) as u64
        };
        let out = samples_from(shape.depth, (0..shape.samples()).map(exact));
        hot::naive(Image::new(shape, out), self.settings.hot)
    }

    /// The same on all cores. Counts the samples that are clamped.
    ///
    /// # Errors
    /// No memory for the result.
    pub fn cpu(
        &self,
        mut image: Image,
        clamped: &AtomicU64,
        timeline: &mut Timeline,
    ) -> Result<Image> {
        let shape = image.shape();
        timeline.host("calibrate", self.passes() * shape.bytes() as u64, || {
            with_samples!(image.samples_mut(), samples => {
                self.on_cores(&shape, samples, clamped)
            })
        })?;
        Ok(image)
    }

    /// How often as many bytes as the image has are read or written.
    fn passes(&self) -> u64 {
        2 + u64::from(self.dark.is_some()) + u64::from(self.flat.is_some())
    }

    /// The same on a GPU. Counts the samples that are clamped.
    ///
    /// # Errors
    /// Errors of the GPU.
    pub fn cuda(
        &self,
        mut image: DeviceImage,
        clamped: &AtomicU64,
        job: &mut Job,
    ) -> Result<DeviceImage> {
        let shape = image.shape;
        let form = shape.sample_form();
        let frames = frames(job, self)?;
        let calibrate = job.kernel::<launch::Calibrate>(&form)?;
        let bytes = shape.bytes() as u64;
        let mut count = job.zeroed(size_of::<u64>())?;
        // The kernel does not read a missing frame: any buffer can take its place.
        let frame = |buffer| Option::unwrap_or(buffer, &frames.factors).view();
        let arguments = launch::Calibrate {
            image: image.samples.view_mut(),
            samples: shape.samples() as u64,
            dark: frame(frames.dark.as_ref()),
            flat: frame(frames.flat.as_ref()),
            factors: frames.factors.view(),
            has_dark: frames.dark.is_some().into(),
            has_flat: frames.flat.is_some().into(),
            zero: self.values.zero().into(),
            offset: self.settings.offset,
            clamped: count.view_mut(),
        };
        let grid = u32::try_from(shape.samples().div_ceil(2048))?;
        job.launch(&calibrate, grid, self.passes() * bytes, arguments)?;
        let mut result = image;
        if let Some(threshold) = self.settings.hot {
            let hot = job.kernel::<launch::Hot>(&form)?;
            let mut samples = job.alloc(shape.bytes())?;
            let grid = shape.samples().div_ceil(256).min(1 << 20) as u32;
            let arguments = launch::Hot {
                src: result.samples.view(),
                dst: samples.view_mut(),
                width: shape.width as u64,
                height: shape.height as u64,
                threshold: threshold.into(),
            };
            job.launch(&hot, grid, 2 * bytes, arguments)?;
            result = DeviceImage { shape, samples };
        }
        let count: Vec<u64> = job.fetch_words(&count, 0, 1)?;
        clamped.fetch_add(count[0], Ordering::Relaxed);
        Ok(result)
    }
}
