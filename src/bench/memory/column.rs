//! Columns and pointers of "Methods of effective organisation of parallel computing on GPUs": a warp
//! down one column of a row-major matrix, against the transposed store; rows and columns through a
//! pointer for each row.

use super::READ;
use crate::bench::case::{Case, Measured};
use crate::bench::context::{BenchContext, Sizes, transposed};
use crate::bench::table::Table;
use crate::device::cuda::{self, Arg};
use anyhow::Result;
use std::cell::Cell;
use std::rc::Rc;

/// Words of a row: a line of the cache.
const WIDTH: usize = 32;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let column = (sizes.bytes / WIDTH) as u64;
    let all = sizes.bytes as u64;
    let case = |id: &str, name: &str, topic, bytes, work: fn(&BenchContext) -> Result<Measured>| {
        Case::gpu(Table::Memory, id, name, topic, bytes, work)
            .touching(all)
            .under(READ)
    };
    vec![
        case(
            "column",
            "a warp down a column, row-major",
            "column",
            column,
            |context| columns(context, "column", &context.input, false),
        ),
        case(
            "column-transposed",
            "a warp along a row, stored transposed",
            "column",
            column,
            |context| {
                let turned = context.kept("columns", || transposed(context.host.words(), WIDTH))?;
                columns(context, "column_transposed", &turned, false)
            },
        ),
        case(
            "pointer-column",
            "A[i][j] through row pointers, down a column",
            "pointers",
            column,
            |context| columns(context, "pointer_column", &*pointers(context, 1)?, true),
        ),
        case(
            "direct-rows",
            "A[i·32 + j], along rows",
            "pointers",
            all,
            |context| by_rows(context, "direct_rows", &context.input),
        ),
        case(
            "pointer-rows",
            "A[i][j] through row pointers, along rows",
            "pointers",
            all,
            |context| by_rows(context, "pointer_rows", &*pointers(context, 1)?),
        ),
        case(
            "pointer-rows-shuffled",
            "A[i][j] through row pointers, rows scattered",
            "pointers",
            all,
            |context| by_rows(context, "pointer_rows", &*pointers(context, 0x9E37_79B1)?),
        ),
    ]
}

fn rows(context: &BenchContext) -> usize {
    context.input.len() / 4 / WIDTH
}

/// A pointer to each row of the main input; `step`, an odd number, changes their order.
fn pointers(context: &BenchContext, step: u32) -> Result<Rc<cuda::Buffer>> {
    let rows = rows(context);
    let table = context.kept(&format!("pointers {step}"), || vec![0u64; rows])?;
    let kernel = context.kernel("papers/layout", "point")?;
    let args = [
        Arg::Buffer(&context.input),
        Arg::U64(WIDTH as u64),
        Arg::U32(rows as u32),
        Arg::U32(step),
        Arg::Buffer(&table),
    ];
    // SAFETY: the arguments are those of the kernel's header; the table has a word for each row.
    unsafe { context.gpu.launch_grid(&kernel, context.filled(), &args) }?;
    Ok(table)
}

/// Reads one column. Each launch reads another, eight words from the last: what it reads is in no
/// sector of 32 bytes that a recent launch has brought to the cache.
fn columns(
    context: &BenchContext,
    kernel: &'static str,
    data: &cuda::Buffer,
    by_pointers: bool,
) -> Result<Measured> {
    let rows = rows(context);
    let kernel = context.kernel("papers/layout", kernel)?;
    let column = |k: usize| (8 * k + k / 4) % WIDTH;
    let first = context.host.words().chunks_exact(WIDTH).map(|row| row[0]);
    let expected = first.fold(0, u32::wrapping_add);
    let grid = context.filled();
    let sums = context.sums(grid)?;
    let turn = Cell::new(0);
    let launch = || {
        let column = Arg::U32(column(turn.get()) as u32);
        turn.set((turn.get() + 1) % WIDTH);
        let (rows, width) = (Arg::U32(rows as u32), Arg::U32(WIDTH as u32));
        let args = match by_pointers {
            true => vec![Arg::Buffer(data), rows, column, Arg::Buffer(&sums)],
            false => vec![Arg::Buffer(data), rows, width, column, Arg::Buffer(&sums)],
        };
        // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
        unsafe { context.gpu.launch_grid(&kernel, grid, &args) }
    };
    context.check_sum(&sums, expected, launch)?;
    Ok(context.time(launch)?.into())
}

fn by_rows(context: &BenchContext, kernel: &'static str, data: &cuda::Buffer) -> Result<Measured> {
    let kernel = context.kernel("papers/layout", kernel)?;
    let grid = context.filled();
    let sums = context.sums(grid)?;
    let rows = Arg::U32(rows(context) as u32);
    let args = |sums| vec![Arg::Buffer(data), rows, sums];
    let time = context.summed(&kernel, grid, context.host.word_sum, args, &sums)?;
    Ok(time.into())
}

#[cfg(test)]
mod tests {
    use super::WIDTH;

    #[test]
    fn launches_read_every_column_once() {
        let mut columns: Vec<usize> = (0..WIDTH).map(|k| (8 * k + k / 4) % WIDTH).collect();
        columns.sort_unstable();
        assert!(columns.into_iter().eq(0..WIDTH));
    }
}
