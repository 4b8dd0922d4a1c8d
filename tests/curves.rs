//! `normalize --curve`, `--range zscale` and `--range stf`: against literals, against Python's decimal arithmetic, astropy
//! and NumPy, and against their definitions.

use crate::support::contract::{grey, made, outcome, refused, signed, words};
use crate::support::stacks::{pages, stack};
use crate::support::tiff::Build;
use crate::support::{KINDS, Kind, folder, image, key, run, sample, samples};
use anyhow::Result;
use gpuimg::internals::engine::executor;
use gpuimg::internals::formats;
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape, number};
use gpuimg::internals::ops::clip::Clip;
use gpuimg::internals::ops::normalize::{Curve, Normalize, Range};
use gpuimg::internals::ops::{Operation, Scope, naive};
use gpuimg::internals::os::Source;
use gpuimg::internals::timing::Timeline;
use std::fs;

fn curve(text: &str) -> Curve {
    text.parse().expect("a curve")
}

fn with_curve(text: &str) -> Normalize {
    Normalize {
        curve: Some(curve(text)),
        ..Normalize::default()
    }
}

fn read(file: &[u8]) -> Image {
    formats::decode(&Source::memory(file.to_vec())).expect("an image")
}

fn values(image: &Image) -> Vec<u16> {
    let samples = image.samples();
    (0..image.shape().samples())
        .map(|i| samples.at(i) as u16)
        .collect()
}

/// The samples of an image, the least significant byte first.
fn digest(image: &Image) -> u32 {
    let bytes: Vec<u8> = match image.samples() {
        Samples::U8(bytes) => bytes.to_vec(),
        _ => values(image)
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect(),
    };
    crc32fast::hash(&bytes)
}

/// The result of an operation on all cores, and the range that it used.
fn executed(op: &dyn Operation, image: &Image) -> (Image, Vec<String>) {
    let executed = executor::on_cpu(op, image.clone(), &mut Timeline::default()).expect("a result");
    let ranges = executed.summary.ranges.iter();
    let ranges = ranges.map(|(min, max)| format!("{min}:{max}")).collect();
    (executed.result.image().expect("an image"), ranges)
}

