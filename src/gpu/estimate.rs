//! Estimates the time of each device for an image from the bytes that it must move. The rates were measured.

use std::env;
use std::sync::LazyLock;

/// The bytes that an operation on one image makes each device move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Bytes read plus bytes written when the operation reads or writes the samples.
    pub touched: u64,
    /// Bytes copied to the GPU and back.
    pub transferred: u64,
    /// Bytes of samples compressed to PNG, by the host or by the GPU.
    pub compressed: u64,
    /// Bytes of samples decoded from deflate data, by the host or by the GPU; 0 if only the host can.
    pub decoded: u64,
    /// Bytes of samples per second that one core decoded of images before; 0 before any.
    pub rate: f64,
}

impl Work {
    /// Of samples that are read or written once, and copied to a GPU or back.
    pub fn moving(bytes: usize) -> Work {
        Work {
            touched: bytes as u64,
            transferred: bytes as u64,
            ..Work::default()
        }
    }
}

/// Start-up time of CUDA with a warm driver, in seconds: 0.20–0.33 were measured on H100 hosts.
const GPU_START: f64 = 0.25;

/// `GPU_START`, or the seconds of `GPUIMG_GPU_START`. With 0, small images cost a GPU nothing besides their bytes, so that tests
/// use GPUs for them too.
fn gpu_start() -> f64 {
    static START: LazyLock<f64> = LazyLock::new(|| {
        let asked = env::var("GPUIMG_GPU_START").ok();
        asked
            .and_then(|text| text.parse().ok())
            .unwrap_or(GPU_START)
    });
    *START
}

/// Seconds that the GPUs must save a batch before they are started: their start, and the time that
/// it takes from the cores.
pub fn worth_starting() -> f64 {
    2.0 * gpu_start()
}

/// Bytes per second over PCIe with pinned memory, including the time of pinning (PCIe 4.0 × 16 lanes;
/// 5.0 is faster).
const GPU_TRANSFER: f64 = 15e9;
/// Seconds that an image takes on a GPU besides its copies: some 30 launches, and the waits for them.
const GPU_IMAGE: f64 = 0.9e-3;
/// Bytes per second that one core moves in the CPU passes, up to the limit of a socket's memory
/// bandwidth.
const CPU_CORE: f64 = 7e9;
/// Bytes per second that all cores together move at most.
const CPU_ALL: f64 = 60e9;

/// Bytes of samples per second that one core compresses to PNG, and that it copies into a file if a
/// GPU has compressed them.
const CPU_ENCODES: f64 = 0.8e9;
const GPU_ENCODES: f64 = 3.5e9;

/// Bytes of samples per second that one core decodes, of noise from OpenCV's PNGs (a third of that is usual of other writers), and
/// for which it reads the file if a GPU decodes it.
const CPU_DECODES: f64 = 0.5e9;
const GPU_DECODES: f64 = 3.2e9;

/// Estimated seconds of the passes on the CPU and on the GPU, including CUDA's start unless it has
/// `started`.
pub fn estimate(work: &Work, cores: usize, started: bool) -> (f64, f64) {
    let compressed = work.compressed as f64 / cores as f64;
    let decoded = work.decoded as f64 / cores as f64;
    let cpu = work.touched as f64 / (CPU_CORE * cores as f64).min(CPU_ALL)
        + compressed / CPU_ENCODES
        + decoded
            / if work.rate > 0.0 {
                work.rate
            } else {
                CPU_DECODES
            };
    let start = if started { 0.0 } else { gpu_start() };
    let image = if gpu_start() > 0.0 { GPU_IMAGE } else { 0.0 };
    let gpu = start
        + image
        + work.transferred as f64 / GPU_TRANSFER
        + compressed / GPU_ENCODES
        + decoded / GPU_DECODES;
    (cpu, gpu)
}
