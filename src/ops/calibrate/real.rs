//! Results in 32-bit floating point: not rounded to whole numbers, and not clamped.
//!
//! Exact definition, in doubles, each step rounded to nearest as IEEE 754 says: x = p − d and y = f − b, where p, d, f and b are
//! values (not samples), and a missing frame is 0; q is y where y > 0, and otherwise 1 (the pixel is dead). m is the sum of f
//! over the channel minus that of b, which is exact and rounded once, divided by the number of pixels. The result is
//! x·m / q + offset: the product, the quotient, the sum, and then the nearest of 32 bits. Without a flat field m and q are 1.
//! With `--log`, it is ln(q / max(x, 1)) (`logarithm`).
//!
//! What is not a number in the image is the same NaN in the result. Alpha is from 0 to 1.

use super::hot;
use super::logarithm::ln;
use super::{ImageFrames, Settings, digest};
use crate::image::number::{from_key, key};
use crate::image::simd::per_level;
use crate::image::{Depth, Image, Samples, Shape, Values};
use crate::ops::cpu::LANES;
use crate::ops::exact::Exact;
use crate::ops::wide::{self, Fixed};
use crate::ops::{never_wide, samples_from};
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples in a chunk of parallel work: whole lanes.
const CHUNK: usize = 256 * LANES;

/// The frames in floating point, and the options that apply to it.
#[derive(Debug)]
pub(super) struct Real {
    frames: ImageFrames,
    /// The mean m of each channel.
    means: Vec<f64>,
    settings: Settings,
}

/// The values of a sample's frames and of its channel.
#[derive(Clone, Copy)]
struct Correction {
    d: f64,
    f: f64,
    b: f64,
    mean: f64,
}

impl Correction {
    /// x = p − d.
    #[inline(always)]
    fn signal(self, p: f64) -> f64 {
        p - self.d
    }

    /// q.
    #[inline(always)]
    fn divisor(self) -> f64 {
        let y = self.f - self.b;
        if y > 0.0 { y } else { 1.0 }
    }

    #[inline(always)]
    fn corrected(self, p: f64, offset: f64) -> f64 {
        self.signal(p) * self.mean / self.divisor() + offset
    }

    #[inline(always)]
    fn attenuation(self, p: f64) -> f64 {
        let x = self.signal(p);
        ln(self.divisor() / if x < 1.0 { 1.0 } else { x })
    }
}

impl Real {
    /// With frames of 32-bit floating point.
    ///
    /// # Errors
    /// A flat field that is not brighter than what is subtracted from it.
    pub fn new(frames: ImageFrames, settings: Settings) -> Result<Real> {
        let means = match &frames.flat {
            Some(flat) => means(flat, frames.below.as_ref())?,
            None => vec![1.0; 4],
        };
        Ok(Real {
            frames,
            means,
            settings,
        })
    }

    /// What decides the result.
    pub fn digests(&self) -> serde_json::Value {
        serde_json::json!({
            "dark": digest(&self.frames.dark),
            "below": digest(&self.frames.below),
            "flat": digest(&self.frames.flat),
        })
    }

    /// The correction of sample `i` of an image with so many channels.
    fn correction(&self, i: usize, channels: usize) -> Correction {
        let at = |frame: &Option<Image>| frame.as_ref().map(|frame| value(frame, i));
        let flat = at(&self.frames.flat);
        Correction {
            d: at(&self.frames.dark).unwrap_or(0.0),
            f: flat.unwrap_or(1.0),
            b: flat.and(at(&self.frames.below)).unwrap_or(0.0),
            mean: self.means[i % channels],
        }
    }

    /// Whether `--log` clamps sample `i`, a colour, of an image of the type `read`.
    pub fn is_clamped(&self, image: &Image, read: Values, i: usize) -> bool {
        let p = read.number(image.samples().at(i)).as_f64();
        let correction = self.correction(i, image.shape().channels);
        correction.signal(p) < 1.0
    }

    /// The definition for an image of the type `read`.
    pub fn naive(&self, image: &Image, read: Values) -> Image {
        let shape = image.shape();
        let result = |i: usize| {
            let sample = image.samples().at(i);
            let value = if i % shape.channels < shape.colours() {
                let p = read.number(sample).as_f64();
                let correction = self.correction(i, shape.channels);
                match self.settings.log {
                    true => correction.attenuation(p),
                    false => correction.corrected(p, self.settings.offset.into()),
                }
            } else if read.depth.is_float() {
                read.number(sample).as_f64()
            } else {
                sample as f64 / f64::from(read.depth.full())
            };
            u64::from(real_sample(value))
        };
        let samples = samples_from(Depth::Float, (0..shape.samples()).map(result));
        hot::naive(Image::new(as_float(shape), samples), self.settings.hot)
    }

