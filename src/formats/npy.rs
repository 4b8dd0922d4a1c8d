//! NumPy's `.npy` (NumPy Enhancement Proposal 1, versions 1.0 to 3.0): integers of 8, 16 and 32
//! bits and floating point of 32 and 64, in C order.
//!
//! An array's shape is (height, width), (height, width, channels), (pages, height, width) or (pages, height, width,
//! channels), with 1 to 4 channels. If the last of three axes is at most 4, it is the channels. A second or fourth channel
//! is opacity, as in imageio and Pillow.

use super::format::{Decoder, Format};
use super::raster::{Form, Layout, RasterDecoder, RasterEncoder};
use super::raw::Order;
use crate::image::metadata::Metadata;
use crate::image::{Depth, Shape};
use crate::os::Source;
use anyhow::{Context, Result, bail, ensure};

/// The first bytes of every file.
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The most bytes of a header.
const MOST: usize = 64 << 10;

/// NumPy's array files.
pub static FORMAT: Format = Format {
    name: "NumPy",
    id: "npy",
    title: "NumPy array (.npy) of uint8 to uint32, int8 to int32, float32, float64, bool",
    extensions: &["npy"],
    sniff: |head| head.starts_with(MAGIC),
    decoder,
    encoder: Some(|target, _, pages| Ok(Box::new(RasterEncoder::new(target, form, pages.len())))),
    ..Format::DEFAULTS
};

fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let (text, start) = header(source)?;
    let layout = layout(&text, start)?;
    Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
}

/// The header's text, a Python dictionary, and the offset of the first sample.
fn header(source: &Source) -> Result<(String, u64)> {
    let mut head = [0; 12];
    let read = source.read_up_to(&mut head, 0)?;
    ensure!(head.starts_with(MAGIC), "it is not a NumPy file");
    let (length, start) = match head {
        [.., 1, _, a, b, _, _] => (usize::from(u16::from_le_bytes([a, b])), 10),
        [.., 2 | 3, _, a, b, c, d] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
        [.., version, minor, _, _, _, _] => {
            bail!("version {version}.{minor} of the format is not supported (1.0 to 3.0 are)")
        }
    };
    ensure!(read >= start, "truncated at byte {read}, within the header");
    ensure!(length <= MOST, "a header of {length} bytes is too long");
    let mut text = vec![0; length];
    source.read_at(&mut text, start as u64)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok((text, (start + length) as u64))
}

/// The text after a key of the header.
fn value<'a>(text: &'a str, key: &str) -> Result<&'a str> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let value = quoted.iter().find_map(|quoted| {
        let (_, after) = text.split_once(quoted)?;
        after.trim_start().strip_prefix(':')
    });
    let value = value.with_context(|| format!("the header has no '{key}'"))?;
    Ok(value.trim_start())
}

/// The layout that a header describes.
fn layout(text: &str, start: u64) -> Result<Layout> {
    let kind = kind(value(text, "descr")?)?;
    let ((depth, signed, maxval), order) = (samples(&kind)?, order(&kind));
    ensure!(
        value(text, "fortran_order")?.starts_with("False"),
        "its array is in Fortran order (numpy.ascontiguousarray makes it C order)"
    );
    let axes = axes(value(text, "shape")?)?;
    let (pages, height, width, channels) = match axes[..] {
        [height, width] => (1, height, width, 1),
        [height, width, channels @ 1..=4] => (1, height, width, channels),
        [pages, height, width] => (pages, height, width, 1),
        [pages, height, width, channels @ 1..=4] => (pages, height, width, channels),
        _ => bail!(
            "an array of the shape {axes:?} is not an image: (height, width), optionally with pages first and channels (1 to 4) last"
        ),
    };
    ensure!(pages > 0, "the image is empty (0 pages)");
    let shape = Shape::checked(width, height, channels as usize, depth)?;
    let mut layout = Layout::new(shape, start);
    layout.pages = usize::try_from(pages)?;
    layout.order = order;
    layout.toggled = signed;
    layout.metadata = Metadata {
        signed,
        maxval,
        ..Metadata::default()
    };
    Ok(layout)
}

