//! Reading a block in several places at once.
//!
//! No word can be looked up before the one before it is, and while a processor waits for that it
//! has time for other chains of look-ups. A Huffman code synchronises itself: whoever starts to
//! read at any bit inside a block soon falls into step with its words. So readers start at bits
//! ahead of the place that is reached, and all go on by turns; where one comes to a bit between
//! words that the next has passed, all that the next has read from there on is right. (Klein and
//! Wiseman, "Parallel Huffman decoding with applications to JPEG files", 2003.)
//!
//! Readers ahead know literals alone and stop at anything else, since a match may refer to what is
//! not known yet. Noisy images are nearly all literals, and are inflated 1.5 × as fast.

use super::codes::{Entry, Fault};
use super::cursor::{AMPLE, Cursor, ROOM, Symbol, emit, lookup, run};
use super::reader::{ENTRIES, Litlen, Reader, TURN_IN, TURN_OUT, bit};
use multiversion::multiversion;

/// Readers ahead of the first. More would not be faster: two and the first keep a processor busy.
const AHEAD: usize = 2;

/// Bytes of input from one reader to the next.
const NEAREST: usize = 256;
const FARTHEST: usize = 8 << 10;

/// Literals that a reader ahead can keep.
const MOST: usize = 16 << 10;

/// Entries from its start on at which a reader ahead can be met. On average it takes eight.
const MARKS: usize = 48;

/// Attempts left out, at most, after some that gave little.
const PAUSE: usize = 63;

/// The memory of readers ahead, and what the stream has been like.
pub struct Ahead {
    literals: Box<[[u8; MOST]; AHEAD]>,
    marks: [[Mark; MARKS]; AHEAD],
    /// Bytes of the block before, and of this one so far.
    before: usize,
    used: usize,
    /// Attempts to be left out, and how many it will be the next time.
    pause: usize,
    next_pause: usize,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead {
            literals: Box::new([[0; MOST]; AHEAD]),
            marks: [[Mark::default(); MARKS]; AHEAD],
            before: 0,
            used: 0,
            pause: 0,
            next_pause: 0,
        }
    }
}

/// A bit of the input between two words, and how many literals a reader ahead had before it.
#[derive(Clone, Copy, Default)]
struct Mark {
    bit: usize,
    made: usize,
}

/// Up to so many turns of all readers, until one meets what is no literal: then false.
#[multiversion(targets("x86_64+bmi1+bmi2"))]
fn take_turns<T: Symbol>(
    turns: usize,
    (litlen, input): (&Litlen, &[u8]),
    (first, output): (&mut Reader, &mut [T]),
    (others, literals): (&mut [Reader; AHEAD], &mut [[u8; MOST]; AHEAD]),
) -> bool {
    // Copies, which the loop can keep in registers.
    let (mut one, mut more) = (*first, *others);
    let gives = |entry: Option<Entry>| entry.is_some_and(|entry| entry.literals() > 0);
    let mut all = true;
    for _ in 0..turns {
        all = gives(one.turn(litlen, input, output));
        for (reader, literals) in more.iter_mut().zip(literals.iter_mut()) {
            all &= gives(reader.turn(litlen, input, literals));
        }
        if !all {
            break;
        }
    }
    (*first, *others) = (one, more);
    all
}

/// Turns that all readers can take before the first has gone `distance`, or memory ends.
fn turns(
    distance: usize,
    input: &[u8],
    (first, output): (&Reader, usize),
    others: &[Reader; AHEAD],
) -> usize {
    // In the end all literals go to the output, and a match may be among them.
    let made: usize = others.iter().map(|reader| reader.at).sum();
    let room = output.saturating_sub(first.at + made + 2 * ROOM) / ((1 + AHEAD) * TURN_OUT);
    let way = distance.saturating_sub(first.next).div_ceil(TURN_IN);
    others.iter().fold(way.min(room), |turns, reader| {
        let input = input.len().saturating_sub(reader.next + 8) / TURN_IN;
        let room = (MOST - 2 * TURN_OUT).saturating_sub(reader.at) / TURN_OUT;
        turns.min(input).min(room)
    })
}

impl Ahead {
    /// As `cursor::run`.
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

    /// Takes note that a block starts.
    pub fn start_block(&mut self) {
        if self.used > 0 {
            self.before = std::mem::take(&mut self.used);
        }
    }

