//! How memory is read and written: HABR's read, copy and indices, NOTES' latencies, rows, records,
//! columns, scattered lines and cache preference, LXF's local memory.
//! Long, because these twelve systems make one table and share its data.

use super::Table;
use super::case::{Case, Ceiling, Figure, Measured};
use super::ceilings::{copy_wide, read_wide};
use super::context::{BenchContext, Sizes, shuffled, transposed, wrapping_sum};
use super::launch::HABR;
use crate::device::cuda::{self, Arg, Grid};
use anyhow::Result;
use rayon::prelude::*;

/// Elements of a piece in HABR's loop.
pub(super) const PIECE: usize = 4096;
const READ: Ceiling = Ceiling::Measured("ceilings/read");
const COPY: Ceiling = Ceiling::Measured("ceilings/copy");
const GPU: &str = "GTX 460";

/// HABR's kernels run as the paper launched them, and again with a launch that fills today's GPUs.
#[derive(Clone, Copy)]
pub(super) enum Threads {
    Paper,
    Filled,
}

impl Threads {
    pub(super) const BOTH: [Threads; 2] = [Threads::Paper, Threads::Filled];

    pub(super) fn grid(self, context: &BenchContext) -> Grid {
        match self {
            Threads::Paper => HABR,
            Threads::Filled => context.filled(),
        }
    }

    pub(super) fn id(self, id: &str) -> String {
        match self {
            Threads::Paper => id.into(),
            Threads::Filled => format!("{id}-filled"),
        }
    }

    pub(super) fn name(self, name: &str) -> String {
        match self {
            Threads::Paper => format!("{name}, 160 × 96"),
            Threads::Filled => format!("{name}, GPU filled"),
        }
    }
}

/// The number of pieces and their length, as HABR's kernels take them.
pub(super) fn pieces(context: &BenchContext, piece: usize) -> [Arg<'static>; 2] {
    let count = context.input.len() / 2 / piece;
    [Arg::U32(count as u32), Arg::U32(piece as u32)]
}

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
    // Pieces as long as before, in order; and short ones, scattered.
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

fn rows(sizes: Sizes, pitch: usize) -> Case {
    const WIDTH: usize = 120;
    let count = sizes.bytes / 4 / 128;
    let name = match pitch {
        WIDTH => "rows of 480 bytes, unpadded",
        _ => "rows of 480 bytes, padded to 512",
    };
    Case::gpu(
        Table::Memory,
        format!("rows-{}", 4 * pitch),
        name,
        "pitch",
        (count * WIDTH * 4) as u64,
        move |context| {
            let kernel = context.kernel("papers/layout", "rows")?;
            let rows = context.host.words().par_chunks_exact(pitch).take(count);
            let expected = rows
                .map(|row| wrapping_sum(&row[..WIDTH]))
                .reduce(|| 0, u32::wrapping_add);
            let grid = Grid {
                blocks: [16 * context.facts.multiprocessors, 1],
                threads: [128, 1],
            };
            let sums = context.sums(grid)?;
            let numbers = [count, WIDTH, pitch].map(|number| Arg::U32(number as u32));
            let args = |sums| {
                vec![
                    Arg::Buffer(&context.input),
                    numbers[0],
                    numbers[1],
                    numbers[2],
                    sums,
                ]
            };
            Ok(context.summed(&kernel, grid, expected, args, &sums)?.into())
        },
    )
    .under(READ)
}

