//! The header of a deflate block with codes of its own (RFC 1951, section 3.2.7), and the tables that
//! decode these codes.

use super::BitReader;
use super::codes::{Code, DIST_BITS, Entry, Fault, LITLEN_BITS, Rest, fill_litlen};

/// The order in which a header gives the lengths of the code length code.
const ORDER: [u8; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// The two codes of a block, and the tables that decode most of their words in one look-up.
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
    /// Sets the codes to those with these word lengths, one byte per symbol.
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

/// Whether `bits` and then `input` start with the whole header of a block that is not the last and has
/// complete codes of its own.
pub fn has_dynamic_header(mut bits: BitReader, mut input: &[u8]) -> bool {
    bits.refill_slowly(&mut input);
    if bits.count < 3 || bits.read_bits(3) != 0b100 {
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

/// Reads a header's code lengths, after the three bits of the block's type, to the start of `lengths`.
/// Returns how many there are of literals and lengths, and how many of distances; `None` if the input
/// ends before the header does.
pub fn read_lengths(
    bits: &mut BitReader,
    input: &mut &[u8],
    lengths: &mut [u8; 320],
) -> Result<Option<(usize, usize)>, Fault> {
    if bits.count < 14 {
        return Ok(None);
    }
    let litlens = bits.read_bits(5) + 257;
    let dists = bits.read_bits(5) + 1;
    let count = bits.read_bits(4) + 4;
    if litlens > 286 || dists > 30 {
        return Err("a code with too many symbols");
    }
    let mut code_lengths = [0; 19];
    for &symbol in &ORDER[..count] {
        bits.top_up(input);
        if bits.count < 3 {
            return Ok(None);
        }
        code_lengths[usize::from(symbol)] = bits.read_bits(3) as u8;
    }
    let mut code = Code::<19>::default();
    code.set(&code_lengths)?;
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
        let count = base + bits.read_bits(extra);
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
