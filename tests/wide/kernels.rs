//! `normalize` and `sum` of samples of 32 bits on a GPU: the bytes of the CPU, which `normalize_is_exact` and
//! `sums_are_exact` hold against whole numbers of any length.

use super::{KINDS, numbers, of};
use crate::support::formats::{format, written};
use crate::support::{Kind, folder, gpu, image, run};
use anyhow::Result;
use gpuimg::internals::engine::executor;
use gpuimg::internals::gpu::driver::Gpu;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, number};
use gpuimg::internals::ops::clip::Clip;
use gpuimg::internals::ops::normalize::{Normalize, Range};
use gpuimg::internals::ops::sum::Sum;
use gpuimg::internals::ops::{Executed, Operation, naive};
use gpuimg::internals::timing::Timeline;

/// What is done to samples of 32 bits, and whether it is for floating point alone: integers have no NaN, and
/// no −1.
fn ways() -> Vec<(Box<dyn Operation>, bool)> {
    let to = Some(Range::from_integers(7, 250));
    let range = Some(Range::from_integers(-1, 3).into());
    let clip = Some(Clip::from_percentages(5, 90));
    let way = |per_channel, to, range, clip, nan| -> (Box<dyn Operation>, bool) {
        let op = Normalize {
            per_channel,
            to,
            range,
            clip,
            nan,
            ..Normalize::default()
        };
        (Box::new(op), range.is_some() || nan.is_some())
    };
    vec![
        way(false, None, None, None, None),
        way(true, to, None, None, None),
        way(false, None, None, clip, None),
        way(true, to, None, clip, None),
        way(false, None, range, None, None),
        way(true, None, None, None, Some(0.25)),
        way(true, None, None, clip, Some(-3.5)),
        (
            Box::new(Sum {
                all: false,
                nan: None,
            }),
            false,
        ),
        (
            Box::new(Sum {
                all: true,
                nan: None,
            }),
            false,
        ),
        (
            Box::new(Sum {
                all: true,
                nan: Some(1e30),
            }),
            true,
        ),
    ]
}

/// Runs every way on images of this size, on the GPU and by `expected`, and compares; the number of cases.
fn compare(
    gpu: &Gpu,
    (width, height): (usize, usize),
    seed: u64,
    expected: impl Fn(&dyn Operation, &Image) -> Result<Executed>,
) -> usize {
    let mut cases = 0;
    for channels in 1..=4 {
        let finite = KINDS.map(|kind| {
            let (depth, samples) = numbers(kind, width * height * channels, seed + channels as u64);
            of(width, height, channels, depth, samples)
        });
        // Every bit pattern: one of 256 is not a finite number.
        let others = [
            image(width, height, channels, Depth::Float, Kind::Noise),
            image(width, height, channels, Depth::Float, Kind::Flat),
            image(width, height, channels, Depth::ThirtyTwo, Kind::Extremes),
        ];
        for image in finite.into_iter().chain(others) {
            for (op, for_floats) in ways() {
                if for_floats && image.shape().depth != Depth::Float {
                    continue;
                }
                let found = executor::on_gpu(&*op, image.clone(), gpu, &mut Timeline::default());
                let what = format!("{op:?} of {}", image.shape());
                match (found, expected(&*op, &image)) {
                    (Ok(found), Ok(expected)) => assert!(found == expected, "{what}"),
                    (Err(found), Err(expected)) => {
                        let (found, expected) = (format!("{found:#}"), expected.to_string());
                        assert!(found.contains(&expected), "{what}: {found}, {expected}");
                    }
                    (found, expected) => panic!("{what}: {found:?}, {expected:?}"),
                }
                cases += 1;
            }
        }
    }
    cases
}

/// Of two kinds of integers and eight of floating point.
const CASES: usize = 4 * (8 * 10 + 2 * 6);

#[test]
fn a_gpu_gives_the_bytes_of_the_cpu() {
    let sizes = [(1, 1), (2, 1), (3, 2), (7, 5), (97, 31), (1031, 257)];
    let Some(gpu) = gpu(sizes.len() * CASES) else {
        return;
    };
    let cpu = |op: &dyn Operation, image: &Image| {
        executor::on_cpu(op, image.clone(), &mut Timeline::default())
    };
    let cases = (0..)
        .zip(sizes)
        .map(|(seed, size)| compare(gpu, size, 10 * seed, cpu));
    assert_eq!(cases.sum::<usize>(), sizes.len() * CASES);
}

/// Few launches, for compute-sanitizer; against the definition.
#[test]
fn every_kernel_on_small_images() {
    let sizes = [(1, 1), (67, 66)];
    let Some(gpu) = gpu(sizes.len() * CASES) else {
        return;
    };
    let cases = sizes.map(|size| compare(gpu, size, 7, naive));
    assert_eq!(cases, [CASES; 2]);
}

/// A thread's sums change their step, and samples that are too far apart are added one by one.
#[test]
fn sums_of_numbers_far_apart() {
    let Some(gpu) = gpu(4 * 3) else { return };
    for channels in 1..=4 {
        let count = 4096 * 300 * channels;
        for spread in [8, 21, 250] {
            let (_, noise) = numbers("integers", count, spread);
            let of_bits = |bits: u32| {
                let exponent = (1 + bits % spread as u32) << 23;
                number::key(bits & 0x8000_0000 | exponent | bits >> 8 & 0x7f_ffff)
            };
            let samples = noise.into_iter().map(of_bits).collect();
            let image = of(4096, 300, channels, Depth::Float, samples);
            let op = Sum {
                all: true,
                nan: None,
            };
            let found = executor::on_gpu(&op, image.clone(), gpu, &mut Timeline::default());
            let expected = executor::on_cpu(&op, image, &mut Timeline::default());
            assert_eq!(
                found.expect("CUDA"),
                expected.expect("valid"),
                "{channels}, {spread}"
            );
        }
    }
}

/// From file to file: to 16 bits, to 8, and compressed on the GPU; and what there is no kernel for.
#[test]
fn files_of_floats_on_a_gpu() {
    let Some(_) = gpu(3) else { return };
    let image = image(1031, 1027, 1, Depth::Float, Kind::Narrow);
    let npy = written(format("npy"), &[image], &Metadata::default()).unwrap();
    let root = folder(&[("in.npy", &npy)]);
    let pixels = |png: &[u8]| ::image::load_from_memory(png).unwrap().into_luma16();
    for output in ["out.tif", "out.pgm --depth 8", "out.png"] {
        for device in ["cpu", "gpu"] {
            let line = format!("normalize in.npy {device}-{output} --device {device}");
            let args: Vec<&str> = line.split(' ').collect();
            let done = run(root.path(), &args, &[]);
            assert_eq!(done.code, 0, "{}", done.stderr);
        }
        let name = output.split(' ').next().unwrap();
        let read = |device: &str| std::fs::read(root.path().join(format!("{device}-{name}")));
        let (cpu, gpu) = (read("cpu").unwrap(), read("gpu").unwrap());
        match name {
            "out.png" => assert!(pixels(&cpu) == pixels(&gpu), "{output}"),
            _ => assert!(cpu == gpu, "{output}"),
        }
    }
    let line = "normalize in.npy left.png --ignore 0 --device gpu";
    let refused = run(root.path(), &line.split(' ').collect::<Vec<_>>(), &[]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let words = "the GPU does not support --ignore for 32-bit samples (--device cpu does it)";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}
