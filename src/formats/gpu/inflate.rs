//! Inflates zlib streams on a GPU, of any origin: one of many megabytes, as a PNG has, or hundreds of small ones, as the strips of
//! a TIFF. The kernels are those of kernels/inflate_*.cu, in the order of their parts.
//!
//! The GPU finds where deflate's blocks begin and decodes all of them at once, and follows the chain of one stream's blocks from
//! the first to the last. Where something does not fit, and for several streams, the host does (`chain.rs`), and has parts
//! decoded again. Codes and distances are checked by the kernels, lengths by the chain, the Adler-32 on the GPU.

mod adler;
mod chain;
mod count;
pub mod order;
mod records;
mod write;

pub use adler::{Agreement, agrees, sum_up};
pub use count::{Counted, Records, count};
pub use write::write;

/// Blocks of threads that a multiprocessor holds of `inflate_count`: as its shared
/// memory allows.
const RESIDENT: u32 = 8;
