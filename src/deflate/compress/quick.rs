//! Matches found the quick way, for images that repeat themselves: noiseless ones.

use super::bit_writer::BitWriter;
use super::block;
use super::matches::{BLOCK, common, hash};
use super::token::{LONGEST, Token};
use crate::deflate::WINDOW;

/// Log2 of the number of places remembered, one for each hash of 4 bytes.
const HASH_BITS: u32 = 14;

/// Windows of a segment that are looked at, and bytes of each.
const WINDOWS: u32 = 8;
const SAMPLE: usize = 512;

/// The search for matches; its memory is kept from one segment to the next.
#[derive(Default)]
pub struct Quick {
    /// The latest place + 1 of each hash; 0 for none.
    latest: Vec<u32>,
    tokens: Vec<Token>,
    trials: [BitWriter; 2],
}

impl Quick {
    /// Whether matches make a segment smaller by a quarter at least, as far as samples tell.
    ///
    /// Not if it has fewer than 4096 bytes, or if windows promise nothing (`promised`), which is all
    /// that noisy images pay for the question. Else `compress` and `block::fast` are tried on as
    /// many bytes n as that says, or all, from byte (len − n) / 2 on, and their whole bytes compared.
    pub fn pays(&mut self, bytes: &[u8]) -> bool {
        let trial = promised(bytes).min(bytes.len());
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
        let pays = 4 * quick.len() < 3 * fast.len();
        self.trials = [quick, fast];
        pays
    }

    /// Appends `bytes`, a whole segment, in blocks by `block::matched`. A block ends with the token
    /// that reaches 64 KiB or more.
    ///
    /// From left to right: the place whose 4 bytes had the same hash last, if it is at most 32 KiB
    /// back and at least 4 bytes are equal, gives a match as long as they are, up to 258; else the
    /// byte is a literal. Then all places that were passed are remembered. The last three bytes of
    /// the segment have no hash: they are literals if no match reaches them.
    pub fn compress(&mut self, bytes: &[u8], out: &mut BitWriter) {
        self.latest.clear();
        self.latest.resize(1 << HASH_BITS, 0);
        let mut start = 0;
        while start < bytes.len() {
            let end = bytes.len().min(start + BLOCK);
            self.tokens.clear();
            let mut at = start;
            while at < end {
                let (token, len) = match self.find(bytes, at) {
                    Some((len, distance)) => (Token::matched(len, distance), len),
                    None => (Token::literal(bytes[at]), 1),
                };
                self.tokens.push(token);
                for passed in at + 1..at + len {
                    self.remember(bytes, passed);
                }
                at += len;
            }
            block::matched(&bytes[start..at], &self.tokens, out);
            start = at;
        }
    }

    /// Length and distance of the match at `at`; remembers the place.
    #[inline(always)]
    fn find(&mut self, bytes: &[u8], at: usize) -> Option<(usize, usize)> {
        let latest = self.remember(bytes, at)?;
        let distance = at - latest;
        if distance > WINDOW {
            return None;
        }
        let most = LONGEST.min(bytes.len() - at);
        let len = common(&bytes[latest..], &bytes[at..at + most]);
        (len >= 4).then_some((len, distance))
    }

    /// Remembers a place; returns the one that it takes the place of.
    #[inline(always)]
    fn remember(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let four = u32::from_le_bytes(*bytes[at..].first_chunk()?);
        let latest = &mut self.latest[hash::<HASH_BITS>(four)];
        std::mem::replace(latest, at as u32 + 1)
            .checked_sub(1)
            .map(|latest| latest as usize)
    }
}

/// The bytes that a trial is worth, by samples.
///
/// Window k = 1..=8 has 512 bytes from (k · 0x9e37_79b1 mod 2³²) · (len − 512) / 2³² on: not at
/// the same place of every row. Of all 509 strings of four bytes in each, one after the other, those
/// that are not zero are counted. None is worth it if they are fewer than 64, for `block::fast` has
/// runs of zeros as well. If they are fewer than a quarter of all, what repeats are rows, and a trial
/// is quick: 64 KiB. Else 16 KiB if half of them are repeated: are the last that came with the
/// same hash of 11 bits. In noiseless images 65 to 98 % are, in noisy ones 0 to 17.
fn promised(bytes: &[u8]) -> usize {
    if bytes.len() < WINDOWS as usize * SAMPLE {
        return 0;
    }
    const BITS: u32 = 11;
    let mut seen = [0; 1 << BITS];
    let (mut count, mut repeated, mut all) = (0, 0, 0);
    for k in 1..=WINDOWS {
        let place = u64::from(k.wrapping_mul(0x9e37_79b1)) * (bytes.len() - SAMPLE) as u64;
        let window = &bytes[(place >> 32) as usize..][..SAMPLE];
        for four in window.windows(4) {
            let four = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
            let last = std::mem::replace(&mut seen[hash::<BITS>(four)], four);
            all += 1;
            count += u32::from(four != 0);
            repeated += u32::from(four != 0 && four == last);
        }
    }
    match count {
        0..64 => 0,
        _ if 4 * count < all => 64 << 10,
        _ if 2 * repeated >= count => 16 << 10,
        _ => 0,
    }
}
