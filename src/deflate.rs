//! Deflate (RFC 1951) and zlib streams (RFC 1950), read and written at the speed that images need.
//! PNG and TIFF use them; nothing here depends on images, files or devices.
//!
//! - `inflate` decodes a stream in chunks, two streams at once, or one stream on many cores;
//! - `compress` writes blocks, with Huffman codes that are defined to the bit, so that a GPU can produce
//!   the same;
//! - `zlib` reads and writes whole zlib streams in memory;
//! - `adler` combines the checksums of chunks.

pub mod adler;
pub mod compress;
pub mod inflate;
#[cfg(test)]
mod tests;
pub mod zlib;

/// The farthest distance that a match can have, in bytes (RFC 1951, section 2).
pub const WINDOW: usize = 32 << 10;

/// The most bytes that a byte of deflate data can expand to: a match of 258 bytes takes at least 2 bits (RFC 1951, section
/// 3.2.5).
pub const MAX_EXPANSION: u64 = 1032;
