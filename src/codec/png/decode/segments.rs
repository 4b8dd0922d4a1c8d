//! Decodes files of this program on all cores: their image data are segments that refer to no byte
//! outside themselves, and a private chunk lists their lengths. The list is checked against the
//! chunks, the segments' rows, filters and CRCs, and the combined Adler-32.

use super::chunks::Chunks;
use super::data::ImageData;
use super::header::Prelude;
use super::scanlines::{ScanlineBuffer, ScanlineInflater, SegmentEnd, SegmentPlace};
use super::unfilter::{Layout, Rows};
use super::unfilter_pixels::SUB;
use crate::deflate::adler::joined;
use crate::files::Source;
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
    let (rows, places) = parse(index, prelude.header.height as usize)?;
    let mut start = prelude.data;
    let starts = places.iter().map(|place| {
        let this = start;
        start += place.chunk_len();
        this
    });
    let starts: Vec<u64> = starts.collect();
    let worker = || {
        let inflater = ScanlineInflater::new(ImageData::new(source));
        (inflater, ScanlineBuffer::new(rows * (layout.row + 1)))
    };
    // Two segments at once on a thread, if there are enough segments for all threads.
    let group = match places.len() >= 4 * rayon::current_num_threads() {
        true => 2,
        false => 1,
    };
    let groups: Result<Vec<Vec<SegmentEnd>>> = image
        .par_chunks_mut(group * rows * layout.row)
        .zip(places.par_chunks(group))
        .zip(starts.par_chunks(group))
        .map_init(
            || [worker(), worker()],
            |workers, ((image, places), starts)| {
                let images = image.chunks_mut(rows * layout.row);
                let segments = workers.iter_mut().zip(images).zip(places).zip(starts);
                let segments: Result<Vec<Segment>> = segments
                    .map(|(((worker, image), &place), &start)| {
                        let len = image.len() / layout.row * (layout.row + 1);
                        let rows = Rows::new(image, layout);
                        Segment::open(worker, (start, place), rows, len)
                    })
                    .collect();
                decode_group(segments?)
            },
        )
        .collect();
    let parts = groups?.concat();
    let adler = parts
        .iter()
        .fold(1, |sum, part| joined(sum, part.adler, part.len));
    let stated = parts.last().context("no segments")?.stated;
    ensure!(adler == stated, "wrong Adler-32");
    Chunks::new(source).finish(start)
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
