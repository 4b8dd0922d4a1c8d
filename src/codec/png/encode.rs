//! PNG written at the speed of memory: rows in segments that threads compress by themselves.
//!
//! # The bytes of a file, which depend on the image and the mode alone
//! A *segment* is as many whole rows as fill 1 MiB with their filter bytes, rounded down, but at
//! least one row; the last segment has the rest. In order:
//! 1. signature, IHDR;
//! 2. `gpIS` if there are at least two segments (see `INDEX`), and the metadata's chunks;
//! 3. one IDAT a segment: its deflate data, in the first after zlib's header (78 01), in the last
//!    before the Adler-32 of all filtered bytes (RFC 1950);
//! 4. the metadata's chunks that stood behind the image data before, IEND.
//!
//! A segment refers to nothing before itself: its first row is filtered without the row above, its
//! matches stay inside, and it begins and ends at a byte. It ends with an empty stored block,
//! which in the last segment is marked as the stream's last. `Mode::Fast`: filters by
//! `filter::choose`; the filtered bytes of a segment go through `Fast::compress` of
//! `deflate::compress`. Those say the rest of what another encoder of the same bytes must do. `Mode::Small`: filters by `Rows::fill_each`,
//! blocks by `Matcher`. `Mode::Store`: filter None, stored blocks of 65535 bytes.

mod filter;

use super::{Deflated, INDEX, metadata};
use crate::codec::Encoder;
use crate::codec::ordered::ordered;
use crate::deflate::compress::{BitWriter, Fast, Matcher, flush, stored};
use crate::deflate::{adler, zlib};
use crate::files::Target;
use crate::image::{Image, Shape};
use crate::metadata::Metadata;
use anyhow::{Result, ensure};
use filter::{Filter, Rows};
use std::borrow::Cow;
use std::ops::Range;

/// How PNG data is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Mode {
    /// The smallest files of noisy images, at gigabytes a second; smooth ones a little larger
    #[default]
    Fast,
    /// Matches too: smaller files of smooth images and of even background, many times slower
    Small,
    /// No compression
    Store,
}

/// Filtered bytes of a segment, if its rows are not longer.
const SEGMENT: usize = 1 << 20;

/// PNG's own limit on chunks is 2³¹ − 1 bytes, and a row's data may grow by half.
const LONGEST_ROW: usize = 1 << 30;

/// Where the index lies: behind signature and IHDR.
const INDEX_AT: u64 = 8 + 25;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Writes `image` to `target` as a PNG of 8 or 16 bits a sample and returns the file's length,
/// which the caller commits. Errors: the target's, and an image that PNG cannot hold.
pub fn encode(image: &Image, mode: Mode, target: &Target) -> Result<u64> {
    encode_with(image, &Metadata::default(), mode, target)
}

/// The same with metadata.
fn encode_with(image: &Image, metadata: &Metadata, mode: Mode, target: &Target) -> Result<u64> {
    let layout = Layout::new(&image.shape())?;
    let rows = Rows::of(image);
    write(&layout, metadata, target, |index, piece| {
        piece.compress(&rows, layout.segment(index), mode);
    })
}

/// A PNG being written.
pub struct PngEncoder<'a> {
    pub target: &'a Target,
    pub mode: Mode,
    /// Of the file, once it is written.
    pub length: u64,
}

impl Encoder for PngEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        self.length = encode_with(&image, metadata, self.mode, self.target)?;
        Ok(())
    }

    fn takes_deflated(&self) -> bool {
        self.mode == Mode::Fast
    }

    fn deflated_page(&mut self, page: &Deflated, metadata: &Metadata) -> Result<()> {
        self.length = page.write(metadata, self.target)?;
        Ok(())
    }

    fn length(&self) -> u64 {
        self.length
    }
}

