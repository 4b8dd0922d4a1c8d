//! Whole zlib streams (RFC 1950) in memory, for formats that have many small ones.

use super::compress::{BitWriter, Fast, flush, stored};
use super::inflate::{Fault, Inflater};

/// Whether these bytes can be the header of a zlib stream (RFC 1950, section 2.2): deflate, a window of at
/// most 32 KiB, no preset dictionary.
pub fn is_zlib(head: &[u8; 2]) -> bool {
    let [method, flags] = *head;
    let known = method & 15 == 8 && method >> 4 <= 7 && flags & 32 == 0;
    known && u16::from_be_bytes(*head).is_multiple_of(31)
}

/// Inflates zlib streams, one after the other.
#[derive(Default)]
pub struct Decoder {
    inflate: Inflater,
}

impl Decoder {
    /// Inflates `packed` to the start of `out`, checks the Adler-32 and returns the number of bytes; `None` if
    /// `out` is too small. Data after the stream are ignored.
    pub fn decode(&mut self, packed: &[u8], out: &mut [u8]) -> Result<Option<usize>, Fault> {
        const SHORT: Fault = "they end too early";
        let (head, mut input) = packed.split_first_chunk().ok_or(SHORT)?;
        if !is_zlib(head) {
            return Err("not a zlib stream");
        }
        self.inflate.restart(Default::default());
        let mut filled = 0;
        while !self.inflate.is_done() {
            let step = if filled < out.len() {
                self.inflate.read(input, out, filled)?
            } else if self.inflate.is_in_match() {
                return Ok(None);
            } else {
                // Only the end of a block fits now; anything else does not.
                match self.inflate.read(input, &mut [0u8], 0) {
                    Ok(step) if step.made == 0 => step,
                    _ => return Ok(None),
                }
            };
            input = &input[step.used..];
            filled += step.made;
            if step.needs_input && input.is_empty() {
                return Err(SHORT);
            }
        }
        let stated = self.inflate.rest().word(&mut input.iter()).ok_or(SHORT)?;
        if stated != simd_adler32::adler32(&&out[..filled]) {
            return Err("wrong Adler-32");
        }
        Ok(Some(filled))
    }
}

/// The header of the streams that are written: deflate, a window of 32 KiB, the fastest level.
pub const HEADER: [u8; 2] = [0x78, 0x01];

/// Compresses bytes at gigabytes per second, one stream after the other.
#[derive(Default)]
pub struct Encoder {
    fast: Fast,
    out: BitWriter,
}

impl Encoder {
    /// The zlib stream of `bytes`: at most 1/256 and 1 KiB longer than they are.
    pub fn encode(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.out.clear();
        self.out.reserve(bytes.len() + bytes.len() / 2 + 1024);
        self.out.extend(&HEADER);
        self.fast.compress(bytes, &mut self.out);
        flush(true, &mut self.out);
        if self.out.len() > bytes.len() + bytes.len() / 256 {
            self.out.clear();
            self.out.extend(&HEADER);
            stored(bytes, &mut self.out);
            flush(true, &mut self.out);
        }
        self.out
            .extend(&simd_adler32::adler32(&bytes).to_be_bytes());
        self.out.bytes().to_vec()
    }
}
