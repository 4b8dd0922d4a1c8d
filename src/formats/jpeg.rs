//! JPEG of 8 bits (ITU-T T.81; JFIF 1.02), grey, RGB and CMYK. `zune-jpeg` decodes most files, `jpeg-decoder` those that it
//! gets wrong, `lossless` the lossless process of up to 16 bits, `ls` JPEG-LS, and `jpeg-encoder` encodes; the markers before the image data are read
//! here, so that the shape is known before memory is allocated, and damage is detected.

pub(super) mod baseline;
pub(super) mod colours;
pub(super) mod lossless;
pub(super) mod ls;
mod markers;
pub(super) mod scans;

use super::embedded;
use super::encoded::Encoded;
use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Encoder, Field, Format, PageSurvey};
use super::library::check_length;
use super::raw::{self, Order};
use super::{Options, library_errors, metadata as conversion};
use crate::image::metadata::{Alpha, Diagnostics, Embedded, Metadata, Own, Resolution, Unit};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::limits;
use crate::os::{Source, Target};
use anyhow::{Context, Result, anyhow, ensure};
use baseline::{Baseline, Expected};
use jpeg_encoder::{ColorType, PixelDensity, PixelDensityUnit, SamplingFactor};
use markers::{Markers, Process};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The most bytes of Exif data: what one segment holds.
const MOST_EXIF: usize = 65_500;

/// The most bytes of an ICC profile: what remains of 254 segments beside their marks (ICC.1, annex B.4). The format allows 255
/// segments, and the library writes one fewer.
const MOST_PROFILE: usize = 254 * (65_533 - 14);

/// The longest side that is written. The format allows 65535, but libjpeg and most programs read no more than this.
const LONGEST_SIDE: usize = 65_500;

/// Files of up to this many bytes are read without checking how much memory is free.
const ANY: u64 = 64 << 20;

/// How near to the image a JPEG is, from 1 to 100, by libjpeg's scale of quantization tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quality(u8);

impl Default for Quality {
    fn default() -> Quality {
        Quality(90)
    }
}

impl FromStr for Quality {
    type Err = String;

    fn from_str(text: &str) -> Result<Quality, String> {
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=100).contains(number));
        number
            .map(Quality)
            .ok_or_else(|| "expected a number from 1 to 100".into())
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Joint Photographic Experts Group.
pub static FORMAT: Format = Format {
    name: "JPEG",
    id: "jpeg",
    title: "JPEG of 8 bits, which is lossy (--quality)",
    extensions: &["jpg", "jpeg"],
    capabilities: Capabilities {
        lossless: false,
        channels: &[1, 3],
        depths: &[Depth::Eight],
        alpha: &[],
        fields: &[
            Field::Orientation,
            Field::Resolution,
            Field::Exif,
            Field::Profile,
        ],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"\xFF\xD8\xFF"),
    decoder,
    encoder: Some(encoder),
    convert_metadata,
    ..Format::DEFAULTS
};

/// JPEG-LS. A file that begins with neither a frame nor a SPIFF header looks like another JPEG file, and is decoded as one.
pub static LS_FORMAT: Format = Format {
    name: "JPEG-LS",
    id: "jpegls",
    title: "JPEG-LS, lossless and near-lossless",
    extensions: &["jls"],
    capabilities: Capabilities {
        pages: false,
        channels: &[1, 3],
        depths: &[Depth::Eight, Depth::Sixteen],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"\xFF\xD8\xFF\xF7") || is_spiff_of_ls(head),
    decoder,
    ..Format::DEFAULTS
};

/// Whether a file begins with a SPIFF header (ITU-T T.84, annex F) that names JPEG-LS as the compression: number 6.
fn is_spiff_of_ls(head: &[u8]) -> bool {
    head.starts_with(b"\xFF\xD8\xFF\xE8\0\x20SPIFF\0") && head.get(26) == Some(&6)
}

fn decoder(source: &Source, _damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let markers = Markers::read(source)?;
    check_length(source, &markers.shape, markers.process.expansion())?;
    Ok(Box::new(JpegDecoder { source, markers }))
}

fn encoder<'a>(
    target: &'a Target,
    options: &Options,
    _pages: &[PageSurvey],
) -> Result<Box<dyn Encoder + 'a>> {
    let Quality(quality) = options.quality;
    Ok(Box::new(Encoded::new(target, move |image, metadata| {
        encode(image, metadata, quality)
    })))
}

