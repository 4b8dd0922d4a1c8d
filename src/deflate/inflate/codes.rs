//! Huffman codes (RFC 1951, section 3.2.2) and the tables that decode them.

/// A short description of what is wrong with a stream.
pub type Fault = &'static str;

/// Bits that index the table of literals and lengths, which has 16 KiB: half of a small L1 cache.
pub const LITLEN_BITS: u32 = 12;

/// Bits that index the table of distances.
pub const DIST_BITS: u32 = 9;

/// Bits of the longest code word.
const LONGEST: usize = 15;

/// A canonical Huffman code: how many words of each length, and the symbols in order of words.
pub struct Code<const SYMBOLS: usize> {
    counts: [u16; LONGEST + 1],
    symbols: [u16; SYMBOLS],
}

impl<const SYMBOLS: usize> Default for Code<SYMBOLS> {
    fn default() -> Self {
        Code {
            counts: [0; LONGEST + 1],
            symbols: [0; SYMBOLS],
        }
    }
}

impl<const SYMBOLS: usize> Code<SYMBOLS> {
    /// Sets the code to that with these word lengths (0: no word). Refuses codes that are not complete,
    /// except the one with a single word of one bit, and the one without words, none of whose symbols
    /// can then occur.
    pub fn set(&mut self, lengths: &[u8]) -> Result<(), Fault> {
        // Two tables in turn, since two increments of the same count must wait for each other.
        let mut odd = [0; LONGEST + 1];
        self.counts = [0; LONGEST + 1];
        for pair in lengths.chunks(2) {
            self.counts[usize::from(pair[0]) & LONGEST] += 1;
            if let Some(&length) = pair.get(1) {
                odd[usize::from(length) & LONGEST] += 1;
            }
        }
        for (count, odd) in self.counts.iter_mut().zip(odd) {
            *count += odd;
        }
        let words = lengths.len() - usize::from(self.counts[0]);
        self.counts[0] = 0;
        let mut room = 1i32;
        let mut starts = [0u16; LONGEST + 2];
        for length in 1..=LONGEST {
            room = 2 * room - i32::from(self.counts[length]);
            if room < 0 {
                return Err("an impossible Huffman code");
            }
            starts[length + 1] = starts[length] + self.counts[length];
        }
        if room > 0 && (words > 1 || words != usize::from(self.counts[1])) {
            return Err("an incomplete Huffman code");
        }
        for (symbol, &length) in lengths.iter().enumerate() {
            if length > 0 {
                let start = &mut starts[usize::from(length)];
                self.symbols[usize::from(*start)] = symbol as u16;
                *start += 1;
            }
        }
        Ok(())
    }

    /// The symbol whose word `bits` starts with, and the word's length, found bit by bit; none if there
    /// is no such word.
    pub fn find(&self, bits: u64) -> Option<(u16, u32)> {
        let (mut word, mut first, mut index) = (0, 0, 0);
        for length in 1..=LONGEST {
            word |= (bits >> (length - 1) & 1) as u16;
            let count = self.counts[length];
            if word < first + count {
                return Some((
                    self.symbols[usize::from(index + word - first)],
                    length as u32,
                ));
            }
            index += count;
            first = (first + count) << 1;
            word <<= 1;
        }
        None
    }

    /// The symbols whose words are `length` bits long, each with its word as a stream has it: the first
    /// bit lowest.
    fn words(&self, length: u32) -> impl Iterator<Item = (u16, usize)> {
        let (mut word, mut index) = (0u32, 0);
        for &count in &self.counts[1..length as usize] {
            word = (word + u32::from(count)) << 1;
            index += usize::from(count);
        }
        let count = usize::from(self.counts[length as usize]);
        let words = (word..).map(move |word| (word.reverse_bits() >> (32 - length)) as usize);
        self.symbols[index..index + count]
            .iter()
            .copied()
            .zip(words)
    }

    /// Fills a table that is indexed by the next bits with the entry of the symbol whose word they start
    /// with; 0 where there is none, or its word is longer than the index.
    pub fn fill(&self, table: &mut [u32], entry: impl Fn(u16, u32) -> u32) {
        table[0] = 0;
        for length in 1..=table.len().trailing_zeros() {
            // With one more bit of index, the entries of shorter words repeat.
            let half = 1 << (length - 1);
            table.copy_within(..half, half);
            for (symbol, word) in self.words(length) {
                table[word] = entry(symbol, length);
            }
        }
    }
}

/// An entry of a decoding table, in 32 bits.
///
/// | bits | literals | length or distance |
/// |---|---|---|
/// | 0–5 | bits of their words together | 0 |
/// | 6–29 | the literals, the first lowest | 6–20 base; 21–24 number of extra bits; 25–29 bits of the word and extra bits |
/// | 30–31 | how many, 1–3 | 0 |
///
/// Treated as literals, a length is therefore none, of no bits. 0 stands for a word that must be
/// decoded bit by bit.
#[derive(Clone, Copy)]
pub struct Entry(pub u32);

impl Entry {
    /// The first bit of the literals, and of their number.
    const FIRST: u32 = 6;
    const NUMBER: u32 = 30;

    /// How many literals it gives: 0–3.
    #[inline(always)]
    pub fn literals(self) -> usize {
        (self.0 >> Entry::NUMBER) as usize
    }

