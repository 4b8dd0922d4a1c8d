//! TIFF and BigTIFF (TIFF 6.0; Adobe's TIFF Technical Notes; the BigTIFF design): 8- and 16-bit
//! unsigned grey and RGB, with or without alpha, in strips or tiles, one page a file.
//!
//! The directory is read here and not by the `tiff` crate: what decides speed is that strips and
//! tiles are unpacked in parallel, straight into the image, and uncompressed ones not copied at
//! all; what decides safety is that nothing is allocated that the file cannot fill. Both need the
//! strip table and nothing else of that crate. It stays in the tests, as a second opinion.

mod decode;
mod encode;
mod ifd;
mod lzw;
mod pack;
mod page;
mod predictor;
mod shape;
mod unpack;

pub use encode::encode;
pub use pack::Compression;

use crate::files::Source;
use crate::image::{Image, Samples, Shape};
use anyhow::Result;
use page::Page;

/// A TIFF file: compression none, LZW, deflate, zstd or PackBits, with or without horizontal
/// differencing, in either byte order.
///
/// Alpha is kept as it is, whether the file says that colours are multiplied by it or not. An error
/// names what is not supported (several pages; signed, floating-point or other depths; other
/// colour spaces and compressions; separate planes; an orientation), or where the file is damaged.
pub struct Reader<'a> {
    source: &'a Source,
    page: Page,
}

impl<'a> Reader<'a> {
    /// Reads and checks the directory.
    pub fn open(source: &'a Source) -> Result<Reader<'a>> {
        let page = Page::read(source)?;
        Ok(Reader { source, page })
    }

    /// What decoding gives.
    pub fn shape(&self) -> Shape {
        self.page.shape
    }

    /// Decodes the image.
    pub fn decode(self) -> Result<Image> {
        let Reader { source, page } = self;
        let mut samples = Samples::any(&page.shape)?;
        decode::fill(source, &page, samples.as_bytes_mut())?;
        Ok(Image::new(page.shape, samples))
    }
}

/// Reads the image of a file.
pub fn decode(source: &Source) -> Result<Image> {
    Reader::open(source)?.decode()
}
