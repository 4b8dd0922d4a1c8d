//! Bits read from bytes, least significant first (RFC 1951, section 3.1.1).

use super::codes::Entry;

/// Up to 64 bits taken from the input but not yet decoded, the next one lowest. Above `count` bits
/// there are zeros, or bits that the next filling brings again.
#[derive(Clone, Copy, Default)]
pub struct BitReader {
    pub buffer: u64,
    pub count: u32,
}

impl BitReader {
    /// Drops `count` bits.
    #[inline(always)]
    pub fn consume(&mut self, count: u32) {
        self.buffer >>= count;
        self.count -= count;
    }

    /// Drops the bits up to the next whole byte.
    pub fn align(&mut self) {
        self.consume(self.count % 8);
    }

    /// Reads `count` bits, which must be in the buffer.
    pub fn read_bits(&mut self, count: u32) -> usize {
        let value = self.buffer & ((1 << count) - 1);
        self.consume(count);
        value as usize
    }

    /// Fills to at least 56 bits from an input of at least 8 bytes; does nothing if it is shorter. Only
    /// the low 6 bits of `count` need to be right.
    #[inline(always)]
    pub fn refill(&mut self, input: &mut &[u8]) {
        if let Some(bytes) = input.first_chunk() {
            self.buffer |= u64::from_le_bytes(*bytes).wrapping_shl(self.count);
            *input = &input[(!self.count & 63) as usize >> 3..];
            self.count = self.count & 7 | 56;
        }
    }

    /// Drops an entry's bits and leaves only the low 6 bits of `count` right: the fewest instructions from
    /// one entry to the next.
    #[inline(always)]
    pub fn pass(&mut self, entry: Entry) {
        self.buffer = self.buffer.wrapping_shr(entry.0);
        self.count = self.count.wrapping_sub(entry.0);
    }

    /// The next whole byte and the three after it, from here and then from `rest`, as a big-endian
    /// number: the Adler-32 that follows the last block. None if `rest` is too short.
    pub fn word<'a>(mut self, rest: &mut impl Iterator<Item = &'a u8>) -> Option<u32> {
        self.align();
        let mut word = 0;
        for _ in 0..4 {
            let byte = match self.count {
                0 => *rest.next()?,
                _ => self.read_bits(8) as u8,
            };
            word = word << 8 | u32::from(byte);
        }
        Some(word)
    }

    /// Fills the buffer as far as the input goes, with all bytes at once if there are enough.
    #[inline]
    pub fn top_up(&mut self, input: &mut &[u8]) {
        match input.len() {
            8.. => self.refill(input),
            _ => self.refill_slowly(input),
        }
    }

    /// Fills the buffer as far as the input goes, byte by byte.
    pub fn refill_slowly(&mut self, input: &mut &[u8]) {
        self.buffer &= (1 << self.count) - 1;
        while let (0..56, Some((&byte, rest))) = (self.count, input.split_first()) {
            self.buffer |= u64::from(byte) << self.count;
            self.count += 8;
            *input = rest;
        }
    }
}
