//! Calibration in 32-bit floating point: naive → rayon, by hand, logarithms, and the verb.

use crate::support::formats::{dictionary, floats, npy, read};
use crate::support::stacks::stack;
use crate::support::tiff::Build;
use crate::support::{KINDS, Kind, SIZES, folder, grey, image, listing, on_cpu, run, run_on_cpu};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::number::{from_key, key};
use gpuimg::internals::image::{Depth, Image, Samples, Shape, Values};
use gpuimg::internals::ops::calibrate::{
    Calibrate, FlatField, Frame, FrameSet, ResultType, Settings,
};
use gpuimg::internals::ops::{OpResult, Operation, SampleTypes, Statistics};
use gpuimg::internals::timing::Timeline;
use std::fs;
use std::path::Path;

const REAL: Settings = Settings {
    offset: 0,
    hot: None,
    to: Some(ResultType::Float),
    log: false,
};

const LOG: Settings = Settings { log: true, ..REAL };

fn real<const W: usize, const H: usize>(rows: [[f32; W]; H]) -> Image {
    let shape = Shape::checked(W as u64, H as u64, 1, Depth::Float).unwrap();
    let keys: Vec<u32> = rows
        .as_flattened()
        .iter()
        .map(|value| key(value.to_bits()))
        .collect();
    Image::new(shape, keys.into())
}

fn numbers(image: &Image) -> Vec<f32> {
    match image.samples() {
        Samples::U32(keys) => keys.iter().map(|&key| from_key(key)).collect(),
        _ => panic!("floating point was expected"),
    }
}

fn calibrate(
    dark: Option<&Image>,
    flat: Option<&Image>,
    settings: Settings,
) -> anyhow::Result<Calibrate> {
    let frame = |image: &Image| Frame::new("frame.tif", image.clone(), false);
    let frames = FrameSet {
        bias: None,
        dark: dark.map(frame),
        flat: flat.map(frame).map(FlatField::Constant),
    };
    Calibrate::with_frames(frames, settings)
}

fn types(op: &dyn Operation, shape: &Shape, signed: bool) -> SampleTypes {
    let read = Values {
        depth: shape.depth,
        signed,
    };
    SampleTypes {
        read,
        written: op.output_type(read),
        ..SampleTypes::plain(shape)
    }
}

/// By hand, 3 × 2: nothing is rounded to a whole number or clamped; a dead pixel is divided by 1.
#[test]
fn three_by_two_by_hand() {
    let p = grey([[110, 210, 310], [10, 60, 5]]);
    let dark = grey([[10, 10, 10], [10, 10, 10]]);
    // f − d: 100, 200, 300; 290, 0, 10: a mean of 150.
    let flat = grey([[110, 210, 310], [300, 10, 20]]);
    let with = |dark, flat, settings: Settings| {
        numbers(&on_cpu(&calibrate(dark, flat, settings).unwrap(), &p))
    };
    let expected = [100.0, 200.0, 300.0, 0.0, 50.0, -5.0];
    assert_eq!(with(Some(&dark), None, REAL), expected);
    let expected = [150.0, 150.0, 150.0, 0.0, 7500.0, -75.0];
    assert_eq!(with(Some(&dark), Some(&flat), REAL), expected);
    let up = Settings { offset: 7, ..REAL };
    let expected = [157.0, 157.0, 157.0, 7.0, 7507.0, -68.0];
    assert_eq!(with(Some(&dark), Some(&flat), up), expected);
    // f alone: 160·110/110, 10·160/300, …
    let expected = [160.0, 160.0, 160.0, 16.0 / 3.0, 960.0, 40.0];
    assert_eq!(with(None, Some(&flat), REAL), expected);
    // ln(100/100), …; 290/1 (x = 0), 1/50 (dead), 10/1 (x = −5).
    let found = with(Some(&dark), Some(&flat), LOG);
    let expected = [
        0.0,
        0.0,
        0.0,
        290f64.ln() as f32,
        -(50f64.ln()) as f32,
        10f64.ln() as f32,
    ];
    assert_eq!(found, expected);
    // Beyond the range of 16 bits, with a flat field of a mean of 150 and a pixel of 1.
    let bright = grey([[65_535, 0]]);
    let op = calibrate(None, Some(&grey([[1, 299]])), REAL).unwrap();
    assert_eq!(numbers(&on_cpu(&op, &bright)), [9_830_250.0, 0.0]);
}

