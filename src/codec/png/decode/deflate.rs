//! Inflating deflate data (RFC 1951) for images.
//!
//! Noisy images are nearly all literals, and the time goes into the chain from one code word to the
//! next; so one table entry gives up to three literals at once. A stream can be entered at any bit
//! at which a block starts, and symbols may be wider than bytes, to stand for what is not yet known.

use super::block_header::{Bits, Tables, read_lengths};
use super::codes::{DIST_BITS, Entry, Fault, LITLEN_BITS};
use multiversion::multiversion;

/// Room that the fast loop needs in the output: four entries of literals, then the longest match,
/// both written in rounds that go a little too far.
const ROOM: usize = 16 + 258 + 16;

/// Input that the fast loop needs: three times what tops up its bits.
const AMPLE: usize = 24;

/// An inflated byte, or something that may stand for one.
pub trait Symbol: Copy + From<u8> {
    /// Four bytes, the lowest first, as symbols.
    fn four(bytes: u32) -> [Self; 4];
}

impl Symbol for u8 {
    #[inline(always)]
    fn four(bytes: u32) -> [u8; 4] {
        bytes.to_le_bytes()
    }
}

impl Symbol for u16 {
    #[inline(always)]
    fn four(bytes: u32) -> [u16; 4] {
        bytes.to_le_bytes().map(u16::from)
    }
}

/// What a call of `read` did.
#[derive(Default)]
pub struct Step {
    /// Bytes taken from the input.
    pub used: usize,
    /// Symbols added to the output.
    pub made: usize,
    /// Whether it stopped because it needs more input.
    pub hungry: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum State {
    /// Before a block's header.
    #[default]
    Start,
    /// In a stored block, with so many bytes to come.
    Stored(usize),
    /// In a compressed block.
    Codes,
    /// After the last block.
    End,
}

/// A deflate stream being inflated.
#[derive(Default)]
pub struct Inflate {
    bits: Bits,
    state: State,
    /// Whether the block is the last one.
    last: bool,
    /// Length and distance of what is left of a match that did not fit the output.
    pending: (usize, usize),
    /// Input of a header that was not all there.
    header: Vec<u8>,
    tables: Tables,
    ahead: Ahead,
}

impl Inflate {
    /// Starts anew before a block, of which `bits` are at hand.
    pub fn restart(&mut self, bits: Bits) {
        self.bits = bits;
        self.state = State::Start;
        self.last = false;
        self.pending = (0, 0);
        self.header.clear();
    }

    /// Whether a block has ended and no other begun.
    pub fn between_blocks(&self) -> bool {
        matches!(self.state, State::Start | State::End) && self.header.is_empty()
    }

    /// Whether a match goes on past what was room for.
    pub fn is_in_match(&self) -> bool {
        self.pending.0 > 0
    }

    /// Whether the last block has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// Bits taken from the input that belong to what follows.
    pub fn rest(&self) -> Bits {
        self.bits
    }

    /// Inflates from `input` to `output[from..]` until one is exhausted or a block ends; to be
    /// called again then. The symbols before `from` are those that matches refer to.
    pub fn read<T: Symbol>(
        &mut self,
        input: &[u8],
        output: &mut [T],
        from: usize,
    ) -> Result<Step, Fault> {
        let mut rest = input;
        let mut at = from;
        let hungry = match self.state {
            State::End => false,
            State::Start => !self.start(&mut rest)?,
            State::Stored(_) => self.stored(&mut rest, output, &mut at),
            State::Codes => self.codes(&mut rest, output, &mut at)?,
        };
        Ok(Step {
            used: input.len() - rest.len(),
            made: at - from,
            hungry,
        })
    }

    /// Begins a block; false if its header is not all there, and then keeps what there is.
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

