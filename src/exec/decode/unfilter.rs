//! Makes samples of a PNG's scanlines: kernels/png_rows.cu and png_unfilter.cu.

use crate::codec::packed::{Head, Scanlines};
use crate::device::cuda::{Arg, Buffer};
use crate::device::job::Job;
use crate::exec::inflate::THREADS;
use crate::image::Depth;
use anyhow::Result;

/// The fewest rows of a band of png_unfilter.cu.
const BAND: u32 = 24;

/// Undoes the filters of scanlines, and unpacks samples.
pub fn unfilter(
    head: &Head,
    scanlines: &Scanlines,
    bytes: &Buffer,
    report: Arg,
    job: &mut Job,
) -> Result<Buffer> {
    let [kinds, expand] = job.kernels("png_rows", ["png_kinds", "png_expand"], "")?;
    let &Scanlines {
        width,
        height,
        bits,
        row,
        step,
        ref expansion,
    } = scanlines;
    let form = match step {
        1 => "b1",
        2 => "b2",
        3 => "b3",
        4 => "b4",
        6 => "b6",
        _ => "b8",
    };
    let [flat, wave] = job.kernels("png_unfilter", ["png_flat", "png_wave"], form)?;
    let total = head.streams.bytes as u64;
    let sixteen = head.shape.depth == Depth::Sixteen;
    let (buffer, word) = (Arg::Buffer, Arg::U32);
    let filters = job.scratch(height as usize)?;
    let rows = [word(row as u32), word(height)];
    let args = [buffer(bytes), rows[0], rows[1], buffer(&filters), report];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&kinds, height.div_ceil(THREADS), 0, &args) }?;
    let plain = job.alloc(row * height as usize)?;
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
    let tail = [word((row / step) as u32), buffer(&progress)];
    // SAFETY: the arguments are those of the kernel's header, and their counts are the buffers'.
    unsafe { job.launch(&wave, bands, 2 * total, &[&args[..], &tail].concat()) }?;
    let Some(expansion) = expansion else {
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
        word(width),
        rows[1],
        word(bits.into()),
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
