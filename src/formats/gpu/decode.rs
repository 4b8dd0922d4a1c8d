//! Decodes a page on a GPU: a PNG of any origin, or a TIFF of deflate strips or tiles. Its compressed data are uploaded, and its
//! samples stay in device memory. The kernels are those of `inflate`, and kernels/png_crc.cu, png_rows.cu,
//! png_unfilter.cu and tiff_rows.cu.
//!
//! All that the CPU's decoder checks is checked: chunks and CRCs of a PNG while the file is read
//! (`formats/png/decode/packed.rs`) and on the GPU, the streams by `inflate`. No error of a file is reported here: the
//! CPU's decoder then decodes the file, and reports it.

mod chunks;
mod device;
mod join;
mod unfilter;

pub use device::{decode_on_gpu, decode_resident};

/// Pixels from which on a GPU decodes an image: below it, the fixed time of some 15 kernels and of a
/// wait for their results is longer than the CPU's decoder takes.
pub const MIN_PIXELS: usize = 1 << 20;

/// Bytes of file from which on a GPU decodes an image: a thread block decodes at least 2 KiB of
/// compressed data, so fewer bytes, of a small or a very regular image, leave most of a GPU idle.
pub const MIN_BYTES: u64 = 256 << 10;
