//! The scale of "CUDA: performance aspects of typical tasks" (2011) with its three roundings, an
//! exact version, and the program's own kernel: in place, GB/s of bytes read plus written.

use super::case::{Case, Ceiling, Measured};
use super::context::{BenchContext, Host, Sizes};
use super::cpu::{cpu_passes, range};
use super::figure::{Figure, Time};
use super::pieces::{PIECE, Threads, pieces};
use super::table::Table;
use crate::gpu::driver::{self, Grid, ViewMut};
use crate::gpu::launch::normalize::{Minmax, Scale};
use crate::gpu::launch::papers::fused::Fused;
use crate::gpu::launch::papers::normalize::{Change, Exact};
use crate::image::Samples;
use crate::ops::normalize::{Normalize, Range};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::rc::Rc;

const COPY: Ceiling = Ceiling::Measured("ceilings/copy");
/// Close to the identity, so that data keep their variety when they are scaled in place many times.
const SUB: f32 = 0.25;
const FACTOR: f32 = 0.999_99;
/// Likewise for the exact version: 0..=65535 to 0..=65534.
const SPAN: u32 = 65534;
const D: u32 = 65535;

/// The paper's value before rounding.
fn v(p: u16) -> f32 {
    (f32::from(p) - SUB) * FACTOR
}

/// The exact definition, in integers.
fn exact(p: u16, min: u16, span: u32, d: u32) -> u16 {
    ((u32::from(p - min) * span + d / 2) / d) as u16
}

/// A way to round: id, name, topic, kernel, the sample for a value, and the published GB/s of an image.
struct Rounding {
    id: &'static str,
    name: &'static str,
    topic: &'static str,
    kernel: &'static str,
    round: fn(f32) -> u16,
    published: Option<f64>,
}

#[rustfmt::skip]
const ROUNDINGS: [Rounding; 6] = [
    Rounding { id: "truncating", name: "truncated", topic: "normalize-truncating", kernel: "truncating",
        round: |v| v as i32 as u16, published: Some(26.0) },
    Rounding { id: "rounding", name: "round()", topic: "normalize-round", kernel: "rounding",
        round: |v| v.round() as i32 as u16, published: Some(20.0) },
    Rounding { id: "half-up", name: "+ 0.5f, truncated", topic: "normalize-half", kernel: "half_up",
        round: |v| (v + 0.5) as i32 as u16, published: Some(26.0) },
    Rounding { id: "half-up-double", name: "+ 0.5 as a double, as written, truncated", topic: "normalize-half",
        kernel: "half_up_double", round: |v| (f64::from(v) + 0.5) as i32 as u16, published: Some(26.0) },
    Rounding { id: "nearest-even", name: "rintf()", topic: "rounding", kernel: "nearest_even",
        round: |v| v.round_ties_even() as i32 as u16, published: None },
    Rounding { id: "magic", name: "+ 1.5·2²³, the lower bits", topic: "rounding", kernel: "magic",
        round: |v| (v + 12_582_912.0).to_bits() as u16, published: None },
];

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let bytes = 2 * sizes.bytes as u64;
    let mut cases = Vec::new();
    for threads in Threads::BOTH {
        for rounding in &ROUNDINGS {
            let (id, name) = (threads.id(rounding.id), threads.name(rounding.name));
            let work = move |context: &BenchContext| rounded(context, threads, rounding);
            let case = Case::gpu(Table::Normalize, id, name, rounding.topic, bytes, work);
            cases.push(match rounding.published {
                Some(rate) => case.published(Figure::Image(rate, bytes / 2), "GTX 460"),
                None => case,
            });
        }
        let (id, name) = (threads.id("exact"), "exact, an integer division each");
        let work = move |context: &BenchContext| divided(context, threads);
        let name = threads.name(name);
        cases.push(Case::gpu(Table::Normalize, id, name, "exact", bytes, work));
    }
    let mut cases: Vec<Case> = cases.into_iter().map(|case| case.under(COPY)).collect();
    cases.extend(production(sizes));
    cases
}