    /// The same on all cores. Counts the samples that are clamped.
    ///
    /// # Errors
    /// No memory for the result.
    pub fn cpu(
        &self,
        mut image: Image,
        read: Values,
        clamped: &AtomicU64,
        timeline: &mut Timeline,
    ) -> Result<Image> {
        let (from, to) = (image.shape(), as_float(image.shape()));
        let mut samples = image.samples_mut().memory_for_result(&to)?;
        let frames = &self.frames;
        let given = [&frames.dark, &frames.below, &frames.flat];
        let frames = given.into_iter().flatten().count();
        let bytes = from.bytes() + (1 + frames) * to.bytes();
        let Samples::U32(out) = &mut samples else {
            never_wide!()
        };
        timeline.host("calibrate", bytes as u64, || match image.samples() {
            Samples::U8(p) => self.on_cores(p, out, &Lanes::new(self, &from, read), clamped),
            Samples::U16(p) => self.on_cores(p, out, &Lanes::new(self, &from, read), clamped),
            Samples::U32(p) => self.on_cores(p, out, &Lanes::new(self, &from, read), clamped),
            Samples::U64(_) => never_wide!(),
        });
        if let (Some(threshold), Samples::U32(out)) = (self.settings.hot, &mut samples) {
            let bytes = 2 * to.bytes() as u64;
            timeline.host("hot", bytes, || {
                hot::replace_in_bands(&to, out, threshold, |_| {})
            })?;
        }
        Ok(Image::new(to, samples))
    }

    fn on_cores<T: Readable>(
        &self,
        samples: &[T],
        out: &mut [u32],
        lanes: &Lanes,
        clamped: &AtomicU64,
    ) {
        let ImageFrames {
            dark, below, flat, ..
        } = &self.frames;
        // A missing frame: too many samples for the stack.
        let filled = |value: f32| vec![key(value.to_bits()); CHUNK];
        let (zero, one) = (filled(0.0), filled(1.0));
        let [dark, flat] = [dark, flat].map(|frame| frame.as_ref().map(keys));
        let below = below.as_ref().filter(|_| flat.is_some()).map(keys);
        let chunks = out.par_chunks_mut(CHUNK).zip(samples.par_chunks(CHUNK));
        chunks.enumerate().for_each(|(index, (out, p))| {
            let range = index * CHUNK..index * CHUNK + p.len();
            let frames = ChunkFrames {
                dark: dark.map_or(&zero[..p.len()], |dark| &dark[range.clone()]),
                below: below.map_or(&zero[..p.len()], |below| &below[range.clone()]),
                flat: flat.map_or(&one[..p.len()], |flat| &flat[range]),
            };
            if self.settings.log {
                let found = attenuation_chunk(out, p, frames, lanes);
                clamped.fetch_add(found, Ordering::Relaxed);
            } else {
                correct_chunk(out, p, frames, lanes);
            }
        });
    }
}

/// The samples of the frames of a chunk.
#[derive(Clone, Copy)]
struct ChunkFrames<'a> {
    dark: &'a [u32],
    below: &'a [u32],
    flat: &'a [u32],
}

impl<'a> ChunkFrames<'a> {
    /// The samples of the block of lanes at an index, which has so many samples.
    #[inline(always)]
    fn block(&self, index: usize, len: usize) -> ChunkFrames<'a> {
        let range = index * LANES..index * LANES + len;
        ChunkFrames {
            dark: &self.dark[range.clone()],
            below: &self.below[range.clone()],
            flat: &self.flat[range],
        }
    }

    #[inline(always)]
    fn at(&self, i: usize, mean: f64) -> Correction {
        Correction {
            d: from_key(self.dark[i]).into(),
            f: from_key(self.flat[i]).into(),
            b: from_key(self.below[i]).into(),
            mean,
        }
    }
}

/// What depends on the channel of a sample, for each lane, and the type of the samples.
struct Lanes {
    mean: [f64; LANES],
    is_alpha: [bool; LANES],
    /// The sample of integers whose value is 0.
    zero: f64,
    /// The value of opaque alpha.
    opaque: f64,
    offset: f64,
}

impl Lanes {
    fn new(real: &Real, shape: &Shape, read: Values) -> Lanes {
        let is_float = read.depth.is_float();
        Lanes {
            mean: std::array::from_fn(|lane| real.means[lane % shape.channels]),
            is_alpha: std::array::from_fn(|lane| lane % shape.channels >= shape.colours()),
            zero: if is_float { 0.0 } else { read.zero().into() },
            opaque: if is_float {
                1.0
            } else {
                read.depth.full().into()
            },
            offset: real.settings.offset.into(),
        }
    }
}

/// Samples of a type that images may have.
trait Readable: Copy + Send + Sync {
    /// The number that is the sample of an integer, or the number whose key it is.
    fn number(self) -> f64;
}

