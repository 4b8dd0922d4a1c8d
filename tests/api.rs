//! The library: the bytes of the command line for every verb, literals, errors, silence and threads.

use crate::support::axes::file;
use crate::support::contract::signed;
use crate::support::formats::small_files;
use crate::support::{binary, counted, folder, gpu, listing, placed, run_on_cpu, sample};
use gpuimg::batch::{BatchOptions, FileStatus, process};
use gpuimg::{
    Calibration, Curve, Device, Format, Image, Normalize, Operations, Palette, Project, Projection,
    ReadOptions, Sample, SampleType, Stack, SumValue, WriteOptions,
};
use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Deref, DerefMut};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;

fn three_by_two<T: Sample>(samples: [T; 6]) -> Image {
    Image::new(3, 2, 1, samples.to_vec()).expect("3×2")
}

/// The samples of the result for an image of 3×2 pixels with the values 1 to 6.
fn result(operations: Operations) -> (usize, Vec<u16>) {
    let image = three_by_two([1u16, 2, 3, 4, 5, 6]);
    let result = operations.run(image, &Device::cpu()).expect("supported");
    (result.width(), result.to_vec().expect("16 bits"))
}

#[test]
fn operations_on_three_by_two() {
    let new = Operations::new;
    assert_eq!(result(new()), (3, vec![1, 2, 3, 4, 5, 6]));
    assert_eq!(result(new().rotate90()), (2, vec![4, 1, 5, 2, 6, 3]));
    assert_eq!(result(new().rotate180()), (3, vec![6, 5, 4, 3, 2, 1]));
    assert_eq!(result(new().rotate270()), (2, vec![3, 6, 2, 5, 1, 4]));
    assert_eq!(result(new().transpose()), (2, vec![1, 4, 2, 5, 3, 6]));
    assert_eq!(result(new().flip_horizontal()), (3, vec![3, 2, 1, 6, 5, 4]));
    assert_eq!(result(new().flip_vertical()), (3, vec![4, 5, 6, 1, 2, 3]));
    let crop = new().crop(1, 0, 2, 1).expect("a rectangle");
    assert_eq!(result(crop), (2, vec![2, 3]));
    // (v − 1) · 65535 / 5
    let full = vec![0, 13107, 26214, 39321, 52428, 65535];
    assert_eq!(result(new().normalize(Normalize::new())), (3, full));
    let range = Normalize::range(2.0, 5.0).and_then(|range| range.to(10, 13));
    let range = new().normalize(range.expect("ranges"));
    assert_eq!(result(range), (3, vec![10, 10, 11, 12, 13, 13]));
    let window = Normalize::window(3.0, 2.0).and_then(|window| window.to(0, 9));
    let window = new().normalize(window.expect("a window"));
    assert_eq!(result(window), (3, vec![0, 0, 9, 9, 9, 9]));
    // 65535·√((v − 1)/5)
    let gamma = Normalize::new().curve(Curve::gamma(2.0).expect("2"));
    let curved = vec![0, 29308, 41448, 50763, 58616, 65535];
    assert_eq!(result(new().normalize(gamma)), (3, curved));
    // Columns 0 to 1.5 and 1.5 to 3, rows 0 and 1: 27 / 12 … in exact averages.
    let fit = new().fit(NonZeroUsize::new(1).expect("1"));
    assert_eq!(result(fit), (1, vec![4]));
}

#[test]
fn curves_are_those_of_the_command_line() {
    for (curve, text) in [
        (Curve::gamma(2.2), "gamma:2.2"),
        (Curve::gamma(0.01), "gamma:0.01"),
        (Curve::asinh(0.000001), "asinh:0.000001"),
        ("asinh".parse(), "asinh:0.1"),
        (Ok(Curve::log()), "log"),
    ] {
        assert_eq!(curve.expect(text).to_string(), text);
    }
    for wrong in [
        Curve::gamma(f64::NAN),
        Curve::gamma(-1.0),
        Curve::gamma(0.001),
        Curve::gamma(1e300),
        Curve::asinh(0.0),
        Curve::asinh(1.0 / 3.0),
        "midtones:0.5".parse(),
    ] {
        assert!(wrong.is_err(), "{wrong:?}");
    }
}

#[test]
fn operations_are_applied_in_order() {
    let operations: Operations = "rotate 90 + flip h".parse().expect("verbs");
    assert_eq!(result(operations), (2, vec![1, 4, 2, 5, 3, 6]));
    let operations: Operations = "crop 0,0,2x2 + rotate 90".parse().expect("verbs");
    assert_eq!(operations.to_string(), "crop + rotate");
    assert_eq!(result(operations), (2, vec![4, 1, 5, 2]));
}

#[test]
fn depths_and_orientations_are_changed() {
    let image = three_by_two([0u16, 128, 129, 257, 65534, 65535]);
    let eight = Operations::new().to_eight_bits();
    let eight = eight.run(image, &Device::cpu()).expect("16 to 8 bits");
    assert_eq!(eight.to_vec::<u8>().expect("u8"), [0, 0, 1, 1, 255, 255]);
    let sixteen = Operations::new().to_sixteen_bits();
    let sixteen = sixteen.run(eight, &Device::cpu()).expect("8 to 16 bits");
    let expected = [0, 0, 257, 257, 65535, 65535];
    assert_eq!(sixteen.to_vec::<u16>().expect("u16"), expected);

    let mut sideways = three_by_two([1u16, 2, 3, 4, 5, 6]);
    let mut metadata = sideways.metadata();
    metadata.set_orientation(Some(6));
    sideways.set_metadata(metadata);
    let upright = Operations::new().auto_orient();
    let upright = upright.run(sideways, &Device::cpu()).expect("upright");
    assert_eq!(upright.to_vec::<u16>().expect("u16"), [4, 1, 5, 2, 6, 3]);
    assert_eq!(upright.metadata().orientation(), Some(1));
}

