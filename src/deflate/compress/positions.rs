//! The positions of strings, by hashes of their bytes.

use crate::deflate::WINDOW;

/// Log2 of the number of buckets, and positions in each: twice as many positions as a window has, so that few strings push
/// out others. With 32 positions in a bucket smooth images get 3 % smaller, and take a third more time.
const BUCKET_BITS: u32 = 12;
const POSITIONS: usize = 16;

/// The latest positions of the strings with the same bucket.
#[derive(Clone, Copy, Default)]
#[repr(align(64))] // In one cache line.
struct Bucket {
    /// For each position 8 bits of its string's hash, and the lowest 16 bits of the position.
    tags: [u8; POSITIONS],
    positions: [u16; POSITIONS],
    /// The index of the latest; the next has the one before it.
    latest: u8,
}

/// The positions of all strings in the window.
#[derive(Default)]
pub struct Positions {
    buckets: Vec<Bucket>,
}

/// The key of a string: the number of its bucket, and its tag.
#[derive(Clone, Copy)]
pub struct Key {
    bucket: usize,
    tag: u8,
}

impl Key {
    /// The key of the `STRING` (4 to 8) bytes at `at`; none for the last seven bytes.
    #[inline(always)]
    pub fn at<const STRING: u32>(bytes: &[u8], at: usize) -> Option<Key> {
        let eight = u64::from_le_bytes(*bytes[at..].first_chunk()?);
        let string = eight << (64 - 8 * STRING);
        // Fibonacci hashing: the highest bits depend on all others.
        let hash = string.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKET_BITS - 8);
        Some(Key {
            bucket: (hash >> 8) as usize,
            tag: hash as u8,
        })
    }
}

impl Positions {
    /// Forgets all positions.
    pub fn forget(&mut self) {
        self.buckets.clear();
        self.buckets.resize(1 << BUCKET_BITS, Bucket::default());
    }

    /// Adds the position `at` of a string. Positions come in ascending order.
    #[inline(always)]
    pub fn add(&mut self, key: Key, at: usize) {
        let bucket = &mut self.buckets[key.bucket];
        let next = usize::from(bucket.latest).wrapping_sub(1) % POSITIONS;
        bucket.tags[next] = key.tag;
        bucket.positions[next] = at as u16;
        bucket.latest = next as u8;
    }

    /// How far back from `at`, which is not yet added, strings stand that are likely to be the same: the nearest
    /// first, and none before the bytes' beginning or farther than a match reaches.
    #[inline(always)]
    pub fn distances(&self, key: Key, at: usize) -> impl Iterator<Item = usize> {
        let bucket = &self.buckets[key.bucket];
        let latest = usize::from(bucket.latest);
        let mut likely = equal(&bucket.tags, key.tag).rotate_right(latest as u32);
        let mut nearest = 1;
        std::iter::from_fn(move || {
            if likely == 0 {
                return None;
            }
            let age = likely.trailing_zeros() as usize;
            likely &= likely - 1;
            let position = bucket.positions[(latest + age) % POSITIONS];
            // For a position more than 2¹⁶ bytes back, or one that was never set, this is not the distance. That is
            // harmless, because the caller compares the bytes there.
            let distance = usize::from((at as u16).wrapping_sub(position));
            let reached = (nearest..=at.min(WINDOW)).contains(&distance);
            nearest = distance + 1;
            reached.then_some(distance)
        })
    }
}

/// A bit for each tag, the lowest for the first: whether it is equal to `tag`.
#[inline(always)]
fn equal(tags: &[u8; POSITIONS], tag: u8) -> u16 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let halves = tags.as_chunks::<8>().0.iter().map(|half| {
        let different = u64::from_le_bytes(*half) ^ (u64::from(tag) * 0x0101_0101_0101_0101);
        // The highest bit of each byte that is zero, at its lowest: adding 0x7f carries into it unless all others are 0.
        let zero = !(((different & LOW) + LOW) | different | LOW) >> 7;
        // Byte k times 2⁽⁵⁶⁻⁷ᵏ⁾ puts its bit at 56 + k, and no two products meet.
        (zero.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u16
    });
    halves.rev().fold(0, |mask, half| mask << 8 | half)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tag at every index, beside all tags that differ in one bit.
    #[test]
    fn equal_tags_are_found_among_others() {
        for tag in 0..=255u8 {
            for at in 0..POSITIONS {
                let mut tags: [u8; POSITIONS] = std::array::from_fn(|k| tag ^ 1 << (k % 8));
                assert_eq!(equal(&tags, tag), 0);
                tags[at] = tag;
                assert_eq!(equal(&tags, tag), 1 << at);
            }
            assert_eq!(equal(&[tag; POSITIONS], tag), !0);
        }
    }

    /// Positions are given back by distance, nearest first, the latest sixteen of a string, and none out of reach.
    #[test]
    fn the_latest_places_come_back_by_distance() {
        let bytes = vec![7u8; 200_000];
        let key = Key::at::<6>(&bytes, 0).expect("eight bytes");
        let mut positions = Positions::default();
        positions.forget();
        let at = 150_000;
        for back in [40_000, WINDOW + 1, WINDOW, 30_000, 500, 3, 2, 1] {
            positions.add(key, at - back);
        }
        let found: Vec<_> = positions.distances(key, at).collect();
        assert_eq!(found, [1, 2, 3, 500, 30_000, WINDOW]);
        for position in at..at + 100 {
            positions.add(key, position);
        }
        let found: Vec<_> = positions.distances(key, at + 100).collect();
        assert_eq!(found, (1..=POSITIONS).collect::<Vec<_>>());
        // A position of long ago seems near, but nothing is before the beginning.
        positions.forget();
        assert!(positions.distances(key, 0).next().is_none());
        assert!(Key::at::<6>(&bytes, bytes.len() - 7).is_none());
    }
}