/// Images and frames of floating point, of any size of values: q is f − d even where that is below 1.
#[test]
fn frames_in_floating_point_by_hand() {
    let dark = real([[0.25, 0.25, 0.25]]);
    // f − d: 0.5, 1, 0: a mean of 0.5.
    let flat = real([[0.75, 1.25, 0.25]]);
    let op = calibrate(Some(&dark), Some(&flat), REAL).unwrap();
    let p = real([[1.25, 0.75, f32::NAN]]);
    let found = numbers(&on_cpu(&op, &p));
    assert_eq!(found[..2], [1.0, 0.25]);
    assert_eq!(found[2].to_bits(), f32::NAN.to_bits());
    // Every NaN becomes the same; infinity stays.
    let odd = real([[
        f32::from_bits(0xffc0_1234),
        f32::INFINITY,
        f32::NEG_INFINITY,
    ]]);
    let found = numbers(&on_cpu(&op, &odd));
    assert_eq!(found[0].to_bits(), f32::NAN.to_bits());
    assert_eq!(found[1..], [f32::INFINITY, f32::NEG_INFINITY]);
    // Whole numbers with frames in floating point.
    let op = calibrate(Some(&dark), None, REAL).unwrap();
    assert_eq!(
        numbers(&on_cpu(&op, &grey([[0, 1, 65_535]]))),
        [-0.25, 0.75, 65_534.75]
    );
    let logs = calibrate(Some(&dark), Some(&flat), LOG).unwrap();
    let found = numbers(&on_cpu(&logs, &odd));
    assert!(found[0].is_nan());
    // ln(1/∞); ln(1/1), the dead pixel, whose −∞ is clamped to 1.
    assert_eq!(found[1..], [f32::NEG_INFINITY, 0.0]);
}

