//! Chunks that are compressed as images: JPEG (TIFF Technical Note 2), and the bitmaps of fax machines (TIFF 6.0, section 11).

use super::fax;
use super::grid::Grid;
use super::ifd::{Ifd, tag};
use super::jpeg_image::JpegImage;
use super::old_jpeg::OldJpeg;
use super::shape::Form;
use super::unpack::Method;
use super::ycbcr::Ycbcr;
use anyhow::{Result, bail, ensure};

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
    /// Old-style JPEG.
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
