//! The decoder of one stream, whose input comes in pieces, and of two streams in turns.

use super::bit_reader::BitReader;
use super::block_header::{Tables, read_lengths};
use super::codes::{Entry, Fault};
use super::cursor::{AMPLE, Cursor, CursorEnd, ROOM, Symbol, emit, lookup, run_both};
use super::speculative::Speculation;

/// The progress of a call of `read`.
#[derive(Default)]
pub struct Step {
    /// Bytes taken from the input.
    pub used: usize,
    /// Symbols added to the output.
    pub made: usize,
    /// Whether it stopped for lack of input.
    pub needs_input: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum State {
    /// Before a block's header.
    #[default]
    Start,
    /// In a stored block with this many bytes left.
    Stored(usize),
    /// In a compressed block.
    Codes,
    /// After the last block.
    End,
}

/// A decoder of one deflate stream, whose input comes in pieces.
#[derive(Default)]
pub struct Inflater {
    bits: BitReader,
    state: State,
    /// Whether the block is the last one.
    last: bool,
    /// The length and distance of the rest of a match that did not fit into the output.
    pending: (usize, usize),
    /// The beginning of a header whose end has not come yet.
    header: Vec<u8>,
    tables: Tables,
    speculation: Speculation,
}

impl Inflater {
    /// Starts again before a block; `bits` come before the next input.
    pub fn restart(&mut self, bits: BitReader) {
        self.bits = bits;
        self.state = State::Start;
        self.last = false;
        self.pending = (0, 0);
        self.header.clear();
    }

    /// Whether a block has ended and no other has begun.
    pub fn between_blocks(&self) -> bool {
        matches!(self.state, State::Start | State::End) && self.header.is_empty()
    }

    /// Whether a match continues after the end of the last output.
    pub fn is_in_match(&self) -> bool {
        self.pending.0 > 0
    }

    /// Whether the last block has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// The bits that were read from the input and not decoded: they belong to the data after the block.
    pub fn rest(&self) -> BitReader {
        self.bits
    }

    /// Inflates from `input` to `output[from..]` until one of them is exhausted or a block ends; call
    /// it again then. Matches refer to the symbols before `from`.
    ///
    /// # Errors
    /// The fault in the stream.
    pub fn read<T: Symbol>(
        &mut self,
        input: &[u8],
        output: &mut [T],
        from: usize,
    ) -> Result<Step, Fault> {
        let mut rest = input;
        let mut at = from;
        let needs_input = match self.state {
            State::End => false,
            State::Start => !self.start(&mut rest)?,
            State::Stored(_) => self.stored(&mut rest, output, &mut at),
            State::Codes => self.codes(&mut rest, output, &mut at)?,
        };
        Ok(Step {
            used: input.len() - rest.len(),
            made: at - from,
            needs_input,
        })
    }

    /// Begins a block. If the input ends before the header does, keeps the input and returns false.
    fn start(&mut self, input: &mut &[u8]) -> Result<bool, Fault> {
        let begun = if self.header.is_empty() {
            let mut rest = *input;
            let begun = self.begin(&mut rest)?;
            if begun {
                *input = rest;
            }
            begun
        } else {
            // No header is longer than 600 bytes.
            let held = self.header.len();
            self.header
                .extend_from_slice(&input[..input.len().min(600)]);
            let header = std::mem::take(&mut self.header);
            let mut rest = &header[..];
            let begun = self.begin(&mut rest)?;
            if begun {
                *input = &input[header.len() - rest.len() - held..];
            } else {
                self.header = header;
                self.header.truncate(held);
            }
            begun
        };
        if !begun {
            self.header.extend_from_slice(input);
            *input = &[];
        }
        Ok(begun)
    }

