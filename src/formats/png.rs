//! PNG (W3C Portable Network Graphics specification, third edition). The decoder and the encoder are
//! own code, because the speed of the program depends on them. The `png` crate decodes rare kinds of PNG.

pub(super) mod common_items;
mod decode;
mod deflated;
mod encode;
pub(super) mod metadata;
#[cfg(test)]
mod tests;

pub use decode::{PngDecoder, decode};
pub use encode::{Mode, encode};

use super::format::{Capabilities, Field, Format};
use super::metadata as conversion;
use crate::image::metadata::{Metadata, Own};

/// Portable Network Graphics.
pub static FORMAT: Format = Format {
    name: "PNG",
    id: "png",
    title: "Portable Network Graphics",
    extensions: &["png"],
    capabilities: Capabilities {
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
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"\x89PNG"),
    decoder: |source, damaged| Ok(Box::new(decode::PngDecoder::open(source, damaged)?)),
    encoder: Some(|target, options, _| Ok(Box::new(encode::PngEncoder::new(target, options.png)))),
    convert_metadata,
    add_stretch,
    ..Format::DEFAULTS
};

fn convert_metadata(metadata: &Metadata, own: Own, leave: &mut dyn FnMut(String)) -> Own {
    let mut own = match own {
        Own::Png(_) => own,
        other => common_items::own(conversion::items(&other), metadata.orientation, leave),
    };
    if let (Own::Png(chunks), Some(orientation)) = (&mut own, metadata.orientation) {
        metadata::set_orientation(chunks, orientation);
    }
    own
}

fn add_stretch(own: &mut Own, text: &str) -> bool {
    let chunk = common_items::rescaling(text);
    match own {
        Own::Png(chunks) => chunks.push(chunk),
        own => *own = Own::Png(vec![chunk]),
    }
    true
}

/// The first bytes of every PNG (PNG specification, section 5.2).
const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// The private chunk that lets a reader inflate the segments on many threads. It is ancillary, private
/// and not safe to copy: a program that changes IDAT must remove it. Its data, all big-endian, are the
/// version 1 (u8), the rows of a segment (u32), and for each segment the length of its deflate data in
/// bytes (u32; without zlib's header and Adler-32).
const INDEX: [u8; 4] = *b"gpIS";
