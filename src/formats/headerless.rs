//! Samples without a header. `--raw` says what a header would; `--format raw` and `--raw-type` write such files. Samples have the types
//! of arrays, or the pixel formats of cameras (`camera.rs`).

mod camera;

use super::Options;
use super::format::{Decoder, Encoder, Format, PageSurvey};
use super::raster::{Form, Layout, RasterDecoder, RasterEncoder};
use super::raw::Order;
use crate::image::metadata::Metadata;
use crate::image::{Depth, Shape};
use crate::os::{Source, Target};
use anyhow::{Result, bail, ensure};
use camera::{CameraDecoder, CameraEncoder, PixelFormat};
use clap::ValueEnum;
use std::fmt;
use std::str::FromStr;

/// What `--raw` says of all inputs: `640x480:u16le`, `640x480x3:u8:25+1024`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headerless {
    width: u64,
    height: u64,
    channels: usize,
    samples: SampleType,
    /// The number of pages; without it the file is full of them.
    pages: Option<usize>,
    /// Bytes before the first sample.
    skip: u64,
}

/// How samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleType {
    /// As an array has them.
    Array {
        depth: Depth,
        signed: bool,
        big_endian: bool,
    },
    /// As a camera sends them.
    Camera(PixelFormat),
}

/// The names of the types of more than 8 bits without the byte order, and those of 8 bits; with the
/// depth and the sign of integers.
const TYPES: [(&str, Depth, bool); 8] = [
    ("u8", Depth::Eight, false),
    ("i8", Depth::Eight, true),
    ("u16", Depth::Sixteen, false),
    ("i16", Depth::Sixteen, true),
    ("u32", Depth::ThirtyTwo, false),
    ("i32", Depth::ThirtyTwo, true),
    ("f32", Depth::Float, false),
    ("f64", Depth::Double, false),
];

/// The endings of their names where the least significant byte is first, and where the most is.
const ORDERS: [&str; 2] = ["le", "be"];

impl FromStr for Headerless {
    type Err = String;

    fn from_str(text: &str) -> Result<Headerless, String> {
        let number = |text: &str| -> Result<u64, String> {
            let number = text.parse().ok().filter(|_| !text.starts_with('+'));
            number.ok_or(format!(
                "'{text}' is not a number: write WIDTHxHEIGHT:TYPE, as 640x512:u16le"
            ))
        };
        let (rest, skip) = match text.split_once('+') {
            Some((rest, skip)) => (rest, number(skip)?),
            None => (text, 0),
        };
        let mut parts = rest.split(':');
        let sides = parts.next().unwrap_or_default();
        let sides = sides
            .split('x')
            .map(number)
            .collect::<Result<Vec<u64>, String>>()?;
        let (width, height, channels) = match sides[..] {
            [width, height] => (width, height, 1),
            [width, height, channels @ 1..=4] => (width, height, channels as usize),
            _ => {
                return Err(
                    "expected WIDTHxHEIGHT or WIDTHxHEIGHTxCHANNELS (1 to 4 channels) first".into(),
                );
            }
        };
        if width == 0 || height == 0 {
            return Err("width and height must not be 0".into());
        }
        let name = parts.next().unwrap_or_default();
        let samples = name.parse()?;
        if channels > 1 && matches!(samples, SampleType::Camera(_)) {
            return Err(format!(
                "'{name}' has one channel: write WIDTHxHEIGHT:{name}"
            ));
        }
        let pages = match parts.next().map(number).transpose()? {
            Some(0) => return Err("0 pages".into()),
            pages => pages.map(|pages| pages as usize),
        };
        match parts.next() {
            Some(more) => Err(format!("unexpected ':{more}'")),
            None => Ok(Headerless {
                width,
                height,
                channels,
                samples,
                pages,
                skip,
            }),
        }
    }
}

impl FromStr for SampleType {
    type Err = String;

    fn from_str(name: &str) -> Result<SampleType, String> {
        for (kind, depth, signed) in TYPES {
            for order in ORDERS {
                if type_name(kind, depth, order) == name {
                    return Ok(SampleType::Array {
                        depth,
                        signed,
                        big_endian: order == ORDERS[1],
                    });
                }
            }
        }
        PixelFormat::named(name).map(SampleType::Camera).ok_or_else(|| {
            let what = match name {
                "" => "missing sample type".into(),
                _ if TYPES.iter().any(|(kind, depth, _)| type_name(kind, *depth, "") == name) => {
                    return format!("the byte order of '{name}' is missing: use {name}le or {name}be");
                }
                _ => format!("unknown sample type '{name}'"),
            };
            format!(
                "{what}: expected u8, i8, or u16, i16, u32, i32, f32, f64 followed by le or be, or a camera's pixel \
                 format such as mono10, mono12p, mono12packed, bayerrg8 or bayerrg12p"
            )
        })
    }
}

impl fmt::Display for SampleType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            SampleType::Camera(format) => format.fmt(f),
            SampleType::Array {
                depth,
                signed,
                big_endian,
            } => {
                let is_own = |kind: &&(&str, Depth, bool)| (kind.1, kind.2) == (depth, signed);
                let order = ORDERS[usize::from(big_endian)];
                let kind = TYPES.iter().find(is_own);
                f.write_str(&kind.map_or(String::new(), |kind| type_name(kind.0, depth, order)))
            }
        }
    }
}