/// Metadata of three channels of 16 bits, on one channel of 8 bits.
#[test]
fn metadata_of_other_samples_are_dropped() {
    let undo = Operations::new().normalize(Normalize::new().per_channel().undo());
    let rgb = Image::new(2, 1, 3, vec![1u16, 2, 3, 4, 5, 6]).expect("RGB");
    let mut scaled = undo.run(rgb, &Device::cpu()).expect("scaled");
    let mut metadata = scaled.metadata();
    metadata.set_orientation(Some(3));
    scaled.set_metadata(metadata.clone());
    assert!(scaled.metadata().can_be_restored());
    let mut other = three_by_two([1u8, 2, 3, 4, 5, 6]);
    other.set_metadata(metadata);
    assert!(!other.metadata().can_be_restored());
    assert_eq!(other.metadata().orientation(), Some(3));
    let bytes = gpuimg::encode(&other, "tiff".parse().expect("TIFF"));
    let again = gpuimg::decode(bytes.expect("encoded")).expect("read");
    assert_eq!(again.as_slice::<u8>(), other.as_slice::<u8>());
    assert_eq!(again.metadata().orientation(), Some(3));
}

#[test]
fn samples_of_every_type_come_back() {
    fn check<T: Sample + PartialEq + std::fmt::Debug>(samples: [T; 6], kind: SampleType) {
        let image = three_by_two(samples);
        assert_eq!(image.sample_type(), kind);
        assert_eq!(image.to_vec::<T>().expect("the type"), samples);
        let bytes = gpuimg::encode(&image, "npy".parse().expect("NumPy"));
        let again = gpuimg::decode(bytes.expect("stored")).expect("read");
        assert_eq!(again.sample_type(), kind);
        assert_eq!(again.to_vec::<T>().expect("the type"), samples);
        let is_unsigned = matches!(kind, SampleType::U8 | SampleType::U16 | SampleType::U32);
        let slice = image.as_slice::<T>();
        assert_eq!(
            slice.map(<[T]>::to_vec),
            is_unsigned.then(|| samples.into())
        );
    }
    check([0u8, 1, 2, 127, 128, 255], SampleType::U8);
    check([i8::MIN, -1, 0, 1, 2, i8::MAX], SampleType::I8);
    check([0u16, 1, 2, 3, 32768, u16::MAX], SampleType::U16);
    check([i16::MIN, -1, 0, 1, 2, i16::MAX], SampleType::I16);
    check([0u32, 1, 2, 3, 4, u32::MAX], SampleType::U32);
    check([i32::MIN, -1, 0, 1, 2, i32::MAX], SampleType::I32);
    check([f32::MIN, -1.5, 0.0, 1e-30, 2.0, f32::MAX], SampleType::F32);
    check(
        [f64::MIN, -1.5, 0.0, 1e-300, 2.0, f64::MAX],
        SampleType::F64,
    );
}

#[test]
fn pixels_of_another_shape_or_type_are_refused() {
    let error = Image::new(3, 2, 1, vec![1u8; 5]).expect_err("5 samples");
    let expected = "an image of 3×2 pixels with 1 channels has 6 samples, not 5";
    assert_eq!(error.to_string(), expected);
    assert!(Image::new(0, 2, 1, Vec::<u8>::new()).is_err());
    assert!(Image::new(1, 1, 5, vec![1u8; 5]).is_err());
    assert!(Image::new(usize::MAX, 2, 1, vec![1u8; 2]).is_err());
    let image = three_by_two([1u16; 6]);
    let error = image.to_vec::<i16>().expect_err("u16");
    assert_eq!(
        error.to_string(),
        "the samples of the image are u16, not i16"
    );
    assert!(Operations::new().crop(0, 0, 0, 1).is_err());
    assert!(
        Operations::new()
            .crop(1, 0, 3, 1)
            .expect("later")
            .run(image, &Device::cpu())
            .is_err()
    );
    for options in [
        Normalize::clip(5.0, 5.0),
        Normalize::range(f64::NAN, 1.0),
        Normalize::window(0.0, 1.0),
    ] {
        assert!(options.is_err());
    }
    assert!(Normalize::new().to(-40_000, 1).is_err());
    assert!(
        Operations::new()
            .run_stack(Vec::new(), &Device::cpu())
            .is_err()
    );
    let wide = three_by_two([1f32; 6]);
    let calibration = Calibration {
        dark: Some(wide),
        ..Calibration::default()
    };
    assert!(Operations::new().calibrate(calibration).is_err());
    assert!(Operations::new().calibrate(Calibration::default()).is_err());
}

/// The verbs with their options, and the same operations.
fn verbs() -> Vec<(Vec<&'static str>, Operations)> {
    let parsed = |text: &str| text.parse::<Operations>().expect("verbs");
    let fit = NonZeroUsize::new(2).expect("2");
    let cases = [
        ("convert", parsed("convert")),
        ("convert --depth 8", Operations::new().to_eight_bits()),
        ("convert --depth 16", Operations::new().to_sixteen_bits()),
        ("convert --auto-orient", Operations::new().auto_orient()),
        ("convert --fit 2", Operations::new().fit(fit)),
        ("normalize", Operations::new().normalize(Normalize::new())),
        ("normalize --clip 5:90", parsed("normalize --clip 5:90")),
        (
            "normalize --per-channel --undo",
            Operations::new().normalize(Normalize::new().per_channel().undo()),
        ),
        (
            "normalize --range 1:200 --depth 8",
            parsed("normalize --range 1:200").to_eight_bits(),
        ),
        (
            "normalize --curve asinh:0.05",
            Operations::new()
                .normalize(Normalize::new().curve(Curve::asinh(0.05).expect("a curve"))),
        ),
        (
            "normalize --range stf",
            Operations::new().normalize(Normalize::stf()),
        ),
        (
            "normalize --range zscale --curve log",
            Operations::new().normalize(Normalize::zscale().curve(Curve::log())),
        ),
        ("lut fire", Operations::new().lut(Palette::Fire)),
        ("transpose", Operations::new().transpose()),
        ("rotate 90", Operations::new().rotate90()),
        ("rotate 180", Operations::new().rotate180()),
        ("rotate 270", Operations::new().rotate270()),
        ("flip horizontal", Operations::new().flip_horizontal()),
        ("flip vertical", Operations::new().flip_vertical()),
        (
            "crop 0,0,1x1",
            Operations::new().crop(0, 0, 1, 1).expect("1×1"),
        ),
    ];
    let words = |text: &'static str| text.split(' ').collect();
    let mut cases: Vec<_> = cases
        .map(|(text, operations)| (words(text), operations))
        .into();
    let chain = "normalize --unsigned + rotate 90";
    cases.push((vec!["run", chain], parsed(chain)));
    cases
}

