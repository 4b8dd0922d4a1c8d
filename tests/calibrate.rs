//! Calibration: an oracle in whole numbers, naive → rayon → CUDA, laws, and the verb.

use crate::support::contract::words;
use crate::support::stacks::{pages, stack};
use crate::support::tiff::Build;
use crate::support::{KINDS, Kind, SIZES, folder, gpu, grey, image, listing, on_cpu, run};
use gpuimg::internals::engine::executor::{self, Task};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape, Values};
use gpuimg::internals::ops::calibrate::{Calibrate, FlatField, Frame, FrameSet, Settings};
use gpuimg::internals::ops::{OpResult, Operation, SampleTypes, Statistics};
use gpuimg::internals::timing::Timeline;
use std::fs;

fn frame(image: Image, signed: bool) -> Option<Frame> {
    Some(Frame::new("frame.tif", image, signed))
}

fn values(image: &Image) -> Vec<i128> {
    match image.samples() {
        Samples::U8(samples) => samples.iter().map(|&sample| sample.into()).collect(),
        Samples::U16(samples) => samples.iter().map(|&sample| sample.into()).collect(),
        Samples::U32(_) | Samples::U64(_) => panic!("8 or 16 bits were expected"),
    }
}

/// The definition of the contract once more, from the frames themselves, without hot pixels; results before they are clamped.
fn oracle(
    p: &Image,
    dark: Option<&Image>,
    flat: Option<&Image>,
    offset: i32,
    signed: bool,
) -> Vec<i128> {
    let shape = p.shape();
    let zero = i128::from(
        Values {
            depth: shape.depth,
            signed,
        }
        .zero(),
    );
    let none = vec![zero; shape.samples()];
    let d = dark.map_or(none, values);
    let f = flat.map(values);
    let mean = |channel: usize| {
        let f = f.as_ref()?;
        let each = (channel..f.len()).step_by(shape.channels);
        Some(each.map(|i| f[i] - d[i]).sum::<i128>())
    };
    let sums: Vec<Option<i128>> = (0..shape.channels).map(mean).collect();
    let n = shape.pixels() as i128;
    let calibrated = |(i, p): (usize, i128)| {
        if i % shape.channels >= shape.colours() {
            return p;
        }
        let out = match (&f, sums[i % shape.channels]) {
            (Some(f), Some(sum)) => {
                let q = (f[i] - d[i]).max(1);
                (2 * (p - d[i]) * sum + n * q).div_euclid(2 * n * q)
            }
            _ => p - d[i],
        };
        out + i128::from(offset) + zero
    };
    values(p).into_iter().enumerate().map(calibrated).collect()
}

/// An image of the same shape whose samples are `scale` of those of noise, and `above` at least.
fn like(of: &Image, kind: Kind, above: u16, scale: u16) -> Image {
    let Shape {
        width,
        height,
        channels,
        depth,
    } = of.shape();
    let other = image(width, height, channels, depth, kind);
    let turned = values(&other).into_iter().rev();
    let values = turned.map(|v| (v as u16 / scale).saturating_add(above).min(depth.full()));
    Image::new(of.shape(), crate::support::samples(values.collect(), depth))
}

/// The results of the definition, except for hot pixels.
struct Expected {
    values: Vec<i128>,
    clamped: u64,
}

impl Expected {
    fn new(unclamped: &[i128], depth: Depth) -> Expected {
        let full = i128::from(depth.full());
        let clamped = unclamped.iter().filter(|out| !(0..=full).contains(*out));
        Expected {
            values: unclamped.iter().map(|&out| out.clamp(0, full)).collect(),
            clamped: clamped.count() as u64,
        }
    }
}