/// The names of curves, d, s, and the CRC-32 of floor(s·f(x/d) + 1/2) for x from 0 to d, as 16 bits each, the lower byte
/// first. They come from Python's `decimal` with 60 digits; a result within 10⁻⁴⁰ of a whole number and a half is a tie.
const TABLES: &[(&str, u16, u16, u32)] = &[
    ("gamma:2.2", 65535, 65535, 0xaa29973d),
    ("gamma:2.2", 255, 65535, 0x103a6305),
    ("gamma:2.2", 65535, 255, 0xbfbc5ed6),
    ("gamma:2.2", 255, 255, 0x789376ae),
    ("gamma:2.2", 40000, 65535, 0x483adef0),
    ("gamma:2.2", 12, 7, 0xa30d13ea),
    ("gamma:2.2", 1, 1, 0x385fee5d),
    ("gamma:2.2", 3300, 32767, 0xb31720d2),
    ("gamma:2", 65535, 65535, 0xa9c6d7f2),
    ("gamma:2", 255, 65535, 0x895beecd),
    ("gamma:2", 65535, 255, 0x2ec8d1ed),
    ("gamma:2", 255, 255, 0x9815c79e),
    ("gamma:2", 40000, 65535, 0x7f5ed694), // 5 ties
    ("gamma:2", 12, 7, 0xa30d13ea),        // 1 tie
    ("gamma:2", 1, 1, 0x385fee5d),
    ("gamma:2", 3300, 32767, 0x541071f8), // 1 tie
    ("gamma:0.5", 65535, 65535, 0xabc0b9b9),
    ("gamma:0.5", 255, 65535, 0x28b8ff36),
    ("gamma:0.5", 65535, 255, 0xc7d9e466),
    ("gamma:0.5", 255, 255, 0xe6ac1eb9),
    ("gamma:0.5", 40000, 65535, 0xa73b4e86),
    ("gamma:0.5", 12, 7, 0xb6192e21),
    ("gamma:0.5", 1, 1, 0x385fee5d),
    ("gamma:0.5", 3300, 32767, 0x97efe099),
    ("gamma:1.8", 65535, 65535, 0x906436c1),
    ("gamma:1.8", 255, 65535, 0x4826fa10),
    ("gamma:1.8", 65535, 255, 0x27cf782a),
    ("gamma:1.8", 255, 255, 0x37fdf1c0),
    ("gamma:1.8", 40000, 65535, 0x44e71316),
    ("gamma:1.8", 12, 7, 0xec2124e8),
    ("gamma:1.8", 1, 1, 0x385fee5d),
    ("gamma:1.8", 3300, 32767, 0x0f9c1041),
    ("gamma:2.4321", 65535, 65535, 0xc8697f22),
    ("gamma:2.4321", 255, 65535, 0x630ce15d),
    ("gamma:2.4321", 65535, 255, 0x88679df6),
    ("gamma:2.4321", 255, 255, 0xe96eeec5),
    ("gamma:2.4321", 40000, 65535, 0x258fdce6),
    ("gamma:2.4321", 12, 7, 0x55b6a43d),
    ("gamma:2.4321", 1, 1, 0x385fee5d),
    ("gamma:2.4321", 3300, 32767, 0x48a76f18),
    ("gamma:100", 65535, 65535, 0x556cf22f),
    ("gamma:100", 255, 65535, 0xd05be8cf),
    ("gamma:100", 65535, 255, 0x9fc516ec),
    ("gamma:100", 255, 255, 0x6efc8119),
    ("gamma:100", 40000, 65535, 0x41f0485d),
    ("gamma:100", 12, 7, 0x30612c6e),
    ("gamma:100", 1, 1, 0x385fee5d),
    ("gamma:100", 3300, 32767, 0x8faf1e82),
    ("asinh", 65535, 65535, 0x4e323b64),
    ("asinh", 255, 65535, 0x18efab6a),
    ("asinh", 65535, 255, 0xfc0e4f54),
    ("asinh", 255, 255, 0x2490443c),
    ("asinh", 40000, 65535, 0xf549d450),
    ("asinh", 12, 7, 0x1fcf12bf),
    ("asinh", 1, 1, 0x385fee5d),
    ("asinh", 3300, 32767, 0x48032d29),
    ("asinh:0.225", 65535, 65535, 0x1b89fedc),
    ("asinh:0.225", 255, 65535, 0x3a5c8cb6),
    ("asinh:0.225", 65535, 255, 0x914b0444),
    ("asinh:0.225", 255, 255, 0x8ae8dfff),
    ("asinh:0.225", 40000, 65535, 0xaac81137), // 1 tie
    ("asinh:0.225", 12, 7, 0xa317e900),
    ("asinh:0.225", 1, 1, 0x385fee5d),
    ("asinh:0.225", 3300, 32767, 0x5ac4c656), // 1 tie
    ("asinh:0.000001", 65535, 65535, 0x8b545217),
    ("asinh:0.000001", 255, 65535, 0x1ecdf125),
    ("asinh:0.000001", 65535, 255, 0xe90cd1d7),
    ("asinh:0.000001", 255, 255, 0x73cc4573),
    ("asinh:0.000001", 40000, 65535, 0x14828d49),
    ("asinh:0.000001", 12, 7, 0x2c59a02e),
    ("asinh:0.000001", 1, 1, 0x385fee5d),
    ("asinh:0.000001", 3300, 32767, 0xc9fbb099),
    ("asinh:1000", 65535, 65535, 0x11b8cf09),
    ("asinh:1000", 255, 65535, 0x679113e5),
    ("asinh:1000", 65535, 255, 0x382f7f39),
    ("asinh:1000", 255, 255, 0xf8eaab81),
    ("asinh:1000", 40000, 65535, 0x5af4657f),
    ("asinh:1000", 12, 7, 0xd7234d6a),
    ("asinh:1000", 1, 1, 0x385fee5d),
    ("asinh:1000", 3300, 32767, 0xb14ea6c4),
    ("asinh:0.0321", 65535, 65535, 0x1ebf4e32),
    ("asinh:0.0321", 255, 65535, 0x6ef067dc),
    ("asinh:0.0321", 65535, 255, 0xdc29d074),
    ("asinh:0.0321", 255, 255, 0xd013f512),
    ("asinh:0.0321", 40000, 65535, 0x99e53d87),
    ("asinh:0.0321", 12, 7, 0xe80555c8),
    ("asinh:0.0321", 1, 1, 0x385fee5d),
    ("asinh:0.0321", 3300, 32767, 0x3cf8f943),
    ("log", 65535, 65535, 0x81020352),
    ("log", 255, 65535, 0xaeb5b3e5),
    ("log", 65535, 255, 0xdcc3b1c9),
    ("log", 255, 255, 0x5c7cfac4),
    ("log", 40000, 65535, 0x0f290cfd),
    ("log", 12, 7, 0x64d8fde9),
    ("log", 1, 1, 0x385fee5d),
    ("log", 3300, 32767, 0x337fa4e3),
];

#[test]
fn every_entry_is_correctly_rounded() {
    let mut entries = 0;
    for &(name, d, s, digest) in TABLES {
        let steps = curve(name).steps(d, s);
        assert_eq!(steps.len(), usize::from(d) + 1);
        assert_eq!((steps[0], steps[usize::from(d)]), (0, s), "{name} {d} {s}");
        assert!(steps.is_sorted(), "{name} {d} {s}");
        let bytes: Vec<u8> = steps.iter().flat_map(|step| step.to_le_bytes()).collect();
        assert_eq!(crc32fast::hash(&bytes), digest, "{name} {d} {s}");
        entries += steps.len();
    }
    assert!(entries > 2_000_000, "{entries}");
}

