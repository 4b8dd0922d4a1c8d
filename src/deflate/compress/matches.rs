//! LZ77: a match is used where it saves bits compared with literals, at the prices of the codes of the
//! previous block.

use super::bit_writer::BitWriter;
use super::block;
use super::positions::{Key, Positions};
use super::prices::Prices;
use super::token::{LONGEST, Token};
use crate::deflate::WINDOW;
use std::ops::Range;

/// Bytes that a block covers at most; its last match may reach past it. Few where Miri runs, or thousands of
/// schedules, as in `inflate::part`.
pub const BLOCK: usize = if cfg!(any(miri, all(test, feature = "schedules"))) {
    3 << 10
} else {
    256 << 10
};

/// About the most tokens of a block: enough to make the header's 100 bytes small, even if a token stands for 100 bytes.
const TOKENS: usize = 32 << 10;

/// Bytes that are parsed twice, the first time to learn prices.
const LEARNING_BYTES: usize = match BLOCK {
    ..16384 => BLOCK,
    _ => 16 << 10,
};

/// A match of this many bytes is used without a search for a better one.
const LONG_ENOUGH: usize = 96;

/// In a match, strings repeat after every `distance` bytes, so only its last positions are remembered: those of the last
/// `distance` bytes, and this many before them.
const LAST: usize = 64;

/// Bytes of the shortest matches. Those of four bytes are seldom shorter than their bytes' codes, though they seem so when
/// they are chosen: without them images of 16 bits get 1 to 4 % smaller, and screenshots of 8 bits 5 % larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortest {
    Four,
    Six,
}

/// The search for matches; its memory is reused for the next segment.
#[derive(Default)]
pub struct Matcher {
    positions: Positions,
    tokens: Vec<Token>,
    known: Prices,
    /// For each position of the block, the price of all bytes before it as literals.
    prices: Vec<u32>,
}

/// A match, and its gain: the bits that it saves compared with literals.
#[derive(Clone, Copy, Default)]
struct Match {
    gain: u32,
    len: usize,
    distance: usize,
}

impl Matcher {
    /// Appends a part of `bytes` in blocks with matches, which may begin in the bytes before the part. A match waits for
    /// one byte, in case a better one starts there.
    ///
    /// Prices are a guess (`Prices::guess`) for a first parse of up to 16 KiB, which is discarded, and
    /// then those of the previous parse (`Prices::from_tokens`).
    pub fn compress(
        &mut self,
        bytes: &[u8],
        part: Range<usize>,
        shortest: Shortest,
        out: &mut BitWriter,
    ) {
        match shortest {
            Shortest::Four => self.compress_by::<4>(bytes, part, out),
            Shortest::Six => self.compress_by::<6>(bytes, part, out),
        }
    }

    /// As `compress`, with matches of at least `STRING` bytes.
    fn compress_by<const STRING: u32>(
        &mut self,
        bytes: &[u8],
        part: Range<usize>,
        out: &mut BitWriter,
    ) {
        let bytes = &bytes[..part.end];
        let mut start = part.start;
        let learnt = part.end.min(start + LEARNING_BYTES);
        self.known = Prices::guess(&bytes[start..learnt]);
        self.begin::<STRING>(bytes, start);
        self.price(bytes, start, learnt);
        self.parse::<STRING>(bytes, start, learnt);
        self.begin::<STRING>(bytes, start);
        while start < bytes.len() {
            let end = bytes.len().min(start + BLOCK);
            self.known = Prices::from_tokens(&self.tokens);
            self.price(bytes, start, end);
            let reached = self.parse::<STRING>(bytes, start, end);
            block::matched(&bytes[start..reached], &self.tokens, out);
            start = reached;
        }
    }

    /// Remembers only positions within reach before `start`.
    fn begin<const STRING: u32>(&mut self, bytes: &[u8], start: usize) {
        self.positions.forget();
        for position in start.saturating_sub(WINDOW)..start {
            self.remember::<STRING>(bytes, position);
        }
    }

    /// Adds up the prices of the bytes of a block as literals.
    fn price(&mut self, bytes: &[u8], start: usize, end: usize) {
        let reach = bytes.len().min(end + LONGEST);
        self.prices.clear();
        self.prices.push(0);
        let mut sum = 0;
        self.prices.extend(bytes[start..reach].iter().map(|&byte| {
            sum += self.known.literal[usize::from(byte)];
            sum
        }));
    }

