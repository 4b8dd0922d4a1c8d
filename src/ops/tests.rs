//! Every operation gives the same result on the CPU as its definition, for images that are small enough for Miri.

use super::{Operation, Properties, Statistic, examples, naive};
use crate::engine::executor;
use crate::image::{Depth, Image, Samples, Shape};
use crate::timing::Timeline;
use anyhow::{Result, ensure};

const SIZES: &[(usize, usize)] = if cfg!(miri) {
    &[(3, 2)]
} else {
    &[(1, 1), (5, 1), (3, 2), (9, 9)]
};
const KINDS: &[(usize, Depth)] = &[(3, Depth::Eight), (1, Depth::Sixteen), (4, Depth::Sixteen)];

/// Histograms of 16 bits take an interpreter long.
fn is_slow(op: &dyn Operation) -> bool {
    let Properties {
        name, statistic, ..
    } = op.properties();
    name == "histogram" || matches!(statistic, Statistic::Percentiles(..))
}

fn image(width: usize, height: usize, channels: usize, depth: Depth) -> Image {
    let shape = Shape {
        width,
        height,
        channels,
        depth,
    };
    let numbers = (0..shape.samples() as u32).map(|i| (i + 1).wrapping_mul(2_654_435_769) >> 8);
    let samples: Samples = match depth {
        Depth::Eight => numbers.map(|it| it as u8).collect::<Vec<u8>>().into(),
        _ => numbers.map(|it| it as u16).collect::<Vec<u16>>().into(),
    };
    Image::new(shape, samples)
}

#[test]
fn small_images_give_what_the_definition_says() -> Result<()> {
    for op in examples() {
        for &(width, height) in SIZES {
            for &(channels, depth) in KINDS {
                if cfg!(miri) && depth == Depth::Sixteen && is_slow(&*op) {
                    continue;
                }
                let image = image(width, height, channels, depth);
                let expected = naive(&*op, &image)?;
                let kept = image.clone().shared();
                for (input, memory) in [(image.clone(), "its own"), (kept.clone(), "shared")] {
                    let found = executor::on_cpu(&*op, input, &mut Timeline::default())?;
                    ensure!(
                        found == expected,
                        "{} of {} in {memory} memory",
                        op.properties().name,
                        image.shape()
                    );
                }
                ensure!(kept == image, "shared memory was changed");
            }
        }
    }
    Ok(())
}