fn records(sizes: Sizes) -> Vec<Case> {
    let n = sizes.bytes / 12;
    let bytes = 12 * n as u64;
    let structures = Case::gpu(
        Table::Memory,
        "records",
        "c = a + b, array of structures",
        "records",
        bytes,
        move |context| {
            let kernel = context.kernel("papers/layout", "records")?;
            let mut expected = context.host.words()[..3 * n].to_vec();
            expected
                .par_chunks_exact_mut(3)
                .for_each(|abc| abc[2] = abc[0].wrapping_add(abc[1]));
            let (expected, abc) = (context.gpu.words(&expected)?, context.changeable(12 * n)?);
            let args = [Arg::Buffer(&abc), Arg::U64(n as u64)];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { context.gpu.launch_grid(&kernel, context.filled(), &args) };
            context.check(&abc, &expected, launch)?;
            Ok(context.time(launch)?.into())
        },
    );
    let arrays = Case::gpu(
        Table::Memory,
        "arrays",
        "c = a + b, structure of arrays",
        "records",
        bytes,
        move |context| {
            let kernel = context.kernel("papers/layout", "arrays")?;
            let (a, b) = context.host.words()[..2 * n].split_at(n);
            let sums: Vec<u32> = a
                .par_iter()
                .zip(b)
                .map(|(a, &b)| a.wrapping_add(b))
                .collect();
            let (expected, a, b) = (
                context.gpu.words(&sums)?,
                context.gpu.words(a)?,
                context.gpu.words(b)?,
            );
            let c = context.poisoned(4 * n)?;
            let args = [
                Arg::Buffer(&a),
                Arg::Buffer(&b),
                Arg::Buffer(&c),
                Arg::U64(n as u64),
            ];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { context.gpu.launch_grid(&kernel, context.filled(), &args) };
            context.check(&c, &expected, launch)?;
            Ok(context.time(launch)?.into())
        },
    );
    vec![structures.under(COPY), arrays.under(COPY)]
}

fn window(sizes: Sizes, shared: u8, id: &str) -> Case {
    const WORDS: usize = 16 << 10;
    const TURNS: usize = 64;
    let blocks = (sizes.bytes / (4 * WORDS)).min(128);
    let name = match shared {
        0 => "64 KiB a block read 64 times, L1 preferred",
        _ => "64 KiB a block read 64 times, shared preferred",
    };
    Case::gpu(
        Table::Memory,
        format!("window-{id}"),
        name,
        "carveout",
        (blocks * 4 * WORDS * TURNS) as u64,
        move |context| {
            let kernel = context.kernel("papers/layout", "window")?;
            context.gpu.prefer_shared(&kernel, shared)?;
            let once = wrapping_sum(&context.host.words()[..blocks * WORDS]);
            let grid = Grid {
                blocks: [blocks as u32, 1],
                threads: [1024, 1],
            };
            let sums = context.sums(grid)?;
            let (words, turns) = (Arg::U32(WORDS as u32), Arg::U32(TURNS as u32));
            let args = |sums| vec![Arg::Buffer(&context.input), words, turns, sums];
            let expected = once.wrapping_mul(TURNS as u32);
            Ok(context.summed(&kernel, grid, expected, args, &sums)?.into())
        },
    )
    .touching((blocks * 4 * WORDS) as u64)
}

fn gather(sizes: Sizes, scattered: bool) -> Case {
    let n = sizes.bytes / 8;
    let (id, name) = match scattered {
        false => ("gather-ordered", "A[index[i]], in order"),
        true => ("gather-shuffled", "A[index[i]], scattered"),
    };
    Case::gpu(
        Table::Memory,
        id,
        name,
        "indirect",
        12 * n as u64,
        move |context| {
            let kernel = context.kernel("papers/layout", "gather")?;
            let words = context.host.words();
            let number = |i| if scattered { shuffled(i, n) } else { i };
            let index: Vec<u32> = (0..n).into_par_iter().map(|i| number(i) as u32).collect();
            let expected: Vec<u32> = index.par_iter().map(|&i| words[i as usize]).collect();
            let (index, expected) = (context.gpu.words(&index)?, context.gpu.words(&expected)?);
            let out = context.poisoned(4 * n)?;
            let args = [
                Arg::Buffer(&context.input),
                Arg::Buffer(&index),
                Arg::Buffer(&out),
                Arg::U64(n as u64),
            ];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { context.gpu.launch_grid(&kernel, context.filled(), &args) };
            context.check(&out, &expected, launch)?;
            Ok(context.time(launch)?.into())
        },
    )
    .under(COPY)
}

