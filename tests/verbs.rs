//! The verbs that people type first: `convert`, `preview` and `info`, and the answers to words that are no verbs.

use crate::support::{Numbers, folder, run, sample};
use gpuimg::codec;
use gpuimg::files::Source;
use std::fs;
use std::path::Path;

/// The samples of an image file.
fn samples(path: &Path) -> Vec<u8> {
    let source = Source::open(path).expect("a file");
    let image = codec::decode(&source).expect("an image");
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