/// The file that a verb writes, or `None` if it refuses.
fn written_by_program(folder: &Path, verb: &[&str], input: &str, output: &str) -> Option<Vec<u8>> {
    let run = run_on_cpu(
        folder,
        &[verb, &[input, output, "--overwrite", "--quiet"]].concat(),
    );
    (run.code == 0).then(|| fs::read(folder.join(output)).expect("the output"))
}

#[test]
fn every_verb_writes_the_bytes_of_the_command_line() {
    let names = ["a.png", "a.tif", "a.npy", "a.fits"];
    let (mut same, mut refused) = (0, 0);
    let device = Device::cpu();
    let mut files = small_files();
    files.push(("stack.tif".into(), small_stack()));
    files.push(("signed.tif".into(), signed()));
    let cases = verbs();
    for (index, (name, bytes)) in files.iter().enumerate() {
        let folder = placed(&[(name.clone(), bytes.clone())]);
        let path = |name: &str| folder.path().join(name);
        // Every other pair: each file with half of the verbs, and each verb with half of the files.
        for (number, (verb, operations)) in cases.iter().enumerate() {
            if (index + number) % 2 != 0 {
                continue;
            }
            let output = names[(index + number) / 2 % names.len()];
            let expected = written_by_program(folder.path(), verb, name, output);
            let what = format!("{verb:?} {name} {output}");
            let through_files = operations.run_file(
                path(name),
                path(&format!("file-{output}")),
                &ReadOptions::new(),
                &WriteOptions::new().overwrite(),
                &device,
            );
            let file = through_files
                .ok()
                .map(|_| fs::read(path(&format!("file-{output}"))));
            let file = file.map(|bytes| bytes.expect("the output"));
            assert!(file == expected, "{what}: from file to file");
            let in_memory = || {
                let stack = Stack::open(path(name))?;
                let pages = stack.pages()?.collect::<gpuimg::Result<Vec<Image>>>()?;
                let results = operations.run_stack(pages, &device)?;
                let format = Format::of_path(output)?;
                let bytes = gpuimg::encode_stack(&results, format, &WriteOptions::new())?;
                let options = WriteOptions::new().overwrite();
                gpuimg::write_stack(path(output), &results, &options)?;
                Ok::<_, gpuimg::Error>((bytes, fs::read(path(output)).expect("the output")))
            };
            let in_memory = in_memory();
            match (expected, in_memory) {
                (Some(expected), Ok((bytes, file))) => {
                    assert!(bytes == file, "{what}: encoded and written");
                    assert!(bytes == expected, "{what}: in memory");
                    same += 1;
                }
                (None, Err(_)) => refused += 1,
                // Pixels in memory keep what the format of a later file cannot store: the range, and the sign.
                (None, Ok(_)) if verb.contains(&"--undo") => {}
                (Some(_), Err(error)) if error.reason().contains("signed samples") => {}
                (expected, found) => panic!(
                    "{what}: the program {}, in memory {:?}",
                    expected.map_or("refuses", |_| "writes"),
                    found.map(|_| "written")
                ),
            }
        }
    }
    counted(&format!(
        "{same} files with the bytes of the command line, {refused} refused by both"
    ));
    assert!(same > 140, "{same}");
}

/// An ImageJ hyperstack of small pages.
fn small_stack() -> Vec<u8> {
    file(
        6,
        "ImageJ=1.54f\nimages=6\nchannels=2\nslices=3\nhyperstack=true\n",
    )
}

#[test]
fn calibrate_and_restore_write_the_bytes_of_the_command_line() {
    let folder = folder(&[]);
    let path = |name: &str| folder.path().join(name);
    let frame = |samples| three_by_two::<u16>(samples);
    gpuimg::write(path("in.tif"), &frame([10, 200, 3000, 40, 500, 6000])).expect("written");
    gpuimg::write(path("dark.tif"), &frame([1, 2, 3, 4, 5, 6])).expect("written");
    gpuimg::write(path("flat.tif"), &frame([100, 101, 102, 103, 104, 110])).expect("written");
    let read = |name: &str| gpuimg::read(path(name)).expect("read");
    let calibration = Calibration {
        dark: Some(read("dark.tif")),
        flat: Some(read("flat.tif")),
        offset: -3,
        hot: Some(100),
        ..Calibration::default()
    };
    let calibrate = Operations::new().calibrate(calibration).expect("frames");
    let verb = [
        "calibrate",
        "--dark",
        "dark.tif",
        "--flat",
        "flat.tif",
        "--offset=-3",
        "--hot",
        "100",
    ];
    let expected = written_by_program(folder.path(), &verb, "in.tif", "out.tif");
    let result = calibrate.run(read("in.tif"), &Device::cpu()).expect("fits");
    let found = gpuimg::encode(&result, "tiff".parse().expect("TIFF"));
    assert_eq!(Some(found.expect("encoded")), expected);

    let undo = Operations::new().normalize(Normalize::new().undo());
    let scaled = undo.run(read("in.tif"), &Device::cpu()).expect("scaled");
    assert!(scaled.metadata().can_be_restored());
    gpuimg::write(path("scaled.png"), &scaled).expect("written");
    let expected = written_by_program(folder.path(), &["restore"], "scaled.png", "again.tif");
    // Through memory and through a file.
    for scaled in [scaled, read("scaled.png")] {
        let again = Operations::new().restore(false);
        let again = again.run(scaled, &Device::cpu()).expect("restored");
        assert_eq!(again.as_slice::<u16>(), read("in.tif").as_slice::<u16>());
        let found = gpuimg::encode(&again, "tiff".parse().expect("TIFF"));
        assert_eq!(Some(found.expect("encoded")), expected);
    }
}

#[test]
fn pages_are_those_of_the_command_line() {
    let folder = folder(&[("stack.tif", &small_stack())]);
    let path = folder.path().join("stack.tif");
    let stack = Stack::open(&path).expect("a stack");
    assert_eq!((stack.len(), stack.format().name()), (6, "TIFF"));
    for page in 0..6 {
        let number = (page + 1).to_string();
        let verb = ["convert", "--page", &number];
        let expected = written_by_program(folder.path(), &verb, "stack.tif", "page.tif");
        let image = stack.page(page).expect("a page");
        let found = gpuimg::encode(&image, stack.format()).expect("encoded");
        assert_eq!(Some(found), expected, "page {number}");
    }
    let error = stack.page(6).expect_err("no page");
    assert!(
        error
            .to_string()
            .ends_with("it has no page 6: pages are counted from 0")
    );
    let places = ReadOptions::new().axes("C=2,Z=1-2").expect("places");
    let some = Stack::open_with(&path, &places).expect("a stack");
    let pages: Vec<Image> = some
        .pages()
        .expect("open")
        .map(|page| page.expect("read"))
        .collect();
    let found = gpuimg::encode_stack(&pages, some.format(), &WriteOptions::new());
    let verb = ["convert", "--axes", "C=2,Z=1-2"];
    let expected = written_by_program(folder.path(), &verb, "stack.tif", "some.tif");
    assert_eq!(Some(found.expect("encoded")), expected);
}

