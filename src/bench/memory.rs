//! Reading and writing memory: read, copy, indices and launches of "CUDA: performance aspects of
//! typical tasks", and latencies of "Methods of effective organisation of parallel computing on
//! GPUs"; the systems about the layout of data are in `layout`, those about columns and pointers in
//! `column`, indices in `indexed`.

mod column;
mod indexed;
mod layout;
mod local;
mod sharing;
mod width;

use super::case::{Case, Ceiling};
use super::context::{BenchContext, Sizes};
use super::figure::{Figure, Time};
use super::pieces::{PIECE, Threads, pieces};
use super::table::Table;
use crate::gpu::driver::Grid;
use crate::gpu::launch::papers::memory::{Copy, Read, ReadWide, ReadWords};
use anyhow::Result;
use rayon::prelude::*;

const READ: Ceiling = Ceiling::Measured("ceilings/read");
const COPY: Ceiling = Ceiling::Measured("ceilings/copy");
const GPU: &str = "GTX 460";

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    for threads in Threads::BOTH {
        cases.extend(read_and_copy(sizes.bytes as u64, threads));
        cases.extend(indexed::cases(sizes.bytes as u64, threads));
    }
    cases.extend(width::cases(sizes));
    for blocks in LAUNCHES.0 {
        cases.extend(LAUNCHES.1.map(|threads| launched(sizes, blocks, threads)));
    }
    cases.extend(BLOCKS.map(|blocks| few_blocks(sizes, blocks)));
    cases.extend(RESIDENT.map(|threads| resident(sizes, threads)));
    cases.push(in_all(sizes, 100_000));
    cases.extend(sharing::cases(sizes));
    cases.extend([120, 121, 128].map(|pitch| layout::rows(sizes, pitch)));
    cases.extend(layout::records(sizes));
    for (shared, id) in [(0, "l1"), (50, "equal"), (100, "shared")] {
        cases.push(layout::window(sizes, shared, id));
    }
    cases.extend([false, true].map(|scattered| layout::gather(sizes, scattered)));
    cases.extend(column::cases(sizes));
    for lines in LINES {
        cases.extend([true, false].map(|l1| layout::scattered(sizes, lines, l1)));
    }
    cases.extend(local::cases(sizes));
    cases
}

/// Blocks, and threads of a block, of the sweep of launches.
pub(super) const LAUNCHES: ([u32; 7], [u32; 6]) = (
    [40, 80, 160, 320, 640, 1280, 2560],
    [32, 64, 96, 192, 384, 768],
);
/// Blocks of 256 threads, from one to several for each multiprocessor.
pub(super) const BLOCKS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Threads of a multiprocessor.
pub(super) const RESIDENT: [u32; 6] = [64, 128, 256, 512, 1024, 2048];
/// Lines of 128 bytes out of which a warp reads.
pub(super) const LINES: [usize; 7] = [1, 2, 3, 4, 8, 16, 32];