    /// As `start`, but changes nothing if the header is not all there.
    fn begin(&mut self, input: &mut &[u8]) -> Result<bool, Fault> {
        let mut bits = self.bits;
        bits.refill_slowly(input);
        if bits.count < 3 {
            return Ok(false);
        }
        let last = bits.take(1) == 1;
        match bits.take(2) {
            0 => {
                bits.align();
                if bits.count < 32 {
                    return Ok(false);
                }
                let len = bits.take(16);
                if bits.take(16) != len ^ 0xFFFF {
                    return Err("a stored block whose length is damaged");
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
        self.bits = bits;
        self.last = last;
        Ok(true)
    }

    fn end_block(&mut self) {
        self.state = match self.last {
            true => State::End,
            false => State::Start,
        };
    }

    /// Copies from a stored block; says whether it needs more input.
    fn stored<T: Symbol>(&mut self, input: &mut &[u8], output: &mut [T], at: &mut usize) -> bool {
        let State::Stored(mut left) = self.state else {
            return false;
        };
        while left > 0 && self.bits.count >= 8 && *at < output.len() {
            output[*at] = T::from(self.bits.take(8) as u8);
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

    /// Inflates from a compressed block; says whether it needs more input.
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
            // One symbol with all care, at the end of input or output.
            if *at == output.len() {
                return Ok(false);
            }
            self.bits.refill_slowly(input);
            let mut bits = self.bits;
            // Bits beyond those at hand are zero, so what they complete is found out by the count.
            let Some((symbol, length)) = self.tables.litlen_code.find(bits.buffer) else {
                return match bits.count < 15 {
                    true => Ok(true),
                    false => Err("an unknown Huffman code word"),
                };
            };
            if symbol <= 256 {
                if length > bits.count {
                    return Ok(true);
                }
                self.bits.consume(length);
                if symbol == 256 {
                    self.end_block();
                    return Ok(false);
                }
                output[*at] = T::from(symbol as u8);
                *at += 1;
                continue;
            }
            let entry = Entry::length(symbol, length);
            if entry.0 == 0 {
                return Err("an unknown Huffman code word");
            }
            let length = entry.value(bits.buffer);
            if entry.bits() > bits.count {
                return Ok(true);
            }
            bits.consume(entry.bits());
            let Some((symbol, word)) = self.tables.dist_code.find(bits.buffer) else {
                return match bits.count < 15 {
                    true => Ok(true),
                    false => Err("an unknown Huffman code word"),
                };
            };
            if symbol >= 30 {
                return Err("an unknown Huffman code word");
            }
            let entry = Entry::distance(symbol, word);
            if entry.bits() > bits.count {
                return Ok(true);
            }
            let distance = entry.value(bits.buffer);
            bits.consume(entry.bits());
            if distance > *at {
                return Err("a reference to before the start");
            }
            self.bits = bits;
            self.copy(output, at, length, distance);
        }
    }

    /// Repeats `length` symbols from `distance` back as far as the output goes; notes the rest.
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

    /// Inflates while there is ample input and output; says whether the block has ended.
    fn fast<T: Symbol>(
        &mut self,
        input: &mut &[u8],
        output: &mut [T],
        at: &mut usize,
    ) -> Result<bool, Fault> {
        let mut lane = Lane::new(&self.tables, self.bits, input, output, *at);
        let start = lane.input.len();
        let ended = loop {
            let Some(span) = self.ahead.span(start, &lane) else {
                let ended;
                (lane, ended) = run(lane);
                break ended;
            };
            let ended;
            (lane, ended) = self.ahead.go(span, lane);
            if ended != Ok(false) {
                break ended;
            }
        };
        self.ahead.used += start - lane.input.len();
        if ended == Ok(true) {
            self.ahead.expected = std::mem::take(&mut self.ahead.used);
        }
        (self.bits, *input, *at) = lane.leave();
        ended
    }
}

/// A stream with its input and output, to be read as by `Inflate::read`.
pub struct Stream<'a, 'b, T> {
    pub inflate: &'a mut Inflate,
    pub input: &'b [u8],
    pub output: &'a mut [T],
    pub from: usize,
}

impl<'b, T: Symbol> Stream<'_, 'b, T> {
    /// As `Inflate::read`.
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

    fn lane(&mut self) -> Lane<'_, 'b, T> {
        let Inflate { tables, bits, .. } = &*self.inflate;
        Lane::new(tables, *bits, self.input, self.output, self.from)
    }

    /// Takes note of what its lane did.
    fn took(&mut self, (bits, rest, at): (Bits, &[u8], usize), ended: bool) -> Step {
        self.inflate.bits = bits;
        if ended {
            self.inflate.end_block();
        }
        Step {
            used: self.input.len() - rest.len(),
            made: at - self.from,
            hungry: false,
        }
    }
}

/// Reads on in two streams: in both by turns until something stops one of them, else in what is
/// stopped. No symbol can be looked up before the one before it is, and while a processor waits for
/// that it has time for another stream.
pub fn read_both<T: Symbol>(mut pair: [Stream<'_, '_, T>; 2]) -> [Result<Step, Fault>; 2] {
    let [one_ready, two_ready] = [pair[0].is_ready(), pair[1].is_ready()];
    let [one, two] = &mut pair;
    if one_ready && two_ready {
        let (a, b, [a_ended, b_ended]) = run_both(one.lane(), two.lane());
        let (a, b) = (a.leave(), b.leave());
        [
            a_ended.map(|ended| one.took(a, ended)),
            b_ended.map(|ended| two.took(b, ended)),
        ]
    } else {
        [(one, one_ready), (two, two_ready)].map(|(stream, ready)| match ready {
            true => Ok(Step::default()),
            false => stream.read(),
        })
    }
}

/// Inflates while there is ample input and output; says whether the block has ended. The shifts by
/// what a table says are most of the work, and BMI2 has better ones.
#[multiversion(targets("x86_64+bmi1+bmi2"))]
fn run<'a, 'b, T: Symbol>(mut lane: Lane<'a, 'b, T>) -> (Lane<'a, 'b, T>, Result<bool, Fault>) {
    while lane.is_ready() {
        lane.literals();
        if lane.entry.literals() == 0 {
            let ended = lane.other();
            if ended != Ok(false) {
                return (lane, ended);
            }
        }
    }
    (lane, Ok(false))
}

/// As `run`, in two streams by turns.
#[multiversion(targets("x86_64+bmi1+bmi2"))]
fn run_both<'a, 'b, 'c, 'd, T: Symbol>(
    mut a: Lane<'a, 'b, T>,
    mut b: Lane<'c, 'd, T>,
) -> (Lane<'a, 'b, T>, Lane<'c, 'd, T>, [Result<bool, Fault>; 2]) {
    while a.is_ready() && b.is_ready() {
        a.literals();
        b.literals();
        if a.entry.literals() == 0 {
            let ended = a.other();
            if ended != Ok(false) {
                return (a, b, [ended, Ok(false)]);
            }
        }
        if b.entry.literals() == 0 {
            let ended = b.other();
            if ended != Ok(false) {
                return (a, b, [Ok(false), ended]);
            }
        }
    }
    (a, b, [Ok(false), Ok(false)])
}

/// Reading ahead in a block.
struct Ahead {
    bytes: Box<[u8; SCRATCH]>,
    marks: Vec<Mark>,
    expected: usize,
    used: usize,
    /// Spans to go without.
    pause: usize,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead {
            bytes: Box::new([0; SCRATCH]),
            marks: Vec::new(),
            expected: 0,
            used: 0,
            pause: 0,
        }
    }
}

const SCRATCH: usize = 16 << 10;
const MARKS: usize = 64;
const SHORTEST: usize = 512;
const LONGEST: usize = 16 << 10;
const PAUSE: usize = 16;

struct Mark {
    bit: usize,
    made: usize,
}

/// Where one reads in literals.
#[derive(Clone, Copy)]
struct Cursor {
    bits: Bits,
    next: usize,
    at: usize,
}

impl Cursor {
    fn bit(&self) -> usize {
        8 * self.next - (self.bits.count & 63) as usize
    }

