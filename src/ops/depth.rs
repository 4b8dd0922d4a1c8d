//! From 8 to 16 bits and back, on the CPU: done only when asked for, with `--depth`.

use crate::image::{Depth, Image, Samples, Shape};
use rayon::prelude::*;

/// Samples in a piece of parallel work.
const CHUNK: usize = 1 << 18;

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

/// 16 bits to 8: `floor(v·255/65535 + 1/2)`; or, where the values are `scaled` to 0..=255 already,
/// as they are.
pub fn narrow(image: Image, scaled: bool) -> Image {
    let shape = Shape {
        depth: Depth::Eight,
        ..image.shape()
    };
    match image.samples() {
        Samples::U8(_) => image,
        Samples::U16(words) if scaled => {
            Image::new(shape, Samples::from(mapped(words, |word| word as u8)))
        }
        Samples::U16(words) => {
            let rounded = |word: u16| ((u32::from(word) * 255 + 32767) / 65535) as u8;
            Image::new(shape, Samples::from(mapped(words, rounded)))
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