/// The type of the samples, as `<u2`.
fn kind(descr: &str) -> Result<String> {
    let quote = descr.chars().next().filter(|quote| "'\"".contains(*quote));
    let kind = quote.and_then(|quote| descr[1..].split(quote).next());
    let kind = kind.context("arrays of structures are not supported (arrays of numbers are)")?;
    Ok(kind.to_owned())
}

/// The byte order of a type.
fn order(kind: &str) -> Order {
    match kind.as_bytes().first() {
        Some(b'>') => Order::Big,
        Some(b'=') => Order::NATIVE,
        _ => Order::Little,
    }
}

/// The depth and the sign of a type, and its maxval.
fn samples(kind: &str) -> Result<(Depth, bool, Option<u16>)> {
    Ok(match kind.trim_start_matches(['<', '>', '=', '|']) {
        "u1" => (Depth::Eight, false, None),
        "i1" => (Depth::Eight, true, None),
        "b1" => (Depth::Eight, false, Some(1)),
        "u2" => (Depth::Sixteen, false, None),
        "i2" => (Depth::Sixteen, true, None),
        "u4" => (Depth::ThirtyTwo, false, None),
        "i4" => (Depth::ThirtyTwo, true, None),
        "f4" => (Depth::Float, false, None),
        "f8" => (Depth::Double, false, None),
        _ => bail!(
            "samples of the type {kind:?} are not supported (integers of 8, 16 and 32 bits are, and \
             float32 and float64): convert them to one of these, with a scale of your choice"
        ),
    })
}

/// The numbers of a tuple as `(2, 3)`.
fn axes(shape: &str) -> Result<Vec<u64>> {
    let inside = shape
        .strip_prefix('(')
        .and_then(|rest| rest.split(')').next());
    let inside = inside.context("the header's 'shape' is not a tuple")?;
    let numbers = inside
        .split(',')
        .map(str::trim)
        .filter(|number| !number.is_empty());
    numbers
        .map(|number| {
            // Python 2 wrote long integers with an L.
            let parsed = number.trim_end_matches('L').parse().ok();
            parsed
                .with_context(|| format!("the header's 'shape' has no number where {number:?} is"))
        })
        .collect()
}

/// The header, and how samples follow it.
fn form(shape: &Shape, metadata: &Metadata, pages: usize) -> Result<Form> {
    let kind = match (shape.depth, metadata.signed) {
        (Depth::Eight, false) => "|u1",
        (Depth::Eight, true) => "|i1",
        (Depth::Sixteen, false) => "<u2",
        (Depth::Sixteen, true) => "<i2",
        (Depth::ThirtyTwo, false) => "<u4",
        (Depth::ThirtyTwo, true) => "<i4",
        (Depth::Float, _) => "<f4",
        (Depth::Double, _) => "<f8",
    };
    let mut axes = vec![shape.height, shape.width];
    if pages > 1 {
        axes.insert(0, pages);
    }
    // Three axes with a last one of up to 4 would be read as one image.
    if shape.channels > 1 || (pages > 1 && shape.width <= 4) {
        axes.push(shape.channels);
    }
    let axes: Vec<String> = axes.iter().map(usize::to_string).collect();
    let text = format!(
        "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}",
        axes.join(", ")
    );
    // Padded with spaces and a line end, so that samples begin at a multiple of 64.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut header = [&MAGIC[..], &[1, 0], &(length as u16).to_le_bytes()].concat();
    header.extend(format!("{text:<width$}\n", width = length - 1).bytes());
    Ok(Form {
        header,
        order: Order::Little,
        toggled: metadata.signed,
        block: 1,
        ..Form::default()
    })
}
