//! Decodes strips and tiles into the image's memory, in parallel; full-width strips are unpacked in
//! place.

use super::coded::Coded;
use super::grid::Span;
use super::packed;
use super::page::Page;
use super::predictor::{self, Predictor};
use super::unpack::{Method, Unpacker};
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::raw::{self, Order, SampleEncoding};
use crate::image::Depth;
use crate::os::Source;
use anyhow::{Result, anyhow};
use rayon::prelude::*;
use std::ops::Range;

/// Fills the bytes of the image's samples. Of several damaged chunks the error names the first; if
/// the error policy is to go on, all are recorded, and unreadable parts of `bytes` are left
/// unchanged.
pub fn fill(source: &Source, page: &Page, bytes: &mut [u8], policy: &ErrorPolicy) -> Result<()> {
    if page.is_stored() && !policy.accepts_damage() {
        return read_stored(source, page, bytes);
    }
    chunks(source, page, 0, bytes, policy)
}

/// Fills the bytes of whole rows of chunks, from the row of chunks `first` on, as `fill` does.
pub fn chunks(
    source: &Source,
    page: &Page,
    first: usize,
    bytes: &mut [u8],
    policy: &ErrorPolicy,
) -> Result<()> {
    let failure = if page.is_straight() {
        bytes
            .par_chunks_mut(page.grid.height * page.row())
            .enumerate()
            .map_init(
                || Worker::new(source, page, policy),
                |worker, (i, out)| worker.chunk(first + i, out).err(),
            )
            .find_map_first(|failure| failure)
    } else {
        let row = page.form.shape.row() * page.form.shape.depth.bytes();
        bytes
            .par_chunks_mut(page.grid.height * row)
            .enumerate()
            .map(|(down, band)| self::band(source, page, first + down, band, policy).err())
            .find_map_first(|failure| failure)
    };
    failure.map_or(Ok(()), Err)
}

/// Reads uncompressed strips straight into place, adjacent ones with one call.
fn read_stored(source: &Source, page: &Page, bytes: &mut [u8]) -> Result<()> {
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
    if let Some(predictor) = page.predictor {
        raw::read(source, runs, |_| Ok(()))?;
        bytes.par_chunks_mut(page.row()).for_each(|row| {
            page.undo(predictor, row);
            raw::to_memory(row, page.form.shape.depth, page.form.signed);
        });
        return Ok(());
    }
    raw::read(source, runs, |piece| {
        page.encoding().to_memory(piece);
        Ok(())
    })
}

/// Decodes the tiles in one row of tiles, or the strips of all planes, that make `band`, the image
/// rows that start `down` chunks from the top: each chunk is unpacked into a buffer of its own and
/// then copied into place.
fn band(
    source: &Source,
    page: &Page,
    down: usize,
    band: &mut [u8],
    policy: &ErrorPolicy,
) -> Result<()> {
    let shape = page.form.shape;
    let (across, step) = (page.across(), page.grid.width * shape.pixel_bytes());
    // The rows of the band, split among the chunks.
    let mut places: Vec<Vec<&mut [u8]>> = (0..across).map(|_| Vec::new()).collect();
    for row in band.chunks_mut(shape.row() * shape.depth.bytes()) {
        for (place, part) in places.iter_mut().zip(row.chunks_mut(step)) {
            place.push(part);
        }
    }
    let failure = places
        .into_par_iter()
        .enumerate()
        .map_init(
            || (Worker::new(source, page, policy), Vec::new()),
            |(worker, chunk), (x, mut place)| {
                page.planes().find_map(|plane| {
                    let i = (plane * page.down() + down) * across + x;
                    worker.copy_chunk(i, plane, chunk, &mut place).err()
                })
            },
        )
        .find_map_first(|failure| failure);
    if let Some(ycbcr) = &page.planes {
        ycbcr.convert_pixels(band);
    }
    failure.map_or(Ok(()), Err)
}

/// The buffers of one thread.
pub struct Worker<'a> {
    source: &'a Source,
    page: &'a Page,
    policy: &'a ErrorPolicy,
    unpacker: Unpacker,
    packed: Vec<u8>,
}

