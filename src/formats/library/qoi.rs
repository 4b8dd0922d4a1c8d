//! QOI, read by the `image` crate.

use super::{LibraryDecoder, Opened, Stream};
use crate::formats::format::{Capabilities, Decoder, Format};
use crate::image::Depth;
use crate::os::Source;
use ::image::ImageResult;
use anyhow::Result;

/// Quite OK Image format.
pub static FORMAT: Format = Format {
    name: "QOI",
    id: "qoi",
    title: "Quite OK Image format",
    extensions: &["qoi"],
    capabilities: Capabilities {
        channels: &[3, 4],
        depths: &[Depth::Eight],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"qoif"),
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, _damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    // A run has up to 62 pixels (QOI specification 1.0).
    let decoder = LibraryDecoder::open(source, open)?.at_most(62)?;
    Ok(Box::new(decoder))
}

fn open(stream: Stream) -> ImageResult<Opened> {
    let decoder = ::image::codecs::qoi::QoiDecoder::new(stream)?;
    Ok(Box::new(decoder))
}
