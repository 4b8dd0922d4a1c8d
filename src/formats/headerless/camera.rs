//! The pixel formats of cameras, by the names of the Pixel Format Naming Convention (PFNC, GenICam): `mono12p`, `bayerrg8`.
//! Values are kept: those of 10 bits stay 0 to 1023, in samples of 16 bits.
//!
//! Formats that end in `p` are streams of bits, the least significant one first. Those that end in `packed` are older (GigE
//! Vision): three bytes hold two pixels. The first byte has the upper bits of the first pixel, the last byte those of the
//! second. The byte between them has the lower bits of both, those of the first pixel in its lower half. In both kinds, rows
//! follow one another without padding, and a page ends with its last byte.

use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::{Decoder, Encoder, PageSurvey};
use crate::formats::raster::Layout;
use crate::image::metadata::{Diagnostics, Field, Metadata, Own, Value};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::{Source, Target};
use anyhow::{Context, Result, anyhow, bail, ensure};
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt;

/// A pixel format with one sample a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelFormat {
    /// The colours of the filters of a pixel and its neighbours, if there are any.
    filters: Option<Filters>,
    /// Significant bits: 8, 10, 12, 14 or 16.
    bits: u32,
    packing: Packing,
}

/// The name of an order of colour filters, and the filters of two pixels and of those below them: 0 red, 1 green, 2 blue.
type Filters = (&'static str, [u8; 4]);

/// How samples follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    /// In one or two bytes each, the least significant one first.
    Bytes,
    /// As a stream of bits.
    Stream,
    /// Two in three bytes.
    Pairs,
}

const FILTERS: [Filters; 4] = [
    ("bayerrg", [0, 1, 1, 2]),
    ("bayergr", [1, 0, 2, 1]),
    ("bayergb", [1, 2, 0, 1]),
    ("bayerbg", [2, 1, 1, 0]),
];

/// The bits and the packing at the end of a name.
const ENDINGS: [(&str, u32, Packing); 10] = [
    ("8", 8, Packing::Bytes),
    ("10", 10, Packing::Bytes),
    ("12", 12, Packing::Bytes),
    ("14", 14, Packing::Bytes),
    ("16", 16, Packing::Bytes),
    ("10p", 10, Packing::Stream),
    ("12p", 12, Packing::Stream),
    ("14p", 14, Packing::Stream),
    ("10packed", 10, Packing::Pairs),
    ("12packed", 12, Packing::Pairs),
];

/// Pixels that a thread unpacks at a time. They begin and end between two bytes.
const PIXELS: usize = 1 << 14;

/// The fields of a filter array (TIFF/EP): its rows and columns, and its colours.
const PATTERN_SIDES: u16 = 33421;
const PATTERN: u16 = 33422;

impl PixelFormat {
    /// The format of a name, in letters of any case.
    pub fn named(name: &str) -> Option<PixelFormat> {
        let name = name.to_ascii_lowercase();
        let (filters, ending) = match name.strip_prefix("mono") {
            Some(ending) => (None, ending),
            None => FILTERS.into_iter().find_map(|filters| {
                let ending = name.strip_prefix(filters.0)?;
                Some((Some(filters), ending))
            })?,
        };
        let (_, bits, packing) = ENDINGS.into_iter().find(|(known, ..)| *known == ending)?;
        Some(PixelFormat {
            filters,
            bits,
            packing,
        })
    }

    /// The depth of samples in memory.
    pub fn depth(self) -> Depth {
        match self.bits {
            8 => Depth::Eight,
            _ => Depth::Sixteen,
        }
    }

    /// Whether pixels begin within a byte.
    pub fn is_packed(self) -> bool {
        self.packing != Packing::Bytes
    }

    /// Bits from one pixel to the next.
    fn step(self) -> usize {
        match self.packing {
            Packing::Bytes => self.depth().bits() as usize,
            Packing::Stream => self.bits as usize,
            Packing::Pairs => 12,
        }
    }

    /// Bytes of so many pixels in the file.
    ///
    /// # Errors
    /// More than a file can have.
    pub fn bytes(self, pixels: usize) -> Result<u64> {
        let bits = (pixels as u64).checked_mul(self.step() as u64);
        let bits = bits.with_context(|| format!("{pixels} pixels do not fit in a file"))?;
        Ok(bits.div_ceil(8))
    }

    /// The largest value, if it is not that of the depth, and the pattern of the filters.
    pub fn metadata(self) -> Metadata {
        let maxval = self.largest();
        let own = self.filters.map_or(Own::None, |(_, colours)| {
            let field = |tag, kind, bytes: &[u8]| Field {
                tag,
                kind,
                value: Value::Bytes(bytes.to_vec()),
            };
            let (byte, short) = (1, 3);
            Own::Tiff {
                big_endian: false,
                fields: vec![
                    field(PATTERN_SIDES, short, &[2, 0, 2, 0]),
                    field(PATTERN, byte, &colours),
                ],
            }
        });
        Metadata {
            maxval: (maxval != self.depth().full()).then_some(maxval),
            own,
            ..Metadata::default()
        }
    }

