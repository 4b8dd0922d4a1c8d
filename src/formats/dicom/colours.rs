//! Colours of a DICOM file: converts luma and chroma, and tables of colours, to RGB (PS3.3, section C.7.6.3.1).

use super::coding::Coding;
use super::header::Header;
use crate::image::{Depth, Image, Samples, Shape};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;

/// What the samples of a pixel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    Grey {
        white_is_zero: bool,
    },
    /// The number of a colour in a table.
    Palette,
    Rgb,
    /// Luma and chroma, which the JPEG decoder converts to RGB.
    Jpeg,
    /// Luma and chroma.
    Ybr,
    /// Two values of luma, and the chroma of both pixels.
    YbrPairs,
}

impl Colours {
    /// The colours of a photometric interpretation; refuses others by name.
    pub fn from_name(name: &str, coding: Coding) -> Result<Colours> {
        Ok(match (name, coding) {
            ("MONOCHROME1", _) => Colours::Grey {
                white_is_zero: true,
            },
            ("MONOCHROME2", _) => Colours::Grey {
                white_is_zero: false,
            },
            ("PALETTE COLOR", _) => Colours::Palette,
            ("RGB", _) => Colours::Rgb,
            ("YBR_FULL" | "YBR_FULL_422", Coding::Jpeg) => Colours::Jpeg,
            // The decoder gives RGB.
            #[cfg(feature = "jpeg2000")]
            ("YBR_RCT" | "YBR_ICT", Coding::Jpeg2000) => Colours::Rgb,
            ("YBR_FULL", _) => Colours::Ybr,
            ("YBR_FULL_422", Coding::None) => Colours::YbrPairs,
            _ => bail!(
                "the photometric interpretation {name} is not supported (grey, RGB, palettes, YBR_FULL and uncompressed \
                 YBR_FULL_422 are): convert it first, with dcmtk's dcmconv or gdcmconv"
            ),
        })
    }

    /// Samples of a pixel.
    pub fn channels(self) -> usize {
        match self {
            Colours::Grey { .. } | Colours::Palette => 1,
            _ => 3,
        }
    }

    /// Whether samples are luma and chroma after they were decoded.
    pub fn are_ybr(self) -> bool {
        matches!(self, Colours::Ybr | Colours::YbrPairs)
    }
}

/// Converts luma and chroma of 8 bits to RGB. The equations are those of the standard (PS3.3, section C.7.6.3.1.2),
/// solved for RGB and rounded.
pub fn to_rgb(pixels: &mut [u8]) {
    let (pixels, _) = pixels.as_chunks_mut::<3>();
    pixels.par_iter_mut().for_each(|pixel| {
        let [y, cb, cr] = pixel.map(i32::from);
        let (cb, cr) = (cb - 128, cr - 128);
        // Y = 0.299 R + 0.587 G + 0.114 B, Cb = (B − Y) / 1.772, Cr = (R − Y) / 1.402.
        let red = 1000 * y + 1402 * cr;
        let green = 587_000 * y - 202_008 * cb - 419_198 * cr;
        let blue = 1000 * y + 1772 * cb;
        let rounded =
            |sum: i32, scale: i32| (sum + scale / 2).div_euclid(scale).clamp(0, 255) as u8;
        *pixel = [
            rounded(red, 1000),
            rounded(green, 587_000),
            rounded(blue, 1000),
        ];
    });
}

/// A table of colours.
#[derive(Debug)]
pub struct Palette {
    depth: Depth,
    /// The sample that stands for the first colour, as do all lower ones.
    first: i64,
    /// Red, green and blue; samples after the last one stand for the last one.
    colours: Vec<[u16; 3]>,
}

impl Palette {
    /// Reads the table for samples that are signed or not.
    ///
    /// # Errors
    /// A table that is missing, damaged or of a kind that is not supported.
    pub fn read(header: &Header, signed: bool) -> Result<Palette> {
        let numbers = |element| {
            header
                .numbers((0x28, element))
                .filter(|all| !all.is_empty())
        };
        ensure!(
            numbers(0x1221).is_none(),
            "a palette in segments is not supported: convert it to RGB first"
        );
        let descriptor = |element: u16| {
            let numbers = numbers(element)?;
            numbers.first_chunk::<3>().copied()
        };
        let first = descriptor(0x1101);
        let [count, start, bits] =
            first.context("the size of its palette (0028,1101) is missing")?;
        ensure!(
            first == descriptor(0x1102) && first == descriptor(0x1103),
            "its palette has other sizes for green or blue than for red"
        );
        ensure!(
            matches!(bits, 8 | 16),
            "a palette of {bits} bits is not supported (8 and 16 are)"
        );
        let count = match count {
            0 => 1 << 16,
            count => usize::from(count),
        };
        let mut colours = vec![[0; 3]; count];
        for channel in 0..3 {
            let words = numbers(0x1201 + channel as u16).unwrap_or_default();
            // Each colour of 8 bits has a word of its own, or two share a word, the first in the lower byte.
            let halves: Vec<u16> = words
                .iter()
                .flat_map(|word| [word & 255, word >> 8])
                .collect();
            let values = if words.len() < count && bits == 8 {
                halves
            } else {
                words
            };
            ensure!(
                values.len() >= count,
                "its palette has {} of {count} colours",
                values.len()
            );
            for (colour, value) in colours.iter_mut().zip(values) {
                colour[channel] = value;
            }
        }
        let is_wide = bits == 16 || colours.iter().flatten().any(|&value| value > 255);
        let depth = if is_wide {
            Depth::Sixteen
        } else {
            Depth::Eight
        };
        let first = if signed {
            i64::from(start as i16)
        } else {
            i64::from(start)
        };
        Ok(Palette {
            depth,
            first,
            colours,
        })
    }

    /// The shape of the coloured image, for that of its indices.
    pub fn shape(&self, shape: Shape) -> Shape {
        Shape {
            channels: 3,
            depth: self.depth,
            ..shape
        }
    }

    /// Converts an image of indices, which are signed or not, to colours.
    ///
    /// # Errors
    /// No memory.
    pub fn expand(&self, indices: &Image, signed: bool) -> Result<Image> {
        let shape = self.shape(indices.shape());
        let mut samples = Samples::zeroed(&shape)?;
        // Signed samples have this offset in memory.
        let zero = if signed {
            1i64 << (indices.shape().depth.bits() - 1)
        } else {
            0
        };
        let last = self.colours.len() as i64 - 1;
        let colour = |index: i64| self.colours[(index - zero - self.first).clamp(0, last) as usize];
        match indices.samples() {
            Samples::U8(indices) => fill(&mut samples, indices, colour),
            Samples::U16(indices) => fill(&mut samples, indices, colour),
            Samples::U32(_) | Samples::U64(_) => bail!("a palette for 32 bits is not supported"),
        }
        Ok(Image::new(shape, samples))
    }
}

fn fill<T: Copy + Into<i64> + Sync>(
    samples: &mut Samples,
    indices: &[T],
    colour: impl Fn(i64) -> [u16; 3] + Sync,
) {
    match samples {
        Samples::U8(samples) => {
            let pixels = samples.as_chunks_mut::<3>().0.par_iter_mut().zip(indices);
            pixels
                .for_each(|(pixel, &index)| *pixel = colour(index.into()).map(|value| value as u8));
        }
        Samples::U16(samples) => {
            let pixels = samples.as_chunks_mut::<3>().0.par_iter_mut().zip(indices);
            pixels.for_each(|(pixel, &index)| *pixel = colour(index.into()));
        }
        // `read` gives 8 or 16 bits.
        Samples::U32(_) | Samples::U64(_) => {}
    }
}
