//! Ranges as they are typed, reported and passed on: in the values that a file's samples represent.

use crate::support::contract::{grey, made, outcome, refused, signed, stored, tag, words};
use crate::support::stacks::stack;
use crate::support::tiff::Build;
use crate::support::{folder, run};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use std::fs;

/// `verify` tells the values that samples stand for, and that a sign makes other values of them.
#[test]
fn signed_samples_are_compared_with_their_sign() {
    let file = |sign, words: [i16; 2]| {
        let build = Build::default().tag(339, 3, &[sign]);
        build.file(&grey(2, words.map(|word| word as u16)))
    };
    let folder = folder(&[
        ("a.tif", &file(2, [-5, 7])),
        ("b.tif", &file(2, [-5, -1000])),
        ("c.tif", &file(1, [-5, 7])),
    ]);
    let verify = |b| {
        let found = run(folder.path(), &["verify", "a.tif", b], &[]);
        (found.code, found.stdout)
    };
    assert_eq!(verify("a.tif"), (0, "equal\n".into()));
    let (code, told) = verify("b.tif");
    assert_eq!(code, 1);
    assert_eq!(
        told,
        "1 of 2 samples differ, by at most 1007; first at column 1, row 0, channel 0: 7 and -1000\n"
    );
    let (code, told) = verify("c.tif");
    assert_eq!(code, 1);
    assert!(told.contains("16 bits with sign and"), "{told}");
}

/// −1000, 0, 3000 / −32768, 500, 32767 by 3×2: by hand, 65535/4000 a step.
#[test]
fn signed_samples_have_signed_ranges() {
    let values: [i16; 6] = [-1000, 0, 3000, -32768, 500, 32767];
    let file = Build::default().tag(339, 3, &[2]);
    let file = file.file(&grey(3, values.map(|value| value as u16)));
    let with = |args: &[&str]| {
        let args = [&["normalize"], args].concat();
        let words = stored(&made("in.tif", &file, &args, "out.tif"));
        words
            .into_iter()
            .map(|word| word as i16)
            .collect::<Vec<_>>()
    };
    // 1000·65535/4000 = 16383.75 and 1500·65535/4000 = 24575.625, from −32768 on.
    let expected = [-32768, -16384, 32767, -32768, -8192, 32767];
    assert_eq!(with(&["--range=-1000:3000"]), expected);
    assert_eq!(
        with(&["--range", "-1000:3000", "--to=-32768:32767"]),
        expected
    );
    // 1000·200/4000 = 50, 1500·200/4000 = 75.
    let expected = [-100, -50, 100, -100, -25, 100];
    assert_eq!(with(&["--range=-1000:3000", "--to", "-100:100"]), expected);
    // The whole of what signed samples can be is left as it is.
    assert_eq!(with(&["--range=-32768:32767"]), values);
    assert_eq!(with(&["--to=-32768:32767"]), values);
    // A format without sign has values from 0.
    let args = ["normalize", "--range=-1000:3000", "--to", "0:4000"];
    let png = made("in.tif", &file, &args, "out.png");
    assert_eq!(words(&png), [0, 1000, 4000, 0, 1500, 4000]);
    // 8 bits: their values, too.
    let args = ["normalize", "--range=-1000:3000", "--depth", "8"];
    let bytes = made("in.tif", &file, &args, "out.tif");
    let at = tag(&bytes, 273).unwrap()[0] as usize;
    let found: Vec<i8> = bytes[at..at + 6].iter().map(|&byte| byte as i8).collect();
    assert_eq!(found, [-128, -64, 127, -128, -32, 127]);

    for (range, words) in [
        (
            "--range=-1000:40000",
            "--range -1000:40000 exceeds -32768:32767, the range of 16 bits with sign",
        ),
        ("--to=0:65535", "--to 0:65535 exceeds -32768:32767"),
    ] {
        refused("in.tif", &file, &["normalize", range], "out.tif", words);
    }
    let plain = Build::default().file(&grey(2, [1, 2]));
    let words =
        "cannot normalize in.tif: --range -1:5 exceeds 0:65535, the range of 16 bits without sign";
    refused(
        "in.tif",
        &plain,
        &["normalize", "--range", "-1:5"],
        "out.tif",
        words,
    );
    let words = "--to -1:5 exceeds 0:65535";
    refused(
        "in.tif",
        &file,
        &["normalize", "--to", "-1:5"],
        "out.png",
        words,
    );
}

