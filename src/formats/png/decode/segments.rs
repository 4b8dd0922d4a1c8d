//! Decodes files that this program wrote, on all cores. Their image data are segments that do not
//! depend on each other, and a private chunk (`gpIS`) lists the lengths of the segments. The list is
//! checked against the chunks, and against the segments' rows, filters, CRCs and combined Adler-32.

use super::chunks::ChunkReader;
use super::data::ImageData;
use super::header::Prelude;
use super::scanlines::{
    ScanlineBuffer, ScanlineInflater, SegmentEnd, SegmentPosition, StreamInProgress,
};
use super::unfilter::{RowLayout, Unfilterer};
use super::unfilter_pixels::SUB;
use crate::deflate::adler::combine;
use crate::formats::format::RowSink;
use crate::os::Source;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;

/// Decodes the segments listed in `index` into `image`. After an error the content of `image` is
/// undefined.
pub fn decode(
    source: &Source,
    prelude: &Prelude,
    index: &[u8],
    image: &mut [u8],
    layout: RowLayout,
) -> Result<()> {
    let segments = IndexedSegments::new(source, prelude, index, layout)?;
    let ends = segments.decode_from(0, image)?;
    segments.finish(&ends)
}

/// As `decode`, but passes the rows to `take` from top to bottom, some segments at a time.
pub fn rows(
    source: &Source,
    prelude: &Prelude,
    index: &[u8],
    layout: RowLayout,
    take: &mut RowSink,
) -> Result<()> {
    let segments = IndexedSegments::new(source, prelude, index, layout)?;
    let (count, at_once) = (segments.positions.len(), 2 * rayon::current_num_threads());
    let height = prelude.header.height as usize;
    let mut memory = vec![0; (at_once * segments.rows).min(height) * layout.row_bytes];
    let mut ends = Vec::with_capacity(count);
    for first in (0..count).step_by(at_once) {
        let top = first * segments.rows;
        let rows = (height - top).min(at_once * segments.rows);
        let band = &mut memory[..rows * layout.row_bytes];
        ends.extend(segments.decode_from(first, band)?);
        take(band)?;
    }
    segments.finish(&ends)
}

/// The segments of a file, as its index lists them.
struct IndexedSegments<'a> {
    source: &'a Source,
    layout: RowLayout,
    /// Rows of a segment; the last one may have fewer.
    rows: usize,
    positions: Vec<SegmentPosition>,
}

impl<'a> IndexedSegments<'a> {
    fn new(
        source: &'a Source,
        prelude: &Prelude,
        index: &[u8],
        layout: RowLayout,
    ) -> Result<IndexedSegments<'a>> {
        let (rows, lengths) = parse(index, prelude.header.height as usize)?;
        let mut positions = Vec::with_capacity(lengths.len());
        let mut start = prelude.data;
        for (i, &len) in lengths.iter().enumerate() {
            let position = SegmentPosition {
                start,
                first: i == 0,
                last: i + 1 == lengths.len(),
                len,
            };
            start = position.end();
            positions.push(position);
        }
        Ok(IndexedSegments {
            source,
            layout,
            rows,
            positions,
        })
    }

    /// Decodes segments into `band` until it is full, starting with the segment at index `first`.
    fn decode_from(&self, first: usize, band: &mut [u8]) -> Result<Vec<SegmentEnd>> {
        let segment_bytes = self.rows * self.layout.row_bytes;
        let positions = &self.positions[first..][..band.len().div_ceil(segment_bytes)];
        // Each thread decodes two segments at the same time, if there are enough segments for all threads.
        let group = if self.positions.len() >= 4 * rayon::current_num_threads() {
            2
        } else {
            1
        };
        let worker = || Worker {
            inflater: ScanlineInflater::new(ImageData::new(self.source)),
            buffer: ScanlineBuffer::new(self.rows * (self.layout.row_bytes + 1)),
        };
        let groups: Result<Vec<Vec<SegmentEnd>>> = band
            .par_chunks_mut(group * segment_bytes)
            .zip(positions.par_chunks(group))
            .map_init(
                || [worker(), worker()],
                |workers, (band, positions)| {
                    let segments = band.chunks_mut(segment_bytes).zip(positions);
                    let decoders = workers.iter_mut().zip(segments);
                    let decoders: Result<Vec<SegmentDecoder>> = decoders
                        .map(|(worker, (image, position))| {
                            SegmentDecoder::open(worker, *position, image, self.layout)
                        })
                        .collect();
                    decode_group(decoders?)
                },
            )
            .collect();
        Ok(groups?.concat())
    }

    /// Checks the Adler-32 of all segments together, and the rest of the file.
    fn finish(&self, ends: &[SegmentEnd]) -> Result<()> {
        let add = |sum, end: &SegmentEnd| combine(sum, end.adler, end.len);
        let stated = ends.last().context("no segments")?.stated;
        ensure!(ends.iter().fold(1, add) == stated, "wrong Adler-32");
        let end = self.positions.last().context("no segments")?.end();
        ChunkReader::new(self.source).finish(end)
    }
}

