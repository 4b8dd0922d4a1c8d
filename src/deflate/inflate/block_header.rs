//! What comes before the symbols of a deflate block (RFC 1951, section 3.2.7): bits, and the codes
//! that they describe.

use super::codes::{Code, DIST_BITS, Entry, Fault, LITLEN_BITS, Rest, fill_litlen};

/// The order of code lengths in a block's header.
const ORDER: [u8; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// Bits taken from the input but not yet decoded, the next one lowest. Above `count` there are
/// zeros, or bits that will come again.
#[derive(Clone, Copy, Default)]
pub struct Bits {
    pub buffer: u64,
    pub count: u32,
}

impl Bits {
    #[inline(always)]
    pub fn consume(&mut self, count: u32) {
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
    pub fn refill(&mut self, input: &mut &[u8]) {
        if let Some(bytes) = input.first_chunk() {
            self.buffer |= u64::from_le_bytes(*bytes).wrapping_shl(self.count);
            *input = &input[(!self.count & 63) as usize >> 3..];
            self.count = self.count & 7 | 56;
        }
    }

    /// Consumes an entry's bits, and leaves the count right in its low 6 bits: the shortest way
    /// from one entry to the next.
    #[inline(always)]
    pub fn pass(&mut self, entry: Entry) {
        self.buffer = self.buffer.wrapping_shr(entry.0);
        self.count = self.count.wrapping_sub(entry.0);
    }

    /// The next whole byte and the three after it, from here and then from `rest`: the Adler-32 that
    /// follows the last block.
    pub fn word<'a>(mut self, rest: &mut impl Iterator<Item = &'a u8>) -> Option<u32> {
        self.align();
        let mut word = 0;
        for _ in 0..4 {
            let byte = match self.count {
                0 => *rest.next()?,
                _ => self.take(8) as u8,
            };
            word = word << 8 | u32::from(byte);
        }
        Some(word)
    }

    /// Tops up as far as the input goes; at once, if it goes far enough.
    #[inline]
    pub fn top_up(&mut self, input: &mut &[u8]) {
        match input.len() {
            8.. => self.refill(input),
            _ => self.refill_slowly(input),
        }
    }

    /// Tops up as far as the input goes, byte by byte.
    pub fn refill_slowly(&mut self, input: &mut &[u8]) {
        self.buffer &= (1 << self.count) - 1;
        while let (0..56, Some((&byte, rest))) = (self.count, input.split_first()) {
            self.buffer |= u64::from(byte) << self.count;
            self.count += 8;
            *input = rest;
        }
    }
}

/// The codes of a block, and the tables that decode most of their words at once.
pub struct Tables {
    pub litlen_code: Code<288>,
    pub dist_code: Code<32>,
    pub litlen: Box<[u32; 1 << LITLEN_BITS]>,
    pub dist: Box<[u32; 1 << DIST_BITS]>,
    scratch: Vec<Rest>,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            litlen_code: Code::default(),
            dist_code: Code::default(),
            litlen: Box::new([0; 1 << LITLEN_BITS]),
            dist: Box::new([0; 1 << DIST_BITS]),
            scratch: Vec::new(),
        }
    }
}

impl Tables {
    /// Takes the codes of these word lengths.
    pub fn set(&mut self, litlen: &[u8], dist: &[u8]) -> Result<(), Fault> {
        if litlen[256] == 0 {
            return Err("a block without an end");
        }
        self.litlen_code.set(litlen)?;
        self.dist_code.set(dist)?;
        fill_litlen(&self.litlen_code, &mut self.litlen, &mut self.scratch);
        self.dist_code
            .fill(&mut self.dist[..], |symbol, length| match symbol {
                0..30 => Entry::distance(symbol, length).0,
                _ => 0,
            });
        Ok(())
    }
}

/// Whether these bits are the header of a dynamic block that is not the last, whole and with
/// complete codes.
pub fn has_dynamic_header(mut bits: Bits, mut input: &[u8]) -> bool {
    bits.refill_slowly(&mut input);
    if bits.count < 3 || bits.take(3) != 0b100 {
        return false;
    }
    let mut lengths = [0; 320];
    let Ok(Some((litlens, dists))) = read_lengths(&mut bits, &mut input, &mut lengths) else {
        return false;
    };
    let (litlen, dist) = lengths[..litlens + dists].split_at(litlens);
    litlen[256] > 0
        && Code::<288>::default().set(litlen).is_ok()
        && Code::<32>::default().set(dist).is_ok()
}

/// Reads the code lengths of a dynamic block (section 3.2.7); says how many of literals and lengths
/// and how many of distances, or nothing if the header is not all there.
pub fn read_lengths(
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
        bits.top_up(input);
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
        if bits.count < 14 {
            bits.top_up(input);
        }
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
