//! Decodes files of this program on all cores: their image data are segments that refer to no byte
//! outside themselves, and a private chunk lists their lengths. The list is checked against the
//! chunks, the segments' rows, filters and CRCs, and the combined Adler-32.

use super::chunks::Chunks;
use super::data::ImageData;
use super::header::Prelude;
use super::scanlines::{ScanlineBuffer, ScanlineInflater, SegmentEnd, SegmentPlace};
use super::unfilter::{Layout, Rows};
use super::unfilter_pixels::SUB;
use crate::deflate::adler::combine;
use crate::formats::format::TakeRows;
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
    layout: Layout,
) -> Result<()> {
    let segments = Segments::new(source, prelude, index, layout)?;
    let ends = segments.some(0, image)?;
    segments.finish(&ends)
}

/// As `decode`, but hands the rows over from top to bottom, those of some segments at a time.
pub fn rows(
    source: &Source,
    prelude: &Prelude,
    index: &[u8],
    layout: Layout,
    take: &mut TakeRows,
) -> Result<()> {
    let segments = Segments::new(source, prelude, index, layout)?;
    let (count, together) = (segments.places.len(), 2 * rayon::current_num_threads());
    let height = prelude.header.height as usize;
    let mut memory = vec![0; (together * segments.rows).min(height) * layout.row];
    let mut ends = Vec::with_capacity(count);
    for first in (0..count).step_by(together) {
        let top = first * segments.rows;
        let rows = (height - top).min(together * segments.rows);
        let part = &mut memory[..rows * layout.row];
        ends.extend(segments.some(first, part)?);
        take(part)?;
    }
    segments.finish(&ends)
}

/// The segments of a file.
struct Segments<'a> {
    source: &'a Source,
    layout: Layout,
    /// Rows of a segment.
    rows: usize,
    /// Each segment, and where its chunk starts in the file.
    places: Vec<(SegmentPlace, u64)>,
    /// The offset behind the last one.
    end: u64,
}

impl<'a> Segments<'a> {
    fn new(
        source: &'a Source,
        prelude: &Prelude,
        index: &[u8],
        layout: Layout,
    ) -> Result<Segments<'a>> {
        let (rows, places) = parse(index, prelude.header.height as usize)?;
        let mut end = prelude.data;
        let places = places.into_iter().map(|place| {
            let start = end;
            end += place.chunk_len();
            (place, start)
        });
        Ok(Segments {
            source,
            layout,
            rows,
            places: places.collect(),
            end,
        })
    }

    /// Decodes the segments from `first` on that make the rows of `image`.
    fn some(&self, first: usize, image: &mut [u8]) -> Result<Vec<SegmentEnd>> {
        let (layout, rows) = (self.layout, self.rows);
        let worker = || {
            let inflater = ScanlineInflater::new(ImageData::new(self.source));
            (inflater, ScanlineBuffer::new(rows * (layout.row + 1)))
        };
        let places = &self.places[first..][..image.len().div_ceil(rows * layout.row)];
        // Two segments at once on a thread, if there are enough segments for all threads.
        let group = match self.places.len() >= 4 * rayon::current_num_threads() {
            true => 2,
            false => 1,
        };
        let groups: Result<Vec<Vec<SegmentEnd>>> = image
            .par_chunks_mut(group * rows * layout.row)
            .zip(places.par_chunks(group))
            .map_init(
                || [worker(), worker()],
                |workers, (image, places)| {
                    let images = image.chunks_mut(rows * layout.row);
                    let segments = workers.iter_mut().zip(images).zip(places);
                    let segments: Result<Vec<Segment>> = segments
                        .map(|((worker, image), &(place, start))| {
                            let len = image.len() / layout.row * (layout.row + 1);
                            let rows = Rows::new(image, layout);
                            Segment::open(worker, (start, place), rows, len)
                        })
                        .collect();
                    decode_group(segments?)
                },
            )
            .collect();
        Ok(groups?.concat())
    }

    /// Checks the sum of all segments, and the rest of the file.
    fn finish(&self, ends: &[SegmentEnd]) -> Result<()> {
        let sum = |sum, part: &SegmentEnd| combine(sum, part.adler, part.len);
        let stated = ends.last().context("no segments")?.stated;
        ensure!(ends.iter().fold(1, sum) == stated, "wrong Adler-32");
        Chunks::new(self.source).finish(self.end)
    }
}

/// The rows of a segment and the position of each segment, if the index fits an image of `height`
/// rows.
fn parse(index: &[u8], height: usize) -> Result<(usize, Vec<SegmentPlace>)> {
    let (head, lengths) = index.split_first_chunk::<5>().context("short index")?;
    let (lengths, rest) = lengths.as_chunks::<4>();
    let [version, rows @ ..] = *head;
    let rows = u32::from_be_bytes(rows) as usize;
    ensure!(version == 1 && rest.is_empty(), "index of another version");
    ensure!(
        rows > 0 && lengths.len() == height.div_ceil(rows) && lengths.len() > 1,
        "index of another image"
    );
    let count = lengths.len();
    let place = |(i, len): (usize, &[u8; 4])| SegmentPlace {
        first: i == 0,
        last: i + 1 == count,
        len: u32::from_be_bytes(*len),
    };
    Ok((rows, lengths.iter().enumerate().map(place).collect()))
}

/// A segment being decoded.
struct Segment<'a, 's> {
    inflater: &'a mut ScanlineInflater<'s>,
    block: &'a mut ScanlineBuffer,
    place: SegmentPlace,
    rows: Rows<'a>,
    /// Bytes of its scanlines, and how many of them remain.
    len: usize,
    left: usize,
}

impl<'a, 's> Segment<'a, 's> {
    fn open(
        (inflater, block): &'a mut (ScanlineInflater<'s>, ScanlineBuffer),
        (start, place): (u64, SegmentPlace),
        rows: Rows<'a>,
        len: usize,
    ) -> Result<Segment<'a, 's>> {
        inflater.open_segment(start, place)?;
        block.clear();
        Ok(Segment {
            inflater,
            block,
            place,
            rows,
            len,
            left: len,
        })
    }

    /// Decodes the next block.
    fn next(&mut self) -> Result<()> {
        let is_first = self.left == self.len;
        self.left -= self.inflater.next(self.block, self.left)?;
        let bytes = self.block.fresh();
        ensure!(
            !is_first || bytes[0] <= SUB,
            "the first row needs the one above"
        );
        self.rows.push(bytes)?;
        self.block.keep_history();
        Ok(())
    }

    fn close(self) -> Result<SegmentEnd> {
        self.inflater
            .close_segment(self.place, self.len, self.block)
    }
}

fn decode_group(mut segments: Vec<Segment>) -> Result<Vec<SegmentEnd>> {
    while segments.iter().any(|segment| segment.left > 0) {
        if let [one, two] = &mut segments[..] {
            ScanlineInflater::ahead([
                (one.inflater, one.block, one.left),
                (two.inflater, two.block, two.left),
            ])?;
        }
        for segment in &mut segments {
            if segment.left > 0 {
                segment.next()?;
            }
        }
    }
    segments.into_iter().map(Segment::close).collect()
}
