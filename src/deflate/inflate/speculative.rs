//! Speculative decoding: one block is read in several places at once.
//!
//! No code word can be looked up before the one before it has been, and while a processor waits for
//! that it has time for other chains of look-ups. A Huffman code synchronizes itself: a decoder that
//! starts at any bit inside a block soon reads whole code words, as if it had started at one. So
//! speculative cursors start ahead of the decoder's own, and all move on in turns. Where the
//! decoder's cursor comes to a bit between two words at which a speculative one has been, everything
//! that the speculative one has read from there on is right, and is copied. (Klein and Wiseman,
//! "Parallel Huffman decoding with applications to JPEG files", 2003.)
//!
//! Speculative cursors decode literals alone and stop at anything else, since a match may refer to
//! bytes that are not known yet. Noisy images are nearly all literals, and are inflated 1.5 × as
//! fast.

use super::codes::{Entry, Fault};
use super::cursor::{AMPLE, Cursor, ROOM, Symbol, emit, lookup, run};
use super::literal_cursor::{ENTRIES, LiteralCursor, Litlen, TURN_IN, TURN_OUT, bit};
use crate::image::simd::per_level;

/// Speculative cursors. More would not be faster: two and the decoder's own keep a processor busy.
const SPECULATIVE: usize = 2;

/// The fewest bytes of input from one cursor to the next.
const MIN_DISTANCE: usize = 256;

/// The most bytes of input from one cursor to the next.
const MAX_DISTANCE: usize = 8 << 10;

/// Literals that a speculative cursor can keep.
const MAX_LITERALS: usize = 16 << 10;

/// Table entries after its start at which a speculative cursor can be met; on average eight are
/// needed.
const MARKS: usize = 48;

/// The most attempts that are skipped after attempts that gained little.
const MAX_PAUSE: usize = 63;

/// The memory of the speculative cursors, and what the stream has been like so far.
pub struct Speculation {
    literals: Box<[[u8; MAX_LITERALS]; SPECULATIVE]>,
    marks: [[Mark; MARKS]; SPECULATIVE],
    /// Compressed bytes of the block before.
    before: usize,
    /// Compressed bytes of this block so far.
    used: usize,
    /// Attempts that are still to be skipped.
    pause: usize,
    /// Attempts that will be skipped after the next failure.
    next_pause: usize,
}

impl Default for Speculation {
    fn default() -> Speculation {
        Speculation {
            literals: Box::new([[0; MAX_LITERALS]; SPECULATIVE]),
            marks: [[Mark::default(); MARKS]; SPECULATIVE],
            before: 0,
            used: 0,
            pause: 0,
            next_pause: 0,
        }
    }
}

/// A bit of the input between two code words, and how many literals a speculative cursor had decoded
/// before it.
#[derive(Clone, Copy, Default)]
struct Mark {
    bit: usize,
    made: usize,
}

per_level! {
    highest Avx2;

    /// Gives each cursor up to `turns` turns. The first is the decoder's own. Returns false if it ended early, because a cursor met
    /// something that is not a literal.
    fn take_turns[T: Symbol](
        turns: usize,
        litlen: &Litlen,
        input: &[u8],
        first: &mut LiteralCursor,
        output: &mut [T],
        others: &mut [LiteralCursor; SPECULATIVE],
        literals: &mut [[u8; MAX_LITERALS]; SPECULATIVE],
    ) -> bool {
        // Copies, which the loop can keep in registers.
        let (mut one, mut more) = (*first, *others);
        let gives = |entry: Option<Entry>| entry.is_some_and(|entry| entry.literals() > 0);
        let mut all = true;
        for _ in 0..turns {
            all = gives(one.turn(litlen, input, output));
            for (other, literals) in more.iter_mut().zip(literals.iter_mut()) {
                all &= gives(other.turn(litlen, input, literals));
            }
            if !all {
                break;
            }
        }
        (*first, *others) = (one, more);
        all
    }
}

/// How many turns all cursors can have before the first has moved `distance` bytes, or input or output
/// ends. The output has room for `output` symbols.
fn turns(
    distance: usize,
    input: &[u8],
    output: usize,
    first: &LiteralCursor,
    others: &[LiteralCursor; SPECULATIVE],
) -> usize {
    // In the end all literals go to the output, and a match may follow between them.
    let made: usize = others.iter().map(|other| other.at).sum();
    let room = output.saturating_sub(first.at + made + 2 * ROOM) / ((1 + SPECULATIVE) * TURN_OUT);
    let way = distance.saturating_sub(first.next).div_ceil(TURN_IN);
    others.iter().fold(way.min(room), |turns, other| {
        let input = input.len().saturating_sub(other.next + 8) / TURN_IN;
        let room = (MAX_LITERALS - 2 * TURN_OUT).saturating_sub(other.at) / TURN_OUT;
        turns.min(input).min(room)
    })
}

