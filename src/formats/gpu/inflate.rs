//! Inflates zlib streams and gzip members of any origin on a GPU: one of many megabytes, as a PNG has, or hundreds of small ones,
//! as the strips of a TIFF. The kernels are kernels/inflate_*.cu.
//!
//! 1. `search` finds where deflate's blocks start, cuts them into parts, decodes all parts at once, and counts the bytes and
//!    the matches that each makes.
//! 2. `order` puts the parts in order. For a single stream the GPU does it by itself, if each block starts where the one before
//!    ends. Otherwise, and for several streams, the host does it (`chain`), and has parts decoded again.
//! 3. `write` writes the literals of each part to their place, and then the matches.
//! 4. `checksums` checks the streams: codes and distances by the kernels, lengths by the order, the Adler-32 or CRC-32 on the
//!    GPU.

mod chain;
mod checksums;
pub mod order;
mod records;
mod search;
mod write;

pub use checksums::{Agreement, check_streams, compare_crcs, queue_checksums};
pub use search::{BlockSearch, Records, find_blocks};
pub use write::write;