fn read_and_copy(bytes: u64, threads: Threads) -> Vec<Case> {
    let read = Case::gpu(
        Table::Memory,
        threads.id("read"),
        threads.name("read"),
        "read",
        bytes,
        move |context| {
            let kernel = context.kernel::<Read>()?;
            let grid = threads.grid(context);
            let [pieces, piece] = pieces(context, PIECE);
            context.summed(grid, context.host.sample_sum, |sums| {
                let arguments = Read {
                    data: context.input.view(),
                    pieces,
                    piece,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .published(Figure::Image(42.0, bytes), GPU)
    .under(READ);
    let copy = Case::gpu(
        Table::Memory,
        threads.id("copy"),
        threads.name("copy"),
        "copy",
        2 * bytes,
        move |context| {
            let kernel = context.kernel::<Copy>()?;
            let out = context.poisoned(context.input.len())?;
            let [pieces, piece] = pieces(context, PIECE);
            context.check_and_time(out, &context.input, |out| {
                let arguments = Copy {
                    src: context.input.view(),
                    dst: out.view_mut(),
                    pieces,
                    piece,
                };
                let grid = threads.grid(context);
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .published(Figure::Image(30.0, bytes), GPU)
    .under(COPY);
    let last = Case::gpu(
        Table::Memory,
        threads.id("read-last"),
        threads.name("read, only the last value of each thread stored"),
        "read",
        0,
        move |context| last_read(context, threads),
    );
    vec![read, last, copy]
}

/// The loop of the reading kernel where a thread stores only the last value that it read: a compiler of today loads no other.
fn last_read(context: &BenchContext, threads: Threads) -> Result<Time> {
    let kernel = context.kernel_named::<Read>("read_last")?;
    let grid = threads.grid(context);
    let [pieces, piece] = pieces(context, PIECE);
    let (blocks, block) = (grid.blocks[0], grid.threads[0]);
    let last = |thread: u32| {
        let (b, t) = (thread / block, thread % block);
        // The last of the pieces b, b + blocks, … and of its elements t, t + block, …
        let piece_of = (pieces > b).then(|| b + (pieces - 1 - b) / blocks * blocks)?;
        let element = (piece > t).then(|| t + (piece - 1 - t) / block * block)?;
        Some(context.host.noise[(piece_of * piece + element) as usize])
    };
    let values = (0..blocks * block).into_par_iter();
    let values = values.map(|thread| last(thread).map_or(0, u32::from));
    let expected = values.reduce(|| 0, u32::wrapping_add);
    context.summed(grid, expected, |sums| {
        let arguments = Read {
            data: context.input.view(),
            pieces,
            piece,
            sums,
        };
        context.gpu.launch_grid(&kernel, grid, arguments)
    })
}

/// The reading kernel launched with so many blocks of so many threads, on a quarter of the input.
fn launched(sizes: Sizes, blocks: u32, threads: u32) -> Case {
    let bytes = sizes.bytes / 4;
    Case::gpu(
        Table::Memory,
        format!("launch-{blocks}x{threads}"),
        format!("read, {blocks} blocks of {threads} threads"),
        "grid-threads",
        bytes as u64,
        move |context| {
            let kernel = context.kernel::<Read>()?;
            let grid = Grid::new(blocks, threads);
            let part = context.host.noise[..bytes / 2].par_iter();
            let expected = part.map(|&p| u32::from(p)).reduce(|| 0, u32::wrapping_add);
            context.summed(grid, expected, |sums| {
                let arguments = Read {
                    data: context.input.view(),
                    pieces: (bytes / 2 / PIECE) as u32,
                    piece: PIECE as u32,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .under(READ)
}

fn few_blocks(sizes: Sizes, blocks: u32) -> Case {
    let name = match blocks {
        1 => "read, 1 block of 256 threads".into(),
        _ => format!("read, {blocks} blocks of 256 threads"),
    };
    Case::gpu(
        Table::Memory,
        format!("blocks-{blocks}"),
        name,
        "few-blocks",
        sizes.bytes as u64,
        move |context| {
            let kernel = context.kernel::<ReadWide>()?;
            let grid = Grid::new(blocks, 256);
            context.summed(grid, context.host.word_sum, |sums| {
                let arguments = ReadWide {
                    data: context.input.view(),
                    n: context.input.len() as u64 / 16,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .under(READ)
}

fn resident(sizes: Sizes, threads: u32) -> Case {
    let (id, name) = (
        format!("threads-{threads}"),
        format!("read, {threads} threads a multiprocessor"),
    );
    words(sizes, id, name, "latency-hiding", move |multiprocessors| {
        multiprocessors * threads / 64
    })
}

/// As many threads on the whole GPU.
fn in_all(sizes: Sizes, threads: u32) -> Case {
    let (id, name) = (
        format!("threads-{}k-in-all", threads / 1000),
        format!("read, {threads} threads in all"),
    );
    words(sizes, id, name, "enough-threads", move |_| {
        threads.div_ceil(64)
    })
}

/// A word each turn and thread, in blocks of 64 threads, whose number follows from that of the
/// multiprocessors.
fn words(
    sizes: Sizes,
    id: String,
    name: String,
    topic: &'static str,
    blocks: impl Fn(u32) -> u32 + 'static,
) -> Case {
    Case::gpu(
        Table::Memory,
        id,
        name,
        topic,
        sizes.bytes as u64,
        move |context| {
            let kernel = context.kernel::<ReadWords>()?;
            let grid = Grid::new(blocks(context.facts.multiprocessors), 64);
            context.summed(grid, context.host.word_sum, |sums| {
                let arguments = ReadWords {
                    data: context.input.view(),
                    n: context.input.len() as u64 / 4,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .under(READ)
}
