//! Reads the layout of an image from its directory, checked before memory is allocated: its shape,
//! its division into chunks, their compression, and whether the file is long enough to hold it.

use super::coded::Coded;
use super::grid::{Grid, Span};
use super::ifd::{Ifd, tag};
use super::old_jpeg;
use super::palette::Palette;
use super::predictor::Predictor;
use super::shape::{Form, form};
use super::unpack::Method;
use super::ycbcr::Ycbcr;
use crate::formats::raw::{self, Order};
use crate::image::Depth;
use anyhow::{Result, bail, ensure};

/// A page that can be decoded.
pub struct Page {
    /// The type of its samples.
    pub form: Form,
    /// The colours of its samples, if they are indices.
    pub palette: Option<Palette>,
    /// The byte order of samples.
    pub order: Order,
    /// Whether the bits of every byte in the file are in the opposite order (FillOrder 2).
    pub reversed: bool,
    /// The channel that is read, where each is a page of its own; otherwise 0.
    pub band: usize,
    /// The compression of each chunk.
    pub method: Method,
    /// The tables and options of a compression that is one of whole images, if it is.
    pub coded: Option<Coded>,
    /// How planes of luma and chroma become RGB, if they are that.
    pub planes: Option<Ycbcr>,
    /// The sample that pixels have in a chunk that is not in the file, as it is in memory.
    pub absent: Vec<u8>,
    /// The differences that are stored in place of samples, if any.
    pub predictor: Option<Predictor>,
    /// The division of the image into chunks.
    pub grid: Grid,
    /// The position of each chunk in the file: left to right, then top to bottom, then plane by
    /// plane.
    pub spans: Vec<Span>,
}

impl Page {
    /// Reads a page from its directory, in a file of `len` bytes; where each channel is a page, the one
    /// of `band`. Refuses unsupported kinds by name and, unless `damaged`, a page that the file is too
    /// short for.
    pub fn read(ifd: &Ifd, band: usize, len: u64, damaged: bool) -> Result<Page> {
        let form = form(ifd)?;
        let compression = ifd.value(tag::COMPRESSION)?.unwrap_or(1);
        let method = Method::of_tag(compression)?;
        let predictor = match ifd.value(tag::PREDICTOR)?.unwrap_or(1) {
            1 => None,
            2 => Some(Predictor::Samples),
            3 if form.shape.depth.is_float() => Some(Predictor::Bytes),
            3 => bail!("predictor 3 of integers is not supported: it is for floating point"),
            other => bail!("predictor {other} is not supported (1, 2 and 3 are)"),
        };
        ensure!(
            predictor.is_none() || form.has_whole_samples() || form.bits == 16,
            "predictor {} of {}-bit samples is not supported",
            predictor.map_or(1, Predictor::tag),
            form.bits
        );
        let (grid, spans, coded) = if method == Method::OldJpeg {
            let (grid, spans, old) = old_jpeg::read(ifd, &form, len)?;
            (grid, spans, Some(Coded::OldJpeg(old)))
        } else {
            let (grid, spans) = Grid::read(ifd, &form, method)?;
            let coded = Coded::read(ifd, method, &form, &grid)?;
            (grid, spans, coded)
        };
        let planes = if form.planar && ifd.value(tag::PHOTOMETRIC)? == Some(6) {
            Some(Ycbcr::of_planes(ifd, method)?)
        } else {
            None
        };
        let page = Page {
            palette: Palette::read(ifd, &form)?,
            band,
            coded,
            planes,
            absent: absent(ifd, &form, damaged)?,
            form,
            order: ifd.order(),
            reversed: ifd.value(tag::FILL_ORDER)? == Some(2),
            method,
            predictor,
            grid,
            spans,
        };
        ensure!(
            page.predictor.is_none() || page.ycbcr().is_none_or(|ycbcr| !ycbcr.is_subsampled()),
            "a predictor of subsampled YCbCr colours is not supported (convert it to RGB first)"
        );
        if !damaged {
            page.check(len)?;
        }
        Ok(page)
    }

    /// How its luma and chroma become RGB, unless a JPEG's decoder does that.
    pub fn ycbcr(&self) -> Option<&Ycbcr> {
        self.coded.as_ref().and_then(Coded::ycbcr)
    }

    /// The most bytes that one packed byte can expand to.
    fn expansion(&self) -> u64 {
        // Of luma of many pixels and one chroma, less than three bytes are made of each.
        let colours = if self.ycbcr().is_some() { 3 } else { 1 };
        colours * self.method.expansion()
    }

    /// Bytes in a row of a chunk.
    pub fn row(&self) -> usize {
        self.form.row(self.grid.width)
    }

