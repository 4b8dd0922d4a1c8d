//! Writes PNG files fast: rows are grouped into segments, and threads compress segments independently.
//!
//! # The bytes of a file
//! The bytes depend only on the image, its metadata and the mode. A *segment* has as many whole rows as
//! fit into 1 MiB with their filter types, but at least one row; the last segment has the rest. The
//! parts of a file are, in order:
//! 1. signature, IHDR;
//! 2. `gpIS` if there are at least two segments (see `INDEX`), and the metadata's chunks;
//! 3. one IDAT per segment: its deflate data; in the first segment zlib's header (78 01) before them,
//!    and in the last the Adler-32 of all filtered bytes after them (RFC 1950);
//! 4. the metadata chunks that were after the image data in the input, and IEND.
//!
//! A segment refers to no byte before itself: its first row is filtered without the row above, its
//! matches stay inside, and it starts and ends at a byte. It ends with an empty stored block (RFC
//! 1951 §3.2.4), which in the last segment is marked as the final block.
//!
//! | mode | filters | blocks |
//! |---|---|---|
//! | `Fast` | `filter::choose` | `deflate::compress::Fast` |
//! | `Small` | `Small` | `Small` |
//! | `Store` | None | stored, of 65535 bytes |
//!
//! In mode `Small`, a segment has the bytes of mode `Fast` if it has no matches: `repeats` finds none in the
//! bytes that `Fast` filters, and none with the filter None. It also has them if they are shorter, unless
//! `Fast` itself searches for matches.

mod file;
mod filter;
mod small;

pub(super) use file::{OuterChunks, PngFile};

use crate::deflate::compress::{BitWriter, Fast, flush, repeats, stored};
use crate::deflate::zlib;
use crate::formats::Encoder;
use crate::formats::deflated::{Deflated, EncodedSegment, SegmentLayout};
use crate::formats::format::Bands;
use crate::image::metadata::Metadata;
use crate::image::{Image, Shape};
use crate::os::Target;
use anyhow::{Context, Result};
use filter::{FilterSource, Filters};
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

/// Writes `image` to `target` as a PNG of 8 or 16 bits per sample and returns the file's length in
/// bytes; the caller commits it.
///
/// # Errors
/// Errors of the target, and an image that PNG cannot store.
pub fn encode(image: &Image, mode: Mode, target: &Target) -> Result<u64> {
    encode_with(image, &Metadata::default(), mode, target)
}

/// As `encode`, with metadata.
fn encode_with(image: &Image, metadata: &Metadata, mode: Mode, target: &Target) -> Result<u64> {
    let mut file = PngFile::new(SegmentLayout::new(&image.shape())?, metadata);
    file.add_rows(image, mode, target)?;
    file.finish(target)
}

