//! The CRCs of a PNG's chunks on a GPU: kernels/png_crc.cu.

/// Bytes that a warp sums up.
const STRETCH: usize = 66 * 128;

/// Stretches of a block of threads.
pub const WARPS: usize = 8;

/// Bytes of a chunk that a warp sums up, as words in the order of the kernels' `Stretch`.
pub type Stretch = [u32; STRETCH_WORDS];
pub const STRETCH_WORDS: usize = 6;

/// Cuts the kind and the data of a chunk, `len` bytes from byte `at` on, into stretches, whose sum is that of
/// number `sum`; its data are copied to byte `to`.
pub fn cut(at: usize, len: usize, sum: usize, to: usize) -> impl Iterator<Item = Stretch> {
    (0..len).step_by(STRETCH).map(move |from| {
        let part = STRETCH.min(len - from);
        // The kind is not copied.
        let to = to + from.saturating_sub(4);
        let words = [at + from, part, len - from - part, sum, to];
        let [at, part, behind, sum, to] = words.map(|word| word as u32);
        [at, part, behind, sum, to, u32::from(from == 0)]
    })
}
