//! Huffman codes of deflate (RFC 1951, section 3.2) and the tables that decode them.

/// What is wrong with a stream, in a few words.
pub type Fault = &'static str;

/// BitReader that index the table of literals and lengths: 16 KiB, half of a small level 1 cache.
pub const LITLEN_BITS: u32 = 12;

/// BitReader that index the table of distances.
pub const DIST_BITS: u32 = 9;

/// The longest code word.
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
    /// The code of these word lengths (0 for none). It must be complete, but for the code with one
    /// word of one bit, and the one without words, which no stream may then use.
    pub fn set(&mut self, lengths: &[u8]) -> Result<(), Fault> {
        // Two tables, since an increment must wait for the one before if it is of the same place.
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

    /// The symbol whose word `bits` starts with, and the word's length: bit by bit.
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

    /// The symbols whose words are `length` bits long, each with its word as it comes in a stream:
    /// the first bit lowest.
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

    /// Fills a table indexed by the next bits with the entry of the symbol that they start with;
    /// 0 where the word is longer than the index, or there is none.
    pub fn fill(&self, table: &mut [u32], entry: impl Fn(u16, u32) -> u32) {
        table[0] = 0;
        for length in 1..=table.len().trailing_zeros() {
            // What a shorter word starts repeats with every bit more of index.
            let half = 1 << (length - 1);
            table.copy_within(..half, half);
            for (symbol, word) in self.words(length) {
                table[word] = entry(symbol, length);
            }
        }
    }
}

/// An entry of the table of literals and lengths. Literals: bits 0–5 say how many bits they take,
/// bits 30–31 how many there are (1–3), bits 6–29 which. Lengths, with 0 in their places: base in
/// bits 6–20, extra bits in bits 21–24, and in bits 25–29 how many bits they take, extra bits
/// included; so that to pass one as literals changes nothing. 0: decode bit by bit.
#[derive(Clone, Copy)]
pub struct Entry(pub u32);

impl Entry {
    /// Where the literals begin, and their number.
    const FIRST: u32 = 6;
    const NUMBER: u32 = 30;

    /// Literals that it gives: 0–3.
    #[inline(always)]
    pub fn literals(self) -> usize {
        (self.0 >> Entry::NUMBER) as usize
    }

    /// BitReader that its literals take.
    #[inline(always)]
    pub fn taken(self) -> u32 {
        self.0 & 63
    }

    /// The literals themselves in the low bytes, and something above.
    #[inline(always)]
    pub fn bytes(self) -> u32 {
        self.0 >> Entry::FIRST
    }

    /// BitReader that a length or distance takes.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0 >> 25 & 31
    }

    /// The base and the extra bits of a length or distance that starts `bits`.
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

/// One or two literals that may follow another in an entry.
#[derive(Clone, Copy, Default)]
pub struct Rest {
    /// Their words.
    word: u32,
    /// What they add to the entry: themselves behind the first, and how many literals there are
    /// then.
    entry: u32,
}

impl Rest {
    fn one(symbol: u16, word: usize) -> Rest {
        Rest {
            word: word as u32,
            entry: u32::from(symbol) << (Entry::FIRST + 8) | 2 << Entry::NUMBER,
        }
    }

    /// The one literal as the first of an entry.
    #[inline(always)]
    fn first(self) -> u32 {
        self.entry >> 8 & 0xFF << Entry::FIRST
    }
}

/// Fills the table of literals and lengths; where several literals fit the index, they share one
/// entry. What `twos` holds does not matter.
pub fn fill_litlen(code: &Code<288>, table: &mut [u32; 1 << LITLEN_BITS], twos: &mut Vec<Rest>) {
    const MOST: usize = LITLEN_BITS as usize;
    let mut ones = [Rest::default(); 256];
    // Where in `ones` and `twos` those of a number of bits start.
    let mut one_starts = [0; MOST + 2];
    let mut two_starts = [0; MOST + 2];
    twos.clear();
    table[0] = 0;
    let mut shortest = MOST;
    for bits in 1..=MOST {
        // What fewer bits mean they mean with any other bit behind.
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
            let of = |starts: &[usize], bits: usize| starts[bits]..starts[bits + 1];
            let firsts = &ones[of(&one_starts, first)];
            let rest = bits - first;
            each_of(firsts, &ones[of(&one_starts, rest)], |one, two| {
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
            each_of(firsts, &twos[of(&two_starts, rest)], |one, two| {
                let word = one.word | two.word << first;
                table[word as usize % (1 << MOST)] = one.first() + two.entry + bits as u32;
            });
        }
        two_starts[bits + 1] = twos.len();
    }
}

/// Calls `with` for every pair; the inner loop is the longer one.
#[inline(always)]
fn each_of(firsts: &[Rest], seconds: &[Rest], mut with: impl FnMut(Rest, Rest)) {
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
