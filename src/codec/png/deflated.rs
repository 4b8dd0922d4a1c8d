//! Pixels that were filtered and deflated on a GPU, to the same bytes as `encode` with
//! `Mode::Fast`, and the file written around them.

use super::encode::{Layout, write};
use crate::files::Target;
use crate::image::{HostMemory, Shape};
use crate::metadata::Metadata;
use anyhow::Result;
use std::ops::Range;

/// An image as the deflated segments of a PNG.
#[derive(Debug)]
pub struct Deflated {
    segments: Segments,
    memory: HostMemory,
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

    /// Writes the file to `target` on all threads and returns its length in bytes; the caller
    /// commits it. Errors: the target's, and samples whose meaning PNG cannot express.
    pub fn write(&self, metadata: &Metadata, target: &Target) -> Result<u64> {
        self.segments.write(&self.memory, metadata, target)
    }
}

impl Segments {
    /// As `Deflated::write`, for segments in `memory`.
    pub fn write(&self, memory: &[u8], metadata: &Metadata, target: &Target) -> Result<u64> {
        write(&self.layout, metadata, target, |index, piece| {
            let Segment {
                at,
                deflated,
                adler,
            } = &self.segments[index];
            let bytes = match at.end <= self.inside {
                true => &memory[at.clone()],
                false => &self.rest[at.start - self.inside..at.end - self.inside],
            };
            piece.take(bytes, *deflated, *adler);
        })
    }
}
