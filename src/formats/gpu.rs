//! Decodes on a GPU: PNGs of any origin, TIFFs with deflate or LZW strips or tiles, and Zarr arrays with zlib or gzip chunks.
//! Encodes PNGs on a GPU.

pub mod decode;
pub(crate) mod inflate;
mod lzw;
pub mod png;
pub(crate) mod png_crc;

/// The fewest pixels of an image that a GPU decodes or compresses. Decoding and compressing launch some 15 kernels each, and wait for
/// their results: for smaller images, that takes longer than the work takes on the CPU. In batches on an H200 with 16 cores, `sum` of
/// PNGs of 512² is 1.5 times as fast if the GPU decodes them, and `normalize` of PNGs of 256² takes 1.4 times as long.
pub const MIN_PIXELS: usize = 1 << 18;
