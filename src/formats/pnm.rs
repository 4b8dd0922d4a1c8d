//! PBM, PGM and PPM (P1 to P6), by the Netpbm specifications pbm(5), pgm(5) and ppm(5).
//!
//! Samples keep their values: a maximum value (maxval) up to 255 gives an 8-bit image, a larger one
//! a 16-bit image. The maxval is kept in the metadata. Bitmaps become 8 bits: black 0, white 255.
//! P5 and P6 are written.

mod header;
mod plain;

pub(super) use header::Header;

use super::format::{Capabilities, Decoder, Encoder, Field, Format};
use super::raster::{Form, Layout, RasterDecoder, RasterEncoder};
use super::raw::Order;
use super::single::check_single;
use crate::formats::error_policy::ErrorPolicy;
use crate::image::metadata::Metadata;
use crate::image::{Depth, Image, Shape};
use crate::os::name::Shown;
use crate::os::{Source, Target};
use anyhow::{Context, Result, bail, ensure};
use header::is_space;
use plain::{PlainDecoder, Text};
use std::borrow::Cow;
use std::path::Path;

/// Portable anymap: P1 to P6.
pub static FORMAT: Format = Format {
    name: "PNM",
    id: "pnm",
    title: "Portable anymap: P1 to P6 read, P5 (grey) or P6 (RGB) written",
    extensions: &["pnm", "pgm", "ppm", "pbm"],
    capabilities: Capabilities {
        channels: &[1, 3],
        alpha: &[],
        fields: &[Field::Maxval],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| matches!(head, [b'P', b'1'..=b'6', ..]),
    check_name,
    decoder: open,
    encoder: Some(|target, _, _| Ok(Box::new(RasterEncoder::new(target, form, 1)))),
    ..Format::DEFAULTS
};

/// Refuses a file name that would be untrue of an image of this shape.
fn check_name(path: &Path, shape: &Shape) -> Result<()> {
    let extension = path.extension().unwrap_or_default();
    ensure!(
        !extension.eq_ignore_ascii_case("pgm") || shape.colours() == 1,
        "a .pgm is grey, and the image has colours: call it {}",
        path.with_extension("ppm").shown()
    );
    Ok(())
}

/// Reads and checks the header. With `damaged`, the samples may be cut off.
///
/// # Errors
/// A file of several images, or that ends early.
fn open(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let mut header = Header::new(source);
    let [b'P', kind @ b'1'..=b'6'] = [header.byte()?, header.byte()?] else {
        bail!("it is not a PNM file");
    };
    ensure!(
        is_space(header.character()?),
        "no space after the P{} it starts with",
        char::from(kind)
    );
    let width = header.number("width")?;
    let height = header.number("height")?;
    let bitmap = matches!(kind, b'1' | b'4');
    let maxval = if bitmap {
        255
    } else {
        header.number("maxval")?
    };
    let maxval = maxval_of(maxval)?;
    let channels = if matches!(kind, b'3' | b'6') { 3 } else { 1 };
    let shape = Shape::checked(width, height, channels, depth_of(maxval))?;
    let text = match kind {
        b'1' => Text::Bits,
        b'2' | b'3' => Text::Numbers(maxval),
        b'4' => Text::PackedBits,
        _ => {
            let layout = layout(shape, maxval, header.next);
            check_single(source, layout.end()?, "pgm")?;
            return Ok(Box::new(RasterDecoder::new(source, layout, damaged)?));
        }
    };
    let decoder = PlainDecoder::open(source, shape, text, header.next, damaged)?;
    Ok(Box::new(decoder))
}

/// A maxval, which is from 1 to 65535.
///
/// # Errors
/// Any other number.
pub(super) fn maxval_of(maxval: u64) -> Result<u16> {
    (u16::try_from(maxval).ok().filter(|&maxval| maxval > 0))
        .with_context(|| format!("a maxval of {maxval} (it must be from 1 to 65535)"))
}

/// The depth of samples up to a maxval.
pub(super) fn depth_of(maxval: u16) -> Depth {
    match maxval {
        ..=255 => Depth::Eight,
        _ => Depth::Sixteen,
    }
}

/// The layout of samples with a maxval from `start` on.
pub(super) fn layout(shape: Shape, maxval: u16, start: u64) -> Layout {
    let mut layout = Layout::new(shape, start);
    layout.metadata.maxval = Some(maxval).filter(|&maxval| maxval != shape.depth.full());
    layout
}

/// Decodes a PNM file.
///
/// # Errors
/// A file that is no PNM, or is damaged.
pub fn decode(source: &Source) -> Result<Image> {
    open(source, false)?.decode(&ErrorPolicy::default())
}

/// The header of P5 (grey) or P6 (RGB).
fn form(shape: &Shape, metadata: &Metadata, _pages: usize) -> Result<Form> {
    let kind = match shape.channels {
        1 => "P5",
        3 => "P6",
        _ => bail!("PNM cannot store an alpha channel"),
    };
    let maxval = metadata.maxval.unwrap_or(shape.depth.full());
    let header = format!("{kind}\n{} {}\n{maxval}\n", shape.width, shape.height);
    Ok(Form {
        header: header.into_bytes(),
        order: Order::Big,
        toggled: false,
        block: 1,
        ..Form::default()
    })
}

/// Writes P5 (grey) or P6 (RGB) and returns the file's length in bytes; refuses alpha, for which
/// PNM has no place.
///
/// # Errors
/// Those of writing, and an alpha channel.
pub fn encode(image: &Image, target: &Target) -> Result<u64> {
    let mut encoder = RasterEncoder::new(target, form, 1);
    encoder.page(Cow::Borrowed(image), &Metadata::default())?;
    Ok(encoder.length())
}
