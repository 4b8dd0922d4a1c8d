//! Prepares a GPU for a batch before any work is queued. Once work is queued, loading a kernel or enlarging the memory pool waits
//! until the work of all images is done, 10 ms and more each time.

use crate::gpu::driver::Gpu;
use crate::gpu::driver::launch::Arguments;
use crate::gpu::launch::inflate_adler::InflateAdler;
use crate::gpu::launch::inflate_chain::InflateChain;
use crate::gpu::launch::inflate_count::InflateCount;
use crate::gpu::launch::inflate_find::{InflateFind, InflateOrder, InflateRead, InflateSieve};
use crate::gpu::launch::inflate_matches::{InflateFar, InflateNear};
use crate::gpu::launch::inflate_write::InflateWrite;
use crate::gpu::launch::lzw::{LzwFind, LzwMeasure, LzwWrite};
use crate::gpu::launch::memory::{FillBytes, Move};
use crate::gpu::launch::png_codes::{PngCodes, PngHistogram};
use crate::gpu::launch::png_crc::{PngAgree, PngCrc, PngJoin};
use crate::gpu::launch::png_filter::{PngChoose, PngEstimate, PngFilter};
use crate::gpu::launch::png_pack::{PngPack, PngPlace};
use crate::gpu::launch::png_rows::{PngExpand, PngKinds};
use crate::gpu::launch::png_unfilter::{PngFlat, PngWave};

/// The initial size in bytes of the driver's memory pool: about as much as the first images need together.
const POOL_BYTES: usize = 1 << 30;

/// Loads the kernels that decode pages and those that deflate PNGs, and fills the driver's memory pool. If a kernel has variants,
/// only the one for 16-bit grey images is loaded. Errors are ignored: they occur again, and are reported, when an image needs the
/// kernel or the memory.
pub fn prepare(gpu: &Gpu) {
    load::<Move>(gpu, "");
    load::<FillBytes>(gpu, "");
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
        // With the same kind of stream as the images of a batch use.
        let _ = gpu
            .with_stream(true)
            .and_then(|stream| stream.alloc(POOL_BYTES));
    }
}

fn load<A: Arguments>(gpu: &Gpu, variant: &str) {
    let _ = gpu.kernel::<A>(variant);
}