impl Speculation {
    /// As `cursor::run`, with speculative cursors if that pays.
    pub fn run<T: Symbol>(&mut self, cursor: &mut Cursor<T>) -> Result<bool, Fault> {
        let start = cursor.input.len();
        let mut ended = Ok(false);
        while ended == Ok(false) && cursor.is_ready() {
            let used = self.used + start - cursor.input.len();
            ended = match self.distance(used, cursor) {
                Some(distance) => self.run_apart(distance, cursor),
                None => run(cursor),
            };
        }
        self.used += start - cursor.input.len();
        ended
    }

    /// Prepares for the symbols of a block that starts here.
    pub fn start_block(&mut self) {
        if self.used > 0 {
            self.before = std::mem::take(&mut self.used);
        }
    }

    /// The bytes from one cursor to the next, or `None` if speculation would not pay. The cursors share
    /// the rest of the block, of which `used` bytes are read; it is expected to be as long as the one
    /// before.
    fn distance<T>(&mut self, used: usize, cursor: &Cursor<T>) -> Option<usize> {
        let rest = if used < self.before + self.before / 8 {
            self.before.saturating_sub(used)
        } else {
            usize::MAX
        };
        let distance = (rest.min(cursor.input.len()) / (1 + SPECULATIVE)).min(MAX_DISTANCE);
        let room = ROOM + 2 * (1 + SPECULATIVE) * distance;
        if distance < MIN_DISTANCE || cursor.output.len() - cursor.at < room {
            return None;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        Some(distance)
    }

    /// Inflates with speculative cursors, each `distance` bytes after the one before; returns whether
    /// the block has ended.
    fn run_apart<T: Symbol>(
        &mut self,
        distance: usize,
        cursor: &mut Cursor<T>,
    ) -> Result<bool, Fault> {
        let input = cursor.input;
        let mut speculative = [LiteralCursor::default(); SPECULATIVE];
        for (k, other) in speculative.iter_mut().enumerate() {
            *other = self.enter(k, distance * (1 + k), cursor);
        }
        let mut together = true;
        while together && input.len() - cursor.input.len() < distance && cursor.is_ready() {
            let mut first = LiteralCursor {
                bits: cursor.bits,
                next: input.len() - cursor.input.len(),
                at: cursor.at,
            };
            let turns = turns(distance, input, cursor.output.len(), &first, &speculative);
            together = turns > 0
                && take_turns(
                    turns,
                    &cursor.tables.litlen,
                    input,
                    &mut first,
                    cursor.output,
                    &mut speculative,
                    &mut self.literals,
                );
            cursor.go_to(first.bits, &input[first.next..], first.at);
            if turns > 0 && !together {
                let others = speculative.iter_mut().zip(self.literals.iter_mut());
                together = others.fold(true, |all, (other, literals)| {
                    other.fill_to_literal(cursor.tables, input, literals) && all
                });
            }
            // The decoder continues after a match; where a speculative cursor has stopped, this ends.
            if cursor.entry.literals() == 0 && cursor.is_ready() {
                let ended = cursor.other();
                if ended != Ok(false) {
                    return ended;
                }
            }
        }
        let mut joined = 0;
        for (k, other) in speculative.iter().enumerate() {
            let (used, end) = (input.len() - cursor.input.len(), distance * (1 + k) + AMPLE);
            if used < end {
                cursor.input = &input[used..end];
                let ended = run(cursor);
                cursor.input = &input[end - cursor.input.len()..];
                if ended != Ok(false) {
                    return ended;
                }
            }
            let (count, ended) = self.join(k, other, input, cursor);
            if ended != Ok(false) {
                return ended;
            }
            joined += count;
        }
        // One failure is chance; several in a row show that the stream is not mostly literals.
        if joined < SPECULATIVE * distance / 2 {
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause + 1).min(MAX_PAUSE);
        } else {
            self.next_pause = 0;
        }
        Ok(false)
    }

    /// Starts speculative cursor `k` at a byte of the input and moves it past all its marks.
    fn enter<T>(&mut self, k: usize, byte: usize, cursor: &Cursor<T>) -> LiteralCursor {
        let literals = &mut self.literals[k][..];
        let mut other = LiteralCursor {
            next: byte,
            ..LiteralCursor::default()
        };
        for marks in self.marks[k].chunks_mut(ENTRIES) {
            other.fill_to_literal(cursor.tables, cursor.input, literals);
            for mark in marks {
                *mark = Mark {
                    bit: bit(other.next, other.bits),
                    made: other.at,
                };
                let entry = lookup(&cursor.tables.litlen, other.bits);
                other.bits.pass(entry);
                emit(literals, &mut other.at, entry);
            }
        }
        other
    }

