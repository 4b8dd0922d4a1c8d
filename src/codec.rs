//! File bytes ⇄ `Image`, by format: a format is recognised by its first bytes, and chosen for the
//! output by the file's extension. One file a format; no codec knows a device, but for
//! png/cuda.rs.

pub mod metadata;
pub mod ordered;
pub mod png;
pub mod pnm;
mod raw;
pub mod salvage;
pub mod tiff;
mod writer;

use crate::files::{Source, Target};
use crate::image::{Image, Shape};
use crate::metadata::{Metadata, Remarks};
use anyhow::{Context, Result, bail, ensure};
use salvage::Salvage;
use std::path::Path;

pub use writer::Writer;

/// The formats that are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Format {
    /// Portable Network Graphics
    Png,
    /// Tagged Image File Format
    Tiff,
    /// Portable anymap: P5 (grey) or P6 (RGB), binary
    Pnm,
}

impl Format {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "PNG",
            Format::Tiff => "TIFF",
            Format::Pnm => "PNM",
        }
    }

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

    /// Whether its samples can be signed.
    pub fn has_sign(self) -> bool {
        self == Format::Tiff
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
#[group(skip)]
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

/// How inputs are read.
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct Reading {
    /// Refuse images of more pixels than this, before memory is taken for them
    #[arg(long, value_name = "N", default_value_t = 1 << 33, global = true)]
    pub max_pixels: u64,

    /// Of a damaged file take what can be read, the rest being 0; the exit status is 1 all the same
    #[arg(long, global = true)]
    pub keep_going: bool,

    /// Take these pages of a stack alone, counted from 1: one (3), or the first and the last (2-9)
    #[arg(long, value_name = "A-B", global = true)]
    pub pages: Option<Pages>,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            max_pixels: 1 << 33,
            keep_going: false,
            pages: None,
        }
    }
}

/// A range of pages, counted from 1, both ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Pages {
    /// The first.
    pub first: usize,
    /// The last.
    pub last: usize,
}

impl std::str::FromStr for Pages {
    type Err = String;

    fn from_str(text: &str) -> Result<Pages, String> {
        let number = |text: &str| {
            let number = text.trim().parse::<usize>().ok().filter(|&page| page > 0);
            number.ok_or(format!("'{text}' is no page: they are counted from 1"))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err("the first page must not be behind the last".into());
        }
        Ok(Pages { first, last })
    }
}

/// A file whose header has been read: what is in it is known, and no memory has been taken.
pub struct Reader<'a> {
    kind: Kind<'a>,
    /// The pages that are asked for, counted from 0.
    pages: Vec<usize>,
    /// Pages that are left out for what they are.
    aside: Vec<usize>,
    salvage: Salvage,
}