    /// The largest value.
    fn largest(self) -> u16 {
        ((1u32 << self.bits) - 1) as u16
    }

    /// Packs samples, none of which is above the largest value. The first begins with the first byte.
    fn pack(self, samples: &[u16]) -> Vec<u8> {
        let mut packed = vec![0; (samples.len() * self.step()).div_ceil(8)];
        for (i, &sample) in samples.iter().enumerate() {
            match self.packing {
                Packing::Bytes | Packing::Stream => {
                    let (first, shift) = (i * self.step() / 8, i * self.step() % 8);
                    let bytes = (u32::from(sample) << shift).to_le_bytes();
                    let there = packed[first..].iter_mut().zip(bytes);
                    there.for_each(|(packed, byte)| *packed |= byte);
                }
                Packing::Pairs => {
                    let (first, low) = (i / 2 * 3, self.bits - 8);
                    let lower = sample & ((1 << low) - 1);
                    packed[first + i % 2 * 2] = (sample >> low) as u8;
                    packed[first + 1] |= (lower << (i % 2 * 4)) as u8;
                }
            }
        }
        packed
    }

    /// The samples of packed pixels, of which the first begins with the first byte.
    fn unpack(self, packed: &[u8], samples: &mut [u16]) {
        let byte = |i: usize| u32::from(packed.get(i).copied().unwrap_or(0));
        let mask = (1 << self.bits) - 1;
        for (i, sample) in samples.iter_mut().enumerate() {
            let number = match self.packing {
                Packing::Bytes | Packing::Stream => {
                    let (first, shift) = (i * self.step() / 8, i * self.step() % 8);
                    (byte(first) | byte(first + 1) << 8 | byte(first + 2) << 16) >> shift
                }
                Packing::Pairs => {
                    let (first, low) = (i / 2 * 3, self.bits - 8);
                    let (upper, shift) = (first + i % 2 * 2, i as u32 % 2 * 4);
                    byte(upper) << low | byte(first + 1) >> shift & ((1 << low) - 1)
                }
            };
            *sample = (number & mask) as u16;
        }
    }
}

impl fmt::Display for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let is_own =
            |ending: &&(&str, u32, Packing)| (ending.1, ending.2) == (self.bits, self.packing);
        let ending = ENDINGS.iter().find(is_own).map_or("", |ending| ending.0);
        write!(
            f,
            "{}{ending}",
            self.filters.map_or("mono", |filters| filters.0)
        )
    }
}

/// Decodes pages of packed pixels.
pub struct CameraDecoder<'a> {
    source: &'a Source,
    format: PixelFormat,
    layout: Layout,
    page: usize,
    /// Bytes of a page in the file.
    page_bytes: u64,
}

impl<'a> CameraDecoder<'a> {
    /// Checks that all pages are in the file, unless it may be damaged.
    ///
    /// # Errors
    /// A truncated file, and a damaged one of more pages than bytes.
    pub fn new(
        source: &'a Source,
        format: PixelFormat,
        layout: Layout,
        damaged: bool,
    ) -> Result<CameraDecoder<'a>> {
        let page_bytes = format.bytes(layout.shape.pixels())?;
        let end = page_bytes.checked_mul(layout.pages as u64);
        let end = end.and_then(|bytes| bytes.checked_add(layout.start));
        let end = end.with_context(|| format!("{} pages do not fit in a file", layout.pages))?;
        let enough = if damaged {
            layout.pages as u64 <= source.len().max(1)
        } else {
            end <= source.len()
        };
        ensure!(enough, "truncated at byte {} of {end}", source.len());
        Ok(CameraDecoder {
            source,
            format,
            layout,
            page: 0,
            page_bytes,
        })
    }
}

impl Decoder for CameraDecoder<'_> {
    fn pages(&self) -> usize {
        self.layout.pages
    }

    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        Ok(self.layout.shape.into())
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.layout.shape
    }

    fn metadata(&self, _: &mut Diagnostics) -> Result<Metadata> {
        Ok(self.layout.metadata.clone())
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let (format, source, shape) = (self.format, self.source, self.layout.shape);
        let start = self.layout.start + self.page as u64 * self.page_bytes;
        let end = start + self.page_bytes;
        if end > source.len() {
            policy.accept(Err(anyhow!("truncated at byte {} of {end}", source.len())))?;
        }
        let mut samples = Vec::<u16>::new();
        samples
            .try_reserve_exact(shape.samples())
            .map_err(|_| anyhow!("not enough memory for {shape}"))?;
        samples.resize(shape.samples(), 0);
        let failure = samples
            .par_chunks_mut(PIXELS)
            .enumerate()
            .map_init(Vec::new, |packed: &mut Vec<u8>, (part, samples)| {
                let offset = start + (part * PIXELS * format.step() / 8) as u64;
                packed.resize((samples.len() * format.step()).div_ceil(8), 0);
                let there = source.len().saturating_sub(offset).min(packed.len() as u64);
                let (there, absent) = packed.split_at_mut(there as usize);
                absent.fill(0);
                if !there.is_empty()
                    && let Err(error) = policy.accept(source.read_at(there, offset))
                {
                    return Some(error);
                }
                format.unpack(packed, samples);
                None
            })
            .find_map_first(|failure| failure);
        match failure {
            Some(error) => Err(error),
            None => Ok(Image::new(shape, Samples::from(samples))),
        }
    }
}

