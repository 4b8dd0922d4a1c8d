//! The seven steps of "GPGPU optimisation by the example of a sum" (after Mark Harris), at the
//! paper's length, which fits into today's level-2 caches, and at one that does not; other lengths;
//! six more steps of today, and the program's own sum. GB/s of bytes read.

use super::case::{Case, Ceiling, Needs};
use super::context::{BenchContext, Host, Sizes, wrapping_sum};
use super::figure::{Figure, Time};
use super::table::Table;
use crate::engine::executor;
use crate::gpu::driver::{self, Grid, Kernel};
use crate::gpu::launch::papers::reduce::{Folded, Step};
use crate::gpu::launch::sum as launch;
use crate::ops::OpResult;
use crate::ops::exact::Exact;
use crate::ops::sum::Sum;
use crate::timing::Timeline;
use anyhow::{Result, bail, ensure};

const READ: Ceiling = Ceiling::Measured("ceilings/read");
const THREADS: usize = 256;
/// Bytes of the paper's 2²² integers.
const PAPER: u64 = 4 << 22;

/// The topic, id, kernel and change of each step, its published ms, and the published text.
#[rustfmt::skip]
const STEPS: [(&str, &str, &str, &str, f64, &str); 7] = [
    ("reduce-1", "step-1", "step_1", "1 interleaved, divergent", 8.054, "8.054 ms, 2.083 GB/s"),
    ("reduce-2", "step-2", "step_2", "2 interleaved, bank conflicts", 3.456, "3.456 ms, 4.854 GB/s"),
    ("reduce-3", "step-3", "step_3", "3 sequential", 1.722, "1.722 ms, 9.741 GB/s"),
    ("reduce-4", "step-4", "step_4", "4 first addition at the load", 0.965, "0.965 ms, 17.377 GB/s"),
    ("reduce-5", "step-5", "step_5", "5 last warp unrolled", 0.536, "0.536 ms, 31.289 GB/s"),
    ("reduce-6", "step-6", "step_6", "6 block size at compile time", 0.381, "0.381 ms, 43.996 GB/s"),
    ("reduce-7", "step-7", "step_7", "7 several elements a thread", 0.268, "0.268 ms, 62.671 GB/s, 30.04× step 1"),
];

/// Step 6 is a template of the block's size: the sizes, and their kernels.
const SIZES: [(usize, &str); 6] = [
    (32, "step_6_32"),
    (64, "step_6_64"),
    (128, "step_6_128"),
    (256, "step_6"),
    (512, "step_6_512"),
    (1024, "step_6_1024"),
];

/// The steps after the text's: the id, kernel and change of each.
const FURTHER: [(usize, &str, &str, &str); 6] = [
    (8, "further-8", "step_8", "8 shuffles"),
    (9, "further-9", "step_9", "9 loads of 16 bytes"),
    (10, "further-10", "step_10", "10 redux.sync"),
    (11, "further-11", "step_11", "11 one launch"),
    (12, "further-12", "step_12", "12 bulk copies"),
    (13, "further-13", "step_13", "13 clusters"),
];