/// Writes the file around its segments. `fill` makes a piece of the segment with this number: its
/// deflate data up to the flush at its end, and what is told of its filtered bytes.
pub(super) fn write(
    layout: &Layout,
    metadata: &Metadata,
    target: &Target,
    fill: impl Fn(usize, &mut Piece) + Sync,
) -> Result<u64> {
    let [before, behind] = [false, true].map(|behind| -> Vec<u8> {
        let chunks = metadata::chunks(metadata, &layout.shape, behind).into_iter();
        chunks
            .flat_map(|told| chunk(told.kind, &told.data))
            .collect()
    });
    let mut sums = Sums {
        adler: 1,
        data: Vec::with_capacity(layout.segments),
        segments: layout.segments,
        behind,
    };
    let make = |index, piece: &mut Piece| {
        piece.begin(layout, index, &before);
        fill(index, piece);
        piece.end();
        Ok(())
    };
    let pass = |piece: &mut Piece, at| {
        sums.add(piece);
        if at == 0 && layout.segments > 1 {
            // Space for as much again for each segment, a guess; a disk too full for the guess
            // may still hold the file, so that it fails means nothing.
            let _ = target.reserve((piece.as_ref().len() * layout.segments) as u64);
        }
    };
    let len = ordered(layout.segments, (target, 0), Piece::default, make, pass)?;
    if layout.segments > 1 {
        target.write_at(&sums.index(layout.rows), INDEX_AT)?;
    }
    Ok(len)
}

/// How an image's rows are divided.
#[derive(Debug)]
pub(crate) struct Layout {
    pub shape: Shape,
    /// Filtered bytes of a row, its filter byte among them.
    pub row: usize,
    /// Rows of a segment.
    pub rows: usize,
    pub segments: usize,
}

impl Layout {
    pub fn new(shape: &Shape) -> Result<Layout> {
        let row = shape.row() * shape.depth.bytes();
        ensure!(
            shape.width.max(shape.height) <= i32::MAX as usize && row <= LONGEST_ROW,
            "{}×{} pixels are more than a PNG can hold",
            shape.width,
            shape.height
        );
        let rows = (SEGMENT / (1 + row)).max(1);
        Ok(Layout {
            shape: *shape,
            row: 1 + row,
            rows,
            segments: shape.height.div_ceil(rows),
        })
    }

    fn segment(&self, index: usize) -> Range<usize> {
        let start = index * self.rows;
        start..(start + self.rows).min(self.shape.height)
    }

    /// Filtered bytes of a segment.
    pub fn bytes(&self, index: usize) -> usize {
        self.segment(index).len() * self.row
    }

    /// Bytes of the index chunk's data.
    fn index_len(&self) -> usize {
        5 + 4 * self.segments
    }
}

/// A chunk: length, type, data, CRC-32 of type and data.
fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(12 + data.len());
    chunk.extend((data.len() as u32).to_be_bytes());
    chunk.extend(kind);
    chunk.extend(data);
    let crc = crc32fast::hash(&chunk[4..]);
    chunk.extend(crc.to_be_bytes());
    chunk
}

/// What stands before the first IDAT; zeros where the index will be.
fn header(layout: &Layout) -> Vec<u8> {
    let shape = &layout.shape;
    let mut ihdr = Vec::with_capacity(13);
    ihdr.extend((shape.width as u32).to_be_bytes());
    ihdr.extend((shape.height as u32).to_be_bytes());
    let colour = [0, 4, 2, 6][shape.channels - 1];
    ihdr.extend([shape.depth.bits() as u8, colour, 0, 0, 0]);
    let mut header = SIGNATURE.to_vec();
    header.extend(chunk(*b"IHDR", &ihdr));
    if layout.segments > 1 {
        header.resize(header.len() + 12 + layout.index_len(), 0);
    }
    header
}

/// A segment compressed: its chunk, for the first with all that stands before.
#[derive(Default)]
pub(super) struct Piece {
    out: BitWriter,
    filtered: Vec<u8>,
    matcher: Matcher,
    fast: Fast,
    /// Where the chunk begins in `out`, and the deflate data.
    at: usize,
    start: usize,
    /// Whether the segment is the last.
    last: bool,
    crc: crc32fast::Hasher,
    /// Bytes that the data inflates to, and their Adler-32.
    raw: usize,
    adler: u32,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        self.out.bytes()
    }
}

