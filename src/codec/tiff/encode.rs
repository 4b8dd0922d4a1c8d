//! Encodes TIFF: for each page first its directory, whose size is known beforehand, then the
//! strips.

use super::effort::{self, Effort};
use super::fields::{self, IFD, LONG, LONG8, SHORT, field, put};
use super::ifd::{size_of_kind, tag};
use super::pack::{Compression, Packer};
use super::predictor::{self, Predictor};
use crate::codec::Encoder;
use crate::codec::ordered::ordered;
use crate::codec::raw::{self, Order};
use crate::files::Target;
use crate::image::{Depth, Image, Shape};
use crate::metadata::{Field, Metadata, Own, Value};
use anyhow::{Result, ensure};
use std::borrow::Cow;

/// Bytes of samples in a strip, unless a row has more: enough strips for many threads, each long
/// enough to hide the compressor's start and short enough for a core's cache.
const STRIP: usize = 256 << 10;

impl Encoder for TiffEncoder<'_> {
    /// Samples in memory become those of the file here, or where uncompressed ones are written.
    fn page(&mut self, mut image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let depth = image.shape().depth;
        if self.compression != Compression::None && (metadata.signed || depth == Depth::Float) {
            raw::all_to_file(image.to_mut().samples_mut(), depth, metadata.signed);
        }
        self.add(&image, metadata)
    }

    fn length(&self) -> u64 {
        self.end
    }
}

/// Writes the image and returns the file's length in bytes. Alpha is marked as unassociated.
pub fn encode(image: &Image, compression: Compression, target: &Target) -> Result<u64> {
    let mut writer = TiffEncoder::new(target, compression, [(image.shape(), 0)]);
    writer.page(Cow::Borrowed(image), &Metadata::default())?;
    Ok(writer.end)
}

/// The bytes of a TIFF file with one directory of these fields and no image.
pub fn alone(mut fields: Vec<Field>, order: Order) -> Vec<u8> {
    let mut file = header(order, false);
    put(&mut file, 8, 4, order);
    let mut directory = lay(&mut fields, 8, order, false);
    file.append(&mut directory.bytes);
    file
}

/// The file header (TIFF 6.0, section 2; BigTIFF), up to the offset of the first directory.
fn header(order: Order, big: bool) -> Vec<u8> {
    let mut head: Vec<u8> = match order {
        Order::Big => b"MM".into(),
        Order::Little => b"II".into(),
    };
    if big {
        for number in [43, 8, 0] {
            put(&mut head, number, 2, order);
        }
    } else {
        put(&mut head, 42, 2, order);
    }
    head
}

/// Encodes a file page by page. The byte order is that of the TIFF file that the first page came
/// from, or else the machine's; compressed pages have horizontal differencing (Predictor 2, or 3 of
/// floating point).
pub struct TiffEncoder<'a> {
    target: &'a Target,
    compression: Compression,
    /// Whether the file is a BigTIFF, with offsets of 8 bytes.
    big: bool,
    order: Order,
    /// Bytes written so far.
    end: u64,
    /// Offset of the field that will hold the offset of the next page's directory.
    link: u64,
}

