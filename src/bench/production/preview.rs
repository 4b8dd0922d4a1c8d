//! The kernels of a preview, `--fit` and `--depth 8`, for an image of 16 bits that is in device memory already: the
//! first beside a read of as many bytes, the second beside a copy.

use super::frames::repeated;
use super::{ceilings, gpu};
use crate::bench::case::Case;
use crate::bench::context::{BenchContext, Sizes};
use crate::bench::figure::Time;
use crate::gpu::launch;
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::depth;
use crate::ops::fit::{self, Fit};
use anyhow::{Result, bail};

/// How many times as wide as the result an image is that is made smaller.
const TIMES: usize = 8;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let len = sizes.scaled(128 << 20);
    vec![
        gpu(
            "fit-65536k",
            format!("fit: to {TIMES} times fewer columns and rows, 64 Mpx"),
            len,
            move |context| fitted(context, len / 2),
        )
        .under(ceilings(128 << 20).1),
        gpu(
            "narrow-65536k",
            "narrow: 16 to 8 bits, 64 Mpx",
            len / 2 * 3,
            move |context| narrowed(context, len / 2),
        )
        .under(ceilings(96 << 20).0),
    ]
}

/// The host's noise as an image of about as many samples, as wide as it is high.
fn image(context: &BenchContext, samples: usize) -> Image {
    let shape = Shape {
        width: samples.isqrt(),
        height: samples.isqrt(),
        channels: 1,
        depth: Depth::Sixteen,
    };
    let mut noise = repeated(context, 2 * samples, |&p| p);
    noise.truncate(shape.samples());
    Image::new(shape, Samples::from(noise))
}

fn fitted(context: &BenchContext, samples: usize) -> Result<Time> {
    let image = image(context, samples);
    let from = image.shape();
    let most = (from.width / TIMES).max(1);
    let Ok(fit) = most.to_string().parse::<Fit>() else {
        bail!("no number of pixels")
    };
    let to = fit.output(from);
    let source = context.gpu.words(image.samples().as_bytes())?;
    let expected = context.gpu.words(fit.cpu(image).samples().as_bytes())?;
    let out = context.poisoned(expected.len())?;
    let kernel = context.gpu.kernel::<launch::fit::Fit>("u16")?;
    let grid = fit::grid(from, to)?;
    context.check_and_time(out, &expected, |out| {
        let arguments = fit::arguments(source.view(), from, out.view_mut(), to);
        context.gpu.launch(&kernel, grid, arguments)
    })
}

fn narrowed(context: &BenchContext, samples: usize) -> Result<Time> {
    let image = image(context, samples);
    let count = image.shape().samples();
    let source = context.gpu.words(image.samples().as_bytes())?;
    let expected = depth::convert_to_eight(image, &[], u16::MAX)?;
    let expected = context.gpu.words(expected.samples().as_bytes())?;
    let out = context.poisoned(expected.len())?;
    let kernel = context.gpu.kernel::<launch::depth::Narrow>("")?;
    let grid = u32::try_from(count.div_ceil(2048))?;
    context.check_and_time(out, &expected, |out| {
        let arguments = launch::depth::Narrow {
            src: source.view(),
            samples: count as u64,
            dst: out.view_mut(),
            channels: 1,
            kept: 0,
        };
        context.gpu.launch(&kernel, grid, arguments)
    })
}
