//! How much is tried to make the strips of an image small. Noise becomes no smaller by a longer search
//! for repetitions, and other images do by half: a trial on a few of an image's bytes tells.

use super::pack::{Compression, Effort, Packer};
use anyhow::Result;

/// Bytes of a sample, unless the strip has fewer.
pub const SAMPLE: usize = 32 << 10;

/// Samples of an image, of a strip each.
const SAMPLES: usize = 4;

/// More effort is worth while if less makes the samples larger by more than this part of them.
const PART: usize = 20;

/// The least effort for the samples that makes them as small as much effort does, or nearly.
///
/// # Errors
/// Those of the compressor.
pub fn choose(compression: Compression, samples: &[Vec<u8>]) -> Result<Effort> {
    if matches!(compression, Compression::None | Compression::Lzw) {
        return Ok(Effort::Little);
    }
    let packed_size = |effort| -> Result<usize> {
        let mut packer = Packer::new(compression, effort)?;
        let packed = samples.iter().map(|sample| Ok(packer.pack(sample)?.len()));
        packed.sum()
    };
    let most = packed_size(Effort::Much)?;
    let most = most + most / PART;
    Ok(if packed_size(Effort::Little)? <= most {
        Effort::Little
    } else if packed_size(Effort::Some)? <= most {
        Effort::Some
    } else {
        Effort::Much
    })
}

/// The strips of an image that has `strips` of them in which samples are taken, evenly spread.
pub fn sampled_strips(strips: usize) -> impl Iterator<Item = usize> {
    let samples = SAMPLES.min(strips);
    (0..samples).map(move |i| (2 * i + 1) * strips / (2 * samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_strips_are_spread_evenly() {
        assert_eq!(Vec::from_iter(sampled_strips(1)), [0]);
        assert_eq!(Vec::from_iter(sampled_strips(3)), [0, 1, 2]);
        assert_eq!(Vec::from_iter(sampled_strips(32)), [4, 12, 20, 28]);
        assert_eq!(sampled_strips(0).count(), 0);
    }

    #[test]
    fn noise_takes_little_and_repetitions_take_more() {
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        let noise = Vec::from_iter((0..SAMPLE).map(|_| random(256) as u8));
        // Words from a dictionary, which only a search for repetitions finds.
        let words = noise.chunks(64).take(40).collect::<Vec<_>>();
        let text = Vec::from_iter(
            (0..SAMPLE / 64)
                .flat_map(|_| words[random(40) as usize])
                .copied(),
        );
        for compression in [Compression::Deflate, Compression::Zstd] {
            let chosen =
                |bytes: &Vec<u8>| choose(compression, std::slice::from_ref(bytes)).expect("packed");
            assert_eq!(chosen(&noise), Effort::Little, "{compression:?}");
            let packed = |effort| {
                Packer::new(compression, effort)
                    .and_then(|mut it| it.pack(&text))
                    .expect("packed")
                    .len()
            };
            let (little, much) = (packed(chosen(&text)), packed(Effort::Much));
            assert!(
                little <= much + much / PART && little < text.len() / 4,
                "{compression:?}"
            );
        }
    }
}
