//! Reading and writing memory: read, copy and indices of "CUDA: performance aspects of typical tasks",
//! and latencies of "Methods of effective organisation of parallel computing on GPUs"; the systems
//! about the layout of data are in `layout`.

mod layout;

use super::case::{Case, Ceiling, Measured};
use super::ceilings::{copy_wide, read_wide};
use super::context::{BenchContext, Sizes, shuffled};
use super::figure::Figure;
use super::pieces::{PIECE, Threads, pieces};
use super::table::Table;
use crate::device::cuda::{Arg, Grid};
use anyhow::Result;
use layout::{column, gather, local, records, rows, scattered, window};

const READ: Ceiling = Ceiling::Measured("ceilings/read");
const COPY: Ceiling = Ceiling::Measured("ceilings/copy");
const GPU: &str = "GTX 460";

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    for threads in Threads::BOTH {
        cases.extend(habr(sizes.bytes as u64, threads));
    }
    cases.extend(wide(sizes.bytes as u64));
    cases.extend([64, 128, 256, 512, 1024, 2048].map(|threads| resident(sizes, threads)));
    cases.extend([120, 128].map(|pitch| rows(sizes, pitch)));
    cases.extend(records(sizes));
    cases.extend([(0, "l1"), (100, "shared")].map(|(shared, id)| window(sizes, shared, id)));
    cases.extend([false, true].map(|scattered| gather(sizes, scattered)));
    cases.extend([false, true].map(|transposed| column(sizes, transposed)));
    for lines in [1, 2, 3, 4, 8, 16, 32] {
        cases.extend([true, false].map(|l1| scattered(sizes, lines, l1)));
    }
    cases.extend([
        local(sizes, 4, "local_4"),
        local(sizes, 16, "local_16"),
        local(sizes, 64, "local_64"),
        local(sizes, 256, "local_256"),
    ]);
    cases
}

fn habr(bytes: u64, threads: Threads) -> Vec<Case> {
    let read = Case::gpu(
        Table::Memory,
        threads.id("read"),
        threads.name("read"),
        "read",
        bytes,
        move |context| {
            let kernel = context.kernel("papers/memory", "read")?;
            let grid = threads.grid(context);
            let (sums, [count, piece]) = (context.sums(grid)?, pieces(context, PIECE));
            let args = |sums| vec![Arg::Buffer(&context.input), count, piece, sums];
            Ok(context
                .summed(&kernel, grid, context.host.sample_sum, args, &sums)?
                .into())
        },
    )
    .published(Figure::Rate(42.0), GPU)
    .under(READ);
    let copy = Case::gpu(
        Table::Memory,
        threads.id("copy"),
        threads.name("copy"),
        "copy",
        2 * bytes,
        move |context| {
            let kernel = context.kernel("papers/memory", "copy")?;
            let (out, [count, piece]) = (
                context.poisoned(context.input.len())?,
                pieces(context, PIECE),
            );
            let args = [Arg::Buffer(&context.input), Arg::Buffer(&out), count, piece];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe {
                context
                    .gpu
                    .launch_grid(&kernel, threads.grid(context), &args)
            };
            context.check(&out, &context.input, launch)?;
            Ok(context.time(launch)?.into())
        },
    )
    .published(Figure::Rate(30.0), GPU)
    .under(COPY);
    let mut cases = vec![read, copy];
    // Pieces of the same length as before, in order; and short ones, scattered.
    for (id, name, levels, piece, scattered, published) in [
        ("double", "double index, in order", 2, PIECE, false, 30.0),
        (
            "double-scattered",
            "double index, 512-byte pieces scattered",
            2,
            256,
            true,
            10.0,
        ),
        (
            "triple",
            "triple index, in order",
            3,
            PIECE,
            false,
            42.0 * 0.5,
        ),
        (
            "triple-scattered",
            "triple index, 512-byte pieces scattered",
            3,
            256,
            true,
            0.0,
        ),
    ] {
        let topic = if levels == 2 {
            "double-index"
        } else {
            "triple-index"
        };
        let case = Case::gpu(
            Table::Memory,
            threads.id(id),
            threads.name(name),
            topic,
            bytes,
            move |context| indexed(context, threads, levels, piece, scattered),
        )
        .under(READ);
        cases.push(if published > 0.0 {
            case.published(Figure::Rate(published), GPU)
        } else {
            case
        });
    }
    cases
}

fn indexed(
    context: &BenchContext,
    threads: Threads,
    levels: u32,
    piece: usize,
    scattered: bool,
) -> Result<Measured> {
    let count = context.input.len() / 2 / piece;
    let number = move |j: usize| if scattered { shuffled(j, count) } else { j };
    let name = format!("pieces {piece} {scattered}");
    let index = context.kept(&name, || {
        (0..count).map(|j| (number(j) * piece) as u32).collect()
    })?;
    let order = context.kept(&format!("order of {name}"), || {
        (0..count).map(|j| number(j) as u32).collect()
    })?;
    let grid = threads.grid(context);
    let (sums, [count, length]) = (context.sums(grid)?, pieces(context, piece));
    let name = if levels == 2 {
        "double_index"
    } else {
        "triple_index"
    };
    let kernel = context.kernel("papers/memory", name)?;
    let args = [
        Arg::Buffer(&context.input),
        count,
        length,
        Arg::Buffer(&sums),
        Arg::Buffer(&index),
        Arg::Buffer(&order),
    ];
    let launch = || {
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe {
            context
                .gpu
                .launch_grid(&kernel, grid, &args[..2 + levels as usize + 1])
        }
    };
    context.check_sum(&sums, context.host.sample_sum, launch)?;
    Ok(context.time(launch)?.into())
}

fn wide(bytes: u64) -> Vec<Case> {
    vec![
        Case::gpu(
            Table::Memory,
            "read-wide",
            "read, 16 bytes an access",
            "wide",
            bytes,
            |context| Ok(read_wide(context)?.into()),
        )
        .under(READ),
        Case::gpu(
            Table::Memory,
            "copy-wide",
            "copy, 16 bytes an access",
            "wide",
            2 * bytes,
            |context| Ok(copy_wide(context)?.into()),
        )
        .under(COPY),
    ]
}

fn resident(sizes: Sizes, threads: u32) -> Case {
    Case::gpu(
        Table::Memory,
        format!("threads-{threads}"),
        format!("read, {threads} threads a multiprocessor"),
        "latency-hiding",
        sizes.bytes as u64,
        move |context| {
            let kernel = context.kernel("papers/memory", "read_words")?;
            let grid = Grid {
                blocks: [context.facts.multiprocessors * threads / 64, 1],
                threads: [64, 1],
            };
            let (sums, words) = (
                context.sums(grid)?,
                Arg::U64(context.input.len() as u64 / 4),
            );
            let args = |sums| vec![Arg::Buffer(&context.input), words, sums];
            Ok(context
                .summed(&kernel, grid, context.host.word_sum, args, &sums)?
                .into())
        },
    )
    .under(READ)
}
