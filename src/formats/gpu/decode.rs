//! Decodes a page on a GPU: a PNG of any origin, a TIFF with deflate or LZW strips or tiles, or a Zarr array with zlib or gzip
//! chunks. The compressed data are uploaded, and the samples stay in device memory. The kernels are those of `inflate` and
//! `lzw`, and kernels/png_crc.cu, png_rows.cu, png_unfilter.cu and tiff_rows.cu.
//!
//! The GPU's decoder checks everything that the CPU's decoder checks: the chunks of a PNG while the file is read
//! (`formats/png/decode/packed.rs`), their CRCs on the GPU, and the streams in `inflate`. Faults of the file are left to the
//! CPU's decoder, which reports them.

mod device;
mod join;
mod tiles;
mod unfilter;

pub use device::{Decoded, decode_on_gpu, decode_resident};

/// The fewest bytes of a file that a GPU decodes. A thread block decodes at least 2 KiB of compressed data, so fewer bytes, of
/// a small or a very regular image, leave most of a GPU idle.
pub const MIN_BYTES: u64 = 256 << 10;
