//! PNG compressed on a GPU: `cargo bench --bench png_gpu [-- KIND] [SIDE] [once] [FOLDER]`. KIND and
//! SIDE as for `codecs`. Every kernel's best time with GB/s of samples, their sum, the whole way
//! from device memory to compressed bytes in host memory, and the file beside the CPU's; then the
//! same on several lanes at once, uploads counted. Files stay in FOLDER if one is named (with a
//! slash), for others to be measured on their data. `once`: one image, CUDA's start counted.
//! `decode FILE…`: PNG files decoded on the GPU instead, see png_gpu/decode.rs.

#![allow(
    clippy::disallowed_macros,
    reason = "a bench prints to whoever started it"
)]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for the developer"
)]

#[allow(dead_code, reason = "not every bench takes every part")]
mod common;
#[path = "png_gpu/decode.rs"]
mod decode;

use common::arguments::Arguments;
use common::kinds::Kind;
use gpuimg::internals::formats::deflated::EncodedSegments;
use gpuimg::internals::formats::gpu;
use gpuimg::internals::formats::png::{self, Mode};
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Image, Shape};
use gpuimg::internals::ops::DeviceImage;
use gpuimg::internals::os::Target;
use gpuimg::internals::timing::Timeline;
use std::path::Path;
use std::time::{Duration, Instant};

const TIMES: usize = 9;

fn main() {
    let words = Arguments::new();
    if words.names("decode") {
        return decode::rows();
    }
    let side = words.side();
    let kind = words.kinds().first().copied();
    let mut image = kind.unwrap_or(Kind::Noisy).image(side, side);
    let folder = words.find(|word| word.contains('/').then(|| word.clone()));
    let temporary = tempfile::tempdir().unwrap();
    let folder = folder.as_deref().map_or(temporary.path(), Path::new);

    let start = Instant::now();
    let gpu = match Gpu::open(0) {
        Ok(gpu) => gpu,
        Err(error) => return println!("no GPU: {error:#}"),
    };
    println!("\n{} on {}", image.shape(), gpu.name);
    let path = folder.join("gpu.png");
    if words.names("once") {
        let compressed = compressed(&gpu, &mut image, 1, &mut Timeline::default()).0;
        let memory = start.elapsed();
        let len = written(&path, |target| {
            compressed.write(image.samples().as_bytes(), &Metadata::default(), target)
        });
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let whole = start.elapsed();
        return println!(
            "CUDA's start {:.1} ms, compressed in host memory after {:.1} ms, file of {len} bytes after {:.1} ms",
            ms(gpu.opened.1),
            ms(memory),
            ms(whole)
        );
    }

    let bytes = image.shape().bytes() as f64;
    let line = |name: &str, time: Duration| {
        let seconds = time.as_secs_f64();
        println!(
            "{name:28}{:>10.3} ms{:>9.1} GB/s",
            seconds * 1e3,
            bytes / seconds / 1e9
        );
    };
    let original = image.clone();
    let mut timeline = Timeline::default();
    let (found, whole) = compressed(&gpu, &mut image, TIMES, &mut timeline);
    let mut names: Vec<String> = vec![];
    let mut kernels = Duration::ZERO;
    for span in timeline.spans() {
        if !names.contains(&span.name) {
            let same = timeline
                .spans()
                .into_iter()
                .filter(|other| other.name == span.name);
            let best = same.map(|span| span.time).min().unwrap_or_default();
            line(&span.name, best);
            kernels += if span.name.starts_with("png") {
                best
            } else {
                Duration::ZERO
            };
            names.push(span.name.clone());
        }
    }
    line("all kernels", kernels);
    line("device to host, compressed", whole);
    let other = folder.join("cpu.png");
    let mut len = 0;
    for threads in [0, 1] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
        for _ in 0..4 {
            let start = Instant::now();
            pool.install(|| {
                len = written(&path, |target| {
                    found.write(image.samples().as_bytes(), &Metadata::default(), target)
                });
            });
            ours = ours.min(start.elapsed());
            let start = Instant::now();
            pool.install(|| written(&other, |target| png::encode(&original, Mode::Fast, target)));
            theirs = theirs.min(start.elapsed());
        }
        let threads = pool.current_num_threads();
        line(&format!("compressed to file, {threads} thr."), ours);
        line(&format!("CPU to file, {threads} thr."), theirs);
    }
    let same = std::fs::read(&path).unwrap() == std::fs::read(&other).unwrap();
    println!(
        "{:.4} of the samples' bytes; files the same: {same}",
        len as f64 / bytes
    );
    for count in [1, 2, 4, 8, 16] {
        lanes(&gpu, &original, count);
    }
}

/// The image compressed `times` times from device memory, and the best time of that.
fn compressed(
    gpu: &Gpu,
    image: &mut Image,
    times: usize,
    timeline: &mut Timeline,
) -> (EncodedSegments, Duration) {
    let shape: Shape = image.shape();
    let memory = image.samples_mut().as_bytes_mut();
    let work = gpu.job(memory, timeline, |job| {
        let samples = job.upload()?;
        let resident = DeviceImage { shape, samples };
        // Waits for the upload.
        let word = job.words(&[0u32])?;
        let _: Vec<u32> = job.read_words(&word)?;
        let mut best = Duration::MAX;
        let mut result = None;
        for _ in 0..times {
            let start = Instant::now();
            result = Some(gpu::png::compress(&resident, job)?);
            best = best.min(start.elapsed());
        }
        Ok((result.unwrap(), best))
    });
    work.unwrap()
}

fn written(path: &Path, write: impl FnOnce(&Target) -> anyhow::Result<u64>) -> u64 {
    let target = Target::create(path, true).unwrap();
    let len = write(&target).unwrap();
    target.commit(len).unwrap();
    len
}

/// Several threads, each with a stream, upload and compress repeatedly.
fn lanes(gpu: &Gpu, image: &Image, count: usize) {
    let times = (1usize << 30)
        .div_ceil(image.shape().bytes() * count)
        .max(3);
    let all: Vec<(Gpu, Image)> = (0..count)
        .map(|_| (gpu.with_stream(true).unwrap(), image.clone()))
        .collect();
    let barrier = std::sync::Barrier::new(count + 1);
    let shape = image.shape();
    let took = std::thread::scope(|scope| {
        for (lane, mut image) in all {
            let barrier = &barrier;
            scope.spawn(move || {
                let memory = image.samples_mut().as_bytes_mut();
                let work = lane.job(memory, &mut Timeline::default(), |job| {
                    let samples = job.upload()?;
                    let resident = DeviceImage { shape, samples };
                    for round in 0..=times {
                        if round == 1 {
                            barrier.wait(); // the first round warms up
                        }
                        // Of what the last round left, in place of the next image.
                        job.upload()?;
                        gpu::png::compress(&resident, job)?;
                    }
                    Ok(())
                });
                work.unwrap();
                barrier.wait();
            });
        }
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        start.elapsed()
    });
    let bytes = (image.shape().bytes() * count * times) as f64;
    println!(
        "{count:2} lanes, uploads counted: {:6.2} ms an image and lane, {:.1} GB/s",
        1e3 * took.as_secs_f64() / times as f64,
        bytes / took.as_secs_f64() / 1e9
    );
}