/// Every size, number of channels, sample type, kind of frames and option: the CPU gives the definition, and counts what
/// `--log` clamps.
#[test]
fn the_cpu_gives_what_the_definition_says() {
    let mut cases = 0;
    for (width, height) in SIZES {
        for channels in 1..=4 {
            for (turn, depth) in [Depth::Eight, Depth::Sixteen, Depth::Float]
                .into_iter()
                .enumerate()
            {
                let kind = KINDS[(turn + width + channels) % 4];
                let p = image(width, height, channels, depth, kind);
                let frame_depth = match depth {
                    Depth::Float => Depth::Sixteen,
                    depth => depth,
                };
                let dark = image(width, height, channels, frame_depth, Kind::Narrow);
                let flat = image(width, height, channels, frame_depth, Kind::Noise);
                let hot = Settings {
                    hot: Some(9),
                    offset: -4,
                    ..REAL
                };
                for settings in [REAL, hot, LOG] {
                    // A flat field of a few pixels may lie below the dark frame.
                    let Ok(op) = calibrate(Some(&dark), Some(&flat), settings) else {
                        continue;
                    };
                    let shape = p.shape();
                    let bound = op
                        .bind(types(&op, &shape, false), &Statistics::None)
                        .unwrap();
                    let (Ok(OpResult::Image(defined)), Ok(OpResult::Image(found))) = (
                        bound.naive(&p),
                        bound.cpu(p.clone(), &mut Timeline::default()),
                    ) else {
                        panic!("images were expected")
                    };
                    let what = format!("{op:?} of {kind:?} {shape}");
                    assert!(found == defined, "{what}");
                    assert_eq!(
                        bound.clamped(),
                        Some(clamped(&p, &dark, settings)),
                        "{what}"
                    );
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 300, "{cases}");
}

/// How many colours of `p` are less than 1 above the dark frame, if that matters.
fn clamped(p: &Image, dark: &Image, settings: Settings) -> u64 {
    let shape = p.shape();
    let value = |image: &Image, i: usize| match image.samples() {
        Samples::U32(keys) => f64::from(from_key(keys[i])),
        samples => samples.at(i) as f64,
    };
    let is_clamped =
        |i: &usize| i % shape.channels < shape.colours() && value(p, *i) - value(dark, *i) < 1.0;
    match settings.log {
        true => (0..shape.samples()).filter(is_clamped).count() as u64,
        false => 0,
    }
}

/// Results of both types differ by no more than the rounding to a whole number.
#[test]
fn rounded_results_are_those_of_integers() {
    let p = image(67, 31, 3, Depth::Sixteen, Kind::Noise);
    let dark = image(67, 31, 3, Depth::Sixteen, Kind::Narrow);
    let flat = Image::new(p.shape(), vec![40_000u16; p.shape().samples()].into());
    let whole = on_cpu(
        &calibrate(Some(&dark), Some(&flat), Settings::default()).unwrap(),
        &p,
    );
    let real = on_cpu(&calibrate(Some(&dark), Some(&flat), REAL).unwrap(), &p);
    for (i, real) in numbers(&real).into_iter().enumerate() {
        let clamped = f64::from(real).clamp(0.0, 65_535.0);
        let whole = whole.samples().at(i) as f64;
        assert!(
            (clamped - whole).abs() <= 0.5 + 1.0 / 128.0,
            "{i}: {real} {whole}"
        );
    }
}

/// A hot pixel and its neighbours in fractions: the median of 1 … 7 and 500 is 4.5.
#[test]
fn hot_pixels_by_hand() {
    let p = real([[1.0, 2.0, 3.0], [4.0, 900.0, 6.0], [5.0, 7.0, 500.0]]);
    let zero = real([[0.0; 3]; 3]);
    let hot = |threshold| {
        let settings = Settings {
            hot: Some(threshold),
            ..REAL
        };
        numbers(&on_cpu(
            &calibrate(Some(&zero), None, settings).unwrap(),
            &p,
        ))
    };
    let without = [1.0, 2.0, 3.0, 4.0, 4.5, 6.0, 5.0, 7.0, 500.0];
    assert_eq!(hot(895), without);
    assert_eq!(hot(896), numbers(&p));
}

#[test]
fn options_and_frames_that_cannot_be() {
    let told = |flat: Option<&Image>, settings| {
        let dark = real([[1.0, 2.0]]);
        format!("{:#}", calibrate(Some(&dark), flat, settings).unwrap_err())
    };
    let flat = real([[5.0, 6.0]]);
    let plain = Settings {
        log: true,
        ..Settings::default()
    };
    assert!(told(Some(&flat), plain).contains("add --to f32"));
    assert!(told(None, LOG).contains("add --flat"));
    for settings in [
        Settings { offset: 1, ..LOG },
        Settings {
            hot: Some(1),
            ..LOG
        },
    ] {
        assert!(told(Some(&flat), settings).contains("--offset and --hot do not apply"));
    }
    assert!(told(Some(&real([[1.0, 1.5]])), REAL).contains("did you swap --dark and --flat?"));
    assert!(told(Some(&real([[9.0, f32::NAN]])), REAL).contains("NaN or infinite"));
    let bytes = Image::new(
        Shape::checked(2, 1, 1, Depth::Eight).unwrap(),
        vec![9u8, 9].into(),
    );
    let words = grey([[1, 2]]);
    let error = calibrate(Some(&words), Some(&bytes), REAL)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the frames must have the same size and type"),
        "{error}"
    );
}

fn f32_npy(values: [f32; 2]) -> Vec<u8> {
    npy(1, &dictionary("<f4", "(1, 2)"), &floats(&values))
}

fn go(root: &Path, args: &[&str]) -> String {
    let done = run_on_cpu(root, &[&["calibrate"], args].concat());
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done.stderr
}

fn written(root: &Path, name: &str) -> Vec<f32> {
    let (image, ..) = read(&fs::read(root.join(name)).unwrap()).unwrap();
    numbers(&image)
}

/// 16 bits, signed integers and floating point; frames of both kinds, their means unrounded; alpha; a step of `run`; a run that
/// is resumed.
#[test]
fn the_verb() {
    let image = |values| crate::support::contract::grey(2, values);
    let tif = |values| Build::default().file(&image(values));
    let signed = |values: [i16; 2]| {
        let build = Build::default().tag(339, 3, &[2]);
        build.file(&image(values.map(|value| value as u16)))
    };
    let place = folder(&[
        ("in/a.tif", &tif([110, 210])),
        ("in/b.tif", &tif([10, 2])),
        ("darks/1.tif", &tif([9, 10])),
        ("darks/2.tif", &tif([10, 11])),
        ("flat.npy", &f32_npy([60.0, 160.5])),
        ("f.npy", &f32_npy([0.5, 2.25])),
        ("s.tif", &signed([-100, 50])),
        ("sd.tif", &signed([-90, -50])),
        ("dark.pam", b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 51\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n\x05\x33"),
        ("p.pam", b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 51\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n\x04\x11"),
    ]);
    let root = place.path();
    let to = ["--to", "f32"];
    // The dark frame is 9.5, 10.5.
    go(root, &[&to[..], &["--dark", "darks", "in", "out"]].concat());
    assert_eq!(written(root, "out/a.tif"), [100.5, 199.5]);
    assert_eq!(written(root, "out/b.tif"), [0.5, -8.5]);
    // f − d: 50.5, 150; a mean of 100.25.
    let frames = ["--dark", "darks", "--flat", "flat.npy"];
    go(root, &[&to[..], &frames, &["in/a.tif", "o.npy"]].concat());
    let expected = [100.5 * 100.25 / 50.5, 199.5 * 100.25 / 150.0];
    assert_eq!(
        written(root, "o.npy"),
        expected.map(|value: f64| value as f32)
    );
    go(
        root,
        &[&to[..], &frames, &["--log", "in/a.tif", "l.fits"]].concat(),
    );
    let expected = [(50.5f64 / 100.5).ln(), (150f64 / 199.5).ln()];
    assert_eq!(written(root, "l.fits"), expected.map(|value| value as f32));
    go(
        root,
        &[&to[..], &["--dark", "f.npy", "f.npy", "zero.npy"]].concat(),
    );
    assert_eq!(written(root, "zero.npy"), [0.0, 0.0]);
    go(
        root,
        &[&to[..], &["--dark", "sd.tif", "s.tif", "s.npy"]].concat(),
    );
    assert_eq!(written(root, "s.npy"), [-10.0, 100.0]);
    // Alpha is a third of its maxval.
    go(
        root,
        &[&to[..], &["--dark", "dark.pam", "p.pam", "alpha.tif"]].concat(),
    );
    assert_eq!(written(root, "alpha.tif"), [-1.0, 1.0 / 3.0]);
    let done = run_on_cpu(
        root,
        &[
            "run",
            "calibrate --to f32 --dark darks + flip horizontal",
            "in/a.tif",
            "r.tif",
        ],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(written(root, "r.tif"), [199.5, 100.5]);
    let again = go(
        root,
        &[&to[..], &["--dark", "darks", "in", "out", "--resume"]].concat(),
    );
    assert!(again.contains("2 already done"), "{again}");
    let other = go(root, &["--dark", "darks", "in", "out", "--resume"]);
    assert!(other.contains("2 of 2 files done"), "{other}");
}

/// The number of clamped samples is exact, for each type, and in the report, the times and their sum.
#[test]
fn clamped_samples_are_counted() {
    let pgm = |value: u8| [&b"P5\n40 40\n255\n"[..], &[value; 1600]].concat();
    let mut below = pgm(10);
    below[20..31].fill(3);
    let place = folder(&[
        ("dark.pgm", &pgm(10)),
        ("flat.pgm", &pgm(20)),
        ("in/a.pgm", &below),
        ("in/b.pgm", &pgm(255)),
        (
            "stack.tif",
            &stack(&[grey([[5, 90]]), grey([[3, 4]])], &Metadata::default()),
        ),
        ("d.tif", &Build::default().file(&grey([[5, 5]]))),
    ]);
    let root = place.path();
    let counts = |args: &[&str]| -> Vec<Option<u64>> {
        let report = ["--report", "r.jsonl", "-q", "-j", "1", "-f"];
        go(root, &[args, &report].concat());
        let text = fs::read_to_string(root.join("r.jsonl")).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let pages = lines.flat_map(|line| line["pages"].as_array().unwrap().clone());
        pages.map(|page| page["clamped"].as_u64()).collect()
    };
    assert_eq!(
        counts(&["--dark", "dark.pgm", "in", "out"]),
        [Some(11), Some(0)]
    );
    let up = ["--dark", "dark.pgm", "--offset", "20", "in", "out"];
    assert_eq!(counts(&up), [Some(0), Some(1600)]);
    let real = [
        "--dark", "dark.pgm", "--to", "f32", "--format", "tif", "in", "out",
    ];
    assert_eq!(counts(&real), [Some(0), Some(0)]);
    let logs = [&real[..], &["--flat", "flat.pgm", "--log"]].concat();
    assert_eq!(counts(&logs), [Some(1600), Some(0)]);
    assert_eq!(
        counts(&["--dark", "d.tif", "stack.tif", "o.tif"]),
        [Some(0), Some(2)]
    );
    let stats = |args: &[&str]| go(root, &[&["--dark", "dark.pgm", "-f"], args].concat());
    let text = stats(&["in/a.pgm", "o.pgm", "--stats"]);
    assert!(text.contains("\nclamped samples: 11\n"), "{text}");
    let json = stats(&["in", "out", "--stats=json", "--offset", "20", "-q"]);
    assert!(json.contains(r#""clamped":1600"#), "{json}");
    let plain = run_on_cpu(root, &["normalize", "in/a.pgm", "n.pgm", "--stats"]).stderr;
    assert!(!plain.contains("clamped"), "{plain}");
    let hint = go(root, &[&logs[..], &["-f"]].concat());
    let expected = "about 100 %: samples that are less than 1 above the dark frame are taken as 1";
    assert!(hint.contains(expected), "{hint}");
}

#[test]
fn what_is_refused() {
    let image = |values: [u16; 2]| crate::support::contract::grey(2, values);
    let tif = |values| Build::default().file(&image(values));
    let place = folder(&[
        ("a.tif", &tif([1, 2])),
        ("d.tif", &tif([1, 1])),
        ("d.pgm", b"P5 2 1 255\n\x65\x05"),
        ("f.npy", &f32_npy([0.5, 1.5])),
        ("nan.npy", &f32_npy([0.5, f32::NAN])),
    ]);
    let before = listing(place.path());
    for (code, args, told) in [
        (
            2,
            &[
                "--dark", "d.tif", "--log", "--flat", "d.tif", "a.tif", "o.tif",
            ][..],
            "--log gives fractions, which integers cannot hold: add --to f32",
        ),
        (
            1,
            &["--dark", "d.tif", "--log", "--to", "f32", "a.tif", "o.tif"],
            "add --flat",
        ),
        (
            2,
            &["--dark", "d.tif", "--to", "16", "a.tif", "o.tif"],
            "--to",
        ),
        (1, &["--dark", "f.npy", "a.tif", "o.tif"], "add --to f32"),
        (
            1,
            &["--dark", "d.tif", "f.npy", "o.npy"],
            "--to f32 calibrates images in floating point",
        ),
        (
            1,
            &["--dark", "d.pgm", "--to", "f32", "a.tif", "o.tif"],
            "it has 16 bits without sign, but d.pgm has 8 bits",
        ),
        (
            1,
            &["--dark", "d.tif", "--to", "f32", "a.tif", "o.png"],
            "cannot write o.png",
        ),
        (
            1,
            &["--dark", "nan.npy", "--to", "f32", "f.npy", "o.npy"],
            "NaN or infinite",
        ),
        (
            2,
            &[
                "--dark", "d.tif", "--to", "f32", "--depth", "8", "a.tif", "o.tif",
            ],
            "--depth",
        ),
        (
            1,
            &[
                "--dark", "d.tif", "--to", "f32", "--device", "gpu", "a.tif", "o.tif",
            ],
            "",
        ),
    ] {
        let out = run(place.path(), &[&["calibrate"], args].concat(), &[]);
        assert!(
            out.code == code || told.is_empty() && out.code != 0,
            "{args:?}: {}",
            out.stderr
        );
        assert!(out.stderr.contains(told), "{args:?}: {}", out.stderr);
        assert_eq!(listing(place.path()), before);
    }
}
