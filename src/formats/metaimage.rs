//! MetaImage (ITK's MetaIO documentation): samples of 8, 16 and 32 bits and floating point, raw, compressed or as text, after
//! the header (`.mha`) or in a file beside it (`.mhd`). Axes after the second make pages.

use super::format::{Decoder, Format};
use super::raster::Coding;
use super::raw::Order;
use super::volume::{Lines, Volume, numbers};
use crate::image::Depth;
use crate::os::Source;
use anyhow::{Context, Result, bail};

/// MetaImage.
pub static FORMAT: Format = Format {
    name: "MetaImage",
    id: "metaimage",
    title: "MetaImage",
    extensions: &["mha", "mhd"],
    sniff: |head| {
        [&b"ObjectType ="[..], b"NDims ="]
            .iter()
            .any(|first| head.starts_with(first))
    },
    decoder,
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let mut lines = Lines::read(source)?;
    let mut volume = Volume {
        skip: Some(0),
        // What ITK takes where nothing is said.
        order: Some(Order::Little),
        ..Volume::default()
    };
    while let Some(line) = Iterator::next(&mut lines) {
        let Some((name, value)) = line.split_once('=') else {
            bail!("a line of the header is not a field: {line:?}");
        };
        let (name, value) = (name.trim(), value.trim());
        match name {
            "DimSize" => volume.axes = numbers(name, value)?,
            "ElementType" => volume.samples = Some(samples(value)?),
            "ElementNumberOfChannels" => {
                volume.channels = numbers(name, value)?.first().copied();
            }
            "ElementByteOrderMSB" | "BinaryDataByteOrderMSB" => {
                volume.order = Some(Order::new(is_true(value)));
            }
            "HeaderSize" if value == "-1" => volume.skip = None,
            "HeaderSize" => volume.skip = numbers(name, value)?.first().copied(),
            "CompressedData" => volume.coding = is_true(value).then_some(Coding::Zlib),
            "BinaryData" if !is_true(value) => volume.coding = Some(Coding::Text),
            "BinaryData" => {}
            "ObjectType" | "NDims" | "CompressedDataSize" => {}
            "ElementDataFile" => {
                if value != "LOCAL" {
                    volume.file = Some(value.into());
                }
                return volume.decoder(source, lines.next as u64, damaged);
            }
            other => volume.left_out.push(other.into()),
        }
    }
    None.with_context(|| format!("truncated at byte {}, within the header", source.len()))
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true") || value == "1"
}

fn samples(kind: &str) -> Result<(Depth, bool)> {
    Ok(match kind {
        "MET_UCHAR" => (Depth::Eight, false),
        "MET_CHAR" => (Depth::Eight, true),
        "MET_USHORT" => (Depth::Sixteen, false),
        "MET_SHORT" => (Depth::Sixteen, true),
        "MET_UINT" => (Depth::ThirtyTwo, false),
        "MET_INT" => (Depth::ThirtyTwo, true),
        "MET_FLOAT" => (Depth::Float, false),
        "MET_DOUBLE" => (Depth::Double, false),
        other => bail!(
            "samples of the type {other} are not supported (integers of 8, 16 and 32 bits are, and \
             floats): convert them to one of these, with a scale of your choice"
        ),
    })
}
