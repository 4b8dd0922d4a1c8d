//! The header of a deflate block with codes of its own (RFC 1951, section 3.2.7), as it is written.

use super::bit_writer::BitWriter;
use super::huffman::{self, LITLEN};
use super::token::DISTANCES;

/// A header: the code lengths of both alphabets, themselves coded.
pub struct DynamicHeader {
    /// Pairs of symbol and value of its extra bits, and how many there are.
    symbols: [(u8, u8); LITLEN + DISTANCES],
    used: usize,
    /// How many literal and length codes have their lengths in the header, and distance codes.
    litlen: usize,
    distances: usize,
    lengths: [u8; 19],
}

/// The order in which a header gives the lengths of the code length code.
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

impl DynamicHeader {
    /// Codes the lengths as zlib does. Each run of equal lengths, over both alphabets at once, is cut:
    /// zeros into pieces of up to 138 (symbol 18 for 11 and more, 17 for 3 and more), other lengths
    /// into one length and pieces of up to 6 (symbol 16 for 3 and more). Pieces shorter than 3 are
    /// written one by one.
    pub fn new(lengths: &[u8; LITLEN], distance_lengths: &[u8]) -> DynamicHeader {
        let used = |lengths: &[u8]| {
            lengths
                .iter()
                .rposition(|len| *len > 0)
                .map_or(1, |at| at + 1)
        };
        let (litlen, distances) = (used(lengths), used(distance_lengths));
        let mut both = [0; LITLEN + DISTANCES];
        both[..litlen].copy_from_slice(&lengths[..litlen]);
        both[litlen..litlen + distances].copy_from_slice(&distance_lengths[..distances]);
        let mut header = DynamicHeader {
            symbols: [(0, 0); LITLEN + DISTANCES],
            used: 0,
            litlen,
            distances,
            lengths: [0; 19],
        };
        for stretch in both[..litlen + distances].chunk_by(|a, b| a == b) {
            let (len, mut left) = (stretch[0], stretch.len());
            if len > 0 {
                header.push(len, 0);
                left -= 1;
            }
            while left > 0 {
                let piece = left.min(if len > 0 { 6 } else { 138 });
                match (len, piece) {
                    (_, 0..3) => (0..piece).for_each(|_| header.push(len, 0)),
                    (0, 3..11) => header.push(17, piece as u8 - 3),
                    (0, _) => header.push(18, piece as u8 - 11),
                    _ => header.push(16, piece as u8 - 3),
                }
                left -= piece;
            }
        }
        let mut weights = [0; 19];
        for (symbol, _) in header.symbols() {
            weights[usize::from(*symbol)] += 1;
        }
        huffman::lengths(&weights, 7, &mut header.lengths);
        header
    }

    fn push(&mut self, symbol: u8, extra: u8) {
        self.symbols[self.used] = (symbol, extra);
        self.used += 1;
    }

    fn symbols(&self) -> &[(u8, u8)] {
        &self.symbols[..self.used]
    }

    /// How many lengths of the code length code the header gives: at least 4.
    fn ordered(&self) -> usize {
        let unused = ORDER.iter().rev().take_while(|&&at| self.lengths[at] == 0);
        19 - unused.count().min(15)
    }

    fn extra(symbol: u8) -> u32 {
        match symbol {
            16 => 2,
            17 => 3,
            18 => 7,
            _ => 0,
        }
    }

    /// Bits that `put` appends.
    pub fn bits(&self) -> u64 {
        let symbols = self.symbols().iter().map(|&(symbol, _)| {
            u64::from(self.lengths[usize::from(symbol)]) + u64::from(DynamicHeader::extra(symbol))
        });
        17 + 3 * self.ordered() as u64 + symbols.sum::<u64>()
    }

    /// Appends the header, with the three bits of the block's type before it.
    pub fn put(&self, out: &mut BitWriter) {
        let ordered = self.ordered();
        // Not the last block, dynamic codes.
        out.put(0b100, 3);
        out.put(self.litlen as u64 - 257, 5);
        out.put(self.distances as u64 - 1, 5);
        out.put(ordered as u64 - 4, 4);
        for at in &ORDER[..ordered] {
            out.put(self.lengths[*at].into(), 3);
        }
        let mut codes = [0; 19];
        huffman::codes(&self.lengths, &mut codes);
        for &(symbol, extra) in self.symbols() {
            let at = usize::from(symbol);
            out.put(codes[at].into(), self.lengths[at].into());
            out.put(extra.into(), DynamicHeader::extra(symbol));
        }
    }
}