/// The blocks of a cluster in step 13: the most that every GPU with clusters allows.
const CLUSTER: u32 = 8;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    let large = sizes.bytes / 4;
    for (n, suffix) in [(large, ""), (sizes.integers, "-paper")] {
        for (step, (topic, id, kernel, name, ms, words)) in STEPS.into_iter().enumerate() {
            let (id, name) = (format!("{id}{suffix}"), format!("{name}, {}", count(n)));
            let work = move |context: &BenchContext| stepped(context, kernel, step + 1, THREADS, n);
            let case = Case::gpu(Table::Reduce, id, name, topic, 4 * n as u64, work).under(READ);
            cases.push(match suffix {
                "" => case,
                // The paper's times are of 2²² integers.
                _ => case.stating(Some(Figure::Millis(ms, PAPER)), Some(words), "G80"),
            });
        }
    }
    for (n, suffix) in [(large, ""), (sizes.integers, "-paper")] {
        for (step, id, kernel, name) in FURTHER {
            let (id, name) = (format!("{id}{suffix}"), format!("{name}, {}", count(n)));
            let work = move |context: &BenchContext| match step {
                ..=10 => stepped(context, kernel, step, THREADS, n),
                _ => folded(context, kernel, n, (step == 13).then_some(CLUSTER)),
            };
            let bytes = 4 * n as u64;
            let case =
                Case::gpu(Table::Reduce, id, name, "reduce-further", bytes, work).under(READ);
            cases.push(match step {
                ..=11 => case,
                _ => case.needing(Needs::Capability(9, 0)),
            });
        }
    }
    cases.push(
        Case::gpu(
            Table::Reduce,
            "step-7-host",
            format!(
                "7 partial sums added on the host, {}",
                count(sizes.integers)
            ),
            "reduce-host",
            4 * sizes.integers as u64,
            move |context| through_host(context, sizes.integers),
        )
        .under(READ),
    );
    for (threads, kernel) in SIZES {
        cases.push(
            Case::gpu(
                Table::Reduce,
                format!("block-{threads}"),
                format!("6 blocks of {threads} threads, {}", count(large)),
                "reduce-sizes",
                4 * large as u64,
                move |context| stepped(context, kernel, 6, threads, large),
            )
            .under(READ),
        );
    }
    // Not a whole number of blocks: shorter by a prime number of elements.
    let odd = large - 12_347.min(large / 3);
    cases.push(
        Case::gpu(
            Table::Reduce,
            "any-length",
            format!("7 any length: {odd} integers"),
            "reduce-any",
            4 * odd as u64,
            move |context| stepped(context, "step_7", 7, THREADS, odd),
        )
        .under(READ),
    );
    for (id, n) in [("production-paper", sizes.integers), ("production", large)] {
        let name = format!("gpuimg: 64-bit total, {}", count(n));
        cases.push(
            Case::gpu(
                Table::Reduce,
                id,
                name,
                "production-sum",
                4 * n as u64,
                move |context| own(context, &context.input, "u32", n),
            )
            .under(READ),
        );
    }
    cases.push(
        Case::gpu(
            Table::Reduce,
            "production-u16",
            format!(
                "gpuimg: 64-bit total, {} samples of 16 bits",
                count(sizes.bytes / 2)
            ),
            "production-sum",
            sizes.bytes as u64,
            move |context| own(context, &context.input, "u16_c1", sizes.bytes / 2),
        )
        .under(READ),
    );
    cases.push(
        Case::host(
            Table::Reduce,
            "cpu",
            "gpuimg on the CPU: sum of samples of 16 bits",
            "cpu",
            sizes.bytes as u64,
            on_cpu,
        )
        .under(Ceiling::Measured("ceilings/host-read")),
    );
    cases
}

/// A number as text, a power of two as such.
fn count(n: usize) -> String {
    format!("2^{}", n.trailing_zeros())
}

fn stepped(
    context: &BenchContext,
    kernel: &'static str,
    step: usize,
    threads: usize,
    n: usize,
) -> Result<Time> {
    let kernel = context.kernel_named::<Step>(kernel)?;
    let expected = wrapping_sum(&context.host.words()[..n]);
    let mut partial = [
        context.poisoned(4 * n.div_ceil(threads))?,
        context.poisoned(4 * n.div_ceil(threads))?,
    ];
    let last = passes(context, &kernel, step, threads, n, &mut partial)?;
    let found = first_word(context, &partial[last])?;
    ensure!(found == expected, "found {found}, and not {expected}");
    context.time(|| {
        passes(context, &kernel, step, threads, n, &mut partial)?;
        Ok(())
    })
}

/// One launch; the block that ends last adds the partial sums, those of the clusters if the blocks are in clusters.
fn folded(
    context: &BenchContext,
    kernel: &'static str,
    n: usize,
    cluster: Option<u32>,
) -> Result<Time> {
    let kernel = context.kernel_named::<Folded>(kernel)?;
    let blocks = blocks_of(context, 11, THREADS, n).next_multiple_of(cluster.unwrap_or(1));
    let grid = Grid::new(blocks, THREADS as u32);
    let mut partial = context.poisoned(4 * grid.blocks[0] as usize)?;
    let mut arrived = context.gpu.words(&[0u32])?;
    let mut launch = |partial: &mut driver::Buffer| {
        let arguments = Folded {
            input: context.input.view(),
            partial: partial.view_mut(),
            arrived: arrived.view_mut(),
            n: n as u32,
        };
        match cluster {
            None => context.gpu.launch_grid(&kernel, grid, arguments),
            Some(blocks) => context
                .gpu
                .launch_clusters(&kernel, grid, blocks, arguments),
        }
    };
    let expected = wrapping_sum(&context.host.words()[..n]);
    launch(&mut partial)?;
    let found = first_word(context, &partial)?;
    ensure!(found == expected, "found {found}, and not {expected}");
    context.time(|| launch(&mut partial))
}

