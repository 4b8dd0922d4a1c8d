//! Combine: makes colour images of grey ones, either one for each channel, or any number of them, each in a colour of its own.
//!
//! Exact definition. `interleave`: a sample of the result is the sample of the image of its channel, in every sample type.
//! `blend`: with s the samples of the images at a pixel, M the largest value that they can have, and k the red, green or blue
//! part of the colour of each image, from 0 to 255, the sample of the result is M · Σ (s/M)·(k/255), limited to M and rounded:
//! `out = min(M, ⌊(Σ s·k + 127) / 255⌋)`. That is ⌊Σ s·k/255 + 1/2⌋, since a sum of whole numbers is never half of 255.

use super::convert::Convert;
use super::cpu::Sample;
use super::{Access, Bound, Operation, Properties, SampleTypes, Statistics, samples_from};
use crate::gpu::Work;
use crate::image::metadata::Effect;
use crate::image::simd::per_level;
use crate::image::{Image, Samples, Shape};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;

/// Pixels of a chunk. Its sums are to stay in a level-1 cache.
const CHUNK: usize = 1024;

/// The step of a plan in which channels have been combined. Its input is the combined image, since the pages of several files
/// are combined while they are decoded.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Combine {}

impl Operation for Combine {
    fn properties(&self) -> Properties {
        Properties {
            wide_samples: true,
            ..Properties::new("combine", Access::Pointwise, Effect::Kept)
        }
    }

    fn work(&self, shape: &Shape) -> Work {
        Convert::default().work(shape)
    }

    fn gpu_obstacle(&self, _: &Shape) -> Option<&'static str> {
        Some("the GPU does not support combine")
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(Convert::default()))
    }
}

/// A colour, as the weights of red, green and blue from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

/// The names of colours.
const NAMES: [(&str, [u8; 3]); 7] = [
    ("red", [255, 0, 0]),
    ("green", [0, 255, 0]),
    ("blue", [0, 0, 255]),
    ("cyan", [0, 255, 255]),
    ("magenta", [255, 0, 255]),
    ("yellow", [255, 255, 0]),
    ("white", [255, 255, 255]),
];

impl FromStr for Colour {
    type Err = String;

    fn from_str(text: &str) -> Result<Colour, String> {
        let text = text.trim();
        let named = NAMES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text));
        let hexadecimal = || {
            let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
            Some([red, green, blue])
        };
        let colour = named.map(|(_, colour)| *colour).or_else(hexadecimal);
        colour.map(Colour).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!(
                "unknown colour '{text}': expected #rrggbb, as #ff8000, or {}",
                names.join(", ")
            )
        })
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match NAMES.iter().find(|(_, colour)| *colour == self.0) {
            Some((name, _)) => f.write_str(name),
            None => {
                let [red, green, blue] = self.0;
                write!(f, "#{red:02x}{green:02x}{blue:02x}")
            }
        }
    }
}

/// The colours of channels, as `C1=green,C2=#ff00ff`; channels are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelColours(pub Vec<(usize, Colour)>);

impl FromStr for ChannelColours {
    type Err = String;

    fn from_str(text: &str) -> Result<ChannelColours, String> {
        let mut colours: Vec<(usize, Colour)> = Vec::new();
        for part in text.split(',') {
            let (channel, colour) = part
                .split_once('=')
                .ok_or("expected colours of channels, such as C1=green,C2=#ff00ff")?;
            let number = channel.trim().strip_prefix(['C', 'c']).unwrap_or_default();
            let number = number.parse().ok().filter(|&number: &usize| number > 0);
            let number =
                number.ok_or_else(|| format!("unknown channel '{channel}': expected C1, C2, …"))?;
            if colours.iter().any(|(known, _)| *known == number) {
                return Err(format!("the channel C{number} is named twice"));
            }
            colours.push((number, colour.parse()?));
        }
        Ok(ChannelColours(colours))
    }
}

/// Refuses images that are not grey, or differ in size or depth: the callers have reported that by name.
fn check(images: &[Image]) -> Result<Shape> {
    let first = images.first().context("internal error: no channels")?;
    let shape = first.shape();
    let same = images.iter().all(|image| image.shape() == shape);
    ensure!(
        same && shape.channels == 1,
        "internal error: channels of different shapes"
    );
    Ok(shape)
}

/// An image with these grey images of the same shape as its channels: three for RGB, or four with alpha.
///
/// # Errors
/// Memory.
pub fn interleave(channels: &[Image]) -> Result<Image> {
    let shape = Shape {
        channels: channels.len(),
        ..check(channels)?
    };
    let mut samples = Samples::any(&shape)?;
    match &mut samples {
        Samples::U8(to) => interleave_samples(&planes::<u8>(channels), to)?,
        Samples::U16(to) => interleave_samples(&planes::<u16>(channels), to)?,
        Samples::U32(to) => interleave_samples(&planes::<u32>(channels), to)?,
        Samples::U64(to) => interleave_samples(&planes::<u64>(channels), to)?,
    }
    Ok(Image::new(shape, samples))
}

/// The samples of images whose depth has this type.
fn planes<T: bytemuck::Pod>(images: &[Image]) -> Vec<&[T]> {
    let samples = images.iter().map(|image| image.samples().as_bytes());
    samples.map(bytemuck::cast_slice).collect()
}

