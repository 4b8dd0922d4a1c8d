//! The verbs that people type first: `convert`, `preview` and `info`, and the answers to words that are no verbs.

use crate::support::{Kind, Numbers, folder, gpu, image, run, sample, tiff};
use gpuimg::internals::engine::executor;
use gpuimg::internals::formats;
use gpuimg::internals::image::{Depth, Image, Region, Samples, Shape};
use gpuimg::internals::ops::crop::Crop;
use gpuimg::internals::ops::naive;
use gpuimg::internals::os::Source;
use gpuimg::internals::timing::Timeline;
use std::fs;
use std::path::Path;

/// The samples of an image file.
fn samples(path: &Path) -> Vec<u8> {
    let source = Source::open(path).expect("a file");
    let image = formats::decode(&source).expect("an image");
    image.samples().as_bytes().to_vec()
}

/// A PGM file of random samples of 16 bits.
fn pgm(width: usize, height: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(7);
    let mut file = format!("P5 {width} {height} 65535\n").into_bytes();
    for _ in 0..2 * width * height {
        file.push((numbers.next() >> 20) as u8);
    }
    file
}

#[test]
fn convert_there_and_back_gives_the_same_file() {
    let root = folder(&[("a.pgm", &pgm(31, 17))]);
    let go = |args: &[&str]| {
        let done = run(root.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    };
    let first = samples(&root.path().join("a.pgm"));
    let mut cases = 0;
    for extension in ["png", "tif", "npy", "fits", "pam"] {
        let there = format!("b.{extension}");
        let back = format!("c_{extension}.pgm");
        go(&["convert", "a.pgm", &there]);
        go(&["convert", &there, &back]);
        let last = samples(&root.path().join(&back));
        assert!(last == first, "{extension}");
        cases += 1;
    }
    assert_eq!(cases, 5);
}

#[test]
fn convert_keeps_samples_and_metadata() {
    let root = folder(&[]);
    for name in ["thermal.tif", "photo-rgb16.png", "nuclei-stack.tif"] {
        let (from, to) = (sample(name), root.path().join(name));
        let (input, output) = (from.to_str().expect("text"), to.to_str().expect("text"));
        let done = run(root.path(), &["convert", input, output], &[]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{name}");
        assert_eq!(samples(&from), samples(&to), "{name}");
        let about = |path: &str| {
            let text = run(root.path(), &["info", "--json", path], &[]).stdout;
            let mut about: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let fields = about.as_object_mut().expect("an object");
            // The file is written anew.
            fields.remove("bytes");
            fields.remove("input");
            about
        };
        assert_eq!(about(input), about(output), "{name}");
    }
}

/// The rows of a PGM file of 16 bits after its header, as numbers.
fn values(file: &[u8]) -> Vec<u16> {
    let start = file.iter().position(|&byte| byte == b'5').expect("P5");
    let header_end = file
        .windows(6)
        .position(|six| six == b"65535\n")
        .expect("maxval")
        + 6;
    assert!(start < header_end);
    file[header_end..]
        .chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect()
}

#[test]
fn a_crop_by_hand() {
    let pixels: Vec<u8> = (0..12u16).flat_map(u16::to_be_bytes).collect();
    let file = [b"P5 4 3 65535\n", &pixels[..]].concat();
    let root = folder(&[("a.pgm", &file)]);
    for (region, expected) in [
        ("0,0,1x1", &[0][..]),
        ("3,2,1x1", &[11]),
        ("1,1,2x2", &[5, 6, 9, 10]),
        ("0,1,4x1", &[4, 5, 6, 7]),
        ("2,0,1x3", &[2, 6, 10]),
        ("0,0,4x3", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ] {
        let done = run(
            root.path(),
            &["crop", region, "a.pgm", "b.pgm", "--overwrite"],
            &[],
        );
        assert_eq!((done.code, &*done.stderr), (0, ""), "{region}");
        let found = values(&fs::read(root.path().join("b.pgm")).expect("file"));
        assert_eq!(found, expected, "{region}");
    }
}

#[test]
fn a_crop_of_a_crop_is_one_crop() {
    let root = folder(&[("a.pgm", &pgm(61, 47))]);
    let go = |args: &[&str]| {
        let done = run(root.path(), args, &[]);
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    };
    go(&["crop", "7,5,40x30", "a.pgm", "b.tif"]);
    go(&["crop", "3,11,20x9", "b.tif", "c.tif"]);
    go(&["crop", "10,16,20x9", "a.pgm", "d.tif"]);
    go(&["run", "crop 7,5,40x30 + crop 3,11,20x9", "a.pgm", "e.tif"]);
    // A crop of a turned image is the turned crop.
    go(&[
        "run",
        "rotate 180 + crop 31,22,20x9 + rotate 180",
        "a.pgm",
        "f.tif",
    ]);
    let all = ["c.tif", "d.tif", "e.tif", "f.tif"].map(|name| samples(&root.path().join(name)));
    assert!(all.iter().all(|image| *image == all[0]));
}

#[test]
fn a_region_beyond_the_edge_is_refused() {
    let root = folder(&[("a.pgm", &pgm(5, 4))]);
    for region in [
        "4,0,2x1",
        "0,3,1x2",
        "5,0,1x1",
        "18446744073709551615,0,1x1",
    ] {
        let done = run(root.path(), &["crop", region, "a.pgm", "b.pgm"], &[]);
        assert_eq!(done.code, 1, "{region}");
        let reason = "reaches beyond the image, which has 5×4 pixels";
        assert!(done.stderr.contains(reason), "{region}: {}", done.stderr);
    }
    for wrong in ["1,1", "1,1,0x5", "a,b,1x1", "1,1,5"] {
        let done = run(root.path(), &["crop", wrong, "a.pgm", "b.pgm"], &[]);
        assert_eq!(done.code, 2, "{wrong}: {}", done.stderr);
    }
}

/// The region fits the stored image, and not the upright one.
#[test]
fn a_crop_beyond_the_edge_of_an_upright_image_panicked() {
    let image = image(50, 40, 1, Depth::Sixteen, Kind::Noise);
    let file = tiff::Build::default().tag(274, 3, &[6]).file(&image);
    let root = folder(&[("a.tif", &file)]);
    let go = |region| {
        let words = [
            "crop",
            region,
            "a.tif",
            "b.tif",
            "--auto-orient",
            "--overwrite",
        ];
        run(root.path(), &words, &[])
    };
    let done = go("0,0,50x40");
    assert_eq!(done.code, 1, "{}", done.stderr);
    let reason = "reaches beyond the image, which has 40×50 pixels";
    assert!(done.stderr.contains(reason), "{}", done.stderr);
    assert_eq!(go("0,0,40x50").code, 0);
}

#[test]
fn metadata_of_a_crop_are_those_of_its_place() {
    let root = folder(&[]);
    let input = sample("thermal.tif");
    let words = ["crop", "5,7,30x20", input.to_str().expect("text"), "a.tif"];
    let done = run(root.path(), &words, &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let text = run(root.path(), &["info", "a.tif"], &[]).stdout;
    assert!(
        text.starts_with("a.tif: TIFF, 30×20 grey, 16 bits, "),
        "{text}"
    );
}

#[test]
fn preview_is_normalize_with_three_options() {
    let root = folder(&[("a.pgm", &pgm(1500, 40))]);
    let words = [
        "normalize",
        "--clip",
        "0.1:99.9",
        "--fit",
        "1024",
        "--depth",
        "8",
        "a.pgm",
        "b.png",
    ];
    assert_eq!(run(root.path(), &words, &[]).code, 0);
    let done = run(root.path(), &["preview", "a.pgm", "c.png"], &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stderr
            .starts_with("gpuimg: a.pgm: scaled from the range "),
        "{}",
        done.stderr
    );
    let file = |name| fs::read(root.path().join(name)).expect("file");
    assert!(file("b.png") == file("c.png"));
    let larger = ["preview", "a.pgm", "d.png", "--fit", "1200", "-q"];
    let done = run(root.path(), &larger, &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let text = run(root.path(), &["info", "d.png"], &[]).stdout;
    assert!(
        text.starts_with("d.png: PNG, 1200×32 grey, 8 bits, "),
        "{text}"
    );
}

#[test]
fn auto_is_the_clip_of_outliers() {
    let root = folder(&[("a.pgm", &pgm(50, 40))]);
    for words in [
        &["normalize", "--clip", "0.1:99.9", "a.pgm", "b.png"][..],
        &["normalize", "--auto", "a.pgm", "c.png"],
    ] {
        assert_eq!(run(root.path(), words, &[]).code, 0);
    }
    let file = |name| fs::read(root.path().join(name)).expect("file");
    assert!(file("b.png") == file("c.png"));
    let both = ["normalize", "--auto", "--clip", "1:99", "a.pgm", "d.png"];
    assert_eq!(run(root.path(), &both, &[]).code, 2);
}

#[test]
fn info_says_what_each_file_is_and_names_the_bad_one() {
    let root = folder(&[
        (
            "in/a.pgm",
            b"P5 3 2 65535\n\0\x01\0\x02\0\x03\0\x04\0\x05\x01\0",
        ),
        ("in/bad.png", b"\x89PNG\r\n\x1a\n damaged"),
        ("in/z.txt", b"no image"),
    ]);
    let done = run(root.path(), &["info", "--range", "in"], &[]);
    assert_eq!(done.code, 1);
    assert_eq!(
        done.stdout,
        "in/a.pgm: PNM, 3×2 grey, 16 bits, range 1:256, 25 bytes\n"
    );
    assert!(
        done.stderr.contains("cannot read in/bad.png"),
        "{}",
        done.stderr
    );
    let json = run(root.path(), &["info", "--json", "--range", "in/a.pgm"], &[]).stdout;
    let about: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(about["range"]["max"], 256);
    assert_eq!(
        (&about["width"], &about["height"], &about["schema"]),
        (&3.into(), &2.into(), &1.into())
    );
}

/// The name of the file was there twice, and NaN led to a message about `sum` with an option that `info` lacks.
#[test]
fn the_range_of_a_file_was_refused_in_the_words_of_sum() {
    use crate::support::formats::{format, written};
    let key = |value: f32| crate::support::key(value);
    let values = [f32::NAN, 1.5, f32::INFINITY, 2.0, 0.5, 0.25].map(key);
    let shape = Shape {
        width: 3,
        height: 2,
        channels: 1,
        depth: Depth::Float,
    };
    let image = Image::new(shape, Samples::from(values.to_vec()));
    let file = written(format("tiff"), &[image], &Default::default()).expect("a file");
    let root = folder(&[("a.tif", &file), ("cut.pgm", b"P5 3 2 255\n\x01\x02")]);
    let done = run(root.path(), &["info", "--range", "a.tif"], &[]);
    assert_eq!((done.code, &*done.stderr), (0, ""));
    assert!(done.stdout.contains(", range 0.25:2, "), "{}", done.stdout);
    let done = run(root.path(), &["info", "--range", "cut.pgm"], &[]);
    assert_eq!(done.code, 1);
    assert_eq!(
        done.stderr.matches("cannot read cut.pgm").count(),
        1,
        "{}",
        done.stderr
    );
}

/// The text of another verb's option stood beside options of the same name, in the wrong group.
#[test]
fn options_of_info_had_the_texts_of_other_verbs() {
    let root = folder(&[]);
    let brief = run(root.path(), &["info", "-h"], &[]).stdout;
    assert!(
        brief.contains("Decode each image for its smallest and largest value"),
        "{brief}"
    );
    assert!(
        brief.contains("Write a page with pictures and warnings instead"),
        "{brief}"
    );
    let long = run(root.path(), &["info", "--help"], &[]).stdout;
    assert!(!long.contains("\nRange:\n"), "{long}");
    for verb in ["info", "sum", "histogram"] {
        let long = run(root.path(), &[verb, "--help"], &[]).stdout;
        assert!(!long.contains("Results keep"), "{long}");
    }
    let bench = run(root.path(), &["bench", "-h"], &[]).stdout;
    assert!(bench.contains("Also write a page"), "{bench}");
    for (verb, usage) in [
        (
            "calibrate",
            "Usage: gpuimg calibrate [OPTIONS] INPUT... OUTPUT\n",
        ),
        (
            "project",
            "Usage: gpuimg project [OPTIONS] PROJECTION INPUT... OUTPUT\n",
        ),
    ] {
        let brief = run(root.path(), &[verb, "-h"], &[]).stdout;
        assert!(brief.contains(usage), "{brief}");
    }
}

#[test]
fn words_of_other_programs_are_answered_with_the_verb() {
    for (word, verb) in [
        ("mip", "gpuimg project max"),
        ("average", "gpuimg project mean"),
        ("median", "gpuimg project median"),
        ("stack", "gpuimg convert IN... OUT.tif --stack"),
        ("split", "gpuimg convert IN.tif OUT/ --split"),
        ("brighten", "gpuimg normalize --auto"),
        ("resize", "gpuimg convert IN OUT --fit"),
        ("identify", "gpuimg info"),
    ] {
        let root = folder(&[]);
        let done = run(root.path(), &[word, "a.tif", "b.tif"], &[]);
        assert_eq!(done.code, 2, "{word}");
        assert!(done.stderr.contains(verb), "{word}: {}", done.stderr);
    }
}

#[test]
fn crops_on_a_gpu_are_those_of_the_definition() {
    let regions = [
        (0, 0, 1, 1),
        (3, 5, 7, 2),
        (1, 0, 62, 61),
        (0, 1, 63, 60),
        (62, 60, 1, 1),
    ];
    let Some(gpu) = gpu(regions.len() * 4) else {
        return;
    };
    for (left, top, width, height) in regions {
        for (channels, depth) in [
            (1, Depth::Eight),
            (1, Depth::Sixteen),
            (3, Depth::Sixteen),
            (1, Depth::Float),
        ] {
            let region = Region {
                left,
                top,
                width,
                height,
            };
            let image = image(63, 61, channels, depth, Kind::Noise);
            let op = Crop { region };
            let timeline = &mut Timeline::default();
            let found = executor::on_gpu(&op, image.clone(), gpu, timeline).expect("GPU");
            assert!(found == naive(&op, &image).expect("valid"), "{region}");
        }
    }
}

/// NaN was refused, with a message that named `--nan`, and a stack of floating point with one that named `--scope page`; `preview`
/// had neither.
#[test]
fn preview_named_options_that_it_did_not_have() {
    let numbers = [[1.5f32, f32::NAN, 3.0], [2.0, -7.25, 100.0]];
    let samples = numbers.iter().flatten().flat_map(|it| it.to_le_bytes());
    let mut file = b"\x93NUMPY\x01\0\x76\0".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 3), }";
    file.extend(format!("{header:<117}\n").bytes().chain(samples));
    let root = folder(&[("in.npy", &file)]);
    let done = run(root.path(), &["preview", "in.npy", "out.tif"], &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("range -7.25:100"), "{}", done.stderr);
    let options = ["--nan", "-1", "--scope", "page"];
    let done = run(
        root.path(),
        &[&["preview", "in.npy", "a.tif"], &options[..]].concat(),
        &[],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    let normalize = [
        "normalize",
        "--auto",
        "--fit",
        "1024",
        "--depth",
        "8",
        "in.npy",
        "b.tif",
    ];
    let done = run(root.path(), &[&normalize[..], &options].concat(), &[]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let [a, b] = ["a.tif", "b.tif"].map(|name| fs::read(root.path().join(name)).expect("a file"));
    assert!(a == b);
}