/// Every mixture of frames and options, over all sizes, channels, depths and kinds.
fn every_case(mut visit: impl FnMut(&Calibrate, &Image, bool, Expected, &str)) {
    let mut turn = 0;
    for (width, height) in SIZES {
        for channels in 1..=4 {
            for depth in [Depth::Eight, Depth::Sixteen] {
                turn += 1;
                let kind = KINDS[turn % 4];
                let signed = turn / 4 % 2 == 1;
                let p = image(width, height, channels, depth, kind);
                // Noise gives dead pixels: the flat field below the dark frame.
                let (dark, scale) = [(Kind::Narrow, 4), (Kind::Noise, 2)][turn % 2];
                let dark = like(&p, dark, 0, scale);
                let flat = like(&p, Kind::Noise, depth.full() / 3, 2);
                for (dark, flat, offset, hot) in [
                    (Some(&dark), None, 0, None),
                    (None, Some(&flat), 0, None),
                    (Some(&dark), Some(&flat), 100, None),
                    (Some(&dark), Some(&flat), -7, Some(3)),
                    (Some(&dark), None, 65535, Some(0)),
                ] {
                    // Without a dark frame a signed flat field of noise may well be negative.
                    let flat = flat.filter(|_| dark.is_some() || !signed);
                    if dark.is_none() && flat.is_none() {
                        continue;
                    }
                    let framed = |image: Option<&Image>| {
                        image.and_then(|image| frame(image.clone(), signed))
                    };
                    // A flat field of a few pixels may lie below the dark frame altogether.
                    let Ok(op) = Calibrate::new(framed(dark), framed(flat), offset, hot) else {
                        continue;
                    };
                    let unclamped = oracle(&p, dark, flat, offset, signed);
                    let expected = Expected::new(&unclamped, depth);
                    let what = format!("{op:?} of {kind:?} {}, signed {signed}", p.shape());
                    visit(&op, &p, signed, expected, &what);
                }
            }
        }
    }
}

fn types(shape: &Shape, signed: bool) -> SampleTypes {
    let values = Values {
        depth: shape.depth,
        signed,
    };
    SampleTypes {
        read: values,
        written: values,
        ..SampleTypes::plain(shape)
    }
}

fn of(result: OpResult) -> Image {
    match result {
        OpResult::Image(image) => image,
        _ => panic!("an image was expected"),
    }
}

#[test]
fn the_cpu_gives_what_the_definition_says() {
    let mut cases = 0;
    every_case(|op, image, signed, expected, what| {
        let bound = op
            .bind(types(&image.shape(), signed), &Statistics::None)
            .unwrap();
        let defined = of(bound.naive(image).unwrap());
        if !what.contains("hot: Some") {
            assert!(
                values(&defined) == expected.values,
                "the definition differs: {what}"
            );
        }
        let found = of(bound.cpu(image.clone(), &mut Timeline::default()).unwrap());
        assert!(found == defined, "{what}");
        assert_eq!(bound.clamped(), Some(expected.clamped), "{what}");
        cases += 1;
    });
    assert!(cases > 420, "{cases}");
}

#[test]
fn the_gpu_gives_what_the_definition_says() {
    let Some(gpu) = gpu(460) else { return };
    let mut cases = 0;
    every_case(|op, image, signed, expected, what| {
        let task = Task {
            op,
            types: types(&image.shape(), signed),
            statistics: None,
        };
        let bound = op.bind(task.types, &Statistics::None).unwrap();
        let defined = of(bound.naive(image).unwrap());
        // Twice: the frames stay on the GPU.
        for _ in 0..2 {
            let pixels = executor::Pixels::Host(image.clone());
            let timeline = &mut Timeline::default();
            let done =
                executor::run_on_gpu(&[task], pixels, executor::Form::Samples, gpu, timeline)
                    .unwrap();
            let OpResult::Image(executor::Pixels::Host(found)) = done.executed.result else {
                panic!("samples were expected")
            };
            assert!(found == defined, "{what}");
            let clamped = done.executed.summary.clamped;
            assert_eq!(clamped, Some(expected.clamped), "{what}");
        }
        cases += 1;
    });
    assert!(cases > 420, "{cases}");
}