/// The formats' readers.
enum Kind<'a> {
    Png(png::Reader<'a>),
    Tiff(tiff::Reader<'a>),
    Pnm(pnm::Reader<'a>),
}

impl<'a> Reader<'a> {
    /// Recognises the format, reads the header and turns to the first page that is asked for. Errors
    /// say the cause only; the caller names the file.
    pub fn open(source: &'a Source, reading: &Reading) -> Result<Reader<'a>> {
        let kind = match Format::of_content(source)? {
            Format::Png => Kind::Png(png::Reader::open(source, reading.keep_going)?),
            Format::Tiff => Kind::Tiff(tiff::Reader::open(source, reading.keep_going)?),
            Format::Pnm => Kind::Pnm(pnm::Reader::open(source, reading.keep_going)?),
        };
        let count = match &kind {
            Kind::Tiff(reader) => reader.pages(),
            _ => 1,
        };
        let asked = reading.pages.unwrap_or(Pages {
            first: 1,
            last: count,
        });
        ensure!(
            asked.last <= count,
            "it has {count} page{}, no page {}",
            if count == 1 { "" } else { "s" },
            asked.last
        );
        let mut reader = Reader {
            kind,
            pages: (asked.first - 1..asked.last).collect(),
            aside: Vec::new(),
            salvage: Salvage::new(reading.keep_going),
        };
        reader.leave_aside()?;
        for shape in reader.surveys()? {
            ensure!(
                shape.0.pixels() as u64 <= reading.max_pixels,
                "{}×{} pixels are more than {} (--max-pixels allows more)",
                shape.0.width,
                shape.0.height,
                reading.max_pixels
            );
        }
        reader.turn_to(0)?;
        Ok(reader)
    }

    /// Leaves out smaller copies and masks, unless nothing else is asked for.
    fn leave_aside(&mut self) -> Result<()> {
        let Kind::Tiff(tiff) = &self.kind else {
            return Ok(());
        };
        if self.pages.len() < 2 {
            return Ok(());
        }
        let mut aside = Vec::new();
        for &page in &self.pages {
            let survey = tiff.survey(page).with_context(|| of_page(page))?;
            if survey.is_aside {
                aside.push(page);
            }
        }
        if aside.len() < self.pages.len() {
            self.pages.retain(|page| !aside.contains(page));
            self.aside = aside;
        }
        Ok(())
    }

    /// The shape of every page that is asked for, and how many bytes of metadata it has.
    pub fn surveys(&self) -> Result<Vec<(Shape, u64)>> {
        match &self.kind {
            Kind::Tiff(tiff) => self
                .pages
                .iter()
                .map(|&page| {
                    let survey = tiff.survey(page).with_context(|| of_page(page))?;
                    Ok((survey.shape, survey.metadata))
                })
                .collect(),
            Kind::Png(png) => Ok(vec![(png.shape, png.metadata_bytes())]),
            Kind::Pnm(pnm) => Ok(vec![(pnm.shape, 0)]),
        }
    }

    /// The file's format.
    pub fn format(&self) -> Format {
        match self.kind {
            Kind::Png(_) => Format::Png,
            Kind::Tiff(_) => Format::Tiff,
            Kind::Pnm(_) => Format::Pnm,
        }
    }

    /// The pages that are asked for, counted from 0 in the file; at least one.
    pub fn pages(&self) -> &[usize] {
        &self.pages
    }

    /// Whether that is every page of the file.
    pub fn is_whole(&self) -> bool {
        match &self.kind {
            Kind::Tiff(tiff) => self.pages.len() == tiff.pages(),
            _ => true,
        }
    }

    /// Turns to the page at `index` among those that are asked for.
    pub fn turn_to(&mut self, index: usize) -> Result<()> {
        let page = self.pages[index];
        match &mut self.kind {
            Kind::Tiff(tiff) => tiff.turn_to(page).with_context(|| of_page(page)),
            _ => Ok(()),
        }
    }

    /// The shape of the image that `decode` gives.
    pub fn shape(&self) -> Shape {
        match &self.kind {
            Kind::Png(reader) => reader.shape,
            Kind::Tiff(reader) => reader.shape(),
            Kind::Pnm(reader) => reader.shape,
        }
    }

    /// What the page says of itself beside its samples.
    pub fn metadata(&self, remarks: &mut Remarks) -> Result<Metadata> {
        match &self.kind {
            Kind::Png(reader) => reader.metadata(remarks),
            Kind::Tiff(reader) => reader.metadata(remarks),
            Kind::Pnm(reader) => Ok(reader.metadata()),
        }
    }

    /// Reads the page's image.
    pub fn decode(&mut self) -> Result<Image> {
        match &mut self.kind {
            Kind::Png(reader) => reader.decode(&self.salvage),
            Kind::Tiff(reader) => reader.decode(&self.salvage),
            Kind::Pnm(reader) => reader.decode(&self.salvage),
        }
    }

    /// What was damaged, if the reading went on all the same.
    pub fn damage(&self) -> Option<String> {
        self.salvage.told()
    }

    /// What the file has beside the pages that are read.
    pub fn left_out(&self) -> Option<String> {
        let first = self.aside.first()? + 1;
        Some(match self.aside.len() {
            1 => format!("1 page that is a smaller copy or a mask is left out (page {first})"),
            more => format!(
                "{more} pages that are smaller copies or masks are left out (the first is page {first})"
            ),
        })
    }
}

fn of_page(page: usize) -> String {
    format!("page {}", page + 1)
}

/// Reads an image of any format.
pub fn decode(source: &Source) -> Result<Image> {
    Reader::open(source, &Reading::default())?.decode()
}

/// Writes an image, and says how long the file is; the caller commits it.
pub fn encode(image: &Image, format: Format, options: &Options, target: &Target) -> Result<u64> {
    match format {
        Format::Png => png::encode(image, options.png, target),
        Format::Tiff => tiff::encode(image, options.tiff, target),
        Format::Pnm => pnm::encode(image, target),
    }
}
