//! Columns and pointers of "Methods of effective organisation of parallel computing on GPUs": a warp
//! down one column of a row-major matrix, against the transposed store; rows and columns through a
//! pointer for each row.

use super::READ;
use crate::bench::case::Case;
use crate::bench::context::{BenchContext, Sizes, transposed};
use crate::bench::figure::Time;
use crate::bench::table::Table;
use crate::gpu::driver::{self, ViewMut};
use crate::gpu::launch::papers::layout::{Column, DirectRows, Point, PointerColumn, PointerRows};
use anyhow::Result;
use std::rc::Rc;

/// Words of a row: a line of the cache.
const WIDTH: usize = 32;

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let column = (sizes.bytes / WIDTH) as u64;
    let all = sizes.bytes as u64;
    let case = |id: &str, name: &str, topic, bytes, work: fn(&BenchContext) -> Result<Time>| {
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
            |context| direct_columns(context, "column", &context.input),
        ),
        case(
            "column-transposed",
            "a warp along a row, stored transposed",
            "column",
            column,
            |context| {
                let turned = context.kept("columns", || transposed(context.host.words(), WIDTH))?;
                direct_columns(context, "column_transposed", &turned)
            },
        ),
        case(
            "pointer-column",
            "A[i][j] through row pointers, down a column",
            "pointers",
            column,
            pointer_columns,
        ),
        case(
            "direct-rows",
            "A[i·32 + j], along rows",
            "pointers",
            all,
            direct_rows,
        ),
        case(
            "pointer-rows",
            "A[i][j] through row pointers, along rows",
            "pointers",
            all,
            |context| pointer_rows(context, 1),
        ),
        case(
            "pointer-rows-shuffled",
            "A[i][j] through row pointers, rows scattered",
            "pointers",
            all,
            |context| pointer_rows(context, 0x9E37_79B1),
        ),
    ]
}

fn rows(context: &BenchContext) -> usize {
    context.input.len() / 4 / WIDTH
}

/// A pointer to each row of the main input; `step`, an odd number, changes their order.
fn pointers(context: &BenchContext, step: u32) -> Result<Rc<driver::Buffer>> {
    let rows = rows(context);
    context.kept_buffer(&format!("pointers {step}"), || {
        let mut table = context.gpu.words(&vec![0u64; rows])?;
        let kernel = context.kernel::<Point>()?;
        let arguments = Point {
            data: context.input.view(),
            pitch: WIDTH as u64,
            rows: rows as u32,
            step,
            table: table.view_mut(),
        };
        context
            .gpu
            .launch_grid(&kernel, context.filled(), arguments)?;
        Ok(table)
    })
}

/// Reads one column by `launch`. Each launch reads another, eight words from the last: what it reads is in no
/// sector of 32 bytes that a recent launch has brought to the cache.
fn columns(context: &BenchContext, launch: impl Fn(u32, ViewMut) -> Result<()>) -> Result<Time> {
    let column = |k: usize| (8 * k + k / 4) % WIDTH;
    let first = context.host.words().chunks_exact(WIDTH).map(|row| row[0]);
    let expected = first.fold(0, u32::wrapping_add);
    let mut turn = 0;
    context.summed(context.filled(), expected, |sums| {
        let column = column(turn) as u32;
        turn = (turn + 1) % WIDTH;
        launch(column, sums)
    })
}

fn direct_columns(
    context: &BenchContext,
    kernel: &'static str,
    data: &driver::Buffer,
) -> Result<Time> {
    let kernel = context.kernel_named::<Column>(kernel)?;
    columns(context, |column, sums| {
        let arguments = Column {
            data: data.view(),
            rows: rows(context) as u32,
            width: WIDTH as u32,
            column,
            sums,
        };
        context
            .gpu
            .launch_grid(&kernel, context.filled(), arguments)
    })
}

fn pointer_columns(context: &BenchContext) -> Result<Time> {
    let kernel = context.kernel::<PointerColumn>()?;
    let table = pointers(context, 1)?;
    columns(context, |column, sums| {
        let arguments = PointerColumn {
            table: table.view(),
            rows: rows(context) as u32,
            column,
            sums,
        };
        // SAFETY: the table points to rows of WIDTH words of the main input, which is there as long as the context.
        unsafe {
            context
                .gpu
                .launch_trusting(&kernel, context.filled(), arguments)
        }
    })
}

fn direct_rows(context: &BenchContext) -> Result<Time> {
    let kernel = context.kernel::<DirectRows>()?;
    let grid = context.filled();
    context.summed(grid, context.host.word_sum, |sums| {
        let arguments = DirectRows {
            data: context.input.view(),
            rows: rows(context) as u32,
            sums,
        };
        context.gpu.launch_grid(&kernel, grid, arguments)
    })
}

fn pointer_rows(context: &BenchContext, step: u32) -> Result<Time> {
    let kernel = context.kernel::<PointerRows>()?;
    let table = pointers(context, step)?;
    let grid = context.filled();
    context.summed(grid, context.host.word_sum, |sums| {
        let arguments = PointerRows {
            table: table.view(),
            rows: rows(context) as u32,
            sums,
        };
        // SAFETY: the table points to rows of 32 words of the main input, which is there as long as the context.
        unsafe { context.gpu.launch_trusting(&kernel, grid, arguments) }
    })
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