/// Times a way to round, and counts the samples that it gets wrong.
fn rounded(context: &BenchContext, threads: Threads, rounding: &Rounding) -> Result<Measured> {
    let kernel = context.kernel_named::<Change>(rounding.kernel)?;
    let time = in_place(
        context,
        |p| (rounding.round)(v(p)),
        |data, pieces, piece| {
            let arguments = Change {
                data,
                pieces,
                piece,
                sub: SUB,
                factor: FACTOR,
            };
            let grid = threads.grid(context);
            context.gpu.launch_grid(&kernel, grid, arguments)
        },
    )?;
    // Hundreds of millions of samples, of which the memory checker needs none.
    let every = if context.host.sizes.runs > 1 { 7 } else { 6553 };
    Ok(Measured {
        time,
        remark: Some(wrong(rounding.round, every)),
    })
}

/// In how many ranges 0 to d the scale to 0–65535 gets samples wrong, and which part of all samples: for d = 1 and every
/// `every`-th after it.
fn wrong(round: fn(f32) -> u16, every: usize) -> String {
    let ranges: Vec<u16> = (1..=u16::MAX).step_by(every).collect();
    let each = ranges.par_iter().map(|&d| {
        let factor = 65535.0 / f32::from(d);
        let differs = |&p: &u16| round(f32::from(p) * factor) != exact(p, 0, 65535, d.into());
        (0..=d).filter(differs).count() as u64
    });
    let wrong: Vec<u64> = each.collect();
    let samples: u64 = ranges.iter().map(|&d| u64::from(d) + 1).sum();
    let share = 100.0 * wrong.iter().sum::<u64>() as f64 / samples as f64;
    format!(
        "wrong samples in {} of {} ranges, {share:.2} % of all",
        wrong.iter().filter(|&&count| count > 0).count(),
        ranges.len()
    )
}

/// Times the exact version.
fn divided(context: &BenchContext, threads: Threads) -> Result<Time> {
    let kernel = context.kernel::<Exact>()?;
    in_place(
        context,
        |p| exact(p, 0, SPAN, D),
        |data, pieces, piece| {
            let arguments = Exact {
                data,
                pieces,
                piece,
                min: 0,
                span: SPAN,
                d: D,
            };
            let grid = threads.grid(context);
            context.gpu.launch_grid(&kernel, grid, arguments)
        },
    )
}

/// Checks and times a launch that changes the main input in place: its data, the pieces and their length.
fn in_place(
    context: &BenchContext,
    value: impl Fn(u16) -> u16 + Sync,
    launch: impl Fn(ViewMut, u32, u32) -> Result<()>,
) -> Result<Time> {
    let values: Vec<u16> = context.host.noise.par_iter().map(|&p| value(p)).collect();
    let expected = context.gpu.words(&values)?;
    let data = context.changeable(context.input.len())?;
    let [pieces, piece] = pieces(context, PIECE);
    context.check_and_time(data, &expected, |data| {
        launch(data.view_mut(), pieces, piece)
    })
}

const LO: u16 = 100;
const HI: u16 = 65000;

fn production(sizes: Sizes) -> Vec<Case> {
    let bytes = 2 * sizes.bytes as u64;
    let mut cases = vec![
        Case::gpu(
            Table::Normalize,
            "production",
            "gpuimg: scale, exact",
            "production-scale",
            bytes,
            |context| own(context, &context.input, context.input.len(), false),
        )
        .under(COPY),
        Case::gpu(
            Table::Normalize,
            "production-whole",
            "gpuimg: normalize, both passes",
            "production-scale",
            bytes,
            |context| own(context, &context.input, context.input.len(), true),
        )
        .under(COPY),
    ];
    cases.push(
        Case::host(
            Table::Normalize,
            "cpu",
            "gpuimg on the CPU: normalize, both passes",
            "cpu",
            bytes,
            on_cpu,
        )
        .under(Ceiling::Measured("ceilings/host-copy")),
    );
    cases
}

/// The samples of the first `len` bytes of the main input, or all where it is shorter and repeated.
fn beginning<'c>(context: &'c BenchContext, len: usize) -> &'c [u16] {
    let noise = &context.host.noise;
    &noise[..noise.len().min(len / 2)]
}

