//! Matches from a hash table of pairs of positions, for bytes that repeat themselves: noiseless images.

use super::bit_writer::BitWriter;
use super::block;
use super::matches::{self, common, hash};
use super::token::{LONGEST, Token};
use crate::deflate::WINDOW;

/// Log2 of the number of hashes of 4 bytes. The last two positions of each are remembered.
const HASH_BITS: u32 = 14;

/// Bytes that a block covers, or a few more.
const BLOCK: usize = match matches::BLOCK {
    few @ ..65536 => few,
    _ => 128 << 10,
};

/// A match of this many bytes is used without a search for a better one.
const LONG_ENOUGH: usize = 16;

/// Of a match of more than `VERY_LONG` bytes, only the last `LAST` positions are remembered.
const VERY_LONG: usize = 64;
const LAST: usize = 32;

/// Windows that the match estimate inspects.
const WINDOWS: u32 = 8;

/// Bytes of a window.
const WINDOW_BYTES: usize = 512;

/// Bytes in the middle that are searched for strings that repeat at a distance.
const MIDDLE_BYTES: usize = 16 << 10;

/// The search for matches; its memory is reused for the next segment.
#[derive(Default)]
pub struct QuickMatcher {
    /// The last two positions + 1 of each hash, the later one first; 0 for none.
    latest: Vec<[u32; 2]>,
    tokens: Vec<Token>,
    trials: [BitWriter; 2],
}

/// A match: so many bytes are those at this distance before.
#[derive(Clone, Copy)]
struct Match {
    len: usize,
    distance: usize,
}

impl QuickMatcher {
    /// Whether matches reduce the size of `bytes` by at least an eighth in a trial.
    ///
    /// `match_estimate` returns the number of bytes n of the trial. With 0 the answer is no, so noisy images
    /// cost only the estimate. Otherwise `compress` and `block::fast_all` both compress n bytes,
    /// or all if there are fewer, from byte (len − n) / 2 on, and the whole bytes that they make are
    /// compared.
    pub fn pays(&mut self, bytes: &[u8]) -> bool {
        let trial = match_estimate(bytes).min(bytes.len());
        if trial == 0 {
            return false;
        }
        let middle = &bytes[(bytes.len() - trial) / 2..][..trial];
        let [mut quick, mut fast] = std::mem::take(&mut self.trials);
        for trial in [&mut quick, &mut fast] {
            trial.clear();
        }
        self.compress(middle, &mut quick);
        block::fast_all(middle, &mut fast);
        let pays = 8 * quick.len() < 7 * fast.len();
        self.trials = [quick, fast];
        pays
    }

    /// Appends `bytes` in blocks by `block::matched`. A block ends with the token with which it covers
    /// 128 KiB or more.
    ///
    /// From left to right: `find` looks for a match. One of fewer than 16 bytes waits: if there is a longer match at the next
    /// byte, the first byte is a literal, and the longer match is used. Without a match, the byte is a literal.
    /// All positions that were passed are remembered, but of a match of more than 64 bytes only the last 32.
    /// The last three bytes have no hash: they are literals if no match reaches them.
    pub fn compress(&mut self, bytes: &[u8], out: &mut BitWriter) {
        self.latest.clear();
        self.latest.resize(1 << HASH_BITS, [0; 2]);
        let mut start = 0;
        while start < bytes.len() {
            let end = bytes.len().min(start + BLOCK);
            self.tokens.clear();
            let mut at = start;
            while at < end {
                let Some(mut found) = self.find(bytes, at) else {
                    self.tokens.push(Token::literal(bytes[at]));
                    at += 1;
                    continue;
                };
                let mut remembered = at + 1;
                if found.len < LONG_ENOUGH {
                    remembered += 1;
                    if let Some(next) = self.find(bytes, at + 1)
                        && next.len > found.len
                    {
                        self.tokens.push(Token::literal(bytes[at]));
                        at += 1;
                        found = next;
                    }
                }
                self.tokens.push(Token::matched(found.len, found.distance));
                at += found.len;
                if found.len > VERY_LONG {
                    remembered = at - LAST;
                }
                for passed in remembered..at {
                    self.remember(bytes, passed);
                }
            }
            block::matched(&bytes[start..at], &self.tokens, out);
            start = at;
        }
    }

