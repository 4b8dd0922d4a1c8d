//! Makes an image of the inflated strips or tiles of a TIFF: kernels/tiff_rows.cu.

use crate::formats::packed::Tiles;
use crate::gpu::driver::{Buffer, View};
use crate::gpu::job::Job;
use crate::gpu::launch::common::WARPS;
use crate::gpu::launch::tiff_rows::TiffRows;
use crate::image::{Depth, Shape};
use anyhow::Result;

/// The values of the kernel's parameter `kind`.
const UNSIGNED: u32 = 0;
const SIGNED: u32 = 1;
const FLOAT: u32 = 2;

/// Queues the conversion of all rows of all tiles to the samples of an image.
pub fn assemble(
    shape: &Shape,
    tiles: &Tiles,
    bytes: &Buffer,
    report: View,
    job: &mut Job,
) -> Result<Buffer> {
    let form = match shape.depth.bytes() {
        1 => "s1",
        2 => "s2",
        _ => "s4",
    };
    let kernel = job.kernel::<TiffRows>(form)?;
    let kind = match shape.depth {
        Depth::Float => FLOAT,
        _ if tiles.signed => SIGNED,
        _ => UNSIGNED,
    };
    let mut image = job.alloc(shape.bytes())?;
    let arguments = TiffRows {
        bytes: bytes.view(),
        width: shape.width as u32,
        height: shape.height as u32,
        channels: shape.channels as u32,
        chunk_width: tiles.width as u32,
        chunk_height: tiles.height as u32,
        differences: tiles.differences.into(),
        swap: tiles.big_endian.into(),
        kind,
        image: image.view_mut(),
        report,
    };
    let rows_of_tiles = if tiles.tiled {
        let across = shape.width.div_ceil(tiles.width);
        across * shape.height.next_multiple_of(tiles.height)
    } else {
        shape.height
    };
    let grid = (rows_of_tiles as u32).div_ceil(WARPS);
    job.launch(&kernel, grid, 2 * shape.bytes() as u64, arguments)?;
    Ok(image)
}
