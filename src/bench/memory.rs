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

    pub(super) fn grid(self, lab: &BenchContext) -> Grid {
        match self {
            Threads::Paper => HABR,
            Threads::Filled => lab.filled(),
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
pub(super) fn pieces(lab: &BenchContext, piece: usize) -> [Arg<'static>; 2] {
    let count = lab.input.len() / 2 / piece;
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
        move |lab| {
            let kernel = lab.kernel("papers/memory", "read")?;
            let grid = threads.grid(lab);
            let (sums, [count, piece]) = (lab.sums(grid)?, pieces(lab, PIECE));
            let args = |sums| vec![Arg::Buffer(&lab.input), count, piece, sums];
            Ok(lab
                .summed(&kernel, grid, lab.host.sample_sum, args, &sums)?
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
        move |lab| {
            let kernel = lab.kernel("papers/memory", "copy")?;
            let (out, [count, piece]) = (lab.poisoned(lab.input.len())?, pieces(lab, PIECE));
            let args = [Arg::Buffer(&lab.input), Arg::Buffer(&out), count, piece];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { lab.gpu.launch_grid(&kernel, threads.grid(lab), &args) };
            lab.check(&out, &lab.input, launch)?;
            Ok(lab.time(launch)?.into())
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
            move |lab| indexed(lab, threads, levels, piece, scattered),
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
    lab: &BenchContext,
    threads: Threads,
    levels: u32,
    piece: usize,
    scattered: bool,
) -> Result<Measured> {
    let count = lab.input.len() / 2 / piece;
    let number = move |j: usize| if scattered { shuffled(j, count) } else { j };
    let name = format!("pieces {piece} {scattered}");
    let index = lab.kept(&name, || {
        (0..count).map(|j| (number(j) * piece) as u32).collect()
    })?;
    let order = lab.kept(&format!("order of {name}"), || {
        (0..count).map(|j| number(j) as u32).collect()
    })?;
    let grid = threads.grid(lab);
    let (sums, [count, length]) = (lab.sums(grid)?, pieces(lab, piece));
    let name = if levels == 2 {
        "double_index"
    } else {
        "triple_index"
    };
    let kernel = lab.kernel("papers/memory", name)?;
    let args = [
        Arg::Buffer(&lab.input),
        count,
        length,
        Arg::Buffer(&sums),
        Arg::Buffer(&index),
        Arg::Buffer(&order),
    ];
    let launch = || {
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe {
            lab.gpu
                .launch_grid(&kernel, grid, &args[..2 + levels as usize + 1])
        }
    };
    lab.check_sum(&sums, lab.host.sample_sum, launch)?;
    Ok(lab.time(launch)?.into())
}

fn wide(bytes: u64) -> Vec<Case> {
    vec![
        Case::gpu(
            Table::Memory,
            "read-wide",
            "read, 16 bytes an access",
            "wide",
            bytes,
            |lab| Ok(read_wide(lab)?.into()),
        )
        .under(READ),
        Case::gpu(
            Table::Memory,
            "copy-wide",
            "copy, 16 bytes an access",
            "wide",
            2 * bytes,
            |lab| Ok(copy_wide(lab)?.into()),
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
        move |lab| {
            let kernel = lab.kernel("papers/memory", "read_words")?;
            let grid = Grid {
                blocks: [lab.facts.multiprocessors * threads / 64, 1],
                threads: [64, 1],
            };
            let (sums, words) = (lab.sums(grid)?, Arg::U64(lab.input.len() as u64 / 4));
            let args = |sums| vec![Arg::Buffer(&lab.input), words, sums];
            Ok(lab
                .summed(&kernel, grid, lab.host.word_sum, args, &sums)?
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
        move |lab| {
            let kernel = lab.kernel("papers/layout", "rows")?;
            let rows = lab.host.words().par_chunks_exact(pitch).take(count);
            let expected = rows
                .map(|row| wrapping_sum(&row[..WIDTH]))
                .reduce(|| 0, u32::wrapping_add);
            let grid = Grid {
                blocks: [16 * lab.facts.multiprocessors, 1],
                threads: [128, 1],
            };
            let sums = lab.sums(grid)?;
            let numbers = [count, WIDTH, pitch].map(|number| Arg::U32(number as u32));
            let args = |sums| {
                vec![
                    Arg::Buffer(&lab.input),
                    numbers[0],
                    numbers[1],
                    numbers[2],
                    sums,
                ]
            };
            Ok(lab.summed(&kernel, grid, expected, args, &sums)?.into())
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
        move |lab| {
            let kernel = lab.kernel("papers/layout", "records")?;
            let mut expected = lab.host.words()[..3 * n].to_vec();
            expected
                .par_chunks_exact_mut(3)
                .for_each(|abc| abc[2] = abc[0].wrapping_add(abc[1]));
            let (expected, abc) = (lab.gpu.words(&expected)?, lab.changeable(12 * n)?);
            let args = [Arg::Buffer(&abc), Arg::U64(n as u64)];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { lab.gpu.launch_grid(&kernel, lab.filled(), &args) };
            lab.check(&abc, &expected, launch)?;
            Ok(lab.time(launch)?.into())
        },
    );
    let arrays = Case::gpu(
        Table::Memory,
        "arrays",
        "c = a + b, structure of arrays",
        "records",
        bytes,
        move |lab| {
            let kernel = lab.kernel("papers/layout", "arrays")?;
            let (a, b) = lab.host.words()[..2 * n].split_at(n);
            let sums: Vec<u32> = a
                .par_iter()
                .zip(b)
                .map(|(a, &b)| a.wrapping_add(b))
                .collect();
            let (expected, a, b) = (lab.gpu.words(&sums)?, lab.gpu.words(a)?, lab.gpu.words(b)?);
            let c = lab.poisoned(4 * n)?;
            let args = [
                Arg::Buffer(&a),
                Arg::Buffer(&b),
                Arg::Buffer(&c),
                Arg::U64(n as u64),
            ];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { lab.gpu.launch_grid(&kernel, lab.filled(), &args) };
            lab.check(&c, &expected, launch)?;
            Ok(lab.time(launch)?.into())
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
        move |lab| {
            let kernel = lab.kernel("papers/layout", "window")?;
            lab.gpu.prefer_shared(&kernel, shared)?;
            let once = wrapping_sum(&lab.host.words()[..blocks * WORDS]);
            let grid = Grid {
                blocks: [blocks as u32, 1],
                threads: [1024, 1],
            };
            let sums = lab.sums(grid)?;
            let (words, turns) = (Arg::U32(WORDS as u32), Arg::U32(TURNS as u32));
            let args = |sums| vec![Arg::Buffer(&lab.input), words, turns, sums];
            let expected = once.wrapping_mul(TURNS as u32);
            Ok(lab.summed(&kernel, grid, expected, args, &sums)?.into())
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
        move |lab| {
            let kernel = lab.kernel("papers/layout", "gather")?;
            let words = lab.host.words();
            let number = |i| if scattered { shuffled(i, n) } else { i };
            let index: Vec<u32> = (0..n).into_par_iter().map(|i| number(i) as u32).collect();
            let expected: Vec<u32> = index.par_iter().map(|&i| words[i as usize]).collect();
            let (index, expected) = (lab.gpu.words(&index)?, lab.gpu.words(&expected)?);
            let out = lab.poisoned(4 * n)?;
            let args = [
                Arg::Buffer(&lab.input),
                Arg::Buffer(&index),
                Arg::Buffer(&out),
                Arg::U64(n as u64),
            ];
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { lab.gpu.launch_grid(&kernel, lab.filled(), &args) };
            lab.check(&out, &expected, launch)?;
            Ok(lab.time(launch)?.into())
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
        move |lab| {
            let words = lab.host.words();
            let expected: Vec<u32> = words.par_chunks_exact(LENGTH).map(serial_sum).collect();
            let expected = lab.gpu.words(&expected)?;
            let turned;
            let data: &cuda::Buffer = if stored_transposed {
                turned = lab.gpu.words(&transposed(words, LENGTH))?;
                &turned
            } else {
                &lab.input
            };
            let kernel = lab.kernel("papers/layout", kernel)?;
            let sums = lab.poisoned(4 * lines)?;
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
            let launch = || unsafe { lab.gpu.launch_grid(&kernel, grid, &args) };
            lab.check(&sums, &expected, launch)?;
            Ok(lab.time(launch)?.into())
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
        move |lab| {
            let words = lab.host.words();
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
            let kernel = lab.kernel("papers/layout", kernel)?;
            let grid = lab.filled();
            let sums = lab.sums(grid)?;
            let (groups, lines) = (Arg::U32(groups as u32), Arg::U32(lines as u32));
            let args = |sums| vec![Arg::Buffer(&lab.input), groups, lines, sums];
            Ok(lab.summed(&kernel, grid, expected, args, &sums)?.into())
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
        move |lab| {
            let weighted = |own: &[u32]| {
                own.iter().zip(1u32..).fold(0u32, |sum, (&word, weight)| {
                    sum.wrapping_add(word.wrapping_mul(weight))
                })
            };
            let words = lab.host.words().par_chunks_exact(n);
            let expected: Vec<u32> = words.map(weighted).collect();
            let expected = lab.gpu.words(&expected)?;
            let kernel = lab.kernel("papers/layout", kernel)?;
            let out = lab.poisoned(4 * threads)?;
            let args = [
                Arg::Buffer(&lab.input),
                Arg::Buffer(&out),
                Arg::U64(threads as u64),
            ];
            let grid = Grid {
                blocks: [threads.div_ceil(128) as u32, 1],
                threads: [128, 1],
            };
            // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
            let launch = || unsafe { lab.gpu.launch_grid(&kernel, grid, &args) };
            lab.check(&out, &expected, launch)?;
            Ok(lab.time(launch)?.into())
        },
    )
    .under(READ)
}