    /// As `start`, but leaves the input alone if it ends before the header does.
    fn begin(&mut self, input: &mut &[u8]) -> Result<bool, Fault> {
        let mut bits = self.bits;
        bits.refill_slowly(input);
        if bits.count < 3 {
            return Ok(false);
        }
        let last = bits.read_bits(1) == 1;
        match bits.read_bits(2) {
            0 => {
                bits.align();
                if bits.count < 32 {
                    return Ok(false);
                }
                let len = bits.read_bits(16);
                if bits.read_bits(16) != len ^ 0xFFFF {
                    return Err("a stored block with a damaged length");
                }
                self.state = State::Stored(len);
            }
            1 => {
                let mut lengths = [8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                self.tables.set(&lengths, &[5; 32])?;
                self.state = State::Codes;
            }
            2 => {
                let mut lengths = [0; 320];
                let Some((litlens, dists)) = read_lengths(&mut bits, input, &mut lengths)? else {
                    return Ok(false);
                };
                let (litlen, dist) = lengths[..litlens + dists].split_at(litlens);
                self.tables.set(litlen, dist)?;
                self.state = State::Codes;
            }
            _ => return Err("a block of unknown type"),
        }
        self.speculation.start_block();
        self.bits = bits;
        self.last = last;
        Ok(true)
    }

    fn end_block(&mut self) {
        self.state = if self.last { State::End } else { State::Start };
    }

    /// Copies from a stored block; returns whether it needs more input.
    fn stored<T: Symbol>(&mut self, input: &mut &[u8], output: &mut [T], at: &mut usize) -> bool {
        let State::Stored(mut left) = self.state else {
            return false;
        };
        while left > 0 && self.bits.count >= 8 && *at < output.len() {
            output[*at] = T::from(self.bits.read_bits(8) as u8);
            *at += 1;
            left -= 1;
        }
        let count = left.min(output.len() - *at).min(input.len());
        let (bytes, rest) = input.split_at(count);
        for (symbol, &byte) in output[*at..].iter_mut().zip(bytes) {
            *symbol = T::from(byte);
        }
        *input = rest;
        *at += count;
        left -= count;
        self.state = State::Stored(left);
        if left == 0 {
            self.end_block();
        }
        left > 0 && *at < output.len()
    }

    /// Decodes a compressed block; returns whether it needs more input.
    fn codes<T: Symbol>(
        &mut self,
        input: &mut &[u8],
        output: &mut [T],
        at: &mut usize,
    ) -> Result<bool, Fault> {
        let (length, distance) = self.pending;
        self.pending = (0, 0);
        self.copy(output, at, length, distance);
        loop {
            if self.fast(input, output, at)? {
                self.end_block();
                return Ok(false);
            }
            if *at == output.len() {
                return Ok(false);
            }
            match self.next_symbol(input, output, at)? {
                Progress::Decoded => {}
                Progress::EndOfBlock => {
                    self.end_block();
                    return Ok(false);
                }
                Progress::NeedsInput => return Ok(true),
            }
        }
    }

    /// Decodes one entry of literals or one match near the end of input or output, with every check.
    fn next_symbol<T: Symbol>(
        &mut self,
        input: &mut &[u8],
        output: &mut [T],
        at: &mut usize,
    ) -> Result<Progress, Fault> {
        self.bits.refill_slowly(input);
        let entry = lookup(&self.tables.litlen, self.bits);
        if entry.literals() > 0 && entry.taken() <= self.bits.count && output.len() - *at >= 4 {
            self.bits.consume(entry.taken());
            emit(output, at, entry);
            return Ok(Progress::Decoded);
        }
        let mut bits = self.bits;
        // Bits above `count` are zero and may complete a word that the input does not have: check its length.
        let Some((symbol, length)) = self.tables.litlen_code.find(bits.buffer) else {
            return unknown_word(bits);
        };
        if symbol <= 256 {
            if length > bits.count {
                return Ok(Progress::NeedsInput);
            }
            self.bits.consume(length);
            if symbol == 256 {
                return Ok(Progress::EndOfBlock);
            }
            output[*at] = T::from(symbol as u8);
            *at += 1;
            return Ok(Progress::Decoded);
        }
        let entry = Entry::length(symbol, length);
        if entry.0 == 0 {
            return Err(UNKNOWN_WORD);
        }
        let length = entry.value(bits.buffer);
        if entry.bits() > bits.count {
            return Ok(Progress::NeedsInput);
        }
        bits.consume(entry.bits());
        let Some((symbol, word)) = self.tables.dist_code.find(bits.buffer) else {
            return unknown_word(bits);
        };
        if symbol >= 30 {
            return Err(UNKNOWN_WORD);
        }
        let entry = Entry::distance(symbol, word);
        if entry.bits() > bits.count {
            return Ok(Progress::NeedsInput);
        }
        let distance = entry.value(bits.buffer);
        bits.consume(entry.bits());
        if distance > *at {
            return Err("a reference to before the start");
        }
        self.bits = bits;
        self.copy(output, at, length, distance);
        Ok(Progress::Decoded)
    }

    /// Copies `length` symbols from `distance` symbols before, as far as the output goes. The rest is pending
    /// until the next call.
    fn copy<T: Symbol>(
        &mut self,
        output: &mut [T],
        at: &mut usize,
        length: usize,
        distance: usize,
    ) {
        let count = length.min(output.len() - *at);
        for i in *at..*at + count {
            output[i] = output[i - distance];
        }
        *at += count;
        if count < length {
            self.pending = (length - count, distance);
        }
    }

    /// Decodes while there is ample input and output; returns whether the block has ended.
    fn fast<T: Symbol>(
        &mut self,
        input: &mut &[u8],
        output: &mut [T],
        at: &mut usize,
    ) -> Result<bool, Fault> {
        let mut cursor = Cursor::new(&self.tables, self.bits, input, output, *at);
        let ended = self.speculation.run(&mut cursor);
        let end = cursor.finish();
        (self.bits, *input, *at) = (end.bits, end.input, end.at);
        ended
    }
}

/// The result of decoding one symbol.
enum Progress {
    Decoded,
    EndOfBlock,
    NeedsInput,
}

const UNKNOWN_WORD: Fault = "an unknown Huffman code word";

/// The result for bits that start with no code word: the input may have ended inside one.
fn unknown_word(bits: BitReader) -> Result<Progress, Fault> {
    if bits.count < 15 {
        Ok(Progress::NeedsInput)
    } else {
        Err(UNKNOWN_WORD)
    }
}

/// The arguments of `Inflater::read`.
pub struct Stream<'a, 'b, T> {
    pub inflate: &'a mut Inflater,
    pub input: &'b [u8],
    pub output: &'a mut [T],
    pub from: usize,
}

impl<'b, T: Symbol> Stream<'_, 'b, T> {
    /// As `Inflater::read`.
    pub fn read(&mut self) -> Result<Step, Fault> {
        self.inflate.read(self.input, self.output, self.from)
    }