impl<'a> TiffEncoder<'a> {
    /// Creates a file for pages of these shapes and bytes of metadata: a BigTIFF if in the worst
    /// case it could exceed 4 GiB.
    pub fn new(
        target: &'a Target,
        compression: Compression,
        pages: impl IntoIterator<Item = (Shape, u64)>,
    ) -> TiffEncoder<'a> {
        let worst = pages.into_iter().map(|(shape, metadata)| {
            let layout = Layout::of(&shape);
            let strip = compression.worst((layout.rows * layout.row) as u64);
            // A strip takes at most two entries of 8 bytes; the rest of the directory is small.
            layout.strips(&shape) as u64 * (strip + 16) + 4096 + 2 * metadata
        });
        TiffEncoder {
            target,
            compression,
            big: worst.fold(0, u64::saturating_add) > u64::from(u32::MAX),
            // On every machine, so that the same image gives the same bytes.
            order: Order::Little,
            end: 0,
            link: 0,
        }
    }

    fn add(&mut self, image: &Image, metadata: &Metadata) -> Result<()> {
        let shape = image.shape();
        ensure!(
            shape.width.max(shape.height) <= u32::MAX as usize,
            "{}×{} pixels are more than a TIFF can hold",
            shape.width,
            shape.height
        );
        if self.end == 0 {
            self.begin(metadata)?;
        }
        let at = self.end.next_multiple_of(16);
        let at = if self.end <= 16 { self.end } else { at };
        let layout = Layout::of(&shape);
        let fields = fields::written(metadata, &shape, self.order);
        let strips = layout.strips(&shape);
        let empty = self.directory(&layout, &shape, &fields, &vec![(0, 0); strips], at);
        let start = at + empty.bytes.len() as u64;

        let mut spans: Vec<(u64, u64)> = Vec::with_capacity(strips);
        let mut end = start;
        let mut place = |len: usize| {
            spans.push((end, len as u64));
            end += len as u64;
        };
        let raw_strips = image.samples().as_bytes().chunks(layout.rows * layout.row);
        if self.compression == Compression::None {
            raw_strips.for_each(|strip| place(strip.len()));
            self.target.reserve(end)?;
            let form = (self.order, metadata.signed);
            raw::write(self.target, start, image.samples(), shape.depth, form)?;
        } else {
            let raw_strips: Vec<&[u8]> = raw_strips.collect();
            let effort = self.effort(&raw_strips, &layout, &shape)?;
            ordered(
                strips,
                (self.target, start),
                || Strip::new(self.compression, effort),
                |i, strip| strip.fill(raw_strips[i], &layout, &shape, self.order),
                |strip, _| place(strip.packed.len()),
            )?;
        }
        ensure!(
            self.big || end <= u32::MAX.into(),
            "its {end} bytes are more than its directory can address"
        );
        let directory = self.directory(&layout, &shape, &fields, &spans, at);
        self.target.write_at(&directory.bytes, at)?;
        let mut pointer = Vec::new();
        put(&mut pointer, at, self.wide(), self.order);
        self.target.write_at(&pointer, self.link)?;
        (self.end, self.link) = (end, at + directory.link);
        Ok(())
    }

    /// The effort that a trial on rows in the middle of some strips recommends.
    fn effort(&self, strips: &[&[u8]], layout: &Layout, shape: &Shape) -> Result<Effort> {
        let sample = |i: usize| {
            let (rows, most) = (strips[i].len() / layout.row, effort::SAMPLE);
            let some = most.div_ceil(layout.row).min(rows);
            let from = (rows - some) / 2 * layout.row;
            let mut sample = Vec::new();
            let raw = &strips[i][from..from + some * layout.row];
            differences(raw, &mut sample, layout, shape, self.order);
            sample.truncate(most);
            sample
        };
        let samples: Vec<Vec<u8>> = effort::places(strips.len()).map(sample).collect();
        Effort::of(self.compression, &samples)
    }

    /// Writes the header.
    fn begin(&mut self, metadata: &Metadata) -> Result<()> {
        if let Own::Tiff { big_endian, .. } = metadata.own {
            self.order = if big_endian {
                Order::Big
            } else {
                Order::Little
            };
        }
        let head = header(self.order, self.big);
        self.link = head.len() as u64;
        self.end = self.link + self.wide() as u64;
        self.target.write_at(&head, 0)
    }

    /// Bytes of an offset: 4, or 8 in a BigTIFF.
    fn wide(&self) -> usize {
        if self.big { 8 } else { 4 }
    }

    /// The directory at offset `at` of a page whose strips have these offsets and lengths.
    fn directory(
        &self,
        layout: &Layout,
        shape: &Shape,
        metadata: &[Field],
        spans: &[(u64, u64)],
        at: u64,
    ) -> Directory {
        let offset = if self.big { LONG8 } else { LONG };
        let offsets: Vec<u64> = spans.iter().map(|span| span.0).collect();
        let lengths: Vec<u64> = spans.iter().map(|span| span.1).collect();
        let bits = vec![shape.depth.bits().into(); shape.channels];
        let number = |tag, kind, value: usize| field(self.order, tag, kind, &[value as u64]);
        let mut fields = metadata.to_vec();
        fields.extend([
            number(tag::IMAGE_WIDTH, LONG, shape.width),
            number(tag::IMAGE_LENGTH, LONG, shape.height),
            field(self.order, tag::BITS_PER_SAMPLE, SHORT, &bits),
            number(tag::COMPRESSION, SHORT, self.compression.tag() as usize),
            field(self.order, tag::STRIP_OFFSETS, offset, &offsets),
            number(tag::SAMPLES_PER_PIXEL, SHORT, shape.channels),
            number(tag::ROWS_PER_STRIP, LONG, layout.rows),
            field(self.order, tag::STRIP_BYTE_COUNTS, offset, &lengths),
            number(tag::PLANAR_CONFIGURATION, SHORT, 1),
        ]);
        if self.compression != Compression::None {
            let predictor = Predictor::of(shape.depth).tag();
            fields.push(number(tag::PREDICTOR, SHORT, predictor));
        }
        let mut directory = lay(&mut fields, at, self.order, self.big);
        // Samples are aligned, for programs that map the file.
        let end = (at + directory.bytes.len() as u64).next_multiple_of(16);
        directory.bytes.resize((end - at) as usize, 0);
        directory
    }
}