#[test]
fn numbers_are_those_of_the_command_line() {
    let image = Image::new(2, 1, 3, vec![1i16, -2, 3, 4, 5, -6]).expect("RGB");
    let sums = gpuimg::sum(&image, &Device::cpu()).expect("sums");
    assert_eq!(sums.total.sum, SumValue::Whole(5));
    assert_eq!((sums.total.min, sums.total.max), (-6.0, 5.0));
    let channels: Vec<_> = sums
        .channels
        .iter()
        .map(|sum| (sum.name, sum.sum))
        .collect();
    let expected = [("red", 5), ("green", 3), ("blue", -3)];
    assert_eq!(
        channels,
        expected.map(|(name, sum)| (name, SumValue::Whole(sum)))
    );
    let reals = three_by_two([0.5f32, 0.25, 1.0, 2.0, 4.0, 8.0]);
    let sums = gpuimg::sum(&reals, &Device::cpu()).expect("sums");
    assert_eq!(sums.total.sum, SumValue::Real(15.75));
    let histogram = gpuimg::histogram(&image, &Device::cpu()).expect("counts");
    assert_eq!((histogram.channels(), histogram.first_value()), (3, -32768));
    let counts = histogram.counts(1);
    let counted: Vec<usize> = (0..counts.len()).filter(|&bin| counts[bin] > 0).collect();
    assert_eq!(counted, [32768 - 2, 32768 + 5]);
    let error = gpuimg::histogram(&reals, &Device::cpu()).expect_err("floats");
    assert_eq!(error.operation(), Some("histogram"));
}

#[test]
fn a_plan_is_that_of_the_run() {
    let image = three_by_two([10u16, 11, 12, 13, 14, 20]);
    let operations: Operations = "normalize + rotate 90".parse().expect("verbs");
    let plans = operations
        .plan(std::slice::from_ref(&image), &Device::cpu())
        .expect("a plan");
    let shape = plans[0].output_shape().expect("a shape");
    let result = operations.run(image, &Device::cpu()).expect("supported");
    assert_eq!(shape, result.shape());
    assert_eq!(plans[0].to_string(), result.report().plan);
    assert!(
        result.report().device.starts_with("CPU"),
        "{}",
        result.report().device
    );
    let path = sample("nuclei-stack.tif");
    let plans = operations.plan_file(&path, &ReadOptions::new(), &Device::cpu());
    assert_eq!(
        plans.expect("plans").len(),
        Stack::open(path).expect("a stack").len()
    );
}

#[test]
fn errors_have_the_operation_the_file_and_the_reason() {
    let folder = folder(&[
        ("bad.png", b"\x89PNG\r\n\x1a\nno more"),
        ("text.txt", b"text"),
    ]);
    let path = |name: &str| folder.path().join(name);
    let image = three_by_two([1u16, 2, 3, 4, 5, 6]);
    gpuimg::write(path("in.png"), &image).expect("written");
    let (reading, writing) = (ReadOptions::new(), WriteOptions::new());
    let crop = Operations::new().crop(0, 0, 9, 9).expect("9×9");
    let run = |input: &str, output: &str| {
        let device = Device::cpu();
        let done = crop.run_file(path(input), path(output), &reading, &writing, &device);
        done.expect_err("an error")
    };
    for (error, operation, file, kind, verb) in [
        (
            gpuimg::read(path("none.png")).expect_err("none"),
            "read",
            "none.png",
            Some(ErrorKind::NotFound),
            ["convert", "none.png"],
        ),
        (
            gpuimg::read(path("bad.png")).expect_err("bad"),
            "read",
            "bad.png",
            None,
            ["convert", "bad.png"],
        ),
        (
            gpuimg::read(path("text.txt")).expect_err("text"),
            "read",
            "text.txt",
            None,
            ["convert", "text.txt"],
        ),
        (
            run("in.png", "out.png"),
            "crop",
            "in.png",
            None,
            ["crop 0,0,9x9", "in.png"],
        ),
        (
            run("none.png", "out.png"),
            "read",
            "none.png",
            Some(ErrorKind::NotFound),
            ["crop 0,0,9x9", "none.png"],
        ),
        (
            run("in.png", "in.png"),
            "write",
            "in.png",
            Some(ErrorKind::AlreadyExists),
            ["crop 0,0,1x1", "in.png"],
        ),
    ] {
        assert_eq!(error.operation(), Some(operation), "{error}");
        assert_eq!(error.path(), Some(&*path(file)), "{error}");
        assert_eq!(error.io_kind(), kind, "{error}");
        // The sentence of the command line, with the path as it was given.
        let output = if operation == "write" {
            "in.png"
        } else {
            "out.png"
        };
        let verb: Vec<&str> = verb[0].split(' ').collect();
        let run = run_on_cpu(folder.path(), &[&verb[..], &[file, output]].concat());
        let below = format!("{}/", folder.path().display());
        assert_eq!(
            run.stderr,
            format!("gpuimg: {}\n", error.to_string().replace(&below, ""))
        );
        assert!(error.to_string().ends_with(&error.reason()), "{error}");
    }
    let error = gpuimg::write(path("out.webp"), &image).expect_err("WebP");
    assert_eq!(
        (error.operation(), error.path()),
        (Some("write"), Some(&*path("out.webp")))
    );
    let error = "normalize --clip 5"
        .parse::<Operations>()
        .expect_err("no range");
    assert_eq!((error.operation(), error.path()), (None, None));
    let error = crop.run(image, &Device::cpu()).expect_err("too large");
    assert!(
        error.to_string().starts_with("cannot crop the image: "),
        "{error}"
    );
    assert_eq!(error.path(), None);
    let error = Device::gpu_number(99);
    let error = Operations::new()
        .rotate90()
        .run(three_by_two([1u16; 6]), &error);
    assert!(error.expect_err("no such GPU").is_gpu());
    assert_eq!(listing(folder.path()), ["bad.png", "in.png", "text.txt"]);
}

