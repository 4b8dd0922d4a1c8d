//! Which thread of a warp reads which word of a segment, and how many multiprocessors read: a warp's lanes permuted and its words
//! misaligned, and the rate against the number of multiprocessors.

use super::READ;
use crate::bench::case::Case;
use crate::bench::context::{Sizes, wrapping_sum};
use crate::bench::table::Table;
use crate::gpu::driver::Grid;
use crate::gpu::launch::papers::memory::{ReadOn, ReadWords};

/// Multiprocessors that read.
pub(super) const MULTIPROCESSORS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let mut cases = vec![
        words(
            sizes,
            "lanes-ordered",
            "read, 4 bytes a lane, in order",
            "permuted",
            "read_words",
            0,
        ),
        words(
            sizes,
            "lanes-permuted",
            "read, 4 bytes a lane, lanes permuted in 128 bytes",
            "permuted",
            "read_permuted",
            0,
        ),
        words(
            sizes,
            "misaligned",
            "read, a warp's 128 bytes begin 16 bytes after a line",
            "misaligned",
            "read_words",
            16,
        ),
    ];
    cases.extend(MULTIPROCESSORS.map(|most| on_multiprocessors(sizes, most)));
    cases
}

/// All words but the last line's are read, from byte `from` on.
fn words(
    sizes: Sizes,
    id: &str,
    name: &str,
    topic: &'static str,
    kernel: &'static str,
    from: usize,
) -> Case {
    let count = sizes.bytes / 4 - 32;
    Case::gpu(
        Table::Memory,
        id,
        name,
        topic,
        4 * count as u64,
        move |context| {
            let kernel = context.kernel_named::<ReadWords>(kernel)?;
            let expected = wrapping_sum(&context.host.words()[from / 4..][..count]);
            let grid = context.filled();
            context.summed(grid, expected, |sums| {
                let arguments = ReadWords {
                    data: context.input.view().from(from)?,
                    n: count as u64,
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .under(READ)
}

/// Blocks on other multiprocessors end at once.
fn on_multiprocessors(sizes: Sizes, most: u32) -> Case {
    let name = match most {
        1 => "read by 1 multiprocessor".into(),
        _ => format!("read by {most} multiprocessors"),
    };
    Case::gpu(
        Table::Memory,
        format!("multiprocessors-{most}"),
        name,
        "multiprocessors",
        sizes.bytes as u64,
        move |context| {
            let kernel = context.kernel::<ReadOn>()?;
            let mut next = context.gpu.words(&[0u32])?;
            let grid = Grid::new(2 * context.facts.multiprocessors, 1024);
            context.summed(grid, context.host.word_sum, |sums| {
                context.gpu.fill(&mut next, 0)?;
                let arguments = ReadOn {
                    data: context.input.view(),
                    n: context.input.len() as u64 / 16,
                    most,
                    next: next.view_mut(),
                    sums,
                };
                context.gpu.launch_grid(&kernel, grid, arguments)
            })
        },
    )
    .under(READ)
}