/// √(1/4) = 1/2, and asinh(0.3/0.225)/asinh(1/0.225) = ln 3/ln 9 = 1/2: both ties, which go up. (1/4)^(1/0.5) = 1/16.
#[test]
fn ties_are_rounded_up() {
    assert_eq!(curve("gamma:2").steps(4, 65535)[1], 32768);
    assert_eq!(curve("gamma:2").steps(4, 1), [0, 1, 1, 1, 1]);
    assert_eq!(curve("gamma:0.5").steps(4, 8), [0, 1, 2, 5, 8]);
    assert_eq!(curve("asinh:0.225").steps(10, 65535)[3], 32768);
    assert_eq!(curve("asinh:0.225").steps(10, 1)[2..4], [0, 1]);
    // A number that is nearly the same is no tie.
    assert_eq!(curve("asinh:0.225001").steps(10, 65535)[3], 32767);
    assert_eq!(curve("asinh:0.224999").steps(10, 65535)[3], 32768);
    assert_eq!(curve("gamma:1.999999").steps(4, 65535)[1], 32767);
    assert_eq!(curve("gamma:2.000001").steps(4, 65535)[1], 32768);
    // (1/8)^(2/3) = 1/4, and (4/9)^(3/2) = 8/27 of 27·2.
    assert_eq!(curve("gamma:1.5").steps(8, 2)[1], 1);
    assert_eq!(curve("gamma:1.5").steps(8, 6)[1], 2);
}

#[test]
fn three_by_two_by_hand() {
    // √(k²/25) = k/5.
    let squares = grey(3, [0, 1, 4, 9, 16, 25]);
    let file = Build::default().file(&squares);
    let args = ["normalize", "--curve", "gamma:2"];
    let fifths = [0, 13107, 26214, 39321, 52428, 65535];
    for name in ["out.png", "out.tif", "out.pgm"] {
        assert_eq!(values(&read(&made("in.tif", &file, &args, name))), fifths);
    }
    let run = |more: &[&str], name: &str| {
        values(&read(&made(
            "in.tif",
            &file,
            &[&args[..], more].concat(),
            name,
        )))
    };
    assert_eq!(run(&["--to", "10:15"], "out.png"), [10, 11, 12, 13, 14, 15]);
    let bytes = [0, 51, 102, 153, 204, 255];
    assert_eq!(run(&["--depth", "8"], "out.png"), bytes);
    assert_eq!(run(&["--depth", "8"], "out.jpg").len(), 6);
    // √(0, 0, 0, 5, 12, 12 of 12) with values outside of the range clamped.
    let clamped = [0, 0, 0, 42303, 65535, 65535];
    assert_eq!(run(&["--range", "4:16"], "out.png"), clamped);
    // √(0, 1, 4, 9, 16, 16 of 16): percentiles at ⌊0⌋ and ⌈4⌉ of 6 samples.
    let clipped = [0, 16384, 32768, 49151, 65535, 65535];
    assert_eq!(run(&["--clip", "0:80"], "out.png"), clipped);
    // Without the value 0: √(0, 0, 3, 8, 15, 24 of 24).
    let kept = [0, 0, 23170, 37837, 51810, 65535];
    assert_eq!(run(&["--ignore", "0"], "out.png"), kept);
}

/// The curve of signed values is that of their distance x from the minimum; d = 300 + 32768.
#[test]
fn signed_values_are_counted_from_their_minimum() {
    let args = ["normalize", "--curve", "gamma:2"];
    let unsigned = made(
        "in.tif",
        &signed(),
        &[&args[..], &["--unsigned"]].concat(),
        "out.tif",
    );
    let expected: Vec<u16> = values(&read(&signed()))
        .into_iter()
        .map(|sample| {
            // The largest k with (2k − 1)² ≤ 4·65535²·x/d.
            let square = 4 * 65535u64.pow(2) * u64::from(sample) / 33068;
            square.isqrt().div_ceil(2) as u16
        })
        .collect();
    assert_eq!(values(&read(&unsigned)), expected);
    let kept = made("in.tif", &signed(), &args, "out.tif");
    assert_eq!(values(&read(&kept)), expected);
}