    /// Bits of its literals' words.
    #[inline(always)]
    pub fn taken(self) -> u32 {
        self.0 & 63
    }

    /// The literals in the low bytes; the bytes above them mean nothing.
    #[inline(always)]
    pub fn bytes(self) -> u32 {
        self.0 >> Entry::FIRST
    }

    /// Bits of a length or distance, extra bits included.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0 >> 25 & 31
    }

    /// The length or distance itself, whose word and extra bits `bits` starts with.
    #[inline(always)]
    pub fn value(self, bits: u64) -> usize {
        let extra = self.0 >> 21 & 15;
        let value = bits >> (self.bits() - extra) & ((1 << extra) - 1);
        (self.0 >> 6 & 0x7FFF) as usize + value as usize
    }

    fn literal(symbol: u16, length: u32) -> Entry {
        Entry(u32::from(symbol) << Entry::FIRST | 1 << Entry::NUMBER | length)
    }

    fn based(base: u32, extra: u32, length: u32) -> Entry {
        Entry((length + extra) << 25 | extra << 21 | base << 6)
    }

    /// The entry of a length symbol (257–285); 0 for others.
    pub fn length(symbol: u16, length: u32) -> Entry {
        const BASE: [u16; 29] = [
            3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99,
            115, 131, 163, 195, 227, 258,
        ];
        let index = usize::from(symbol.wrapping_sub(257));
        let extra = match index {
            0..8 | 28 => 0,
            _ => index as u32 / 4 - 1,
        };
        match BASE.get(index) {
            Some(&base) => Entry::based(base.into(), extra, length),
            None => Entry(0),
        }
    }

    /// The entry of a distance symbol (0–29).
    pub fn distance(symbol: u16, length: u32) -> Entry {
        let symbol = u32::from(symbol);
        let extra = (symbol / 2).saturating_sub(1);
        let base = match symbol {
            0..4 => symbol + 1,
            _ => ((2 + symbol % 2) << extra) + 1,
        };
        Entry::based(base, extra, length)
    }
}

/// One or two literals that may follow another in the same entry.
#[derive(Clone, Copy, Default)]
pub struct Rest {
    /// The code words of these literals, one after the other, in the bits of an index.
    word: u32,
    /// Their share of the entry: the literals after the first, and the number of all.
    entry: u32,
}

impl Rest {
    fn one(symbol: u16, word: usize) -> Rest {
        Rest {
            word: word as u32,
            entry: u32::from(symbol) << (Entry::FIRST + 8) | 2 << Entry::NUMBER,
        }
    }

    /// This single literal as the first of an entry.
    #[inline(always)]
    fn first(self) -> u32 {
        self.entry >> 8 & 0xFF << Entry::FIRST
    }
}

/// Fills the table of literals and lengths. Up to three literals whose words fit the index together
/// share one entry. `twos` is scratch memory.
pub fn fill_litlen(code: &Code<288>, table: &mut [u32; 1 << LITLEN_BITS], twos: &mut Vec<Rest>) {
    const MOST: usize = LITLEN_BITS as usize;
    let mut ones = [Rest::default(); 256];
    // The indices in `ones` and `twos` at which the words of a number of bits start.
    let mut one_starts = [0; MOST + 2];
    let mut two_starts = [0; MOST + 2];
    twos.clear();
    table[0] = 0;
    let mut shortest = MOST;
    for bits in 1..=MOST {
        // With one more bit of index, the entries of shorter words repeat.
        let half = 1 << (bits - 1);
        table.copy_within(..half, half);
        let mut end = one_starts[bits];
        for (symbol, word) in code.words(bits as u32) {
            if symbol < 256 {
                table[word] = Entry::literal(symbol, bits as u32).0;
                ones[end] = Rest::one(symbol, word);
                end += 1;
                shortest = shortest.min(bits);
            } else {
                table[word] = Entry::length(symbol, bits as u32).0;
            }
        }
        one_starts[bits + 1] = end;
        // Whether a third literal may fit.
        let may_grow = bits + shortest <= MOST;
        for first in 1..bits {
            let range = |starts: &[usize], bits: usize| starts[bits]..starts[bits + 1];
            let firsts = &ones[range(&one_starts, first)];
            let rest = bits - first;
            for_each_pair(firsts, &ones[range(&one_starts, rest)], |one, two| {
                let word = one.word | two.word << first;
                let entry = one.first() + two.entry;
                table[word as usize % (1 << MOST)] = entry + bits as u32;
                if may_grow {
                    twos.push(Rest {
                        word,
                        entry: (entry & 0xFFFF << Entry::FIRST) << 8 | 3 << Entry::NUMBER,
                    });
                }
            });
            for_each_pair(firsts, &twos[range(&two_starts, rest)], |one, two| {
                let word = one.word | two.word << first;
                table[word as usize % (1 << MOST)] = one.first() + two.entry + bits as u32;
            });
        }
        two_starts[bits + 1] = twos.len();
    }
}

/// Calls `with` for every pair; the longer list makes the inner loop.
#[inline(always)]
fn for_each_pair(firsts: &[Rest], seconds: &[Rest], mut with: impl FnMut(Rest, Rest)) {
    if firsts.len() < seconds.len() {
        for &first in firsts {
            seconds.iter().for_each(|&second| with(first, second));
        }
    } else {
        for &second in seconds {
            firsts.iter().for_each(|&first| with(first, second));
        }
    }
}
