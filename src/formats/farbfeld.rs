//! farbfeld: RGB + alpha of 16 bits, most significant byte first (farbfeld(5)).

use super::format::{Capabilities, Decoder, Format};
use super::raster::{Form, Layout, RasterDecoder, RasterEncoder};
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
    encoder: Some(|target, _, _| Ok(Box::new(RasterEncoder::converting(target, form, rgba)))),
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let (mut magic, mut sides) = ([0; 8], [0; 8]);
    source.read_at(&mut magic, 0)?;
    ensure!(&magic == MAGIC, "it is not a farbfeld file");
    source.read_at(&mut sides, 8)?;
    let sides = u64::from_be_bytes(sides);
    let shape = Shape::checked(sides >> 32, sides & 0xFFFF_FFFF, 4, Depth::Sixteen)?;
    let layout = Layout::new(shape, 16);
    Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
}

/// The header, and how samples follow it.
fn form(shape: &Shape, _: &Metadata, _pages: usize) -> Result<Form> {
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
        ..Form::default()
    })
}

/// Converts grey, grey + alpha and RGB to RGB + alpha.
fn rgba(image: Cow<Image>) -> Cow<Image> {
    let shape = image.shape();
    let Samples::U16(samples) = image.samples() else {
        return image;
    };
    if shape.channels == 4 {
        return image;
    }
    let rgba = |pixel: &[u16]| match *pixel {
        [grey] => [grey, grey, grey, u16::MAX],
        [grey, alpha] => [grey, grey, grey, alpha],
        [red, green, blue] => [red, green, blue, u16::MAX],
        _ => [0; 4],
    };
    let pixels = samples.chunks_exact(shape.channels).flat_map(rgba);
    let shape = Shape {
        channels: 4,
        ..shape
    };
    Cow::Owned(Image::new(shape, Samples::U16(pixels.collect())))
}