    /// Four entries of literals, or as many as there are before something else; false then.
    #[inline(always)]
    fn four<T: Symbol>(
        &mut self,
        litlen: &[u32; 1 << LITLEN_BITS],
        input: &[u8],
        output: &mut [T],
    ) -> bool {
        self.refill(input);
        let output = &mut output[self.at..self.at + 32];
        let mut made = 0;
        let mut entry = Entry(0);
        for _ in 0..4 {
            entry = lookup(litlen, self.bits);
            self.bits.pass(entry);
            output[made..made + 4].copy_from_slice(&T::four(entry.bytes()));
            made += entry.literals();
        }
        self.at += made;
        entry.literals() > 0
    }

    #[inline(always)]
    fn refill(&mut self, input: &[u8]) {
        let mut rest = &input[self.next..self.next + 8];
        self.bits.refill(&mut rest);
        self.next += 8 - rest.len();
    }
}

#[multiversion(targets("x86_64+bmi1+bmi2"))]
fn run_two<T: Symbol>(
    litlen: &[u32; 1 << LITLEN_BITS],
    input: &[u8],
    until: usize,
    output: &mut [T],
    bytes: &mut [u8],
    [one, two]: [Cursor; 2],
) -> (Cursor, Cursor) {
    let (mut a, mut b) = (Cursor { ..one }, Cursor { ..two });
    while a.next < until
        && b.next + AMPLE <= input.len()
        && a.at + b.at + ROOM <= output.len()
        && b.at + 32 <= bytes.len()
    {
        if !(a.four(litlen, input, output) & b.four(litlen, input, bytes)) {
            break;
        }
    }
    (a, b)
}

impl Ahead {
    fn span<T>(&mut self, start: usize, lane: &Lane<'_, '_, T>) -> Option<usize> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let used = self.used + start - lane.input.len();
        let expected = match self.expected > used {
            true => self.expected - used,
            false => LONGEST,
        };
        let span = expected.min(lane.input.len()).min(LONGEST);
        (span >= SHORTEST && lane.output.len() - lane.at >= ROOM + 2 * span).then_some(span)
    }

