//! Inflating deflate data (RFC 1951) for images.
//!
//! Noisy images are nearly all literals, and the time goes into the chain from one code word to the
//! next; so one table entry gives up to three literals at once. A stream can be entered at any bit
//! at which a block starts, and symbols may be wider than bytes, to stand for what is not yet known.

use super::codes::{Code, DIST_BITS, Entry, LITLEN_BITS, fill_litlen};

/// What is wrong with a stream, in a few words.
pub type Fault = &'static str;

/// Room that the fast loop needs in the output: four entries of literals, then the longest match,
/// both written in rounds that go a little too far.
const ROOM: usize = 16 + 258 + 16;

/// The order of code lengths in a block's header.
const ORDER: [u8; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// An inflated byte, or something that may stand for one.
pub trait Symbol: Copy + From<u8> {
    /// Eight bytes as symbols.
    fn eight(bytes: [u8; 8]) -> [Self; 8];
}

impl Symbol for u8 {
    #[inline(always)]
    fn eight(bytes: [u8; 8]) -> [u8; 8] {
        bytes
    }
}

impl Symbol for u16 {
    #[inline(always)]
    fn eight(bytes: [u8; 8]) -> [u16; 8] {
        bytes.map(u16::from)
    }
}

/// What a call of `read` did.
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

/// Bits taken from the input but not yet decoded, the next one lowest. Above `count` there are
/// zeros, or bits that will come again.
#[derive(Clone, Copy, Default)]
pub struct Bits {
    pub buffer: u64,
    pub count: u32,
}

impl Bits {
    #[inline(always)]
    fn consume(&mut self, count: u32) {
        self.buffer >>= count;
        self.count -= count;
    }

    /// Drops the rest of a byte.
    pub fn align(&mut self) {
        self.consume(self.count % 8);
    }

    /// Takes `count` bits that are known to be there.
    pub fn take(&mut self, count: u32) -> usize {
        let value = self.buffer & ((1 << count) - 1);
        self.consume(count);
        value as usize
    }

    /// Tops up to at least 56 bits; there are 8 bytes or more. Of the count only the low 6 bits
    /// need be right.
    #[inline(always)]
    fn refill(&mut self, input: &mut &[u8]) {
        if let Some(bytes) = input.first_chunk() {
            self.buffer |= u64::from_le_bytes(*bytes).wrapping_shl(self.count);
            *input = &input[(!self.count & 63) as usize >> 3..];
            self.count = self.count & 7 | 56;
        }
    }

    /// Consumes an entry's bits, and leaves the count right in its low 6 bits: the shortest way
    /// from one entry to the next.
    #[inline(always)]
    fn pass(&mut self, entry: Entry) {
        self.buffer = self.buffer.wrapping_shr(entry.0);
        self.count = self.count.wrapping_sub(entry.0);
    }

    /// Tops up as far as the input goes.
    pub fn refill_slowly(&mut self, input: &mut &[u8]) {
        self.buffer &= (1 << self.count) - 1;
        while let (0..56, Some((&byte, rest))) = (self.count, input.split_first()) {
            self.buffer |= u64::from(byte) << self.count;
            self.count += 8;
            *input = rest;
        }
    }
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
}

struct Tables {
    litlen_code: Code<288>,
    dist_code: Code<32>,
    litlen: Box<[u32; 1 << LITLEN_BITS]>,
    dist: Box<[u32; 1 << DIST_BITS]>,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            litlen_code: Code::default(),
            dist_code: Code::default(),
            litlen: Box::new([0; 1 << LITLEN_BITS]),
            dist: Box::new([0; 1 << DIST_BITS]),
        }
    }
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
    #[inline(always)]
    fn fast<T: Symbol>(
        &mut self,
        input: &mut &[u8],
        output: &mut [T],
        at: &mut usize,
    ) -> Result<bool, Fault> {
        let Tables { litlen, dist, .. } = &self.tables;
        let mut bits = self.bits;
        let mut rest = *input;
        let mut o = *at;
        let mut ended = false;
        bits.refill_slowly(&mut rest);
        let mut entry = lookup(litlen, bits);
        while rest.len() >= 24 && output.len() - o >= ROOM {
            // The next entry is looked up before the bits are topped up, to save the wait.
            if entry.literals() > 0 {
                bits.refill(&mut rest);
                let first = entry;
                bits.pass(first);
                let second = lookup(litlen, bits);
                if second.literals() > 0 {
                    bits.pass(second);
                    let third = lookup(litlen, bits);
                    emit(output, &mut o, first, second);
                    if third.literals() > 0 {
                        bits.pass(third);
                        entry = lookup(litlen, bits);
                        emit(output, &mut o, third, Entry(0));
                        continue;
                    }
                    entry = third;
                } else {
                    emit(output, &mut o, first, Entry(0));
                    entry = second;
                }
            }
            bits.count &= 63;
            // A length and a distance take at most 48 bits.
            bits.refill(&mut rest);
            if entry.0 == 0 {
                let (symbol, word) = self
                    .tables
                    .litlen_code
                    .find(bits.buffer)
                    .ok_or("an unknown Huffman code word")?;
                if symbol < 256 {
                    bits.consume(word);
                    entry = lookup(litlen, bits);
                    output[o] = T::from(symbol as u8);
                    o += 1;
                    continue;
                }
                if symbol == 256 {
                    bits.consume(word);
                    ended = true;
                    break;
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
            bits.refill(&mut rest);
            entry = lookup(litlen, bits);
            if distance > o {
                return Err("a reference to before the start");
            }
            if distance == 1 {
                let symbol = output[o - 1];
                output[o..o + length].fill(symbol);
            } else {
                // Of each 16 symbols, as many are right as lie between source and target.
                for i in (o..o + length).step_by(distance.min(16)) {
                    output.copy_within(i - distance..i - distance + 16, i);
                }
            }
            o += length;
        }
        bits.count &= 63;
        self.bits = bits;
        *input = rest;
        *at = o;
        Ok(ended)
    }
}

#[inline(always)]
fn lookup(litlen: &[u32; 1 << LITLEN_BITS], bits: Bits) -> Entry {
    Entry(litlen[bits.buffer as usize % (1 << LITLEN_BITS)])
}

/// Writes the literals of two entries, up to six, and moves on by as many as there are.
#[inline(always)]
fn emit<T: Symbol>(output: &mut [T], at: &mut usize, first: Entry, second: Entry) {
    let literals = |entry: Entry| u64::from(entry.0 >> 8);
    let both = literals(first) | literals(second) << (8 * first.literals());
    output[*at..*at + 8].copy_from_slice(&T::eight(both.to_le_bytes()));
    *at += first.literals() + second.literals();
}

impl Tables {
    fn set(&mut self, litlen: &[u8], dist: &[u8]) -> Result<(), Fault> {
        if litlen[256] == 0 {
            return Err("a block without an end");
        }
        self.litlen_code.set(litlen)?;
        self.dist_code.set(dist)?;
        fill_litlen(&self.litlen_code, &mut self.litlen);
        self.dist_code
            .fill(&mut self.dist[..], |symbol, length| match symbol {
                0..30 => Entry::distance(symbol, length).0,
                _ => 0,
            });
        Ok(())
    }
}

/// Reads the code lengths of a dynamic block (section 3.2.7); says how many of literals and lengths
/// and how many of distances, or nothing if the header is not all there.
fn read_lengths(
    bits: &mut Bits,
    input: &mut &[u8],
    lengths: &mut [u8; 320],
) -> Result<Option<(usize, usize)>, Fault> {
    if bits.count < 14 {
        return Ok(None);
    }
    let litlens = bits.take(5) + 257;
    let dists = bits.take(5) + 1;
    let count = bits.take(4) + 4;
    if litlens > 286 || dists > 30 {
        return Err("a code with too many symbols");
    }
    let mut of = [0; 19];
    for &symbol in &ORDER[..count] {
        bits.refill_slowly(input);
        if bits.count < 3 {
            return Ok(None);
        }
        of[usize::from(symbol)] = bits.take(3) as u8;
    }
    let mut code = Code::<19>::default();
    code.set(&of)?;
    let mut table = [0; 128];
    code.fill(&mut table, |symbol, length| u32::from(symbol) << 8 | length);
    let mut at = 0;
    while at < litlens + dists {
        bits.refill_slowly(input);
        let entry = table[bits.buffer as usize % 128];
        let (symbol, word) = (entry >> 8, entry & 0xFF);
        let (extra, base) = match symbol {
            16 => (2, 3),
            17 => (3, 3),
            18 => (7, 11),
            _ => (0, 1),
        };
        if bits.count < word + extra || word == 0 && bits.count < 7 {
            return Ok(None);
        }
        if word == 0 {
            return Err("an unknown Huffman code word");
        }
        bits.consume(word);
        let count = base + bits.take(extra);
        let value = match symbol {
            0..16 => symbol as u8,
            16 if at == 0 => return Err("a repetition of nothing"),
            16 => lengths[at - 1],
            _ => 0,
        };
        if at + count > litlens + dists {
            return Err("a code with too many symbols");
        }
        lengths[at..at + count].fill(value);
        at += count;
    }
    Ok(Some((litlens, dists)))
}
