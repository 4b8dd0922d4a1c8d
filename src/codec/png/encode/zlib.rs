//! A whole zlib stream (RFC 1950) in memory, for formats that have many small ones.

use super::bits::Bits;
use super::block;
use super::quick::Quick;

/// Compresses bytes as `Mode::Fast` does, one stream after the other.
#[derive(Default)]
pub struct Zip {
    quick: Quick,
    out: Bits,
}

impl Zip {
    /// The zlib stream of `bytes`: at most 1/256 and 1 KiB longer than they are.
    pub fn zip(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.out.clear();
        self.out.reserve(bytes.len() + bytes.len() / 2 + 1024);
        self.out.extend(&[0x78, 0x01]);
        if self.quick.pays(bytes) {
            self.quick.compress(bytes, &mut self.out);
        } else {
            block::fast_all(bytes, &mut self.out);
        }
        block::flush(true, &mut self.out);
        if self.out.len() > bytes.len() + bytes.len() / 256 {
            self.out.clear();
            self.out.extend(&[0x78, 0x01]);
            block::stored(bytes, &mut self.out);
            block::flush(true, &mut self.out);
        }
        self.out
            .extend(&simd_adler32::adler32(&bytes).to_be_bytes());
        self.out.bytes().to_vec()
    }
}
