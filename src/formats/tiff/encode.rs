//! Encodes TIFF: for each page first its directory, whose size is known beforehand, then the
//! strips.

use super::axes;
use super::block::{Block, BlockCoding, to_file};
use super::description;
use super::directory::{Directory, header, lay};
use super::effort;
use super::fields::{self, LONG, LONG8, field, put};
use super::ifd::tag;
use super::pack::Compression;
use crate::formats::Encoder;
use crate::formats::format::{Bands, PageSurvey};
use crate::formats::ordered::ordered;
use crate::formats::raw::{self, Order};
use crate::image::metadata::{Field, Metadata, Own};
use crate::image::{Image, Shape};
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
        let trial = trial(self.compression, &shape).into_iter();
        let trial: Vec<Image> = trial.map(|rows| image.rows(rows)).collect();
        self.begin(&shape, metadata, &trial)?;
        self.band(image)
    }

    fn bands(&self, shape: &Shape) -> Option<Bands> {
        Some(Bands {
            unit: StripLayout::new(shape).rows,
            trial: trial(self.compression, shape),
        })
    }

    fn begin(&mut self, shape: &Shape, metadata: &Metadata, trial: &[Image]) -> Result<()> {
        check_size(shape)?;
        if self.end == 0 {
            self.begin_file(metadata)?;
        }
        let at = if self.end <= 16 {
            self.end
        } else {
            next_directory(self.end, shape)
        };
        let layout = StripLayout::new(shape);
        let mut coding = BlockCoding::new(shape, self.compression, self.order, metadata.signed);
        coding.choose_effort(trial)?;
        let mut open = Open {
            at,
            fields: fields::written(metadata, shape, self.order),
            coding,
            spans: vec![(0, 0); layout.strips(shape)],
            layout,
            shape: *shape,
        };
        self.end = at + self.directory(&open).bytes.len() as u64;
        if self.misplaces_pages(&open) {
            open.fields
                .retain(|field| field.tag != tag::IMAGE_DESCRIPTION);
            self.end = at + self.directory(&open).bytes.len() as u64;
        }
        open.spans.clear();
        if self.compression == Compression::None {
            self.target.reserve(self.end + shape.bytes() as u64)?;
        }
        self.open = Some(open);
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let mut open = self.open.take().context("a band of no page")?;
        let Open { layout, coding, .. } = &open;
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
            raw::write(self.target, start, band.samples(), coding.samples)?;
        } else {
            let band = to_file(band, coding.samples.toggled);
            let strips: Vec<&[u8]> = band.samples().as_bytes().chunks(strip).collect();
            ordered(
                strips.len(),
                self.target,
                start,
                || Block::new(*coding),
                |i, block| block.fill(strips[i]),
                |block, _| add_span(block.as_ref().len()),
            )?;
        }
        self.end = end;
        check_length(self.end, self.big)?;
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
    layout: StripLayout,
    shape: Shape,
    /// What its directory says beside the places of strips.
    fields: Vec<Field>,
    coding: BlockCoding,
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
                let layout = StripLayout::new(shape);
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

    /// Whether the description would make tifffile read wrong samples for all pages but the first. It does not look at the other
    /// directories, and takes the bytes after the first page for the other pages, if the uncompressed samples of all pages are fewer
    /// bytes than lie between the first two directories (its own description), or fit before the second directory (ImageJ's).
    fn misplaces_pages(&self, open: &Open) -> bool {
        let page = open.shape.bytes() as u64;
        let next = next_directory(self.end + page, &open.shape);
        let is_before_next = |text: &str| {
            let images = description::images(text).map(|images| page.saturating_mul(images as u64));
            let samples = description::shaped_samples(text);
            let shaped = samples.map(|all| all.saturating_mul(open.shape.depth.bytes() as u64));
            images.is_some_and(|all| all > page && self.end.saturating_add(all) <= next)
                || shaped.is_some_and(|all| all > page && all < next - open.at)
        };
        self.compression == Compression::None
            && axes::description(&open.fields).is_some_and(is_before_next)
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
        let mut fields = [&fields[..], &open.coding.fields(shape)].concat();
        fields.extend([
            field(self.order, tag::STRIP_OFFSETS, offset, &offsets),
            field(self.order, tag::ROWS_PER_STRIP, LONG, &[layout.rows as u64]),
            field(self.order, tag::STRIP_BYTE_COUNTS, offset, &lengths),
        ]);
        let mut directory = lay(&mut fields, *at, self.order, self.big);
        // Samples are aligned, for programs that map the file.
        let end = (at + directory.bytes.len() as u64).next_multiple_of(16);
        directory.bytes.resize((end - at) as usize, 0);
        directory
    }
}

/// The offset of the directory of a page after samples that end at `end`. It is aligned to 16 bytes, or only to a word (TIFF 6.0,
/// section 2) if a page is smaller: tifffile would read the bytes between as another page of an ImageJ stack.
fn next_directory(end: u64, page: &Shape) -> u64 {
    end.next_multiple_of(if page.bytes() < 16 { 2 } else { 16 })
}

/// Refuses a page whose sides no directory can state.
///
/// # Errors
/// Names the size.
pub fn check_size(shape: &Shape) -> Result<()> {
    ensure!(
        shape.width.max(shape.height) <= u32::MAX as usize,
        "{}×{} pixels are more than a TIFF can hold",
        shape.width,
        shape.height
    );
    Ok(())
}

/// Refuses a file that the offsets of its directories cannot address.
///
/// # Errors
/// Names the length.
pub fn check_length(bytes: u64, big: bool) -> Result<()> {
    ensure!(
        big || bytes <= u32::MAX.into(),
        "its {bytes} bytes are more than its directory can address"
    );
    Ok(())
}

/// Rows in the middle of some strips of a page, on which the effort is tried.
pub fn trial(compression: Compression, shape: &Shape) -> Vec<Range<usize>> {
    if matches!(compression, Compression::None | Compression::Lzw) {
        return Vec::new();
    }
    let layout = StripLayout::new(shape);
    let some = effort::SAMPLE.div_ceil(layout.row);
    let strips = effort::sampled_strips(layout.strips(shape));
    let rows = strips.map(|i| {
        let strip = i * layout.rows..((i + 1) * layout.rows).min(shape.height);
        let from = strip.start + (strip.len() - some.min(strip.len())) / 2;
        from..(from + some).min(strip.end)
    });
    rows.collect()
}

/// The division of a page into strips.
struct StripLayout {
    /// Bytes in a row.
    row: usize,
    /// Rows in a strip.
    rows: usize,
}

impl StripLayout {
    fn new(shape: &Shape) -> StripLayout {
        let row = shape.row() * shape.depth.bytes();
        let rows = (STRIP / row).clamp(1, shape.height);
        StripLayout { row, rows }
    }

    fn strips(&self, shape: &Shape) -> usize {
        shape.height.div_ceil(self.rows)
    }
}
