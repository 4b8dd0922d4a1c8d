//! Prepares a GPU for the images of a batch before their work is queued. Once work is queued, loading a kernel or enlarging the
//! memory pool waits for the work of all images, 10 ms and more at a time.

use crate::gpu::driver::Gpu;
use crate::gpu::driver::launch::Arguments;
use crate::gpu::launch::inflate_adler::InflateAdler;
use crate::gpu::launch::inflate_chain::InflateChain;
use crate::gpu::launch::inflate_count::InflateCount;
use crate::gpu::launch::inflate_find::{InflateFind, InflateOrder, InflateRead, InflateSieve};
use crate::gpu::launch::inflate_matches::{InflateFar, InflateNear};
use crate::gpu::launch::inflate_write::InflateWrite;
use crate::gpu::launch::lzw::{LzwFind, LzwMeasure, LzwWrite};
use crate::gpu::launch::png_codes::{PngCodes, PngHistogram};
use crate::gpu::launch::png_crc::{PngAgree, PngCrc, PngJoin};
use crate::gpu::launch::png_filter::{PngChoose, PngEstimate, PngFilter};
use crate::gpu::launch::png_pack::{PngPack, PngPlace};
use crate::gpu::launch::png_rows::{PngExpand, PngKinds};
use crate::gpu::launch::png_unfilter::{PngFlat, PngWave};

/// Bytes of device memory that the driver's pool begins with: about as much as the first images need together.
const POOL_BYTES: usize = 1 << 30;

/// Loads the kernels that decode a page and that deflate a PNG, and fills the driver's memory pool. Of kernels with variants,
/// that for 16-bit grey images is loaded. An error is ignored: the image that needs the kernel or the memory meets it again and
/// reports it.
pub fn prepare(gpu: &Gpu) {
    load::<PngJoin>(gpu, "");
    load::<PngAgree>(gpu, "");
    load::<PngCrc>(gpu, "");
    load::<InflateFind>(gpu, "");
    load::<InflateSieve>(gpu, "");
    load::<InflateRead>(gpu, "");
    load::<InflateOrder>(gpu, "");
    load::<InflateCount>(gpu, "");
    load::<InflateChain>(gpu, "");
    load::<InflateWrite>(gpu, "");
    load::<InflateNear>(gpu, "");
    load::<InflateFar>(gpu, "");
    load::<InflateAdler>(gpu, "");
    load::<LzwFind>(gpu, "");
    load::<LzwMeasure>(gpu, "");
    load::<LzwWrite>(gpu, "");
    load::<PngKinds>(gpu, "");
    load::<PngExpand>(gpu, "");
    load::<PngFlat>(gpu, "b2");
    load::<PngWave>(gpu, "b2");
    load::<PngChoose>(gpu, "");
    load::<PngFilter>(gpu, "");
    load::<PngEstimate>(gpu, "");
    load::<PngHistogram>(gpu, "");
    load::<PngCodes>(gpu, "");
    load::<PngPlace>(gpu, "");
    load::<PngPack>(gpu, "");
    if gpu.memory().is_ok_and(|(free, _)| free / 8 >= POOL_BYTES) {
        // A stream as the images of a batch use it.
        let _ = gpu
            .with_stream(true)
            .and_then(|stream| stream.alloc(POOL_BYTES));
    }
}

fn load<A: Arguments>(gpu: &Gpu, variant: &str) {
    let _ = gpu.kernel::<A>(variant);
}
