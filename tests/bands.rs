//! Images that a GPU's memory does not hold at once: the same bytes, in bands; and where not even
//! those fit, the CPU with `auto`, or an error.

use crate::support::{Kind, SIZES, gpu, image, run};
use gpuimg::internals::engine::executor::{self, Form, Pixels, Task, bands};
use gpuimg::internals::gpu::NoMemory;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use gpuimg::internals::ops::histogram::Histogram;
use gpuimg::internals::ops::normalize::Normalize;
use gpuimg::internals::ops::symmetry::Symmetry;
use gpuimg::internals::ops::{self, Operation, naive};
use gpuimg::internals::timing::Timeline;

/// Shape of a grey image of 16 bits that is `mib` MiB large, its sides odd.
fn large(mib: usize) -> Shape {
    Shape {
        width: 1021,
        height: (mib << 20) / 2042,
        channels: 1,
        depth: Depth::Sixteen,
    }
}

/// An image without any two rows or columns alike.
fn filled(shape: Shape) -> Image {
    let value = |i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as u16 % 60_000 + 1_000;
    let values: Vec<u16> = (0..shape.samples()).map(value).collect();
    Image::new(shape, Samples::from(values))
}

#[test]
fn bands_give_what_the_definition_says() {
    let examples = ops::examples();
    let expected = SIZES.len() * 4 * 2 * 2 * 2 * examples.len();
    let Some(gpu) = gpu(expected) else { return };
    let mut cases = 0;
    for (width, height) in SIZES {
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                for kind in [Kind::Narrow, Kind::Flat] {
                    let image = image(width, height, channels, depth, kind);
                    let whole = image.shape().bytes();
                    for op in &examples {
                        let defined = naive(&**op, &image).expect("valid");
                        // About three bands, and about eleven.
                        for bytes in [whole / 3 + 1, whole / 11 + 1] {
                            let timeline = &mut Timeline::default();
                            let task = Task::plain(&**op, &image.shape());
                            let found = bands::run(&task, image.clone(), gpu, timeline, bytes);
                            assert!(
                                found.expect("CUDA") == defined,
                                "{op:?} of {} in bands of {bytes} bytes",
                                image.shape()
                            );
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cases, expected);
}

/// With a limit of a third of the image, every operation goes through in bands, which are halved
/// until they fit.
#[test]
fn what_does_not_fit_at_once_is_cut() {
    let examples = ops::examples();
    let Some(gpu) = gpu(examples.len()) else {
        return;
    };
    let image = filled(large(24));
    let gpu = gpu.limited(8 << 20).expect("a queue");
    for op in examples {
        let timeline = &mut Timeline::default();
        let task = Task::plain(&*op, &image.shape());
        let pixels = Pixels::Host(image.clone());
        let found =
            executor::run_on_gpu(&[task], pixels, Form::Samples, &gpu, timeline).expect("CUDA");
        assert!(found.in_bands, "{op:?}");
        let found = found.executed.result.try_map(|pixels| match pixels {
            Pixels::Host(image) => Ok(image),
            _ => panic!("samples were expected"),
        });
        let expected =
            executor::on_cpu(&*op, image.clone(), &mut Timeline::default()).expect("CPU");
        assert!(found.expect("samples") == expected.result, "{op:?}");
    }
}

#[test]
fn a_gpu_without_any_room_is_an_error() {
    let Some(gpu) = gpu(1) else { return };
    let gpu = gpu.limited(100).expect("a queue");
    let image = filled(large(1));
    let error = executor::on_gpu(&Histogram, image, &gpu, &mut Timeline::default());
    let error = error.expect_err("100 bytes do not suffice");
    assert!(error.is::<NoMemory>(), "{error:#}");
}

/// The program's own way: a limit from the environment, and what `-v` and errors say.
#[test]
fn a_limit_on_device_memory_is_kept() {
    if gpu(5).is_none() {
        return;
    }
    let folder = crate::support::folder(&[]);
    let shape = large(12);
    let mut pgm = format!("P5 {} {} 65535\n", shape.width, shape.height).into_bytes();
    let image = filled(shape);
    let Samples::U16(samples) = image.samples() else {
        panic!("16 bits")
    };
    pgm.extend(samples.iter().flat_map(|sample| sample.to_be_bytes()));
    std::fs::write(folder.path().join("in.pgm"), pgm).expect("file");
    let run =
        |args: &[&str], limit: &str| run(folder.path(), args, &[("GPUIMG_DEVICE_MEMORY", limit)]);
    let read = |name: &str| std::fs::read(folder.path().join(name)).expect(name);

    for verb in [&["normalize"][..], &["rotate", "90"]] {
        let with = |more: &[&'static str], limit: &str| {
            let args = [verb, &["in.pgm"], more].concat();
            run(&args, limit)
        };
        let whole = with(&["cpu.png", "--device", "cpu", "--overwrite"], "1G");
        assert_eq!(whole.code, 0, "{}", whole.stderr);
        let cut = with(&["gpu.png", "--device", "gpu", "-v", "--overwrite"], "3M");
        assert_eq!(cut.code, 0, "{}", cut.stderr);
        assert!(cut.stderr.contains("in bands"), "{}", cut.stderr);
        assert_eq!(read("cpu.png"), read("gpu.png"));
    }
    let none = run(&["sum", "in.pgm", "--device", "gpu"], "1K");
    assert_eq!(none.code, 1, "{}", none.stderr);
    assert!(
        none.stderr.contains("GPUIMG_DEVICE_MEMORY"),
        "{}",
        none.stderr
    );
}

/// One core and 400 MB to compress: `auto` takes the GPU, which has no room, and then the CPU.
#[test]
fn auto_goes_on_where_a_gpu_fails() {
    if gpu(1).is_none() {
        return;
    }
    let (width, height) = (20_000, 10_000);
    let mut pgm = format!("P5 {width} {height} 65535\n").into_bytes();
    pgm.extend((0..width * height).flat_map(|i: u32| (i as u16).to_be_bytes()));
    let folder = crate::support::folder(&[("in.pgm", &pgm)]);
    let args = [
        "flip",
        "horizontal",
        "in.pgm",
        "out.png",
        "--device",
        "auto",
        "-v",
    ];
    let env = [("RAYON_NUM_THREADS", "1"), ("GPUIMG_DEVICE_MEMORY", "1K")];
    let auto = run(folder.path(), &args, &env);
    assert_eq!(auto.code, 0, "{}", auto.stderr);
    let told = "in.pgm: processed on the CPU because the GPU failed: ";
    assert!(auto.stderr.contains(told), "{}", auto.stderr);
    assert!(
        auto.stderr.contains("chosen by auto: the GPU failed"),
        "{}",
        auto.stderr
    );
}

/// A GPU that other work has filled: the driver's own word for it.
#[test]
#[ignore = "takes all of a GPU's memory: to be run alone"]
fn full_gpu() {
    let Some(gpu) = gpu(4) else { return };
    let mut ballast = Vec::new();
    for step in [1 << 30, 64 << 20, 2 << 20] {
        while let Ok(block) = gpu.alloc(step) {
            ballast.push(block);
        }
    }
    // What a few bands take, and no more, is free again.
    ballast.truncate(ballast.len() - 96);
    let image = filled(large(256));
    let ops: [&dyn Operation; 3] = [&Histogram, &Normalize::default(), &Symmetry::Rotate90];
    for op in ops {
        let timeline = &mut Timeline::default();
        let found = executor::on_gpu(op, image.clone(), gpu, timeline).expect("bands fit");
        let expected = executor::on_cpu(op, image.clone(), &mut Timeline::default());
        assert!(found == expected.expect("CPU"), "{op:?}");
    }
}
