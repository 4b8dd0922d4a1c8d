//! Encodes TIFF: for each page first its directory, whose size is known beforehand, then the
//! strips.

use super::directory::{Directory, header, lay};
use super::effort;
use super::fields::{self, LONG, LONG8, SHORT, field, put};
use super::ifd::tag;
use super::pack::{Compression, Effort, Packer};
use super::predictor::{self, Predictor};
use crate::formats::Encoder;
use crate::formats::format::{Bands, PageSurvey};
use crate::formats::ordered::ordered;
use crate::formats::raw::{self, Order, SampleEncoding};
use crate::image::metadata::{Field, Metadata, Own};
use crate::image::{Depth, Image, Shape};
use crate::os::Target;
use anyhow::{Context, Result, ensure};
use std::borrow::Cow;
use std::ops::Range;

/// Bytes of samples in a strip, unless a row has more: enough strips for many threads, each long
/// enough to hide the compressor's start and short enough for a core's cache.
const STRIP: usize = 256 << 10;

impl Encoder for TiffEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let shape = image.shape();
        let trial = self.trial(&shape).into_iter();
        let trial: Vec<Image> = trial.map(|rows| image.rows(rows)).collect();
        self.begin(&shape, metadata, &trial)?;
        self.band(image)
    }

    fn bands(&self, shape: &Shape) -> Option<Bands> {
        Some(Bands {
            unit: Layout::new(shape).rows,
            trial: self.trial(shape),
        })
    }

    fn begin(&mut self, shape: &Shape, metadata: &Metadata, trial: &[Image]) -> Result<()> {
        ensure!(
            shape.width.max(shape.height) <= u32::MAX as usize,
            "{}×{} pixels are more than a TIFF can hold",
            shape.width,
            shape.height
        );
        if self.end == 0 {
            self.begin_file(metadata)?;
        }
        let at = self.end.next_multiple_of(16);
        let at = if self.end <= 16 { self.end } else { at };
        let layout = Layout::new(shape);
        let mut open = Open {
            at,
            fields: fields::written(metadata, shape, self.order),
            signed: metadata.signed,
            effort: Effort::default(),
            spans: vec![(0, 0); layout.strips(shape)],
            layout,
            shape: *shape,
        };
        self.end = at + self.directory(&open).bytes.len() as u64;
        open.spans.clear();
        let samples = trial.iter().map(|rows| {
            let rows = to_file(Cow::Borrowed(rows), metadata.signed);
            let mut sample = Vec::new();
            let raw = rows.samples().as_bytes();
            differences(raw, &mut sample, &open.layout, shape, self.order);
            sample.truncate(effort::SAMPLE);
            sample
        });
        let samples: Vec<Vec<u8>> = samples.collect();
        open.effort = effort::choose(self.compression, &samples)?;
        if self.compression == Compression::None {
            self.target.reserve(self.end + shape.bytes() as u64)?;
        }
        self.open = Some(open);
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let mut open = self.open.take().context("a band of no page")?;
        let Open {
            layout,
            shape,
            effort,
            signed,
            ..
        } = &open;
        let (start, strip) = (self.end, layout.rows * layout.row);
        let mut spans = Vec::new();
        let mut end = start;
        let mut add_span = |len: usize| {
            spans.push((end, len as u64));
            end += len as u64;
        };
        if self.compression == Compression::None {
            let strips = band.samples().as_bytes().chunks(strip);
            strips.for_each(|strip| add_span(strip.len()));
            let encoding = SampleEncoding {
                depth: shape.depth,
                order: self.order,
                toggled: *signed,
            };
            raw::write(self.target, start, band.samples(), encoding)?;
        } else {
            let band = to_file(band, *signed);
            let strips: Vec<&[u8]> = band.samples().as_bytes().chunks(strip).collect();
            ordered(
                strips.len(),
                self.target,
                start,
                || Strip::new(self.compression, *effort),
                |i, strip| strip.fill(strips[i], layout, shape, self.order),
                |strip, _| add_span(strip.packed.len()),
            )?;
        }
        self.end = end;
        ensure!(
            self.big || self.end <= u32::MAX.into(),
            "its {} bytes are more than its directory can address",
            self.end
        );
        open.spans.append(&mut spans);
        if open.spans.len() < open.layout.strips(&open.shape) {
            self.open = Some(open);
            return Ok(());
        }
        let directory = self.directory(&open);
        self.target.write_at(&directory.bytes, open.at)?;
        let mut pointer = Vec::new();
        put(&mut pointer, open.at, self.wide(), self.order);
        self.target.write_at(&pointer, self.link)?;
        self.link = open.at + directory.link;
        Ok(())
    }

    fn length(&self) -> u64 {
        self.end
    }
}