    /// Inflates about `span` bytes of the input, in its two halves at the same time.
    fn go<'a, 'b, T: Symbol>(
        &mut self,
        span: usize,
        mut lane: Lane<'a, 'b, T>,
    ) -> (Lane<'a, 'b, T>, Result<bool, Fault>) {
        let tables = lane.tables;
        let litlen = &tables.litlen;
        let input = lane.input;
        let half = span / 2;
        let mut b = Cursor {
            bits: Bits::default(),
            next: half,
            at: 0,
        };
        self.marks.clear();
        let mut ready = true;
        while ready && self.marks.len() < MARKS {
            b.refill(input);
            for _ in 0..4 {
                self.marks.push(Mark {
                    bit: b.bit(),
                    made: b.at,
                });
                let entry = lookup(litlen, b.bits);
                b.bits.pass(entry);
                emit(&mut self.bytes[..], &mut b.at, entry);
                ready &= entry.literals() > 0;
            }
        }
        loop {
            let consumed = input.len() - lane.input.len();
            if consumed >= half {
                break;
            }
            if ready {
                let a = Cursor {
                    bits: lane.bits,
                    next: consumed,
                    at: lane.at,
                };
                let (a, now) = run_two(
                    litlen,
                    input,
                    half,
                    lane.output,
                    &mut self.bytes[..],
                    [a, b],
                );
                b = now;
                lane.take(input, a);
                ready = false;
                if lane.entry.literals() == 0 && lane.is_ready() {
                    let ended = lane.other();
                    if ended != Ok(false) {
                        return (lane, ended);
                    }
                    ready = lane.is_ready();
                }
            } else {
                lane.input = &input[consumed..half + AMPLE];
                let ended;
                (lane, ended) = run(lane);
                lane.input = &input[half + AMPLE - lane.input.len()..];
                if ended != Ok(false) || input.len() - lane.input.len() < half {
                    self.pause = PAUSE;
                    return (lane, ended);
                }
            }
        }
        let mut marks = self.marks.iter();
        let mut mark = marks.next();
        loop {
            let bit = 8 * (input.len() - lane.input.len()) - (lane.bits.count & 63) as usize;
            while mark.is_some_and(|mark| mark.bit < bit) {
                mark = marks.next();
            }
            let Some(mark) = mark else { break };
            if !lane.is_ready() {
                break;
            }
            if mark.bit == bit {
                let fresh = &self.bytes[mark.made..b.at];
                if fresh.len() < half / 2 {
                    self.pause = PAUSE;
                }
                let Some(room) = lane.output.get_mut(lane.at..lane.at + fresh.len()) else {
                    break;
                };
                for (symbol, &byte) in room.iter_mut().zip(fresh) {
                    *symbol = T::from(byte);
                }
                lane.take(
                    input,
                    Cursor {
                        at: lane.at + fresh.len(),
                        ..b
                    },
                );
                return (lane, Ok(false));
            }
            if lane.entry.literals() > 0 {
                lane.bits.refill(&mut lane.input);
                lane.bits.pass(lane.entry);
                emit(lane.output, &mut lane.at, lane.entry);
                lane.entry = lookup(litlen, lane.bits);
            } else {
                let ended = lane.other();
                if ended != Ok(false) {
                    return (lane, ended);
                }
            }
        }
        self.pause = PAUSE;
        (lane, Ok(false))
    }
}

/// A stream in the middle of a compressed block, in as few variables as a loop can keep at hand.
struct Lane<'a, 'b, T> {
    tables: &'a Tables,
    bits: Bits,
    input: &'b [u8],
    output: &'a mut [T],
    at: usize,
    /// What the next bits mean: looked up before the bits are topped up, to save the wait.
    entry: Entry,
}

impl<'a, 'b, T: Symbol> Lane<'a, 'b, T> {
    fn new(
        tables: &'a Tables,
        mut bits: Bits,
        mut input: &'b [u8],
        output: &'a mut [T],
        at: usize,
    ) -> Self {
        bits.refill_slowly(&mut input);
        Lane {
            tables,
            bits,
            input,
            output,
            at,
            entry: lookup(&tables.litlen, bits),
        }
    }