impl fmt::Display for Headerless {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Headerless {
            width,
            height,
            channels,
            samples,
            ..
        } = self;
        write!(f, "{width}x{height}x{channels}:{samples}")?;
        if let Some(pages) = self.pages {
            write!(f, ":{pages}")?;
        }
        write!(f, "+{}", self.skip)
    }
}

/// The name of a type in a byte order, of which 8 bits have none.
fn type_name(name: &str, depth: Depth, order: &str) -> String {
    match depth {
        Depth::Eight => name.into(),
        _ => format!("{name}{order}"),
    }
}

impl Headerless {
    /// Bytes of a frame in a stream: of one page, or of as many as were named.
    ///
    /// # Errors
    /// Pixels that memory cannot address, and bytes to skip, of which a stream has none.
    pub fn page_bytes(&self) -> Result<u64> {
        ensure!(
            self.skip == 0 && self.pages.is_none_or(|pages| pages == 1),
            "--raw with pages or bytes to skip is for files: frames of a stream come one after the other"
        );
        self.bytes_of(self.shape()?)
    }

    /// The shape of a page in memory.
    fn shape(&self) -> Result<Shape> {
        let depth = match self.samples {
            SampleType::Array { depth, .. } => depth,
            SampleType::Camera(format) => format.depth(),
        };
        Shape::checked(self.width, self.height, self.channels, depth)
    }

    /// Bytes of a page of this shape in the file.
    fn bytes_of(&self, shape: Shape) -> Result<u64> {
        match self.samples {
            SampleType::Array { .. } => Ok(Layout::new(shape, 0).page_bytes()),
            SampleType::Camera(format) => format.bytes(shape.pixels()),
        }
    }

    /// A decoder for a file of such samples.
    ///
    /// # Errors
    /// A file that is too short, or whose length does not tell how many pages it has.
    pub fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        let shape = self.shape()?;
        let (there, page) = (
            source.len().saturating_sub(self.skip),
            self.bytes_of(shape)?,
        );
        let pages = match self.pages {
            Some(pages) => pages,
            None => {
                ensure!(
                    there.is_multiple_of(page) || there < page || damaged,
                    "{there} bytes are not a whole number of pages of {page} bytes (a number of pages \
                     after the type, or bytes to skip: --raw WxH:TYPE:PAGES+SKIP)"
                );
                // Of a damaged file, the rest is a page that is not all there.
                usize::try_from(there.div_ceil(page))?.max(1)
            }
        };
        let needed = page.saturating_mul(pages as u64).saturating_add(self.skip);
        ensure!(
            source.len() >= needed || damaged,
            "truncated at byte {} of {needed}, or the width, height or type of --raw is wrong",
            source.len()
        );
        let (order, signed) = match self.samples {
            SampleType::Array {
                signed, big_endian, ..
            } => (Order::new(big_endian), signed),
            SampleType::Camera(_) => (Order::Little, false),
        };
        let mut layout = Layout {
            pages,
            order,
            toggled: signed,
            ..Layout::new(shape, self.skip)
        };
        layout.metadata = Metadata {
            signed,
            ..Metadata::default()
        };
        if let SampleType::Camera(format) = self.samples {
            layout.metadata = format.metadata();
            if format.is_packed() {
                return Ok(Box::new(CameraDecoder::new(
                    source, format, layout, damaged,
                )?));
            }
        }
        Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
    }
}

/// How samples are written. Their depth and sign are those of the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum RawType {
    /// The least significant byte first; --raw WxH:u16le reads such samples of 16 bits
    #[default]
    Le,
    /// The most significant byte first; --raw WxH:u16be reads such samples of 16 bits
    Be,
    /// 10 bits, as a stream (GenICam); --raw WxH:mono10p reads them
    Mono10p,
    /// 12 bits, as a stream
    Mono12p,
    /// 14 bits, as a stream
    Mono14p,
    /// 10 bits, two samples in three bytes (GigE Vision)
    Mono10packed,
    /// 12 bits, two samples in three bytes
    Mono12packed,
}

impl RawType {
    /// Whether it is the type without the option.
    pub fn is_default(&self) -> bool {
        *self == RawType::default()
    }

    /// The pixel format of a camera; `None` for whole bytes.
    fn pixel_format(self) -> Option<PixelFormat> {
        let value = self.to_possible_value()?;
        PixelFormat::named(value.get_name())
    }
}

/// The format of such files.
pub static FORMAT: Format = Format {
    name: "raw",
    id: "raw",
    title: "Samples without a header (--raw-type)",
    extensions: &["raw"],
    decoder: |_, _| bail!("only --raw describes the content of such a file"),
    encoder: Some(encoder),
    ..Format::DEFAULTS
};

fn encoder<'a>(
    target: &'a Target,
    options: &Options,
    pages: &[PageSurvey],
) -> Result<Box<dyn Encoder + 'a>> {
    if let Some(format) = options.raw_type.pixel_format() {
        return Ok(Box::new(CameraEncoder::new(target, format, pages)?));
    }
    let form = match options.raw_type {
        RawType::Be => big_endian,
        _ => little_endian,
    };
    Ok(Box::new(RasterEncoder::new(target, form, pages.len())))
}

fn little_endian(_: &Shape, metadata: &Metadata, _: usize) -> Result<Form> {
    Ok(Form {
        order: Order::Little,
        toggled: metadata.signed,
        block: 1,
        ..Form::default()
    })
}

fn big_endian(shape: &Shape, metadata: &Metadata, pages: usize) -> Result<Form> {
    Ok(Form {
        order: Order::Big,
        ..little_endian(shape, metadata, pages)?
    })
}