impl Piece {
    /// What stands before the deflate data of a segment; before the first also the chunks `before`.
    fn begin(&mut self, layout: &Layout, index: usize, before: &[u8]) {
        self.last = index + 1 == layout.segments;
        self.raw = layout.bytes(index);
        let out = &mut self.out;
        out.clear();
        // The most that any mode makes of it; memory not written to costs nothing.
        out.reserve(self.raw + self.raw / 2);
        if index == 0 {
            out.extend(&header(layout));
            out.extend(before);
        }
        self.at = out.len();
        // The length is not known yet.
        out.extend(b"\0\0\0\0IDAT");
        if index == 0 {
            out.extend(&zlib::HEADER);
        }
        self.start = out.len();
    }

    /// Filters and compresses rows.
    fn compress(&mut self, rows: &Rows, segment: Range<usize>, mode: Mode) {
        if self.filtered.len() < self.raw {
            self.filtered = vec![0; self.raw];
        }
        let mut memory = std::mem::take(&mut self.filtered);
        let filtered = &mut memory[..self.raw];
        match mode {
            Mode::Fast => self.fast(rows, segment, filtered),
            Mode::Small => {
                rows.fill_each(segment.start, filtered);
                self.matcher.compress(filtered, &mut self.out);
                flush(self.last, &mut self.out);
                self.adler = simd_adler32::adler32(&&*filtered);
                // One filter for all rows, and few matches, can be the better choice: values that
                // are multiples of 16, for one, where filters of their own disturb the pattern.
                let (small, adler) = (self.out.split_off(self.start), self.adler);
                self.fast(rows, segment, filtered);
                if small.len() <= self.out.len() - self.start {
                    self.out.split_off(self.start);
                    self.out.extend(&small);
                    self.adler = adler;
                }
            }
            Mode::Store => {
                rows.fill(segment.start, Filter::None, Filter::None, filtered);
                stored(filtered, &mut self.out);
                flush(self.last, &mut self.out);
                self.adler = simd_adler32::adler32(&&*filtered);
            }
        }
        self.filtered = memory;
    }

    /// The data of `Mode::Fast`.
    fn fast(&mut self, rows: &Rows, segment: Range<usize>, filtered: &mut [u8]) {
        let (first, others) = filter::choose(rows, segment.clone());
        rows.fill(segment.start, first, others, filtered);
        self.deflate(filtered);
        self.adler = simd_adler32::adler32(&&*filtered);
    }

    /// The data of `Mode::Fast` from filtered bytes.
    fn deflate(&mut self, filtered: &[u8]) {
        self.fast.compress(filtered, &mut self.out);
        flush(self.last, &mut self.out);
    }

    /// The segment as another device made it: the data, or filtered bytes still to be deflated.
    pub fn take(&mut self, bytes: &[u8], deflated: bool, adler: u32) {
        if deflated {
            self.out.extend(bytes);
        } else {
            self.deflate(bytes);
        }
        self.adler = adler;
    }

    /// The check of the chunk, as far as it goes.
    fn end(&mut self) {
        self.crc = crc32fast::Hasher::new();
        self.crc.update(&self.out.bytes()[self.at + 4..]);
    }
}

/// What the segments add up to, in their order.
struct Sums {
    /// Adler-32 of all filtered bytes so far.
    adler: u32,
    /// Bytes of each segment's deflate data so far.
    data: Vec<u32>,
    segments: usize,
    /// Chunks to stand behind the image data.
    behind: Vec<u8>,
}

impl Sums {
    /// Takes in the next segment and completes its chunk.
    fn add(&mut self, piece: &mut Piece) {
        self.adler = adler::joined(self.adler, piece.adler, piece.raw);
        self.data.push((piece.out.len() - piece.start) as u32);
        let last = self.data.len() == self.segments;
        if last {
            let adler = self.adler.to_be_bytes();
            piece.crc.update(&adler);
            piece.out.extend(&adler);
        }
        let len = piece.out.len() - piece.at - 8;
        piece.out.patch(piece.at, &(len as u32).to_be_bytes());
        let crc = piece.crc.clone().finalize();
        piece.out.extend(&crc.to_be_bytes());
        if last {
            piece.out.extend(&self.behind);
            piece.out.extend(&chunk(*b"IEND", &[]));
        }
    }

    /// The index chunk.
    fn index(&self, rows: usize) -> Vec<u8> {
        let mut data = vec![1];
        data.extend((rows as u32).to_be_bytes());
        data.extend(self.data.iter().flat_map(|len| len.to_be_bytes()));
        chunk(INDEX, &data)
    }
}
