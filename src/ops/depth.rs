//! Conversion from 8 to 16 bits (on the CPU) and back, for `--depth`.

use super::cpu::Sample;
use super::{DeviceImage, never_wide};
use crate::gpu::job::Job;
use crate::gpu::launch::depth::Narrow;
use crate::image::buffer::Buffer;
use crate::image::number::Number;
use crate::image::{Depth, Image, Samples, Shape};
use anyhow::Result;
use bytemuck::Pod;
use rayon::prelude::*;

/// Samples in a chunk of parallel work.
const CHUNK: usize = 3 << 16; // a multiple of every channel count

/// Converts 8 bits to 16: `floor(v·65535/most + 1/2)` for values from 0 to `most`. With `most` = 255,
/// every value is multiplied by 257.
///
/// # Errors
/// Too little memory.
pub fn convert_to_sixteen(image: Image, most: u16) -> Result<Image> {
    let shape = Shape {
        depth: Depth::Sixteen,
        ..image.shape()
    };
    match image.samples() {
        Samples::U8(bytes) => {
            let table: [u16; 256] = std::array::from_fn(|byte| scaled(byte as u16, most, u16::MAX));
            let words = mapped(bytes, |byte| table[usize::from(byte)])?;
            Ok(Image::new(shape, Samples::U16(words)))
        }
        Samples::U16(_) => Ok(image),
        Samples::U32(_) | Samples::U64(_) => never_wide!(),
    }
}

/// Converts 16 bits to 8: `floor(v·255/most + 1/2)` for values from 0 to `most`. Channels whose
/// values were scaled from one of these `ranges` (one for all colours, or one for each) are
/// within 0..=255 already and keep their values, so that nothing is rounded twice. Flat channels
/// and alpha were not scaled, so they are converted.
///
/// # Errors
/// Too little memory.
pub fn convert_to_eight(image: Image, ranges: &[(Number, Number)], most: u16) -> Result<Image> {
    let shape = Shape {
        depth: Depth::Eight,
        ..image.shape()
    };
    match image.samples() {
        Samples::U8(_) => Ok(image),
        Samples::U16(words) => {
            let is_scaled = scaled_channels(&shape, ranges);
            let rounded = || match most {
                // A division by a constant is several times as fast.
                u16::MAX => mapped(words, |word| scaled(word, u16::MAX, 255) as u8),
                most => mapped(words, |word| scaled(word, most, 255) as u8),
            };
            let bytes = match (is_scaled.contains(&true), is_scaled.contains(&false)) {
                (true, false) => mapped(words, |word| word as u8)?,
                (false, _) => rounded()?,
                (true, true) => {
                    let mut bytes = rounded()?;
                    let chunks = bytes.par_chunks_mut(CHUNK).zip(words.par_chunks(CHUNK));
                    chunks.for_each(|(bytes, words)| {
                        let channels = is_scaled.iter().cycle();
                        for ((byte, &word), _) in (bytes.iter_mut().zip(words).zip(channels))
                            .filter(|(_, is_scaled)| **is_scaled)
                        {
                            *byte = word as u8;
                        }
                    });
                    bytes
                }
            };
            Ok(Image::new(shape, Samples::U8(bytes)))
        }
        Samples::U32(_) | Samples::U64(_) => never_wide!(),
    }
}

/// As `convert_to_eight` for values from 0 to 65535, of an image on a GPU.
///
/// # Errors
/// Those of the GPU.
pub fn convert_to_eight_on_gpu(
    image: &DeviceImage,
    ranges: &[(Number, Number)],
    job: &mut Job,
) -> Result<DeviceImage> {
    let kept = scaled_channels(&image.shape, ranges);
    narrow_on_gpu(image, |channel| kept[channel], job)
}

/// Stores samples of 16 bits of an image on a GPU in 8 bits. Channels that are `kept` have samples up to 255, which do not change;
/// the others are scaled from 0…65535.
///
/// # Errors
/// Those of the GPU.
pub fn narrow_on_gpu(
    image: &DeviceImage,
    kept: impl Fn(usize) -> bool,
    job: &mut Job,
) -> Result<DeviceImage> {
    let from = image.shape;
    let shape = Shape {
        depth: Depth::Eight,
        ..from
    };
    let kept = (0..from.channels).fold(0, |bits, c| bits | u32::from(kept(c)) << c);
    let kernel = job.kernel::<Narrow>("")?;
    let mut samples = job.alloc(shape.bytes())?;
    let grid = u32::try_from(from.samples().div_ceil(2048))?;
    let bytes = from.bytes() + shape.bytes();
    let arguments = Narrow {
        src: image.samples.view(),
        samples: from.samples() as u64,
        dst: samples.view_mut(),
        channels: from.channels as u32,
        kept,
    };
    job.launch(&kernel, grid, bytes as u64, arguments)?;
    Ok(DeviceImage { shape, samples })
}

/// Whether each channel was scaled from one of the `ranges`, one for all colours or one for each.
fn scaled_channels(shape: &Shape, ranges: &[(Number, Number)]) -> Vec<bool> {
    let range = |colour: usize| ranges.get(colour).or(ranges.first());
    let is_scaled = |c| c < shape.colours() && range(c).is_some_and(|(min, max)| min < max);
    (0..shape.channels).map(is_scaled).collect()
}

/// Scales alpha from 0..=`most` to the full depth, so that opaque pixels stay opaque where colours are scaled to it.
pub fn with_full_alpha(mut image: Image, most: u16) -> Image {
    let shape = image.shape();
    match image.samples_mut() {
        Samples::U8(bytes) if shape.has_alpha() => scale_alpha(bytes, shape.channels, most),
        Samples::U16(words) if shape.has_alpha() => scale_alpha(words, shape.channels, most),
        _ => {}
    }
    image
}

fn scale_alpha<T: Sample>(samples: &mut [T], channels: usize, most: u16) {
    let alphas = samples.par_chunks_mut(channels).filter_map(<[T]>::last_mut);
    alphas.for_each(|alpha| {
        *alpha = T::from_value(scaled(alpha.value(), most, T::FULL.value()));
    });
}

/// `floor(v·to/from + 1/2)`, with values above `from` clamped; `from` is not 0.
fn scaled(value: u16, from: u16, to: u16) -> u16 {
    let (value, from, to) = (u32::from(value.min(from)), u32::from(from), u32::from(to));
    ((value * to + from / 2) / from) as u16
}

fn mapped<A: Copy + Sync, B: Pod + Send>(
    from: &[A],
    map: impl Fn(A) -> B + Sync,
) -> Result<Buffer<B>> {
    let mut to = Buffer::any(from.len())?;
    to.par_chunks_mut(CHUNK)
        .zip(from.par_chunks(CHUNK))
        .for_each(|(to, from)| {
            for (to, &from) in to.iter_mut().zip(from) {
                *to = map(from);
            }
        });
    Ok(to)
}