    /// The match at `at`, if there is one. Remembers the position.
    ///
    /// Of the two positions with the same hash, each at most 32 KiB back, the one from which more bytes are equal, up to 258, or the
    /// later one. At least 4 bytes must be equal. The earlier position is not checked if 16 are equal from the later one on.
    #[inline(always)]
    fn find(&mut self, bytes: &[u8], at: usize) -> Option<Match> {
        let positions = self.remember(bytes, at)?;
        let most = LONGEST.min(bytes.len() - at);
        let mut longest = None;
        let mut least = 4;
        for position in positions {
            let Some(position) = (position as usize).checked_sub(1) else {
                break;
            };
            let distance = at - position;
            if distance > WINDOW || least > LONG_ENOUGH {
                break;
            }
            let len = common(&bytes[position..], &bytes[at..at + most]);
            if len >= least {
                longest = Some(Match { len, distance });
                least = len + 1;
            }
        }
        longest
    }

    /// Remembers a position, and returns the last two with the same hash.
    #[inline(always)]
    fn remember(&mut self, bytes: &[u8], at: usize) -> Option<[u32; 2]> {
        let four = u32::from_le_bytes(*bytes[at..].first_chunk()?);
        let latest = &mut self.latest[hash::<HASH_BITS>(four)];
        let before = *latest;
        *latest = [at as u32 + 1, before[0]];
        Some(before)
    }
}

/// How many bytes a trial with matches should have, from a few samples; 0 if matches cannot pay.
///
/// 0 if there are fewer than 4096 bytes. Otherwise eight windows of 512 bytes are inspected: window k
/// from 1 to 8 begins at byte (k · 0x9e37_79b1 mod 2³²) · (len − 512) / 2³², which is not the same
/// position of every row. In each window, one after the other, all 509 strings of four bytes are taken.
/// n of them are not zero. If n is 0 the estimate is 0, since `block::fast_all` codes runs of zeros as
/// well. If n is below a quarter of all, it is 64 KiB: whole rows may repeat, and a trial is
/// quick. If at least half of the n strings repeat, or if strings `come_again`, it is 16 KiB; a string
/// repeats if it is the last one with its hash of 11 bits. In noiseless images 65 to 98 % do, in noisy
/// ones 0 to 17 %.
fn match_estimate(bytes: &[u8]) -> usize {
    if bytes.len() < WINDOWS as usize * WINDOW_BYTES {
        return 0;
    }
    const BITS: u32 = 11;
    let mut seen = [0; 1 << BITS];
    let (mut count, mut repeated, mut all) = (0, 0, 0);
    for k in 1..=WINDOWS {
        let position = u64::from(k.wrapping_mul(0x9e37_79b1)) * (bytes.len() - WINDOW_BYTES) as u64;
        let window = &bytes[(position >> 32) as usize..][..WINDOW_BYTES];
        for four in window.windows(4) {
            let four = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
            let last = std::mem::replace(&mut seen[hash::<BITS>(four)], four);
            all += 1;
            count += u32::from(four != 0);
            repeated += u32::from(four != 0 && four == last);
        }
    }
    match count {
        0 => 0,
        _ if 4 * count < all => 64 << 10,
        _ if 2 * repeated >= count || come_again(bytes) => 16 << 10,
        _ => 0,
    }
}

/// Whether bytes repeat others that are farther away than the windows of `match_estimate` are wide, as in an image
/// that is made of equal tiles.
///
/// Of the 16 KiB from byte (len − 16 KiB) / 2 on, the strings of eight bytes are compared whose first four have a hash
/// of ones in its 6 highest bits, which about one in 64 has, at the same position of every tile. Yes, if more than 512 are
/// such, or if at least 32 are and a quarter of them is equal to the last one whose next 11 bits of the hash are equal.
fn come_again(bytes: &[u8]) -> bool {
    const BITS: u32 = 11;
    let Some(start) = bytes.len().checked_sub(MIDDLE_BYTES).map(|rest| rest / 2) else {
        return false;
    };
    let mut seen = [0; 1 << BITS];
    let (mut count, mut equal) = (0, 0);
    for eight in bytes[start..start + MIDDLE_BYTES].windows(8) {
        let eight = u64::from_le_bytes(eight.try_into().expect("8 bytes"));
        let hash = hash::<32>(eight as u32) as u32;
        if hash >= 0x3f << 26 {
            let last = std::mem::replace(
                &mut seen[(hash >> (26 - BITS)) as usize % (1 << BITS)],
                eight,
            );
            count += 1;
            equal += u32::from(eight == last);
        }
    }
    count > 512 || count >= 32 && 4 * equal >= count
}
