//! Makes samples of scanlines: the checksum and the filters, png_rows.cu and png_unfilter.cu.

use super::THREADS;
use crate::codec::packed::Head;
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use crate::image::Depth;
use anyhow::Result;

/// Bytes of a tile of png_rows.cu, and the fewest rows of a band of png_unfilter.cu.
const TILE: u64 = 16 << 10;
const BAND: u32 = 24;

/// Sums the scanlines up, undoes their filters, and unpacks samples.
pub fn unfilter(head: &Head, bytes: &Buffer, report: Arg, job: &mut Job) -> Result<Buffer> {
    let [kinds, adler, expand] =
        job.kernels("png_rows", ["png_kinds", "png_adler", "png_expand"], "")?;
    let form = match head.step {
        1 => "b1",
        2 => "b2",
        3 => "b3",
        4 => "b4",
        6 => "b6",
        _ => "b8",
    };
    let [flat, wave] = job.kernels("png_unfilter", ["png_flat", "png_wave"], form)?;
    let height = head.height;
    let total = head.bytes as u64;
    let sixteen = head.shape.depth == Depth::Sixteen;
    let (buffer, word) = (Arg::Buffer, Arg::U32);
    let filters = job.alloc(height as usize)?;
    let rows = [word(head.row as u32), word(height)];
    let args = [buffer(bytes), rows[0], rows[1], buffer(&filters), report];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&kinds, height.div_ceil(THREADS), 0, &args) }?;
    let args = [buffer(bytes), Arg::U64(total), report];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&adler, total.div_ceil(TILE) as u32, total, &args) }?;
    let plain = job.alloc(head.row * height as usize)?;
    let args = [
        buffer(bytes),
        rows[0],
        rows[1],
        word(sixteen.into()),
        buffer(&filters),
        buffer(&plain),
        report,
    ];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&flat, height.div_ceil(THREADS / 32), 2 * total, &args) }?;
    let bands = height.div_ceil(BAND);
    let progress = job.zeroed(4 + 4 * bands as usize)?;
    let tail = [word((head.row / head.step) as u32), buffer(&progress)];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&wave, bands, 2 * total, &[&args[..], &tail].concat()) }?;
    let Some(expansion) = &head.expansion else {
        return Ok(plain);
    };
    let samples = job.alloc(head.shape.bytes())?;
    let colours = expansion.palette.len() as u32;
    let palette = job.words(match colours {
        0 => &[0][..],
        _ => &expansion.palette,
    })?;
    let args = [
        buffer(&plain),
        rows[0],
        word(head.width),
        rows[1],
        word(head.bits.into()),
        word(expansion.mode),
        Arg::U64(expansion.key),
        buffer(&palette),
        word(colours),
        buffer(&samples),
        report,
    ];
    let grid = job.reduction_grid(16 * head.shape.bytes() as u64);
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&expand, grid, total + head.shape.bytes() as u64, &args) }?;
    Ok(samples)
}
