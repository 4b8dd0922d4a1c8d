//! File bytes ⇄ `Image`, by format: a format is recognised by its first bytes, and chosen for the
//! output by the file's extension. One file a format; no codec knows a device, but for
//! png/cuda.rs.

pub mod ordered;
pub mod png;
pub mod pnm;
mod raw;
pub mod tiff;

use crate::files::{Source, Target};
use crate::image::{Image, Shape};
use anyhow::{Result, bail, ensure};
use std::path::Path;

/// The formats that are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Portable Network Graphics
    Png,
    /// Tagged Image File Format
    Tiff,
    /// Portable anymap: P5 (grey) or P6 (RGB), binary
    Pnm,
}

impl Format {
    /// The format that a file's extension stands for.
    pub fn of_extension(path: &Path) -> Result<Format> {
        let extension = path
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        Ok(match extension.as_str() {
            "png" => Format::Png,
            "tif" | "tiff" => Format::Tiff,
            "pgm" | "ppm" | "pnm" => Format::Pnm,
            "" => bail!("its name has no extension to tell the format by (--format says it)"),
            other => bail!(
                "the extension .{other} stands for no format that is written: .png, .tif, .pgm, .ppm (or say --format)"
            ),
        })
    }

    /// The extension of its files' names.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Png => "png",
            Format::Tiff => "tif",
            Format::Pnm => "pnm",
        }
    }

    /// The format of a file, by its first bytes.
    pub fn of_content(source: &Source) -> Result<Format> {
        ensure!(!source.is_empty(), "the file is empty");
        let mut magic = [0; 8];
        let length = source.read_up_to(&mut magic, 0)?;
        Ok(match &magic[..length] {
            [0x89, b'P', b'N', b'G', ..] => Format::Png,
            // 42: classic TIFF; 43: BigTIFF.
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Format::Tiff,
            [b'P', b'1'..=b'7', ..] => Format::Pnm,
            _ => bail!("it is not a PNG, TIFF or PNM image"),
        })
    }
}

/// How outputs are written, format by format.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Options {
    /// How PNG files are compressed
    #[arg(long, value_name = "MODE", default_value = "fast", global = true)]
    pub png: png::Mode,

    /// How TIFF files are compressed
    #[arg(
        long,
        value_name = "COMPRESSION",
        default_value = "none",
        global = true
    )]
    pub tiff: tiff::Compression,
}

/// A file whose header has been read: what is in it is known, and no memory has been taken.
pub enum Reader<'a> {
    /// Portable Network Graphics
    Png(png::Reader<'a>),
    /// Tagged Image File Format
    Tiff(tiff::Reader<'a>),
    /// Portable anymap
    Pnm(pnm::Reader<'a>),
}

impl<'a> Reader<'a> {
    /// Recognises the format and reads the header. Errors say the cause only; the caller names the file.
    pub fn open(source: &'a Source) -> Result<Reader<'a>> {
        Ok(match Format::of_content(source)? {
            Format::Png => Reader::Png(png::Reader::open(source)?),
            Format::Tiff => Reader::Tiff(tiff::Reader::open(source)?),
            Format::Pnm => Reader::Pnm(pnm::Reader::open(source)?),
        })
    }

    /// The file's format.
    pub fn format(&self) -> Format {
        match self {
            Reader::Png(_) => Format::Png,
            Reader::Tiff(_) => Format::Tiff,
            Reader::Pnm(_) => Format::Pnm,
        }
    }

    /// The shape of the image that `decode` gives.
    pub fn shape(&self) -> Shape {
        match self {
            Reader::Png(reader) => reader.shape,
            Reader::Tiff(reader) => reader.shape(),
            Reader::Pnm(reader) => reader.shape,
        }
    }

    /// Reads the image.
    pub fn decode(self) -> Result<Image> {
        match self {
            Reader::Png(reader) => reader.decode(),
            Reader::Tiff(reader) => reader.decode(),
            Reader::Pnm(reader) => reader.decode(),
        }
    }
}

/// Reads an image of any format.
pub fn decode(source: &Source) -> Result<Image> {
    Reader::open(source)?.decode()
}

/// Writes an image, and says how long the file is; the caller commits it.
pub fn encode(image: &Image, format: Format, options: &Options, target: &Target) -> Result<u64> {
    match format {
        Format::Png => png::encode(image, options.png, target),
        Format::Tiff => tiff::encode(image, options.tiff, target),
        Format::Pnm => pnm::encode(image, target),
    }
}
