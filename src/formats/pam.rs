//! PAM (P7), by the Netpbm specification pam(5): grey or RGB, with or without alpha.
//!
//! Samples keep their values, as those of PNM; the maxval is kept in the metadata.

use super::format::{Capabilities, Decoder, Field, Format};
use super::pnm::{depth_of, layout, maxval_of};
use super::raster::{Form, RasterDecoder, RasterEncoder};
use super::raw::Order;
use super::single::check_single;
use crate::image::Shape;
use crate::image::metadata::Metadata;
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

/// The most bytes of a header, comments included.
const MOST: usize = 64 << 10;

/// Portable arbitrary map: P7.
pub static FORMAT: Format = Format {
    name: "PAM",
    id: "pam",
    title: "Portable arbitrary map: P7",
    extensions: &["pam"],
    capabilities: Capabilities {
        fields: &[Field::Maxval],
        ..Capabilities::UNSIGNED_PAGE
    },
    sniff: |head| head.starts_with(b"P7"),
    decoder,
    encoder: Some(|target, _, _| Ok(Box::new(RasterEncoder::new(target, form, 1)))),
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let (shape, maxval, start) = header(source)?;
    let layout = layout(shape, maxval, start);
    check_single(source, layout.end()?, "pgm")?;
    Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
}

/// The shape, the maxval, and the offset of the first sample.
fn header(source: &Source) -> Result<(Shape, u16, u64)> {
    let mut bytes = vec![0; MOST.min(usize::try_from(source.len())?)];
    source.read_at(&mut bytes, 0)?;
    let (mut width, mut height, mut depth, mut maxval, mut tuple) = (None, None, None, None, None);
    let mut at = 0;
    for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let whole = line.ends_with(b"\n");
        at += line.len();
        ensure!(
            whole,
            "truncated at byte {}, within the header",
            source.len().min(MOST as u64)
        );
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        let (word, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let count = || {
            let value = value.trim();
            let number = value.parse::<u64>().ok();
            number.with_context(|| format!("the header's {word} is not a number: {value:?}"))
        };
        match word {
            "P7" if number == 0 => {}
            _ if number == 0 => bail!("it is not a PAM file"),
            "" => {}
            comment if comment.starts_with('#') => {}
            "WIDTH" => width = Some(count()?),
            "HEIGHT" => height = Some(count()?),
            "DEPTH" => depth = Some(count()?),
            "MAXVAL" => maxval = Some(count()?),
            "TUPLTYPE" => tuple = Some(value.trim().to_owned()),
            "ENDHDR" => {
                let needed = |value: Option<u64>, word| {
                    value.with_context(|| format!("the header has no {word}"))
                };
                let maxval = maxval_of(needed(maxval, "MAXVAL")?)?;
                let depth = needed(depth, "DEPTH")?;
                let tuple = tuple.unwrap_or_default();
                let shape = Shape::checked(
                    needed(width, "WIDTH")?,
                    needed(height, "HEIGHT")?,
                    channels(depth, &tuple)?,
                    depth_of(maxval),
                )?;
                return Ok((shape, maxval, at as u64));
            }
            other => bail!("the header has an unknown line: {other:?}"),
        }
    }
    bail!(
        "truncated at byte {}, within the header",
        source.len().min(MOST as u64)
    )
}

/// The number of channels for `depth` samples per pixel, which must match the tuple type.
fn channels(depth: u64, tuple: &str) -> Result<usize> {
    let expected = match tuple {
        "BLACKANDWHITE" | "GRAYSCALE" => 1,
        "BLACKANDWHITE_ALPHA" | "GRAYSCALE_ALPHA" => 2,
        "RGB" => 3,
        "RGB_ALPHA" => 4,
        // Without a type, the depth decides.
        "" => depth,
        other => bail!("pixels of the type {other:?} are not supported (grey and RGB are)"),
    };
    ensure!(
        expected == depth && (1..=4).contains(&depth),
        "pixels of {depth} samples and of the type {tuple:?} are not supported"
    );
    Ok(depth as usize)
}

/// The header, and how samples follow it.
fn form(shape: &Shape, metadata: &Metadata, _pages: usize) -> Result<Form> {
    let tuple = match shape.channels {
        1 => "GRAYSCALE",
        2 => "GRAYSCALE_ALPHA",
        3 => "RGB",
        _ => "RGB_ALPHA",
    };
    let header = format!(
        "P7\nWIDTH {}\nHEIGHT {}\nDEPTH {}\nMAXVAL {}\nTUPLTYPE {tuple}\nENDHDR\n",
        shape.width,
        shape.height,
        shape.channels,
        metadata.maxval.unwrap_or(shape.depth.full())
    );
    Ok(Form {
        header: header.into_bytes(),
        order: Order::Big,
        toggled: false,
        block: 1,
        ..Form::default()
    })
}
