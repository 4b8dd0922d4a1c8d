//! Pixels that have been filtered and deflated elsewhere, in the segments of a PNG (`png/encode.rs` defines
//! their bytes): a GPU hands these to the encoder.

use crate::image::{HostMemory, Shape};
use anyhow::{Result, ensure};
use std::ops::Range;

/// Filtered bytes of a segment, unless a single row is longer.
const SEGMENT: usize = 1 << 20;

/// A limit on rows: chunks hold at most 2³¹ − 1 bytes, and compression may add half a row's length.
const LONGEST_ROW: usize = 1 << 30;

/// An image as the deflated segments of a PNG.
#[derive(Debug)]
pub struct Deflated {
    pub(super) segments: Segments,
    pub(super) memory: HostMemory,
}

/// The position of an image's segments in a block of memory.
#[derive(Debug)]
pub struct Segments {
    pub(crate) layout: Layout,
    /// The segments, in order.
    pub(crate) segments: Vec<Segment>,
    /// Bytes in that memory; later bytes are in `rest`.
    pub(crate) inside: usize,
    pub(crate) rest: Vec<u8>,
}

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its range of bytes, counted from the beginning of the memory.
    pub at: Range<usize>,
    /// Whether it is deflate data; otherwise it is filtered bytes in which the CPU still has to
    /// search for matches.
    pub deflated: bool,
    /// The Adler-32 of the filtered bytes.
    pub adler: u32,
    /// The CRC-32 of the deflate data, if they are.
    pub crc: u32,
}

impl Deflated {
    /// Combines the segments with the memory that holds them.
    pub fn new(segments: Segments, memory: HostMemory) -> Deflated {
        Deflated { segments, memory }
    }

    /// The shape of the image.
    pub fn shape(&self) -> Shape {
        self.segments.layout.shape
    }
}

/// The division of an image's rows into segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub shape: Shape,
    /// Bytes of a filtered row, its filter byte included.
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

    /// The rows of a segment.
    pub(super) fn segment(&self, index: usize) -> Range<usize> {
        let start = index * self.rows;
        start..(start + self.rows).min(self.shape.height)
    }

    /// Filtered bytes of a segment.
    pub fn bytes(&self, index: usize) -> usize {
        self.segment(index).len() * self.row
    }

    /// Bytes of the index chunk's data.
    pub(super) fn index_len(&self) -> usize {
        5 + 4 * self.segments
    }
}
