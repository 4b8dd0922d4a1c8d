//! Bytes to deflate blocks (RFC 1951, section 3.2).

mod bit_writer;
mod block;
mod dynamic_header;
mod huffman;
mod matches;
mod positions;
mod prices;
mod put_simd;
mod quick;
mod repeats;
mod token;

pub use bit_writer::BitWriter;
pub use block::{flush, stored};
pub use matches::{Matcher, Shortest};
pub use repeats::repeats;

pub(super) use quick::QuickMatcher;

/// The compressor for gigabytes per second: runs of zeros and Huffman codes, and matches if a trial on some
/// of the bytes shows that they reduce the size by an eighth.
#[derive(Default)]
pub struct Fast {
    quick: QuickMatcher,
}

impl Fast {
    /// Whether it searches these bytes for matches.
    pub fn searches(&mut self, bytes: &[u8]) -> bool {
        self.quick.pays(bytes)
    }

    /// Appends `bytes` in blocks, none of them the last of the stream.
    pub fn compress(&mut self, bytes: &[u8], out: &mut BitWriter) {
        if self.searches(bytes) {
            self.quick.compress(bytes, out);
        } else {
            block::fast_all(bytes, out);
        }
    }
}
