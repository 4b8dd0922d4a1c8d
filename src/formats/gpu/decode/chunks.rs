//! Makes an image of a TIFF's inflated strips or tiles: kernels/tiff_rows.cu.

use crate::formats::packed::Chunks;
use crate::gpu::driver::{Buffer, View};
use crate::gpu::job::Job;
use crate::gpu::launch::common::WARPS;
use crate::gpu::launch::tiff_rows::TiffRows;
use crate::image::{Depth, Shape};
use anyhow::Result;

/// Puts the rows of all chunks into their places, as samples in memory are.
pub fn place(
    shape: &Shape,
    chunks: &Chunks,
    bytes: &Buffer,
    report: View,
    job: &mut Job,
) -> Result<Buffer> {
    let form = match shape.depth.bytes() {
        1 => "s1",
        2 => "s2",
        _ => "s4",
    };
    let rows = job.kernel::<TiffRows>(form)?;
    let kind = match shape.depth {
        Depth::Float => 2,
        _ => u32::from(chunks.signed),
    };
    let mut image = job.alloc(shape.bytes())?;
    let arguments = TiffRows {
        bytes: bytes.view(),
        width: shape.width as u32,
        height: shape.height as u32,
        channels: shape.channels as u32,
        chunk_width: chunks.width as u32,
        chunk_height: chunks.height as u32,
        differences: chunks.differences.into(),
        swap: chunks.big_endian.into(),
        kind,
        image: image.view_mut(),
        report,
    };
    let all = match chunks.tiled {
        true => {
            let across = shape.width.div_ceil(chunks.width);
            across * shape.height.next_multiple_of(chunks.height)
        }
        false => shape.height,
    };
    let traffic = 2 * shape.bytes() as u64;
    job.launch(&rows, (all as u32).div_ceil(WARPS), traffic, arguments)?;
    Ok(image)
}
