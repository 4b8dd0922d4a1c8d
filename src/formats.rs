//! Converts between file bytes and `Image`. The input's format is recognised by the file's first
//! bytes, the output's by the file's extension. Each format is one file or folder and one line in
//! `FORMATS`; no codec knows a device.

mod bands;
pub mod deflated;
pub mod dicom;
mod embedded;
mod encoded;
pub mod error_policy;
pub mod exr;
pub mod farbfeld;
pub mod fits;
pub mod foreign;
pub mod format;
pub mod gif;
pub mod gpu;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod hdr;
pub mod headerless;
pub mod item;
pub mod jpeg;
#[cfg(feature = "jpeg2000")]
pub mod jpeg2000;
#[cfg(feature = "jpegxl")]
pub mod jpegxl;
pub mod library;
mod library_errors;
pub mod memory;
pub mod metadata;
pub mod metaimage;
pub(crate) mod mosaic;
pub mod nifti;
pub mod npy;
pub mod nrrd;
pub mod ordered;
pub mod packed;
pub mod pam;
pub mod pfm;
pub mod png;
pub mod pnm;
mod preview;
mod pyramid;
mod raster;
pub(crate) mod raw;
mod reader;
mod single;
pub mod tiff;
mod volume;
mod writer;
mod xmp;
pub mod zarr;

use crate::image::Image;
use crate::image::metadata::Metadata;
use crate::os::{Source, Target};
use anyhow::Result;
use std::borrow::Cow;

pub use bands::each_band;
pub use format::{Bands, BlockSink, Decoder, Encoder, Format, PageSurvey, SlicePosition};
pub use headerless::Headerless;
pub use preview::inverted;
pub use reader::{Pages, Places, Reader};
pub use writer::Writer;

/// The formats that are read and written, in the order in which help and messages list them.
pub static FORMATS: &[&Format] = &[
    &png::FORMAT,
    &tiff::FORMAT,
    &pnm::FORMAT,
    &pam::FORMAT,
    &npy::FORMAT,
    &pfm::FORMAT,
    &exr::FORMAT,
    &hdr::FORMAT,
    &fits::FORMAT,
    &dicom::FORMAT,
    &nrrd::FORMAT,
    &metaimage::FORMAT,
    &nifti::FORMAT,
    &zarr::FORMAT,
    #[cfg(feature = "hdf5")]
    &hdf5::FORMAT,
    &farbfeld::FORMAT,
    // Before JPEG, as which it begins.
    &jpeg::LS_FORMAT,
    &jpeg::FORMAT,
    #[cfg(feature = "jpeg2000")]
    &jpeg2000::FORMAT,
    #[cfg(feature = "jpegxl")]
    &jpegxl::FORMAT,
    &library::bmp::FORMAT,
    &library::webp::FORMAT,
    &gif::FORMAT,
    &library::qoi::FORMAT,
    // Last, since a TGA is only known by a header that makes sense.
    &library::tga::FORMAT,
];

/// Samples without a header. The format is none of the list, because nothing shows that a file is one.
pub static HEADERLESS: &Format = &headerless::FORMAT;

/// The compression of outputs, format by format.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
#[group(skip)]
pub struct Options {
    /// PNG compression
    #[arg(long, value_name = "MODE", default_value = "fast")]
    pub png: png::Mode,

    /// TIFF compression
    #[arg(long, value_name = "COMPRESSION", default_value = "none")]
    pub tiff: tiff::Compression,

    /// How the samples of a TIFF are arranged
    #[arg(long, value_name = "LAYOUT", default_value = "strips")]
    pub tiff_layout: tiff::Layout,

    /// How --format raw stores samples: the byte order, or packed as a camera does
    #[arg(long, value_name = "TYPE", default_value = "le")]
    pub raw_type: headerless::RawType,

    /// JPEG quality, from 1 to 100
    #[arg(long, value_name = "1-100", default_value_t, global = true)]
    pub quality: jpeg::Quality,

    /// How an OME-Zarr is written
    #[command(flatten)]
    pub zarr: zarr::Options,
}

/// Limits and choices for reading inputs.
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct Reading {
    /// Refuse images with more pixels than this before allocating memory
    #[arg(long, value_name = "N", default_value_t = 1 << 33, value_parser = whole_number)]
    pub max_pixels: u64,

    /// Read damaged files as far as possible and fill the rest with 0; the exit status is still 1
    #[arg(long)]
    pub keep_going: bool,

    /// Process only these pages of a stack, counted from 1: one page (3) or a range (2-9)
    #[arg(long, value_name = "A-B", visible_alias = "page")]
    pub pages: Option<Pages>,

    /// Process only these positions on the axes of a stack (ImageJ hyperstack, OME-TIFF or NIfTI), counted from 1, e.g. C=1,Z=3-9
    #[arg(long, value_name = "PLACES", conflicts_with = "pages")]
    pub axes: Option<Places>,

    /// Read this level of a pyramid (OME-Zarr): 0 is the full size, and each further level has about half the width and height
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = pyramid_level)]
    pub level: usize,

    /// Treat every input as headerless raw samples with this size, type (u8, i8, or u16, i16, u32, i32, f32 or f64 followed by le or be; or a camera's pixel format such as mono12p or bayerrg8), number of pages and number of bytes to skip
    #[arg(long, value_name = "WxH:TYPE[:PAGES][+SKIP]", global = true)]
    pub raw: Option<Headerless>,

    /// Whether the image is read for a preview: of a stack, only the middle page, unless pages are selected.
    #[arg(skip)]
    pub preview: bool,
}

/// Parses a number of things from 1 on.
fn whole_number(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "expected a positive whole number, e.g. 100000000".into())
}

/// The level of a pyramid as it is typed. Other programs have an option of this name for a range of values.
fn pyramid_level(text: &str) -> Result<usize, &'static str> {
    let level = text.parse();
    level.map_err(
        |_| "expected a level of a pyramid, from 0 on; for a range of values use --range MIN:MAX",
    )
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            max_pixels: 1 << 33,
            keep_going: false,
            pages: None,
            axes: None,
            level: 0,
            raw: None,
            preview: false,
        }
    }
}

/// The addresses of the images in a file, each of which is an input of its own, as `scan.h5:/entry/data`; `None` if files of
/// its format have no addresses, or if the source has an address itself.
///
/// # Errors
/// A file that cannot be read, is damaged, or is not supported.
pub fn addresses(source: &Source) -> Result<Option<Vec<String>>> {
    if source.address().is_some() || source.is_store() {
        return Ok(None);
    }
    let addresses = format::of_content(source)?.addresses;
    addresses.map(|addresses| addresses(source)).transpose()
}

/// Decodes the first page of an image file of any format.
///
/// # Errors
/// A file that cannot be read, is damaged, or is not supported.
pub fn decode(source: &Source) -> Result<Image> {
    Reader::open(source, &Reading::default())?.decode()
}

/// Writes an image to `target` and returns the file's length in bytes; the caller commits it.
///
/// # Errors
/// The file's, and an image that the format cannot hold.
pub fn encode(
    image: &Image,
    format: &'static Format,
    options: &Options,
    target: &Target,
) -> Result<u64> {
    let metadata = Metadata::default();
    format::check(format, &image.shape(), &metadata)?;
    let mut encoder = format.create_encoder(target, options, &[image.shape().into()])?;
    encoder.page(Cow::Borrowed(image), &metadata)?;
    Ok(encoder.length())
}