    /// Moves `cursor` from near the start of speculative cursor `k` to one of its marks, and from
    /// there to where it has come. Returns how many literals were taken over, 0 if no mark was met,
    /// and whether the block has ended.
    fn join<'b, T: Symbol>(
        &self,
        k: usize,
        other: &LiteralCursor,
        input: &'b [u8],
        cursor: &mut Cursor<'_, 'b, T>,
    ) -> (usize, Result<bool, Fault>) {
        let mut marks = self.marks[k].iter().peekable();
        while cursor.is_ready() {
            let bit = bit(input.len() - cursor.input.len(), cursor.bits);
            while marks.next_if(|mark| mark.bit < bit).is_some() {}
            let Some(mark) = marks.peek() else { break };
            if mark.bit == bit {
                let literals = &self.literals[k][mark.made..other.at];
                let end = cursor.at + literals.len();
                let Some(output) = cursor.output.get_mut(cursor.at..end) else {
                    break;
                };
                T::copy(literals, output);
                cursor.go_to(other.bits, &input[other.next..], end);
                return (literals.len(), Ok(false));
            }
            let ended = cursor.step();
            if ended != Ok(false) {
                return (0, ended);
            }
        }
        (0, Ok(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deflate::inflate::{BitReader, block_header::Tables};

    /// A block in which symbol s has the word that `lengths` gives it, without its header.
    fn block(lengths: &[u8], symbols: &[u8]) -> Vec<u8> {
        let mut words = vec![0u32; lengths.len()];
        let mut word = 0u32;
        for length in 1..=15 {
            for (symbol, _) in lengths.iter().enumerate().filter(|l| *l.1 == length) {
                words[symbol] = word.reverse_bits() >> (32 - u32::from(length));
                word += 1;
            }
            word <<= 1;
        }
        let (mut bytes, mut waiting, mut count) = (Vec::new(), 0u64, 0);
        for &symbol in symbols {
            waiting |= u64::from(words[usize::from(symbol)]) << count;
            count += lengths[usize::from(symbol)];
            while count >= 8 {
                bytes.push(waiting as u8);
                waiting >>= 8;
                count -= 8;
            }
        }
        bytes.push(waiting as u8);
        bytes
    }

    /// Literals and the word lengths of a complete code that they suit: `few` short words, and 256
    /// long ones for one literal in `rare`.
    fn noise(few: &[u8], long: u8, rare: u32) -> (Vec<u8>, Vec<u8>) {
        let mut lengths = vec![long; few.len() + 256];
        lengths[..few.len()].copy_from_slice(few);
        let mut state = 3u32;
        let symbols = (0..300_000).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = (state >> 8) as usize;
            match (state >> 24) % rare {
                0 => (few.len() + value % (256 - few.len())) as u8,
                _ => (value % few.len()) as u8,
            }
        });
        (symbols.collect(), lengths)
    }

    fn apart<T: Symbol + PartialEq>(symbols: &[u8], lengths: &[u8]) -> Result<(), Fault> {
        let input = block(lengths, symbols);
        let expected: Vec<T> = symbols.iter().map(|&symbol| T::from(symbol)).collect();
        let mut tables = Tables::default();
        tables.set(lengths, &[1])?;
        for distance in [MIN_DISTANCE, 1001, 4096] {
            let mut output = vec![T::from(0xA5); symbols.len()];
            let mut cursor = Cursor::new(&tables, BitReader::default(), &input, &mut output, 0);
            let mut speculation = Speculation::default();
            let mut attempts = 0;
            while cursor.input.len() > 4 * distance {
                assert!(!speculation.run_apart(distance, &mut cursor)?);
                attempts += 1;
            }
            let (used, at) = (input.len() - cursor.input.len(), cursor.at);
            assert!(output[..at] == expected[..at], "{distance} bytes apart");
            // Three cursors come three times as far as one, except for some that are not met.
            assert!(
                used > 2 * distance * attempts,
                "{used} in {attempts} times {distance} bytes"
            );
            let beyond = &output[at + ROOM..];
            assert!(beyond.iter().all(|&symbol| symbol == T::from(0xA5)));
        }
        Ok(())
    }

    #[test]
    fn speculative_cursors_decode_what_one_decodes() -> Result<(), Fault> {
        // As in noisy images of 16 bits, and with words that are too long for the table.
        let codes = [noise(&[2, 2], 9, 2), noise(&[2, 2, 2, 3, 4, 5], 13, 32)];
        for (symbols, lengths) in &codes {
            apart::<u8>(symbols, lengths)?;
            apart::<u16>(symbols, lengths)?;
        }
        Ok(())
    }
}