/// By hand, 3 × 2: p − d; times the mean 150 of f − d over f − d; a dead pixel, and one below the dark
/// frame.
#[test]
fn three_by_two_by_hand() {
    let p = grey([[110, 210, 310], [10, 60, 5]]);
    let dark = grey([[10, 10, 10], [10, 10, 10]]);
    // f − d: 100, 200, 300; 290, 0, 10: a sum of 900.
    let flat = grey([[110, 210, 310], [300, 10, 20]]);
    let with = |dark: Option<&Image>, flat: Option<&Image>, offset| {
        let framed = |image: Option<&Image>| image.and_then(|image| frame(image.clone(), false));
        on_cpu(
            &Calibrate::new(framed(dark), framed(flat), offset, None).unwrap(),
            &p,
        )
    };
    assert_eq!(
        with(Some(&dark), None, 0),
        grey([[100, 200, 300], [0, 50, 0]])
    );
    assert_eq!(
        with(Some(&dark), None, 7),
        grey([[107, 207, 307], [7, 57, 2]])
    );
    // 50·150/1; −5·150/10 = −75.
    assert_eq!(
        with(Some(&dark), Some(&flat), 0),
        grey([[150, 150, 150], [0, 7500, 0]])
    );
    assert_eq!(
        with(Some(&dark), Some(&flat), 100),
        grey([[250, 250, 250], [100, 7600, 25]])
    );
    // f alone: a mean of 960/6 = 160. 110·160/110; 10·160/300 = 5.33; 60·160/10; 5·160/20.
    assert_eq!(
        with(None, Some(&flat), 0),
        grey([[160, 160, 160], [5, 960, 40]])
    );
    // Halves are rounded up, also below 0: −3/2 is −1, 3/2 is 2. f − d is 1, 2, 2, 1: a mean of 3/2.
    let p = grey([[9, 11], [10, 13]]);
    let dark = grey([[10, 10], [10, 10]]);
    let flat = grey([[11, 12], [12, 11]]);
    let op = Calibrate::new(frame(dark, false), frame(flat, false), 100, None).unwrap();
    // −1.5 → −1, 0.75 → 1, 0, 4.5 → 5.
    assert_eq!(on_cpu(&op, &p), grey([[99, 101], [100, 105]]));
}

/// By hand, 3 × 2: the flat field loses the bias, the image the dark frame; without a dark frame the image loses the bias.
#[test]
fn a_bias_frame_by_hand() {
    let p = grey([[110, 210, 310], [10, 60, 5]]);
    let bias = grey([[10, 10, 10], [10, 10, 10]]);
    let dark = grey([[20, 20, 20], [20, 20, 20]]);
    // f − b: 100, 200, 300; 290, 0, 10: a mean of 150.
    let flat = grey([[110, 210, 310], [300, 10, 20]]);
    let with = |dark: Option<&Image>, flat: Option<&Image>| {
        let framed = |image: Option<&Image>| image.and_then(|image| frame(image.clone(), false));
        let frames = FrameSet {
            bias: framed(Some(&bias)),
            dark: framed(dark),
            flat: framed(flat).map(FlatField::Constant),
        };
        let settings = Settings {
            offset: 100,
            ..Settings::default()
        };
        on_cpu(&Calibrate::with_frames(frames, settings).unwrap(), &p)
    };
    // 90·150/100, 190·150/200 = 142.5, 290·150/300; −10·150/290 = −5.2, 40·150, −15·150/10.
    assert_eq!(
        with(Some(&dark), Some(&flat)),
        grey([[235, 243, 245], [95, 6100, 0]])
    );
    assert_eq!(
        with(None, Some(&flat)),
        grey([[250, 250, 250], [100, 7600, 25]])
    );
    assert_eq!(with(None, None), grey([[200, 300, 400], [100, 150, 95]]));
    let frames = FrameSet {
        bias: frame(grey([[1], [2]]), false),
        dark: frame(dark, false),
        flat: None,
    };
    let error = Calibrate::with_frames(frames, Settings::default()).unwrap_err();
    assert!(
        error.to_string().contains("the frames must have"),
        "{error}"
    );
}

