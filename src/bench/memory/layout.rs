//! The layout of data in memory: rows, records, scattered lines and cache preference of "Methods of
//! effective organisation of parallel computing on GPUs".

use super::{COPY, READ};
use crate::bench::case::Case;
use crate::bench::context::{Sizes, shuffled, wrapping_sum};
use crate::bench::table::Table;
use crate::gpu::driver::Grid;
use crate::gpu::launch::papers::layout::{Arrays, Gather, Records, Rows, Scattered, Window};
use rayon::prelude::*;

pub(super) fn rows(sizes: Sizes, pitch: usize) -> Case {
    const WIDTH: usize = 120;
    let count = sizes.bytes / 4 / 128;
    let name = match pitch {
        WIDTH => "rows of 480 bytes, unpadded",
        121 => "rows of 480 bytes, 484 from row to row",
        _ => "rows of 480 bytes, padded to 512",
    };
    Case::gpu(
        Table::Memory,
        format!("rows-{}", 4 * pitch),
        name,
        "pitch",
        (count * WIDTH * 4) as u64,
        move |context| {
            let kernel = context.kernel::<Rows>()?;
            let rows = context.host.words().par_chunks_exact(pitch).take(count);
            let expected = rows
                .map(|row| wrapping_sum(&row[..WIDTH]))
                .reduce(|| 0, u32::wrapping_add);
            let grid = Grid::new(16 * context.facts.multiprocessors, 128);
            context.summed(grid, expected, |sums| {
                let arguments = Rows {
                    data: context.input.view(),
                    rows: count as u32,
                    width: WIDTH as u32,
                    pitch: pitch as u32,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .under(READ)
}

pub(super) fn records(sizes: Sizes) -> Vec<Case> {
    let n = sizes.bytes / 12;
    let bytes = 12 * n as u64;
    let structures = Case::gpu(
        Table::Memory,
        "records",
        "c = a + b, array of structures",
        "records",
        bytes,
        move |context| {
            let kernel = context.kernel::<Records>()?;
            let mut expected = context.host.words()[..3 * n].to_vec();
            expected
                .par_chunks_exact_mut(3)
                .for_each(|abc| abc[2] = abc[0].wrapping_add(abc[1]));
            let (expected, abc) = (context.gpu.words(&expected)?, context.changeable(12 * n)?);
            context.check_and_time(abc, &expected, |abc| {
                let arguments = Records {
                    abc: abc.view_mut(),
                    n: n as u64,
                };
                context
                    .gpu
                    .launch_grid(&kernel, context.filled(), arguments)
            })
        },
    );
    let arrays = Case::gpu(
        Table::Memory,
        "arrays",
        "c = a + b, structure of arrays",
        "records",
        bytes,
        move |context| {
            let kernel = context.kernel::<Arrays>()?;
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
            context.check_and_time(c, &expected, |c| {
                let arguments = Arrays {
                    a: a.view(),
                    b: b.view(),
                    c: c.view_mut(),
                    n: n as u64,
                };
                context
                    .gpu
                    .launch_grid(&kernel, context.filled(), arguments)
            })
        },
    );
    vec![structures.under(COPY), arrays.under(COPY)]
}

pub(super) fn window(sizes: Sizes, shared: u8, id: &str) -> Case {
    const WORDS: usize = 16 << 10;
    const TURNS: usize = 64;
    let blocks = (sizes.bytes / (4 * WORDS)).min(128);
    let name = match shared {
        0 => "64 KiB a block read 64 times, L1 preferred",
        50 => "64 KiB a block read 64 times, half and half",
        _ => "64 KiB a block read 64 times, shared preferred",
    };
    Case::gpu(
        Table::Memory,
        format!("window-{id}"),
        name,
        "carveout",
        (blocks * 4 * WORDS * TURNS) as u64,
        move |context| {
            let kernel = context.kernel::<Window>()?;
            context.gpu.prefer_shared(&kernel, shared)?;
            let once = wrapping_sum(&context.host.words()[..blocks * WORDS]);
            let grid = Grid::new(blocks as u32, 1024);
            let expected = once.wrapping_mul(TURNS as u32);
            context.summed(grid, expected, |sums| {
                let arguments = Window {
                    data: context.input.view(),
                    words: WORDS as u32,
                    turns: TURNS as u32,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .touching((blocks * 4 * WORDS) as u64)
}

pub(super) fn gather(sizes: Sizes, scattered: bool) -> Case {
    let n = sizes.bytes / 8;
    let (id, name) = if scattered {
        ("gather-shuffled", "A[index[i]], scattered")
    } else {
        ("gather-ordered", "A[index[i]], in order")
    };
    Case::gpu(
        Table::Memory,
        id,
        name,
        "indirect",
        12 * n as u64,
        move |context| {
            let kernel = context.kernel::<Gather>()?;
            let words = context.host.words();
            let number = |i| if scattered { shuffled(i, n) } else { i };
            let index: Vec<u32> = (0..n).into_par_iter().map(|i| number(i) as u32).collect();
            let expected: Vec<u32> = index.par_iter().map(|&i| words[i as usize]).collect();
            let (index, expected) = (context.gpu.words(&index)?, context.gpu.words(&expected)?);
            let out = context.poisoned(4 * n)?;
            context.check_and_time(out, &expected, |out| {
                let arguments = Gather {
                    data: context.input.view(),
                    index: index.view(),
                    out: out.view_mut(),
                    n: n as u64,
                };
                // SAFETY: every index is below `n`, and the main input has twice as many words.
                unsafe {
                    context
                        .gpu
                        .launch_trusting(&kernel, context.filled(), arguments)
                }
            })
        },
    )
    .under(COPY)
}

pub(super) fn scattered(sizes: Sizes, lines: usize, l1: bool) -> Case {
    let groups = sizes.bytes / (128 * lines);
    let (cache, kernel, kept) = if l1 {
        ("l1", "scattered_l1", "kept in L1")
    } else {
        ("l2", "scattered_l2", "L2 only")
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
            let kernel = context.kernel_named::<Scattered>(kernel)?;
            let grid = context.filled();
            context.summed(grid, expected, |sums| {
                let arguments = Scattered {
                    data: context.input.view(),
                    groups: groups as u32,
                    lines: lines as u32,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .touching(sizes.bytes as u64)
    .under(READ)
}
