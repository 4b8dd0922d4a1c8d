//! WebP, read by the `image` crate.

use super::{LibraryDecoder, Opened, Stream};
use crate::codec::format::{Capabilities, Decoder, Field, Format};
use crate::files::Source;
use crate::image::Depth;
use crate::metadata::Alpha;
use ::image::ImageResult;
use ::image::codecs::webp::WebPDecoder;
use anyhow::Result;

/// WebP, lossy or lossless; of an animation the first image.
#[derive(Debug)]
pub struct WebP;

impl Format for WebP {
    fn name(&self) -> &'static str {
        "WebP"
    }

    fn id(&self) -> &'static str {
        "webp"
    }

    fn title(&self) -> &'static str {
        "WebP, lossy or lossless; of an animation the first image"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["webp"]
    }

    fn sniff(&self, head: &[u8]) -> bool {
        head.starts_with(b"RIFF") && head[8.min(head.len())..].starts_with(b"WEBP")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            written: false,
            lossless: false,
            pages: false,
            channels: &[3, 4],
            depths: &[Depth::Eight],
            signed: false,
            white_is_zero: false,
            alpha: &[Alpha::Independent],
            fields: &[Field::Orientation, Field::Exif, Field::Profile, Field::Xmp],
        }
    }

    fn decoder<'a>(&self, source: &'a Source, _damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
        let decoder = LibraryDecoder::open(source, open)?;
        Ok(Box::new(decoder.with_warning(animation(source))))
    }
}

fn open(stream: Stream) -> ImageResult<Opened> {
    Ok(Box::new(WebPDecoder::new(stream)?))
}

/// A sentence about the images of an animation that are not read.
fn animation(source: &Source) -> Option<String> {
    let decoder = WebPDecoder::new(super::stream(source)).ok()?;
    let warning = "it is an animation, of which the first image is taken";
    decoder.has_animation().then(|| warning.into())
}
