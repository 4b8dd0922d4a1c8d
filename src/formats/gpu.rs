//! Decodes and encodes on a GPU: PNGs of any origin, and TIFFs of deflate or LZW strips or tiles.

pub mod decode;
pub(crate) mod inflate;
mod lzw;
pub mod png;
pub(crate) mod png_crc;

/// The fewest pixels of an image that a GPU decodes or compresses. The fixed time of some 15 kernels for each of both, and of the waits
/// for their results, is longer than the CPU takes for smaller ones. In batches on an H200 with 16 cores, a GPU that decodes PNGs of
/// 512² sums half as many more of them per second as with the CPU's decoder, and a GPU that decodes PNGs of 256² normalizes a third fewer.
pub const MIN_PIXELS: usize = 1 << 18;
