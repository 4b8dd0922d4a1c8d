//! LZ77 with hash chains: a match is taken where it saves bits against literals, at the prices that
//! the codes of the block before had.

use super::bit_writer::BitWriter;
use super::block;
use super::prices::Prices;
use super::token::{LONGEST, Token};
use crate::deflate::WINDOW;

/// Bytes that a block covers; its last match may reach past it. Few where Miri runs, or thousands of
/// schedules, as in `inflate::part`.
pub const BLOCK: usize = match cfg!(any(miri, all(test, feature = "schedules"))) {
    true => 3 << 10,
    false => 64 << 10,
};

/// Log2 of the number of chains. A chain has the places whose 4 bytes have the same hash.
const HASH_BITS: u32 = 15;

/// Places of a chain that are tried: with 16 smooth images get 2 % larger, with 32 the time grows by a
/// tenth.
const TRIES: usize = 24;

/// Bytes that are parsed twice, the first time to learn prices.
const LEARNT: usize = match BLOCK {
    ..16384 => BLOCK,
    _ => 16 << 10,
};

/// Bytes of the shortest match that is found: those of a hash.
const SHORTEST_FOUND: usize = 4;

/// A match of this many bytes is taken without a search for a better one.
const ENOUGH: usize = 96;

/// The search for matches; its memory is kept from one segment to the next.
#[derive(Default)]
pub struct Matcher {
    /// The latest place + 1 of each hash; 0 for none.
    latest: Vec<u32>,
    /// How far back the place before has the same hash; 0 for none. By place modulo `WINDOW`.
    back: Vec<u16>,
    tokens: Vec<Token>,
    known: Prices,
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
    ///
    /// Prices are a guess (`Prices::guess`) for a first parse of up to 16 KiB, which is discarded, and
    /// then those of the parse before (`Prices::of`).
    pub fn compress(&mut self, bytes: &[u8], out: &mut BitWriter) {
        self.back.resize(WINDOW, 0);
        let learnt = bytes.len().min(LEARNT);
        self.known = Prices::guess(&bytes[..learnt]);
        self.forget();
        self.price(bytes, 0, learnt);
        self.parse(bytes, 0, learnt);
        self.forget();
        let mut start = 0;
        while start < bytes.len() {
            let end = bytes.len().min(start + BLOCK);
            self.known = Prices::of(&self.tokens);
            self.price(bytes, start, end);
            let reached = self.parse(bytes, start, end);
            block::matched(&bytes[start..reached], &self.tokens, out);
            start = reached;
        }
    }

    /// Forgets all places.
    fn forget(&mut self) {
        self.latest.clear();
        self.latest.resize(1 << HASH_BITS, 0);
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
    #[inline(always)]
    fn find(&mut self, bytes: &[u8], start: usize, at: usize, least: u32) -> Match {
        let mut best = Match {
            gain: least,
            len: SHORTEST_FOUND - 1,
            distance: 0,
        };
        self.remember(bytes, at);
        let ahead = &bytes[at..bytes.len().min(at + LONGEST)];
        if ahead.len() < SHORTEST_FOUND {
            return Match::default();
        }
        // The four bytes with which a match longer than the best would end.
        let mut wanted = four(ahead, 0);
        let mut distance = 0;
        for _ in 0..TRIES {
            let back = usize::from(self.back[(at - distance) % WINDOW]);
            distance += back;
            if back == 0 || distance >= WINDOW {
                break;
            }
            // Only a longer match can save more than a nearer one.
            let place = at - distance;
            if four(bytes, place + best.len + 1 - SHORTEST_FOUND) != wanted {
                continue;
            }
            let len = common(&bytes[place..], ahead);
            if len > best.len {
                let literals = self.prices[at - start + len] - self.prices[at - start];
                let gain = literals.saturating_sub(self.known.matched(len, distance));
                if gain > best.gain {
                    best = Match {
                        gain,
                        len,
                        distance,
                    };
                    if len >= ENOUGH || len == ahead.len() {
                        break;
                    }
                    wanted = four(ahead, len + 1 - SHORTEST_FOUND);
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