fn interleave_samples<T: Copy + Send + Sync>(planes: &[&[T]], to: &mut [T]) -> Result<()> {
    match *planes {
        [red, green, blue] => {
            let chunks = to.par_chunks_mut(3 * CHUNK).zip(red.par_chunks(CHUNK));
            let chunks = chunks.zip(green.par_chunks(CHUNK).zip(blue.par_chunks(CHUNK)));
            chunks.for_each(|((to, red), (green, blue))| {
                let colours = red.iter().zip(green.iter().zip(blue));
                for (pixel, (&red, (&green, &blue))) in to.as_chunks_mut().0.iter_mut().zip(colours)
                {
                    *pixel = [red, green, blue];
                }
            });
        }
        [red, green, blue, alpha] => {
            let chunks = to.par_chunks_mut(4 * CHUNK).zip(red.par_chunks(CHUNK));
            let chunks = chunks.zip(green.par_chunks(CHUNK).zip(blue.par_chunks(CHUNK)));
            let chunks = chunks.zip(alpha.par_chunks(CHUNK));
            chunks.for_each(|(((to, red), (green, blue)), alpha)| {
                let colours = red.iter().zip(green.iter().zip(blue.iter().zip(alpha)));
                for (pixel, (&red, (&green, (&blue, &alpha)))) in
                    to.as_chunks_mut().0.iter_mut().zip(colours)
                {
                    *pixel = [red, green, blue, alpha];
                }
            });
        }
        _ => bail!("internal error: {} channels", planes.len()),
    }
    Ok(())
}

/// An RGB image with the sum of grey images of the same shape of 8 or 16 bits, each in its colour. `most` is the largest value
/// that their samples can have.
///
/// # Errors
/// Memory.
pub fn blend(images: &[Image], colours: &[Colour], most: u16) -> Result<Image> {
    let shape = Shape {
        channels: 3,
        ..check(images)?
    };
    ensure!(
        images.len() == colours.len() && !shape.depth.is_wide(),
        "internal error: channels without a colour"
    );
    let mut samples = Samples::any(&shape)?;
    match &mut samples {
        Samples::U8(to) => blend_samples(&planes::<u8>(images), colours, most, to),
        Samples::U16(to) => blend_samples(&planes::<u16>(images), colours, most, to),
        Samples::U32(_) | Samples::U64(_) => bail!("internal error: 32 bits"),
    }
    Ok(Image::new(shape, samples))
}

fn blend_samples<T: Sample>(planes: &[&[T]], colours: &[Colour], most: u16, to: &mut [T]) {
    let chunks = to.par_chunks_mut(3 * CHUNK).enumerate();
    chunks.for_each(|(index, to)| {
        let pixels = index * CHUNK..index * CHUNK + to.len() / 3;
        let mut sums = [[0; CHUNK]; 3];
        for (plane, colour) in planes.iter().zip(colours) {
            add_colour(&plane[pixels.clone()], *colour, most, &mut sums);
        }
        divide(&sums, to);
    });
}

per_level! {
    highest Avx2;

    /// Adds the products of samples and the parts of a colour, up to those of `most`: beyond it sums are limited anyway.
    fn add_colour[T: Sample](samples: &[T], colour: Colour, most: u16, sums: &mut [[u32; CHUNK]; 3]) {
        let most = 255 * u32::from(most);
        for (sums, part) in sums.iter_mut().zip(colour.0) {
            for (sum, &sample) in sums.iter_mut().zip(samples) {
                *sum = (*sum + u32::from(part) * u32::from(sample.value())).min(most);
            }
        }
    }
}

per_level! {
    highest Avx2;

    /// The samples for sums.
    fn divide[T: Sample](sums: &[[u32; CHUNK]; 3], to: &mut [T]) {
        let [red, green, blue] = sums;
        let sample = |sum: u32| T::from_value(((sum + 127) / 255) as u16);
        let colours = red.iter().zip(green.iter().zip(blue));
        for (pixel, (&red, (&green, &blue))) in to.as_chunks_mut().0.iter_mut().zip(colours) {
            *pixel = [sample(red), sample(green), sample(blue)];
        }
    }
}

/// `blend` by its definition: serial and simple.
///
/// # Errors
/// As `blend`.
pub fn naive_blend(images: &[Image], colours: &[Colour], most: u16) -> Result<Image> {
    let shape = Shape {
        channels: 3,
        ..check(images)?
    };
    let samples = (0..shape.samples()).map(|index| {
        let (pixel, part) = (index / 3, index % 3);
        let parts = images.iter().zip(colours);
        let sum: u128 = parts
            .map(|(image, colour)| {
                u128::from(image.samples().at(pixel)) * u128::from(colour.0[part])
            })
            .sum();
        ((2 * sum + 255) / 510).min(most.into()) as u64
    });
    let samples = samples_from(shape.depth, samples);
    Ok(Image::new(shape, samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_and_printed() {
        let colours = "C1=green, c3=#Ff8001".parse();
        let expected = vec![(1, Colour([0, 255, 0])), (3, Colour([255, 128, 1]))];
        assert_eq!(colours, Ok(ChannelColours(expected)));
        assert_eq!(Colour([255, 128, 1]).to_string(), "#ff8001");
        assert_eq!(Colour([255, 0, 255]).to_string(), "magenta");
        for (wrong, why) in [
            ("green", "expected colours of channels"),
            ("C0=green", "unknown channel"),
            ("D1=green", "unknown channel"),
            ("C1=pink", "unknown colour 'pink'"),
            ("C1=#ff80", "unknown colour"),
            ("C1=#+f8000", "unknown colour"),
            ("C1=red,C1=blue", "named twice"),
        ] {
            let error = wrong.parse::<ChannelColours>().expect_err(wrong);
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