#[test]
fn a_batch_has_the_files_of_the_command_line() {
    let mut files = small_files();
    files.retain(|(name, _)| !name.contains('.'));
    files.truncate(5);
    let files: Vec<_> = files
        .into_iter()
        .map(|(name, bytes)| (format!("in/{name}/a"), bytes))
        .collect();
    let folder = placed(&files);
    fs::write(folder.path().join("in/bad.png"), b"\x89PNG\r\n\x1a\n").expect("a file");
    let path = |name: &str| folder.path().join(name);
    let program = run_on_cpu(
        folder.path(),
        &[
            "run",
            "normalize + rotate 90",
            "in",
            "expected",
            "--format",
            "tiff",
            "-q",
        ],
    );
    assert_eq!(program.code, 1, "{}", program.stderr);
    let operations: Operations = "normalize + rotate 90".parse().expect("verbs");
    let tiff: Format = "tiff".parse().expect("TIFF");
    let options = BatchOptions::new()
        .device(Device::cpu())
        .writing(WriteOptions::new().format(tiff));
    let mut seen = Vec::new();
    let results = process(&[path("in")], path("out"), &operations, &options, |file| {
        assert_eq!(
            (file.finished, file.files),
            (seen.len() + 1, files.len() + 1)
        );
        seen.push(file.input.clone());
        ControlFlow::Continue(())
    });
    let results = results.expect("a batch");
    assert_eq!(
        seen,
        results
            .iter()
            .map(|file| file.input.clone())
            .collect::<Vec<_>>()
    );
    let failed: Vec<_> = results
        .iter()
        .filter(|file| file.error().is_some())
        .collect();
    let [failed] = &failed[..] else {
        panic!("{results:?}")
    };
    assert_eq!(failed.input, path("in/bad.png"));
    let error = failed.error().expect("an error");
    assert_eq!(
        (error.operation(), error.path()),
        (Some("read"), Some(&*path("in/bad.png")))
    );
    assert_eq!(outputs(&path("out")), outputs(&path("expected")));
    assert_eq!(outputs(&path("out")).len(), files.len());

    // Again: existing outputs are errors, or skipped where the batch resumes.
    let again = |options: &BatchOptions| {
        let none = |_: &_| ControlFlow::Continue(());
        process(&[path("in")], path("out"), &operations, options, none).expect("a batch")
    };
    let kinds = again(&options)
        .iter()
        .map(|file| file.error().expect("an error").io_kind())
        .collect::<Vec<_>>();
    let exist = kinds
        .iter()
        .filter(|kind| **kind == Some(ErrorKind::AlreadyExists))
        .count();
    assert_eq!(exist, files.len(), "{kinds:?}");
    let fresh = BatchOptions::new()
        .device(Device::cpu())
        .writing(WriteOptions::new().format(tiff));
    fs::remove_dir_all(path("out")).expect("removed");
    again(&fresh);
    let skipped = again(&fresh.resume());
    let skipped = skipped
        .iter()
        .filter(|file| matches!(file.status, FileStatus::Skipped))
        .count();
    assert_eq!(skipped, files.len());

    // The caller stops after the first file: files that are finished by then are results, but it hears of no more.
    fs::remove_dir_all(path("out")).expect("removed");
    let mut calls = 0;
    let results = process(&[path("in")], path("out"), &operations, &options, |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!(calls, 1);
    let results = results.expect("a batch");
    let done = results.iter().filter(|file| file.error().is_none()).count();
    assert_eq!(outputs(&path("out")).len(), done);
}

/// The files below a folder, without the journal.
fn outputs(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = crate::support::batch::tree(folder).into_iter();
    files
        .filter(|(name, _)| !name.ends_with(".gpuimg-journal"))
        .collect()
}

#[test]
fn a_batch_with_wrong_arguments_is_an_error() {
    let folder = folder(&[("a.pgm", b"P5 1 1 255\n\x01")]);
    let path = |name: &str| folder.path().join(name);
    let none = |_: &_| ControlFlow::Continue(());
    let run = |inputs: &[std::path::PathBuf], output: &str, options: &BatchOptions| {
        process(inputs, path(output), &Operations::new(), options, none)
    };
    let options = BatchOptions::new().device(Device::cpu());
    assert!(run(&[], "out", &options).is_err());
    assert!(run(&[path("a.pgm")], "out.mp4", &options).is_err());
    assert!(run(&[path("a.pgm")], "none/out.png", &options).is_err());
    assert!(BatchOptions::new().name("../{stem}").is_err());
    assert!(BatchOptions::new().memory("8").is_err());
    let missing = run(&[path("a.pgm"), path("none.png")], "out/", &options).expect("a batch");
    assert_eq!(
        missing.iter().filter(|file| file.error().is_some()).count(),
        1
    );
}

#[test]
fn several_threads_work_at_once() {
    let device = Device::auto();
    let image = |seed: usize| {
        let samples = (0..100 * 70)
            .map(|index| (index * 7 + seed * 31) as u16)
            .collect();
        Image::new(100, 70, 1, samples).expect("an image")
    };
    let operations: Operations = "normalize --clip 1:99 + rotate 90".parse().expect("verbs");
    let png: Format = "png".parse().expect("PNG");
    let work = |seed: usize| {
        let result = operations.run(image(seed), &device).expect("supported");
        gpuimg::encode(&result, png).expect("encoded")
    };
    let alone: Vec<Vec<u8>> = (0..8).map(work).collect();
    let together = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|seed| scope.spawn(move || (0..4).map(|_| work(seed)).collect::<Vec<_>>()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    for (alone, together) in alone.iter().zip(together) {
        assert!(together.iter().all(|bytes| bytes == alone));
    }
}

#[test]
fn a_gpu_gives_the_pixels_of_the_cpu() {
    let sides = [(3, 2), (640, 511), (1500, 1100)];
    if gpu(4 * sides.len()).is_none() {
        return;
    }
    let (device, cpu) = (Device::gpu(), Device::cpu());
    let operations: Operations = "normalize --clip 1:99 + rotate 90".parse().expect("verbs");
    let operations = operations.fit(NonZeroUsize::new(900).expect("900"));
    // One device, and several threads that share it.
    thread::scope(|scope| {
        for seed in 0..4 {
            let (operations, device, cpu) = (&operations, &device, &cpu);
            scope.spawn(move || {
                for (width, height) in sides {
                    let samples =
                        (0..width * height * 3).map(|index| (index * 7 + seed * 31) as u16);
                    let image = Image::new(width, height, 3, samples.collect()).expect("an image");
                    let on_gpu = operations.run(image.clone(), device).expect("a GPU");
                    assert!(
                        on_gpu.report().device.starts_with("GPU"),
                        "{}",
                        on_gpu.report().device
                    );
                    assert_eq!(
                        gpuimg::sum(&image, device).expect("sums"),
                        gpuimg::sum(&image, cpu).expect("sums")
                    );
                    assert!(
                        on_gpu == operations.run(image, cpu).expect("the CPU"),
                        "{width}×{height}"
                    );
                }
            });
        }
    });
}

#[test]
fn types_can_be_sent_to_other_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Image>();
    check::<Operations>();
    check::<Device>();
    check::<Stack>();
    check::<BatchOptions>();
    check::<gpuimg::Error>();
}

/// The other half of `nothing_is_printed`, in a process of its own.
#[test]
#[ignore = "run by nothing_is_printed"]
fn everything_that_could_print() {
    let folder = folder(&[
        ("in/bad.png", b"\x89PNG\r\n\x1a\n"),
        ("in/a.pgm", b"P5 3 2 255\n\x01\x02\x03\x04\x05\xff"),
    ]);
    let path = |name: &str| folder.path().join(name);
    // An orientation that JPEG does not store, a flat image, outliers, a file that exists: warnings and errors.
    let mut image = three_by_two([7u16; 6]);
    let mut metadata = image.metadata();
    metadata.set_orientation(Some(6));
    image.set_metadata(metadata);
    let result = Operations::new()
        .normalize(Normalize::new())
        .run(image, &Device::auto());
    let result = result.expect("supported");
    assert!(!result.report().warnings.is_empty());
    let report = gpuimg::write(path("a.pgm"), &result).expect("written");
    assert!(!report.warnings.is_empty());
    assert!(gpuimg::write(path("a.pgm"), &result).is_err());
    assert!(gpuimg::read(path("in/bad.png")).is_err());
    let deep = Operations::new().normalize(Normalize::new());
    for output in ["out/", "out/", "jpegs/"] {
        let options = BatchOptions::new().name(if output == "jpegs/" {
            "{stem}.jpg"
        } else {
            "{stem}.{ext}"
        });
        let none = |_: &_| ControlFlow::Continue(());
        process(
            &[path("in")],
            path(output),
            &deep,
            &options.expect("a name"),
            none,
        )
        .expect("a batch");
    }
}

#[test]
fn nothing_is_printed() {
    let program = std::env::current_exe().expect("the tests");
    let run = Command::new(program)
        .args([
            "--exact",
            "api::everything_that_could_print",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .expect("the tests run");
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stdout)
    );
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    let lines = String::from_utf8(run.stdout).expect("text");
    let own = |line: &&str| {
        !(line.is_empty() || line.starts_with("running 1 test") || line.starts_with("test "))
    };
    assert_eq!(
        lines.lines().filter(own).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn samples_whose_type_is_known_at_run_time_are_bytes() {
    let fill = |bytes: &mut [u8]| {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (index as u8).wrapping_mul(37).wrapping_add(1);
        }
    };
    let mut cases = 0;
    for sample_type in [
        SampleType::U8,
        SampleType::I8,
        SampleType::U16,
        SampleType::I16,
        SampleType::U32,
        SampleType::I32,
        SampleType::F32,
        SampleType::F64,
    ] {
        let image = Image::of_bytes(3, 2, 4, sample_type, fill).expect("24 samples");
        assert_eq!(image.sample_type(), sample_type);
        let mut expected = vec![0; 24 * sample_type.bytes()];
        fill(&mut expected);
        assert_eq!(image.to_bytes(), expected, "{sample_type}");
        cases += 1;
    }
    assert_eq!(cases, 8);

    let values = [-5i16, 300, -32768, 32767];
    let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_ne_bytes()).collect();
    let fill = |to: &mut [u8]| to.copy_from_slice(&bytes);
    let image = Image::of_bytes(2, 2, 1, SampleType::I16, fill).expect("4 samples");
    assert_eq!(image.to_vec::<i16>().expect("i16"), values);
    let same = Image::new(2, 2, 1, values.to_vec()).expect("4 samples");
    assert_eq!(image, same);
    assert_eq!(same.to_bytes(), bytes);

    for (width, channels, reason) in [
        (0, 1, "the image is empty (0×2)"),
        (2, 5, "an image has 1 to 4 channels, not 5"),
    ] {
        let refused = Image::of_bytes(width, 2, channels, SampleType::U8, |_| unreachable!());
        assert_eq!(refused.expect_err("refused").to_string(), reason);
    }
}

#[test]
fn numbers_of_an_image_that_is_passed_by_value_are_the_same() {
    let image = three_by_two([1u16, 2, 3, 4, 5, 60000]);
    let device = Device::cpu();
    let sums = gpuimg::sum(image.clone(), &device).expect("integers");
    assert_eq!(sums.total.sum, SumValue::Whole(60015));
    assert_eq!(sums, gpuimg::sum(&image, &device).expect("integers"));
    let counts = gpuimg::histogram(image.clone(), &device).expect("16 bits");
    assert_eq!(counts.counts(0)[60000], 1);
    assert_eq!(counts, gpuimg::histogram(&image, &device).expect("16 bits"));
}

/// 2⁶² bytes: more addresses than a process can have.
#[test]
fn too_little_memory_is_a_kind_of_its_own() {
    let refused = Image::of_bytes(1 << 31, 1 << 30, 1, SampleType::U16, |_| unreachable!());
    let error = refused.expect_err("refused");
    assert_eq!(error.io_kind(), Some(ErrorKind::OutOfMemory));
    assert_eq!(
        error.to_string(),
        "not enough memory for 4611686018427387904 bytes of samples"
    );
}

#[test]
fn errors_name_the_path_that_an_image_was_given() {
    let mut image = three_by_two([1u16, 2, 3, 4, 5, 6]);
    image.set_path("frame 7");
    assert_eq!(image.path(), Some(Path::new("frame 7")));
    let crop = Operations::new().crop(2, 0, 2, 1).expect("a rectangle");
    let error = crop.run(image, &Device::cpu()).expect_err("outside");
    assert_eq!(error.path(), Some(Path::new("frame 7")));
}

#[test]
fn the_table_of_verbs_is_that_of_the_command_line() {
    let verbs: Vec<gpuimg::Verb> = gpuimg::verbs().collect();
    for verb in &verbs {
        let help = Command::new(binary()).args([verb.name, "--help"]).output();
        let help = String::from_utf8(help.expect("runs").stdout).expect("text");
        assert!(
            !verb.about.is_empty() && help.starts_with(&verb.about),
            "{}",
            verb.name
        );
        for argument in verb.arguments.iter().filter(|it| !it.is_positional) {
            let option = match &argument.value {
                Some(value) if argument.delimiter.is_none() => {
                    format!("--{} <{value}>", argument.name)
                }
                _ => format!("--{}", argument.name),
            };
            assert!(help.contains(&option), "{}: {option}", verb.name);
        }
        let option = |name: &str| verb.arguments.iter().find(|it| it.name == name);
        assert!(option("across").is_none() && option("overwrite").is_none());
    }
    let normalize = verbs.iter().find(|verb| verb.name == "normalize");
    let clip = normalize.and_then(|verb| verb.arguments.iter().find(|it| it.name == "clip"));
    let clip = clip.expect("normalize has it");
    assert_eq!(
        (clip.value.as_deref(), clip.delimiter),
        (Some("LOW:HIGH"), None)
    );
    let preview = verbs.iter().find(|verb| verb.name == "preview");
    let defaults = preview.map(|verb| verb.defaults);
    assert_eq!(defaults, Some(&[("fit", "1024"), ("depth", "8")][..]));
}

/// Memory of another owner, which counts its owners.
struct Lender(Arc<Vec<u8>>);

impl Deref for Lender {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[test]
fn lent_samples_are_read_where_they_are_and_never_changed() {
    let numbers: Vec<u16> = (0..300 * 300u32).map(|i| (i * 7919) as u16).collect();
    let owned = Image::new(300, 300, 1, numbers.clone()).unwrap();
    let memory = Arc::new(numbers.iter().flat_map(|it| it.to_ne_bytes()).collect());
    let lend = || {
        let memory = Lender(Arc::clone(&memory));
        Image::of_memory(300, 300, 1, SampleType::U16, memory).unwrap()
    };
    assert_eq!(lend().to_bytes().as_ptr(), memory.as_ptr());
    assert_eq!(lend().clone(), owned);
    let cpu = Device::cpu();
    assert_eq!(
        gpuimg::sum(lend(), &cpu).unwrap(),
        gpuimg::sum(&owned, &cpu).unwrap()
    );
    for (verb, operations) in verbs() {
        let Ok(expected) = operations.run(owned.clone(), &cpu) else {
            continue;
        };
        assert_eq!(operations.run(lend(), &cpu).unwrap(), expected, "{verb:?}");
    }
    // The result of an operation that changes nothing is still in that memory, until it is detached.
    let same = Operations::new().run(lend(), &cpu).unwrap();
    assert_eq!(same.to_bytes().as_ptr(), memory.as_ptr());
    assert_eq!(Arc::strong_count(&memory), 2);
    let copy = same.detached().unwrap();
    assert_eq!(Arc::strong_count(&memory), 1);
    let mut changed = lend();
    changed.as_mut_slice::<u16>().unwrap()[0] = 9;
    assert_eq!((changed.to_vec::<u16>().unwrap()[0], &copy), (9, &owned));
    assert_eq!(lend(), owned);
}

#[test]
fn lent_samples_of_every_type_are_those_of_a_copy() {
    for (sample_type, size) in [
        (SampleType::U8, 1),
        (SampleType::I8, 1),
        (SampleType::U16, 2),
        (SampleType::I16, 2),
        (SampleType::U32, 4),
        (SampleType::I32, 4),
        (SampleType::F32, 4),
        (SampleType::F64, 8),
    ] {
        // The second address is one byte further, where samples of several bytes are not aligned.
        for skipped in [0, 1] {
            let bytes: Vec<u8> = (0..6 * size + skipped).map(|i| (i * 37) as u8).collect();
            let copied = bytes[skipped..].to_vec();
            let copy = Image::of_bytes(3, 2, 1, sample_type, |to| to.copy_from_slice(&copied));
            struct Part(Vec<u8>, usize);
            impl Deref for Part {
                type Target = [u8];

                fn deref(&self) -> &[u8] {
                    &self.0[self.1..]
                }
            }
            let lent = Image::of_memory(3, 2, 1, sample_type, Part(bytes, skipped)).unwrap();
            assert_eq!(lent, copy.unwrap(), "{sample_type} {skipped}");
            assert_eq!(lent.to_bytes()[..], copied, "{sample_type} {skipped}");
            let mut back = vec![0; copied.len()];
            lent.copy_bytes(&mut back);
            assert_eq!(back, copied, "{sample_type} {skipped}");
        }
    }
    let error = Image::of_memory(3, 2, 1, SampleType::U16, vec![0; 11]).unwrap_err();
    assert!(
        error.to_string().ends_with("has 12 bytes, not 11"),
        "{error}"
    );
    assert!(Image::of_memory(0, 2, 1, SampleType::U16, vec![]).is_err());
}

/// Memory for a result, which counts its owners.
struct Offered(
    Vec<u8>,
    #[expect(dead_code, reason = "it is counted")] Arc<()>,
);

impl Deref for Offered {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Offered {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[test]
fn results_are_written_to_memory_that_is_offered() {
    let cpu = Device::cpu();
    let numbers: Vec<u16> = (0..70 * 33u32).map(|i| (i * i / 7) as u16).collect();
    let image = Image::new(70, 33, 1, numbers).unwrap();
    let mut used = 0;
    for (verb, operations) in verbs() {
        let Ok(expected) = operations.run(image.clone(), &cpu) else {
            continue;
        };
        for spare in [0, 1] {
            let owner = Arc::new(());
            let memory = vec![7u8; expected.shape().bytes() + spare];
            let memory = Offered(memory, owner.clone());
            let result = operations.run_into(image.clone(), memory, &cpu).unwrap();
            assert_eq!(result, expected, "{verb:?}");
            let in_memory = Arc::strong_count(&owner) == 2;
            assert!(!in_memory || spare == 0, "{verb:?}");
            used += usize::from(in_memory);
        }
    }
    assert!(used >= 8, "only {used} verbs used the memory");
}

#[test]
fn kept_memory_gives_the_same_results() {
    gpuimg::keep_memory(64 << 20);
    let image = Image::new(1500, 1500, 1, vec![40_000u16; 1500 * 1500]).unwrap();
    for value in 1..4 {
        let mut one = image.clone();
        one.as_mut_slice::<u16>().unwrap()[7] = value;
        let flipped = Operations::new().flip_horizontal();
        let result = flipped.run(one.clone(), &Device::cpu()).unwrap();
        assert_eq!(result.as_slice::<u16>().unwrap()[1500 - 8], value);
        assert_eq!(flipped.run(result, &Device::cpu()).unwrap(), one);
    }
    gpuimg::keep_memory(0);
}

#[test]
fn projections_are_those_of_the_command_line() {
    let folder = folder(&[]);
    let path = |name: &str| folder.path().join(name);
    let images: Vec<Image> = (0..3u16)
        .map(|number| {
            let samples = (0..35u16).map(|i| i * 700 / (number + 1) + number);
            Image::new(7, 5, 1, samples.collect::<Vec<u16>>()).expect("7×5")
        })
        .collect();
    for (number, image) in images.iter().enumerate() {
        gpuimg::write(path(&format!("{number}.tif")), image).expect("written");
    }
    let read = |name: String| gpuimg::read(path(&name)).expect("read");
    let images: Vec<Image> = (0..3).map(|number| read(format!("{number}.tif"))).collect();
    let cpu = Device::cpu();
    let projections: [(&[&str], Project); 7] = [
        (&["min"], Project::new(Projection::Min)),
        (&["max"], Project::new(Projection::Max)),
        (&["mean"], Project::new(Projection::Mean)),
        (&["median"], Project::new(Projection::Median)),
        (&["sum"], Project::new(Projection::Sum)),
        (&["sum", "--scale"], Project::new(Projection::Sum).scale()),
        (
            &["sum", "--to", "32"],
            Project::new(Projection::Sum).to_bits(32).expect("32"),
        ),
    ];
    for (words, project) in projections {
        let mut arguments = vec!["project"];
        arguments.extend(words);
        arguments.extend(["0.tif", "1.tif", "2.tif", "out.tif", "--overwrite"]);
        run_on_cpu(folder.path(), &arguments);
        let result = gpuimg::project(&images, &project, &cpu).expect("the same type");
        gpuimg::write_stack(
            path("library.tif"),
            &[result],
            &WriteOptions::new().overwrite(),
        )
        .expect("written");
        let [expected, bytes] =
            ["out.tif", "library.tif"].map(|name| fs::read(path(name)).expect("read"));
        assert!(bytes == expected, "{words:?}");
    }
    let error = |images: &[Image], project: Project| {
        let result = gpuimg::project(images, &project, &cpu);
        result.expect_err("refused").to_string()
    };
    let mean = Project::new(Projection::Mean);
    assert!(error(&[], mean).ends_with("there is no image"));
    let small = Image::new(1, 1, 1, vec![1u16]).expect("1×1");
    let others = [images[0].clone(), small];
    assert!(error(&others, mean).contains("image 2 is"));
    assert!(error(&images, mean.saturate()).contains("--saturate is for sums"));
}

/// `project --to f32`, `--sigma` and floating-point images, and `calibrate` with what it has in floating point and for series.
#[test]
fn floating_point_results_are_those_of_the_command_line() {
    let image = |samples: [u16; 2]| Image::new(2, 1, 1, samples.to_vec()).expect("fits");
    let images = [[1u16, 9], [2, 5], [6, 4], [5, 60_000]].map(image);
    let project = |options: &Project| {
        let result = gpuimg::project(&images, options, &Device::cpu());
        result.expect("fits").to_vec::<f32>()
    };
    let mean = Project::new(Projection::Mean);
    assert_eq!(project(&mean.to_f32()).expect("f32"), [3.5, 15_004.5]);
    let clipped = mean.to_f32().sigma(1.5).expect("a number");
    assert_eq!(project(&clipped).expect("f32"), [3.5, 6.0]);
    assert!(mean.sigma(0.0001).is_err() && mean.nan(f64::INFINITY).is_err());
    let real = |samples: [f32; 2]| Image::new(2, 1, 1, samples.to_vec()).expect("fits");
    let reals = [real([0.5, f32::NAN]), real([0.25, 2.0])];
    let sum = Project::new(Projection::Sum);
    assert!(gpuimg::project(&reals, &sum, &Device::cpu()).is_err());
    let sum = sum.nan(3.0).expect("finite");
    let sum = gpuimg::project(&reals, &sum, &Device::cpu()).expect("fits");
    assert_eq!(sum.to_vec::<f32>().expect("f32"), [0.75, 5.0]);

    let calibrate = |calibration, images: Vec<Image>| {
        let operations = Operations::new().calibrate(calibration).expect("frames");
        operations.run_stack(images, &Device::cpu()).expect("fits")
    };
    let to_f32 = Calibration {
        dark: Some(real([0.5, 1.0])),
        to_f32: true,
        ..Calibration::default()
    };
    let results = calibrate(to_f32.clone(), vec![image([1, 0])]);
    assert_eq!(results[0].to_vec::<f32>().expect("f32"), [0.5, -1.0]);
    let log = Calibration {
        flat: Some(real([1.5, 2.0])),
        log: true,
        ..to_f32
    };
    let results = calibrate(log, vec![image([1, 0])]);
    assert_eq!(results[0].to_vec::<f32>().expect("f32"), [0.0, 0.0]);
    let series = Calibration {
        flat_start: Some(image([100, 200])),
        flat_end: Some(image([200, 105])),
        ..Calibration::default()
    };
    let results = calibrate(series.clone(), vec![image([1000, 1000]); 3]);
    let results: Vec<Vec<u16>> = results.iter().map(|it| it.to_vec().expect("u16")).collect();
    assert_eq!(results, [[1500, 750], [1010, 990], [763, 1452]]);
    let incomplete = Calibration {
        flat_end: None,
        ..series
    };
    assert!(Operations::new().calibrate(incomplete).is_err());
}
