//! QOI, read by the `image` crate.

use super::{LibraryDecoder, Opened, Stream};
use crate::formats::format::{Capabilities, Decoder, Format};
use crate::image::Depth;
use crate::image::metadata::Alpha;
use crate::os::Source;
use ::image::ImageResult;
use anyhow::Result;

/// Quite OK Image format.
#[derive(Debug)]
pub struct Qoi;

impl Format for Qoi {
    fn name(&self) -> &'static str {
        "QOI"
    }

    fn id(&self) -> &'static str {
        "qoi"
    }

    fn title(&self) -> &'static str {
        "Quite OK Image format"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["qoi"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        head.starts_with(b"qoif")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            written: false,
            lossless: true,
            pages: false,
            channels: &[3, 4],
            depths: &[Depth::Eight],
            signed: false,
            white_is_zero: false,
            alpha: &[Alpha::Independent],
            fields: &[],
        }
    }

    fn decoder<'a>(&self, source: &'a Source, _damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        // A run has up to 62 pixels (QOI specification 1.0).
        let decoder = LibraryDecoder::open(source, open)?.at_most(62)?;
        Ok(Box::new(decoder))
    }
}

fn open(stream: Stream) -> ImageResult<Opened> {
    let decoder = ::image::codecs::qoi::QoiDecoder::new(stream)?;
    Ok(Box::new(decoder))
}