/// Writes the image and returns the file's length in bytes. Alpha is marked as unassociated.
pub fn encode(image: &Image, compression: Compression, target: &Target) -> Result<u64> {
    let mut writer = TiffEncoder::new(target, compression, &[image.shape().into()]);
    writer.page(Cow::Borrowed(image), &Metadata::default())?;
    Ok(writer.end)
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
    /// The page that was begun, until its last rows come.
    open: Option<Open>,
}

/// A page of which some rows are still to come.
struct Open {
    /// Offset of its directory.
    at: u64,
    layout: Layout,
    shape: Shape,
    /// What its directory says beside the places of strips.
    fields: Vec<Field>,
    signed: bool,
    effort: Effort,
    /// Offset and length of each strip so far.
    spans: Vec<(u64, u64)>,
}

impl<'a> TiffEncoder<'a> {
    /// Creates a file for these pages: a BigTIFF if in the worst case it could exceed 4 GiB.
    pub fn new(
        target: &'a Target,
        compression: Compression,
        pages: &[PageSurvey],
    ) -> TiffEncoder<'a> {
        let worst = pages.iter().map(
            |PageSurvey {
                 shape,
                 metadata_bytes,
             }| {
                let layout = Layout::new(shape);
                let strip = compression.worst((layout.rows * layout.row) as u64);
                // A strip takes at most two entries of 8 bytes; the rest of the directory is small.
                layout.strips(shape) as u64 * (strip + 16) + 4096 + 2 * metadata_bytes
            },
        );
        TiffEncoder {
            target,
            compression,
            big: worst.fold(0, u64::saturating_add) > u64::from(u32::MAX),
            // On every machine, so that the same image gives the same bytes.
            order: Order::Little,
            end: 0,
            link: 0,
            open: None,
        }
    }

    /// Rows in the middle of some strips, on which the effort is tried.
    fn trial(&self, shape: &Shape) -> Vec<Range<usize>> {
        if matches!(self.compression, Compression::None | Compression::Lzw) {
            return Vec::new();
        }
        let layout = Layout::new(shape);
        let some = effort::SAMPLE.div_ceil(layout.row);
        let strips = effort::sampled_strips(layout.strips(shape));
        let rows = strips.map(|i| {
            let strip = i * layout.rows..((i + 1) * layout.rows).min(shape.height);
            let from = strip.start + (strip.len() - some.min(strip.len())) / 2;
            from..(from + some).min(strip.end)
        });
        rows.collect()
    }

    /// Writes the header.
    fn begin_file(&mut self, metadata: &Metadata) -> Result<()> {
        if let Own::Tiff { big_endian, .. } = metadata.own {
            self.order = Order::new(big_endian);
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

    /// The directory of a page.
    fn directory(&self, open: &Open) -> Directory {
        let Open {
            at,
            layout,
            shape,
            fields,
            spans,
            ..
        } = open;
        let offset = if self.big { LONG8 } else { LONG };
        let offsets: Vec<u64> = spans.iter().map(|span| span.0).collect();
        let lengths: Vec<u64> = spans.iter().map(|span| span.1).collect();
        let bits = vec![shape.depth.bits().into(); shape.channels];
        let number = |tag, kind, value: usize| field(self.order, tag, kind, &[value as u64]);
        let mut fields = fields.to_vec();
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
            let predictor = Predictor::for_depth(shape.depth).tag();
            fields.push(number(tag::PREDICTOR, SHORT, predictor));
        }
        let mut directory = lay(&mut fields, *at, self.order, self.big);
        // Samples are aligned, for programs that map the file.
        let end = (at + directory.bytes.len() as u64).next_multiple_of(16);
        directory.bytes.resize((end - at) as usize, 0);
        directory
    }
}

/// Samples as they are in the file, but for their byte order, where they are compressed.
fn to_file(mut image: Cow<Image>, signed: bool) -> Cow<Image> {
    let depth = image.shape().depth;
    if signed || depth.is_float() {
        raw::all_to_file(image.to_mut().samples_mut(), depth, signed);
    }
    image
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
    match Predictor::for_depth(depth) {
        Predictor::Samples => {
            predictor::apply(raw, out, layout.row, channels, depth);
            raw::reorder(out, depth, order);
        }
        // Its bytes have an order of their own.
        Predictor::Bytes => match depth {
            Depth::Double => predictor::apply_bytes::<8>(raw, out, layout.row, channels),
            _ => predictor::apply_bytes::<4>(raw, out, layout.row, channels),
        },
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
    fn new(shape: &Shape) -> Layout {
        let row = shape.row() * shape.depth.bytes();
        let rows = (STRIP / row).clamp(1, shape.height);
        Layout { row, rows }
    }

    fn strips(&self, shape: &Shape) -> usize {
        shape.height.div_ceil(self.rows)
    }
}
