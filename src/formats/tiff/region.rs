//! Decodes a region of a page: only the strips or tiles that it touches, and of uncompressed ones only its rows.

use super::decode::Worker;
use super::ifd::{Ifd, tag};
use super::page::Page;
use super::shape;
use super::unpack::Method;
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::raw;
use crate::image::{Image, Region, Samples};
use crate::os::Source;
use anyhow::{Result, anyhow};
use rayon::prelude::*;
use std::ops::Range;

/// The columns and the rows of the grid of chunks that a region touches.
struct Cells {
    across: Range<usize>,
    down: Range<usize>,
}

impl Cells {
    fn new(region: &Region, width: usize, height: usize) -> Cells {
        let cells =
            |first: usize, count: usize, size: usize| first / size..(first + count).div_ceil(size);
        Cells {
            across: cells(region.left, region.width, width),
            down: cells(region.top, region.height, height),
        }
    }

    fn count(&self) -> usize {
        self.across.len() * self.down.len()
    }
}

/// Whether rows of chunks can be read alone.
fn has_stored_rows(page: &Page) -> bool {
    page.method == Method::None && page.coded.is_none()
}

/// Which chunks, or rows, a region needs, for messages.
pub fn parts(page: &Page, region: &Region) -> String {
    let height = page.form.shape.height;
    if has_stored_rows(page) && !page.grid.tiled {
        return format!("{} of {height} rows", region.height);
    }
    let cells = Cells::new(region, page.grid.width, page.grid.height);
    let (count, planes) = (cells.count(), page.planes().len());
    let all = page.across() * page.down() * planes;
    format!("{} of {all} {}s", count * planes, page.grid.noun())
}

/// Bytes of the chunks in memory while a region is decoded: one for each thread.
///
/// # Errors
/// A damaged directory.
pub fn memory(ifd: &Ifd, region: &Region) -> Result<u64> {
    let shape::Form { shape, stored, .. } = shape::form(ifd)?;
    let method = Method::of_tag(ifd.value(tag::COMPRESSION)?.unwrap_or(1))?;
    let (width, height) = match ifd.value(tag::TILE_WIDTH)? {
        // One image may be stored in place of all chunks.
        _ if method == Method::OldJpeg => (None, None),
        Some(width) => (Some(width), ifd.value(tag::TILE_LENGTH)?),
        None => (None, ifd.value(tag::ROWS_PER_STRIP)?),
    };
    let side = |chunk: Option<u64>, image: usize| {
        let chunk = chunk.and_then(|side| usize::try_from(side).ok());
        chunk.filter(|&side| side > 0).unwrap_or(image)
    };
    let tiled = width.is_some();
    let (width, mut height) = (side(width, shape.width), side(height, shape.height));
    if !tiled {
        height = height.min(shape.height);
    }
    let threads = Cells::new(region, width, height)
        .count()
        .min(rayon::current_num_threads());
    if method == Method::None {
        height = height.min(region.height);
    }
    let sample = (stored * shape.depth.bytes()) as u64;
    let chunk = (width as u64)
        .saturating_mul(height as u64)
        .saturating_mul(sample);
    Ok(chunk.saturating_mul(threads as u64))
}

/// Decodes a region of a page, before a palette gives it colours.
///
/// # Errors
/// Damage in the chunks that it touches.
pub fn decode(source: &Source, page: &Page, region: &Region) -> Result<Image> {
    let whole = page.form.shape;
    if page.is_stored() && page.predictor.is_none() {
        let row_start = |y: usize| {
            let (strip, inside) = (y / page.grid.height, y % page.grid.height);
            page.spans[strip].offset + (inside * page.row()) as u64
        };
        return raw::read_region(source, &whole, region, row_start, |piece| {
            page.encoding().to_memory(piece);
            Ok(())
        });
    }
    let shape = region.output(whole);
    let mut samples = Samples::any(&shape)?;
    let row = shape.row() * shape.depth.bytes();
    let rows = samples.as_bytes_mut().chunks_mut(row);
    let policy = ErrorPolicy::default();
    let failure = parts_of_cells(page, region, rows)
        .into_par_iter()
        .map_init(
            || CellDecoder::new(source, page, &policy),
            |decoder, part| decoder.fill(part).err(),
        )
        .find_map_first(|failure| failure);
    match failure {
        Some(error) => Err(error),
        None => Ok(Image::new(shape, samples)),
    }
}

