//! From 8 to 16 bits and back, on the CPU: done only when asked for, with `--depth`.

use crate::image::{Depth, Image, Samples, Shape};
use rayon::prelude::*;

/// Samples in a piece of parallel work.
const CHUNK: usize = 3 << 16; // whole pixels of any kind

/// 8 bits to 16, exactly: 255 becomes 65535, so every value is multiplied by 257.
pub fn widen(image: Image) -> Image {
    let shape = Shape {
        depth: Depth::Sixteen,
        ..image.shape()
    };
    match image.samples() {
        Samples::U8(bytes) => Image::new(
            shape,
            Samples::from(mapped(bytes, |byte| u16::from(byte) * 257)),
        ),
        Samples::U16(_) => image,
    }
}

/// 16 bits to 8: `floor(v·255/65535 + 1/2)`; channels whose values were stretched from one of these
/// `ranges` (one for all colours, or one for each) are within 0..=255 already, and stay as they are,
/// so that nothing is rounded twice. A flat channel was not stretched, nor is alpha ever.
pub fn narrow(image: Image, ranges: &[(i32, i32)]) -> Image {
    let shape = Shape {
        depth: Depth::Eight,
        ..image.shape()
    };
    match image.samples() {
        Samples::U8(_) => image,
        Samples::U16(words) => {
            let range = |colour: usize| ranges.get(colour).or(ranges.first());
            let stretched: Vec<bool> = (0..shape.channels)
                .map(|c| c < shape.colours() && range(c).is_some_and(|(min, max)| min < max))
                .collect();
            let rounded = |word: u16| ((u32::from(word) * 255 + 32767) / 65535) as u8;
            let bytes = match (stretched.contains(&true), stretched.contains(&false)) {
                (true, false) => mapped(words, |word| word as u8),
                (false, _) => mapped(words, rounded),
                (true, true) => {
                    let mut bytes = mapped(words, rounded);
                    let chunks = bytes.par_chunks_mut(CHUNK).zip(words.par_chunks(CHUNK));
                    chunks.for_each(|(bytes, words)| {
                        let channels = stretched.iter().cycle();
                        for ((byte, &word), _) in (bytes.iter_mut().zip(words).zip(channels))
                            .filter(|(_, stretched)| **stretched)
                        {
                            *byte = word as u8;
                        }
                    });
                    bytes
                }
            };
            Image::new(shape, Samples::from(bytes))
        }
    }
}

fn mapped<A: Copy + Sync, B: Copy + Default + Send>(
    from: &[A],
    map: impl Fn(A) -> B + Sync,
) -> Vec<B> {
    let mut to = vec![B::default(); from.len()];
    to.par_chunks_mut(CHUNK)
        .zip(from.par_chunks(CHUNK))
        .for_each(|(to, from)| {
            for (to, &from) in to.iter_mut().zip(from) {
                *to = map(from);
            }
        });
    to
}
