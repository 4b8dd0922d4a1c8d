//! A reader of literals inside a block, several of which take turns.

use super::block_header::{Bits, Tables};
use super::codes::{Entry, LITLEN_BITS};
use super::cursor::{Symbol, emit, lookup};

/// Entries of a turn: as many as need not be topped up for.
pub const ENTRIES: usize = 4;

/// Bytes that a turn takes at most, and literals that it gives.
pub const TURN_IN: usize = ENTRIES * LITLEN_BITS as usize / 8;
pub const TURN_OUT: usize = ENTRIES * 3;

/// The table of literals and lengths.
pub type Litlen = [u32; 1 << LITLEN_BITS];

/// A reader of literals.
#[derive(Clone, Copy, Default)]
pub struct Reader {
    pub bits: Bits,
    /// Byte of the input to be taken next.
    pub next: usize,
    /// Place in the output.
    pub at: usize,
}

impl Reader {
    /// Takes four entries of literals, fewer if something else comes before. Returns the last
    /// entry, which then gives no literals; nothing if there is not enough input or output.
    #[inline(always)]
    pub fn turn<T: Symbol>(
        &mut self,
        litlen: &Litlen,
        input: &[u8],
        output: &mut [T],
    ) -> Option<Entry> {
        // A fixed size spares every entry its own look at the room.
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

    /// Whether literals follow, with bits for a turn; a word that is too long for the table is taken
    /// by itself.
    pub fn goes_on(&mut self, tables: &Tables, input: &[u8], output: &mut [u8]) -> bool {
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

    /// Makes sure of 56 bits or more, if there are 8 bytes for it.
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

/// The first bit that is not read yet, where `next` is the first byte that is not in `bits`.
pub fn bit(next: usize, bits: Bits) -> usize {
    8 * next - (bits.count & 63) as usize
}
