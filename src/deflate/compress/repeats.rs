//! Detects whether data contain matches at all, which is far cheaper than searching for them.

use super::matches::hash;
use crate::deflate::WINDOW;

/// One string in 2^4 is inspected.
const SAMPLING_BITS: u32 = 4;

/// 2^13 positions are remembered.
const POSITION_BITS: u32 = 13;

/// Bytes of a string: three samples of 16 bits.
const STRING: usize = 6;

/// In every 256 KiB, the first 64 KiB are inspected. That is enough: repeats occur everywhere, or the search for matches
/// takes little time.
const PERIOD: usize = 256 << 10;
const INSPECTED: usize = 64 << 10;

/// Whether at least 1 in 256 strings of six bytes repeats within 32 KiB.
///
/// A string is inspected if the 4 highest bits of the hash of its first four bytes are ones, at each of its positions, and
/// compared with the last one whose next 13 bits of the hash are equal. In noise of ten bits per sample 1 in 10 000
/// repeats, in dark frames and stars 1 in 50 to 10, in all other images more. Matches of two samples are not shorter than
/// their codes.
pub fn repeats(bytes: &[u8]) -> bool {
    let mut last = vec![0u32; 1 << POSITION_BITS];
    let (mut count, mut again) = (0u32, 0u32);
    let starts = (0..bytes.len()).step_by(PERIOD);
    let positions = starts.flat_map(|start| start..bytes.len().min(start + INSPECTED));
    for at in positions {
        let Some(string) = bytes[at..].first_chunk::<STRING>() else {
            break;
        };
        let four = u32::from_le_bytes([string[0], string[1], string[2], string[3]]);
        let hash = hash::<32>(four) as u32;
        if hash < !0 << (32 - SAMPLING_BITS) {
            continue;
        }
        let position =
            (hash >> (32 - SAMPLING_BITS - POSITION_BITS)) as usize % (1 << POSITION_BITS);
        let before = std::mem::replace(&mut last[position], at as u32 + 1).checked_sub(1);
        count += 1;
        again += u32::from(before.is_some_and(|before| {
            at - before as usize <= WINDOW && bytes[before as usize..][..STRING] == string[..]
        }));
    }
    count == 0 || 256 * again >= count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of ten bits per sample has no matches; noise of five bits, repeated rows and zeros have.
    #[test]
    fn noise_of_many_bits_has_none() {
        let noise = |bits: u32, period: usize| -> Vec<u8> {
            let sample = |i: usize| {
                let mixed = ((i % period) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - bits)
            };
            (0..100_000)
                .flat_map(|i| (sample(i) as u16).to_be_bytes())
                .collect()
        };
        assert!(!repeats(&noise(10, usize::MAX)));
        assert!(repeats(&noise(5, usize::MAX)));
        assert!(repeats(&noise(10, 16_000)));
        assert!(!repeats(&noise(10, 17_000)), "past the window");
        assert!(repeats(&[0; 1000]));
    }
}
