//! TIFF and BigTIFF (TIFF 6.0; Adobe's TIFF Technical Notes; the BigTIFF design): grey and RGB,
//! with or without alpha, 8 and 16 bits, signed or not, in strips or tiles, any number of pages.
//!
//! The directory is read here and not by the `tiff` crate: what decides speed is that strips and
//! tiles are unpacked in parallel, straight into the image, and uncompressed ones not copied at
//! all; what decides safety is that nothing is allocated that the file cannot fill. Both need the
//! strip table and nothing else of that crate. It stays in the tests, as a second opinion.

mod decode;
mod description;
mod encode;
pub(super) mod exif;
mod fields;
mod ifd;
mod imagej;
mod lzw;
pub(super) mod metadata;
mod pack;
mod packed;
mod page;
mod predictor;
mod shape;
mod unpack;

pub use encode::{TiffEncoder, encode};
pub(super) use fields::{ASCII, RATIONAL, UNDEFINED};
pub use pack::Compression;

use super::format::{Capabilities, Decoder, Encoder, Field, Format};
use super::salvage::Salvage;
use super::{Options, metadata as conversion, raw};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape};
use crate::metadata::{Alpha, Metadata, Own, Remarks};
use anyhow::{Result, ensure};
use ifd::{Chain, Ifd, tag};
use page::Page;

/// Tagged Image File Format.
#[derive(Debug)]
pub struct Tiff;

impl Format for Tiff {
    fn name(&self) -> &'static str {
        "TIFF"
    }

    fn id(&self) -> &'static str {
        "tiff"
    }

    fn title(&self) -> &'static str {
        "Tagged Image File Format"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["tif", "tiff"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        // 42: classic TIFF; 43: BigTIFF.
        matches!(
            head,
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..]
        )
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pages: true,
            depths: &[Depth::Eight, Depth::Sixteen],
            signed: true,
            white_is_zero: true,
            alpha: &[Alpha::Independent, Alpha::Associated, Alpha::Unspecified],
            fields: &[Field::Maxval, Field::Orientation, Field::Resolution],
        }
    }

    fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        Ok(Box::new(TiffDecoder::open(source, damaged)?))
    }

    fn encoder<'a>(
        &self,
        target: &'a Target,
        options: &Options,
        pages: &[(Shape, u64)],
    ) -> Result<Box<dyn Encoder + 'a>> {
        let pages = pages.iter().copied();
        let encoder = encode::TiffEncoder::new(target, options.tiff, pages);
        Ok(Box::new(encoder))
    }

    fn adopt(&self, _: &Metadata, own: Own, leave: &mut dyn FnMut(String)) -> Own {
        conversion::to_tiff(own, leave)
    }
}

/// A TIFF file, open at one of its pages: compression none, LZW, deflate, zstd or PackBits, with or
/// without horizontal differencing, in either byte order, interleaved or in planes; 1, 2, 4, 8, 10,
/// 12, 14 or 16 bits.
///
/// An error names what is not supported (floating point and other depths, colour spaces and
/// compressions), or where the file is damaged.
struct TiffDecoder<'a> {
    source: &'a Source,
    chain: Chain,
    /// Images that lie one behind the other although the directory tells of the first alone
    /// (ImageJ); 1 elsewhere.
    frames: usize,
    index: usize,
    page: Page,
    damaged: bool,
}

impl<'a> TiffDecoder<'a> {
    /// Reads and checks the directory of the first page, and follows the list of pages. `damaged`
    /// files are welcome, or an error.
    fn open(source: &'a Source, damaged: bool) -> Result<TiffDecoder<'a>> {
        let mut chain = Chain::read(source)?;
        if let Some(error) = chain.broken.take_if(|_| !damaged) {
            return Err(error);
        }
        let first = chain.page(source, 0)?;
        let page = Page::read(&first, source.len(), damaged)?;
        let told = first.text(tag::IMAGE_DESCRIPTION);
        let mut reader = TiffDecoder {
            frames: 1,
            source,
            chain,
            index: 0,
            page,
            damaged,
        };
        if let Some(frames) = told.as_deref().and_then(description::images)
            && reader.chain.offsets.len() == 1
            && frames > 1
            && reader.page.is_contiguous()
        {
            let end =
                reader.page.spans[0].offset as u128 + frames as u128 * reader.page.bytes() as u128;
            ensure!(
                damaged || end <= u128::from(source.len()),
                "truncated at byte {} of {end} (image {frames} of an ImageJ stack)",
                source.len()
            );
            reader.frames = frames;
        }
        Ok(reader)
    }

    fn directory(&self, index: usize) -> Result<Ifd<'a>> {
        self.chain
            .page(self.source, if self.frames > 1 { 0 } else { index })
    }
}

impl Decoder for TiffDecoder<'_> {
    fn pages(&self) -> usize {
        self.chain.offsets.len().max(self.frames)
    }

    fn turn_to(&mut self, index: usize) -> Result<()> {
        if self.frames > 1 {
            let (from, to, bytes) = (self.index as u64, index as u64, self.page.bytes());
            for span in &mut self.page.spans {
                span.offset = span.offset - from * bytes + to * bytes;
            }
        } else if index != self.index {
            let ifd = self.directory(index)?;
            self.page = Page::read(&ifd, self.source.len(), self.damaged)?;
        }
        self.index = index;
        Ok(())
    }

    /// The metadata are the page's directory and all values in it.
    fn survey(&self, index: usize) -> Result<(Shape, u64)> {
        let ifd = self.directory(index)?;
        Ok((shape::form(&ifd)?.shape, ifd.weight()))
    }

    fn is_reduced(&self, index: usize) -> Result<bool> {
        let kind = self.directory(index)?.value(tag::NEW_SUBFILE_TYPE)?;
        // Bit 0: a smaller copy; bit 2: a transparency mask.
        Ok(kind.unwrap_or(0) & 0b101 != 0)
    }

    fn shape(&self) -> Shape {
        self.page.form.shape
    }

    fn metadata(&self, remarks: &mut Remarks) -> Result<Metadata> {
        // The directory of an ImageJ stack speaks for its first image.
        if self.frames > 1 && self.index > 0 {
            return Ok(fields::meaning(&self.page.form));
        }
        Ok(fields::read(
            &self.directory(self.index)?,
            &self.page.form,
            remarks,
        ))
    }

    fn decode(&mut self, salvage: &Salvage) -> Result<Image> {
        let form = &self.page.form;
        let mut samples = salvage.samples(&form.shape)?;
        decode::fill(self.source, &self.page, samples.as_bytes_mut(), salvage)?;
        if form.signed {
            raw::toggle_signs(&mut samples);
        }
        Ok(Image::new(form.shape, samples))
    }
}

/// Reads the image of a file of one page.
pub fn decode(source: &Source) -> Result<Image> {
    let mut reader = TiffDecoder::open(source, false)?;
    ensure!(reader.pages() == 1, "it has several pages");
    reader.decode(&Salvage::default())
}
