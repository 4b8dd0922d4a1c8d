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
//! `deflate::compress`. These two functions define the rest of the bytes. `Mode::Small`: filters and blocks by `Small`;
//! as `Mode::Fast` where that searches for no matches and makes less, or where neither its filtered bytes nor those of
//! the filter None have `repeats`. `Mode::Store`: filter None, stored blocks of 65535 bytes.

mod file;
mod filter;
mod small;

pub(super) use file::{File, Frame};

use crate::deflate::compress::{BitWriter, Fast, flush, repeats, stored};
use crate::deflate::zlib;
use crate::formats::Encoder;
use crate::formats::deflated::{Deflated, Layout};
use crate::formats::format::Bands;
use crate::image::metadata::Metadata;
use crate::image::{Image, Shape};
use crate::os::Target;
use anyhow::{Context, Result};
use filter::{Filter, Rows};
use small::Small;
use std::borrow::Cow;
use std::ops::Range;

/// How PNG data is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub enum Mode {
    /// Gigabytes per second, and small files for noisy images; smooth, dark and flat images can be a third larger than with small
    #[default]
    Fast,
    /// Searches for matches: smaller files for smooth images and even backgrounds, but many times slower
    Small,
    /// No compression
    Store,
}

/// Writes `image` to `target` as a PNG of 8 or 16 bits a sample and returns the file's length in
/// bytes; the caller commits it. Errors: the target's, and an image that PNG cannot hold.
pub fn encode(image: &Image, mode: Mode, target: &Target) -> Result<u64> {
    encode_with(image, &Metadata::default(), mode, target)
}

/// As `encode`, with metadata.
fn encode_with(image: &Image, metadata: &Metadata, mode: Mode, target: &Target) -> Result<u64> {
    let mut file = File::new(Layout::new(&image.shape())?, metadata);
    file.add_rows(image, mode, target)?;
    file.finish(target)
}

/// Encodes one image to a PNG file.
pub struct PngEncoder<'a> {
    target: &'a Target,
    mode: Mode,
    /// The file's length in bytes, once it is written.
    length: u64,
    /// The file of a page of which some rows are still to come.
    open: Option<File>,
}

impl<'a> PngEncoder<'a> {
    pub fn new(target: &'a Target, mode: Mode) -> PngEncoder<'a> {
        PngEncoder {
            target,
            mode,
            length: 0,
            open: None,
        }
    }
}

impl Encoder for PngEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        self.length = encode_with(&image, metadata, self.mode, self.target)?;
        Ok(())
    }

    fn bands(&self, shape: &Shape) -> Option<Bands> {
        Some(Bands {
            unit: Layout::new(shape).ok()?.rows,
            trial: Vec::new(),
        })
    }

    fn begin(&mut self, shape: &Shape, metadata: &Metadata, _trial: &[Image]) -> Result<()> {
        self.open = Some(File::new(Layout::new(shape)?, metadata));
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let file = self.open.as_mut().context("a band of no page")?;
        file.add_rows(&band, self.mode, self.target)?;
        if file.is_whole() {
            self.length = file.finish(self.target)?;
        }
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

/// A compressed segment: its chunk, and in the first piece also the file's beginning.
#[derive(Default)]
pub(super) struct Piece {
    out: BitWriter,
    filtered: Vec<u8>,
    small: Small,
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
    fn begin(&mut self, index: usize, frame: &Frame) {
        let layout = &frame.layout;
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
            Mode::Small => self.small(rows, segment, filtered),
            Mode::Store => {
                rows.fill(segment.start, Filter::None, Filter::None, filtered);
                stored(filtered, &mut self.out);
                flush(self.last, &mut self.out);
                self.adler = simd_adler32::adler32(&&*filtered);
            }
        }
        self.filtered = memory;
    }

    /// Filters and compresses rows in `Mode::Small`, if there are matches to be found.
    fn small(&mut self, rows: &Rows, segment: Range<usize>, filtered: &mut [u8]) {
        let (first, others) = filter::choose(rows, segment.clone());
        let fillings = [(first, others), (Filter::None, Filter::None)];
        let found = fillings.iter().any(|&(first, others)| {
            rows.fill(segment.start, first, others, filtered);
            repeats(filtered)
        });
        if !found {
            return self.fast(rows, segment, filtered);
        }
        self.small
            .compress(rows, segment.clone(), filtered, &mut self.out);
        flush(self.last, &mut self.out);
        self.adler = simd_adler32::adler32(&&*filtered);
        // Few matches can be longer than none: for values that are all multiples of 16, say, whose pattern a filter for
        // each row disturbs.
        rows.fill(segment.start, first, others, filtered);
        if self.fast.searches(filtered) {
            return;
        }
        let small = self.out.split_off(self.start);
        self.deflate(filtered);
        if small.len() <= self.out.len() - self.start {
            self.out.split_off(self.start);
            self.out.extend(&small);
        } else {
            self.adler = simd_adler32::adler32(&&*filtered);
        }
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
