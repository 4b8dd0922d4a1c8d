//! PFM, the portable float map (Paul Debevec's page "PFM Portable FloatMap Image Format"): three lines of
//! text, and 32-bit floating-point samples whose first row is the lowest.
//!
//! The third line is a number. It is negative for little-endian samples; its absolute value is a scale, which nothing
//! defines further. Samples are read without it.

use super::format::{Capabilities, Decoder, Format};
use super::raster::{self, Form, Layout, RasterDecoder, RasterEncoder};
use super::raw::Order;
use crate::image::metadata::Metadata;
use crate::image::{Depth, Image, Shape};
use crate::os::Source;
use anyhow::{Context, Result, ensure};
use std::borrow::Cow;

/// The most bytes of a header.
const MOST: usize = 256;

/// Portable float map.
pub static FORMAT: Format = Format {
    name: "PFM",
    id: "pfm",
    title: "Portable float map",
    extensions: &["pfm"],
    capabilities: Capabilities {
        channels: &[1, 3],
        depths: &[Depth::Float],
        alpha: &[],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| matches!(head, [b'P', b'F' | b'f', blank, ..] if blank.is_ascii_whitespace()),
    decoder,
    encoder: Some(|target, _, _| Ok(Box::new(RasterEncoder::converting(target, form, bottom_up)))),
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let layout = layout(source)?;
    Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
}

/// The layout that a file's first three lines describe.
fn layout(source: &Source) -> Result<Layout> {
    let mut head = [0; MOST];
    let read = source.read_up_to(&mut head, 0)?;
    let mut at = 0;
    let mut word = || -> Result<&str> {
        let rest = head[..read].get(at..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        let start = at + blanks.count();
        let rest = &head[start..read];
        let length = rest.iter().position(u8::is_ascii_whitespace);
        let length = length.with_context(|| {
            if read < MOST {
                format!("truncated at byte {read}, within the header")
            } else {
                format!("a header of more than {MOST} bytes is not valid")
            }
        })?;
        // One blank ends a word, and the last one the header.
        at = start + length + 1;
        str::from_utf8(&rest[..length]).context("the header is not text")
    };
    let channels = match word()? {
        "PF" => 3,
        "Pf" => 1,
        _ => anyhow::bail!("it is not a PFM file"),
    };
    let mut side = || -> Result<u64> {
        let word = word()?;
        (word.parse().ok()).with_context(|| format!("{word:?} is not a number of pixels"))
    };
    let (width, height) = (side()?, side()?);
    let scale = word()?;
    let number = scale.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number != 0.0);
    let number = number.with_context(|| format!("the scale {scale:?} is not a nonzero number"))?;
    let shape = Shape::checked(width, height, channels, Depth::Float)?;
    let mut layout = Layout::new(shape, at as u64);
    layout.order = Order::new(number > 0.0);
    layout.bottom_up = true;
    if number.abs() != 1.0 {
        let scale = number.abs();
        let note = format!("the scale {scale} of the header is left out: samples stay as they are");
        layout.diagnostics.notes.push(note);
    }
    Ok(layout)
}

/// The header, and how samples follow it.
fn form(shape: &Shape, _: &Metadata, _pages: usize) -> Result<Form> {
    ensure!(
        shape.channels == 1 || shape.channels == 3,
        "PFM cannot store {} images",
        shape.kind()
    );
    let kind = if shape.channels == 3 { "PF" } else { "Pf" };
    Ok(Form {
        header: format!("{kind}\n{} {}\n-1.0\n", shape.width, shape.height).into(),
        order: Order::Little,
        toggled: false,
        block: 1,
        ..Form::default()
    })
}

/// Puts the rows in the opposite order.
fn bottom_up(image: Cow<Image>) -> Cow<Image> {
    let mut image = image.into_owned();
    let shape = image.shape();
    raster::reverse_rows(image.samples_mut(), shape);
    Cow::Owned(image)
}
