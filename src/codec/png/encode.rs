//! Writes PNG at the speed of memory: rows are grouped into segments that threads compress
//! independently.
//!
//! # The bytes of a file, which depend on the image and the mode alone
//! A *segment* is as many whole rows as fill 1 MiB with their filter bytes, rounded down, but at
//! least one row; the last segment has the rest. In order:
//! 1. signature, IHDR;
//! 2. `gpIS` if there are at least two segments (see `INDEX`), and the metadata's chunks;
//! 3. one IDAT a segment: its deflate data, in the first after zlib's header (78 01), in the last
//!    before the Adler-32 of all filtered bytes (RFC 1950);
//! 4. the metadata chunks that stood after the image data in the input, IEND.
//!
//! A segment refers to no byte before itself: its first row is filtered without the row above, its
//! matches stay inside, and it begins and ends at a byte. It ends with an empty stored block (RFC
//! 1951 §3.2.4), which in the last segment is marked as the final block. `Mode::Fast`: filters by
//! `filter::choose`; the filtered bytes of a segment go through `Fast::compress` of
//! `deflate::compress`. These two functions define the rest of the bytes. `Mode::Small`: filters by
//! `sample::filling`, blocks by `Matcher`, or as `Mode::Fast` where that is shorter. `Mode::Store`: filter
//! None, stored blocks of 65535 bytes.

mod filter;
mod sample;

use super::{INDEX, metadata};
use crate::codec::Encoder;
use crate::codec::deflated::{Deflated, Layout};
use crate::codec::ordered::ordered;
use crate::deflate::compress::{BitWriter, Fast, Matcher, flush, stored};
use crate::deflate::{adler, zlib};
use crate::files::Target;
use crate::image::Image;
use crate::metadata::Metadata;
use anyhow::Result;
use filter::{Filter, Rows};
use std::borrow::Cow;
use std::ops::Range;

/// How PNG data is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Mode {
    /// Gigabytes a second, and small files of noisy images; those that repeat themselves are larger
    #[default]
    Fast,
    /// Matches too: smaller files of smooth images and of even background, many times slower
    Small,
    /// No compression
    Store,
}

/// Offset of the index chunk: after signature and IHDR.
const INDEX_AT: u64 = 8 + 25;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Writes `image` to `target` as a PNG of 8 or 16 bits a sample and returns the file's length in
/// bytes; the caller commits it. Errors: the target's, and an image that PNG cannot hold.
pub fn encode(image: &Image, mode: Mode, target: &Target) -> Result<u64> {
    encode_with(image, &Metadata::default(), mode, target)
}

/// As `encode`, with metadata.
fn encode_with(image: &Image, metadata: &Metadata, mode: Mode, target: &Target) -> Result<u64> {
    let layout = Layout::new(&image.shape())?;
    let rows = Rows::of(image);
    write(&layout, metadata, target, |index, piece| {
        piece.compress(&rows, layout.segment(index), mode);
    })
}

/// Encodes one image to a PNG file.
pub struct PngEncoder<'a> {
    pub target: &'a Target,
    pub mode: Mode,
    /// The file's length in bytes, once it is written.
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

/// Writes the file around its segments. `fill` makes the piece of a given segment: its deflate data
/// up to the flush at its end, and the checksum of its filtered bytes.
pub(super) fn write(
    layout: &Layout,
    metadata: &Metadata,
    target: &Target,
    fill: impl Fn(usize, &mut Piece) + Sync,
) -> Result<u64> {
    let frame = Frame::new(layout, metadata);
    let mut sums = Sums {
        adler: 1,
        data: Vec::with_capacity(layout.segments),
        frame: &frame,
    };
    let make = |index, piece: &mut Piece| {
        piece.begin(layout, index, &frame);
        fill(index, piece);
        piece.end();
        Ok(())
    };
    let pass = |piece: &mut Piece, at| {
        sums.add(piece);
        if at == 0 && layout.segments > 1 {
            // Reserves space as if all segments had this length. On a disk too full for the
            // estimate the file may still fit, so a failure is ignored.
            let _ = target.reserve((piece.as_ref().len() * layout.segments) as u64);
        }
    };
    let len = ordered(layout.segments, (target, 0), Piece::default, make, pass)?;
    if layout.segments > 1 {
        target.write_at(&frame.index(&sums.data), INDEX_AT)?;
    }
    Ok(len)
}