    /// Fills `tokens` with the bytes from `start` to at least `end`, unless they are `TOKENS` before, and returns where
    /// they end.
    fn parse<const STRING: u32>(&mut self, bytes: &[u8], start: usize, end: usize) -> usize {
        self.tokens.clear();
        let mut at = start;
        let mut waiting = Match::default();
        while at < end && self.tokens.len() < TOKENS || waiting.gain > 0 {
            let here = if waiting.len >= LONG_ENOUGH {
                Match::default()
            } else {
                self.find::<STRING>(bytes, start, at, waiting.gain)
            };
            if waiting.gain > 0 && here.gain <= waiting.gain {
                // The match that waited starts one byte before.
                self.tokens
                    .push(Token::matched(waiting.len, waiting.distance));
                let after = at - 1 + waiting.len;
                let known = if waiting.len >= LONG_ENOUGH {
                    at
                } else {
                    at + 1
                };
                for position in known.max(after.saturating_sub(waiting.distance + LAST))..after {
                    self.remember::<STRING>(bytes, position);
                }
                at = after;
                waiting = Match::default();
                continue;
            }
            if waiting.gain > 0 {
                self.tokens.push(Token::literal(bytes[at - 1]));
            }
            waiting = here;
            if here.gain == 0 {
                self.tokens.push(Token::literal(bytes[at]));
            }
            at += 1;
        }
        at
    }

    /// Adds the position of the string at `at`.
    #[inline(always)]
    fn remember<const STRING: u32>(&mut self, bytes: &[u8], at: usize) {
        if let Some(key) = Key::at::<STRING>(bytes, at) {
            self.positions.add(key, at);
        }
    }

    /// The match at `at` that saves most, if it saves more than `least`. Remembers the position.
    #[inline(always)]
    fn find<const STRING: u32>(
        &mut self,
        bytes: &[u8],
        start: usize,
        at: usize,
        least: u32,
    ) -> Match {
        let Some(key) = Key::at::<STRING>(bytes, at) else {
            return Match::default();
        };
        let mut best = Match {
            gain: least,
            len: 0,
            distance: 0,
        };
        let ahead = &bytes[at..bytes.len().min(at + LONGEST)];
        let mut longest = STRING as usize - 1;
        for distance in self.positions.distances(key, at) {
            let position = at - distance;
            // Only a longer match can save more than a nearer one; most others differ in its last four bytes.
            if four(bytes, position + longest - 3) != four(ahead, longest - 3) {
                continue;
            }
            let len = common(&bytes[position..], ahead);
            if len > longest {
                longest = len;
                let literals = self.prices[at - start + len] - self.prices[at - start];
                let gain = literals.saturating_sub(self.known.matched(len, distance));
                if gain > best.gain {
                    best = Match {
                        gain,
                        len,
                        distance,
                    };
                }
                if len >= LONG_ENOUGH || len == ahead.len() {
                    break;
                }
            }
        }
        self.positions.add(key, at);
        if best.distance == 0 {
            Match::default()
        } else {
            best
        }
    }
}

/// Four bytes from `at` on, as a number.
#[inline(always)]
fn four(bytes: &[u8], at: usize) -> u32 {
    let four = bytes[at..].first_chunk();
    four.map_or(0, |&four| u32::from_le_bytes(four))
}

/// A hash of four bytes, below `2^BITS` (Fibonacci hashing).
#[inline(always)]
pub fn hash<const BITS: u32>(four: u32) -> usize {
    (four.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

/// The length of the longest common prefix of two strings, of which the second is not the longer.
#[inline(always)]
pub fn common(a: &[u8], b: &[u8]) -> usize {
    let a = &a[..b.len()];
    let (eights, _) = b.as_chunks::<8>();
    for (k, (x, y)) in a.as_chunks::<8>().0.iter().zip(eights).enumerate() {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return 8 * k + difference.trailing_zeros() as usize / 8;
        }
    }
    let from = eights.len() * 8;
    from + a[from..]
        .iter()
        .zip(&b[from..])
        .take_while(|(x, y)| x == y)
        .count()
}