/// The part of a region that lies in one cell of the grid.
struct CellPart<'a> {
    /// The column and the row of the cell in the grid.
    x: usize,
    down: usize,
    /// The rows of the cell that are in the region.
    rows: Range<usize>,
    /// The columns of the cell that are in the region, in pixels.
    columns: Range<usize>,
    /// Where they go: the bytes of each row.
    place: Vec<&'a mut [u8]>,
}

/// Divides the rows of a region among the cells of the grid, from left to right and from top to bottom.
fn parts_of_cells<'a>(
    page: &Page,
    region: &Region,
    mut rows: impl Iterator<Item = &'a mut [u8]>,
) -> Vec<CellPart<'a>> {
    let (width, height) = (page.grid.width, page.grid.height);
    let cells = Cells::new(region, width, height);
    let inside = |cell: usize, size: usize, first: usize, count: usize| {
        let start = cell * size;
        first.max(start) - start..(first + count).min(start + size) - start
    };
    let pixel = page.form.shape.pixel_bytes();
    let mut parts: Vec<CellPart> = Vec::with_capacity(cells.count());
    for down in cells.down {
        let first = parts.len();
        let own_rows = inside(down, height, region.top, region.height);
        parts.extend(cells.across.clone().map(|x| CellPart {
            x,
            down,
            rows: own_rows.clone(),
            columns: inside(x, width, region.left, region.width),
            place: Vec::with_capacity(own_rows.len()),
        }));
        for mut row in rows.by_ref().take(own_rows.len()) {
            for part in &mut parts[first..] {
                let (own, rest) = row.split_at_mut(part.columns.len() * pixel);
                part.place.push(own);
                row = rest;
            }
        }
    }
    parts
}

/// Decodes cells of the grid, with the buffers of one thread.
struct CellDecoder<'a> {
    page: &'a Page,
    worker: Worker<'a>,
    /// The unpacked rows of a chunk.
    chunk: Vec<u8>,
    /// The pixels of the cell, of all planes.
    cell: Vec<u8>,
}

impl<'a> CellDecoder<'a> {
    fn new(source: &'a Source, page: &'a Page, policy: &'a ErrorPolicy) -> CellDecoder<'a> {
        CellDecoder {
            page,
            worker: Worker::new(source, page, policy),
            chunk: Vec::new(),
            cell: Vec::new(),
        }
    }

    /// Decodes the chunks of a cell, one for each plane, and copies the part that is in the region.
    fn fill(&mut self, part: CellPart) -> Result<()> {
        let page = self.page;
        let shape = page.form.shape;
        let pixel = shape.pixel_bytes();
        let width = page.grid.width.min(shape.width - part.x * page.grid.width);
        self.cell.clear();
        for plane in page.planes() {
            let i = (plane * page.down() + part.down) * page.across() + part.x;
            self.chunk.clear();
            let skipped = if has_stored_rows(page) && !page.spans[i].is_absent() {
                resize(&mut self.chunk, part.rows.len() * page.row())?;
                self.worker
                    .stored_rows(i, part.rows.start, &mut self.chunk)?;
                0
            } else {
                resize(&mut self.chunk, page.unpacked(i))?;
                self.worker.chunk(i, &mut self.chunk)?;
                part.rows.start * page.row()
            };
            resize(&mut self.cell, part.rows.len() * width * pixel)?;
            let mut place: Vec<&mut [u8]> = self.cell.chunks_mut(width * pixel).collect();
            self.worker
                .copy_rows(&self.chunk[skipped..], plane, &mut place);
        }
        if let Some(ycbcr) = &page.planes {
            ycbcr.convert_pixels(&mut self.cell);
        }
        let columns = part.columns.start * pixel..part.columns.end * pixel;
        for (place, row) in part.place.into_iter().zip(self.cell.chunks(width * pixel)) {
            place.copy_from_slice(&row[columns.clone()]);
        }
        Ok(())
    }
}

/// Gives a buffer this length.
fn resize(buffer: &mut Vec<u8>, size: usize) -> Result<()> {
    let more = size.saturating_sub(buffer.len());
    buffer
        .try_reserve_exact(more)
        .map_err(|_| anyhow!("not enough memory for {size} bytes of a strip or tile"))?;
    buffer.resize(size, 0);
    Ok(())
}
