//! The kernels of `project` and `calibrate`, for images of 16 bits that are in device memory already, each
//! beside a copy of as many bytes.

use super::{ceilings, gpu, large};
use crate::bench::case::Case;
use crate::bench::context::{BenchContext, Sizes};
use crate::bench::figure::Time;
use crate::gpu::driver;
use crate::gpu::launch::calibrate::Calibrate;
use crate::gpu::launch::project::{Add, Median, Raise};
use crate::ops::calibrate;
use anyhow::Result;
use rayon::prelude::*;

/// Images of a median.
const IMAGES: usize = 9;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    for (pixels, name) in [(4 << 20, "2048², 4 Mpx"), (64 << 20, "64 Mpx")] {
        let len = sizes.scaled(2 * pixels);
        let id = |what| format!("{what}-{}k", pixels >> 10);
        let name = |what| format!("{what}, {name}");
        // Half of what is moved is the size of the copy that moves as much.
        let under = |passes: usize| ceilings(passes * 2 * pixels / 2).0;
        cases.extend([
            gpu(
                id("project-add"),
                name("project: sum"),
                5 * len,
                move |context| {
                    let from = large(context, sizes)?;
                    let kernel = context.gpu.kernel::<Add>("u16")?;
                    let sums = |&p: &u16| u32::from(p);
                    fold(context, len, sums, |grid, known| {
                        let arguments = Add {
                            src: from.view(),
                            samples: len as u64 / 2,
                            sums: known.view_mut(),
                        };
                        context.gpu.launch(&kernel, grid, arguments)
                    })
                },
            )
            .under(under(5)),
            gpu(
                id("project-raise"),
                name("project: max"),
                3 * len,
                move |context| {
                    let from = large(context, sizes)?;
                    let kernel = context.gpu.kernel::<Raise>("u16")?;
                    fold(
                        context,
                        len,
                        |&p| p,
                        |grid, known| {
                            let arguments = Raise {
                                src: from.view(),
                                samples: len as u64 / 2,
                                greatest: known.view_mut(),
                            };
                            context.gpu.launch(&kernel, grid, arguments)
                        },
                    )
                },
            )
            .under(under(3)),
            gpu(
                id("calibrate"),
                name("calibrate, dark and flat"),
                4 * len,
                move |context| calibrate(context, len),
            )
            .under(under(4)),
        ]);
    }
    let len = sizes.scaled(8 << 20);
    let name = format!("project: median of {IMAGES}, each 4 Mpx");
    let median = gpu(
        "project-median-4096k",
        name,
        (IMAGES + 1) * len,
        move |context| median(context, len),
    );
    cases.push(median.under(ceilings((IMAGES + 1) * (8 << 20) / 2).0));
    cases
}

/// The host's noise, changed sample by sample, over and over, for `len` bytes of samples.
pub(super) fn repeated<T: bytemuck::Pod + Send + Sync>(
    context: &BenchContext,
    len: usize,
    change: impl Fn(&u16) -> T + Send + Sync,
) -> Vec<T> {
    let noise = &context.host.noise[..context.host.noise.len().min(len / 2)];
    let changed: Vec<T> = noise.par_iter().map(change).collect();
    changed.into_iter().cycle().take(len / 2).collect()
}

/// One image that joins an empty projection by `launch`; `known` is what is then known of a sample.
fn fold<T: bytemuck::Pod + Send + Sync>(
    context: &BenchContext,
    len: usize,
    known: impl Fn(&u16) -> T + Send + Sync,
    launch: impl Fn(u32, &mut driver::Buffer) -> Result<()>,
) -> Result<Time> {
    let expected = context.gpu.words(&repeated(context, len, known))?;
    let mut out = context.gpu.alloc(expected.len())?;
    context.gpu.fill(&mut out, 0)?;
    let grid = u32::try_from((len / 2).div_ceil(2048))?;
    context.check_and_time(out, &expected, |out| launch(grid, out))
}

/// The middle of as many images as `IMAGES`, each the noise from another place on.
fn median(context: &BenchContext, len: usize) -> Result<Time> {
    let noise = repeated(context, len, |&p| p);
    let place = |image: usize, i: usize| noise[(i + image) % noise.len()];
    let images = (0..IMAGES).flat_map(|image| (0..noise.len()).map(move |i| (image, i)));
    let images: Vec<u16> = images.map(|(image, i)| place(image, i)).collect();
    let middle = |i: usize| {
        let mut column: [u16; IMAGES] = std::array::from_fn(|image| place(image, i));
        column.sort_unstable();
        column[IMAGES / 2]
    };
    let expected: Vec<u16> = (0..noise.len()).into_par_iter().map(middle).collect();
    let (from, expected) = (context.gpu.words(&images)?, context.gpu.words(&expected)?);
    let out = context.poisoned(expected.len())?;
    let kernel = context.gpu.kernel::<Median>("u16")?;
    let samples = noise.len() as u64;
    let grid = u32::try_from(samples.div_ceil(256))?;
    context.check_and_time(out, &expected, |out| {
        let arguments = Median {
            src: from.view(),
            samples,
            images: IMAGES as u32,
            dst: out.view_mut(),
        };
        context.gpu.launch(&kernel, grid, arguments)
    })
}

/// In place, with a dark frame and a flat field whose mean is 3/2: ⌊((p − d)·3 + q) / 2q⌋, at least 0.
fn calibrate(context: &BenchContext, len: usize) -> Result<Time> {
    let dark = |p: u16| p / 8;
    let flat = |p: u16| (p ^ 0x5555) | 1;
    let exact = |&p: &u16| {
        let (d, q) = (i64::from(dark(p)), i64::from(flat(p)));
        let out = ((i64::from(p) - d) * 3 + q).div_euclid(2 * q);
        out.min(i64::from(u16::MAX)) as u16
    };
    let image = context.gpu.words(&repeated(context, len, |&p| p))?;
    let expected = context.gpu.words(&repeated(context, len, exact))?;
    let dark = context.gpu.words(&repeated(context, len, |&p| dark(p)))?;
    let flat = context.gpu.words(&repeated(context, len, |&p| flat(p)))?;
    let factors = context.gpu.words(&[calibrate::factor(3, 2)])?;
    let kernel = context.gpu.kernel::<Calibrate>("u16_c1")?;
    let mut clamped = context.gpu.words(&[0u64])?;
    let samples = len as u64 / 2;
    let grid = u32::try_from(samples.div_ceil(2048))?;
    context.check_and_time(image, &expected, |image| {
        let arguments = Calibrate {
            image: image.view_mut(),
            samples,
            dark: dark.view(),
            flat: flat.view(),
            factors: factors.view(),
            has_dark: 1,
            has_flat: 1,
            zero: 0,
            offset: 0,
            clamped: clamped.view_mut(),
        };
        context.gpu.launch(&kernel, grid, arguments)
    })
}
