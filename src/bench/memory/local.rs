//! The local memory of "Transposing a matrix": an array l[N] of each thread's own, in registers and
//! spilled, with the same N and so the same distance between the threads' data.

use super::READ;
use crate::bench::case::Case;
use crate::bench::context::Sizes;
use crate::bench::table::Table;
use crate::gpu::driver::Grid;
use crate::gpu::launch::papers::local::Local;
use rayon::prelude::*;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let cases = [
        (4, false, "registers_4"),
        (4, true, "spilled_4"),
        (16, false, "registers_16"),
        (16, true, "spilled_16"),
        (64, false, "registers_64"),
        (64, true, "spilled_64"),
        (256, true, "spilled_256"),
    ];
    let case = |(n, spilled, kernel)| local(sizes, n, spilled, kernel);
    let mut cases: Vec<Case> = cases.into_iter().map(case).collect();
    cases.extend([held(sizes, false), held(sizes, true)]);
    cases
}

fn local(sizes: Sizes, n: usize, spilled: bool, kernel: &'static str) -> Case {
    let place = if spilled { "spilled" } else { "registers" };
    let weighted = |own: &[u32]| {
        own.iter().zip(1u32..).fold(0u32, |sum, (&word, weight)| {
            sum.wrapping_add(word.wrapping_mul(weight))
        })
    };
    let id = format!("local-{place}-{n}");
    let name = format!("l[{n}] of each thread, then weighted sum, {place}");
    reduced(sizes, (id, name, "local-memory"), n, kernel, weighted)
}

/// Sixty-four values that are held at once, with or without as many registers.
fn held(sizes: Sizes, tight: bool) -> Case {
    let (id, name, kernel) = match tight {
        false => (
            "pressure-none",
            "64 values held, all in registers",
            "roomy_64",
        ),
        true => (
            "pressure-spilled",
            "64 values held in 32 registers",
            "tight_64",
        ),
    };
    let combined = |own: &[u32]| {
        let all = own.iter().fold(0, |all, word| all ^ word);
        own.iter().zip(1u32..).fold(0u32, |sum, (word, weight)| {
            sum.wrapping_add((word ^ all).wrapping_mul(weight))
        })
    };
    let row = (id.into(), name.into(), "pressure");
    reduced(sizes, row, 64, kernel, combined)
}

/// The id, name and topic of a row.
type Named = (String, String, &'static str);

/// Each thread reduces `n` neighbouring words to one.
fn reduced(
    sizes: Sizes,
    (id, name, topic): Named,
    n: usize,
    kernel: &'static str,
    reduce: fn(&[u32]) -> u32,
) -> Case {
    let threads = sizes.bytes / 4 / n;
    let bytes = (sizes.bytes + 4 * threads) as u64;
    Case::gpu(Table::Memory, id, name, topic, bytes, move |context| {
        let words = context.host.words().par_chunks_exact(n);
        let expected: Vec<u32> = words.map(reduce).collect();
        let expected = context.gpu.words(&expected)?;
        let kernel = context.kernel_named::<Local>(kernel)?;
        let out = context.poisoned(4 * threads)?;
        let grid = Grid::new(threads.div_ceil(128) as u32, 128);
        context.check_and_time(out, &expected, |out| {
            let arguments = Local {
                src: context.input.view(),
                dst: out.view_mut(),
                threads: threads as u64,
            };
            context.gpu.launch_grid(&kernel, grid, arguments)
        })
    })
    .under(READ)
}
