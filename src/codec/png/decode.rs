//! PNG file to image.

use super::chunks::Prelude;
use super::library;
use crate::files::Source;
use crate::image::Image;
use anyhow::Result;

/// Decodes a PNG of any kind into 1–4 channels: 16 bits stay 16, fewer than 8 are scaled to 8
/// (value·255/(2ⁿ−1)), palettes become RGB, and tRNS becomes an alpha channel.
///
/// Every CRC, the Adler-32 and the end of the file are checked: an image is whole or an error.
/// A header that promises more than the file can hold is refused before memory is asked for.
pub fn decode(source: &Source) -> Result<Image> {
    let (prelude, data) = Prelude::read(source)?;
    let shape = prelude.shape()?;
    library::decode(source, shape, data)
}
