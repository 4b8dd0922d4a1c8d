//! Inflating deflate data (RFC 1951).
//!
//! Noisy images are nearly all literals, and the time goes into the chain from one code word to the
//! next. So one table entry gives up to three literals at once (`cursor`), and a block is decoded in
//! several places in turns (`speculative`). Decoding can start at any bit at which a block starts,
//! and to symbols wider than bytes, which can stand for bytes that are not known yet (`part`).

mod bit_reader;
mod block_finder;
pub mod block_header;
mod codes;
mod cursor;
mod inflater;
mod literal_cursor;
pub mod parallel;
mod part;
mod speculative;

pub use bit_reader::BitReader;
pub use codes::Fault;
pub use inflater::{Inflater, Step, Stream, read_both};