impl<'a> Worker<'a> {
    pub fn new(source: &'a Source, page: &'a Page, policy: &'a ErrorPolicy) -> Worker<'a> {
        Worker {
            source,
            page,
            policy,
            unpacker: Unpacker::new(page.method),
            packed: Vec::new(),
        }
    }

    /// Reads and unpacks chunk `i` into `out`, and converts it to native-endian samples.
    pub fn chunk(&mut self, i: usize, out: &mut [u8]) -> Result<()> {
        let page = self.page;
        let Span { offset, len } = page.spans[i];
        let form = &self.page.form;
        if self.page.spans[i].is_absent() {
            let (sample, whole) = (&self.page.absent, form.has_whole_samples());
            if whole {
                (out.chunks_exact_mut(sample.len())).for_each(|out| out.copy_from_slice(sample))
            } else {
                out.fill(0)
            }
            return Ok(());
        }
        // No sane encoder doubles its input: a stated length far beyond that is not worth its
        // memory.
        let mut len = len.min(2 * out.len() as u64 + 65536);
        if self.policy.accepts_damage() {
            len = len.min(self.source.len().saturating_sub(offset));
        }
        self.packed.resize(len as usize, 0);
        let chunk_bytes = self.page.grid.height * self.page.row();
        let read = self.source.read_at(&mut self.packed, offset);
        if self.page.reversed {
            (self.packed.iter_mut()).for_each(|byte| *byte = byte.reverse_bits());
        }
        let unpacked = read
            .and_then(|()| match &page.coded {
                Some(Coded::Ycbcr(ycbcr)) => {
                    let mut units = vec![0; ycbcr.bytes(out.len() / page.row())];
                    let whole = ycbcr.bytes(page.grid.height);
                    self.unpacker.unpack(&self.packed, &mut units, whole)?;
                    if let Some(predictor) = page.predictor {
                        page.undo(predictor, &mut units);
                    }
                    ycbcr.convert(&units, out);
                    Ok(())
                }
                Some(coded) => coded.unpack(&self.packed, out, self.page.row()),
                None => self.unpacker.unpack(&self.packed, out, chunk_bytes),
            })
            .map_err(|error| anyhow!("{} {i}: {error}", self.page.grid.noun()));
        self.policy.accept(unpacked)?;
        self.convert(out);
        Ok(())
    }

    /// Reads rows of chunk `i`, which is uncompressed and in the file, from its row `first` on. Converts them as `chunk`
    /// does.
    pub fn stored_rows(&self, i: usize, first: usize, out: &mut [u8]) -> Result<()> {
        let offset = self.page.spans[i].offset + (first * self.page.row()) as u64;
        let read = self.source.read_at(out, offset);
        read.map_err(|error| anyhow!("{} {i}: {error}", self.page.grid.noun()))?;
        if self.page.reversed {
            (out.iter_mut()).for_each(|byte| *byte = byte.reverse_bits());
        }
        self.convert(out);
        Ok(())
    }

    /// Converts unpacked rows to native-endian samples.
    fn convert(&self, out: &mut [u8]) {
        let (page, form) = (self.page, &self.page.form);
        if let Some(predictor) = page.predictor.filter(|_| page.coded.is_none()) {
            page.undo(predictor, out);
        } else if form.has_whole_samples() {
            // Packed samples are a stream of bits, independent of the byte order.
            raw::reorder(out, form.shape.depth, self.page.order);
        }
        if form.has_whole_samples() {
            raw::to_memory(out, form.shape.depth, form.signed);
        }
    }

    /// Unpacks chunk `i` into the buffer `chunk` and copies the part inside the image, the samples
    /// of `plane`, to its rows.
    fn copy_chunk(
        &mut self,
        i: usize,
        plane: usize,
        chunk: &mut Vec<u8>,
        place: &mut [&mut [u8]],
    ) -> Result<()> {
        let size = self.page.unpacked(i);
        chunk.clear();
        chunk
            .try_reserve_exact(size)
            .map_err(|_| anyhow!("not enough memory for a tile of {size} bytes"))?;
        chunk.resize(size, 0);
        self.chunk(i, chunk)?;
        self.copy_rows(chunk, plane, place);
        Ok(())
    }

    /// Copies unpacked rows of a chunk, the samples of `plane`, to the rows of the image.
    pub fn copy_rows(&self, rows: &[u8], plane: usize, place: &mut [&mut [u8]]) {
        let form = &self.page.form;
        // Differences are added up in the machine's order.
        let order = match self.page.predictor {
            Some(_) => Order::NATIVE,
            None => self.page.order,
        };
        for (out, row) in place.iter_mut().zip(rows.chunks_exact(self.page.row())) {
            if form.is_plain() {
                out.copy_from_slice(&row[..out.len()]);
            } else {
                packed::spread(row, out, form, order, plane, self.page.band);
            }
        }
    }
}

impl Page {
    /// The planes whose samples the page has.
    pub fn planes(&self) -> Range<usize> {
        match (self.form.bands(), self.form.planar) {
            (1, _) => 0..self.form.planes(),
            (_, false) => 0..1,
            (_, true) => self.band..self.band + 1,
        }
    }

    /// How the file stores samples that are not packed.
    pub fn encoding(&self) -> SampleEncoding {
        SampleEncoding {
            depth: self.form.shape.depth,
            order: self.order,
            toggled: self.form.signed,
        }
    }

    /// Whether its chunks are rows of the image, of samples as in memory but for their byte order.
    pub fn is_straight(&self) -> bool {
        self.form.is_plain() && !self.grid.tiled
    }

    /// Whether these rows lie in the file uncompressed.
    pub fn is_stored(&self) -> bool {
        let is_whole = !self.spans.iter().any(Span::is_absent);
        let is_plain = self.method == Method::None && self.coded.is_none();
        self.is_straight() && is_plain && !self.reversed && is_whole
    }

    fn undo(&self, predictor: Predictor, rows: &mut [u8]) {
        let (row, channels) = (self.row(), self.form.channels());
        match predictor {
            Predictor::Samples => {
                let depth = match self.form.bits {
                    16 => Depth::Sixteen,
                    _ => self.form.shape.depth,
                };
                predictor::undo(rows, row, channels, depth, self.order);
            }
            Predictor::Bytes => match self.form.bits {
                64 => predictor::undo_bytes::<8>(rows, row, channels),
                32 => predictor::undo_bytes::<4>(rows, row, channels),
                _ => predictor::undo_bytes::<2>(rows, row, channels),
            },
        }
    }
}
