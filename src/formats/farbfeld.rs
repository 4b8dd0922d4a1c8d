//! farbfeld: RGB + alpha of 16 bits, most significant byte first (farbfeld(5)).

use super::format::{Capabilities, Decoder, Encoder, Format};
use super::raster::{Form, Header, Layout, RasterDecoder, RasterEncoder};
use super::raw::Order;
use crate::image::metadata::Metadata;
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::Source;
use anyhow::{Context, Result, ensure};
use std::borrow::Cow;

/// The first bytes of every file.
const MAGIC: &[u8; 8] = b"farbfeld";

/// farbfeld. Its one kind of pixel holds every other: grey is written three times, and what has no
/// alpha is opaque.
pub static FORMAT: Format = Format {
    name: "farbfeld",
    id: "farbfeld",
    title: "farbfeld: RGB + alpha of 16 bits",
    extensions: &["ff"],
    capabilities: Capabilities {
        depths: &[Depth::Sixteen],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(MAGIC),
    decoder,
    encoder: Some(|target, _, _| {
        Ok(Box::new(FarbfeldEncoder(RasterEncoder::new(
            target,
            FarbfeldHeader,
            1,
        ))))
    }),
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let (mut magic, mut sides) = ([0; 8], [0; 8]);
    source.read_at(&mut magic, 0)?;
    ensure!(&magic == MAGIC, "it is no farbfeld file");
    source.read_at(&mut sides, 8)?;
    let sides = u64::from_be_bytes(sides);
    let shape = Shape::checked(sides >> 32, sides & 0xFFFF_FFFF, 4, Depth::Sixteen)?;
    let layout = Layout::new(shape, 16);
    Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
}

struct FarbfeldHeader;

impl Header for FarbfeldHeader {
    fn form(&self, shape: &Shape, _: &Metadata, _pages: usize) -> Result<Form> {
        let side = |side: usize| {
            let side = u32::try_from(side).ok();
            side.with_context(|| format!("{shape} is more than farbfeld holds"))
        };
        let (width, height) = (side(shape.width)?, side(shape.height)?);
        Ok(Form {
            header: [&MAGIC[..], &width.to_be_bytes(), &height.to_be_bytes()].concat(),
            order: Order::Big,
            toggled: false,
            block: 1,
        })
    }
}

/// Widens pixels to RGB + alpha.
struct FarbfeldEncoder<'a>(RasterEncoder<'a, FarbfeldHeader>);

impl Encoder for FarbfeldEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let shape = image.shape();
        let widened = match image.samples() {
            Samples::U16(samples) if shape.channels < 4 => rgba(samples, shape),
            _ => return self.0.page(image, metadata),
        };
        self.0.page(Cow::Owned(widened), metadata)
    }

    fn length(&self) -> u64 {
        self.0.length()
    }
}

/// The pixels of grey, grey + alpha or RGB as RGB + alpha.
fn rgba(samples: &[u16], shape: Shape) -> Image {
    let wide = |pixel: &[u16]| match *pixel {
        [grey] => [grey, grey, grey, u16::MAX],
        [grey, alpha] => [grey, grey, grey, alpha],
        [red, green, blue] => [red, green, blue, u16::MAX],
        _ => [0; 4],
    };
    let pixels = samples.chunks_exact(shape.channels).flat_map(wide);
    let shape = Shape {
        channels: 4,
        ..shape
    };
    Image::new(shape, Samples::U16(pixels.collect()))
}