    fn take(&mut self, input: &'b [u8], cursor: Cursor) {
        self.bits = cursor.bits;
        self.input = &input[cursor.next..];
        self.at = cursor.at;
        self.entry = lookup(&self.tables.litlen, self.bits);
    }

    fn leave(self) -> (Bits, &'b [u8], usize) {
        let mut bits = self.bits;
        bits.count &= 63;
        (bits, self.input, self.at)
    }

    /// Whether there is enough input and output for a step.
    #[inline(always)]
    fn is_ready(&self) -> bool {
        self.input.len() >= AMPLE && self.output.len() - self.at >= ROOM
    }

    /// Inflates up to three entries of literals.
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

    /// Inflates what is not in the table as literals; says whether it was the block's end.
    #[inline(always)]
    fn other(&mut self) -> Result<bool, Fault> {
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
            // Of each 16 symbols, as many are right as lie between source and target.
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

#[inline(always)]
fn lookup(litlen: &[u32; 1 << LITLEN_BITS], bits: Bits) -> Entry {
    Entry(litlen[bits.buffer as usize % (1 << LITLEN_BITS)])
}

/// Writes the literals of an entry and moves on by as many as there are.
#[inline(always)]
fn emit<T: Symbol>(output: &mut [T], at: &mut usize, entry: Entry) {
    output[*at..*at + 4].copy_from_slice(&T::four(entry.bytes()));
    *at += entry.literals();
}