/// What a file has around its image data.
pub(super) struct Frame<'a> {
    layout: &'a Layout,
    /// Chunks of metadata before and behind the image data.
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl<'a> Frame<'a> {
    pub fn new(layout: &'a Layout, metadata: &Metadata) -> Frame<'a> {
        let [before, behind] = [false, true].map(|behind| -> Vec<u8> {
            let chunks = metadata::chunks(metadata, &layout.shape, behind).into_iter();
            chunks
                .flat_map(|known| chunk(known.kind, &known.data))
                .collect()
        });
        Frame {
            layout,
            before,
            behind,
        }
    }

    /// The bytes before the first IDAT, for segments with deflate data of these lengths.
    pub fn before(&self, lengths: &[usize]) -> Vec<u8> {
        let mut bytes = self.unindexed();
        if lengths.len() > 1 {
            let index = self.index(lengths);
            bytes[INDEX_AT as usize..][..index.len()].copy_from_slice(&index);
        }
        bytes
    }

    /// As `before`, with zeros in place of the index.
    fn unindexed(&self) -> Vec<u8> {
        let mut bytes = header(self.layout);
        bytes.extend(&self.before);
        bytes
    }

    /// The bytes behind the last IDAT.
    pub fn behind(&self) -> Vec<u8> {
        [&self.behind[..], &chunk(*b"IEND", &[])].concat()
    }

    /// The index chunk.
    fn index(&self, lengths: &[usize]) -> Vec<u8> {
        let mut data = vec![1];
        data.extend((self.layout.rows as u32).to_be_bytes());
        data.extend(lengths.iter().flat_map(|&len| (len as u32).to_be_bytes()));
        chunk(INDEX, &data)
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

/// The bytes before the first IDAT, with zeros in place of the index.
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

/// A compressed segment: its chunk, and in the first piece also the file's beginning.
#[derive(Default)]
pub(super) struct Piece {
    out: BitWriter,
    filtered: Vec<u8>,
    matcher: Matcher,
    fast: Fast,
    /// Offsets in `out` of the chunk and of the deflate data.
    at: usize,
    start: usize,
    /// Whether this is the last segment.
    last: bool,
    crc: crc32fast::Hasher,
    /// Length of the inflated data, and their Adler-32.
    raw: usize,
    adler: u32,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        self.out.bytes()
    }
}

impl Piece {
    /// Writes the bytes before the deflate data of a segment; in the first piece also the file's
    /// beginning.
    fn begin(&mut self, layout: &Layout, index: usize, frame: &Frame) {
        self.last = index + 1 == layout.segments;
        self.raw = layout.bytes(index);
        let out = &mut self.out;
        out.clear();
        // The most that any mode needs; memory that is not touched costs nothing.
        out.reserve(self.raw + self.raw / 2);
        if index == 0 {
            out.extend(&frame.unindexed());
        }
        self.at = out.len();
        // A placeholder for the length, which is not known yet.
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
                let filling = sample::filling(rows, segment.clone(), &mut self.matcher);
                rows.fill_by(filling, segment.start, filtered);
                self.matcher.compress(filtered, &mut self.out);
                flush(self.last, &mut self.out);
                self.adler = simd_adler32::adler32(&&*filtered);
                // Few matches can be smaller: for values that are all multiples of 16, say, whose pattern
                // a filter for each row disturbs.
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

    /// Filters and compresses rows in `Mode::Fast`.
    fn fast(&mut self, rows: &Rows, segment: Range<usize>, filtered: &mut [u8]) {
        let (first, others) = filter::choose(rows, segment.clone());
        rows.fill(segment.start, first, others, filtered);
        self.deflate(filtered);
        self.adler = simd_adler32::adler32(&&*filtered);
    }

    /// Compresses filtered bytes in `Mode::Fast`.
    fn deflate(&mut self, filtered: &[u8]) {
        self.fast.compress(filtered, &mut self.out);
        flush(self.last, &mut self.out);
    }

    /// Takes a segment from a GPU: deflate data, or filtered bytes that are still to be deflated.
    pub fn take(&mut self, bytes: &[u8], deflated: bool, adler: u32) {
        if deflated {
            self.out.extend(bytes);
        } else {
            self.deflate(bytes);
        }
        self.adler = adler;
    }

    /// Computes the CRC of the chunk so far.
    fn end(&mut self) {
        self.crc = crc32fast::Hasher::new();
        self.crc.update(&self.out.bytes()[self.at + 4..]);
    }
}

/// The running sums over all segments, in order.
struct Sums<'a> {
    /// Adler-32 of all filtered bytes so far.
    adler: u32,
    /// Bytes of each segment's deflate data so far.
    data: Vec<usize>,
    frame: &'a Frame<'a>,
}

impl Sums<'_> {
    /// Adds the next segment and completes its chunk.
    fn add(&mut self, piece: &mut Piece) {
        self.adler = adler::joined(self.adler, piece.adler, piece.raw);
        self.data.push(piece.out.len() - piece.start);
        let last = self.data.len() == self.frame.layout.segments;
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
            piece.out.extend(&self.frame.behind());
        }
    }
}