    /// Chunks in a row of chunks.
    pub fn across(&self) -> usize {
        self.form.shape.width.div_ceil(self.grid.width)
    }

    /// Rows of chunks in one plane.
    pub fn down(&self) -> usize {
        self.form.shape.height.div_ceil(self.grid.height)
    }

    /// Refuses a file that is too short for the image that its directory claims, so that a false
    /// one takes no memory and no time: each chunk must lie within the file and be long enough for
    /// its samples at the best compression of its method, those past the image's border included;
    /// and so must all chunks together, since no byte may count twice.
    fn check(&self, len: u64) -> Result<()> {
        let noun = self.grid.noun();
        let end = |span: &Span| span.offset.checked_add(span.len);
        let beyond = |span: &Span| end(span).is_none_or(|end| end > len);
        if let Some(i) = self.spans.iter().position(beyond) {
            let last = self.spans.iter().filter_map(end).max();
            let last = last.filter(|&last| last > len).unwrap_or(u64::MAX);
            bail!("truncated at byte {len} of {last} ({noun} {i})");
        }
        let (mut packed, mut promised) = (0, 0u64);
        for (i, span) in self.spans.iter().enumerate() {
            if span.is_absent() {
                let bytes = self.unpacked(i);
                ensure!(
                    bytes <= MOST_ABSENT,
                    "{noun} {i} of {bytes} bytes is missing"
                );
                continue;
            }
            ensure!(span.len > 0, "{noun} {i} is missing");
            let most = span.len.saturating_mul(self.expansion());
            let needed = self.unpacked(i);
            ensure!(
                needed as u64 <= most,
                "{noun} {i} of {} bytes is too short for its {needed} bytes of samples",
                span.len
            );
            packed = len.min(packed + span.len);
            promised = promised.saturating_add(needed as u64);
        }
        ensure!(
            promised <= packed.saturating_mul(self.expansion()),
            "it claims {promised} bytes of samples, more than its {len} bytes can hold"
        );
        Ok(())
    }

    /// Bytes of the unpacked samples.
    pub fn bytes(&self) -> u64 {
        (0..self.spans.len()).map(|i| self.unpacked(i) as u64).sum()
    }

    /// Whether the samples are stored uncompressed and contiguously.
    pub fn is_contiguous(&self) -> bool {
        let mut end = self.spans[0].offset;
        self.method == Method::None
            && self.coded.is_none()
            && !self.grid.tiled
            && self.spans.iter().enumerate().all(|(i, span)| {
                let follows = span.offset == end && !span.is_absent();
                end = end.saturating_add(self.unpacked(i) as u64);
                follows
            })
    }

    /// Bytes of samples in chunk `i`: a tile is complete, the last strip ends with the image.
    pub fn unpacked(&self, i: usize) -> usize {
        let rows = if self.grid.tiled {
            self.grid.height
        } else {
            let above = i % self.down() * self.grid.height;
            self.grid.height.min(self.form.shape.height - above)
        };
        rows * self.row()
    }
}

/// The most bytes of a chunk that is not in the file: a file of few bytes makes no image of many with
/// one of them.
const MOST_ABSENT: usize = 64 << 20;

/// The sample of chunks that are not in the file: the NODATA value if there is one, else 0.
fn absent(ifd: &Ifd, form: &Form, damaged: bool) -> Result<Vec<u8>> {
    let size = form.shape.depth.bytes();
    let mut bytes = vec![0; size];
    let text = match ifd.text(tag::GDAL_NODATA) {
        Err(_) if damaged => None,
        text => text?,
    };
    let text = text.unwrap_or_default();
    let number: f64 = text.trim().parse().unwrap_or(0.0);
    if form.has_whole_samples() {
        match (form.shape.depth, form.signed) {
            (Depth::Float, _) => bytes = (number as f32).to_bits().to_ne_bytes().to_vec(),
            (Depth::Double, _) => bytes = number.to_bits().to_ne_bytes().to_vec(),
            // What does not fit is cut off by these conversions.
            (Depth::Eight, false) => bytes = vec![number as u8],
            (Depth::Eight, true) => bytes = vec![number as i8 as u8],
            (Depth::Sixteen, false) => bytes = (number as u16).to_ne_bytes().to_vec(),
            (Depth::Sixteen, true) => bytes = (number as i16).to_ne_bytes().to_vec(),
            (Depth::ThirtyTwo, false) => bytes = (number as u32).to_ne_bytes().to_vec(),
            (Depth::ThirtyTwo, true) => bytes = (number as i32).to_ne_bytes().to_vec(),
        }
        raw::to_memory(&mut bytes, form.shape.depth, form.signed);
    }
    Ok(bytes)
}
