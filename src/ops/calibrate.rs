//! Calibrate: subtracts a dark frame and divides by a flat field, sample by sample.
//!
//! Exact definition, for a sample p of a colour channel, with d and f the samples of the dark frame
//! and of the flat field at its position, q = max(f − d, 1), and m the mean of f − d over the channel:
//! `out = clamp(⌊(p − d)·m / q + 1/2⌋ + offset)`. Without a dark frame d is the sample whose value
//! is 0; without a flat field m / q is 1. With a bias frame, which dark and flat still contain, q and m are those of f − b, with
//! its sample b in the place of d; without a dark frame d is b. Values below the dark frame are negative until the offset is
//! added. Alpha does not change. With `--hot`, each of these results that exceeds the median of its neighbours
//! by more than a threshold is then replaced by that median (`hot`).
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
mod factors;
mod hot;
mod resident;

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics,
    samples_from, with_samples,
};
use crate::gpu::Work;
use crate::gpu::driver::Tenant;
use crate::gpu::job::Job;
use crate::gpu::launch::calibrate as launch;
use crate::image::metadata::{Diagnostics, Effect, Hint};
use crate::image::{Image, Shape, Values};
use crate::timing::Timeline;
use anyhow::{Context, Result, ensure};
use factors::{Factor, Lanes};
use resident::frames;
use serde::{Serialize, Serializer};
use std::fmt;

/// A dark frame or a flat field.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its name in messages: its path.
    pub name: String,
    /// Its pixels.
    pub image: Image,
    /// Whether its samples are signed.
    pub signed: bool,
}

/// The operation with its frames.
pub struct Calibrate {
    shape: Shape,
    values: Values,
    /// The name of a frame, for messages.
    name: String,
    dark: Option<Image>,
    /// q of each sample.
    flat: Option<Image>,
    /// The mean m of each channel.
    factors: Vec<Factor>,
    offset: i32,
    hot: Option<u16>,
    /// Keeps the frames on GPUs.
    tenant: Tenant,
}

impl Calibrate {
    /// With a dark frame or a flat field, or both.
    ///
    /// # Errors
    /// No frame, frames of different types, and a flat field that is not brighter than the dark frame.
    pub fn new(
        dark: Option<Frame>,
        flat: Option<Frame>,
        offset: i32,
        hot: Option<u16>,
    ) -> Result<Calibrate> {
        Calibrate::with_bias(None, dark, flat, offset, hot)
    }

    /// The same with a bias frame, which the dark frame and the flat field still contain.
    ///
    /// # Errors
    /// Those of `new`; the flat field must be brighter than the bias frame.
    pub fn with_bias(
        bias: Option<Frame>,
        dark: Option<Frame>,
        flat: Option<Frame>,
        offset: i32,
        hot: Option<u16>,
    ) -> Result<Calibrate> {
        let first = dark.as_ref().or(flat.as_ref()).or(bias.as_ref());
        let Frame {
            name,
            image,
            signed,
        } = first.context("a dark frame, a bias frame or a flat field is required")?;
        let (name, shape, signed) = (name.clone(), image.shape(), *signed);
        let values = Values {
            depth: shape.depth,
            signed,
        };
        ensure!(
            !shape.depth.is_wide(),
            "{name} has samples of {}: frames have 8 or 16 bits",
            shape.depth
        );
        ensure!(
            shape.pixels() as u64 <= factors::MOST_PIXELS,
            "{name} has more than 2³⁶ pixels, too many for an exact mean"
        );
        for frame in [&flat, &bias].into_iter().flatten() {
            ensure!(
                (frame.image.shape(), frame.signed) == (shape, signed),
                "{} is {}{}, but {name} is {shape}{}: the frames must have the same size and type",
                frame.name,
                frame.image.shape(),
                sign(frame.signed),
                sign(signed)
            );
        }
        let dark = dark.map(|frame| frame.image);
        let bias = bias.map(|frame| frame.image);
        let (flat, factors) = match flat {
            Some(flat) => {
                let below = bias.as_ref().or(dark.as_ref());
                let (image, factors) = factors::from_flat(flat.image, below, values.zero())
                    .with_context(|| format!("cannot divide by {}", flat.name))?;
                (Some(image), factors)
            }
            None => (None, vec![Factor::ONE; shape.channels]),
        };
        let dark = dark.or(bias);
        Ok(Calibrate {
            shape,
            values,
            name,
            dark,
            flat,
            factors,
            offset,
            hot,
            tenant: Tenant::default(),
        })
    }

    /// The result for a sample of a colour before it is clamped, by the definition.
    fn unclamped(&self, image: &Image, i: usize) -> i128 {
        let at = |image: &Image| i128::from(image.samples().at(i));
        let zero = i128::from(self.values.zero());
        let p = at(image);
        let d = self.dark.as_ref().map_or(zero, at);
        let q = self.flat.as_ref().map_or(1, at);
        let Factor { sum, pixels } = self.factors[i % self.shape.channels];
        let (sum, n) = (i128::from(sum), i128::from(pixels));
        (2 * (p - d) * sum + n * q).div_euclid(2 * n * q) + i128::from(self.shift())
    }

    /// The whole number that is added at the end: the offset plus the sample whose value is 0.
    fn shift(&self) -> i32 {
        self.offset + i32::from(self.values.zero())
    }

