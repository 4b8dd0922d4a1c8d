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

pub use encode::{Writer, encode};
pub(super) use fields::{ASCII, RATIONAL, UNDEFINED};
pub use pack::Compression;

use super::raw;
use super::salvage::Salvage;
use crate::files::Source;
use crate::image::{Image, Shape};
use crate::metadata::{Metadata, Remarks};
use anyhow::{Result, ensure};
use ifd::{Chain, Ifd, tag};
use page::Page;

/// A TIFF file, open at one of its pages: compression none, LZW, deflate, zstd or PackBits, with or
/// without horizontal differencing, in either byte order, interleaved or in planes; 1, 2, 4, 8, 10,
/// 12, 14 or 16 bits.
///
/// An error names what is not supported (floating point and other depths, colour spaces and
/// compressions), or where the file is damaged.
pub struct Reader<'a> {
    source: &'a Source,
    chain: Chain,
    /// Images that lie one behind the other although the directory tells of the first alone
    /// (ImageJ); 1 elsewhere.
    frames: usize,
    index: usize,
    page: Page,
    damaged: bool,
}

/// What is known of a page before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// What decoding gives.
    pub shape: Shape,
    /// Whether samples are signed.
    pub signed: bool,
    /// Bytes of its directory and of all values in it.
    pub metadata: u64,
    /// Whether it is a smaller copy of another page, or a mask.
    pub is_aside: bool,
}

impl<'a> Reader<'a> {
    /// Reads and checks the directory of the first page, and follows the list of pages. `damaged`
    /// files are welcome, or an error.
    pub fn open(source: &'a Source, damaged: bool) -> Result<Reader<'a>> {
        let mut chain = Chain::read(source)?;
        if let Some(error) = chain.broken.take_if(|_| !damaged) {
            return Err(error);
        }
        let first = chain.page(source, 0)?;
        let page = Page::read(&first, source.len(), damaged)?;
        let told = first.text(tag::IMAGE_DESCRIPTION);
        let mut reader = Reader {
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

    /// How many pages there are.
    pub fn pages(&self) -> usize {
        self.chain.offsets.len().max(self.frames)
    }

    /// Reads and checks the directory of another page, counted from 0.
    pub fn turn_to(&mut self, index: usize) -> Result<()> {
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

    fn directory(&self, index: usize) -> Result<Ifd<'a>> {
        self.chain
            .page(self.source, if self.frames > 1 { 0 } else { index })
    }

    /// What a page is, without turning to it.
    pub fn survey(&self, index: usize) -> Result<Survey> {
        let ifd = self.directory(index)?;
        let form = shape::form(&ifd)?;
        Ok(Survey {
            shape: form.shape,
            signed: form.signed,
            metadata: ifd.weight(),
            // Bit 0: a smaller copy; bit 2: a transparency mask.
            is_aside: ifd.value(tag::NEW_SUBFILE_TYPE)?.unwrap_or(0) & 0b101 != 0,
        })
    }

    /// What decoding this page gives.
    pub fn shape(&self) -> Shape {
        self.page.form.shape
    }

    /// What this page says of itself beside its samples.
    pub fn metadata(&self, remarks: &mut Remarks) -> Result<Metadata> {
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

    /// Decodes this page.
    pub fn decode(&self, salvage: &Salvage) -> Result<Image> {
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
    let reader = Reader::open(source, false)?;
    ensure!(reader.pages() == 1, "it has several pages");
    reader.decode(&Salvage::default())
}
