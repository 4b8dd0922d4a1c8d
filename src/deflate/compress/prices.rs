//! Estimated costs of literals and matches, before the codes of a block are known.

use super::token::{
    self, DISTANCES, LONGEST, SHORTEST, Token, distance_code, distance_extra_bits, extra_bits,
    length_code,
};

/// Prices are in units of 1/16 bit.
const UNIT: u32 = 16;

/// The least price of a symbol: half a bit.
const LEAST: u32 = UNIT / 2;

/// Prices of a byte, of a match's length with its extra bits, and of a distance's symbol with them.
pub struct Prices {
    pub literal: [u32; 256],
    len: [u32; LONGEST + 1],
    distance: [u32; DISTANCES],
}

impl Default for Prices {
    fn default() -> Prices {
        Prices {
            literal: [0; 256],
            len: [0; LONGEST + 1],
            distance: [0; DISTANCES],
        }
    }
}

impl Prices {
    /// A guess: literals by the frequencies of `bytes` and half a bit more, 3 bits for a length and 4
    /// for a distance.
    pub fn guess(bytes: &[u8]) -> Prices {
        let mut counts = [0u32; 256];
        for &byte in bytes {
            counts[usize::from(byte)] += 1;
        }
        let total = log2(bytes.len() as u32);
        let literal = counts.map(|count| (total - log2(count.max(1))).max(LEAST) + LEAST);
        Prices::with(literal, |_| 3 * UNIT, |_| 4 * UNIT)
    }

    /// The prices that fit how often each symbol occurs in `tokens`; one that does not occur costs a
    /// bit more than one that occurs once.
    pub fn from_tokens(tokens: &[Token]) -> Prices {
        let (mut literals, mut lengths) = ([0u32; 256], [0u32; token::LENGTHS]);
        let mut distances = [0u32; DISTANCES];
        for token in tokens {
            match token.split() {
                Err(byte) => literals[usize::from(byte)] += 1,
                Ok((len, distance)) => {
                    lengths[length_code(len).0 - 257] += 1;
                    distances[distance_code(distance).0] += 1;
                }
            }
        }
        let matches: u32 = distances.iter().sum();
        let price = |total: u32, count: u32| match count {
            0 => log2(total) + UNIT,
            _ => (log2(total) - log2(count)).max(LEAST),
        };
        let all = tokens.len() as u32;
        Prices::with(
            literals.map(|count| price(all, count)),
            |symbol| price(all, lengths[symbol - 257]),
            |symbol| price(matches, distances[symbol]),
        )
    }

    /// Prices from those of symbols without their extra bits.
    fn with(
        literal: [u32; 256],
        len: impl Fn(usize) -> u32,
        distance: impl Fn(usize) -> u32,
    ) -> Prices {
        Prices {
            literal,
            len: std::array::from_fn(|bytes| {
                let symbol = length_code(bytes.max(SHORTEST)).0;
                len(symbol) + UNIT * extra_bits(symbol)
            }),
            distance: std::array::from_fn(|symbol| {
                distance(symbol) + UNIT * distance_extra_bits(symbol)
            }),
        }
    }

    /// The price of a match.
    #[inline(always)]
    pub fn matched(&self, len: usize, distance: usize) -> u32 {
        self.len[len] + self.distance[distance_code(distance).0]
    }
}

/// The logarithm to base 2 in units of 1/16, linear between powers of two.
fn log2(number: u32) -> u32 {
    let number = number.max(1);
    let whole = number.ilog2();
    whole * UNIT + (((u64::from(number) * u64::from(UNIT)) >> whole) as u32 & (UNIT - 1))
}
