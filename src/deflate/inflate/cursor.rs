//! The fast loops of inflating: several literals per look-up, and matches, while there is ample input
//! and output.

use super::BitReader;
use super::block_header::Tables;
use super::codes::{DIST_BITS, Entry, Fault, LITLEN_BITS};
use crate::image::simd::per_level;

/// Symbols that the output must have room for: four entries of literals and the longest match, both
/// written in steps that go a little too far.
pub const ROOM: usize = 16 + 258 + 16;

/// Bytes of input that must be there: `bits` is filled up to three times, from 8 bytes each.
pub const AMPLE: usize = 24;

/// An inflated byte (u8), or a number that may stand for one that is not known yet (u16).
pub trait Symbol: Copy + From<u8> {
    /// Four bytes, the lowest first, as symbols.
    fn four(bytes: u32) -> [Self; 4];

    /// Fills `to` with as many bytes as symbols.
    fn copy(bytes: &[u8], to: &mut [Self]);
}

impl Symbol for u8 {
    #[inline(always)]
    fn four(bytes: u32) -> [u8; 4] {
        bytes.to_le_bytes()
    }

    fn copy(bytes: &[u8], to: &mut [u8]) {
        to.copy_from_slice(bytes);
    }
}

impl Symbol for u16 {
    #[inline(always)]
    fn four(bytes: u32) -> [u16; 4] {
        bytes.to_le_bytes().map(u16::from)
    }

    fn copy(bytes: &[u8], to: &mut [u16]) {
        for (symbol, &byte) in to.iter_mut().zip(bytes) {
            *symbol = byte.into();
        }
    }
}

per_level! {
    highest Avx2;

    /// Inflates while there is ample input and output; returns whether the block has ended. Most of the
    /// work are shifts by a variable count, which BMI2 does in one instruction.
    pub fn run[T: Symbol](caller: &mut Cursor<T>) -> Result<bool, Fault> {
        let mut cursor = caller.copied();
        let mut ended = Ok(false);
        while ended == Ok(false) && cursor.is_ready() {
            cursor.literals();
            if cursor.entry.literals() == 0 {
                ended = cursor.other();
            }
        }
        let position = cursor.position();
        caller.move_to(position);
        ended
    }
}

per_level! {
    highest Avx2;

    /// As `run`, for two streams in turns.
    pub fn run_both[T: Symbol](one: &mut Cursor<T>, two: &mut Cursor<T>) -> [Result<bool, Fault>; 2] {
        let (mut a, mut b) = (one.copied(), two.copied());
        let mut ended = [Ok(false), Ok(false)];
        while ended == [Ok(false), Ok(false)] && a.is_ready() && b.is_ready() {
            a.literals();
            b.literals();
            if a.entry.literals() == 0 {
                ended[0] = a.other();
            }
            if b.entry.literals() == 0 {
                ended[1] = b.other();
            }
        }
        let (first, second) = (a.position(), b.position());
        one.move_to(first);
        two.move_to(second);
        ended
    }
}

/// A position in the middle of a compressed block, in as few variables as a loop can keep in registers.
pub struct Cursor<'a, 'b, T> {
    pub tables: &'a Tables,
    pub bits: BitReader,
    pub input: &'b [u8],
    pub output: &'a mut [T],
    pub at: usize,
    /// The table's entry for the next bits: looked up before `bits` is filled, to save the wait.
    pub entry: Entry,
}

/// The fields of a cursor that a loop changes.
struct Position<'b> {
    bits: BitReader,
    input: &'b [u8],
    at: usize,
    entry: Entry,
}

/// The position at which a cursor has stopped.
pub struct CursorEnd<'b> {
    /// The bits that are read but not decoded.
    pub bits: BitReader,
    /// The rest of the input.
    pub input: &'b [u8],
    /// The index in the output of the next symbol.
    pub at: usize,
}

impl<'a, 'b, T: Symbol> Cursor<'a, 'b, T> {
    /// A cursor that continues at `output[at..]`; `bits` come before `input`.
    pub fn new(
        tables: &'a Tables,
        mut bits: BitReader,
        mut input: &'b [u8],
        output: &'a mut [T],
        at: usize,
    ) -> Self {
        bits.refill_slowly(&mut input);
        Cursor {
            tables,
            bits,
            input,
            output,
            at,
            entry: lookup(&tables.litlen, bits),
        }
    }

    /// A copy for a loop, which can keep it in registers.
    #[inline(always)]
    fn copied(&mut self) -> Cursor<'_, 'b, T> {
        Cursor {
            output: &mut *self.output,
            ..*self
        }
    }

