//! The file around pixels that have been filtered and deflated elsewhere, with the very bytes of `encode`
//! in `Mode::Fast`.

use super::encode::write;
use crate::codec::deflated::{Deflated, Segment, Segments};
use crate::files::Target;
use crate::metadata::Metadata;
use anyhow::Result;

impl Deflated {
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