/// What normalizing the first `len` bytes of the main input, repeated if it is shorter, gives.
fn scaled(context: &BenchContext, len: usize) -> Result<Rc<driver::Buffer>> {
    context.kept(&format!("scaled {len}"), || {
        let noise = beginning(context, len);
        let (min, max) = range(noise);
        let value = |&p| LO + exact(p, min, u32::from(HI - LO), u32::from(max - min));
        let values: Vec<u16> = noise.par_iter().map(value).collect();
        values.into_iter().cycle().take(len / 2).collect()
    })
}

/// Times the program's kernels: the scale for a known range, or both passes.
pub(super) fn own(
    context: &BenchContext,
    from: &driver::Buffer,
    len: usize,
    both: bool,
) -> Result<Time> {
    let expected = scaled(context, len)?;
    let (min, max) = range(beginning(context, len));
    let out = context.poisoned(len)?;
    let known = [u32::from(min), u32::from(u16::MAX - max)];
    let mut ranges = context.gpu.words(&known.repeat(4))?;
    let minmax = context.gpu.kernel::<Minmax>("u16_c1")?;
    let scale = context.gpu.kernel::<Scale>("u16_c1")?;
    let samples = len as u64 / 2;
    context.check_and_time(out, &expected, |out| {
        if both {
            context.gpu.fill(&mut ranges, 0xff)?;
            let grid = context.gpu.reduction_grid(len as u64);
            let arguments = Minmax {
                src: from.view(),
                samples,
                ranges: ranges.view_mut(),
            };
            context.gpu.launch(&minmax, grid, arguments)?;
        }
        let arguments = Scale {
            src: Some(from.view()),
            dst: out.view_mut(),
            samples,
            ranges: ranges.view(),
            per_channel: 0,
            lo: LO.into(),
            hi: HI.into(),
        };
        let grid = len.div_ceil(4096) as u32;
        context.gpu.launch(&scale, grid, arguments)
    })
}

/// Times both passes in one cooperative launch, as the program does not yet do.
pub(super) fn fused(context: &BenchContext, from: &driver::Buffer, len: usize) -> Result<Time> {
    let expected = scaled(context, len)?;
    let out = context.poisoned(len)?;
    let kernel = context.kernel::<Fused>()?;
    let mut state = context
        .gpu
        .words(&[0, u32::MAX, u32::MAX, u32::MAX, u32::MAX])?;
    // As many blocks as the GPU can hold at once, and at least 16 KiB for each.
    let grid = Grid::new(context.gpu.reduction_grid(len as u64), 256);
    context.check_and_time(out, &expected, |out| {
        let arguments = Fused {
            src: from.view(),
            dst: out.view_mut(),
            vectors: len as u64 / 16,
            state: state.view_mut(),
            lo: LO.into(),
            hi: HI.into(),
        };
        // SAFETY: the launch is cooperative, and the state is that of the earlier launches of this grid.
        unsafe { context.gpu.launch_cooperative(&kernel, grid, arguments) }
    })
}

fn on_cpu(host: &Host) -> Result<Time> {
    let op = Normalize {
        to: Some(Range::from_integers(LO.into(), HI.into())),
        ..Default::default()
    };
    let (time, image) = cpu_passes(host, &op)?;
    let image = image.context("no image")?;
    let Samples::U16(samples) = image.samples() else {
        bail!("another depth");
    };
    let (min, max) = range(&host.noise);
    let right = samples
        .par_iter()
        .zip(&host.noise[..])
        .all(|(&found, &p)| found == LO + exact(p, min, u32::from(HI - LO), u32::from(max - min)));
    ensure!(right, "other samples");
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second figure is that of an independent reading of the text; the first was counted by another program.
    #[test]
    fn wrong_samples_are_counted() {
        let truncated = wrong(|v| v as i32 as u16, 7);
        let text = "wrong samples in 9357 of 9363 ranges, 49.86 % of all";
        assert_eq!(truncated, text);
        let as_written = wrong(|v| (f64::from(v) + 0.5) as i32 as u16, 7);
        let text = "wrong samples in 8980 of 9363 ranges, 0.13 % of all";
        assert_eq!(as_written, text);
    }
}