fn convert_metadata(metadata: &Metadata, own: Own, leave_out: &mut dyn FnMut(String)) -> Own {
    let mut embedded = match own {
        Own::Embedded(embedded) => embedded,
        other => embedded::from_items(conversion::items(&other), metadata.orientation, leave_out),
    };
    if embedded.xmp.take().is_some() {
        leave_out("the XMP packet".into());
    }
    if embedded
        .exif
        .as_ref()
        .is_some_and(|exif| exif.len() > MOST_EXIF)
    {
        embedded.exif = None;
        leave_out("Exif data of more than 64 KiB".into());
    }
    let profile = embedded.profile.as_ref();
    if profile.is_some_and(|profile| profile.len() > MOST_PROFILE) {
        embedded.profile = None;
        leave_out("an ICC profile of more than 16.6 MB".into());
    }
    Own::Embedded(embedded)
}

struct JpegDecoder<'a> {
    source: &'a Source,
    markers: Markers,
}

impl Decoder for JpegDecoder<'_> {
    /// The libraries need the whole file in memory, so its length counts as metadata, and so do the samples that `ls` returns.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let shape = self.markers.shape;
        let returned = match self.markers.process {
            Process::LosslessLs(_) => (shape.pixels() * shape.channels) as u64 * ls::SAMPLE,
            _ => 0,
        };
        Ok(PageSurvey {
            shape,
            metadata_bytes: self.source.len() + returned,
        })
    }

    fn shape(&self) -> Shape {
        self.markers.shape
    }

    fn metadata(&self, _: &mut Diagnostics) -> Result<Metadata> {
        let Markers { shape, process, .. } = self.markers;
        let narrow = process.bits() < shape.depth.bits();
        let alpha = match shape.channels {
            4 => Alpha::Black,
            _ => Alpha::Independent,
        };
        Ok(Metadata {
            alpha,
            maxval: narrow.then(|| (1 << process.bits()) - 1),
            resolution: self.markers.resolution,
            ..embedded::metadata(self.markers.embedded.clone())
        })
    }
    fn decoding(&self) -> String {
        match self.markers.process {
            Process::Cosines if self.markers.shape.channels == 4 => {
                "by the crate jpeg-decoder".into()
            }
            Process::Cosines => {
                "by the crate zune-jpeg (by jpeg-decoder if each colour has a scan of its own)"
                    .into()
            }
            Process::Lossless(_) => "lossless JPEG, on one thread".into(),
            Process::LosslessLs(_) => "JPEG-LS, on one thread".into(),
        }
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        let (shape, len) = (self.markers.shape, self.source.len());
        ensure!(
            len <= ANY || len <= limits::free_memory(),
            "a file of {len} bytes does not fit in half of the memory that is free"
        );
        let file = self.source.read_all()?;
        if !self.markers.is_complete(&file) {
            policy.accept(Err(anyhow!("truncated at byte {len}")))?;
        }
        let mut samples = Samples::zeroed(&shape)?;
        let lossless = match self.markers.process {
            Process::Cosines => None,
            Process::Lossless(_) => Some(lossless::decode(&file, &shape)),
            Process::LosslessLs(bits) => Some(decode_ls(&file, &shape, bits)),
        };
        if let Some(words) = lossless {
            let read = words.map(|mut words| {
                raw::reorder(&mut words, shape.depth, Order::Little);
                samples.as_bytes_mut().copy_from_slice(&words);
            });
            policy.accept(read)?;
            return Ok(Image::new(shape, samples));
        }
        let colours = self.markers.colours;
        let whole = if shape.channels == 4 {
            Some(scans::decode_inks(&file, colours.adobe))
        } else if scans::are_separate(&file) {
            let pixels = scans::decode(&file, colours.are_ycbcr(), shape.pixels());
            Some(pixels.map(|pixels| pixels.samples))
        } else {
            None
        };
        if let Some(whole) = whole {
            let read = whole.and_then(|whole| {
                let out = samples.as_bytes_mut();
                ensure!(whole.len() == out.len(), "its size is not that of {shape}");
                out.copy_from_slice(&whole);
                Ok(())
            });
            policy.accept(read)?;
            return Ok(Image::new(shape, samples));
        }
        let file = colours::without_odd_adobe(&file);
        let expected = Expected {
            width: shape.width,
            height: shape.height,
            channels: shape.channels,
            are_ycbcr: colours.are_ycbcr(),
            strict: !policy.accepts_damage(),
        };
        let read = Baseline::open(&file, expected)
            .and_then(|mut decoder| decoder.decode_into(samples.as_bytes_mut()));
        policy.accept(read.map_err(|error| library_errors::translate(error, len)))?;
        Ok(Image::new(shape, samples))
    }
}

