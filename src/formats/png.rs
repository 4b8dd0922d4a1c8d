//! PNG (W3C Portable Network Graphics specification, third edition). The decoder and the encoder
//! are our own, since they decide the program's speed; the `png` crate reads the rare kinds.

mod decode;
mod deflated;
mod encode;
mod metadata;
mod neutral;
#[cfg(test)]
mod tests;

pub use decode::{PngDecoder, decode};
pub use encode::{Mode, encode};

use super::format::{Capabilities, Decoder, Encoder, Field, Format};
use super::item::Item;
use super::{Options, metadata as conversion};
use crate::image::metadata::{Alpha, Diagnostics, Metadata, Own, Transform};
use crate::image::{Depth, Shape};
use crate::os::{Source, Target};
use anyhow::Result;

/// Portable Network Graphics.
#[derive(Debug)]
pub struct Png;

impl Format for Png {
    fn name(&self) -> &'static str {
        "PNG"
    }

    fn id(&self) -> &'static str {
        "png"
    }

    fn title(&self) -> &'static str {
        "Portable Network Graphics"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["png"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        head.starts_with(&SIGNATURE[..4])
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            written: true,
            lossless: true,
            pages: false,
            channels: &[1, 2, 3, 4],
            depths: &[Depth::Eight, Depth::Sixteen],
            signed: false,
            white_is_zero: false,
            alpha: &[Alpha::Independent],
            fields: &[
                Field::Significant,
                Field::Orientation,
                Field::Resolution,
                Field::Texts,
                Field::Exif,
                Field::Profile,
                Field::Xmp,
                Field::Stretch,
            ],
        }
    }

    fn decoder<'a>(&self, source: &'a Source, damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        Ok(Box::new(decode::PngDecoder::open(source, damaged)?))
    }

    fn encoder<'a>(
        &self,
        target: &'a Target,
        options: &Options,
        _pages: &[(Shape, u64)],
    ) -> Result<Box<dyn Encoder + 'a>> {
        Ok(Box::new(encode::PngEncoder::new(target, options.png)))
    }

    fn follow(
        &self,
        metadata: &mut Metadata,
        transform: &Transform,
        diagnostics: &mut Diagnostics,
    ) {
        if let Own::Png(chunks) = &mut metadata.own {
            metadata::update(chunks, metadata.orientation, transform, diagnostics);
        }
    }

    fn items(&self, own: &Own) -> Vec<Item> {
        match own {
            Own::Png(chunks) => neutral::items(chunks),
            _ => Vec::new(),
        }
    }

    fn take_stretch(&self, own: &mut Own) -> Option<Vec<u8>> {
        match own {
            Own::Png(chunks) => neutral::remove_rescaling(chunks),
            _ => None,
        }
    }

    fn add_stretch(&self, own: &mut Own, text: &str) -> bool {
        let chunk = neutral::rescaling(text);
        match own {
            Own::Png(chunks) => chunks.push(chunk),
            own => *own = Own::Png(vec![chunk]),
        }
        true
    }

    fn adopt(&self, metadata: &Metadata, own: Own, leave: &mut dyn FnMut(String)) -> Own {
        let mut own = match own {
            Own::Png(_) => own,
            other => neutral::own(conversion::items(&other), metadata.orientation, leave),
        };
        if let (Own::Png(chunks), Some(orientation)) = (&mut own, metadata.orientation) {
            metadata::set_orientation(chunks, orientation);
        }
        own
    }
}

/// The first bytes of every PNG (PNG specification, section 5.2).
const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// The private chunk that lets a reader inflate the segments on many threads. Ancillary, private,
/// and not safe to copy: a program that changes IDAT must remove it. Its data, all big-endian: the
/// version 1 (u8), rows of a segment (u32), and for each segment the length of its deflate data in
/// bytes (u32; without zlib's header and Adler-32).
const INDEX: [u8; 4] = *b"gpIS";
