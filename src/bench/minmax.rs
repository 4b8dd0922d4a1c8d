//! Minimum and maximum in one pass and nested conditionals, from "CUDA: performance aspects of
//! typical tasks" (2011), apart and together, and later methods: GB/s of bytes read.

use super::case::{Case, Ceiling};
use super::context::{BenchContext, Host, Sizes};
use super::cpu::{cpu_passes, image, range};
use super::figure::{Figure, Time};
use super::pieces::{PIECE, Threads, pieces};
use super::table::Table;
use crate::engine::executor;
use crate::gpu::driver::{self, Grid, ViewMut};
use crate::gpu::launch::normalize as launch;
use crate::gpu::launch::papers::minmax::Minmax;
use crate::ops::OpResult;
use crate::ops::exact::Exact;
use crate::ops::sum::Sum;
use crate::timing::Timeline;
use anyhow::{Result, bail, ensure};
use rayon::prelude::*;

const GPU: &str = "GTX 460";
const READ: Ceiling = Ceiling::Measured("ceilings/read");

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    for threads in Threads::BOTH {
        cases.extend(KERNELS.iter().map(|kernel| row(sizes, threads, kernel)));
        cases.push(apart(sizes, threads));
    }
    cases.extend([false, true].map(|apart| small(sizes, apart)));
    let bytes = sizes.bytes as u64;
    cases.push(
        Case::gpu(
            Table::Minmax,
            "production",
            "gpuimg: packed pairs",
            "production-minmax",
            bytes,
            |context| own(context, &context.input, context.input.len()),
        )
        .under(READ),
    );
    cases.push(
        Case::host(
            Table::Minmax,
            "cpu",
            "gpuimg on the CPU: sum, minimum and maximum",
            "cpu",
            bytes,
            on_cpu,
        )
        .under(Ceiling::Measured("ceilings/host-read")),
    );
    cases
}

/// The id, kernel, name, topic and depth of conditionals of a row.
type Kernel = (&'static str, &'static str, &'static str, &'static str, u16);

#[rustfmt::skip]
const KERNELS: [Kernel; 9] = [
    ("serial", "serial", "the paper's: in shared memory, serial tail", "minmax", 0),
    ("nested-1", "nested_1", "the paper's, 1 if before it", "nested", 1),
    ("nested-2", "nested_2", "the paper's, 2 nested ifs", "nested", 2),
    ("nested-3", "nested_3", "the paper's, 3 nested ifs", "nested", 3),
    ("nested-4", "nested_4", "the paper's, 4 nested ifs", "nested", 4),
    ("nested-8", "nested_8", "the paper's, 8 nested ifs", "nested", 8),
    ("registers", "registers", "in registers, serial tail", "minmax-registers", 0),
    ("tree", "tree", "in registers, tree", "minmax-tree", 0),
    ("warp", "warp", "in registers, shuffles", "minmax-warp", 0),
];

fn row(sizes: Sizes, threads: Threads, kernel: &Kernel) -> Case {
    let &(id, kernel, name, topic, depth) = kernel;
    let bytes = sizes.bytes as u64;
    let work = move |context: &BenchContext| {
        let kernel = context.kernel_named::<Minmax>(kernel)?;
        checked(context, depth, |range| {
            launched(context, &kernel, threads, range.view_mut())
        })
    };
    let (id, name) = (threads.id(id), threads.name(name));
    let case = Case::gpu(Table::Minmax, id, name, topic, bytes, work).under(READ);
    match depth {
        0 if topic == "minmax" => case.published(Figure::Image(29.0, bytes), GPU),
        4 => case.stated("about 2× slower, at depth 4 only", GPU),
        _ => case,
    }
}

/// The minimum in one launch, the maximum in another.
fn apart(sizes: Sizes, threads: Threads) -> Case {
    let work = move |context: &BenchContext| {
        let kernel = |name| context.kernel_named::<Minmax>(name);
        let both = [kernel("minimum")?, kernel("maximum")?];
        checked(context, 0, |range| {
            let mut launches = both.iter();
            launches.try_for_each(|kernel| launched(context, kernel, threads, range.view_mut()))
        })
    };
    Case::gpu(
        Table::Minmax,
        threads.id("apart"),
        threads.name("minimum and maximum apart, two launches"),
        "minmax-apart",
        sizes.bytes as u64,
        work,
    )
    .under(READ)
}