/// The samples of a JPEG-LS file: bytes, or words with the least significant byte first.
fn decode_ls(file: &[u8], shape: &Shape, bits: u8) -> Result<Vec<u8>> {
    let size = ls::Size {
        width: shape.width,
        height: shape.height,
        channels: shape.channels,
        bits: bits.into(),
    };
    let samples = ls::decode(file, &size)?.into_iter();
    Ok(match shape.depth {
        Depth::Eight => samples.map(|sample| sample as u8).collect(),
        _ => samples.flat_map(u16::to_le_bytes).collect(),
    })
}

fn encode(image: &Image, metadata: &Metadata, quality: u8) -> Result<Vec<u8>> {
    let shape = image.shape();
    let colours = match shape.channels {
        1 => ColorType::Luma,
        _ => ColorType::Rgb,
    };
    let side = |side: usize| (side <= LONGEST_SIDE).then_some(side as u16);
    let (width, height) = side(shape.width)
        .zip(side(shape.height))
        .with_context(|| {
            format!(
                "{shape} is too large for a JPEG: most programs read at most {LONGEST_SIDE} pixels per side (PNG and TIFF hold more)"
            )
        })?;
    let mut file = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
    if let Some(density) = metadata.resolution.and_then(density) {
        encoder.set_density(density);
    }
    if let Own::Embedded(Embedded { profile, exif, .. }) = &metadata.own {
        if let Some(exif) = exif {
            encoder.add_exif_metadata(exif)?;
        }
        if let Some(profile) = profile {
            encoder.add_icc_profile(profile)?;
        }
    }
    encoder.encode(image.samples().as_bytes(), width, height, colours)?;
    Ok(file)
}

/// A resolution in whole dots per inch or centimetre (JFIF 1.02, APP0), if it has a unit.
fn density(resolution: Resolution) -> Option<PixelDensity> {
    let rounded = |(n, d): (u32, u32)| {
        let half = u64::from(d / 2);
        u16::try_from((u64::from(n) + half).checked_div(d.into())?).ok()
    };
    let metric = resolution.by_centimetre();
    let (unit, x, y) = match resolution.unit {
        Unit::None => return None,
        Unit::Inch => (PixelDensityUnit::Inches, resolution.x, resolution.y),
        Unit::Centimetre => (PixelDensityUnit::Centimeters, resolution.x, resolution.y),
        Unit::Metre => (PixelDensityUnit::Centimeters, metric.x, metric.y),
    };
    Some(PixelDensity {
        density: (rounded(x)?, rounded(y)?),
        unit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_blocks_of_metadata_are_written() -> Result<()> {
        let shape = Shape::checked(1, 1, 1, Depth::Eight)?;
        let image = Image::new(shape, Samples::zeroed(&shape)?);
        let own = Own::Embedded(Embedded {
            profile: Some((0..MOST_PROFILE).map(|i| (i % 251) as u8).collect()),
            exif: Some((0..MOST_EXIF).map(|i| (i % 241) as u8).collect()),
            xmp: None,
        });
        let metadata = Metadata {
            own: own.clone(),
            ..Metadata::default()
        };
        let source = Source::memory(encode(&image, &metadata, 90)?);
        let read = decoder(&source, false)?;
        let metadata = read.metadata(&mut Diagnostics::default())?;
        assert!(metadata.own == own);

        let mut left_out = Vec::new();
        let too_long = Own::Embedded(Embedded {
            profile: Some(vec![0; MOST_PROFILE + 1]),
            exif: Some(vec![0; MOST_EXIF + 1]),
            xmp: None,
        });
        convert_metadata(&metadata, too_long, &mut |what| left_out.push(what));
        assert_eq!(left_out.len(), 2, "{left_out:?}");
        Ok(())
    }
}