impl Readable for u8 {
    #[inline(always)]
    fn number(self) -> f64 {
        self.into()
    }
}

impl Readable for u16 {
    #[inline(always)]
    fn number(self) -> f64 {
        self.into()
    }
}

impl Readable for u32 {
    #[inline(always)]
    fn number(self) -> f64 {
        from_key(self).into()
    }
}

per_level! {
    highest Avx2;

    fn correct_chunk[T: Readable](out: &mut [u32], p: &[T], frames: ChunkFrames, lanes: &Lanes) {
        let blocks = out.chunks_mut(LANES).zip(p.chunks(LANES));
        for (block, (out, p)) in blocks.enumerate() {
            let frames = frames.block(block, out.len());
            for lane in 0..out.len() {
                let p = p[lane].number();
                let correction = frames.at(lane, lanes.mean[lane]);
                let corrected = correction.corrected(p - lanes.zero, lanes.offset);
                let value = if lanes.is_alpha[lane] { p / lanes.opaque } else { corrected };
                out[lane] = real_sample(value);
            }
        }
    }
}

per_level! {
    highest Avx2;

    /// Returns how many samples are clamped.
    fn attenuation_chunk[T: Readable](out: &mut [u32], p: &[T], frames: ChunkFrames, lanes: &Lanes) -> u64 {
        let mut clamped = 0;
        let blocks = out.chunks_mut(LANES).zip(p.chunks(LANES));
        for (block, (out, p)) in blocks.enumerate() {
            let frames = frames.block(block, out.len());
            for lane in 0..out.len() {
                let p = p[lane].number();
                let correction = frames.at(lane, 1.0);
                let attenuation = correction.attenuation(p - lanes.zero);
                let is_clamped = correction.signal(p - lanes.zero) < 1.0;
                clamped += u64::from(is_clamped & !lanes.is_alpha[lane]);
                let value = if lanes.is_alpha[lane] { p / lanes.opaque } else { attenuation };
                out[lane] = real_sample(value);
            }
        }
        clamped
    }
}

/// The key of a value, rounded to 32 bits. Every NaN has the same key, because processors differ in those that they make.
#[inline(always)]
fn real_sample(value: f64) -> u32 {
    let value = value as f32;
    key(if value.is_nan() {
        f32::NAN.to_bits()
    } else {
        value.to_bits()
    })
}

/// The value of sample `i` of a frame in floating point.
fn value(frame: &Image, i: usize) -> f64 {
    from_key(frame.samples().at(i) as u32).into()
}

/// The samples of a frame in floating point.
fn keys(frame: &Image) -> &[u32] {
    match frame.samples() {
        Samples::U32(samples) => samples,
        _ => never_wide!(),
    }
}

/// The shape of the result for an image of this shape.
fn as_float(shape: Shape) -> Shape {
    Shape {
        depth: Depth::Float,
        ..shape
    }
}

/// How many samples of a frame are not finite.
pub(super) fn nonfinite(frame: &Image) -> usize {
    match frame.samples() {
        Samples::U32(samples) if frame.shape().depth == Depth::Float => {
            let nonfinite = samples
                .par_iter()
                .filter(|&&key| wide::is_nonfinite(Depth::Float, key));
            nonfinite.count()
        }
        _ => 0,
    }
}

/// A frame of the type `values` in floating point, which has every value of 8 and 16 bits.
pub(super) fn as_real(frame: Image, values: Values) -> Image {
    let shape = frame.shape();
    if shape.depth.is_float() {
        return frame;
    }
    let samples = (0..shape.samples()).map(|i| {
        let value = values.number(frame.samples().at(i)).as_f32();
        u64::from(key(value.to_bits()))
    });
    Image::new(as_float(shape), samples_from(Depth::Float, samples))
}

/// The mean of f − b of each channel; that of alpha is not used.
///
/// # Errors
/// A channel whose mean is not above 0.
fn means(flat: &Image, below: Option<&Image>) -> Result<Vec<f64>> {
    let shape = flat.shape();
    let sums = |frame: &Image| {
        let sums = wide::sum::cpu(keys(frame), shape.channels, Depth::Float, 0).sums;
        let sums = sums.into_iter().map(|sum| match sum {
            Exact::Real(sum) => sum,
            _ => never_wide!(),
        });
        sums.collect::<Vec<Fixed>>()
    };
    let flat = sums(flat);
    let below = below.map_or_else(|| vec![Fixed::default(); shape.channels], sums);
    let mut means = Vec::new();
    for (channel, (flat, below)) in flat.into_iter().zip(below).enumerate() {
        let mean = flat.minus(below).to_f64() / shape.pixels() as f64;
        ensure!(
            mean > 0.0 || channel >= shape.colours(),
            "its channel {} is not brighter than the dark frame (did you swap --dark and --flat?)",
            channel + 1
        );
        means.push(mean);
    }
    Ok(means)
}