/// Hot pixels by hand: the middle of 3 × 3, and a corner with three neighbours.
#[test]
fn hot_pixels_by_hand() {
    let zero = grey([[0; 3]; 3]);
    let hot = |threshold, image: &Image| {
        let op = Calibrate::new(frame(zero.clone(), false), None, 0, Some(threshold)).unwrap();
        on_cpu(&op, image)
    };
    // The neighbours of 900: 1 2 3 4 5 6 7 500, the median (4 + 5)/2 rounded up. Those of 500: 7 6 900.
    let image = grey([[1, 2, 3], [4, 900, 6], [5, 7, 500]]);
    assert_eq!(hot(895, &image), image);
    let without = grey([[1, 2, 3], [4, 5, 6], [5, 7, 500]]);
    assert_eq!(hot(894, &image), without);
    let without = grey([[1, 2, 3], [4, 5, 6], [5, 7, 7]]);
    assert_eq!(hot(100, &image), without);
    assert_eq!(hot(65535, &image), image);
}

/// Where the flat field is constant, the result is p − d + offset; where it is the image, the mean.
#[test]
fn laws() {
    let p = image(67, 31, 3, Depth::Sixteen, Kind::Noise);
    let dark = like(&p, Kind::Narrow, 0, 1);
    let constant: Vec<u16> = values(&dark).iter().map(|d| *d as u16 + 1000).collect();
    let flat = Image::new(p.shape(), constant.into());
    let with = |flat: Option<Image>, offset| {
        let flat = flat.and_then(|flat| frame(flat, false));
        on_cpu(
            &Calibrate::new(frame(dark.clone(), false), flat, offset, None).unwrap(),
            &p,
        )
    };
    for offset in [0, 300, -300] {
        assert_eq!(with(Some(flat.clone()), offset), with(None, offset));
    }
    // An image divided by itself is flat.
    let bright = like(&p, Kind::Narrow, 1000, 1);
    let op = Calibrate::new(None, frame(bright.clone(), false), 0, None).unwrap();
    let flat = values(&on_cpu(&op, &bright));
    assert!(flat.iter().zip(&flat[3..]).all(|(a, b)| a == b));
}

/// A flat field that is no brighter than the dark frame, and frames of different kinds.
#[test]
fn frames_that_cannot_be() {
    let dark = || frame(grey([[5, 5, 5]]), false);
    let told = |dark, flat| Calibrate::new(dark, flat, 0, None).unwrap_err();
    let error = format!("{:#}", told(dark(), frame(grey([[4, 5, 6]]), false)));
    assert!(error.contains("did you swap --dark and --flat?"), "{error}");
    let error = format!("{:#}", told(dark(), frame(grey([[9], [9], [9]]), false)));
    assert!(error.contains("1×3 grey"), "{error}");
    told(dark(), frame(grey([[9, 9, 9]]), true));
    let float = Shape::checked(3, 1, 1, Depth::Float).unwrap();
    let float = Image::new(float, vec![1u32 << 31; 3].into());
    let error = told(frame(float, false), None).to_string();
    let expected = "frames have 8 or 16 bits: add --to f32";
    assert!(error.contains(expected), "{error}");
    told(None, None);
}

fn words16(file: &[u8]) -> Vec<u16> {
    pages(file).remove(0).1
}