/// Ranges are reported, and passed on from file to file, with their sign.
#[test]
fn signed_ranges_are_told_and_handed_on() {
    let place = folder(&[("in/a.tif", &signed())]);
    let go = |args: &[&str]| run(place.path(), args, &[]);
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    let out = go(&["normalize", "in", "out", "--report", "r.jsonl"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let report: serde_json::Value = serde_json::from_slice(&read("r.jsonl")).unwrap();
    let range = serde_json::json!([{"channel": "grey", "min": -32768, "max": 300}]);
    assert_eq!(report["pages"][0]["ranges"], range);
    let out = go(&["histogram", "in", "-o", "a.hist"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let counted: serde_json::Value = serde_json::from_slice(&read("a.hist")).unwrap();
    let expected = serde_json::json!([[[-32768, 1], [-2, 1], [5, 1], [300, 1]]]);
    assert_eq!(counted["channels"], expected);
    let out = go(&["normalize", "--range-from", "a.hist", "in", "again"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(read("again/a.tif") == read("out/a.tif"));
    // Unsigned images cannot share a range with them.
    let plain = Build::default().file(&grey(2, [1, 2]));
    fs::write(place.path().join("in/b.tif"), plain).unwrap();
    let out = go(&["normalize", "--range-from", "a.hist", "in/b.tif", "b.tif"]);
    assert_eq!(out.code, 1);
    let words =
        "it has 16 bits without sign, but the range was measured on images with 16 bits with sign";
    assert!(out.stderr.contains(words), "{}", out.stderr);
    let out = go(&["histogram", "in", "-o", "all.hist"]);
    assert!(
        out.stderr.contains("they cannot share a range"),
        "{}",
        out.stderr
    );
    // A flat image is reported with its value.
    let flat = Build::default().tag(339, 3, &[2]);
    let flat = flat.file(&grey(2, [(-7i16) as u16; 4]));
    let (out, _) = outcome("in.tif", &flat, &["normalize"], "out.tif");
    assert!(out.stderr.contains("every sample is -7)"), "{}", out.stderr);
}

/// A range is of the file's own values, `--to` of the output's, whatever lies in between.
#[test]
fn a_range_stays_true_when_the_depth_changes() {
    let bytes = b"P5 3 1 255\n\x00\x64\xc8";
    let wide = |args: &[&str]| {
        let args = [&["normalize", "--depth", "16"], args].concat();
        words(&made("in.pgm", bytes, &args, "out.pgm"))
    };
    assert_eq!(wide(&["--range", "0:200"]), [0, 32768, 65535]);
    assert_eq!(
        wide(&["--range", "100:255", "--to", "0:15500"]),
        [0, 0, 10000]
    );
    assert_eq!(wide(&["--clip", "0:50"]), [0, 65535, 65535]);
    // Sets of images, and pages, are measured as they are read.
    let place = folder(&[("in/a.pgm", bytes), ("in/b.pgm", b"P5 2 1 255\n\x05\x32")]);
    let args = ["normalize", "--across", "--depth", "16", "in", "out"];
    assert_eq!(run(place.path(), &args, &[]).code, 0);
    let out = |name: &str| words(&fs::read(place.path().join(name)).unwrap());
    assert_eq!(out("out/a.pgm"), [0, 32768, 65535]);
    assert_eq!(out("out/b.pgm"), [1638, 16384]);
    let pages: Vec<Image> = [[0u8, 100], [50, 200]]
        .map(|page| {
            Image::new(
                Shape::checked(2, 1, 1, Depth::Eight).unwrap(),
                Samples::from(page.to_vec()),
            )
        })
        .to_vec();
    let stack = stack(&pages, &Metadata::default());
    let tiff = made("in.tif", &stack, &["normalize", "--depth", "16"], "out.tif");
    fs::write(place.path().join("stack.tif"), tiff).unwrap();
    let args = ["sum", "--all", "stack.tif"];
    let said = run(place.path(), &args, &[]).stdout;
    assert!(
        said.contains("page 1: sum 32768, min 0, max 32768"),
        "{said}"
    );
    assert!(
        said.contains("page 2: sum 81919, min 16384, max 65535"),
        "{said}"
    );

    // 16 bits to 8: the output's values, refused beyond them.
    let words16 = b"P5 3 1 65535\n\x00\x00\x10\x00\x20\x00";
    let args = ["normalize", "--depth", "8", "--to", "10:20"];
    assert_eq!(
        words(&made("in.pgm", words16, &args, "out.pgm")),
        [10, 15, 20]
    );
    let args = ["normalize", "--depth", "8", "--to", "0:4095"];
    let what = "--to 0:4095 exceeds 0:255, the range of 8 bits without sign";
    refused("in.pgm", words16, &args, "out.pgm", what);
}

/// Alpha, and what is flat, are not scaled, and so still have 16 bits to be rounded to 8.
#[test]
fn what_is_not_stretched_is_rounded_to_eight_bits() {
    let shape = Shape::checked(3, 1, 2, Depth::Sixteen).unwrap();
    let samples = vec![100u16, 40000, 300, 32768, 200, 65535];
    let file = Build::default().tag(338, 3, &[2]);
    let file = file.file(&Image::new(shape, Samples::from(samples)));
    let eight = ["normalize", "--depth", "8"];
    let found = words(&made("in.tif", &file, &eight, "out.tif"));
    assert_eq!(found, [0, 156, 255, 128, 128, 255]);
    // Red is flat, 40000·255/65535 = 155.6; green is not.
    let shape = Shape::checked(2, 1, 3, Depth::Sixteen).unwrap();
    let samples = vec![40000u16, 7, 1, 40000, 9, 3];
    let file = Build::default().file(&Image::new(shape, Samples::from(samples)));
    let args = ["normalize", "--per-channel", "--depth", "8"];
    let (run, written) = outcome("in.tif", &file, &args, "out.tif");
    assert!(
        run.stderr
            .contains("channel 1 is flat (every sample is 40000)")
    );
    assert_eq!(words(&written.unwrap()), [156, 0, 0, 156, 255, 255]);
}

/// Samples that are no numbers have the value of `--nan`, which may lie in the range.
#[test]
fn a_range_was_said_to_miss_the_values_of_nan() {
    let floats = [f32::NAN, 1.0, 2.0].map(f32::to_le_bytes).concat();
    let folder = folder(&[("in.raw", &floats)]);
    let stderr = |nan: &str| {
        let args = ["normalize", "in.raw", "out.pgm", "--raw", "3x1:f32le"];
        let range = ["--range", "10:40", "--overwrite", "--nan", nan];
        let run = run(folder.path(), &[&args[..], &range].concat(), &[]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stderr
    };
    assert_eq!(stderr("20"), "");
    let missed = "no sample lies in the range";
    assert!(stderr("2").contains(missed), "{}", stderr("2"));
}

/// A dim image with noise, and one pixel at the top of the range.
fn with_a_hot_pixel(hot: u16) -> Vec<u8> {
    let mut samples: Vec<u16> = (0..64 * 64u32)
        .map(|i| 100 + (i * 7919 % 50) as u16)
        .collect();
    samples[2017] = hot;
    let samples: Vec<u8> = samples.iter().flat_map(|v| v.to_be_bytes()).collect();
    [&b"P5\n64 64\n65535\n"[..], &samples].concat()
}

#[test]
fn a_hot_pixel_left_an_image_black_without_a_word() {
    let hot = with_a_hot_pixel(65535);
    let folder = folder(&[
        ("hot.pgm", &hot),
        ("fine.pgm", &with_a_hot_pixel(160)),
        ("in/a.pgm", &hot),
        ("in/b.pgm", &hot),
        ("in/c.pgm", &with_a_hot_pixel(160)),
    ]);
    let told = |args: &[&str]| {
        let done = run(folder.path(), &[&["normalize", "-f"], args].concat(), &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        done.stderr
    };
    let advice = "use --clip 0.1:99.9 to ignore them";
    let hint = told(&["hot.pgm", "o.pgm"]);
    assert_eq!(hint.matches(advice).count(), 1, "{hint}");
    let verbose = told(&["hot.pgm", "o.pgm", "-v"]);
    assert!(
        verbose.contains("scaled from the range 100:65535"),
        "{verbose}"
    );
    // Nothing where it is not so, where the user has chosen a range, and with --quiet.
    for args in [
        &["fine.pgm", "o.pgm"][..],
        &["hot.pgm", "o.pgm", "-q"],
        &["hot.pgm", "o.pgm", "--clip", "0.1:99.9"],
        &["hot.pgm", "o.pgm", "--range", "0:65535"],
    ] {
        assert_eq!(told(args), "", "{args:?}");
    }
    // A batch names the first, and counts.
    let batch = told(&["in", "out"]);
    assert_eq!(batch.matches(advice).count(), 2, "{batch}");
    assert!(
        batch.contains("warning: 2 images in total: a few outliers"),
        "{batch}"
    );
}