/// All options that a curve meets, on images of every type: all cores against the definition.
#[test]
fn all_cores_give_what_the_definition_says() -> Result<()> {
    let mut cases = 0;
    let range = |min, max| Some(Range::from_integers(min, max).into());
    let options = [
        with_curve("gamma:2.2"),
        Normalize {
            to: Some(Range::from_integers(3, 250)),
            per_channel: true,
            ..with_curve("asinh:0.02")
        },
        Normalize {
            clip: Some(Clip::from_percentages(5, 90)),
            ..with_curve("log")
        },
        Normalize {
            range: range(20, 180),
            ..with_curve("gamma:0.7")
        },
        Normalize {
            range: "zscale".parse().ok(),
            ..with_curve("asinh")
        },
        Normalize {
            range: "zscale".parse().ok(),
            ..Normalize::default()
        },
        Normalize {
            range: "stf".parse().ok(),
            ..Normalize::default()
        },
    ];
    for op in options {
        let op = Normalize {
            nan: Some(100.0),
            scope: Scope::Page,
            ..op
        };
        for (width, height, kind) in [(7, 1, Kind::Extremes), (33, 5, Kind::Narrow)] {
            for channels in [1, 3, 4] {
                for depth in Depth::ALL {
                    let image = image(width, height, channels, depth, kind);
                    let found = executor::on_cpu(&op, image.clone(), &mut Timeline::default())?;
                    assert!(found == naive(&op, &image)?, "{op:?} of {}", image.shape());
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 7 * 5 * 2 * 3);
    Ok(())
}

/// Of 32 bits, the curve of the samples is that of the 16 bits that `normalize` makes without it.
#[test]
fn a_curve_of_32_bits_is_one_of_the_result_without_it() {
    for depth in [Depth::ThirtyTwo, Depth::Float, Depth::Double] {
        for channels in 1..=4 {
            for kind in KINDS {
                let image = image(37, 11, channels, depth, kind);
                let plain = Normalize {
                    nan: Some(0.0),
                    ..Normalize::default()
                };
                let curved = Normalize {
                    nan: Some(0.0),
                    ..with_curve("gamma:2.2")
                };
                let (scaled, ranges) = executed(&plain, &image);
                let again = Normalize {
                    range: Some(Range::from_integers(0, 65535).into()),
                    ..with_curve("gamma:2.2")
                };
                let flat = ranges
                    .iter()
                    .all(|range| range.split_once(':').is_none_or(|(min, max)| min == max));
                let expected = if flat {
                    scaled
                } else {
                    executed(&again, &scaled).0
                };
                assert!(executed(&curved, &image).0 == expected, "{}", image.shape());
            }
        }
    }
}

/// x^(1/1) is x; alpha and flat images stay as they are.
#[test]
fn a_gamma_of_1_is_no_curve() {
    for depth in Depth::ALL {
        for channels in 1..=4 {
            for kind in KINDS {
                let image = image(29, 7, channels, depth, kind);
                let nan = Some(1.0);
                let plain = Normalize {
                    nan,
                    ..Normalize::default()
                };
                let curved = Normalize {
                    nan,
                    ..with_curve("gamma:1")
                };
                let shape = image.shape();
                assert!(
                    executed(&plain, &image) == executed(&curved, &image),
                    "{shape}"
                );
            }
        }
    }
    let image = image(29, 7, 2, Depth::Sixteen, KINDS[0]);
    let (found, _) = executed(&with_curve("log"), &image);
    let alpha =
        |image: &Image| -> Vec<u16> { values(image).into_iter().skip(1).step_by(2).collect() };
    assert_eq!(alpha(&found), alpha(&image));
}

/// A range of all values of 16 bits is scaled to itself, and yet the curve changes it.
#[test]
fn a_full_range_has_a_curve_too() {
    let image = grey(3, [0, 1, 2, 3, 4, 65535]);
    let (found, _) = executed(&with_curve("gamma:2"), &image);
    assert_eq!(values(&found), [0, 256, 362, 443, 512, 65535]);
}

/// 8 bits that become 16: x is the same, and the result is rounded once.
#[test]
fn eight_bits_are_not_rounded_twice() {
    let shape = Shape {
        width: 3,
        height: 2,
        channels: 1,
        depth: Depth::Eight,
    };
    let image = Image::new(shape, samples(vec![0, 1, 2, 3, 100, 255], Depth::Eight));
    let file = Build::default().file(&image);
    let args = ["normalize", "--curve", "gamma:2.2", "--depth", "16"];
    let table = curve("gamma:2.2").steps(255, 65535);
    let expected = [0, 1, 2, 3, 100, 255].map(|sample: usize| table[sample]);
    assert_eq!(
        values(&read(&made("in.tif", &file, &args, "out.png"))),
        expected
    );
}

/// In bands, in a chain, on the pages of a stack, and with the range of a set, a curve gives the same bytes.
#[test]
fn a_curve_is_the_same_however_an_image_is_processed() {
    let picture = image(1237, 1403, 1, Depth::Sixteen, KINDS[1]);
    let file = Build::default().file(&picture);
    let args = ["normalize", "--curve", "asinh"];
    let whole = made("in.tif", &file, &args, "out.tif");
    let bands = made(
        "in.tif",
        &file,
        &[&args[..], &["--low-memory"]].concat(),
        "out.tif",
    );
    assert!(whole == bands);
    let folder = folder(&[("in.tif", &file)]);
    let said = run(
        folder.path(),
        &[
            "normalize",
            "--curve",
            "asinh",
            "--low-memory",
            "-v",
            "in.tif",
            "out.tif",
        ],
        &[],
    );
    assert!(said.stderr.contains("in bands of rows"), "{}", said.stderr);
    let small = grey(2, [5, 6, 7, 800]);
    let file = Build::default().file(&small);
    let chain = ["run", "normalize --curve gamma:2.2 + flip horizontal"];
    let chained = words(&made("in.tif", &file, &chain, "out.tif"));
    let plain = words(&made(
        "in.tif",
        &file,
        &["normalize", "--curve", "gamma:2.2"],
        "out.tif",
    ));
    assert_eq!(chained, [plain[1], plain[0], plain[3], plain[2]]);
    let images = [grey(2, [0, 1, 2, 4]), grey(2, [1, 4, 9, 16])];
    let file = stack(&images, &Metadata::default());
    let made = pages(&made(
        "in.tif",
        &file,
        &["normalize", "--curve", "gamma:2"],
        "out.tif",
    ));
    assert_eq!(made[1].1, [16384, 32768, 49151, 65535]);
    assert_eq!(made[0].1, [0, 16384, 23170, 32768]);
}

#[test]
fn a_set_has_one_range_and_a_curve() {
    let dark = Build::default().file(&grey(2, [0, 1, 2, 4]));
    let light = Build::default().file(&grey(2, [1, 4, 9, 16]));
    let folder = folder(&[("in/a.tif", &dark), ("in/b.tif", &light)]);
    let check = |args: &[&str]| {
        let run = run(folder.path(), args, &[]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let read = |name: &str| values(&read(&fs::read(folder.path().join(name)).expect("a file")));
        assert_eq!(read("out/a.tif"), [0, 16384, 23170, 32768]);
        assert_eq!(read("out/b.tif"), [16384, 32768, 49151, 65535]);
        fs::remove_dir_all(folder.path().join("out")).expect("outputs");
    };
    check(&["normalize", "in", "out", "--across", "--curve", "gamma:2"]);
    let counted = run(folder.path(), &["histogram", "in", "-o", "all.hist"], &[]);
    assert_eq!(counted.code, 0, "{}", counted.stderr);
    let args = [
        "normalize",
        "in",
        "out",
        "--range-from",
        "all.hist",
        "--curve",
        "gamma:2",
    ];
    check(&args);
}

#[test]
fn what_a_curve_cannot_do_is_refused() {
    let file = Build::default().file(&grey(2, [0, 1, 2, 4]));
    let refuse = |args: &[&str], words: &str| refused("in.tif", &file, args, "out.tif", words);
    refuse(
        &["normalize", "--curve", "gamma:2.20", "--undo"],
        "restore cannot undo --curve gamma:2.2: remove it or --undo",
    );
    refuse(
        &["normalize", "--range", "stf", "--undo"],
        "restore cannot undo --range stf: remove it or --undo",
    );
    refuse(
        &["normalize", "--range", "stf", "--curve", "log"],
        "--range stf has a curve of its own: remove --curve log",
    );
    for wrong in [
        "",
        "gamma",
        "gamma:",
        "gamma:0",
        "gamma:-1",
        "gamma:1e1",
        "gamma:101",
        "gamma:0.009",
        "gamma:nan",
        "gamma:2.2222222",
        "asinh:",
        "asinh:0",
        "asinh:1001",
        "log:2",
        "sqrt",
        "gamma:2:2",
        "gamma:99999999999999999999",
        "midtones:0.5",
    ] {
        assert!(wrong.parse::<Curve>().is_err(), "{wrong}");
    }
    for right in [
        "gamma:0.01",
        "gamma:100",
        "asinh:0.000001",
        "asinh:1000",
        "log",
    ] {
        assert_eq!(curve(right).to_string(), right);
    }
    assert_eq!(curve("asinh"), curve("asinh:0.1"));
    for args in [
        &["--range", "zscale", "--clip", "1:99"][..],
        &["--range", "zscale", "--per-channel"],
        &["--range", "stf", "--ignore", "0"],
        &["--range", "stf", "--across"],
    ] {
        let (run, written) = outcome(
            "in.tif",
            &file,
            &[&["normalize"][..], args].concat(),
            "out.tif",
        );
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(written.is_none());
    }
}

/// The sentences of the plan.
#[test]
fn a_gpu_is_not_used_for_ranges_of_wide_samples() {
    let shape = |depth| Shape {
        width: 5,
        height: 5,
        channels: 1,
        depth,
    };
    let range = |text: &str| Normalize {
        range: text.parse().ok(),
        ..Normalize::default()
    };
    for (op, words) in [
        (
            range("zscale"),
            Some("the GPU does not support --range zscale for 32-bit samples"),
        ),
        (
            range("stf"),
            Some("the GPU does not support --range stf for 32-bit samples"),
        ),
        (with_curve("log"), None),
        (Normalize::default(), None),
    ] {
        assert_eq!(op.gpu_obstacle(&shape(Depth::Sixteen)), None);
        assert_eq!(op.gpu_obstacle(&shape(Depth::Float)), words);
    }
}

/// Number i of a repeatable sequence.
fn noise(i: usize) -> u32 {
    (i as u32 + 1).wrapping_mul(2_654_435_761) >> 8
}

/// An image of `depth` whose samples in memory `sample` gives.
fn generated<T>(
    width: usize,
    height: usize,
    channels: usize,
    depth: Depth,
    sample: impl Fn(usize) -> T,
) -> Image
where
    Samples: From<Vec<T>>,
{
    let shape = Shape {
        width,
        height,
        channels,
        depth,
    };
    Image::new(
        shape,
        Samples::from((0..shape.samples()).map(sample).collect::<Vec<T>>()),
    )
}

fn sky(i: usize) -> u16 {
    if i.is_multiple_of(97) {
        60000
    } else {
        500 + (noise(i) % 300) as u16
    }
}

/// The images of `samples/` with one page.
fn stored() -> [(&'static str, Image); 3] {
    ["nuclei.tif", "thermal.tif", "photo-rgb16.png"]
        .map(|name| (name, read(&fs::read(sample(name)).expect("a sample"))))
}

/// Images of 8 and 16 bits that the formulas here and in NumPy make.
fn formed() -> Vec<(&'static str, Image)> {
    let sixteen = Depth::Sixteen;
    vec![
        ("sky", generated(200, 150, 1, sixteen, sky)),
        (
            "negative",
            generated(200, 150, 1, sixteen, |i| 65535 - sky(i)),
        ),
        (
            "bytes",
            generated(31, 17, 1, Depth::Eight, |i| (noise(i) % 200) as u8),
        ),
        (
            "rgb",
            generated(40, 30, 3, sixteen, |i| {
                (100 + noise(i) % 1000) as u16 * [1, 3, 9][i % 3]
            }),
        ),
        ("tiny", generated(3, 1, 1, sixteen, |i| [5u16, 9, 100][i])),
        (
            "mask",
            generated(100, 50, 1, sixteen, |i| {
                if i.is_multiple_of(9) {
                    (noise(i) % 90) as u16
                } else {
                    7
                }
            }),
        ),
        ("constant", generated(9, 9, 1, sixteen, |_| 77u16)),
        (
            "dots",
            generated(30, 30, 1, sixteen, |i| {
                if noise(i).is_multiple_of(20) {
                    4000
                } else {
                    1000u16
                }
            }),
        ),
    ]
}

/// The ranges of astropy 7's `ZScaleInterval().get_limits(array)`; of integers, rounded.
#[test]
fn zscale_gives_the_range_of_astropy() {
    let op = Normalize {
        range: "zscale".parse().ok(),
        ..Normalize::default()
    };
    let expected = [
        ("nuclei.tif", "4:102"), // 4, 101.94499036959438
        ("thermal.tif", "7384:8162"),
        ("photo-rgb16.png", "12243:56935"),
        ("sky", "500:1254"),         // 500, 1253.5969166235773
        ("negative", "64285:65035"), // 64284.96942726938, 65035
        ("bytes", "0:199"),
        ("rgb", "101:1098"),
        ("tiny", "5:100"),
        // astropy: 7.000000000000004 to 6.999999999999996, so that of the samples is used.
        ("mask", "1:89"),
        ("constant", "77:77"),
        ("dots", "1000:4000"),
    ];
    let images = stored().into_iter().chain(formed());
    for ((name, image), (expected_name, range)) in images.zip(expected) {
        assert_eq!(name, expected_name);
        let (result, ranges) = executed(&op, &image);
        assert_eq!(ranges, [range], "{name}");
        if name != "constant" {
            let given = Normalize {
                range: range.parse().ok(),
                ..Normalize::default()
            };
            assert!(executed(&given, &image).0 == result, "{name}");
        }
    }
    let page = |name: &str, page: &str| {
        let folder = folder(&[]);
        fs::copy(sample(name), folder.path().join(name)).expect("a copy");
        let args = [
            "normalize",
            "--range",
            "zscale",
            "--pages",
            page,
            name,
            "out.tif",
        ];
        run(folder.path(), &args, &[]).stderr
    };
    assert!(
        page("nuclei-stack.tif", "1").contains("117:301"),
        "{}",
        page("nuclei-stack.tif", "1")
    );
    assert!(page("nuclei-stack.tif", "25").contains("128:341"));
}

/// The same of wide samples, where the range is the nearest number of their type.
#[test]
fn zscale_of_32_and_64_bits_is_that_of_astropy() {
    let op = Normalize {
        range: "zscale".parse().ok(),
        nan: Some(0.0),
        ..Normalize::default()
    };
    let real = generated(120, 90, 1, Depth::Float, |i| {
        let value = (f64::from(noise(i) % 100_000) / 1000.0 - 20.0) as f32;
        key(if i.is_multiple_of(13) {
            f32::NAN
        } else {
            value
        })
    });
    // -19.937000274658203, 79.63600158691406
    assert_eq!(executed(&op, &real).1, ["-19.937:79.636"]);
    let double = generated(120, 90, 1, Depth::Double, |i| {
        number::key64((f64::from(noise(i) % 100_000) / 7.0 - 20.0).to_bits())
    });
    assert_eq!(
        executed(&op, &double).1,
        ["-8.857142857142858:14263.714285714286"]
    );
    let whole = generated(100, 60, 1, Depth::ThirtyTwo, |i| {
        (u64::from(noise(i)) * 200 % 4_000_000_000) as u32
    });
    assert_eq!(executed(&op, &whole).1, ["929000:3353318400"]);
    let none = generated(3, 2, 1, Depth::Float, |_| key(f32::NAN));
    assert_eq!(executed(&op, &none).1, ["0:0"]);
    let refused = Normalize { nan: None, ..op };
    let error = executor::on_cpu(&refused, real, &mut Timeline::default());
    assert!(
        error
            .expect_err("NaN")
            .to_string()
            .contains("are NaN or infinite")
    );
}

/// The CRC-32 of the samples that NumPy makes by the published formula, with the end of the range rounded to a sample.
#[test]
fn stf_gives_the_bytes_of_the_formula() {
    let op = Normalize {
        range: "stf".parse().ok(),
        ..Normalize::default()
    };
    let expected = [
        ("nuclei.tif", "0:65535", 0x6b7a1712),
        ("thermal.tif", "7412:65535", 0x648bbb36),
        ("photo-rgb16.png", "279:65535", 0x63f78cad),
        ("sky", "336:65535", 0x810d9289),
        ("negative", "0:65199", 0x4d5821c7),
        ("bytes", "0:255", 0xdd82f1c8),
        ("rgb", "0:65535", 0x73679862),
        ("tiny", "0:65535", 0x28f4d0c4),
        ("mask", "0:65535", 0xba60e906),
        ("constant", "0:65535", 0x7cfb9b57),
        ("dots", "817:65535", 0x28c92762u32),
    ];
    let images = stored().into_iter().chain(formed());
    for ((name, image), (expected_name, range, crc)) in images.zip(expected) {
        assert_eq!(name, expected_name);
        let (result, ranges) = executed(&op, &image);
        assert_eq!(ranges, [range], "{name}");
        assert_eq!(digest(&result), crc, "{name}");
    }
}

/// Medians of 100 of 65535 and a MAD of 0 become the background that is aimed at, a quarter.
#[test]
fn stf_makes_the_background_a_quarter() {
    let op = Normalize {
        range: "stf".parse().ok(),
        ..Normalize::default()
    };
    let flat = generated(9, 9, 1, Depth::Sixteen, |_| 100u16);
    let (result, _) = executed(&op, &flat);
    assert_eq!(values(&result)[0], 16384);
    for end in [0, 65535u16] {
        let flat = generated(9, 9, 3, Depth::Sixteen, |_| end);
        assert!(executed(&op, &flat).0 == flat);
    }
}

/// The samples and the end of the range are those of NumPy's medians and Python's fractions (`screen_stretched` in
/// tests/interop/wide_oracle.py).
#[test]
fn stf_of_32_and_64_bits_by_hand() {
    let three_by_two = |depth, samples: Samples| {
        let shape = Shape {
            width: 3,
            height: 2,
            channels: 1,
            depth,
        };
        Image::new(shape, samples)
    };
    let floats = |values: [f32; 6]| three_by_two(Depth::Float, values.map(key).to_vec().into());
    let doubles = |values: [f64; 6]| {
        let keys = values.map(|value| number::key64(value.to_bits()));
        three_by_two(Depth::Double, keys.to_vec().into())
    };
    let quarter = 1 << 28;
    let integers = [
        quarter,
        quarter + 1_000_000,
        quarter - 3_000_000,
        0,
        1 << 31,
        u32::MAX,
    ];
    let op = Normalize {
        range: "stf".parse().ok(),
        nan: Some(100.0),
        ..Normalize::default()
    };
    for (image, range, expected) in [
        // Within 0…1: MAD is 0, and the range begins at 0.25 − 2.8·0.001.
        (
            floats([0.25, 0.25, 0.25, 0.25, 1.0, 0.0]),
            "0.2472:1",
            [20140, 20140, 20140, 20140, 65535, 0],
        ),
        // Outside of it: the smallest and the largest value are 0 and 1, and 115 − 4.15·15 is below the smallest.
        (
            doubles([100.0, 110.0, 120.0, 130.0, 4000.0, 90.0]),
            "90:4000",
            [7700, 13776, 18746, 22843, 65535, 0],
        ),
        // Inverted.
        (
            floats([4000.0, 3990.0, 3970.0, 3980.0, 100.0, 4000.0]),
            "100:4000",
            [65535, 53634, 39264, 45356, 0, 65535],
        ),
        (
            three_by_two(Depth::ThirtyTwo, integers.to_vec().into()),
            "0:4294967295",
            [16360, 16407, 16212, 0, 54595, 65535],
        ),
        // NaN does not count, and is replaced.
        (
            doubles([f64::NAN, 110.0, 110.0, 110.0, 4000.0, 90.0]),
            "99.05199999999999:4000",
            [1846, 16417, 16417, 16417, 65535, 0],
        ),
        (doubles([f64::NAN; 6]), "100:100", [100; 6]),
    ] {
        let (result, ranges) = executed(&op, &image);
        assert_eq!(ranges, [range]);
        assert_eq!(values(&result), expected, "{range}");
    }
    let refused = Normalize { nan: None, ..op };
    let image = doubles([f64::INFINITY, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let error = executor::on_cpu(&refused, image, &mut Timeline::default());
    assert!(
        error
            .expect_err("∞")
            .to_string()
            .contains("1 of its samples is NaN or infinite")
    );
}

/// Medians of the pages of a stack cannot be merged.
#[test]
fn stf_of_a_stack_of_32_bits_is_that_of_each_page() {
    let pages_of_floats =
        [1, 2].map(|page| image(7, 5, 1, Depth::Float, [Kind::Noise, Kind::Narrow][page - 1]));
    let file = stack(&pages_of_floats, &Metadata::default());
    let args = ["normalize", "--range", "stf", "--nan", "0"];
    refused(
        "in.tif",
        &file,
        &args,
        "out.tif",
        "only for each page separately (use --scope page)",
    );
    let (run, written) = outcome(
        "in.tif",
        &file,
        &[&args[..], &["--scope", "page"]].concat(),
        "out.tif",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let op = Normalize {
        range: "stf".parse().ok(),
        nan: Some(0.0),
        ..Normalize::default()
    };
    let found = pages(&written.expect("a file"));
    for (page, found) in pages_of_floats.iter().zip(found) {
        assert_eq!(found.1, values(&executed(&op, page).0));
    }
}

/// The pages of a stack share a range of `stf` and have their own of `zscale`.
#[test]
fn stacks_are_measured_as_stated() {
    let images = [
        grey(3, [5, 9, 100, 5, 9, 100]),
        grey(3, [50, 90, 1000, 50, 90, 1000]),
    ];
    let file = stack(&images, &Metadata::default());
    let of = |args: &[&str]| {
        let (run, file) = outcome(
            "in.tif",
            &file,
            &[&["normalize"][..], args].concat(),
            "out.tif",
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        pages(&file.expect("a file"))
    };
    let own = of(&["--range", "zscale"]);
    assert_eq!((own[0].1[2], own[1].1[2]), (65535, 65535));
    assert_eq!((own[0].1[0], own[1].1[0]), (0, 0));
    let shared = of(&["--range", "stf"]);
    let all = [5, 9, 100, 5, 9, 100, 50, 90, 1000, 50, 90, 1000];
    let op = Normalize {
        range: "stf".parse().ok(),
        ..Normalize::default()
    };
    let (expected, _) = executed(&op, &grey(3, all));
    assert_eq!([&shared[0].1[..], &shared[1].1].concat(), values(&expected));
}

/// 100 to 105 of 8 bits: the medians are 102.5 and 1.5, so the range begins at 102.5 − 4.15128·1.5 = 96.27, rounded to 96,
/// and the samples are those of the formula in Python's fractions. A page was measured after its samples were converted to
/// 16 bits, so its range began at 96.27, which was printed as 96; that of a stack began at 96.
#[test]
fn a_page_of_eight_bits_was_measured_as_sixteen_and_a_stack_was_not() {
    let shape = Shape {
        width: 3,
        height: 2,
        channels: 1,
        depth: Depth::Eight,
    };
    let page = Image::new(shape, samples((100..106).collect(), Depth::Eight));
    for copies in [1, 2] {
        let file = stack(&vec![page.clone(); copies], &Metadata::default());
        let args = ["normalize", "--range", "stf", "--depth", "16"];
        let (run, file) = outcome("in.tif", &file, &args, "out.tif");
        assert!(run.stderr.contains("96:255"), "{}", run.stderr);
        for (_, page, _) in pages(&file.expect("a file")) {
            assert_eq!(page, [16219, 19180, 21838, 24237, 26413, 28397], "{copies}");
        }
    }
}

/// A resumed run does a file again if its range or its curve is another one.
#[test]
fn the_options_of_a_resumed_run_differ() -> Result<()> {
    let range = |text: &str| Normalize {
        range: text.parse().ok(),
        ..Normalize::default()
    };
    let options = [
        Normalize::default(),
        range("zscale"),
        range("stf"),
        with_curve("log"),
        with_curve("asinh:0.1"),
        with_curve("asinh:0.2"),
    ];
    let texts = options.iter().map(|op| Ok(serde_json::to_string(op)?));
    let texts = texts.collect::<Result<std::collections::BTreeSet<String>>>()?;
    assert_eq!(texts.len(), options.len());
    // Journals of earlier versions stay valid.
    let plain = serde_json::to_string(&Normalize::default())?;
    assert!(!plain.contains("curve"), "{plain}");
    Ok(())
}
