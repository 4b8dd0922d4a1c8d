//! Finding the start of a block in the middle of a deflate stream.

use super::BitReader;
use super::block_header::has_dynamic_header;

/// No header is longer than this, in bytes.
const HEADER: usize = 600;

/// The first bit from `from` on at which a block with codes of its own, not the last one, seems to
/// start: its header describes three complete codes. Other bits rarely do that, but it happens.
pub fn find_block(bytes: &[u8], from: usize) -> Option<usize> {
    let last = bytes.len().checked_sub(HEADER)? * 8;
    let mut bit = from;
    while bit < last {
        // A word shifted by up to 7 bits shows 57; a start needs 13 of them.
        let word = word_at(bytes, bit / 8) >> (bit % 8);
        let mut starts = starts(word) & ((1 << 44) - 1);
        while starts != 0 {
            let start = bit + starts.trailing_zeros() as usize;
            starts &= starts - 1;
            if is_start(bytes, start) {
                return (start < last).then_some(start);
            }
        }
        bit += 44;
    }
    None
}

/// The bits of `word` at which a header may start: not the last block, codes of its own (bits 0, 0,
/// 1), at most 286 literals and lengths and 30 distances (fields of 5 bits below 30).
fn starts(word: u64) -> u64 {
    let kind = !word & !(word >> 1) & (word >> 2);
    let most = |field: u64| field & (field >> 1) & (field >> 2) & (field >> 3);
    kind & !most(word >> 4) & !most(word >> 9)
}

/// How much of a code three lengths of 3 bits fill, in 128ths: 2^(7 − length) each, length 0 nothing.
const FILLED: [u16; 512] = {
    let mut table = [0; 512];
    let mut i = 0;
    while i < 512 {
        let mut place = 0;
        while place < 3 {
            table[i] += (0x80 >> (i >> (3 * place) & 7)) & 0x7F;
            place += 1;
        }
        i += 1;
    }
    table
};

fn is_start(bytes: &[u8], start: usize) -> bool {
    // The 4 to 19 lengths of the code of code lengths, 3 bits each, must make a complete code.
    let head = word_at(bytes, start / 8) >> (start % 8);
    let count = (head >> 13 & 15) as u32 + 4;
    let at = start + 17;
    let lengths = word_at(bytes, at / 8) >> (at % 8) & ((1 << (3 * count)) - 1);
    let filled = |place: u32| FILLED[(lengths >> (9 * place)) as usize % FILLED.len()];
    let total: u16 = (0..7).map(filled).sum();
    if total != 0x80 {
        return false;
    }
    let (byte, skip) = (start / 8, start as u32 % 8);
    let bits = BitReader {
        buffer: u64::from(bytes[byte]) >> skip,
        count: 8 - skip,
    };
    has_dynamic_header(bits, &bytes[byte + 1..])
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}
