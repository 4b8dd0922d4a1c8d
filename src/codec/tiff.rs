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
use crate::image::{Image, Samples};

/// Reads a TIFF file: compression none, LZW, deflate, zstd or PackBits, with or without horizontal
/// differencing, in either byte order.
///
/// Alpha is kept as it is, whether the file says that colours are multiplied by it or not. An error
/// names what is not supported (several pages; signed, floating-point or other depths; other
/// colour spaces and compressions; separate planes; an orientation), or where the file is damaged.
pub fn decode(source: &Source) -> anyhow::Result<Image> {
    let page = page::Page::read(source)?;
    let mut samples = Samples::zeroed(&page.shape)?;
    decode::fill(source, &page, samples.as_bytes_mut())?;
    Ok(Image::new(page.shape, samples))
}