/// Lays out a directory at offset `at`: its entries, and after them the values that do not fit into
/// an entry.
fn lay(fields: &mut [Field], at: u64, order: Order, big: bool) -> Directory {
    fields.sort_by_key(|field| field.tag);
    let wide = if big { 8 } else { 4 };
    let put = |bytes: &mut Vec<u8>, number, size| put(bytes, number, size, order);
    let mut bytes = Vec::new();
    put(&mut bytes, fields.len() as u64, if big { 8 } else { 2 });
    let link = bytes.len() + fields.len() * (4 + 2 * wide);
    let mut behind = Vec::new();
    let behind_at = at + (link + wide) as u64;
    for field in fields {
        put(&mut bytes, field.tag.into(), 2);
        match &mut field.value {
            Value::Bytes(value) => {
                let size = size_of_kind(field.kind).unwrap_or(1) as usize;
                put(&mut bytes, field.kind.into(), 2);
                put(&mut bytes, (value.len() / size) as u64, wide);
                if value.len() <= wide {
                    bytes.extend_from_slice(value);
                    bytes.resize(bytes.len() + wide - value.len(), 0);
                    continue;
                }
                put(&mut bytes, behind_at + behind.len() as u64, wide);
                behind.extend_from_slice(value);
            }
            Value::Directory(inner) => {
                let kind = if big {
                    LONG8
                } else if field.kind == IFD {
                    IFD
                } else {
                    LONG
                };
                put(&mut bytes, kind.into(), 2);
                put(&mut bytes, 1, wide);
                let inner_at = behind_at + behind.len() as u64;
                put(&mut bytes, inner_at, wide);
                behind.append(&mut lay(inner, inner_at, order, big).bytes);
            }
        }
        // Each value is word-aligned, wherever the directory begins.
        while !(behind_at + behind.len() as u64).is_multiple_of(8) {
            behind.push(0);
        }
    }
    put(&mut bytes, 0, wide);
    bytes.append(&mut behind);
    Directory {
        bytes,
        link: link as u64,
    }
}

/// The bytes of a directory, and the position in them of the next page's offset.
struct Directory {
    bytes: Vec<u8>,
    link: u64,
}

/// Makes one strip.
struct Strip {
    /// With the state that is reused from strip to strip; none before the first.
    packer: Option<Packer>,
    how: (Compression, Effort),
    differences: Vec<u8>,
    packed: Vec<u8>,
}

impl Strip {
    fn new(compression: Compression, effort: Effort) -> Strip {
        Strip {
            packer: None,
            how: (compression, effort),
            differences: Vec::new(),
            packed: Vec::new(),
        }
    }

    fn fill(&mut self, raw: &[u8], layout: &Layout, shape: &Shape, order: Order) -> Result<()> {
        differences(raw, &mut self.differences, layout, shape, order);
        let packer = match &mut self.packer {
            Some(packer) => packer,
            none => none.insert(Packer::new(self.how.0, self.how.1)?),
        };
        self.packed = packer.pack(&self.differences)?;
        Ok(())
    }
}

/// What is stored of rows: their differences, in the byte order of the file.
fn differences(raw: &[u8], out: &mut Vec<u8>, layout: &Layout, shape: &Shape, order: Order) {
    out.resize(raw.len(), 0);
    let (channels, depth) = (shape.channels, shape.depth);
    match Predictor::of(depth) {
        Predictor::Samples => {
            predictor::apply(raw, out, layout.row, channels, depth);
            raw::reorder(out, depth, order);
        }
        // Its bytes have an order of their own.
        Predictor::Bytes => predictor::apply_bytes(raw, out, layout.row, channels),
    }
}

impl AsRef<[u8]> for Strip {
    fn as_ref(&self) -> &[u8] {
        &self.packed
    }
}

/// The division of a page into strips.
struct Layout {
    /// Bytes in a row.
    row: usize,
    /// Rows in a strip.
    rows: usize,
}

impl Layout {
    fn of(shape: &Shape) -> Layout {
        let row = shape.row() * shape.depth.bytes();
        let rows = (STRIP / row).clamp(1, shape.height);
        Layout { row, rows }
    }

    fn strips(&self, shape: &Shape) -> usize {
        shape.height.div_ceil(self.rows)
    }
}
