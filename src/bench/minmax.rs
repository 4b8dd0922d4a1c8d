//! HABR's minimum and maximum in one pass, its nested conditionals, and what came after: GB/s
//! counting bytes read.

use super::Table;
use super::case::{Case, Ceiling, Figure, Measured};
use super::lab::{Host, Lab, Sizes};
use super::memory::{PIECE, Threads, pieces};
use super::normalize::range;
use crate::device::cuda::Arg;
use crate::ops::sum::Sum;
use crate::ops::{Op, Product};
use crate::stats::Timeline;
use anyhow::{Result, bail, ensure};
use rayon::prelude::*;

const READ: Ceiling = Ceiling::Measured("ceilings/read");

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let bytes = sizes.bytes as u64;
    let mut cases = Vec::new();
    for threads in Threads::BOTH {
        let case = |id, name: &str, topic, kernel, depth| {
            let work = move |lab: &Lab| {
                let kernel = lab.kernel("papers/minmax", kernel)?;
                checked(lab, depth, |range| {
                    let [count, piece] = pieces(lab, PIECE);
                    let args = [Arg::Buffer(&lab.input), count, piece, range];
                    lab.gpu.launch_grid(&kernel, threads.grid(lab), &args)
                })
            };
            let name = threads.name(name);
            Case::card(Table::Minmax, threads.id(id), name, topic, bytes, work).under(READ)
        };
        let paper = |case: Case, rate| case.published(Figure::Rate(rate), "GTX 460");
        cases.extend([
            paper(
                case("serial", "the paper's: serial tail", "minmax", "serial", 0),
                29.0,
            ),
            case("tree", "tree", "minmax-tree", "tree", 0),
            case("warp", "shuffles", "minmax-warp", "warp", 0),
            case("nested-1", "1 if before it", "nested", "nested_1", 1),
            case("nested-2", "2 nested ifs", "nested", "nested_2", 2),
            case("nested-3", "3 nested ifs", "nested", "nested_3", 3),
            paper(
                case("nested-4", "4 nested ifs", "nested", "nested_4", 4),
                14.5,
            ),
            case("nested-8", "8 nested ifs", "nested", "nested_8", 8),
        ]);
    }
    cases.push(
        Case::card(
            Table::Minmax,
            "production",
            "gpuimg: packed pairs",
            "production-minmax",
            bytes,
            production,
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

/// What the kernels' nested conditionals make of a sample; `minmax.cu` has the same definition.
fn nested(p: u16, depth: u16) -> u16 {
    match depth {
        0 => p,
        _ if p >> depth & 1 == 1 => nested(p.wrapping_mul(3).wrapping_add(depth), depth - 1),
        _ => p ^ depth,
    }
}

fn checked(lab: &Lab, depth: u16, launch: impl Fn(Arg) -> Result<()>) -> Result<Measured> {
    let each = lab.host.noise.par_iter().map(|&p| nested(p, depth));
    let expected = each
        .map(|p| (p, p))
        .reduce(|| (u16::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    let found = lab.gpu.words(&[u32::MAX, 0])?;
    launch(Arg::Buffer(&found))?;
    let words = lab.gpu.read_words::<u32>(&found)?;
    ensure!(
        words == [u32::from(expected.0), u32::from(expected.1)],
        "found {words:?}, and not {expected:?}"
    );
    Ok(lab.time(|| launch(Arg::Buffer(&found)))?.into())
}

fn production(lab: &Lab) -> Result<Measured> {
    let kernel = lab.gpu.kernel("normalize", "minmax", "u16_c1")?;
    let ranges = lab.gpu.words(&[u32::MAX; 8])?;
    let count = Arg::U64(lab.input.len() as u64 / 2);
    let args = [Arg::Buffer(&lab.input), count, Arg::Buffer(&ranges)];
    let grid = lab.gpu.reduction_grid(lab.input.len() as u64);
    let launch = || lab.gpu.launch(&kernel, grid, &args);
    launch()?;
    let words = lab.gpu.read_words::<u32>(&ranges)?;
    let (min, max) = range(&lab.host.noise);
    ensure!(
        words[..2] == [u32::from(min), u32::from(u16::MAX - max)],
        "found {words:?}"
    );
    Ok(lab.time(launch)?.into())
}

fn on_cpu(host: &Host) -> Result<Measured> {
    let op = Sum { all: true };
    let (time, _) = super::normalize::cpu_passes(host, &op)?;
    let image = super::normalize::image(host);
    let Product::Totals(totals) = op.cpu(image, &mut Timeline::default())?.product else {
        bail!("no totals");
    };
    let total = &totals.channels[0];
    ensure!(
        total.range == Some(range(&host.noise)) && total.sum as u32 == host.sample_sum,
        "found {total:?}"
    );
    Ok(time.into())
}
