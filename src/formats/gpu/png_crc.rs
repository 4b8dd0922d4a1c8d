//! The CRCs of a PNG's chunks on a GPU: kernels/png_crc.cu.

use crate::gpu::launch::png_crc::{ROW, Stretch};

/// Bytes that a warp sums up.
const STRETCH: usize = 66 * ROW as usize;

/// Cuts the kind and the data of a chunk, `len` bytes from byte `at` on, into stretches, whose sum is that of
/// number `sum`; its data are copied to byte `to`.
pub fn cut(at: usize, len: usize, sum: usize, to: usize) -> impl Iterator<Item = Stretch> {
    (0..len).step_by(STRETCH).map(move |from| {
        let part = STRETCH.min(len - from);
        // The kind is not copied.
        let to = to + from.saturating_sub(4);
        Stretch {
            at: (at + from) as u32,
            len: part as u32,
            behind: (len - from - part) as u32,
            sum: sum as u32,
            to: to as u32,
            first: u32::from(from == 0),
        }
    })
}