/// Encodes one image to a PNG file.
pub struct PngEncoder<'a> {
    target: &'a Target,
    mode: Mode,
    /// The file's length in bytes, once it is written.
    length: u64,
    /// The file of a page that is not complete yet.
    open: Option<PngFile>,
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
            unit: SegmentLayout::new(shape).ok()?.rows,
            trial: Vec::new(),
        })
    }

    fn begin(&mut self, shape: &Shape, metadata: &Metadata, _trial: &[Image]) -> Result<()> {
        self.open = Some(PngFile::new(SegmentLayout::new(shape)?, metadata));
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let file = self
            .open
            .as_mut()
            .context("internal error: rows of a page that was not begun")?;
        file.add_rows(&band, self.mode, self.target)?;
        if file.is_complete() {
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

/// Encodes a segment: its chunk, and for the first segment also the bytes of the file before it. Its memory is reused for the
/// next segment.
#[derive(Default)]
pub(super) struct SegmentEncoder {
    out: BitWriter,
    filtered: Vec<u8>,
    small: Small,
    fast: Fast,
    /// The offset in `out` of the chunk.
    chunk_offset: usize,
    /// The offset in `out` of the deflate data.
    data_offset: usize,
    /// Whether this is the last segment.
    last: bool,
    /// The CRC of the chunk so far.
    crc: crc32fast::Hasher,
    /// The number of filtered bytes.
    filtered_len: usize,
    /// The Adler-32 of the filtered bytes.
    adler: u32,
}

impl AsRef<[u8]> for SegmentEncoder {
    fn as_ref(&self) -> &[u8] {
        self.out.bytes()
    }
}

impl SegmentEncoder {
    /// Writes the bytes before the deflate data of a segment, and for the first segment also the start of the file.
    fn begin(&mut self, index: usize, outer: &OuterChunks) {
        let layout = &outer.layout;
        self.last = index + 1 == layout.count;
        self.filtered_len = layout.filtered_bytes(index);
        let out = &mut self.out;
        out.clear();
        // The most that any mode needs. Memory that is never written to is not allocated by the system.
        out.reserve(self.filtered_len + self.filtered_len / 2);
        if index == 0 {
            out.extend(&outer.before_with_empty_index());
        }
        self.chunk_offset = out.len();
        // A placeholder for the length, which is not known yet.
        out.extend(b"\0\0\0\0IDAT");
        if index == 0 {
            out.extend(&zlib::HEADER);
        }
        self.data_offset = out.len();
    }

    /// Filters and compresses rows.
    fn compress(&mut self, source: &FilterSource, rows: Range<usize>, mode: Mode) {
        if self.filtered.len() < self.filtered_len {
            self.filtered = vec![0; self.filtered_len];
        }
        let mut memory = std::mem::take(&mut self.filtered);
        let filtered = &mut memory[..self.filtered_len];
        match mode {
            Mode::Fast => self.compress_fast(source, rows, filtered),
            Mode::Small => self.compress_small(source, rows, filtered),
            Mode::Store => {
                source.filter_rows(rows.start, Filters::NONE, filtered);
                stored(filtered, &mut self.out);
                flush(self.last, &mut self.out);
                self.adler = simd_adler32::adler32(&&*filtered);
            }
        }
        self.filtered = memory;
    }

    /// Filters and compresses rows in `Mode::Fast`.
    fn compress_fast(&mut self, source: &FilterSource, rows: Range<usize>, filtered: &mut [u8]) {
        let filters = filter::choose(source, rows.clone());
        source.filter_rows(rows.start, filters, filtered);
        self.deflate_fast(filtered);
        self.adler = simd_adler32::adler32(&&*filtered);
    }

    /// Filters and compresses rows in `Mode::Small`.
    fn compress_small(&mut self, source: &FilterSource, rows: Range<usize>, filtered: &mut [u8]) {
        let filters = filter::choose(source, rows.clone());
        let has_matches = [filters, Filters::NONE].into_iter().any(|filters| {
            source.filter_rows(rows.start, filters, filtered);
            repeats(filtered)
        });
        if !has_matches {
            return self.compress_fast(source, rows, filtered);
        }
        self.small
            .compress(source, rows.clone(), filtered, &mut self.out);
        flush(self.last, &mut self.out);
        self.adler = simd_adler32::adler32(&&*filtered);
        source.filter_rows(rows.start, filters, filtered);
        self.replace_by_fast_if_shorter(filtered);
    }

    /// Compresses the bytes that `Mode::Fast` filters, and keeps the result if it is shorter. Data with few matches can be longer
    /// than data without, for example if all values are multiples of 16 and a filter for each row disturbs their pattern.
    fn replace_by_fast_if_shorter(&mut self, filtered: &[u8]) {
        if self.fast.searches(filtered) {
            return;
        }
        let small = self.out.split_off(self.data_offset);
        self.deflate_fast(filtered);
        if self.out.len() - self.data_offset < small.len() {
            self.adler = simd_adler32::adler32(&filtered);
        } else {
            self.out.truncate(self.data_offset);
            self.out.extend(&small);
        }
    }

    /// Compresses filtered bytes in `Mode::Fast`.
    fn deflate_fast(&mut self, filtered: &[u8]) {
        self.fast.compress(filtered, &mut self.out);
        flush(self.last, &mut self.out);
    }

    /// Sets the data to those of a segment from a GPU: deflate data, or filtered bytes, which are deflated here.
    pub fn set_from_gpu(&mut self, bytes: &[u8], segment: &EncodedSegment) {
        if segment.deflated {
            self.out.extend(bytes);
        } else {
            self.deflate_fast(bytes);
        }
        self.adler = segment.adler;
    }

    /// Computes the CRC of the chunk so far.
    fn start_crc(&mut self) {
        self.crc = crc32fast::Hasher::new();
        self.crc.update(&self.out.bytes()[self.chunk_offset + 4..]);
    }
}
