//! Makes an image of a TIFF's inflated strips or tiles: kernels/tiff_rows.cu.

use crate::codec::packed::Chunks;
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use crate::image::{Depth, Shape};
use anyhow::Result;

/// Rows of a block of threads.
const ROWS: usize = 8;

/// Puts the rows of all chunks into their places, as samples in memory are.
pub fn place(
    shape: &Shape,
    chunks: &Chunks,
    bytes: &Buffer,
    report: Arg,
    job: &mut Job,
) -> Result<Buffer> {
    let form = match shape.depth.bytes() {
        1 => "s1",
        2 => "s2",
        _ => "s4",
    };
    let [rows] = job.kernels("tiff_rows", ["tiff_rows"], form)?;
    let kind = match shape.depth {
        Depth::Float => 2,
        _ => u32::from(chunks.signed),
    };
    let image = job.alloc(shape.bytes())?;
    let sizes = [shape.width, shape.height, shape.channels];
    let sizes = [sizes, [chunks.width, chunks.height, 0]].concat();
    let mut args = vec![Arg::Buffer(bytes)];
    args.extend(sizes[..5].iter().map(|&size| Arg::U32(size as u32)));
    args.extend([
        Arg::U32(chunks.differences.into()),
        Arg::U32(chunks.big_endian.into()),
        Arg::U32(kind),
        Arg::Buffer(&image),
        report,
    ]);
    let all = match chunks.tiled {
        true => {
            let across = shape.width.div_ceil(chunks.width);
            across * shape.height.next_multiple_of(chunks.height)
        }
        false => shape.height,
    };
    let traffic = 2 * shape.bytes() as u64;
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&rows, all.div_ceil(ROWS) as u32, traffic, &args) }?;
    Ok(image)
}
