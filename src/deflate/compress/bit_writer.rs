//! Bits packed into bytes, least significant first (RFC 1951, section 3.1.1).

/// A buffer that grows at its end by bits. Its memory is kept from one use to the next: only the
/// first `pos` bytes of `bytes` count.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pos: usize,
    /// Bits not yet in `bytes`, fewer than 8 of them between calls.
    waiting: u64,
    count: u32,
}

impl BitWriter {
    /// Empties the buffer and keeps its memory.
    pub fn clear(&mut self) {
        (self.pos, self.waiting, self.count) = (0, 0, 0);
    }

    /// The whole bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.pos]
    }

    /// Whole bytes so far.
    pub fn len(&self) -> usize {
        self.pos
    }

    /// Removes the bytes from `at` on and returns them; the last bit must lie at the end of a byte.
    pub fn split_off(&mut self, at: usize) -> Vec<u8> {
        let tail = self.bytes[at..self.pos].to_vec();
        self.truncate(at);
        tail
    }

    /// Removes the bytes from `at` on; the last bit must lie at the end of a byte.
    pub fn truncate(&mut self, at: usize) {
        debug_assert_eq!(self.count, 0);
        self.pos = at;
    }

    /// Overwrites whole bytes from `at` on.
    pub fn patch(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Makes room for `bytes` more bytes, and for the overhang of the last `put`.
    pub fn reserve(&mut self, bytes: usize) {
        let needed = self.pos + bytes + 16;
        if self.bytes.is_empty() {
            self.bytes = vec![0; needed]; // zeroed by the system where it is used, not before
        } else if self.bytes.len() < needed {
            self.bytes.resize(needed.next_multiple_of(1 << 16), 0);
        }
    }

    /// Appends the low `count` ≤ 56 bits of `bits`, whose other bits are 0, where `reserve`
    /// made room.
    #[inline(always)]
    pub fn put(&mut self, bits: u64, count: u32) {
        self.packer().put(bits, count);
    }

    /// The same buffer with its state in local variables, which a loop keeps in registers.
    #[inline(always)]
    pub fn packer(&mut self) -> Packer<'_> {
        Packer {
            waiting: self.waiting,
            count: self.count,
            pos: self.pos,
            writer: self,
        }
    }

    /// Fills up to the next whole byte with zero bits.
    pub fn align(&mut self) {
        let missing = self.count.wrapping_neg() % 8;
        self.put(0, missing);
    }

    /// Appends bytes; the last bit must lie at the end of a byte.
    pub fn extend(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.count, 0);
        self.reserve(bytes.len());
        self.bytes[self.pos..self.pos + bytes.len()].copy_from_slice(bytes);
        self.pos += bytes.len();
    }
}

/// A `BitWriter` in use by a loop. Dropping it hands its state back.
pub struct Packer<'a> {
    writer: &'a mut BitWriter,
    waiting: u64,
    count: u32,
    pos: usize,
}

impl Packer<'_> {
    /// As `BitWriter::put`.
    #[inline(always)]
    pub fn put(&mut self, bits: u64, count: u32) {
        self.waiting |= bits << self.count;
        self.count += count;
        // All eight bytes are stored and only the full ones counted: no branch on how many.
        self.writer.bytes[self.pos..self.pos + 8].copy_from_slice(&self.waiting.to_le_bytes());
        self.pos += (self.count / 8) as usize;
        self.waiting >>= self.count & 56;
        self.count &= 7;
    }
}

// For the SIMD of `put_simd.rs`.
#[cfg(target_arch = "x86_64")]
impl Packer<'_> {
    /// As eight calls of `put`, with one bounds check for all: `reserve` must have made room for 128
    /// bytes more.
    #[inline(always)]
    pub fn put_eight(&mut self, bits: [u64; 8], counts: [u64; 8]) {
        let room = &mut self.writer.bytes[self.pos..self.pos + 128];
        let mut at = 0;
        for (bits, count) in bits.into_iter().zip(counts) {
            self.waiting |= bits << self.count;
            self.count += count as u32;
            room[at..at + 8].copy_from_slice(&self.waiting.to_le_bytes());
            at += (self.count / 8 % 8) as usize;
            self.waiting >>= self.count & 56;
            self.count &= 7;
        }
        self.pos += at;
    }
}

impl Drop for Packer<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        (self.writer.waiting, self.writer.count, self.writer.pos) =
            (self.waiting, self.count, self.pos);
    }
}
