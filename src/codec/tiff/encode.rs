//! Writing: header and directory first, in space whose size is known before, then the strips.

use super::ifd::tag;
use super::pack::{Compression, Packer};
use super::predictor;
use crate::codec::ordered::ordered;
use crate::codec::raw::{self, Order};
use crate::files::Target;
use crate::image::{Image, Shape};
use anyhow::{Result, ensure};

/// Bytes of samples in a strip, unless a row has more: enough strips for many threads, and each
/// long enough that the compressor's start does not count and short enough for a core's cache.
const STRIP: usize = 256 << 10;

/// Writes the image and returns the file's length. In the machine's byte order; compressed ones
/// with horizontal differencing; as BigTIFF if at worst 4 GiB do not hold it. Alpha is
/// marked as unassociated.
pub fn encode(image: &Image, compression: Compression, target: &Target) -> Result<u64> {
    let shape = image.shape();
    ensure!(
        shape.width.max(shape.height) <= u32::MAX as usize,
        "{}×{} pixels are more than a TIFF can hold",
        shape.width,
        shape.height
    );
    let layout = Layout::of(&shape, compression);
    let strips = layout.strips(&shape);
    let start = layout.directory(&shape, &vec![(0, 0); strips]).len() as u64;

    let mut spans: Vec<(u64, u64)> = Vec::with_capacity(strips);
    let mut end = start;
    let mut place = |len: usize| {
        spans.push((end, len as u64));
        end += len as u64;
    };
    let raw_strips = image.samples().as_bytes().chunks(layout.rows * layout.row);
    if compression == Compression::None {
        raw_strips.for_each(|strip| place(strip.len()));
        target.reserve(end)?;
        raw::write(target, start, image.samples(), Order::NATIVE)?;
    } else {
        let raw_strips: Vec<&[u8]> = raw_strips.collect();
        ordered(
            strips,
            (target, start),
            || Strip::new(compression),
            |i, strip| strip.fill(raw_strips[i], &layout, &shape),
            |strip, _| place(strip.packed.len()),
        )?;
    }
    target.write_at(&layout.directory(&shape, &spans), 0)?;
    Ok(end)
}

/// A strip and what makes it.
struct Strip {
    packer: Packer,
    differences: Vec<u8>,
    packed: Vec<u8>,
}

impl Strip {
    fn new(compression: Compression) -> Strip {
        Strip {
            packer: Packer::new(compression),
            differences: Vec::new(),
            packed: Vec::new(),
        }
    }

    fn fill(&mut self, raw: &[u8], layout: &Layout, shape: &Shape) -> Result<()> {
        self.differences.resize(raw.len(), 0);
        let (channels, depth) = (shape.channels, shape.depth);
        predictor::apply(raw, &mut self.differences, layout.row, channels, depth);
        self.packed = self.packer.pack(&self.differences)?;
        Ok(())
    }
}

impl AsRef<[u8]> for Strip {
    fn as_ref(&self) -> &[u8] {
        &self.packed
    }
}

/// How the file is laid out.
struct Layout {
    compression: Compression,
    /// Bytes in a row.
    row: usize,
    /// Rows in a strip.
    rows: usize,
    /// BigTIFF: offsets of 8 bytes.
    big: bool,
}

/// Types of values; TIFF 6.0, section 2, and BigTIFF.
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;
const LONG8: u16 = 16;

impl Layout {
    fn of(shape: &Shape, compression: Compression) -> Layout {
        let row = shape.row() * shape.depth.bytes();
        let rows = (STRIP / row).clamp(1, shape.height);
        let mut layout = Layout {
            compression,
            row,
            rows,
            big: false,
        };
        // A strip takes two entries of 8 bytes at most; the rest of the directory is small.
        let strips = layout.strips(shape) as u64;
        let worst = strips * (compression.worst((rows * row) as u64) + 16) + 4096;
        layout.big = worst > u64::from(u32::MAX);
        layout
    }

    fn strips(&self, shape: &Shape) -> usize {
        shape.height.div_ceil(self.rows)
    }

