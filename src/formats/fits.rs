//! FITS (Flexible Image Transport System standard 4.0): images of 8, 16 and 32 bits, signed
//! or not, and of floating point of 32 and 64 bits.
//!
//! Each image of the file is read, also if it is compressed in tiles; axes after the second become pages. Rows keep the order
//! of the file, as in NumPy and astropy (viewers show the first row at the bottom). FITS outputs keep the other records of
//! the header, except those that an operation makes untrue.

pub mod exposure;
mod header;
mod parts;
pub(super) mod records;
mod tiled;

use super::format::{Capabilities, Field, Format};
use super::raster::{Form, Layout, RasterEncoder, page_count};
use super::raw::Order;
use crate::image::metadata::{Metadata, Own, Record};
use crate::image::number::Number;
use crate::image::{Depth, Shape};
use anyhow::{Result, bail};
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
    decoder: parts::decoder,
    encoder: Some(|target, _, pages| Ok(Box::new(RasterEncoder::new(target, form, pages.len())))),
    convert_metadata,
    add_stretch,
    is_bottom_up: true,
    ..Format::DEFAULTS
};

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

/// The layout of an image with these axes and this BITPIX, of which a header has all else; of its records those are kept that
/// `keeps` takes.
fn layout(
    header: &Header,
    axes: &[u64],
    bitpix: Option<i64>,
    keeps: fn(&Record) -> bool,
) -> Result<Layout> {
    let depth = match bitpix {
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
    let [width, height, ..] = axes else {
        bail!("an image of one axis is not supported");
    };
    let shape = Shape::checked(*width, *height, 1, depth)?;
    let pages = page_count(axes)?;
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
            _ => keeps(record),
        });
    let records: Vec<Record> = records.copied().collect();
    let warnings = &mut layout.diagnostics.warnings;
    if scaled {
        let warning = "samples are read as stored: BSCALE and BZERO are not applied";
        warnings.push(warning.into());
    }
    let mut no_data = Vec::new();
    if let Some(blank) = header.integer("BLANK") {
        // The header states the sample in the file.
        let offset = match (depth, signed) {
            (Depth::Eight, true) => -128,
            (Depth::Sixteen, false) => 1 << 15,
            (Depth::ThirtyTwo, false) => 1 << 31,
            _ => 0,
        };
        let value = blank.saturating_add(offset);
        warnings.push(format!(
            "pixels without a value (BLANK, {blank}) count as values (normalize --ignore {value} keeps them out of the measured range)"
        ));
        no_data.extend((!depth.is_float()).then_some(Number::Whole(value)));
    }
    layout.metadata = Metadata {
        signed,
        no_data,
        own: if records.is_empty() {
            Own::None
        } else {
            Own::Fits(records)
        },
        ..Metadata::default()
    };
    Ok(layout)
}

/// The header, and how samples follow it. Pages of a file of several images are images of their own again.
fn form(shape: &Shape, metadata: &Metadata, pages: usize) -> Result<Form> {
    let records = match &metadata.own {
        Own::Fits(records) => &records[..],
        _ => &[],
    };
    let has_parts = records.iter().any(records::is_of_part);
    let mut axes = vec![shape.width, shape.height];
    if pages > 1 && !has_parts {
        axes.push(pages);
    }
    let mut header = lines(&[("SIMPLE", "T")]);
    header.extend(layout_records(shape, &axes));
    if has_parts && pages > 1 {
        header.extend(lines(&[("EXTEND", "T")]));
    }
    let mut part_header = lines(&[("XTENSION", "'IMAGE   '")]);
    part_header.extend(layout_records(shape, &axes[..2]));
    part_header.extend(lines(&[("PCOUNT", "0"), ("GCOUNT", "1")]));
    let zero = match (shape.depth, metadata.signed) {
        (Depth::Eight, true) => Some("-128"),
        (Depth::Sixteen, false) => Some("32768"),
        (Depth::ThirtyTwo, false) => Some("2147483648"),
        _ => None,
    };
    for header in [&mut header, &mut part_header] {
        if let Some(zero) = zero {
            header.extend(lines(&[("BSCALE", "1"), ("BZERO", zero)]));
        }
        let is_kept = |record: &&Record| match records::kind(record) {
            Kind::Layout => false,
            Kind::Scale => zero.is_none(),
            _ => true,
        };
        (records.iter().filter(is_kept)).for_each(|record| header.extend(record));
        header.extend(format!("{:<80}", "END").bytes());
        header.resize(header.len().next_multiple_of(BLOCK), b' ');
    }
    Ok(Form {
        header,
        part_header,
        has_parts,
        order: Order::Big,
        toggled: shape.depth != Depth::Eight,
        block: BLOCK as u64,
    })
}

/// Records of values without a comment.
fn lines(values: &[(&str, &str)]) -> Vec<u8> {
    let line = |(keyword, value): &(&str, &str)| {
        // Texts begin in the eleventh column; all else ends in the thirtieth.
        let record = if value.starts_with('\'') {
            format!("{keyword:<8}= {value}")
        } else {
            format!("{keyword:<8}= {value:>20}")
        };
        format!("{record:<80}").into_bytes()
    };
    values.iter().flat_map(line).collect()
}

/// BITPIX and the axes of an image.
fn layout_records(shape: &Shape, axes: &[usize]) -> Vec<u8> {
    let sign = if shape.depth.is_float() { "-" } else { "" };
    let mut records = lines(&[
        ("BITPIX", &format!("{sign}{}", shape.depth.bits())),
        ("NAXIS", &axes.len().to_string()),
    ]);
    for (number, axis) in axes.iter().enumerate() {
        records.extend(lines(&[(
            &format!("NAXIS{}", number + 1),
            &axis.to_string(),
        )]));
    }
    records
}
