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

/// These seconds, or 0 with `GPUIMG_GPU_START=0`, for which an image costs a GPU nothing besides its bytes.
fn unless_free(seconds: f64) -> f64 {
    if gpu_start() > 0.0 { seconds } else { 0.0 }
}

/// Workers of a batch that use one GPU with `auto`; the others stay on the CPU. The GPU processes 12 images at a time, while as many
/// more are read and written. With 64 workers instead, an H200 was no faster than with 32, and started later (`PIN`).
pub const WORKERS_OF_GPU: usize = 24;

/// Seconds that a worker delays the start of a batch on a GPU, since each pins memory of its own: a batch of 64 workers on an H200
/// began 0.66 s after the GPU was ready.
const PIN: f64 = 0.01;

/// Seconds that one GPU must save a batch of `workers` before it is started: its start, the time that this takes from the cores,
/// and the pinning of memory.
pub fn worth_starting(workers: usize) -> f64 {
    2.0 * gpu_start() + unless_free(PIN) * workers.min(WORKERS_OF_GPU) as f64
}

/// Seconds that one GPU, once it is started, is estimated to save for each image of a batch of `workers`; 0 if it saves none.
pub fn saved_in_batch(work: &Work, workers: usize) -> f64 {
    let (cpu, gpu) = estimate(work, 1, true);
    if cpu <= gpu {
        return 0.0;
    }
    let on_gpu = workers.min(WORKERS_OF_GPU);
    let gpu_rate = (on_gpu as f64 / gpu).min(1.0 / gpu_seconds_in_batch(work));
    let before = workers as f64 / cpu;
    let after = gpu_rate + (workers - on_gpu) as f64 / cpu;
    (1.0 / before - 1.0 / after).max(0.0)
}

/// Estimated seconds that one GPU takes for each image of a batch whose workers keep it busy.
fn gpu_seconds_in_batch(work: &Work) -> f64 {
    let compression = if work.compressed > 0 {
        GPU_SHARED_COMPRESSION
    } else {
        0.0
    };
    unless_free(GPU_SHARED_IMAGE + compression)
        + work.transferred as f64 / GPU_SHARED_TRANSFER
        + work.decoded as f64 / GPU_SHARED_DECODES
}

/// Bytes per second over PCIe with pinned memory, including the time of pinning (PCIe 4.0 × 16 lanes;
/// 5.0 is faster).
const GPU_TRANSFER: f64 = 15e9;
/// Seconds that an image takes on a GPU besides its copies: some 30 launches, and the waits for them.
const GPU_IMAGE: f64 = 0.9e-3;
/// Seconds that an image takes in a batch whose workers keep the GPU busy, and that its compression takes, besides its bytes: with
/// 16 cores an H200 summed 22,000 PNGs of 512² per second, and normalized 12,000.
const GPU_SHARED_IMAGE: f64 = 0.035e-3;
const GPU_SHARED_COMPRESSION: f64 = 0.035e-3;
/// Bytes per second that one GPU copies in both directions, and bytes of samples per second that it decodes, in such a batch: for 64
/// workers an H200 summed 3800 PNGs of 2048² per second.
const GPU_SHARED_TRANSFER: f64 = 105e9;
const GPU_SHARED_DECODES: f64 = 75e9;
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
    let gpu = start
        + unless_free(GPU_IMAGE)
        + work.transferred as f64 / GPU_TRANSFER
        + compressed / GPU_ENCODES
        + decoded / GPU_DECODES;
    (cpu, gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The work of normalizing a PNG of 2048², on a host whose cores decode `rate` bytes per second each.
    fn png(rate: f64) -> Work {
        let bytes = 2 * 2048 * 2048;
        Work {
            touched: 4 * bytes,
            transferred: 2 * bytes,
            compressed: bytes,
            decoded: bytes,
            rate,
        }
    }

    fn is_worth(work: &Work, images: usize, workers: usize) -> bool {
        saved_in_batch(work, workers) * images as f64 > worth_starting(workers)
    }

    /// On 64 cores, where the CPU normalized 985 PNGs per second and one GPU 2962, 512 of them took 0.63 s and 1.30 s, and 2048 of them
    /// 2.2 s and 1.8 s. 2048 sums took 0.98 s and 1.43 s.
    #[test]
    fn the_start_for_512_images_took_longer_than_64_cores_without_it() {
        let work = png(170e6);
        let (cpu, _) = estimate(&work, 1, true);
        assert!((60e-3..70e-3).contains(&cpu), "{cpu}");
        assert!(!is_worth(&work, 512, 64));
        assert!(is_worth(&work, 2048, 64));
        let sum = Work {
            touched: 2 * 2048 * 2048,
            transferred: 2 * 2048 * 2048,
            compressed: 0,
            rate: 300e6,
            ..work
        };
        assert!(!is_worth(&sum, 2048, 64));
        // With 16 cores the CPU takes four times as long: 1.3 s, and 0.8 s with a GPU.
        assert!(is_worth(&work, 512, 16));
        assert!(!is_worth(&work, 64, 16));
    }

    /// With 16 cores an H200 normalized 10,493 LZW TIFFs of 512² per second and the CPU 5422: 8192 of them took 1.1 s with the GPU
    /// and 1.5 s without, and `auto` never started it. PNGs of that size took as long with both.
    #[test]
    fn the_gpu_was_never_started_for_many_small_tiffs() {
        let bytes = 2 * 512 * 512;
        let tiff = Work {
            touched: 4 * bytes,
            transferred: 2 * bytes,
            compressed: 0,
            decoded: bytes,
            rate: 200e6,
        };
        let (cpu, _) = estimate(&tiff, 1, true);
        assert!((2.8e-3..3.1e-3).contains(&cpu), "{cpu}");
        assert!(is_worth(&tiff, 8192, 16));
        assert!(!is_worth(&tiff, 1024, 16));
        let png = Work {
            compressed: bytes,
            rate: 330e6,
            ..tiff
        };
        let (cpu, _) = estimate(&png, 1, true);
        assert!((2.4e-3..2.7e-3).contains(&cpu), "{cpu}");
        assert!(!is_worth(&png, 8192, 16));
    }

    /// The workers that do not use the GPU take a share of the images.
    #[test]
    fn an_image_saves_less_the_more_workers_there_are() {
        let work = png(170e6);
        let saved: Vec<f64> = [1, 16, 24, 64, 1024]
            .map(|workers| saved_in_batch(&work, workers))
            .into();
        assert!(saved.is_sorted_by(|a, b| a > b), "{saved:?}");
        assert_eq!(saved_in_batch(&Work::default(), 64), 0.0);
    }
}
