//! Chunks that are compressed as images: JPEG (TIFF Technical Note 2), decoded by `zune-jpeg`, and the
//! bitmaps of fax machines (TIFF 6.0, section 11).

use super::fax;
use super::ifd::{Ifd, tag};
use super::old_jpeg::OldJpeg;
use super::page::Grid;
use super::shape::Form;
use super::unpack::Method;
use super::ycbcr::Ycbcr;
use crate::formats::jpeg::{colours, scans};
use crate::formats::said;
use anyhow::{Context, Result, anyhow, bail, ensure};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;

/// The most bytes of JPEG tables, which are far shorter.
const MOST_TABLES: u64 = 64 << 10;

/// What unpacks chunks that are images.
pub enum Coded {
    /// JPEG images.
    Jpeg {
        /// The tables that they share, without the marker of the end.
        tables: Vec<u8>,
        /// Whether three components are to be made RGB.
        ycbcr: bool,
        /// Pixels of a row and rows, of a whole chunk.
        size: (usize, usize),
        /// Samples a pixel.
        channels: usize,
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
                    ycbcr: ifd.value(tag::PHOTOMETRIC)? == Some(6),
                    size: (grid.width, grid.height),
                    channels: form.channels(),
                })
            }
            Method::Huffman | Method::Fax3 | Method::Fax4 => {
                ensure!(
                    form.bits == 1 && form.stored == 1,
                    "CCITT fax compression of {} samples of {} bits a pixel is not supported",
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
            Coded::Jpeg {
                tables,
                ycbcr,
                size,
                channels,
            } => jpeg((tables, packed), *ycbcr, *size, *channels, out),
            Coded::OldJpeg(old) => old.unpack(packed, out),
            Coded::Ycbcr(_) => bail!("it is unpacked as samples"),
            Coded::Fax { width, coding } => fax::unpack(packed, *width, *coding, out, row),
        }
    }
}

/// Fills `out` with the pixels of a JPEG image, of which the tables may lie elsewhere.
pub fn jpeg(
    (tables, packed): (&[u8], &[u8]),
    ycbcr: bool,
    (width, height): (usize, usize),
    channels: usize,
    out: &mut [u8],
) -> Result<()> {
    let image = packed.strip_prefix(b"\xFF\xD8");
    let image = image.context("it is no JPEG image")?;
    let file = [tables, image].concat();
    let as_wanted = |across: usize, down: usize, found: usize| {
        ensure!(
            across == width && across * down * channels >= out.len() && found == channels,
            "it is a JPEG image of {across}×{down} pixels of {found} samples where {width}×{} of {channels} are wanted",
            out.len() / (width * channels)
        );
        Ok(())
    };
    // Some writers pad the last strip to whole blocks.
    let tallest = height.next_multiple_of(16);
    // Otherwise as they are: the directory says that they are grey, RGB or CMYK.
    let is_converted = channels == 3 && ycbcr;
    let pixels = if scans::are_separate(&file) {
        let pixels = scans::decode(&file, is_converted, width * tallest)?;
        as_wanted(pixels.width, pixels.height, pixels.channels)?;
        pixels.samples
    } else {
        let options = DecoderOptions::default()
            .set_strict_mode(true)
            .set_max_width(width)
            .set_max_height(tallest);
        let file = colours::without_odd_adobe(&file);
        let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(&*file), options);
        let length = file.len() as u64;
        let said = |error| anyhow!("its JPEG image: {}", said::cause(error, length));
        decoder.decode_headers().map_err(said)?;
        let stored = decoder
            .input_colorspace()
            .context("its colours are unknown")?;
        let (wanted, then_rgb) = match channels {
            1 => (ColorSpace::Luma, false),
            3 => colours::output(stored, is_converted),
            _ => (stored, false),
        };
        decoder.set_options(options.jpeg_set_out_colorspace(wanted));
        let found = decoder.info().context("its size is unknown")?;
        let components = if wanted.num_components() == channels {
            usize::from(found.components)
        } else {
            wanted.num_components()
        };
        as_wanted(found.width.into(), found.height.into(), components)?;
        let mut pixels = decoder.decode().map_err(said)?;
        if then_rgb {
            colours::make_rgb(&mut pixels);
        }
        pixels
    };
    let pixels = pixels.get(..out.len());
    out.copy_from_slice(pixels.context("it has too few pixels")?);
    Ok(())
}
