//! Decodes a PNG of any origin on a GPU: its compressed data are uploaded, and its samples stay in
//! device memory. The kernels are kernels/png_crc.cu, png_find.cu, png_inflate.cu, png_matches.cu, png_rows.cu
//! and png_unfilter.cu.
//!
//! The GPU finds where deflate's blocks begin and decodes all of them at once; the host follows the
//! chain of blocks from the first to the last and has parts that do not fit decoded again
//! (`chain.rs`). All that the CPU's decoder checks is checked: chunks and CRCs while the file is
//! read (`codec/png/decode/packed.rs`), codes and distances by the kernels, lengths by the chain,
//! the Adler-32 on the GPU. No error of a file is reported here: the CPU's decoder then decodes the
//! file, and reports it.

mod chain;
mod count;
mod device;
mod inflate;
mod join;
mod records;
mod unfilter;

pub use device::{decode_on_gpu, decode_resident};

/// Pixels from which on a GPU decodes an image: below it, the fixed time of some 20 kernels and of
/// two waits for their results is longer than the CPU's decoder takes.
pub const MIN_PIXELS: usize = 1 << 20;

/// Bytes of file from which on a GPU decodes an image: a thread block decodes at least 2 KiB of
/// compressed data, so fewer bytes, of a small or a very regular image, leave most of a GPU idle.
pub const MIN_BYTES: u64 = 256 << 10;

/// Blocks of threads that a multiprocessor holds of the kernels that stay on it: as their shared
/// memory allows.
const RESIDENT: u32 = 8;

/// Threads of most blocks.
const THREADS: u32 = 256;
