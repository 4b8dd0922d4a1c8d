//! The scale of "CUDA: performance aspects of typical tasks" (2011) with its three roundings, an
//! exact version, and the program's own kernel: in place, GB/s of bytes read plus written.

use super::case::{Case, Ceiling, Measured};
use super::context::{BenchContext, Host, Sizes};
use super::cpu::{cpu_passes, range};
use super::figure::Figure;
use super::pieces::{PIECE, Threads, pieces};
use super::table::Table;
use crate::device::cuda::{self, Arg};
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
        let case = |id, name, topic, kernel, args: &[Arg<'static>], value: fn(u16) -> u16| {
            let args = args.to_vec();
            let work =
                move |context: &BenchContext| in_place(context, threads, kernel, &args, value);
            let name = threads.name(name);
            Case::gpu(Table::Normalize, threads.id(id), name, topic, bytes, work).under(COPY)
        };
        let floats: &[Arg] = &[Arg::F32(SUB), Arg::F32(FACTOR)];
        let words: &[Arg] = &[Arg::U32(0), Arg::U32(SPAN), Arg::U32(D)];
        cases.extend([
            case(
                "truncating",
                "truncated",
                "normalize-truncating",
                "truncating",
                floats,
                |p| v(p) as i32 as u16,
            )
            .published(Figure::Image(26.0, bytes / 2), "GTX 460"),
            case(
                "rounding",
                "round()",
                "normalize-round",
                "rounding",
                floats,
                |p| v(p).round() as i32 as u16,
            )
            .published(Figure::Image(20.0, bytes / 2), "GTX 460"),
            case(
                "half-up",
                "+ 0.5f, truncated",
                "normalize-half",
                "half_up",
                floats,
                |p| (v(p) + 0.5) as i32 as u16,
            )
            .published(Figure::Image(26.0, bytes / 2), "GTX 460"),
            case(
                "half-up-double",
                "+ 0.5 as a double, as written, truncated",
                "normalize-half",
                "half_up_double",
                floats,
                |p| (f64::from(v(p)) + 0.5) as i32 as u16,
            )
            .published(Figure::Image(26.0, bytes / 2), "GTX 460"),
            case(
                "exact",
                "exact, an integer division each",
                "exact",
                "exact",
                words,
                |p| exact(p, 0, SPAN, D),
            ),
        ]);
    }
    cases.extend(production(sizes));
    cases
}

fn in_place(
    context: &BenchContext,
    threads: Threads,
    kernel: &'static str,
    constants: &[Arg<'static>],
    value: fn(u16) -> u16,
) -> Result<Measured> {
    let data = context.changeable(context.input.len())?;
    let kernel = context.kernel("papers/normalize", kernel)?;
    let mut args = vec![Arg::Buffer(&data)];
    args.extend(pieces(context, PIECE));
    args.extend(constants);
    let values: Vec<u16> = context.host.noise.par_iter().map(|&p| value(p)).collect();
    let expected = context.gpu.words(&values)?;
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    let launch = || unsafe {
        context
            .gpu
            .launch_grid(&kernel, threads.grid(context), &args)
    };
    context.check(&data, &expected, launch)?;
    Ok(context.time(launch)?.into())
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
    from: &cuda::Buffer,
    len: usize,
    both: bool,
) -> Result<Measured> {
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
    let ranges = context.gpu.words(&known.repeat(4))?;
    let (minmax, scale) = (
        context.gpu.kernel("normalize", "minmax", "u16_c1")?,
        context.gpu.kernel("normalize", "scale", "u16_c1")?,
    );
    let count = Arg::U64(len as u64 / 2);
    let first = [Arg::Buffer(from), count, Arg::Buffer(&ranges)];
    let second = [
        Arg::Buffer(from),
        Arg::Buffer(&out),
        count,
        Arg::Buffer(&ranges),
        Arg::U32(0),
        Arg::U32(LO.into()),
        Arg::U32(HI.into()),
    ];
    let launch = || {
        if both {
            context.gpu.fill(&ranges, 0xff)?;
            let grid = context.gpu.reduction_grid(len as u64);
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            unsafe { context.gpu.launch(&minmax, grid, &first) }?;
        }
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe {
            context
                .gpu
                .launch(&scale, len.div_ceil(4096) as u32, &second)
        }
    };
    context.check(&out, &expected, launch)?;
    Ok(context.time(launch)?.into())
}

fn on_cpu(host: &Host) -> Result<Measured> {
    let op = Normalize {
        to: Some(Range::of_whole(LO.into(), HI.into())),
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
    Ok(time.into())
}
