//! Encoded images decode to the same pixels. The images are small enough for Miri.

use super::{Mode, decode, encode};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::{Source, Target};
use anyhow::{Result, ensure};

#[test]
fn small_images_come_back() -> Result<()> {
    let sizes: &[_] = if cfg!(miri) {
        &[(1, 1), (7, 3)]
    } else {
        &[(1, 1), (7, 3), (33, 17)]
    };
    for &(width, height) in sizes {
        for (channels, depth) in [
            (1, Depth::Sixteen),
            (2, Depth::Eight),
            (3, Depth::Sixteen),
            (4, Depth::Eight),
        ] {
            let shape = Shape {
                width,
                height,
                channels,
                depth,
            };
            let numbers =
                (0..shape.samples() as u32).map(|i| (i / 5).wrapping_mul(2_654_435_769) >> 12);
            let samples: Samples = match depth {
                Depth::Eight => numbers.map(|it| it as u8).collect::<Vec<u8>>().into(),
                _ => numbers.map(|it| it as u16).collect::<Vec<u16>>().into(),
            };
            let image = Image::new(shape, samples);
            for mode in [Mode::Fast, Mode::Small, Mode::Store] {
                // The search for matches has a test of its own (`deflate`), and needs tables of 128 KiB.
                if cfg!(miri) && mode == Mode::Small {
                    continue;
                }
                let target = Target::in_memory();
                encode(&image, mode, &target)?;
                let decoded = decode(&Source::memory(target.written()))?;
                ensure!(decoded == image, "{shape}, {mode:?}");
            }
        }
    }
    Ok(())
}
