//! Pixels that a GPU has filtered and deflated, in the segments of a PNG. `png/encode.rs` defines their bytes.

use crate::image::{HostMemory, Shape};
use anyhow::{Result, ensure};
use std::ops::Range;

/// The most filtered bytes of a segment, unless a single row is longer.
const SEGMENT_BYTES: usize = 1 << 20;

/// The longest row. A chunk has at most 2³¹ − 1 bytes, and compression may add half a row's length.
const MAX_ROW_BYTES: usize = 1 << 30;

/// An image as the deflated segments of a PNG.
#[derive(Debug)]
pub struct Deflated {
    pub(super) segments: EncodedSegments,
    pub(super) memory: HostMemory,
}

/// The position of an image's segments in a block of memory.
#[derive(Debug)]
pub struct EncodedSegments {
    pub(crate) layout: SegmentLayout,
    /// The segments, in order.
    pub(crate) segments: Vec<EncodedSegment>,
    /// The number of bytes in the memory. The bytes after them are in `overflow`.
    pub(crate) in_memory: usize,
    pub(crate) overflow: Vec<u8>,
}

/// One segment.
#[derive(Debug)]
pub(crate) struct EncodedSegment {
    /// Its range of bytes in the memory, continued in `EncodedSegments::overflow`.
    pub at: Range<usize>,
    /// Whether it is deflate data. Otherwise it is filtered bytes, in which the CPU must search for
    /// matches.
    pub deflated: bool,
    /// The Adler-32 of the filtered bytes.
    pub adler: u32,
    /// The CRC-32 of the deflate data, if there are any.
    pub crc: u32,
}

impl Deflated {
    /// Combines the segments with the memory that holds them.
    pub fn new(segments: EncodedSegments, memory: HostMemory) -> Deflated {
        Deflated { segments, memory }
    }

    /// The shape of the image.
    pub fn shape(&self) -> Shape {
        self.segments.layout.shape
    }
}

/// The division of an image's rows into segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentLayout {
    pub shape: Shape,
    /// Bytes of a filtered row, its filter type included.
    pub scanline_bytes: usize,
    /// Rows of a segment. The last one may have fewer.
    pub rows: usize,
    /// The number of segments.
    pub count: usize,
}

impl SegmentLayout {
    pub fn new(shape: &Shape) -> Result<SegmentLayout> {
        let row_bytes = shape.row() * shape.depth.bytes();
        ensure!(
            shape.width.max(shape.height) <= i32::MAX as usize && row_bytes <= MAX_ROW_BYTES,
            "{}×{} pixels are more than a PNG can store",
            shape.width,
            shape.height
        );
        let scanline_bytes = 1 + row_bytes;
        let rows = (SEGMENT_BYTES / scanline_bytes).max(1);
        Ok(SegmentLayout {
            shape: *shape,
            scanline_bytes,
            rows,
            count: shape.height.div_ceil(rows),
        })
    }

    /// The rows of a segment.
    pub(super) fn rows_of(&self, index: usize) -> Range<usize> {
        let start = index * self.rows;
        start..(start + self.rows).min(self.shape.height)
    }

    /// Filtered bytes of a segment.
    pub fn filtered_bytes(&self, index: usize) -> usize {
        self.rows_of(index).len() * self.scanline_bytes
    }

    /// Bytes of the index chunk's data.
    pub(super) fn index_bytes(&self) -> usize {
        5 + 4 * self.count
    }
}
