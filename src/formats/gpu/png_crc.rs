//! The CRCs of a PNG's chunks on a GPU: kernels/png_crc.cu.

use crate::gpu::launch::png_crc::{ROW, Stretch as CrcSpan};

/// Bytes of a span, which a warp sums up.
const SPAN: usize = 66 * ROW as usize;

/// A range of bytes that has a CRC: the type and the data of a chunk, or a part of them.
pub struct Range {
    /// The offset of its first byte.
    pub at: usize,
    pub len: usize,
    /// The index of its CRC.
    pub sum: usize,
    /// Where `png_join` copies the bytes after the first four, which are the chunk's type.
    pub copied_to: usize,
}

/// Splits a range into spans of one warp each.
pub fn spans(range: Range) -> impl Iterator<Item = CrcSpan> {
    let Range {
        at,
        len,
        sum,
        copied_to,
    } = range;
    (0..len).step_by(SPAN).map(move |from| {
        let span = SPAN.min(len - from);
        CrcSpan {
            at: (at + from) as u32,
            len: span as u32,
            behind: (len - from - span) as u32,
            sum: sum as u32,
            to: (copied_to + from.saturating_sub(4)) as u32,
            first: u32::from(from == 0),
        }
    })
}