/// Files, folders and stacks as frames; a batch; a stack; signed images; 8 bits.
#[test]
fn the_verb() {
    let image = |values| crate::support::contract::grey(2, values);
    let tif = |values| Build::default().file(&image(values));
    let two = stack(&[image([110, 210]), image([10, 12])], &Metadata::default());
    let signed = |values: [i16; 2]| {
        let build = Build::default().tag(339, 3, &[2]);
        build.file(&image(values.map(|value| value as u16)))
    };
    let place = folder(&[
        ("in/a.tif", &tif([110, 210])),
        ("in/deep/b.tif", &two),
        ("dark/1.tif", &tif([9, 10])),
        ("dark/2.tif", &tif([10, 11])),
        ("flat.tif", &tif([60, 160])),
        ("s.tif", &signed([-100, 50])),
        ("sd.tif", &signed([-90, -50])),
        ("p.pgm", b"P5 2 1 255\n\x64\xff"),
        ("d.pgm", b"P5 2 1 255\n\x65\x05"),
    ]);
    let go = |args: &[&str]| {
        let out = run(place.path(), &[&["calibrate"], args].concat(), &[]);
        assert_eq!(out.code, 0, "{args:?}: {}", out.stderr);
    };
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    // The dark frame is 10, 11 (9.5 and 10.5 rounded up); f − d 50, 149: a mean of 99.5.
    let frames = ["--dark", "dark", "--flat", "flat.tif"];
    go(&[&frames[..], &["in", "out"]].concat());
    // 100·99.5/50 = 199; 199·99.5/149 = 132.9.
    assert_eq!(words16(&read("out/a.tif")), [199, 133]);
    let both: Vec<Vec<u16>> = pages(&read("out/deep/b.tif"))
        .into_iter()
        .map(|page| page.1)
        .collect();
    assert_eq!(both, [vec![199, 133], vec![0, 1]]);
    go(&[&frames[..], &["in/a.tif", "one.tif", "--offset", "5"]].concat());
    assert_eq!(words16(&read("one.tif")), [204, 138]);
    // A bias of 4, 5: f − b 56, 155, a mean of 105.5. 100·105.5/56 = 188.4; 199·105.5/155 = 135.4.
    fs::write(place.path().join("bias.tif"), tif([4, 5])).unwrap();
    go(&[&frames[..], &["--bias", "bias.tif", "in/a.tif", "b.tif"]].concat());
    assert_eq!(words16(&read("b.tif")), [188, 135]);
    go(&["--bias", "bias.tif", "in/a.tif", "b1.tif"]);
    assert_eq!(words16(&read("b1.tif")), [106, 205]);
    // Done before; and again with another frame.
    go(&[&frames[..], &["in", "out", "--resume"]].concat());
    let first = read("out/a.tif");
    let out = run(
        place.path(),
        &[
            "calibrate",
            "--dark",
            "dark/1.tif",
            "in",
            "out",
            "--resume",
            "--overwrite",
        ],
        &[],
    );
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert_ne!(read("out/a.tif"), first);
    assert_eq!(words16(&read("out/a.tif")), [101, 200]);
    // Signed: −100 − −90, 50 − −50.
    go(&["--dark", "sd.tif", "s.tif", "sout.tif"]);
    let found: Vec<i16> = crate::support::contract::stored(&read("sout.tif"))
        .iter()
        .map(|&word| word as i16)
        .collect();
    assert_eq!(found, [-10, 100]);
    // 8 bits stay 8, and nothing goes below 0.
    go(&["--dark", "d.pgm", "p.pgm", "out.pgm"]);
    assert_eq!(words(&read("out.pgm")), [0, 250]);
    go(&["--dark", "d.pgm", "p.pgm", "up.pgm", "--offset=10"]);
    assert_eq!(words(&read("up.pgm")), [9, 255]);
}

