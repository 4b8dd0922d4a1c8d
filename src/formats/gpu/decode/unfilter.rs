//! Makes samples of a PNG's scanlines: kernels/png_rows.cu and png_unfilter.cu.

use crate::formats::gpu::inflate::Records;
use crate::formats::packed::{ExpansionMode, Head, Scanlines};
use crate::gpu::driver::Buffer;
use crate::gpu::job::Job;
use crate::gpu::launch::common::{BLOCK, WARPS};
use crate::gpu::launch::png_rows::{
    GREY, GREY_KEY, PALETTE, PALETTE_OPACITY, PngExpand, PngKinds, RGB_KEY,
};
use crate::gpu::launch::png_unfilter::{PngFlat, PngWave, SPARSE};
use crate::image::Depth;
use anyhow::Result;

/// Undoes the filters of scanlines, and unpacks samples.
pub fn unfilter(
    head: &Head,
    scanlines: &Scanlines,
    bytes: &mut Buffer,
    records: &mut Records,
    job: &mut Job,
) -> Result<Buffer> {
    let kinds = job.kernel::<PngKinds>("")?;
    let expand = job.kernel::<PngExpand>("")?;
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
    let flat = job.kernel::<PngFlat>(form)?;
    let wave = job.kernel::<PngWave>(form)?;
    let total = head.streams.bytes as u64;
    let swap = (head.shape.depth == Depth::Sixteen).into();
    let mut filters = job.scratch(height as usize)?;
    let arguments = PngKinds {
        bytes: bytes.view_mut(),
        row: row as u32,
        height,
        filters: filters.view_mut(),
        report: records.report_mut(),
    };
    job.launch(&kinds, height.div_ceil(BLOCK), 0, arguments)?;
    let mut plain = job.alloc(row * height as usize)?;
    let arguments = PngFlat {
        bytes: bytes.view(),
        row: row as u32,
        height,
        swap,
        filters: filters.view(),
        image: plain.view_mut(),
        report: records.report(),
    };
    job.launch(&flat, height.div_ceil(WARPS), 2 * total, arguments)?;
    let bands = height.div_ceil(SPARSE);
    let mut progress = job.zeroed(4 + 4 * bands as usize)?;
    let arguments = PngWave {
        bytes: bytes.view(),
        row: row as u32,
        height,
        swap,
        filters: filters.view(),
        image: plain.view_mut(),
        report: records.report(),
        width: (row / step) as u32,
        progress: progress.view_mut(),
    };
    job.launch(&wave, bands, 2 * total, arguments)?;
    let Some(expansion) = expansion else {
        return Ok(plain);
    };
    let mut samples = job.alloc(head.shape.bytes())?;
    let colours = expansion.palette.len() as u32;
    let palette = job.words(match colours {
        0 => &[0][..],
        _ => &expansion.palette,
    })?;
    let arguments = PngExpand {
        rows: plain.view(),
        row: row as u32,
        width,
        height,
        bits: bits.into(),
        mode: match expansion.mode {
            ExpansionMode::Grey => GREY,
            ExpansionMode::GreyWithKey => GREY_KEY,
            ExpansionMode::RgbWithKey => RGB_KEY,
            ExpansionMode::Palette => PALETTE,
            ExpansionMode::PaletteWithOpacity => PALETTE_OPACITY,
        },
        key: expansion.key,
        palette: palette.view(),
        colours,
        samples: samples.view_mut(),
        report: records.report_mut(),
    };
    let bytes = head.shape.bytes() as u64;
    job.launch(
        &expand,
        job.reduction_grid(16 * bytes),
        total + bytes,
        arguments,
    )?;
    Ok(samples)
}