    /// Whether it is in the middle of a compressed block, with ample input and output.
    fn is_ready(&self) -> bool {
        self.inflate.state == State::Codes
            && self.inflate.pending.0 == 0
            && self.input.len() >= 8 + AMPLE
            && self.output.len() - self.from >= ROOM
    }

    fn cursor(&mut self) -> Cursor<'_, 'b, T> {
        let Inflater { tables, bits, .. } = &*self.inflate;
        Cursor::new(tables, *bits, self.input, self.output, self.from)
    }

    /// Moves to the end of a cursor; `ended` is whether the block has ended there.
    fn advance(&mut self, end: CursorEnd, ended: bool) -> Step {
        self.inflate.bits = end.bits;
        if ended {
            self.inflate.end_block();
        }
        Step {
            used: self.input.len() - end.input.len(),
            made: end.at - self.from,
            needs_input: false,
        }
    }
}

/// Decodes two streams. If both are in a block with ample input and output, they take turns until one
/// stops; otherwise the others continue alone. No symbol can be looked up before the one before
/// it has been, and while a processor waits for that it has time for another stream.
pub fn read_both<T: Symbol>(mut pair: [Stream<'_, '_, T>; 2]) -> [Result<Step, Fault>; 2] {
    let [one_ready, two_ready] = [pair[0].is_ready(), pair[1].is_ready()];
    let [one, two] = &mut pair;
    if one_ready && two_ready {
        let (mut a, mut b) = (one.cursor(), two.cursor());
        let [a_ended, b_ended] = run_both(&mut a, &mut b);
        let (a, b) = (a.finish(), b.finish());
        [
            a_ended.map(|ended| one.advance(a, ended)),
            b_ended.map(|ended| two.advance(b, ended)),
        ]
    } else {
        [(one, one_ready), (two, two_ready)].map(|(stream, ready)| {
            if ready {
                Ok(Step::default())
            } else {
                stream.read()
            }
        })
    }
}
