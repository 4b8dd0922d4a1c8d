//! Reading a block of literals in several places at once.
//!
//! No symbol can be looked up before the one before it is, and while a processor waits for that it
//! has time for another chain of look-ups. A Huffman code synchronises itself: a reader that starts
//! anywhere inside a block soon meets the words as they are, by chance. So a block is entered ahead
//! of the place that is reached, at guessed bits; both places are read by turns; and where the first
//! reader comes to a bit that the other passed too, all that the other read from there on is right.
//! (Klein and Wiseman, "Parallel Huffman decoding with applications to JPEG files", 2003.)

use super::block_header::Bits;
use super::codes::{Entry, Fault, LITLEN_BITS};
use super::lane::{AMPLE, Lane, ROOM, Symbol, emit, lookup, run};
use multiversion::multiversion;

/// Places ahead that are read at the same time as the one that is reached.
const AHEAD: usize = 2;

/// Bytes of input from one place to the next.
const NEAREST: usize = 256;
const FARTHEST: usize = 8 << 10;

/// Literals that can be read ahead.
const MOST: usize = 16 << 10;

/// Entries after a guess at which the reader before may find itself in step.
const MARKS: usize = 48;

/// Times that bits are topped up in a turn, and entries that they are enough for each time.
const TOP_UPS: usize = 1;
const ENTRIES: usize = 4;

/// Bytes that a turn takes from the input at most, and literals that it gives.
const TURN_IN: usize = TOP_UPS * ENTRIES * LITLEN_BITS as usize / 8;
const TURN_OUT: usize = TOP_UPS * ENTRIES * 3;

/// Attempts left out, at most, after some that gave little.
const PAUSE: usize = 63;

type Litlen = [u32; 1 << LITLEN_BITS];

/// Memory of readers ahead, and what is known of the stream's blocks.
pub struct Ahead {
    bytes: Box<[[u8; MOST]; AHEAD]>,
    marks: [[Mark; MARKS]; AHEAD],
    /// Bytes of the block before, and of this one so far.
    before: usize,
    used: usize,
    /// Attempts to be left out, and as many the next time.
    pause: usize,
    patience: usize,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead {
            bytes: Box::new([[0; MOST]; AHEAD]),
            marks: [[Mark::default(); MARKS]; AHEAD],
            before: 0,
            used: 0,
            pause: 0,
            patience: 0,
        }
    }
}

/// A bit of the input between two words, and how many literals were read before it.
#[derive(Clone, Copy, Default)]
struct Mark {
    bit: usize,
    made: usize,
}

/// A reader of literals.
#[derive(Clone, Copy)]
struct Reader {
    bits: Bits,
    /// Byte of the input to be taken next.
    next: usize,
    /// Place in the output.
    at: usize,
}

impl Reader {
    /// The bit of the input that is reached.
    fn bit(&self) -> usize {
        8 * self.next - (self.bits.count & 63) as usize
    }

    /// Reads entries of literals, and stays before anything else. Returns the last one, which gives
    /// literals if all did; nothing if there is not enough input or output.
    #[inline(always)]
    fn turn<T: Symbol>(
        &mut self,
        litlen: &Litlen,
        input: &[u8],
        output: &mut [T],
    ) -> Option<Entry> {
        let input = input.get(self.next..)?.first_chunk::<{ 8 * TOP_UPS }>()?;
        let output = output.get_mut(self.at..)?;
        let output = output.first_chunk_mut::<{ TURN_OUT + 8 }>()?;
        let mut entry = Entry(0);
        let (mut used, mut made) = (0, 0);
        for _ in 0..TOP_UPS {
            let mut rest = &input[used..used + 8];
            self.bits.refill(&mut rest);
            used += 8 - rest.len();
            for _ in 0..ENTRIES {
                entry = lookup(litlen, self.bits);
                self.bits.pass(entry);
                emit(&mut output[..], &mut made, entry);
            }
        }
        self.next += used;
        self.at += made;
        Some(entry)
    }
}

/// Up to so many turns of all readers, until one meets what is no literal: then false.
#[multiversion(targets("x86_64+bmi1+bmi2"))]
fn take_turns<T: Symbol>(
    turns: usize,
    (litlen, input): (&Litlen, &[u8]),
    output: &mut [T],
    bytes: &mut [[u8; MOST]; AHEAD],
    (first, others): (&mut Reader, &mut [Reader; AHEAD]),
) -> bool {
    // Copies, which the loop can keep in registers.
    let (mut one, mut more) = (*first, *others);
    let mut all = true;
    for _ in 0..turns {
        let mut literals = one
            .turn(litlen, input, output)
            .is_some_and(|entry| entry.literals() > 0);
        for (reader, bytes) in more.iter_mut().zip(bytes.iter_mut()) {
            literals &= reader
                .turn(litlen, input, bytes)
                .is_some_and(|entry| entry.literals() > 0);
        }
        if !literals {
            all = false;
            break;
        }
    }
    (*first, *others) = (one, more);
    all
}

impl Ahead {
    /// As `lane::run`.
    pub fn run<T: Symbol>(&mut self, lane: &mut Lane<T>) -> Result<bool, Fault> {
        let start = lane.input.len();
        let mut ended = Ok(false);
        while ended == Ok(false) && lane.is_ready() {
            let used = self.used + start - lane.input.len();
            ended = match self.distance(used, lane) {
                Some(distance) => self.run_to(distance, lane),
                None => run(lane),
            };
        }
        self.used += start - lane.input.len();
        if ended == Ok(true) {
            self.before = std::mem::take(&mut self.used);
        }
        ended
    }

