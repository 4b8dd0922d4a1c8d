//! The width of accesses, of "GPGPU optimisation by the example of a sum": the same loop and grid with 2 to 16 bytes; and the same text's
//! texture fetches.

use super::{COPY, READ};
use crate::bench::case::Case;
use crate::bench::ceilings::{copy_wide, read_wide};
use crate::bench::context::Sizes;
use crate::bench::table::Table;
use crate::gpu::launch::papers::memory::{CopyBy, ReadTexture};

/// Bytes of an access, and the kernels.
pub(super) const WIDTHS: [(u32, &str); 4] = [
    (2, "copy_by_2"),
    (4, "copy_by_4"),
    (8, "copy_by_8"),
    (16, "copy_by_16"),
];

pub(super) fn cases(sizes: Sizes) -> Vec<Case> {
    let bytes = sizes.bytes as u64;
    let mut cases: Vec<Case> = WIDTHS
        .map(|(width, kernel)| copied(bytes, width, kernel))
        .into();
    cases.extend([
        Case::gpu(
            Table::Memory,
            "read-wide",
            "read, 16 bytes an access",
            "wide",
            bytes,
            read_wide,
        )
        .under(READ),
        Case::gpu(
            Table::Memory,
            "copy-wide",
            "copy, 16 bytes an access, one a thread",
            "wide",
            2 * bytes,
            copy_wide,
        )
        .under(COPY),
        texture(sizes),
    ]);
    cases
}

fn copied(bytes: u64, width: u32, kernel: &'static str) -> Case {
    Case::gpu(
        Table::Memory,
        format!("copy-by-{width}"),
        format!("copy, {width} bytes an access, the same loop"),
        "wide",
        2 * bytes,
        move |context| {
            let kernel = context.kernel_named::<CopyBy>(kernel)?;
            let out = context.poisoned(context.input.len())?;
            context.check_and_time(out, &context.input, |out| {
                let arguments = CopyBy {
                    src: context.input.view(),
                    dst: out.view_mut(),
                    n: context.input.len() as u64 / 16,
                };
                context
                    .gpu
                    .launch_grid(&kernel, context.filled(), arguments)
            })
        },
    )
    .under(COPY)
}

/// The main input as a square of texels.
fn texture(sizes: Sizes) -> Case {
    Case::gpu(
        Table::Memory,
        "read-texture",
        "read, a texture object fetched row after row",
        "texture",
        sizes.bytes as u64,
        |context| {
            let kernel = context.kernel::<ReadTexture>()?;
            let side = context.host.sizes.large_side();
            let texture = context.gpu.texture(&context.input, side, side)?;
            let grid = context.filled();
            context.summed(grid, context.host.word_sum, |sums| {
                let arguments = ReadTexture {
                    texture: texture.object(),
                    width: side as u32,
                    height: side as u32,
                    sums,
                };
                // SAFETY: the texture object has as many words.
                unsafe { context.gpu.launch_trusting(&kernel, grid, arguments) }
            })
        },
    )
    .under(READ)
}