#[test]
fn what_is_refused() {
    let image = |values: [u16; 2]| crate::support::contract::grey(2, values);
    let tif = |values| Build::default().file(&image(values));
    let place = folder(&[
        ("a.tif", &tif([1, 2])),
        ("d.tif", &tif([1, 1])),
        ("tall.tif", &Build::default().file(&grey([[1], [2]]))),
        ("d.pgm", b"P5 2 1 255\n\x65\x05"),
        ("bad.tif", b"II*\0"),
        ("empty/note", b""),
    ]);
    let signed = Build::default().tag(339, 3, &[2]).file(&image([1, 2]));
    fs::write(place.path().join("s.tif"), signed).unwrap();
    let before = listing(place.path());
    for (code, args, told) in [
        (2, &["a.tif", "o.tif"][..], "--dark"),
        (
            2,
            &["--dark", "d.tif", "--depth", "8", "a.tif", "o.tif"],
            "use --depth in a later step",
        ),
        (
            2,
            &["--dark", "d.tif", "--auto-orient", "a.tif", "o.tif"],
            "--auto-orient would rotate",
        ),
        (
            2,
            &["--dark", "d.tif", "a.tif", "d.tif", "--overwrite"],
            "which is a frame",
        ),
        (
            2,
            &["--dark", "d.tif", "--offset", "70000", "a.tif", "o.tif"],
            "70000",
        ),
        (
            1,
            &["--dark", "tall.tif", "a.tif", "o.tif"],
            "cannot calibrate a.tif: it is 2×1 grey, 16 bits, but tall.tif is 1×2 grey",
        ),
        (
            1,
            &["--dark", "d.pgm", "a.tif", "o.tif"],
            "but d.pgm is 2×1 grey, 8 bits",
        ),
        (
            1,
            &["--dark", "d.tif", "s.tif", "o.tif"],
            "it has 16 bits with sign, but d.tif has 16 bits without sign",
        ),
        (
            1,
            &["--dark", "bad.tif", "a.tif", "o.tif"],
            "cannot read bad.tif",
        ),
        (
            1,
            &["--dark", "missing.tif", "a.tif", "o.tif"],
            "cannot read missing.tif",
        ),
        (1, &["--dark", "empty", "a.tif", "o.tif"], "empty"),
        (
            1,
            &["--dark", "a.tif", "--flat", "d.tif", "a.tif", "o.tif"],
            "cannot divide by d.tif",
        ),
        (
            1,
            &["--dark", "s.tif", "s.tif", "o.png"],
            "PNG cannot store signed samples",
        ),
    ] {
        let out = run(place.path(), &[&["calibrate"], args].concat(), &[]);
        assert_eq!(out.code, code, "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(told), "{args:?}: {}", out.stderr);
        assert_eq!(listing(place.path()), before);
    }
}

/// The verb on both devices, over several workers that share the frames.
#[test]
fn the_verb_gives_the_same_on_a_gpu() {
    if gpu(8).is_none() {
        return;
    }
    let p = image(301, 203, 3, Depth::Sixteen, Kind::Noise);
    let files: Vec<(String, Vec<u8>)> = (0..8)
        .map(|index| {
            let other = like(&p, Kind::Noise, index, 1);
            (format!("in/{index}.tif"), Build::default().file(&other))
        })
        .collect();
    let mut files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, file)| (&**name, &**file))
        .collect();
    let dark = Build::default().file(&like(&p, Kind::Narrow, 0, 2));
    let flat = Build::default().file(&like(&p, Kind::Noise, 20_000, 2));
    files.extend([("dark.tif", &*dark), ("flat.tif", &*flat)]);
    let place = folder(&files);
    for device in ["cpu", "gpu"] {
        let args = [
            "calibrate",
            "--dark",
            "dark.tif",
            "--flat",
            "flat.tif",
            "--hot",
            "500",
        ];
        let args = [&args[..], &["in", device, "--device", device, "-j", "4"]].concat();
        let out = run(place.path(), &args, &[]);
        assert_eq!(out.code, 0, "{}", out.stderr);
    }
    for index in 0..8 {
        let read = |device| fs::read(place.path().join(format!("{device}/{index}.tif"))).unwrap();
        assert!(read("cpu") == read("gpu"), "{index}");
    }
}

#[test]
fn half_of_the_samples_were_clamped_without_a_word() {
    let pgm = |value: &dyn Fn(usize) -> u8| {
        let samples: Vec<u8> = (0..1600).map(value).collect();
        [&b"P5\n40 40\n255\n"[..], &samples].concat()
    };
    let folder = folder(&[
        ("dark.pgm", &pgm(&|_| 10)),
        ("in/a.pgm", &pgm(&|i| if i % 2 == 0 { 8 } else { 12 })),
        ("in/b.pgm", &pgm(&|i| if i % 2 == 0 { 8 } else { 12 })),
        ("bright.pgm", &pgm(&|_| 10)),
    ]);
    let told = |args: &[&str]| {
        let args = [&["calibrate", "--dark", "dark.pgm", "-f"], args].concat();
        let done = run(folder.path(), &args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        done.stderr
    };
    let one = told(&["in/a.pgm", "o.pgm"]);
    let expected =
        "about 50 %: samples below the dark frame are clamped to 0 (use --offset to keep them)";
    assert!(one.contains(expected), "{one}");
    for args in [
        &["in/a.pgm", "o.pgm", "--offset", "2"][..],
        &["bright.pgm", "o.pgm"],
        &["in/a.pgm", "o.pgm", "-q"],
    ] {
        assert_eq!(told(args), "", "{args:?}");
    }
    let batch = told(&["in", "out"]);
    assert_eq!(
        batch.matches("use --offset to keep them").count(),
        2,
        "{batch}"
    );
    assert!(batch.contains("warning: 2 images in total"), "{batch}");
}
