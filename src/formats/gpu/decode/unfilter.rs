//! Makes samples of a PNG's scanlines: kernels/png_rows.cu and png_unfilter.cu.

use crate::formats::gpu::inflate::Records;
use crate::formats::packed::{Expansion, ExpansionMode, Head, Scanlines};
use crate::gpu::driver::{Buffer, Kernel};
use crate::gpu::job::Job;
use crate::gpu::launch::common::{BLOCK, WARPS};
use crate::gpu::launch::png_rows::{
    GREY, GREY_KEY, PALETTE, PALETTE_OPACITY, PngExpand, PngKinds, RGB_KEY,
};
use crate::gpu::launch::png_unfilter::{PngFlat, PngWave, SPARSE};
use crate::image::Depth;
use anyhow::Result;

/// Queues the undoing of the filters, and the expansion of the stored pixels, if they need it.
pub fn unfilter(
    head: &Head,
    scanlines: &Scanlines,
    bytes: &mut Buffer,
    records: &mut Records,
    job: &mut Job,
) -> Result<Buffer> {
    let read_filters = job.kernel::<PngKinds>("")?;
    let expand = job.kernel::<PngExpand>("")?;
    let form = match scanlines.pixel_bytes {
        1 => "b1",
        2 => "b2",
        3 => "b3",
        4 => "b4",
        6 => "b6",
        _ => "b8",
    };
    let unfilter_flat = job.kernel::<PngFlat>(form)?;
    let unfilter_wave = job.kernel::<PngWave>(form)?;
    let (row, height) = (scanlines.row_bytes as u32, scanlines.height);
    let traffic = 2 * head.streams.output as u64;
    let swap = (head.shape.depth == Depth::Sixteen).into();

    // The filter types, checked, in an array of their own.
    let mut filters = job.scratch(height as usize)?;
    let arguments = PngKinds {
        bytes: bytes.view_mut(),
        row,
        height,
        filters: filters.view_mut(),
        report: records.report_mut(),
    };
    job.launch(&read_filters, height.div_ceil(BLOCK), 0, arguments)?;

    // Of the next two kernels only one does something: `png_flat` if no row needs the row above it, `png_wave` otherwise.
    let mut pixels = job.alloc(scanlines.row_bytes * height as usize)?;
    let arguments = PngFlat {
        bytes: bytes.view(),
        row,
        height,
        swap,
        filters: filters.view(),
        image: pixels.view_mut(),
        report: records.report(),
    };
    job.launch(&unfilter_flat, height.div_ceil(WARPS), traffic, arguments)?;
    let bands = height.div_ceil(SPARSE);
    let mut progress = job.zeroed(4 + 4 * bands as usize)?;
    let arguments = PngWave {
        bytes: bytes.view(),
        row,
        height,
        swap,
        filters: filters.view(),
        image: pixels.view_mut(),
        report: records.report(),
        width: (scanlines.row_bytes / scanlines.pixel_bytes) as u32,
        progress: progress.view_mut(),
    };
    job.launch(&unfilter_wave, bands, traffic, arguments)?;

    match &scanlines.expansion {
        Some(expansion) => {
            expand_pixels(head, scanlines, expansion, &pixels, &expand, records, job)
        }
        None => Ok(pixels),
    }
}

/// Queues the expansion of stored pixels to samples.
fn expand_pixels(
    head: &Head,
    scanlines: &Scanlines,
    expansion: &Expansion,
    pixels: &Buffer,
    kernel: &Kernel<PngExpand>,
    records: &mut Records,
    job: &mut Job,
) -> Result<Buffer> {
    let mut samples = job.alloc(head.shape.bytes())?;
    let colours = expansion.palette.len() as u32;
    // The kernel's palette must not be empty.
    let palette = match colours {
        0 => &[0][..],
        _ => &expansion.palette,
    };
    let palette = job.words(palette)?;
    let arguments = PngExpand {
        rows: pixels.view(),
        row: scanlines.row_bytes as u32,
        width: scanlines.width,
        height: scanlines.height,
        bits: scanlines.bits.into(),
        mode: kernel_mode(expansion.mode),
        key: expansion.key,
        palette: palette.view(),
        colours,
        samples: samples.view_mut(),
        report: records.report_mut(),
    };
    let bytes = head.shape.bytes() as u64;
    let grid = job.reduction_grid(16 * bytes);
    let traffic = head.streams.output as u64 + bytes;
    job.launch(kernel, grid, traffic, arguments)?;
    Ok(samples)
}

/// The kernel's number for a mode.
fn kernel_mode(mode: ExpansionMode) -> u32 {
    match mode {
        ExpansionMode::Grey => GREY,
        ExpansionMode::GreyWithKey => GREY_KEY,
        ExpansionMode::RgbWithKey => RGB_KEY,
        ExpansionMode::Palette => PALETTE,
        ExpansionMode::PaletteWithOpacity => PALETTE_OPACITY,
    }
}