    /// The fields that a loop changes.
    #[inline(always)]
    fn position(&self) -> Position<'b> {
        Position {
            bits: self.bits,
            input: self.input,
            at: self.at,
            entry: self.entry,
        }
    }

    /// Moves to the position of a copy of this cursor.
    #[inline(always)]
    fn move_to(&mut self, position: Position<'b>) {
        self.bits = position.bits;
        self.input = position.input;
        self.at = position.at;
        self.entry = position.entry;
    }

    /// Moves to another position of the same block.
    pub fn go_to(&mut self, bits: BitReader, input: &'b [u8], at: usize) {
        (self.bits, self.input, self.at) = (bits, input, at);
        self.bits.refill(&mut self.input);
        self.entry = lookup(&self.tables.litlen, self.bits);
    }

    /// Decodes one entry of literals, or a match; returns whether it was the block's end.
    pub fn step(&mut self) -> Result<bool, Fault> {
        if self.entry.literals() == 0 {
            return self.other();
        }
        self.bits.refill(&mut self.input);
        self.bits.pass(self.entry);
        emit(self.output, &mut self.at, self.entry);
        self.entry = lookup(&self.tables.litlen, self.bits);
        Ok(false)
    }

    /// Ends the cursor.
    pub fn finish(self) -> CursorEnd<'b> {
        let mut bits = self.bits;
        bits.count &= 63;
        CursorEnd {
            bits,
            input: self.input,
            at: self.at,
        }
    }

    /// Whether there is enough input and output for a step.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.input.len() >= AMPLE && self.output.len() - self.at >= ROOM
    }

    /// Decodes up to three entries of literals.
    #[inline(always)]
    fn literals(&mut self) {
        let litlen = &self.tables.litlen;
        let first = self.entry;
        if first.literals() == 0 {
            return;
        }
        self.bits.refill(&mut self.input);
        self.bits.pass(first);
        let second = lookup(litlen, self.bits);
        if second.literals() == 0 {
            emit(self.output, &mut self.at, first);
            self.entry = second;
            return;
        }
        self.bits.pass(second);
        let third = lookup(litlen, self.bits);
        emit(self.output, &mut self.at, first);
        emit(self.output, &mut self.at, second);
        self.entry = third;
        if third.literals() > 0 {
            self.bits.pass(third);
            self.entry = lookup(litlen, self.bits);
            emit(self.output, &mut self.at, third);
        }
    }

    /// Decodes a match, a literal with a long code word, or the block's end; returns whether it was
    /// the end.
    #[inline(always)]
    pub fn other(&mut self) -> Result<bool, Fault> {
        let Tables { litlen, dist, .. } = self.tables;
        let bits = &mut self.bits;
        bits.count &= 63;
        // A length and a distance take at most 48 bits.
        bits.refill(&mut self.input);
        let mut entry = self.entry;
        if entry.0 == 0 {
            let (symbol, word) = self
                .tables
                .litlen_code
                .find(bits.buffer)
                .ok_or("an unknown Huffman code word")?;
            if symbol <= 256 {
                bits.consume(word);
                self.entry = lookup(litlen, *bits);
                if symbol < 256 {
                    self.output[self.at] = T::from(symbol as u8);
                    self.at += 1;
                }
                return Ok(symbol == 256);
            }
            entry = Entry::length(symbol, word);
            if entry.0 == 0 {
                return Err("an unknown Huffman code word");
            }
        }
        let length = entry.value(bits.buffer);
        bits.consume(entry.bits());
        let mut far = Entry(dist[bits.buffer as usize % (1 << DIST_BITS)]);
        if far.0 == 0 {
            let found = self.tables.dist_code.find(bits.buffer);
            let (symbol, word) = found
                .filter(|&(symbol, _)| symbol < 30)
                .ok_or("an unknown Huffman code word")?;
            far = Entry::distance(symbol, word);
        }
        let distance = far.value(bits.buffer);
        bits.consume(far.bits());
        bits.refill(&mut self.input);
        self.entry = lookup(litlen, *bits);
        let o = self.at;
        if distance > o {
            return Err("a reference to before the start");
        }
        if distance == 1 {
            let symbol = self.output[o - 1];
            self.output[o..o + length].fill(symbol);
        } else {
            // Only the first `distance` of the 16 copied symbols are right; the next copies overwrite the others.
            let mut i = o;
            while i < o + length {
                self.output.copy_within(i - distance..i - distance + 16, i);
                i += distance.min(16);
            }
        }
        self.at += length;
        Ok(false)
    }
}

/// The table's entry for the next bits, of which there must be 12.
#[inline(always)]
pub fn lookup(litlen: &[u32; 1 << LITLEN_BITS], bits: BitReader) -> Entry {
    Entry(litlen[bits.buffer as usize % (1 << LITLEN_BITS)])
}

/// Writes the literals of an entry and advances `at` by their number.
#[inline(always)]
pub fn emit<T: Symbol>(output: &mut [T], at: &mut usize, entry: Entry) {
    output[*at..*at + 4].copy_from_slice(&T::four(entry.bytes()));
    *at += entry.literals();
}
