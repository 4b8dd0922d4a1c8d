//! PNG files, and TIFFs of deflate, decoded on a GPU: `cargo bench --bench png_gpu -- decode FILE…`. For each file every
//! kernel's best time, then GB/s of samples: one image whose compressed data lie in device memory, host
//! waits counted; and 1 to 16 streams at once, with and without the upload.

use gpuimg::internals::formats::gpu::decode::{Decoded, decode_on_gpu, decode_resident};
use gpuimg::internals::formats::{Reader, Reading};
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::os::Source;
use gpuimg::internals::timing::Timeline;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Runs of one image, of which the best counts.
const TIMES: usize = 12;

pub fn rows() {
    let gpu = match Gpu::open(0).and_then(|gpu| gpu.with_stream(true)) {
        Ok(gpu) => gpu,
        Err(error) => return println!("no GPU: {error:#}"),
    };
    for file in std::env::args().filter(|word| word.ends_with(".png") || word.ends_with(".tif")) {
        println!("\n{file} on {}", gpu.name);
        row(&gpu, Path::new(&file));
    }
}

fn row(gpu: &Gpu, path: &Path) {
    let source = Source::open(path).unwrap();
    let mut reader = Reader::open(&source, &Reading::default()).unwrap();
    let bytes = reader.shape().bytes();
    let start = Instant::now();
    let mut packed = match reader.packed() {
        Ok(packed) => packed,
        Err(why) => return println!("  left to the CPU: {why}"),
    };
    let line = |name: &str, time: Duration, count: usize| {
        let (ms, gb) = (time.as_secs_f64() * 1e3, (bytes * count) as f64 / 1e9);
        println!("  {name:30}{:9.3} ms{:8.1} GB/s", ms, gb / ms * 1e3);
    };
    line("read and checked on one core", start.elapsed(), 1);
    let (head, memory) = packed.split();
    println!("  {} bytes of {bytes}", memory.len());
    let mut timed = |timeline: &mut Timeline| {
        let best = gpu.job(memory, timeline, |job| {
            let stream = job.upload()?;
            let mut best = Duration::MAX;
            for _ in 0..TIMES {
                let word = job.words(&[0u32])?;
                let _: Vec<u32> = job.read_words(&word)?;
                let start = Instant::now();
                if let Decoded::Unsuited(why) = decode_resident(head, &stream, job)? {
                    println!("  left to the CPU: {why}");
                    return Ok(None);
                }
                best = best.min(start.elapsed());
            }
            Ok(Some(best))
        });
        best.unwrap()
    };
    let mut timeline = Timeline::default();
    let Some(_) = timed(&mut timeline) else {
        return;
    };
    // Events around each kernel take time of their own.
    let mut untimed = Timeline::default();
    untimed.gpu_times = false;
    let best = timed(&mut untimed).unwrap();
    let mut names: Vec<String> = vec![];
    let mut all = Duration::ZERO;
    for span in timeline.spans() {
        let ours = ["png", "inflate", "tiff"]
            .iter()
            .any(|kind| span.name.starts_with(kind));
        if !ours || names.contains(&span.name) {
            continue;
        }
        let spans = timeline.spans();
        let same = spans.iter().filter(|other| other.name == span.name);
        let best = same.map(|span| span.time).min().unwrap_or_default();
        line(&span.name, best, 1);
        all += best;
        names.push(span.name.clone());
    }
    line("all kernels", all, 1);
    line("one image, resident", best, 1);
    let start = Instant::now();
    reader.decode().unwrap();
    line("the CPU, all cores", start.elapsed(), 1);
    for upload in [false, true] {
        for count in [1, 2, 4, 8, 16] {
            if bytes * count > 4 << 30 {
                continue;
            }
            let name = format!("{count} streams{}", if upload { ", uploads" } else { "" });
            let (time, images) = streams(gpu, &source, count, upload);
            line(&name, time, images);
        }
    }
}

/// Threads with a stream each, which decode the file again and again: how long for how many images.
fn streams(gpu: &Gpu, source: &Source, count: usize, upload: bool) -> (Duration, usize) {
    let barrier = Barrier::new(count + 1);
    let bytes = Reader::open(source, &Reading::default())
        .unwrap()
        .shape()
        .bytes();
    let times = ((2usize << 30) / (bytes * count)).clamp(3, 60);
    let time = std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let stream_gpu = gpu.with_stream(true).unwrap();
                let reader = Reader::open(source, &Reading::default()).unwrap();
                let mut packed = reader.packed().ok().unwrap();
                let (head, memory) = packed.split();
                let mut untimed = Timeline::default();
                untimed.gpu_times = false;
                let work = stream_gpu.job(memory, &mut untimed, |job| {
                    let stream = job.upload()?;
                    for round in 0..=times {
                        // The first round warms up.
                        if round == 1 {
                            barrier.wait();
                        }
                        let decoded = match upload {
                            true => decode_on_gpu(head, job)?,
                            false => decode_resident(head, &stream, job)?,
                        };
                        assert!(matches!(decoded, Decoded::Image { .. }));
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
    (time, times * count)
}
