//! FITS (Flexible Image Transport System standard 4.0): images of 8, 16 and 32 bits, signed
//! or not, and of floating point of 32 and 64 bits.
//!
//! The first image of the file is read; axes after the second become pages. Rows keep the order of the file, as in NumPy
//! and astropy (viewers show the first row at the bottom). FITS outputs keep the other records of the header, except those
//! that an operation makes untrue.

pub mod exposure;
mod header;
pub(super) mod records;

use super::format::{Capabilities, Decoder, Field, Format};
use super::raster::{Form, Layout, RasterDecoder, RasterEncoder, page_count};
use super::raw::Order;
use crate::image::metadata::{Metadata, Own, Record};
use crate::image::{Depth, Shape};
use crate::os::Source;
use anyhow::{Result, bail, ensure};
use header::{BLOCK, Header};
use records::Kind;

/// Flexible Image Transport System.
pub static FORMAT: Format = Format {
    name: "FITS",
    id: "fits",
    title: "Flexible Image Transport System",
    extensions: &["fits", "fit", "fts"],
    capabilities: Capabilities {
        channels: &[1],
        alpha: &[],
        fields: &[Field::Records, Field::Stretch],
        ..Capabilities::ALL_SAMPLES
    },
    sniff: |head| head.starts_with(b"SIMPLE  ="),
    decoder,
    encoder: Some(|target, _, pages| Ok(Box::new(RasterEncoder::new(target, form, pages.len())))),
    convert_metadata,
    add_stretch,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let (header, more) = first_image(source)?;
    let mut layout = layout(&header)?;
    if more {
        let warning = "the file has more than its first image, which is left out";
        layout.diagnostics.warnings.push(warning.into());
    }
    Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
}

fn convert_metadata(_: &Metadata, own: Own, leave_out: &mut dyn FnMut(String)) -> Own {
    match own {
        Own::Fits(_) => own,
        other => {
            other.names().into_iter().for_each(leave_out);
            Own::None
        }
    }
}

fn add_stretch(own: &mut Own, text: &str) -> bool {
    let Some(record) = records::stretch(text) else {
        return false;
    };
    match own {
        Own::Fits(records) => records.push(record),
        own => *own = Own::Fits(vec![record]),
    }
    true
}

/// The header of the first image, and whether something else follows it.
fn first_image(source: &Source) -> Result<(Header, bool)> {
    let mut at = 0;
    // A file with more parts is considered damaged.
    for _ in 0..1000 {
        let header = Header::read(source, at)?;
        let next = header.next()?;
        ensure!(
            header.flag("ZIMAGE") != Some(true),
            "its image is compressed in a table, which is not supported (funpack unpacks it)"
        );
        if header.is_image() {
            return Ok((header, next < source.len()));
        }
        ensure!(next < source.len(), "there is no image in it");
        at = next;
    }
    bail!("there is no image in its first 1000 parts")
}

/// The layout that a header describes.
fn layout(header: &Header) -> Result<Layout> {
    let depth = match header.integer("BITPIX") {
        Some(8) => Depth::Eight,
        Some(16) => Depth::Sixteen,
        Some(32) => Depth::ThirtyTwo,
        Some(-32) => Depth::Float,
        Some(-64) => Depth::Double,
        Some(64) => bail!(
            "64-bit integers are not supported: convert to 32 bits with a scale of your choice"
        ),
        _ => bail!("its BITPIX is not one of 8, 16, 32, 64, -32, -64"),
    };
    let [width, height, ..] = &header.axes[..] else {
        bail!("an image of one axis is not supported");
    };
    let shape = Shape::checked(*width, *height, 1, depth)?;
    let pages = page_count(&header.axes)?;
    let scale = (
        header.real("BSCALE")?.unwrap_or(1.0),
        header.real("BZERO")?.unwrap_or(0.0),
    );
    // FITS stores samples of the other sign with half the range subtracted (section 5.2.5).
    let (signed, scaled) = match (depth, scale) {
        (Depth::Eight, (1.0, -128.0)) => (true, false),
        (Depth::Sixteen, (1.0, 32768.0)) => (false, false),
        (Depth::ThirtyTwo, (1.0, 2_147_483_648.0)) => (false, false),
        (Depth::Eight | Depth::Float | Depth::Double, scale) => (false, scale != (1.0, 0.0)),
        (Depth::Sixteen | Depth::ThirtyTwo, scale) => (true, scale != (1.0, 0.0)),
    };
    let mut layout = Layout::new(shape, header.data);
    layout.pages = pages;
    // In the file bytes are unsigned and words signed; in memory both are unsigned.
    layout.toggled = depth != Depth::Eight;
    let records = header
        .records
        .iter()
        .filter(|record| match records::kind(record) {
            Kind::Layout => false,
            Kind::Scale => scaled,
            _ => true,
        });
    let records: Vec<Record> = records.copied().collect();
    let warnings = &mut layout.diagnostics.warnings;
    if scaled {
        let warning = "samples are read as stored: BSCALE and BZERO are not applied";
        warnings.push(warning.into());
    }
    if let Some(blank) = header.integer("BLANK") {
        warnings.push(format!(
            "pixels without a value (BLANK, {blank}) count as values"
        ));
    }
    layout.metadata = Metadata {
        signed,
        own: if records.is_empty() {
            Own::None
        } else {
            Own::Fits(records)
        },
        ..Metadata::default()
    };
    Ok(layout)
}

/// The header, and how samples follow it.
fn form(shape: &Shape, metadata: &Metadata, pages: usize) -> Result<Form> {
    let mut axes = vec![shape.width, shape.height];
    if pages > 1 {
        axes.push(pages);
    }
    let mut header = Vec::new();
    let mut add = |keyword: &str, value: &str| {
        header.extend(format!("{:<80}", format!("{keyword:<8}= {value:>20}")).bytes());
    };
    add("SIMPLE", "T");
    let sign = if shape.depth.is_float() { "-" } else { "" };
    add("BITPIX", &format!("{sign}{}", shape.depth.bits()));
    add("NAXIS", &axes.len().to_string());
    for (number, axis) in axes.iter().enumerate() {
        add(&format!("NAXIS{}", number + 1), &axis.to_string());
    }
    let zero = match (shape.depth, metadata.signed) {
        (Depth::Eight, true) => Some("-128"),
        (Depth::Sixteen, false) => Some("32768"),
        (Depth::ThirtyTwo, false) => Some("2147483648"),
        _ => None,
    };
    if let Some(zero) = zero {
        add("BSCALE", "1");
        add("BZERO", zero);
    }
    if let Own::Fits(records) = &metadata.own {
        let scales = |record: &&Record| records::kind(record) == Kind::Scale;
        let kept = records
            .iter()
            .filter(|record| zero.is_none() || !scales(record));
        kept.for_each(|record| header.extend(record));
    }
    header.extend(format!("{:<80}", "END").bytes());
    header.resize(header.len().next_multiple_of(BLOCK), b' ');
    Ok(Form {
        header,
        order: Order::Big,
        toggled: shape.depth != Depth::Eight,
        block: BLOCK as u64,
    })
}