/// Parses the index: the number of rows of a segment, and the length of each segment's deflate data.
/// Refuses an index that does not fit an image of `height` rows.
fn parse(index: &[u8], height: usize) -> Result<(usize, Vec<u32>)> {
    let (head, lengths) = index.split_first_chunk::<5>().context("short index")?;
    let (lengths, rest) = lengths.as_chunks::<4>();
    let [version, rows @ ..] = *head;
    let rows = u32::from_be_bytes(rows) as usize;
    ensure!(version == 1 && rest.is_empty(), "index of another version");
    ensure!(
        rows > 0 && lengths.len() == height.div_ceil(rows) && lengths.len() > 1,
        "index of another image"
    );
    let lengths = lengths.iter().map(|len| u32::from_be_bytes(*len));
    Ok((rows, lengths.collect()))
}

/// The memory of a thread for one segment, reused for the next.
struct Worker<'s> {
    inflater: ScanlineInflater<'s>,
    buffer: ScanlineBuffer,
}

/// A segment being decoded.
struct SegmentDecoder<'a, 's> {
    worker: &'a mut Worker<'s>,
    position: SegmentPosition,
    rows: Unfilterer<'a>,
    /// Bytes of its scanlines.
    len: usize,
    /// Bytes of its scanlines that are not inflated yet.
    remaining: usize,
}

impl<'a, 's> SegmentDecoder<'a, 's> {
    fn open(
        worker: &'a mut Worker<'s>,
        position: SegmentPosition,
        image: &'a mut [u8],
        layout: RowLayout,
    ) -> Result<SegmentDecoder<'a, 's>> {
        worker.inflater.open_segment(position)?;
        worker.buffer.clear();
        let len = image.len() / layout.row_bytes * (layout.row_bytes + 1);
        Ok(SegmentDecoder {
            worker,
            position,
            rows: Unfilterer::new(image, layout),
            len,
            remaining: len,
        })
    }

    /// Decodes the next bytes that fill the buffer.
    fn decode_next(&mut self) -> Result<()> {
        let is_first = self.remaining == self.len;
        let Worker { inflater, buffer } = &mut *self.worker;
        self.remaining -= inflater.inflate_next(buffer, self.remaining)?;
        let bytes = buffer.new_bytes();
        ensure!(
            !is_first || bytes[0] <= SUB,
            "the first row of a segment needs the row above it"
        );
        self.rows.push(bytes)?;
        buffer.keep_history();
        Ok(())
    }

    fn stream(&mut self) -> StreamInProgress<'_, 's> {
        StreamInProgress {
            inflater: &mut self.worker.inflater,
            buffer: &mut self.worker.buffer,
            remaining: self.remaining,
        }
    }

    fn close(self) -> Result<SegmentEnd> {
        let Worker { inflater, buffer } = self.worker;
        inflater.close_segment(self.position, self.len, buffer)
    }
}

/// Decodes one segment, or two at the same time.
fn decode_group(mut segments: Vec<SegmentDecoder>) -> Result<Vec<SegmentEnd>> {
    while segments.iter().any(|segment| segment.remaining > 0) {
        if let [one, two] = &mut segments[..] {
            ScanlineInflater::inflate_pair([one.stream(), two.stream()])?;
        }
        for segment in &mut segments {
            if segment.remaining > 0 {
                segment.decode_next()?;
            }
        }
    }
    segments.into_iter().map(SegmentDecoder::close).collect()
}
