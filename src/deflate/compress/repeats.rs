//! Detects whether data contain matches at all, which is far cheaper than searching for them.

use super::matches::hash;
use crate::deflate::WINDOW;

/// Log2 of the sampling rate of strings, and of the number of positions that are remembered.
const ONE_IN: u32 = 4;
const POSITIONS: u32 = 13;

/// Bytes of a string: three samples of 16 bits.
const STRING: usize = 6;

/// Of the first number of bytes, the second number is inspected: repeats occur everywhere, or the search takes little
/// time.
const STRETCH: usize = 256 << 10;
const LOOKED_AT: usize = 64 << 10;

/// Whether at least 1 in 256 strings of six bytes repeats within 32 KiB.
///
/// A string is inspected if the 4 highest bits of the hash of its first four bytes are ones, at each of its positions, and
/// compared with the last one whose next 13 bits of the hash are equal. In noise of ten bits per sample 1 in 10 000
/// repeats, in dark frames and stars 1 in 50 to 10, in all other images more. Matches of two samples are not shorter than
/// their codes.
pub fn repeats(bytes: &[u8]) -> bool {
    let mut last = vec![0u32; 1 << POSITIONS];
    let (mut count, mut again) = (0u32, 0u32);
    let stretches = (0..bytes.len()).step_by(STRETCH);
    let positions = stretches.flat_map(|start| start..bytes.len().min(start + LOOKED_AT));
    for at in positions {
        let Some(string) = bytes[at..].first_chunk::<STRING>() else {
            break;
        };
        let four = u32::from_le_bytes([string[0], string[1], string[2], string[3]]);
        let hash = hash::<32>(four) as u32;
        if hash < !0 << (32 - ONE_IN) {
            continue;
        }
        let position = (hash >> (32 - ONE_IN - POSITIONS)) as usize % (1 << POSITIONS);
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
