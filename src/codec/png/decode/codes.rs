//! Huffman codes of deflate (RFC 1951, section 3.2) and the tables that decode them.

/// What is wrong with a stream, in a few words.
pub type Fault = &'static str;

/// Bits that index the table of literals and lengths: 16 KiB, half of a small level 1 cache.
pub const LITLEN_BITS: u32 = 12;

/// Bits that index the table of distances.
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
        self.counts = [0; LONGEST + 1];
        for &length in lengths {
            self.counts[usize::from(length)] += 1;
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

/// An entry of the table of literals and lengths. Bits 0–5: bits that it consumes. Bits 6–7: how
/// many literals it gives, in bits 8–31, which are 0 where unused; if none, it is a length of base
/// bits 16–31 and as many extra bits as bits 8–11 say, which count as consumed. 0: decode bit by
/// bit.
#[derive(Clone, Copy)]
pub struct Entry(pub u32);

impl Entry {
    /// Bits that it consumes.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0 & 63
    }

    /// Literals that it gives: 0–3.
    #[inline(always)]
    pub fn literals(self) -> usize {
        (self.0 >> 6 & 3) as usize
    }

    /// The base and the extra bits of a length or distance that starts `bits`.
    #[inline(always)]
    pub fn value(self, bits: u64) -> usize {
        let extra = self.0 >> 8 & 15;
        let value = bits >> (self.bits() - extra) & ((1 << extra) - 1);
        (self.0 >> 16) as usize + value as usize
    }

    fn literal(symbol: u16, length: u32) -> Entry {
        Entry(u32::from(symbol) << 8 | 1 << 6 | length)
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
            Some(&base) => Entry(u32::from(base) << 16 | extra << 8 | (length + extra)),
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
        Entry(base << 16 | extra << 8 | (length + extra))
    }
}

/// Fills the table of literals and lengths; where several literals fit the index, they share one
/// entry. What `scratch` holds does not matter.
pub fn fill_litlen(
    code: &Code<288>,
    table: &mut [u32; 1 << LITLEN_BITS],
    scratch: &mut [u32; 1 << LITLEN_BITS],
) {
    let (singles, rests) = scratch.split_at_mut(1 << (LITLEN_BITS - 1));
    code.fill(singles, |symbol, length| match symbol {
        0..256 => Entry::literal(symbol, length).0,
        _ => 0,
    });
    table.fill(0);
    for length in 1..=LITLEN_BITS {
        if code.counts[length as usize] == 0 {
            continue;
        }
        // What the bits after a literal's word add to its entry is the same for all such words.
        let left = LITLEN_BITS - length;
        let rests = &mut rests[..1 << left];
        for (i, rest) in rests.iter_mut().enumerate() {
            let first = Entry(singles[i]);
            let second = Entry(singles[i >> first.bits()]);
            let two = first.bits() + second.bits();
            let one_fits = (first.literals() == 1) & (first.bits() <= left);
            let two_fit = one_fits & (second.literals() == 1) & (two <= left);
            let one = (first.0 & 0xFF00) << 8 | 1 << 6 | first.bits();
            let both = (first.0 & 0xFF00) << 8 | (second.0 & 0xFF00) << 16 | 2 << 6 | two;
            let best = if two_fit { both } else { one };
            *rest = if one_fits { best } else { 0 };
        }
        for (symbol, word) in code.words(length) {
            let slots = table[word..].iter_mut().step_by(1 << length);
            if symbol < 256 {
                let literal = Entry::literal(symbol, length).0;
                slots
                    .zip(&*rests)
                    .for_each(|(slot, rest)| *slot = literal + rest);
            } else {
                let entry = Entry::length(symbol, length).0;
                slots.for_each(|slot| *slot = entry);
            }
        }
    }
}