fn column(sizes: Sizes, stored_transposed: bool) -> Case {
    const LENGTH: usize = 64;
    let lines = sizes.bytes / 4 / LENGTH;
    let (id, name, kernel) = match stored_transposed {
        false => ("column", "a warp down a column, row-major", "down_columns"),
        true => (
            "column-transposed",
            "a warp along a row, stored transposed",
            "along_rows",
        ),
    };
    Case::gpu(
        Table::Memory,
        id,
        name,
        "column",
        sizes.bytes as u64,
        move |context| {
            let words = context.host.words();
            let expected: Vec<u32> = words.par_chunks_exact(LENGTH).map(serial_sum).collect();
            let expected = context.gpu.words(&expected)?;
            let turned;
            let data: &cuda::Buffer = if stored_transposed {
                turned = context.gpu.words(&transposed(words, LENGTH))?;
                &turned
            } else {
                &context.input
            };
            let kernel = context.kernel("papers/layout", kernel)?;
            let sums = context.poisoned(4 * lines)?;
            let args = [
                Arg::Buffer(data),
                Arg::U32(lines as u32),
                Arg::U32(LENGTH as u32),
                Arg::Buffer(&sums),
            ];
            let grid = Grid {
                blocks: [lines.div_ceil(256) as u32, 1],
                threads: [256, 1],
            };
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { context.gpu.launch_grid(&kernel, grid, &args) };
            context.check(&sums, &expected, launch)?;
            Ok(context.time(launch)?.into())
        },
    )
    .under(READ)
}

fn serial_sum(words: &[u32]) -> u32 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

fn scattered(sizes: Sizes, lines: usize, l1: bool) -> Case {
    let groups = sizes.bytes / (128 * lines);
    let (cache, kernel, kept) = match l1 {
        true => ("l1", "scattered_l1", "kept in L1"),
        false => ("l2", "scattered_l2", "L2 only"),
    };
    Case::gpu(
        Table::Memory,
        format!("scattered-{cache}-{lines}"),
        format!(
            "a warp's 32 words in {} of 128 bytes, {kept}",
            if lines == 1 {
                "1 line".into()
            } else {
                format!("{lines} lines")
            }
        ),
        "scattered",
        128 * groups as u64,
        move |context| {
            let words = context.host.words();
            let group = |group: usize| {
                (0..32).fold(0u32, |sum, lane| {
                    let line = group * lines + lane % lines;
                    sum.wrapping_add(words[line * 32 + lane / lines])
                })
            };
            let expected = (0..groups)
                .into_par_iter()
                .map(group)
                .reduce(|| 0, u32::wrapping_add);
            let kernel = context.kernel("papers/layout", kernel)?;
            let grid = context.filled();
            let sums = context.sums(grid)?;
            let (groups, lines) = (Arg::U32(groups as u32), Arg::U32(lines as u32));
            let args = |sums| vec![Arg::Buffer(&context.input), groups, lines, sums];
            Ok(context.summed(&kernel, grid, expected, args, &sums)?.into())
        },
    )
    .touching(sizes.bytes as u64)
    .under(READ)
}

fn local(sizes: Sizes, n: usize, kernel: &'static str) -> Case {
    let threads = sizes.bytes / 4 / n;
    let bytes = (sizes.bytes + 4 * threads) as u64;
    Case::gpu(
        Table::Memory,
        format!("local-{n}"),
        format!("l[{n}] of each thread, then weighted sum"),
        "local-memory",
        bytes,
        move |context| {
            let weighted = |own: &[u32]| {
                own.iter().zip(1u32..).fold(0u32, |sum, (&word, weight)| {
                    sum.wrapping_add(word.wrapping_mul(weight))
                })
            };
            let words = context.host.words().par_chunks_exact(n);
            let expected: Vec<u32> = words.map(weighted).collect();
            let expected = context.gpu.words(&expected)?;
            let kernel = context.kernel("papers/layout", kernel)?;
            let out = context.poisoned(4 * threads)?;
            let args = [
                Arg::Buffer(&context.input),
                Arg::Buffer(&out),
                Arg::U64(threads as u64),
            ];
            let grid = Grid {
                blocks: [threads.div_ceil(128) as u32, 1],
                threads: [128, 1],
            };
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { context.gpu.launch_grid(&kernel, grid, &args) };
            context.check(&out, &expected, launch)?;
            Ok(context.time(launch)?.into())
        },
    )
    .under(READ)
}
