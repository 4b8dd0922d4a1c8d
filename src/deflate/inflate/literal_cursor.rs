//! A cursor that decodes literals alone; several take turns in one block.

use super::BitReader;
use super::block_header::Tables;
use super::codes::{Entry, LITLEN_BITS};
use super::cursor::{Symbol, emit, lookup};

/// Table entries of a turn: as many as 56 bits are enough for.
pub const ENTRIES: usize = 4;

/// The most bytes of input that a turn reads.
pub const TURN_IN: usize = ENTRIES * LITLEN_BITS as usize / 8;

/// The most literals that a turn gives.
pub const TURN_OUT: usize = ENTRIES * 3;

/// The table of literals and lengths.
pub type Litlen = [u32; 1 << LITLEN_BITS];

/// A position in a block, for decoding literals.
#[derive(Clone, Copy, Default)]
pub struct LiteralCursor {
    pub bits: BitReader,
    /// The index of the byte of the input after `bits`.
    pub next: usize,
    /// The index in the output of the next literal.
    pub at: usize,
}

impl LiteralCursor {
    /// Decodes four entries of literals, or fewer if something else comes before. Returns the last
    /// entry, which then gives no literals; none if there is not enough input or output.
    #[inline(always)]
    pub fn turn<T: Symbol>(
        &mut self,
        litlen: &Litlen,
        input: &[u8],
        output: &mut [T],
    ) -> Option<Entry> {
        // A slice of fixed size spares every entry a bounds check of its own.
        let output = output.get_mut(self.at..)?;
        let output = output.first_chunk_mut::<{ TURN_OUT + 8 }>()?;
        if !self.top_up(input) {
            return None;
        }
        let mut entry = Entry(0);
        let mut made = 0;
        for _ in 0..ENTRIES {
            entry = lookup(litlen, self.bits);
            self.bits.pass(entry);
            emit(&mut output[..], &mut made, entry);
        }
        self.at += made;
        Some(entry)
    }

    /// Fills `bits` for a turn and returns whether literals follow. Decodes a literal whose code word is too
    /// long for the table first.
    pub fn fill_to_literal(&mut self, tables: &Tables, input: &[u8], output: &mut [u8]) -> bool {
        if !self.top_up(input) {
            return false;
        }
        let entry = lookup(&tables.litlen, self.bits);
        if entry.0 != 0 {
            return entry.literals() > 0;
        }
        let found = tables.litlen_code.find(self.bits.buffer);
        match (found, output.get_mut(self.at)) {
            (Some((symbol @ 0..256, length)), Some(literal)) => {
                *literal = symbol as u8;
                self.at += 1;
                self.bits.pass(Entry(length));
                self.top_up(input)
            }
            _ => false,
        }
    }

    /// Fills `bits` to 56 or more; false if there are not 8 bytes for that.
    #[inline(always)]
    fn top_up(&mut self, input: &[u8]) -> bool {
        let bytes = input
            .get(self.next..)
            .and_then(|rest| rest.first_chunk::<8>());
        let Some(mut bytes) = bytes.map(|bytes| &bytes[..]) else {
            return false;
        };
        self.bits.refill(&mut bytes);
        self.next += 8 - bytes.len();
        true
    }
}

/// The input's first bit that is not read yet, where `next` is the first byte that is not in `bits`.
pub fn bit(next: usize, bits: BitReader) -> usize {
    8 * next - (bits.count & 63) as usize
}