    /// From one reader to the next, if there should be several: they share the rest of the block,
    /// of which `used` bytes are read, supposed that it is as long as the one before.
    fn distance<T>(&mut self, used: usize, cursor: &Cursor<T>) -> Option<usize> {
        let rest = match used < self.before + self.before / 8 {
            true => self.before.saturating_sub(used),
            false => usize::MAX,
        };
        let distance = (rest.min(cursor.input.len()) / (1 + AHEAD)).min(FARTHEST);
        let room = ROOM + 2 * (1 + AHEAD) * distance;
        if distance < NEAREST || cursor.output.len() - cursor.at < room {
            return None;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        Some(distance)
    }

    /// Inflates with readers ahead, each `distance` bytes after the one before.
    fn run_apart<T: Symbol>(
        &mut self,
        distance: usize,
        cursor: &mut Cursor<T>,
    ) -> Result<bool, Fault> {
        let input = cursor.input;
        let mut readers = [Reader::default(); AHEAD];
        for (k, reader) in readers.iter_mut().enumerate() {
            *reader = self.enter(k, distance * (1 + k), cursor);
        }
        let mut together = true;
        while together && input.len() - cursor.input.len() < distance && cursor.is_ready() {
            let mut first = Reader {
                bits: cursor.bits,
                next: input.len() - cursor.input.len(),
                at: cursor.at,
            };
            let turns = turns(distance, input, (&first, cursor.output.len()), &readers);
            together = turns > 0
                && take_turns(
                    turns,
                    (&cursor.tables.litlen, input),
                    (&mut first, cursor.output),
                    (&mut readers, &mut self.literals),
                );
            cursor.go_to(first.bits, &input[first.next..], first.at);
            if turns > 0 && !together {
                let others = readers.iter_mut().zip(self.literals.iter_mut());
                together = others.fold(true, |all, (reader, literals)| {
                    reader.goes_on(cursor.tables, input, literals) && all
                });
            }
            // The first goes on after a match; where another has stopped, this ends.
            if cursor.entry.literals() == 0 && cursor.is_ready() {
                let ended = cursor.other();
                if ended != Ok(false) {
                    return ended;
                }
            }
        }
        let mut joined = 0;
        for (k, reader) in readers.iter().enumerate() {
            let (used, end) = (input.len() - cursor.input.len(), distance * (1 + k) + AMPLE);
            if used < end {
                cursor.input = &input[used..end];
                let ended = run(cursor);
                cursor.input = &input[end - cursor.input.len()..];
                if ended != Ok(false) {
                    return ended;
                }
            }
            let (count, ended) = self.join(k, reader, input, cursor);
            if ended != Ok(false) {
                return ended;
            }
            joined += count;
        }
        // One failure is chance, several in a row are a stream of another kind.
        if joined < AHEAD * distance / 2 {
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause + 1).min(PAUSE);
        } else {
            self.next_pause = 0;
        }
        Ok(false)
    }

    /// A reader that starts at a byte of the input, and has passed all its marks.
    fn enter<T>(&mut self, k: usize, byte: usize, cursor: &Cursor<T>) -> Reader {
        let literals = &mut self.literals[k][..];
        let mut reader = Reader {
            next: byte,
            ..Reader::default()
        };
        for marks in self.marks[k].chunks_mut(ENTRIES) {
            reader.goes_on(cursor.tables, cursor.input, literals);
            for mark in marks {
                *mark = Mark {
                    bit: bit(reader.next, reader.bits),
                    made: reader.at,
                };
                let entry = lookup(&cursor.tables.litlen, reader.bits);
                reader.bits.pass(entry);
                emit(literals, &mut reader.at, entry);
            }
        }
        reader
    }

    /// Leads `cursor` from near the start of a reader to a mark of it, and from there to where that
    /// is; says how many literals that spared, none if no mark was met.
    fn join<'b, T: Symbol>(
        &self,
        k: usize,
        reader: &Reader,
        input: &'b [u8],
        cursor: &mut Cursor<'_, 'b, T>,
    ) -> (usize, Result<bool, Fault>) {
        let mut marks = self.marks[k].iter().peekable();
        while cursor.is_ready() {
            let bit = bit(input.len() - cursor.input.len(), cursor.bits);
            while marks.next_if(|mark| mark.bit < bit).is_some() {}
            let Some(mark) = marks.peek() else { break };
            if mark.bit == bit {
                let literals = &self.literals[k][mark.made..reader.at];
                let end = cursor.at + literals.len();
                let Some(output) = cursor.output.get_mut(cursor.at..end) else {
                    break;
                };
                T::copy(literals, output);
                cursor.go_to(reader.bits, &input[reader.next..], end);
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
    use crate::deflate::inflate::block_header::{Bits, Tables};

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
        for distance in [NEAREST, 1001, 4096] {
            let mut output = vec![T::from(0xA5); symbols.len()];
            let mut cursor = Cursor::new(&tables, Bits::default(), &input, &mut output, 0);
            let mut ahead = Ahead::default();
            let mut attempts = 0;
            while cursor.input.len() > 4 * distance {
                assert!(!ahead.run_apart(distance, &mut cursor)?);
                attempts += 1;
            }
            let (used, at) = (input.len() - cursor.input.len(), cursor.at);
            assert!(output[..at] == expected[..at], "{distance} bytes apart");
            // Three readers come three times as far as one, but for some that are not met.
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
    fn readers_ahead_read_what_one_reads() -> Result<(), Fault> {
        // As in noisy images of 16 bits, and with words that are too long for the table.
        let codes = [noise(&[2, 2], 9, 2), noise(&[2, 2, 2, 3, 4, 5], 13, 32)];
        for (symbols, lengths) in &codes {
            apart::<u8>(symbols, lengths)?;
            apart::<u16>(symbols, lengths)?;
        }
        Ok(())
    }
}
