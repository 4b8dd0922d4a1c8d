//! Strips and tiles into the image's memory, in parallel; a strip is unpacked where it belongs.

use super::page::{Page, Span};
use super::predictor;
use super::unpack::{Method, Unpacker};
use crate::codec::raw;
use crate::files::Source;
use anyhow::{Result, anyhow};
use rayon::prelude::*;

/// Fills the bytes of the image's samples. Of several damaged chunks the first is named.
pub fn fill(source: &Source, page: &Page, bytes: &mut [u8]) -> Result<()> {
    let failure = match (page.grid.tiled, page.method) {
        (true, _) => return tiles(source, page, bytes),
        (false, Method::None) => return stored(source, page, bytes),
        (false, _) => bytes
            .par_chunks_mut(page.grid.height * page.row())
            .enumerate()
            .map_init(
                || Worker::new(source, page),
                |worker, (i, out)| worker.chunk(i, out).err(),
            )
            .find_map_first(|failure| failure),
    };
    failure.map_or(Ok(()), Err)
}

/// Uncompressed strips: straight into place, and those that lie one behind the other at once.
fn stored(source: &Source, page: &Page, bytes: &mut [u8]) -> Result<()> {
    let mut runs: Vec<(u64, &mut [u8])> = Vec::new();
    let mut rest = &mut *bytes;
    let mut i = 0;
    while !rest.is_empty() {
        let offset = page.spans[i].offset;
        let mut size = page.unpacked(i);
        i += 1;
        while i < page.spans.len() && page.spans[i].offset == offset + size as u64 {
            size += page.unpacked(i);
            i += 1;
        }
        let (run, more) = rest.split_at_mut(size);
        runs.push((offset, run));
        rest = more;
    }
    if page.predictor {
        raw::read(source, runs, |_| Ok(()))?;
        bytes
            .par_chunks_mut(page.row())
            .for_each(|row| page.undo(row));
        return Ok(());
    }
    raw::read(source, runs, |piece| {
        raw::reorder(piece, page.shape.depth, page.order);
        Ok(())
    })
}

/// Tiles: each unpacked aside, then its rows copied into place.
fn tiles(source: &Source, page: &Page, bytes: &mut [u8]) -> Result<()> {
    let image_row = page.shape.row() * page.shape.depth.bytes();
    let across = page.across();
    let failure = bytes
        .par_chunks_mut(page.grid.height * image_row)
        .enumerate()
        .map(|(down, band)| {
            // The rows of the band, cut into those of its tiles.
            let mut places: Vec<Vec<&mut [u8]>> = (0..across).map(|_| Vec::new()).collect();
            for row in band.chunks_mut(image_row) {
                for (place, part) in places.iter_mut().zip(row.chunks_mut(page.row())) {
                    place.push(part);
                }
            }
            places
                .into_par_iter()
                .enumerate()
                .map_init(
                    || (Worker::new(source, page), Vec::new()),
                    |(worker, tile), (i, place)| {
                        let i = down * across + i;
                        worker.tile(i, tile, place).err()
                    },
                )
                .find_map_first(|failure| failure)
        })
        .find_map_first(|failure| failure);
    failure.map_or(Ok(()), Err)
}

/// One thread's state.
struct Worker<'a> {
    source: &'a Source,
    page: &'a Page,
    unpacker: Unpacker,
    packed: Vec<u8>,
}

impl<'a> Worker<'a> {
    fn new(source: &'a Source, page: &'a Page) -> Worker<'a> {
        Worker {
            source,
            page,
            unpacker: Unpacker::new(page.method),
            packed: Vec::new(),
        }
    }

    /// Reads and unpacks chunk `i` into `out` and makes native-endian samples of it.
    fn chunk(&mut self, i: usize, out: &mut [u8]) -> Result<()> {
        let Span { offset, len } = self.page.spans[i];
        // No sane encoder doubles its input: a count far past that is not worth its memory.
        let len = len.min(2 * out.len() as u64 + 65536) as usize;
        self.packed.resize(len, 0);
        let whole = self.page.grid.height * self.page.row();
        self.source
            .read_at(&mut self.packed, offset)
            .and_then(|()| self.unpacker.unpack(&self.packed, out, whole))
            .map_err(|error| anyhow!("{} {i}: {error}", self.page.grid.noun()))?;
        if self.page.predictor {
            self.page.undo(out);
        } else {
            raw::reorder(out, self.page.shape.depth, self.page.order);
        }
        Ok(())
    }

    /// Unpacks tile `i` into the spare memory `tile` and copies what the image has of it.
    fn tile(&mut self, i: usize, tile: &mut Vec<u8>, place: Vec<&mut [u8]>) -> Result<()> {
        let size = self.page.unpacked(i);
        tile.try_reserve_exact(size.saturating_sub(tile.len()))
            .map_err(|_| anyhow!("not enough memory for a tile of {size} bytes"))?;
        tile.resize(size, 0);
        self.chunk(i, tile)?;
        for (out, row) in place.into_iter().zip(tile.chunks_exact(self.page.row())) {
            out.copy_from_slice(&row[..out.len()]);
        }
        Ok(())
    }
}

impl Page {
    fn undo(&self, rows: &mut [u8]) {
        let (channels, depth) = (self.shape.channels, self.shape.depth);
        predictor::undo(rows, self.row(), channels, depth, self.order);
    }
}