/// An image so small that the launches decide, in one pass or apart: 64 × 64 samples.
fn small(sizes: Sizes, apart: bool) -> Case {
    let samples = sizes.scaled(64 * 64).min(PIECE);
    let (id, name, topic, kernels): (_, _, _, &[&str]) = match apart {
        false => (
            "serial-small",
            "the paper's, 64 × 64 samples",
            "minmax",
            &["serial"],
        ),
        true => (
            "apart-small",
            "minimum and maximum apart, 64 × 64 samples",
            "minmax-apart",
            &["minimum", "maximum"],
        ),
    };
    let work = move |context: &BenchContext| {
        let kernels = kernels
            .iter()
            .map(|name| context.kernel_named::<Minmax>(name));
        let kernels = kernels.collect::<Result<Vec<_>>>()?;
        let (min, max) = range(&context.host.noise[..samples]);
        let mut found = context.gpu.words(&[u32::MAX, 0])?;
        let launch = |found: &mut driver::Buffer| {
            kernels.iter().try_for_each(|kernel| {
                let arguments = Minmax {
                    data: context.input.view(),
                    pieces: 1,
                    piece: samples as u32,
                    range: found.view_mut(),
                };
                let one = Grid::new(1, 256);
                context.gpu.launch_grid(kernel, one, arguments)
            })
        };
        launch(&mut found)?;
        let words = context.gpu.read_words::<u32>(&found)?;
        ensure!(
            words == [u32::from(min), u32::from(max)],
            "found {words:?}, and not {min} and {max}"
        );
        context.time(|| launch(&mut found))
    };
    Case::gpu(Table::Minmax, id, name, topic, 2 * samples as u64, work)
}

fn launched(
    context: &BenchContext,
    kernel: &driver::Kernel<Minmax<'static>>,
    threads: Threads,
    range: ViewMut,
) -> Result<()> {
    let [pieces, piece] = pieces(context, PIECE);
    let arguments = Minmax {
        data: context.input.view(),
        pieces,
        piece,
        range,
    };
    let grid = threads.grid(context);
    context.gpu.launch_grid(kernel, grid, arguments)
}

/// The value that the kernels' nested conditionals compute from a sample; `minmax.cu` has the same
/// definition.
fn nested(p: u16, depth: u16) -> u16 {
    match depth {
        0 => p,
        _ if p >> depth & 1 == 1 => nested(p.wrapping_mul(3).wrapping_add(depth), depth - 1),
        _ => p ^ depth,
    }
}

fn checked(
    context: &BenchContext,
    depth: u16,
    launch: impl Fn(&mut driver::Buffer) -> Result<()>,
) -> Result<Time> {
    let each = context.host.noise.par_iter().map(|&p| nested(p, depth));
    let expected = each
        .map(|p| (p, p))
        .reduce(|| (u16::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    let mut found = context.gpu.words(&[u32::MAX, 0])?;
    launch(&mut found)?;
    let words = context.gpu.read_words::<u32>(&found)?;
    ensure!(
        words == [u32::from(expected.0), u32::from(expected.1)],
        "found {words:?}, and not {expected:?}"
    );
    context.time(|| launch(&mut found))
}

/// Times the program's kernel on the first `len` bytes of the main input, repeated if it is
/// shorter.
pub(super) fn own(context: &BenchContext, from: &driver::Buffer, len: usize) -> Result<Time> {
    let kernel = context.gpu.kernel::<launch::Minmax>("u16_c1")?;
    let mut ranges = context.gpu.words(&[u32::MAX; 8])?;
    let grid = context.gpu.reduction_grid(len as u64);
    let launch = |ranges: &mut driver::Buffer| {
        let arguments = launch::Minmax {
            src: from.view(),
            samples: len as u64 / 2,
            ranges: ranges.view_mut(),
        };
        context.gpu.launch(&kernel, grid, arguments)
    };
    launch(&mut ranges)?;
    let words = context.gpu.read_words::<u32>(&ranges)?;
    let noise = &context.host.noise;
    let (min, max) = range(&noise[..noise.len().min(len / 2)]);
    ensure!(
        words[..2] == [u32::from(min), u32::from(u16::MAX - max)],
        "found {words:?}"
    );
    context.time(|| launch(&mut ranges))
}

fn on_cpu(host: &Host) -> Result<Time> {
    let op = Sum {
        all: true,
        nan: None,
    };
    let (time, _) = cpu_passes(host, &op)?;
    let OpResult::Totals(totals) =
        executor::on_cpu(&op, image(host), &mut Timeline::default())?.result
    else {
        bail!("no totals");
    };
    let total = &totals.channels[0];
    let (min, max) = range(&host.noise);
    let same = |sum: i128| sum as u32 == host.sample_sum;
    ensure!(
        total.range.map(|range| (range.min, range.max)) == Some((min.into(), max.into()))
            && matches!(total.sum, Exact::Whole(sum) if same(sum)),
        "found {total:?}"
    );
    Ok(time)
}