/// One pass of step 7, whose partial sums the host fetches and adds, as in the text: by the host's clock.
fn through_host(context: &BenchContext, n: usize) -> Result<Time> {
    let kernel = context.kernel_named::<Step>("step_7")?;
    let grid = Grid::new(blocks_of(context, 7, THREADS, n), THREADS as u32);
    let mut partial = context.poisoned(4 * grid.blocks[0] as usize)?;
    let mut sum = || {
        let arguments = Step {
            input: context.input.view(),
            partial: partial.view_mut(),
            n: n as u32,
        };
        context.gpu.launch_grid(&kernel, grid, arguments)?;
        Ok(wrapping_sum(&context.gpu.read_words(&partial)?))
    };
    let (found, expected): (u32, u32) = (sum()?, wrapping_sum(&context.host.words()[..n]));
    ensure!(found == expected, "found {found}, and not {expected}");
    context.host.time(|| sum().map(|_| ()))
}

/// The blocks of a step for `n` integers.
fn blocks_of(context: &BenchContext, step: usize, threads: usize, n: usize) -> u32 {
    let blocks = match step {
        1..=3 => n.div_ceil(threads),
        4..=6 => n.div_ceil(2 * threads),
        _ => n
            .div_ceil(8 * threads)
            .min(8 * context.facts.multiprocessors as usize),
    };
    blocks as u32
}

/// Queues passes until one sum is left; returns which of the two buffers begins with it.
fn passes(
    context: &BenchContext,
    kernel: &Kernel<Step<'static>>,
    step: usize,
    threads: usize,
    n: usize,
    [first, second]: &mut [driver::Buffer; 2],
) -> Result<usize> {
    let (mut left, mut pass) = (n, 0);
    loop {
        let blocks = blocks_of(context, step, threads, left);
        let grid = Grid::new(blocks, threads as u32);
        let (input, partial) = match pass {
            0 => (context.input.view(), first.view_mut()),
            _ if pass % 2 == 1 => (first.view(), second.view_mut()),
            _ => (second.view(), first.view_mut()),
        };
        let arguments = Step {
            input,
            partial,
            n: left as u32,
        };
        context.gpu.launch_grid(kernel, grid, arguments)?;
        if blocks == 1 {
            return Ok(pass % 2);
        }
        (left, pass) = (blocks as usize, pass + 1);
    }
}

fn first_word(context: &BenchContext, buffer: &driver::Buffer) -> Result<u32> {
    context.gpu.wait()?;
    let mut word = [0u8; 4];
    context.gpu.fetch(buffer, &mut word)?;
    Ok(u32::from_ne_bytes(word))
}

/// Times the program's kernel on `n` elements.
pub(super) fn own(
    context: &BenchContext,
    from: &driver::Buffer,
    form: &'static str,
    n: usize,
) -> Result<Time> {
    let kernel = context.gpu.kernel::<launch::Sum>(form)?;
    // The main input, repeated if it is shorter.
    let (bytes, expected): (_, u64) = match form {
        "u32" => (
            4 * n,
            context.host.repeated_words(4 * n).map(u64::from).sum(),
        ),
        _ => {
            let halves = |word| u64::from(word & 0xffff) + u64::from(word >> 16);
            (2 * n, context.host.repeated_words(2 * n).map(halves).sum())
        }
    };
    let mut total = context.gpu.words(&[0u64; 4])?;
    let grid = context.gpu.reduction_grid(bytes as u64);
    let launch = |total: &mut driver::Buffer| {
        let arguments = launch::Sum {
            src: from.view(),
            samples: n as u64,
            totals: total.view_mut(),
        };
        context.gpu.launch(&kernel, grid, arguments)
    };
    launch(&mut total)?;
    let found = context.gpu.read_words::<u64>(&total)?[0];
    ensure!(found == expected, "found {found}, and not {expected}");
    context.time(|| launch(&mut total))
}

fn on_cpu(host: &Host) -> Result<Time> {
    let op = Sum::default();
    let (time, _) = super::cpu::cpu_passes(host, &op)?;
    let image = super::cpu::image(host);
    let OpResult::Totals(totals) = executor::on_cpu(&op, image, &mut Timeline::default())?.result
    else {
        bail!("no totals");
    };
    let expected: u64 = host.noise.iter().map(|&p| u64::from(p)).sum();
    let found = totals.channels[0].sum;
    ensure!(
        found == Exact::Whole(expected.into()),
        "found {found:?}, and not {expected}"
    );
    Ok(time)
}
