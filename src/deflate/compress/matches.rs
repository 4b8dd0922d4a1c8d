//! LZ77 with hash chains: a match is taken where it saves bits against literals.

use super::bit_writer::BitWriter;
use super::block;
use super::token::{self, LONGEST, Token};
use crate::deflate::WINDOW;

/// Bytes that a block covers; its last match may reach past it.
pub const BLOCK: usize = 64 << 10;

/// Log2 of the number of chains. A chain has the places whose 4 bytes have the same hash.
const HASH_BITS: u32 = 15;

/// Places of a chain that are tried: with 16 smooth images get 2 % larger, with 32 the time grows by a
/// tenth.
const TRIES: usize = 24;

/// A match of this many bytes is taken without a search for a better one.
const ENOUGH: usize = 96;

/// Bits of a match without its extra bits: a guess, since the codes are not known yet.
const MATCH_BITS: u32 = 11;

/// Prices are in units of 1/16 bit.
const UNIT: u32 = 16;

/// The search for matches; its memory is kept from one segment to the next.
#[derive(Default)]
pub struct Matcher {
    /// The latest place + 1 of each hash; 0 for none.
    latest: Vec<u32>,
    /// How far back the place before has the same hash; 0 for none. By place modulo `WINDOW`.
    back: Vec<u16>,
    tokens: Vec<Token>,
    /// For each place of the block, the price of all bytes before it as literals.
    prices: Vec<u32>,
}

/// A match, and what it saves against literals.
#[derive(Clone, Copy, Default)]
struct Match {
    gain: u32,
    len: usize,
    distance: usize,
}

impl Matcher {
    /// Appends `bytes` in blocks with matches. A match waits for one byte, in case a better one starts
    /// there.
    pub fn compress(&mut self, bytes: &[u8], out: &mut BitWriter) {
        self.latest.clear();
        self.latest.resize(1 << HASH_BITS, 0);
        self.back.resize(WINDOW, 0);
        let mut start = 0;
        while start < bytes.len() {
            let end = bytes.len().min(start + BLOCK);
            self.price(bytes, start, end);
            let reached = self.parse(bytes, start, end);
            block::matched(&bytes[start..reached], &self.tokens, out);
            start = reached;
        }
    }

    /// Estimates each byte's price as a literal by its frequency in the block.
    fn price(&mut self, bytes: &[u8], start: usize, end: usize) {
        let mut counts = [0u32; 256];
        for &byte in &bytes[start..end] {
            counts[usize::from(byte)] += 1;
        }
        let total = log2((end - start) as u32);
        let price = counts.map(|count| (total - log2(count.max(1))).max(UNIT / 2));
        let reach = bytes.len().min(end + LONGEST);
        self.prices.clear();
        self.prices.push(0);
        let mut sum = 0;
        self.prices.extend(bytes[start..reach].iter().map(|&byte| {
            sum += price[usize::from(byte)];
            sum
        }));
    }

    /// Fills `tokens` with the bytes from `start` to at least `end`, and returns where they end.
    fn parse(&mut self, bytes: &[u8], start: usize, end: usize) -> usize {
        self.tokens.clear();
        let mut at = start;
        let mut waiting = Match::default();
        while at < end || waiting.gain > 0 {
            let here = if waiting.len >= ENOUGH {
                Match::default()
            } else {
                self.find(bytes, start, at, waiting.gain)
            };
            if waiting.gain > 0 && here.gain <= waiting.gain {
                // The match that waited starts one byte before.
                self.tokens
                    .push(Token::matched(waiting.len, waiting.distance));
                let after = at - 1 + waiting.len;
                let known = if waiting.len >= ENOUGH { at } else { at + 1 };
                for place in known..after {
                    self.remember(bytes, place);
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

    /// Puts place `at` at the head of its hash's chain.
    #[inline(always)]
    fn remember(&mut self, bytes: &[u8], at: usize) {
        let Some(four) = bytes[at..].first_chunk::<4>() else {
            self.back[at % WINDOW] = 0;
            return;
        };
        let hash = hash::<HASH_BITS>(u32::from_le_bytes(*four));
        let latest = std::mem::replace(&mut self.latest[hash], at as u32 + 1);
        let back = at + 1 - latest as usize;
        self.back[at % WINDOW] = if latest > 0 && back < WINDOW {
            back as u16
        } else {
            0
        };
    }

    /// The match at `at` that saves most, if it saves more than `least`. Remembers the place.
    fn find(&mut self, bytes: &[u8], start: usize, at: usize, least: u32) -> Match {
        let mut best = Match {
            gain: least,
            len: 3,
            distance: 0,
        };
        let most = LONGEST.min(bytes.len() - at);
        self.remember(bytes, at);
        let mut distance = 0;
        for _ in 0..TRIES {
            let back = usize::from(self.back[(at - distance) % WINDOW]);
            distance += back;
            if back == 0 || distance >= WINDOW || best.len >= most {
                break;
            }
            // Only a longer match can save more than a nearer one.
            if bytes[at - distance + best.len] != bytes[at + best.len] {
                continue;
            }
            let len = common(&bytes[at - distance..], &bytes[at..at + most]);
            if len > best.len {
                let literals = self.prices[at - start + len] - self.prices[at - start];
                let price = UNIT * (MATCH_BITS + token::match_extra_bits(len, distance));
                let gain = literals.saturating_sub(price);
                if gain > best.gain {
                    best = Match {
                        gain,
                        len,
                        distance,
                    };
                }
                if len >= ENOUGH {
                    break;
                }
            }
        }
        if best.distance == 0 {
            Match::default()
        } else {
            best
        }
    }
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

/// The logarithm to base 2 in units of 1/16, linear between powers of two.
fn log2(number: u32) -> u32 {
    let whole = number.max(1).ilog2();
    whole * UNIT + (((u64::from(number) * u64::from(UNIT)) >> whole) as u32 & (UNIT - 1))
}