    /// Header and directory, for strips of these offsets and lengths.
    fn directory(&self, shape: &Shape, spans: &[(u64, u64)]) -> Vec<u8> {
        let offset = if self.big { LONG8 } else { LONG };
        let number = |value: usize| vec![value as u64];
        let predictor = if self.compression == Compression::None {
            1
        } else {
            2
        };
        let photometric = if shape.colours() == 3 { 2 } else { 1 };
        let bits = shape.depth.bits().into();
        let mut fields = vec![
            (tag::IMAGE_WIDTH, LONG, number(shape.width)),
            (tag::IMAGE_LENGTH, LONG, number(shape.height)),
            (tag::BITS_PER_SAMPLE, SHORT, vec![bits; shape.channels]),
            (tag::COMPRESSION, SHORT, vec![self.compression.tag()]),
            (tag::PHOTOMETRIC, SHORT, vec![photometric]),
            (
                tag::STRIP_OFFSETS,
                offset,
                spans.iter().map(|span| span.0).collect(),
            ),
            (tag::SAMPLES_PER_PIXEL, SHORT, number(shape.channels)),
            (tag::ROWS_PER_STRIP, LONG, number(self.rows)),
            (
                tag::STRIP_BYTE_COUNTS,
                offset,
                spans.iter().map(|span| span.1).collect(),
            ),
            // Baseline TIFF demands a resolution: 1/1 of no unit says that none is known.
            (tag::X_RESOLUTION, RATIONAL, vec![1, 1]),
            (tag::Y_RESOLUTION, RATIONAL, vec![1, 1]),
            (tag::PLANAR_CONFIGURATION, SHORT, vec![1]),
            (tag::RESOLUTION_UNIT, SHORT, vec![1]),
            (tag::PREDICTOR, SHORT, vec![predictor]),
            (tag::EXTRA_SAMPLES, SHORT, vec![2]),
            (tag::SAMPLE_FORMAT, SHORT, vec![1; shape.channels]),
        ];
        fields.retain(|&(tag, _, ref values)| match tag {
            tag::EXTRA_SAMPLES => shape.has_alpha(),
            tag::PREDICTOR => values[0] != 1,
            _ => true,
        });
        self.lay(&fields)
    }

    /// The header, the entries, and behind them the values that do not fit in an entry; padded to
    /// a multiple of 16 bytes, so that samples are aligned for those who map the file.
    fn lay(&self, fields: &[(u16, u16, Vec<u64>)]) -> Vec<u8> {
        let wide = if self.big { 8 } else { 4 };
        let mut file = Vec::new();
        file.extend_from_slice(if Order::NATIVE == Order::Big {
            b"MM"
        } else {
            b"II"
        });
        if self.big {
            put(&mut file, 43, 2);
            put(&mut file, 8, 2);
            put(&mut file, 0, 2);
            put(&mut file, 16, 8);
            put(&mut file, fields.len() as u64, 8);
        } else {
            put(&mut file, 42, 2);
            put(&mut file, 8, 4);
            put(&mut file, fields.len() as u64, 2);
        }
        let mut behind = Vec::new();
        let behind_start = file.len() + fields.len() * (4 + 2 * wide) + wide;
        for &(tag, kind, ref values) in fields {
            let (size, count) = match kind {
                SHORT => (2, values.len()),
                LONG8 => (8, values.len()),
                RATIONAL => (4, values.len() / 2),
                _ => (4, values.len()),
            };
            put(&mut file, tag.into(), 2);
            put(&mut file, kind.into(), 2);
            put(&mut file, count as u64, wide);
            let mut bytes = Vec::new();
            for &value in values {
                put(&mut bytes, value, size);
            }
            if bytes.len() <= wide {
                bytes.resize(wide, 0);
                file.append(&mut bytes);
            } else {
                put(&mut file, (behind_start + behind.len()) as u64, wide);
                behind.append(&mut bytes);
                behind.resize(behind.len().next_multiple_of(8), 0);
            }
        }
        put(&mut file, 0, wide);
        file.append(&mut behind);
        file.resize(file.len().next_multiple_of(16), 0);
        file
    }
}

/// Appends the low `size` bytes of a number, in the machine's byte order.
fn put(file: &mut Vec<u8>, number: u64, size: usize) {
    match size {
        2 => file.extend((number as u16).to_ne_bytes()),
        4 => file.extend((number as u32).to_ne_bytes()),
        _ => file.extend(number.to_ne_bytes()),
    }
}
