//! Decodes a page part by part, so that it is never in memory as a whole.

use super::decode::{Worker, chunks};
use super::grid::Span;
use super::page::Page;
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::{BlockSink, RowSink};
use crate::formats::raw;
use crate::image::{Image, Samples, Shape};
use crate::os::Source;
use anyhow::Result;
use rayon::prelude::*;

/// Bytes of samples in a strip that is decoded with the image, since it is no small part of it.
const LARGE: usize = 4 << 20;

/// Bytes of samples that are decoded together, on all threads, where rows are wanted in their order.
const TOGETHER: usize = 2 << 20;

/// Whether a page has blocks: it has strips, whose samples lie in the file as in memory but for their byte order and
/// compression.
pub fn has_blocks(page: &Page) -> bool {
    let known = page.coded.is_none() && !page.spans.iter().any(Span::is_absent);
    let stored = page.is_stored() && page.predictor.is_none();
    page.is_straight()
        && page.palette.is_none()
        && known
        && !page.form.shape.depth.is_wide()
        && (stored || page.grid.height * page.row() <= LARGE)
}

/// Hands over the rows of a page that has blocks.
pub fn blocks(source: &Source, page: &Page, sink: &BlockSink) -> Result<()> {
    let (shape, row) = (page.form.shape, page.row());
    let height = |i: usize| page.grid.height.min(shape.height - i * page.grid.height);
    let with_height = |height| Shape { height, ..shape };
    if page.is_stored() && page.predictor.is_none() {
        let strips = (0..page.down()).into_par_iter();
        return strips.try_for_each(|i| {
            let blocks = raw::blocks_of_rows(height(i), row).into_par_iter();
            blocks.try_for_each(|rows| {
                let offset = page.spans[i].offset + (rows.start * row) as u64;
                let convert = |bytes: &mut [u8]| {
                    page.encoding().to_memory(bytes);
                    Ok(())
                };
                sink(raw::read_image(
                    source,
                    offset,
                    with_height(rows.len()),
                    convert,
                )?)
            })
        });
    }
    let policy = ErrorPolicy::default();
    let strips = (0..page.down()).into_par_iter();
    let taken = strips.map_init(
        || Worker::new(source, page, &policy),
        |worker, i| {
            let mut samples = Samples::any(&with_height(height(i)))?;
            worker.chunk(i, samples.as_bytes_mut())?;
            sink(Image::new(with_height(height(i)), samples))
        },
    );
    taken.collect()
}

/// Whether rows of a page can come from top to bottom: not where a few rows of chunks are the whole page, or a palette
/// changes samples.
pub fn has_rows(page: &Page) -> bool {
    let stored = page.is_stored() && page.predictor.is_none();
    let all = rows_of_chunks(page) == page.down() && page.form.shape.bytes() > TOGETHER;
    page.palette.is_none() && (stored || !all)
}

/// Rows of chunks that are decoded together.
fn rows_of_chunks(page: &Page) -> usize {
    let shape = page.form.shape;
    let row = shape.row() * shape.depth.bytes();
    let chunk = page.grid.height.min(shape.height);
    (TOGETHER / (chunk * row)).clamp(1, page.down())
}

/// Hands over the rows of a page from top to bottom.
pub fn rows(source: &Source, page: &Page, sink: &mut RowSink) -> Result<()> {
    let shape = page.form.shape;
    let row = shape.row() * shape.depth.bytes();
    if page.is_stored() && page.predictor.is_none() {
        return stored(source, page, row, sink);
    }
    let chunk = page.grid.height.min(shape.height);
    let together = rows_of_chunks(page);
    let mut memory = vec![0; together * chunk * row];
    for first in (0..page.down()).step_by(together) {
        let left = shape.bytes() - first * chunk * row;
        let rows = &mut memory[..left.min(together * chunk * row)];
        chunks(source, page, first, rows, &ErrorPolicy::default())?;
        sink(rows)?;
    }
    Ok(())
}

/// As `rows`, for uncompressed strips, of which one may be the whole page.
fn stored(source: &Source, page: &Page, row: usize, sink: &mut RowSink) -> Result<()> {
    let (shape, height) = (page.form.shape, page.grid.height);
    let together = (TOGETHER / row).clamp(1, shape.height);
    let mut memory = vec![0; together * row];
    for top in (0..shape.height).step_by(together) {
        let count = together.min(shape.height - top);
        let rows = &mut memory[..count * row];
        let (mut rest, mut at, mut spans) = (&mut *rows, top, Vec::new());
        while !rest.is_empty() {
            let (strip, inside) = (at / height, at % height);
            let some = (height - inside).min(top + count - at);
            let (part, more) = rest.split_at_mut(some * row);
            spans.push((page.spans[strip].offset + (inside * row) as u64, part));
            (rest, at) = (more, at + some);
        }
        raw::read(source, spans, |piece| {
            page.encoding().to_memory(piece);
            Ok(())
        })?;
        sink(rows)?;
    }
    Ok(())
}
