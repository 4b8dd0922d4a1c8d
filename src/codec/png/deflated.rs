//! Pixels that have been filtered and deflated elsewhere, to the very bytes of `encode` with
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

/// Where the segments of an image lie in a memory.
#[derive(Debug)]
pub struct Segments {
    pub(crate) layout: Layout,
    /// In order.
    pub(crate) segments: Vec<Segment>,
    /// Bytes that lie in the memory; those behind them are in `rest`.
    pub(crate) inside: usize,
    pub(crate) rest: Vec<u8>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its bytes, counted from the beginning of the memory.
    pub at: Range<usize>,
    /// Whether they are deflate data, or filtered bytes in which matches may pay, which are still to
    /// be found.
    pub deflated: bool,
    /// Of the filtered bytes.
    pub adler: u32,
}

impl Deflated {
    /// The segments with the memory that they lie in.
    pub fn new(segments: Segments, memory: HostMemory) -> Deflated {
        Deflated { segments, memory }
    }

    /// The shape of the image.
    pub fn shape(&self) -> Shape {
        self.segments.layout.shape
    }

    /// Writes the file to `target`, on all threads, and returns its length, which the caller commits.
    /// Errors: the target's, and samples that mean what PNG cannot say.
    pub fn write(&self, metadata: &Metadata, target: &Target) -> Result<u64> {
        self.segments.write(&self.memory, metadata, target)
    }
}

impl Segments {
    /// The same of segments in `memory`.
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
