//! TGA, read by the `image` crate.

use super::{LibraryDecoder, Opened, Stream};
use crate::codec::format::{Capabilities, Decoder, Format};
use crate::files::Source;
use crate::image::Depth;
use crate::metadata::Alpha;
use ::image::ImageResult;
use anyhow::Result;

/// Truevision TGA.
#[derive(Debug)]
pub struct Tga;

impl Format for Tga {
    fn name(&self) -> &'static str {
        "TGA"
    }

    fn id(&self) -> &'static str {
        "tga"
    }

    fn title(&self) -> &'static str {
        "Truevision TGA"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["tga"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        is_tga(head)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            written: false,
            lossless: true,
            pages: false,
            channels: &[1, 2, 3, 4],
            depths: &[Depth::Eight],
            signed: false,
            white_is_zero: false,
            alpha: &[Alpha::Independent],
            fields: &[],
        }
    }

    fn decoder<'a>(&self, source: &'a Source, _damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        // A run has up to 128 pixels.
        let decoder = LibraryDecoder::open(source, open)?.at_most(128)?;
        Ok(Box::new(decoder.without_alpha(!has_alpha(source)?)))
    }
}

fn open(stream: Stream) -> ImageResult<Opened> {
    let decoder = ::image::codecs::tga::TgaDecoder::new(stream)?;
    Ok(Box::new(decoder))
}

/// Whether the descriptor counts bits of alpha in a pixel: otherwise the fourth byte of 32 bits is nothing, and
/// mostly 0, which would be transparent (field 5.6 of the specification).
fn has_alpha(source: &Source) -> Result<bool> {
    let mut head = [0; 18];
    source.read_up_to(&mut head, 0)?;
    Ok(head[17] & 15 > 0)
}

/// Whether a header of 18 bytes is that of a TGA, which has no magic number: every field has to be
/// one that images have (Truevision TGA file format specification 2.0, fields 2 to 5).
fn is_tga(head: &[u8]) -> bool {
    let Some(
        &[
            _,
            map,
            kind,
            m0,
            m1,
            l0,
            l1,
            entry,
            _,
            _,
            _,
            _,
            w0,
            w1,
            h0,
            h1,
            bits,
            about,
        ],
    ) = head.first_chunk::<18>()
    else {
        return false;
    };
    let mapped = match (map, kind) {
        // Without a colour map its three fields are 0.
        (0, 2 | 10) => [m0, m1, l0, l1, entry] == [0; 5] && matches!(bits, 15 | 16 | 24 | 32),
        (0, 3 | 11) => [m0, m1, l0, l1, entry] == [0; 5] && matches!(bits, 8 | 16),
        (1, 1 | 9) => {
            let colours = u16::from_le_bytes([l0, l1]);
            (1..=4096).contains(&colours)
                && matches!(entry, 15 | 16 | 24 | 32)
                && matches!(bits, 8 | 16)
        }
        _ => false,
    };
    // The two highest bits of the descriptor are unused; up to 8 bits are alpha.
    mapped && [w0, w1] != [0; 2] && [h0, h1] != [0; 2] && about & 0xC0 == 0 && about & 15 <= 8
}
