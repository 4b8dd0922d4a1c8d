//! The scale of "CUDA: performance aspects of typical tasks" (2011) with its three roundings, an
//! exact version, and the program's own kernel: in place, GB/s of bytes read plus written.

use super::case::{Case, Ceiling};
use super::context::{BenchContext, Host, Sizes};
use super::cpu::{cpu_passes, range};
use super::figure::{Figure, Time};
use super::pieces::{PIECE, Threads, pieces};
use super::table::Table;
use crate::gpu::driver;
use crate::gpu::launch::normalize::{Minmax, Scale};
use crate::gpu::launch::papers::normalize::{Change, Exact};
use crate::image::Samples;
use crate::ops::normalize::{Normalize, Range};
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;

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

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let bytes = 2 * sizes.bytes as u64;
    let mut cases = Vec::new();
    for threads in Threads::BOTH {
        let case = |id, name, topic, kernel, value: fn(u16) -> u16| {
            let work = move |context: &BenchContext| in_place(context, threads, kernel, value);
            let name = threads.name(name);
            Case::gpu(Table::Normalize, threads.id(id), name, topic, bytes, work).under(COPY)
        };
        cases.extend([
            case(
                "truncating",
                "truncated",
                "normalize-truncating",
                "truncating",
                |p| v(p) as i32 as u16,
            )
            .published(Figure::Image(26.0, bytes / 2), "GTX 460"),
            case("rounding", "round()", "normalize-round", "rounding", |p| {
                v(p).round() as i32 as u16
            })
            .published(Figure::Image(20.0, bytes / 2), "GTX 460"),
            case(
                "half-up",
                "+ 0.5f, truncated",
                "normalize-half",
                "half_up",
                |p| (v(p) + 0.5) as i32 as u16,
            )
            .published(Figure::Image(26.0, bytes / 2), "GTX 460"),
            case(
                "half-up-double",
                "+ 0.5 as a double, as written, truncated",
                "normalize-half",
                "half_up_double",
                |p| (f64::from(v(p)) + 0.5) as i32 as u16,
            )
            .published(Figure::Image(26.0, bytes / 2), "GTX 460"),
            case(
                "exact",
                "exact, an integer division each",
                "exact",
                "exact",
                |p| exact(p, 0, SPAN, D),
            ),
        ]);
    }
    cases.extend(production(sizes));
    cases
}

/// Times the kernel of this name; `exact` has parameters of its own.
fn in_place(
    context: &BenchContext,
    threads: Threads,
    kernel: &'static str,
    value: fn(u16) -> u16,
) -> Result<Time> {
    let values: Vec<u16> = context.host.noise.par_iter().map(|&p| value(p)).collect();
    let expected = context.gpu.words(&values)?;
    let data = context.changeable(context.input.len())?;
    let grid = threads.grid(context);
    let [pieces, piece] = pieces(context, PIECE);
    if kernel == "exact" {
        let kernel = context.kernel::<Exact>()?;
        context.check_and_time(data, &expected, |data| {
            let arguments = Exact {
                data: data.view_mut(),
                pieces,
                piece,
                min: 0,
                span: SPAN,
                d: D,
            };
            context.gpu.launch_grid(&kernel, grid, arguments)
        })
    } else {
        let kernel = context.kernel_named::<Change>(kernel)?;
        context.check_and_time(data, &expected, |data| {
            let arguments = Change {
                data: data.view_mut(),
                pieces,
                piece,
                sub: SUB,
                factor: FACTOR,
            };
            context.gpu.launch_grid(&kernel, grid, arguments)
        })
    }
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

/// Times the program's kernels: the scale for a known range, or both passes.
pub(super) fn own(
    context: &BenchContext,
    from: &driver::Buffer,
    len: usize,
    both: bool,
) -> Result<Time> {
    // A repeated input needs to be checked only once.
    let noise = &context.host.noise[..context.host.noise.len().min(len / 2)];
    let (min, max) = range(noise);
    let expected = context.kept(&format!("scaled {len}"), || {
        let value = |&p| LO + exact(p, min, u32::from(HI - LO), u32::from(max - min));
        let values: Vec<u16> = noise.par_iter().map(value).collect();
        values.into_iter().cycle().take(len / 2).collect()
    })?;
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
