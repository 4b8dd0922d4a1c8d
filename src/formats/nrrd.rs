//! NRRD (Nearly Raw Raster Data, format definition of versions 1 to 5): samples of 8, 16 and 32 bits and floating
//! point after the header, or in a file beside it, raw, compressed with gzip or as text. Axes after the second make
//! pages; a first axis of colours or of a vector makes channels.

use super::format::{Decoder, Format};
use super::raster::Coding;
use super::raw::Order;
use super::volume::{Lines, Volume, numbers};
use crate::image::Depth;
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

/// Nearly Raw Raster Data.
pub static FORMAT: Format = Format {
    name: "NRRD",
    id: "nrrd",
    title: "Nearly Raw Raster Data",
    extensions: &["nrrd", "nhdr"],
    sniff: |head| head.starts_with(b"NRRD000"),
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let mut lines = Lines::read(source)?;
    Iterator::next(&mut lines);
    let mut volume = Volume {
        skip: Some(0),
        ..Volume::default()
    };
    let (mut kinds, mut encoding) = (Vec::new(), None);
    let mut ended = false;
    while let Some(line) = Iterator::next(&mut lines) {
        if line.is_empty() {
            ended = true;
            break;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let value = value.trim();
        match name {
            "type" => volume.samples = Some(samples(value)?),
            "sizes" => volume.axes = numbers(name, value)?,
            "endian" => volume.order = Some(order(value)?),
            "encoding" => encoding = Some(value.to_owned()),
            "data file" | "datafile" => volume.file = Some(value.into()),
            "byte skip" | "byteskip" if value == "-1" => volume.skip = None,
            "byte skip" | "byteskip" => volume.skip = numbers(name, value)?.first().copied(),
            "line skip" | "lineskip" => {
                volume.line_skip = numbers(name, value)?.first().copied().unwrap_or(0);
            }
            "kinds" => kinds = value.split_whitespace().map(str::to_owned).collect(),
            "dimension" | "space dimension" => {}
            other => volume.left_out.push(other.into()),
        }
    }
    let encoding = encoding.context("the header has no encoding")?;
    volume.coding = match encoding.to_ascii_lowercase().as_str() {
        "raw" => None,
        "gzip" | "gz" => Some(Coding::Gzip),
        "ascii" | "text" | "txt" => Some(Coding::Text),
        _ => bail!(
            "samples of the encoding {encoding} are not supported (raw, gzip and ascii are): write \
                 them as gzip first (unu save -f nrrd -e gzip -i in -o out.nrrd)"
        ),
    };
    ensure!(
        ended || volume.file.is_some(),
        "truncated at byte {}, within the header",
        source.len()
    );
    let coloured = kinds
        .first()
        .is_some_and(|kind| kind.ends_with("-color") || kind.ends_with("vector") || kind == "list");
    if coloured && volume.axes.len() > 2 {
        volume.channels = Some(volume.axes.remove(0));
    }
    volume.decoder(source, lines.next as u64, damaged)
}

fn samples(kind: &str) -> Result<(Depth, bool)> {
    Ok(match kind {
        "uchar" | "unsigned char" | "uint8" | "uint8_t" => (Depth::Eight, false),
        "signed char" | "int8" | "int8_t" => (Depth::Eight, true),
        "ushort" | "unsigned short" | "unsigned short int" | "uint16" | "uint16_t" => {
            (Depth::Sixteen, false)
        }
        "short" | "short int" | "signed short" | "signed short int" | "int16" | "int16_t" => {
            (Depth::Sixteen, true)
        }
        "uint" | "unsigned int" | "uint32" | "uint32_t" => (Depth::ThirtyTwo, false),
        "int" | "signed int" | "int32" | "int32_t" => (Depth::ThirtyTwo, true),
        "float" => (Depth::Float, false),
        "double" => (Depth::Double, false),
        other => bail!(
            "samples of the type {other} are not supported (integers of 8, 16 and 32 bits are, and \
             float and double): convert them to one of these, with a scale of your choice"
        ),
    })
}

fn order(value: &str) -> Result<Order> {
    match value {
        "little" => Ok(Order::Little),
        "big" => Ok(Order::Big),
        other => bail!("the header's endian is neither little nor big: {other:?}"),
    }
}