    /// From one reader to the next, if there should be several: the rest of the block is shared
    /// among them, if it is as long as the one before.
    fn distance<T>(&mut self, used: usize, lane: &Lane<T>) -> Option<usize> {
        let rest = match used > self.before + self.before / 8 {
            true => usize::MAX,
            false => self.before.saturating_sub(used),
        };
        let distance = rest.min(lane.input.len()) / (1 + AHEAD);
        let distance = distance.min(FARTHEST);
        if distance < NEAREST || lane.output.len() - lane.at < ROOM + 2 * (1 + AHEAD) * distance {
            return None;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        Some(distance)
    }

    /// Inflates by several readers, each `distance` bytes after the one before.
    fn run_to<T: Symbol>(
        &mut self,
        distance: usize,
        lane: &mut Lane<T>,
    ) -> Result<bool, Fault> {
        let input = lane.input;
        let mut readers: [Reader; AHEAD] =
            std::array::from_fn(|k| self.enter(k, distance * (1 + k), lane));
        let mut together = true;
        while together && lane.input.len() + distance > input.len() && lane.is_ready() {
            let mut first = Reader {
                bits: lane.bits,
                next: input.len() - lane.input.len(),
                at: lane.at,
            };
            let turns = turns(distance, input.len(), lane.output.len(), &first, &readers);
            together = turns > 0
                && take_turns(
                    turns,
                    (&lane.tables.litlen, input),
                    lane.output,
                    &mut self.bytes,
                    (&mut first, &mut readers),
                );
            lane.set(first.bits, &input[first.next..], first.at);
            if lane.entry.literals() == 0 && lane.is_ready() {
                together = true;
                let ended = lane.other();
                if ended != Ok(false) {
                    return ended;
                }
            }
        }
        let mut gain = 0;
        for (k, reader) in readers.iter().enumerate() {
            let end = distance * (1 + k) + AMPLE;
            let used = input.len() - lane.input.len();
            if used < end {
                lane.input = &input[used..end];
                let ended = run(lane);
                lane.input = &input[end - lane.input.len()..];
                if ended != Ok(false) {
                    return ended;
                }
            }
            let (joined, ended) = self.join(k, reader, input, lane);
            if ended != Ok(false) {
                return ended;
            }
            gain += joined;
        }
        // One failure is chance, several in a row are a stream of another kind.
        if gain < AHEAD * distance / 2 {
            self.pause = self.patience;
            self.patience = (2 * self.patience + 1).min(PAUSE);
        } else {
            self.patience = 0;
        }
        Ok(false)
    }

    /// A reader that starts at a byte of the input.
    fn enter<T>(&mut self, k: usize, byte: usize, lane: &Lane<T>) -> Reader {
        let input = lane.input;
        let mut reader = Reader {
            bits: Bits::default(),
            next: byte,
            at: 0,
        };
        for marks in self.marks[k].chunks_mut(ENTRIES) {
            let mut rest = &input[reader.next..];
            reader.bits.refill(&mut rest);
            reader.next = input.len() - rest.len();
            for mark in marks {
                *mark = Mark {
                    bit: reader.bit(),
                    made: reader.at,
                };
                let entry = lookup(&lane.tables.litlen, reader.bits);
                reader.bits.pass(entry);
                emit(&mut self.bytes[k][..], &mut reader.at, entry);
            }
        }
        reader
    }

    /// Leads `lane`, which is near the bit at which a reader started, to one that it passed, and
    /// from there takes over what it read; says how many literals.
    fn join<'b, T: Symbol>(
        &self,
        k: usize,
        reader: &Reader,
        input: &'b [u8],
        lane: &mut Lane<'_, 'b, T>,
    ) -> (usize, Result<bool, Fault>) {
        let mut marks = self.marks[k].iter().peekable();
        while lane.is_ready() {
            let bit = 8 * (input.len() - lane.input.len()) - (lane.bits.count & 63) as usize;
            while marks.next_if(|mark| mark.bit < bit).is_some() {}
            let Some(mark) = marks.peek() else { break };
            if mark.bit == bit {
                let bytes = &self.bytes[k][mark.made..reader.at];
                let end = lane.at + bytes.len();
                if let Some(output) = lane.output.get_mut(lane.at..end) {
                    T::copy(bytes, output);
                    lane.set(reader.bits, &input[reader.next..], end);
                    return (bytes.len(), Ok(false));
                }
                break;
            }
            let ended = lane.step();
            if ended != Ok(false) {
                return (0, ended);
            }
        }
        (0, Ok(false))
    }
}

/// Turns that all readers can take before the first has come `distance` far or memory ends.
fn turns(
    distance: usize,
    input: usize,
    output: usize,
    first: &Reader,
    others: &[Reader; AHEAD],
) -> usize {
    let made: usize = others.iter().map(|reader| reader.at).sum();
    let room = output.saturating_sub(first.at + made + 2 * ROOM) / ((1 + AHEAD) * TURN_OUT);
    let mut turns = room.min(distance.saturating_sub(first.next).div_ceil(TURN_IN));
    for reader in others {
        turns = turns
            .min(input.saturating_sub(reader.next + 8 * TOP_UPS) / TURN_IN)
            .min((MOST - TURN_OUT).saturating_sub(reader.at) / TURN_OUT);
    }
    turns
}
