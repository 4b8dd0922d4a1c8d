//! Chunks that are compressed as images: JPEG (TIFF Technical Note 2), decoded by `zune-jpeg`, and the
//! bitmaps of fax machines (TIFF 6.0, section 11).

use super::fax;
use super::ifd::{Ifd, tag};
use super::old_jpeg::OldJpeg;
use super::page::Grid;
use super::shape::Form;
use super::unpack::Method;
use super::ycbcr::Ycbcr;
use crate::formats::jpeg::baseline::{Baseline, Expected};
use crate::formats::jpeg::{colours, scans};
use crate::formats::library_errors;
use anyhow::{Context, Result, anyhow, bail, ensure};

/// The most bytes of JPEG tables, which are far shorter.
const MOST_TABLES: u64 = 64 << 10;

/// What unpacks chunks that are images.
pub enum Coded {
    /// JPEG images.
    Jpeg {
        /// The tables that they share, without the marker of the end.
        tables: Vec<u8>,
        image: JpegImage,
    },
    /// JPEG images without their head.
    OldJpeg(OldJpeg),
    /// Luma and chroma, which are compressed as other samples are.
    Ycbcr(Ycbcr),
    /// Rows of runs of bits.
    Fax {
        /// Pixels of a row.
        width: u32,
        coding: fax::Coding,
    },
}

impl Coded {
    /// Reads the tables and options of a page.
    ///
    /// # Errors
    /// What is not supported.
    pub fn read(ifd: &Ifd, method: Method, form: &Form, grid: &Grid) -> Result<Option<Coded>> {
        Ok(match method {
            Method::Jpeg => {
                let tables = ifd.bytes_of(tag::JPEG_TABLES, MOST_TABLES)?;
                let mut tables = tables.unwrap_or(vec![0xFF, 0xD8]);
                if tables.ends_with(&[0xFF, 0xD9]) {
                    tables.truncate(tables.len() - 2);
                }
                Some(Coded::Jpeg {
                    tables,
                    image: JpegImage {
                        ycbcr: ifd.value(tag::PHOTOMETRIC)? == Some(6),
                        width: grid.width,
                        height: grid.height,
                        channels: form.channels(),
                    },
                })
            }
            Method::Huffman | Method::Fax3 | Method::Fax4 => {
                ensure!(
                    form.bits == 1 && form.stored == 1,
                    "CCITT fax compression of {} samples of {} bits per pixel is not supported",
                    form.stored,
                    form.bits
                );
                ensure!(
                    grid.width <= usize::from(u16::MAX),
                    "CCITT fax compression of rows of {} pixels is not supported (65535 are)",
                    grid.width
                );
                let options = ifd.value(tag::T4_OPTIONS)?.unwrap_or(0);
                ensure!(
                    method != Method::Fax3 || options & 0b10 == 0,
                    "CCITT Group 3 compression with uncompressed rows is not supported"
                );
                let coding = match method {
                    Method::Huffman => fax::Coding::Huffman,
                    Method::Fax4 => fax::Coding::Group4,
                    _ if options & 0b01 == 0 => fax::Coding::Group3,
                    _ => fax::Coding::Group3ByTwo,
                };
                let width = grid.width as u32;
                Some(Coded::Fax { width, coding })
            }
            _ if ifd.value(tag::PHOTOMETRIC)? == Some(6) && !form.planar => {
                Some(Coded::Ycbcr(Ycbcr::read(ifd, grid.width)?))
            }
            _ => None,
        })
    }

    /// How its luma and chroma become RGB, unless a JPEG's decoder does that.
    pub fn ycbcr(&self) -> Option<&Ycbcr> {
        match self {
            Coded::Ycbcr(ycbcr) => Some(ycbcr),
            _ => None,
        }
    }

    /// Fills the rows of `out`, of `row` bytes each, from the bytes of a chunk.
    ///
    /// # Errors
    /// Damaged data.
    pub fn unpack(&self, packed: &[u8], out: &mut [u8], row: usize) -> Result<()> {
        match self {
            Coded::Jpeg { tables, image } => image.unpack(tables, packed, out),
            Coded::OldJpeg(old) => old.unpack(packed, out),
            Coded::Ycbcr(_) => bail!("it is unpacked as samples"),
            Coded::Fax { width, coding } => fax::unpack(packed, *width, *coding, out, row),
        }
    }
}

/// The JPEG image of a whole chunk.
#[derive(Clone, Copy)]
pub struct JpegImage {
    /// Whether three components are luma and chroma, to be converted to RGB.
    pub ycbcr: bool,
    pub width: usize,
    pub height: usize,
    /// Samples of a pixel.
    pub channels: usize,
}

impl JpegImage {
    /// Fills `out` with the pixels of an image; `tables` are the segments that it lacks, after the marker of its beginning.
    ///
    /// # Errors
    /// A damaged image, and one of another size.
    pub fn unpack(&self, tables: &[u8], packed: &[u8], out: &mut [u8]) -> Result<()> {
        let JpegImage {
            ycbcr,
            width,
            height,
            channels,
        } = *self;
        let image = packed.strip_prefix(b"\xFF\xD8");
        let image = image.context("it is not a JPEG image")?;
        let file = [tables, image].concat();
        let check_size = |across: usize, down: usize, components: usize| {
            ensure!(
                across == width && across * down * channels >= out.len() && components == channels,
                "it is a JPEG image of {across}×{down} pixels of {components} samples where {width}×{} of {channels} are wanted",
                out.len() / (width * channels)
            );
            Ok(())
        };
        // Some writers pad the last strip to whole blocks.
        let tallest = height.next_multiple_of(16);
        // All others are grey, RGB or CMYK, as the directory states.
        let is_converted = channels == 3 && ycbcr;
        let pixels = if scans::are_separate(&file) {
            let pixels = scans::decode(&file, is_converted, width * tallest)?;
            check_size(pixels.width, pixels.height, pixels.channels)?;
            pixels.samples
        } else {
            let expected = Expected {
                width,
                height: tallest,
                channels,
                are_ycbcr: is_converted,
                strict: true,
            };
            let file = colours::without_odd_adobe(&file);
            let cause = |error| {
                anyhow!(
                    "its JPEG image: {}",
                    library_errors::translate(error, file.len() as u64)
                )
            };
            let mut image = Baseline::open(&file, expected).map_err(cause)?;
            let info = image.decoder.info().context("its size is unknown")?;
            let components = match image.output.num_components() {
                count if count == channels => usize::from(info.components),
                count => count,
            };
            check_size(info.width.into(), info.height.into(), components)?;
            image.decode().map_err(cause)?
        };
        let pixels = pixels.get(..out.len());
        out.copy_from_slice(pixels.context("it has too few pixels")?);
        Ok(())
    }
}
