//! Inflates zlib streams on a GPU, of any origin: one of many megabytes, as a PNG has, or hundreds of small ones, as the strips of
//! a TIFF. The kernels are kernels/inflate_find.cu, inflate.cu, inflate_matches.cu and inflate_adler.cu.
//!
//! The GPU finds where deflate's blocks begin and decodes all of them at once; the host follows the
//! chain of each stream's blocks from the first to the last and has parts that do not fit decoded again
//! (`chain.rs`). Codes and distances are checked by the kernels, lengths by the chain, the Adler-32 on the GPU.

mod adler;
mod chain;
mod count;
mod records;
mod write;

pub use adler::{Agreement, agrees, sum_up};
pub use count::count;
pub use write::write;

/// Blocks of threads that a multiprocessor holds of the kernels that stay on it: as their shared
/// memory allows.
const RESIDENT: u32 = 8;

/// Threads of most blocks.
pub const THREADS: u32 = 256;
