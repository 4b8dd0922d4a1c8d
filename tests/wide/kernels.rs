//! `normalize` of samples of 32 bits on a GPU: the bytes of the CPU, which `normalize_is_exact` holds against whole numbers
//! of any length.

use super::{KINDS, numbers, of};
use crate::formats::{format, written};
use crate::support::{Kind, folder, gpu, image, run};
use gpuimg::exec;
use gpuimg::image::Depth;
use gpuimg::metadata::Metadata;
use gpuimg::ops::normalize::{Normalize, Range};
use gpuimg::timing::Timeline;

/// Ways to normalize.
fn ways() -> [Normalize; 4] {
    let to = Some(Range::of_whole(7, 250));
    let range = Some(Range::of_whole(-1, 3).into());
    let way = |per_channel, to, range, nan| Normalize {
        per_channel,
        to,
        range,
        nan,
        ..Normalize::default()
    };
    [
        way(false, None, None, None),
        way(true, to, None, None),
        way(false, None, range, None),
        way(true, None, None, Some(0.25)),
    ]
}

#[test]
fn a_gpu_gives_the_bytes_of_the_cpu() {
    let sizes = [(1, 1), (2, 1), (3, 2), (7, 5), (97, 31), (1031, 257)];
    let Some(gpu) = gpu(sizes.len() * 4 * (KINDS.len() + 3) * ways().len()) else {
        return;
    };
    let mut cases = 0;
    for (width, height) in sizes {
        for channels in 1..=4 {
            let finite = KINDS.map(|kind| {
                let (depth, samples) = numbers(kind, width * height * channels, cases as u64);
                of(width, height, channels, depth, samples)
            });
            // Every bit pattern: one of 256 is no finite number.
            let others = [
                image(width, height, channels, Depth::Float, Kind::Noise),
                image(width, height, channels, Depth::Float, Kind::Flat),
                image(width, height, channels, Depth::ThirtyTwo, Kind::Extremes),
            ];
            for image in finite.into_iter().chain(others) {
                for op in ways() {
                    // Whole numbers have no NaN, and 32 bits without sign no −1.
                    let real = image.shape().depth == Depth::Float;
                    if !real && (op.nan.is_some() || op.range.is_some()) {
                        continue;
                    }
                    let found = exec::on_gpu(&op, image.clone(), gpu, &mut Timeline::default());
                    let expected = exec::on_cpu(&op, image.clone(), &mut Timeline::default());
                    let what = format!("{op:?} of {}", image.shape());
                    match (found, expected) {
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
    }
    assert_eq!(cases, 6 * 4 * (8 * 4 + 2 * 2));
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
    let line = "normalize in.npy clip.png --clip 1:99 --device gpu";
    let refused = run(root.path(), &line.split(' ').collect::<Vec<_>>(), &[]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let words = "no kernel finds percentiles of samples of 32 bits (--device cpu does it)";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}
