//! BMP, read and written by the `image` crate. Grey is written with a palette of greys, and a file
//! with such a palette is read as grey.

mod runs;

use super::{LibraryDecoder, Opened, Stream};
use crate::codec::Options;
use crate::codec::encoded::Encoded;
use crate::codec::format::{Capabilities, Decoder, Encoder, Format};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape};
use crate::metadata::Alpha;
use ::image::codecs::bmp::{BmpDecoder, BmpEncoder};
use ::image::{ExtendedColorType, ImageResult};
use anyhow::{Context, Result, ensure};

/// Windows bitmap.
#[derive(Debug)]
pub struct Bmp;

impl Format for Bmp {
    fn name(&self) -> &'static str {
        "BMP"
    }

    fn id(&self) -> &'static str {
        "bmp"
    }

    fn title(&self) -> &'static str {
        "Windows bitmap"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["bmp", "dib"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        head.starts_with(b"BM")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            written: true,
            lossless: true,
            pages: false,
            channels: &[1, 3, 4],
            depths: &[Depth::Eight],
            signed: false,
            white_is_zero: false,
            alpha: &[Alpha::Independent],
            fields: &[],
        }
    }

    fn decoder<'a>(&self, source: &'a Source, _damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        let has_greys = has_greys(source)?;
        let decoder = LibraryDecoder::open(source, open)?;
        let decoder = decoder.with_fill(runs::fill_of(source)?);
        Ok(Box::new(decoder.with_grey(has_greys)))
    }

    fn encoder<'a>(
        &self,
        target: &'a Target,
        _options: &Options,
        _pages: &[(Shape, u64)],
    ) -> Result<Box<dyn Encoder + 'a>> {
        Ok(Box::new(Encoded::new(target, |image, _| encode(image))))
    }
}

fn open(stream: Stream) -> ImageResult<Opened> {
    Ok(Box::new(BmpDecoder::new(stream)?))
}

fn encode(image: &Image) -> Result<Vec<u8>> {
    let shape = image.shape();
    let colours = match shape.channels {
        1 => ExtendedColorType::L8,
        3 => ExtendedColorType::Rgb8,
        _ => ExtendedColorType::Rgba8,
    };
    // The most that the decoder reads.
    let side = |side: usize| u16::try_from(side).ok().map(u32::from);
    let (width, height) = side(shape.width).zip(side(shape.height)).with_context(|| {
        format!(
            "{shape} is more than is read from a BMP, 65535 pixels a side (PNG and TIFF hold more)"
        )
    })?;
    let mut file = Vec::new();
    let mut encoder = BmpEncoder::new(&mut file);
    let written = encoder.encode(image.samples().as_bytes(), width, height, colours);
    written.with_context(|| format!("{shape} is more than BMP holds"))?;
    Ok(file)
}

/// Whether a file has a palette and all of its colours are grey (BITMAPINFOHEADER and later).
///
/// # Errors
/// The pixels begin inside the palette: colours would be taken for pixels.
fn has_greys(source: &Source) -> Result<bool> {
    let mut head = [0; 54];
    if source.read_up_to(&mut head, 0)? < head.len() {
        return Ok(false);
    }
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (pixels, size, bits, stated) = (number(10), number(14), head[28], number(46));
    if size < 40 || !matches!(bits, 1 | 4 | 8) || stated > 256 {
        return Ok(false);
    }
    let start = 14 + u64::from(size);
    let end = start + 4 * u64::from(stated);
    ensure!(
        u64::from(pixels) >= end,
        "its pixels begin at byte {pixels}, and its palette ends at byte {end}"
    );
    let colours = if stated == 0 { 1 << bits } else { stated };
    let mut palette = vec![0; 4 * colours as usize];
    let read = source.read_up_to(&mut palette, start)?;
    let mut colours = palette.as_chunks::<4>().0.iter();
    let greys = colours.all(|[b, g, r, _]| b == g && g == r);
    Ok(read == palette.len() && greys)
}