/// Encodes pages of packed pixels.
pub struct CameraEncoder<'a> {
    target: &'a Target,
    format: PixelFormat,
    length: u64,
}

impl<'a> CameraEncoder<'a> {
    /// Checks that all pages have the shape that the format needs.
    ///
    /// # Errors
    /// Pages that are not grey, have another depth than 16 bits, or differ in size.
    pub fn new(
        target: &'a Target,
        format: PixelFormat,
        pages: &[PageSurvey],
    ) -> Result<CameraEncoder<'a>> {
        for (index, PageSurvey { shape, .. }) in pages.iter().enumerate() {
            ensure!(
                shape.channels == 1 && shape.depth == format.depth(),
                "{format} stores grey samples of 16 bits, of which {} are used, but page {} is {shape}",
                format.bits,
                index + 1
            );
            ensure!(
                *shape == pages[0].shape,
                "page {} is {shape}, but the first is {}: all pages of a file of this format have one shape",
                index + 1,
                pages[0].shape
            );
        }
        Ok(CameraEncoder {
            target,
            format,
            length: 0,
        })
    }
}

impl Encoder for CameraEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let (format, most) = (self.format, self.format.largest());
        let Samples::U16(samples) = image.samples() else {
            bail!("internal error: packed samples of other than 16 bits");
        };
        ensure!(
            !metadata.signed,
            "{format} cannot store signed samples (normalize --unsigned makes them unsigned)"
        );
        let largest = samples.par_iter().copied().max().unwrap_or(0);
        ensure!(
            largest <= most,
            "{format} stores samples up to {most}, but the largest is {largest} (normalize --to 0:{most} scales them)"
        );
        let start = self.length;
        let parts = samples.par_chunks(PIXELS).enumerate();
        parts.try_for_each(|(part, samples)| {
            let offset = (part * PIXELS * format.step() / 8) as u64;
            self.target.write_at(&format.pack(samples), start + offset)
        })?;
        self.length += format.bytes(samples.len())?;
        Ok(())
    }

    fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packed by hand from the figures of both standards.
    #[test]
    fn pixels_by_hand() {
        for (name, samples, bytes) in [
            // 0x3A5 = 11_1010_0101, 0x012 = 00_0001_0010, 0x3FF, 0x200: from the last byte to the first, the pixels from right to left.
            (
                "mono10p",
                &[0x3A5, 0x012, 0x3FF, 0x200][..],
                &[0xA5, 0x4B, 0xF0, 0x3F, 0x80][..],
            ),
            ("mono12p", &[0xABC, 0xDEF], &[0xBC, 0xFA, 0xDE]),
            ("mono12p", &[0xABC], &[0xBC, 0x0A]),
            ("mono12packed", &[0xABC, 0xDEF], &[0xAB, 0xFC, 0xDE]),
            ("mono12packed", &[0xABC], &[0xAB, 0x0C]),
            ("mono10packed", &[0x3A5, 0x012], &[0xE9, 0x21, 0x04]),
            (
                "mono14p",
                &[0x3FFF, 0x0001, 0x2AAA, 0x1555],
                &[0xFF, 0x7F, 0x00, 0xA0, 0xAA, 0x56, 0x55],
            ),
        ] {
            let format = PixelFormat::named(name).expect("a format");
            assert_eq!(format.pack(samples), bytes, "{name}");
            let mut unpacked = vec![0; samples.len()];
            format.unpack(bytes, &mut unpacked);
            assert_eq!(unpacked, samples, "{name}");
        }
        // The unused bits between two pixels mean nothing.
        let mut unpacked = [0; 2];
        let format = PixelFormat::named("mono10packed").expect("a format");
        format.unpack(&[0xE9, 0xED, 0x04], &mut unpacked);
        assert_eq!(unpacked, [0x3A5, 0x012]);
    }

    #[test]
    fn names_there_and_back() {
        for name in [
            "mono8",
            "mono10p",
            "mono12packed",
            "mono16",
            "bayerrg8",
            "bayergb12p",
            "bayerbg10packed",
            "bayergr16",
        ] {
            let format = PixelFormat::named(name).expect(name);
            assert_eq!(format.to_string(), name);
        }
        assert_eq!(
            PixelFormat::named("BayerRG12p"),
            PixelFormat::named("bayerrg12p")
        );
        for name in ["mono", "mono9", "bayer8", "bayerrg", "rgb8", "mono12pp"] {
            assert_eq!(PixelFormat::named(name), None, "{name}");
        }
    }
}