    /// The hint for images of which 1 % of the samples or more are clamped. Only the pixels of a lattice are checked,
    /// since checking all would cost a pass.
    fn clamping_hint(&self, image: &Image) -> Option<Hint> {
        let shape = image.shape();
        if shape != self.shape || self.dark.is_none() {
            return None;
        }
        let colours = shape.lattice().flat_map(|pixel| {
            let first = pixel * shape.channels;
            first..first + shape.colours()
        });
        let (mut all, mut clamped) = (0, 0);
        for i in colours {
            all += 1;
            clamped += usize::from(self.unclamped(image, i) < 0);
        }
        // Noise alone puts single samples below a dark frame.
        let percent = 100 * clamped / all;
        (percent >= 1).then_some(Hint::Clamped(percent))
    }

    /// Refuses an image of another shape than the frames: the kernels read a sample of them for each of its samples.
    fn same_shape(&self, shape: Shape) -> Result<()> {
        ensure!(
            shape == self.shape,
            "it is {shape}, but {} is {}",
            self.name,
            self.shape
        );
        Ok(())
    }
}

fn sign(signed: bool) -> &'static str {
    if signed { " with sign" } else { "" }
}

/// Serializes only what decides the result; the frames as their CRC-32.
impl Serialize for Calibrate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digest = |image: &Option<Image>| {
            (image.as_ref()).map(|image| crc32fast::hash(image.samples().as_bytes()))
        };
        let key = serde_json::json!({
            "dark": digest(&self.dark),
            "flat": digest(&self.flat),
            "sums": self.factors.iter().map(|factor| factor.sum).collect::<Vec<_>>(),
            "width": self.shape.width,
            "signed": self.values.signed,
            "offset": self.offset,
            "hot": self.hot,
        });
        key.serialize(serializer)
    }
}

impl fmt::Debug for Calibrate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Calibrate")
            .field("shape", &self.shape)
            .field("dark", &self.dark.is_some())
            .field("flat", &self.flat.is_some())
            .field("offset", &self.offset)
            .field("hot", &self.hot)
            .finish_non_exhaustive()
    }
}

impl Operation for Calibrate {
    fn properties(&self) -> Properties {
        Properties {
            // `check_shape` refuses them, because frames have 8 or 16 bits.
            wide_samples: true,
            // A part of an image would need the same part of the frames, and neighbours.
            ..Properties::new("calibrate", Access::WholeImage, Effect::Arithmetic)
        }
    }

    fn work(&self, shape: &Shape) -> Work {
        let bytes = shape.bytes() as u64;
        Work {
            touched: 4 * bytes,
            transferred: 2 * bytes,
            ..Work::default()
        }
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        self.same_shape(*shape)
    }

    fn check_types(&self, types: &SampleTypes) -> Result<()> {
        ensure!(
            types.read == self.values && types.depth == self.shape.depth,
            "it has {}, but {} has {}",
            types.read,
            self.name,
            self.values
        );
        Ok(())
    }

    fn diagnose(&self, image: &Image, _: &SampleTypes) -> Diagnostics {
        Diagnostics {
            hints: Vec::from_iter(self.clamping_hint(image)),
            ..Diagnostics::default()
        }
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(self))
    }
}

/// The argument of the kernel for a flat field with the mean `sum`/`pixels`.
pub(crate) fn factor(sum: u64, pixels: u64) -> launch::Factor {
    Factor { sum, pixels }.packed()
}

impl Bound for &Calibrate {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let shape = image.shape();
        self.same_shape(shape)?;
        let exact = |i: usize| {
            if i % shape.channels >= shape.colours() {
                return image.samples().at(i);
            }
            let out = self.unclamped(image, i);
            out.clamp(0, shape.depth.full().into()) as u64
        };
        let out = samples_from(shape.depth, (0..shape.samples()).map(exact));
        let out = Image::new(shape, out);
        Ok(OpResult::Image(match self.hot {
            Some(threshold) => hot::naive(&out, threshold),
            None => out,
        }))
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let shape = image.shape();
        self.same_shape(shape)?;
        let lanes = Lanes::new(&self.factors, shape.colours());
        let passes = 2 + u64::from(self.dark.is_some()) + u64::from(self.flat.is_some());
        timeline.host("calibrate", passes * shape.bytes() as u64, || {
            with_samples!(image.samples_mut(), samples => {
                self.on_cores(samples, &lanes)
            })
        })?;
        let Some(threshold) = self.hot else {
            return Ok(OpResult::Image(image));
        };
        let image = timeline.host("hot", 2 * shape.bytes() as u64, || {
            hot::cpu(&image, threshold)
        });
        Ok(OpResult::Image(image?))
    }

    fn cuda(&self, mut image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let shape = image.shape;
        self.same_shape(shape)?;
        let form = shape.sample_form();
        let frames = frames(job, self)?;
        let calibrate = job.kernel::<launch::Calibrate>(&form)?;
        let bytes = shape.bytes() as u64;
        let passes = 2 + u64::from(self.dark.is_some()) + u64::from(self.flat.is_some());
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
            offset: self.offset,
        };
        let grid = u32::try_from(shape.samples().div_ceil(2048))?;
        job.launch(&calibrate, grid, passes * bytes, arguments)?;
        let Some(threshold) = self.hot else {
            return Ok(OpResult::Image(image));
        };
        let hot = job.kernel::<launch::Hot>(&form)?;
        let mut samples = job.alloc(shape.bytes())?;
        let grid = shape.samples().div_ceil(256).min(1 << 20) as u32;
        let arguments = launch::Hot {
            src: image.samples.view(),
            dst: samples.view_mut(),
            width: shape.width as u64,
            height: shape.height as u64,
            threshold: threshold.into(),
        };
        job.launch(&hot, grid, 2 * bytes, arguments)?;
        Ok(OpResult::Image(DeviceImage { shape, samples }))
    }
}
