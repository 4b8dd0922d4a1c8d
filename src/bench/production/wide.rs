//! The kernels of `normalize` and `sum` for 32-bit floating point, on images that are in device memory already: extremes and
//! sum beside a read of as many bytes, the scale to 16 bits beside a copy.

use super::{ceilings, gpu};
use crate::bench::case::Case;
use crate::bench::context::{BenchContext, Sizes};
use crate::bench::figure::Time;
use crate::gpu::driver;
use crate::gpu::launch;
use crate::image::{Depth, Samples, Shape, number};
use crate::ops::wide::scale::{self, Scale};
use crate::ops::wide::{on_gpu, sum};
use anyhow::{Result, bail, ensure};
use rayon::prelude::*;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    for (pixels, name) in [(4 << 20, "2048², 4 Mpx"), (64 << 20, "64 Mpx")] {
        let samples = sizes.scaled(pixels);
        let id = |what| format!("{what}-{}k", pixels >> 10);
        let name = |what| format!("{what}, {name}");
        cases.extend([
            gpu(
                id("wide-sum"),
                name("f32: sum"),
                4 * samples,
                move |context| summed(context, samples),
            )
            .under(ceilings(4 * pixels).1),
            gpu(
                id("wide-extremes"),
                name("f32: extremes"),
                4 * samples,
                move |context| extremes(context, samples),
            )
            .under(ceilings(4 * pixels).1),
            gpu(
                id("wide-scale"),
                name("f32 → u16: scale"),
                6 * samples,
                move |context| scaled(context, samples),
            )
            .under(ceilings(3 * pixels).0),
        ]);
    }
    cases
}

/// The host's noise as `count` keys of floating-point numbers from 0 to 3.
fn keys(context: &BenchContext, count: usize) -> Vec<u32> {
    let noise = &context.host.noise[..context.host.noise.len().min(count)];
    let key = |&p: &u16| number::key((f32::from(p) * 3.0 / 65535.0).to_bits());
    let keys: Vec<u32> = noise.par_iter().map(key).collect();
    keys.into_iter().cycle().take(count).collect()
}

fn extremes(context: &BenchContext, samples: usize) -> Result<Time> {
    let keys = keys(context, samples);
    let (least, most) = (keys.par_iter().min(), keys.par_iter().max());
    let (Some(least), Some(most)) = (least, most) else {
        bail!("an image without samples")
    };
    let range = u64::from(!most) << 32 | u64::from(*least);
    let nothing = u64::MAX;
    let expected = [range, nothing, nothing, nothing, nothing];
    let (from, expected) = (context.gpu.words(&keys)?, context.gpu.words(&expected)?);
    let out = context.gpu.words(&[nothing; 5])?;
    let kernel = context
        .gpu
        .kernel::<launch::wide_extremes::Extremes>("c1")?;
    let (start, end) = number::FINITE.into_inner();
    let grid = context.gpu.reduction_grid(4 * samples as u64);
    context.check_and_time(out, &expected, |out| {
        let arguments = launch::wide_extremes::Extremes {
            src: from.view(),
            samples: samples as u64,
            least: start,
            span: end - start,
            ranges: out.view_mut(),
        };
        context.gpu.launch(&kernel, grid, arguments)
    })
}

fn summed(context: &BenchContext, samples: usize) -> Result<Time> {
    let keys = keys(context, samples);
    let expected = sum::cpu(&keys, 1, Depth::Float, 0).sums;
    let from = context.gpu.words(&keys)?;
    let mut out = context.gpu.words(&[0u64; on_gpu::TOTALS + 1])?;
    let kernel = context.gpu.kernel::<launch::wide_sum::Sum>("c1")?;
    let grid = context.gpu.reduction_grid(4 * samples as u64);
    let launch = |out: &mut driver::Buffer| {
        let arguments = launch::wide_sum::Sum {
            src: from.view(),
            samples: samples as u64,
            is_real: 1,
            nan: 0,
            totals: out.view_mut(),
        };
        context.gpu.launch(&kernel, grid, arguments)
    };
    launch(&mut out)?;
    let found = on_gpu::totals(&context.gpu.read_words(&out)?, Depth::Float)?;
    ensure!(
        found.sums == expected && found.nonfinite == 0,
        "the sum is {found:?}, and not {expected:?}"
    );
    context.time(|| launch(&mut out))
}

fn scaled(context: &BenchContext, samples: usize) -> Result<Time> {
    let keys = keys(context, samples);
    let scale = Scale {
        min: number::key(0.5f32.to_bits()),
        max: number::key(2.25f32.to_bits()),
        lo: 0,
        hi: u16::MAX,
    };
    let shape = Shape {
        width: samples,
        height: 1,
        channels: 1,
        depth: Depth::Float,
    };
    let expected = scale::cpu(&keys, shape, Depth::Sixteen, &[scale], 0)?;
    let Samples::U16(expected) = expected.samples() else {
        bail!("16 bits were expected")
    };
    let (from, expected) = (context.gpu.words(&keys)?, context.gpu.words(expected)?);
    let constants = context.gpu.words(&[scale.packed(Depth::Float)])?;
    let out = context.poisoned(expected.len())?;
    let kernel = context
        .gpu
        .kernel::<launch::wide_stretch::Stretch>("u16_c1")?;
    let grid = u32::try_from(samples.div_ceil(4096))?;
    context.check_and_time(out, &expected, |out| {
        let arguments = launch::wide_stretch::Stretch {
            src: from.view(),
            dst: out.view_mut(),
            samples: samples as u64,
            scales: constants.view(),
            is_real: 1,
            nan: 0,
        };
        context.gpu.launch(&kernel, grid, arguments)
    })
}
