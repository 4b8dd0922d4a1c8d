//! One range for many files, so that a series keeps its relative brightness; and percentiles.

use crate::support::batch::tree;
use crate::support::contract::words;
use crate::support::stacks::{pages, range, stretched};
use crate::support::tiff::Build;
use crate::support::{Run, folder, run, sample};
use gpuimg::internals::image::{Depth, Image, Samples, Shape};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn one_range_for_a_whole_set() {
    // The same scene, ever darker: a series.
    let scene: Vec<u16> = (0..400u32).map(|i| (i * i % 977 * 40) as u16).collect();
    let root = folder(&[("in/x", b"")]);
    let file = |divisor: u16| {
        let mut file = b"P5\n20 20\n65535\n".to_vec();
        file.extend(
            scene
                .iter()
                .flat_map(|value| (value / divisor).to_be_bytes()),
        );
        file
    };
    fs::remove_file(root.path().join("in/x")).expect("remove");
    for divisor in 1..=9 {
        fs::write(root.path().join(format!("in/{divisor}.pgm")), file(divisor)).expect("file");
    }
    let ok = |args: &[&str]| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 0, "{args:?}: {stderr}");
    };
    ok(&["normalize", "--across", "in", "across"]);
    let across = tree(&root.path().join("across"));
    let top = u64::from(*scene.iter().max().expect("values"));
    for divisor in 1..=9u16 {
        let samples = &across[Path::new(&format!("{divisor}.pgm"))][15..];
        for (pair, value) in samples.chunks_exact(2).zip(&scene) {
            let found = u64::from(u16::from_be_bytes([pair[0], pair[1]]));
            let value = u64::from(value / divisor);
            assert_eq!(
                found,
                (value * 65535 + top / 2) / top,
                "relative brightness is kept"
            );
        }
    }
    // The same from three parts, whoever measures them; clipped too.
    for part in 1..=3 {
        let (shard, out) = (format!("{part}/3"), format!("{part}.hist"));
        ok(&["histogram", "in", "--shard", &shard, "-o", &out]);
    }
    ok(&["merge", "2.hist", "3.hist", "1.hist", "-o", "all.hist"]);
    for part in 1..=3 {
        let shard = format!("{part}/3");
        ok(&[
            "normalize",
            "--range-from",
            "all.hist",
            "--shard",
            &shard,
            "in",
            "parts",
        ]);
        ok(&[
            "normalize",
            "--range-from",
            "all.hist",
            "--clip",
            "1:98",
            "--shard",
            &shard,
            "in",
            "clipped",
        ]);
    }
    assert!(tree(&root.path().join("parts")) == across);
    ok(&["normalize", "--across", "--clip", "1:98", "in", "across2"]);
    assert!(tree(&root.path().join("clipped")) == tree(&root.path().join("across2")));
    assert!(tree(&root.path().join("clipped")) != across);

    let refused = |args: &[&str], sentence: &str| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_ne!(code, 0, "{args:?}");
        assert!(stderr.contains(sentence), "{args:?}: {stderr}");
    };
    refused(
        &["merge", "1.hist", "1.hist", "-o", "x"],
        "part 1 of 3 is in this file and in another one",
    );
    refused(
        &["merge", "1.hist", "3.hist", "-o", "x"],
        "part 2 of 3 is missing",
    );
    refused(
        &["normalize", "--range-from", "1.hist", "in", "x"],
        "part 2, 3 of 3 is missing",
    );
    fs::write(root.path().join("bytes.pgm"), b"P5 2 1 255\n\x07\x08").expect("file");
    refused(
        &[
            "normalize",
            "--range-from",
            "all.hist",
            "bytes.pgm",
            "x.pgm",
        ],
        "images of another type",
    );
    refused(
        &["histogram", "in", "bytes.pgm", "-o", "x"],
        "they cannot share a range",
    );
    assert!(!root.path().join("x").exists() && !root.path().join("x.pgm").exists());
}

#[test]
fn a_histogram_without_a_bad_image_was_written_as_that_of_the_set() {
    let files: [(&str, &[u8]); 3] = [
        ("in/a.pgm", b"P5 2 1 255\n\x07\x64"),
        ("in/b.pgm", b"P5 2 1 255\n\x03\x60"),
        ("in/bad.pgm", b"P5 9 9 255\ntoo short"),
    ];
    for more in [&[][..], &["--shard", "1/1"]] {
        let root = folder(&files);
        let args = [&["histogram", "in", "-o", "new/all.hist"], more].concat();
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 1, "{stderr}");
        for sentence in [
            "cannot read in/bad.pgm",
            "nothing was written: the histogram needs all images, but 1 of 3 could not be read (use \
             --keep-going to leave them out)",
        ] {
            assert!(stderr.contains(sentence), "{sentence:?} is not in {stderr}");
        }
        assert!(!root.path().join("new").exists());
    }
}

/// One image that could not be read left a set without any histogram, and the jobs after it without
/// an end.
#[test]
fn a_bad_image_leaves_the_histogram_of_the_others() {
    let root = folder(&[
        ("in/a.pgm", b"P5 2 1 255\n\x07\x64"),
        ("in/b.pgm", b"P5 2 1 255\n\x03\x60"),
        ("in/bad.pgm", b"P5 9 9 255\ntoo short"),
    ]);
    let go = |args: &[&str]| run(root.path(), args, &[]);
    for part in 1..=2 {
        let (shard, out) = (format!("{part}/2"), format!("new/parts/{part}.hist"));
        let args = ["histogram", "in", "--shard", &shard, "-o", &out];
        let Run { code, stderr, .. } = go(&[&args[..], &["--keep-going"]].concat());
        // The bad image's part says so, and whose fault it is; the other part is whole.
        let bad = stderr.contains("in/bad.pgm");
        assert_eq!(code, i32::from(bad), "{stderr}");
        let sentence = format!("{out} does not include 1 image that could not be read");
        assert_eq!(stderr.contains(&sentence), bad, "{stderr}");
        assert!(root.path().join(&out).exists());
    }
    let Run { code, stderr, .. } = go(&["merge", "new/parts", "-o", "all.hist"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("all.hist does not include 1 image"),
        "{stderr}"
    );
    let all = fs::read_to_string(root.path().join("all.hist")).expect("merged");
    assert!(
        all.contains(r#""failed":1"#) && all.contains(r#""images":2"#),
        "{all}"
    );
    let Run { code, stderr, .. } = go(&["normalize", "--range-from", "all.hist", "in", "out"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("all.hist does not include 1 image"),
        "{stderr}"
    );
    // 3 to 100 become 0 to 255: 7 is floor(4 * 255 / 97 + 1/2) = 11, and 96 is 244.
    assert_eq!(
        fs::read(root.path().join("out/a.pgm")).expect("a")[11..],
        [11, 255]
    );
    assert_eq!(
        fs::read(root.path().join("out/b.pgm")).expect("b")[11..],
        [0, 244]
    );
}

/// `merge` wanted a shell to list a folder's files, and a repeated one met its own output there.
#[test]
fn merge_takes_a_folder() {
    let root = folder(&[
        ("in/a.pgm", b"P5 2 1 255\n\x07\x64"),
        ("parts/notes.txt", b"not a histogram"),
    ]);
    let go = |args: &[&str], code: i32, sentence: &str| {
        let out = run(root.path(), args, &[]);
        assert_eq!(out.code, code, "{args:?}: {}", out.stderr);
        assert!(out.stderr.contains(sentence), "{args:?}: {}", out.stderr);
    };
    let merge = ["merge", "parts", "-o", "parts/all.hist", "--overwrite"];
    go(&merge, 2, "the folder contains no .hist or .partial file");
    for part in ["1/2", "2/2"] {
        let out = format!("parts/{}.hist", part.replace('/', "-of-"));
        go(&["histogram", "in", "--shard", part, "-o", &out], 0, "");
    }
    go(&merge, 0, "");
    let first = fs::read(root.path().join("parts/all.hist")).expect("merged");
    // The job is tried again: what it wrote before is not a part.
    go(&merge, 0, "");
    assert_eq!(
        fs::read(root.path().join("parts/all.hist")).expect("merged"),
        first
    );
    // A part of another split is named, not counted.
    go(
        &[
            "histogram",
            "in",
            "--shard",
            "1/3",
            "-o",
            "parts/1-of-3.hist",
        ],
        0,
        "",
    );
    go(&merge, 1, "it belongs to a set of");
    go(
        &["merge", "parts", "-o", "x.hist"],
        1,
        "cannot merge parts/1-of-3.hist",
    );
    assert!(!root.path().join("x.hist").exists());
}

#[test]
fn a_hot_pixel_is_clipped() {
    let mut file = b"P5\n100 10\n65535\n".to_vec();
    file.extend((0..1000u16).flat_map(|i| if i == 500 { 65_000 } else { i % 100 }.to_be_bytes()));
    let root = folder(&[("in.pgm", &file)]);
    let Run { code, stderr, .. } = run(
        root.path(),
        &["normalize", "--clip", "0:99.8", "in.pgm", "out.pgm"],
        &[],
    );
    assert_eq!(code, 0, "{stderr}");
    let out = fs::read(root.path().join("out.pgm")).expect("out");
    let value = |i: usize| u16::from_be_bytes([out[16 + 2 * i], out[17 + 2 * i]]);
    assert_eq!((value(0), value(99), value(500)), (0, 65_535, 65_535));
    assert_eq!(value(50), ((50 * 65_535 + 49) / 99) as u16);
}

/// The microscope's stack, each page a file of its own: one function of the values for all files, so
/// that means keep their order and, above the least value of all, their ratios. Without it they do not.
#[test]
fn a_real_series_keeps_its_relative_brightness() {
    let stack = pages(&fs::read(sample("nuclei-stack.tif")).unwrap());
    assert_eq!(stack.len(), 31);
    let root = folder(&[]);
    fs::create_dir(root.path().join("in")).unwrap();
    for (i, ((width, height), samples, _)) in stack.iter().enumerate() {
        let shape = Shape::checked((*width).into(), (*height).into(), 1, Depth::Sixteen).unwrap();
        let file = Build::default().file(&Image::new(shape, Samples::from(samples.clone())));
        fs::write(root.path().join(format!("in/{i:02}.tif")), file).unwrap();
    }
    let results = |args: &[&str]| -> Vec<Vec<u16>> {
        let out = format!("out{}", args.len());
        let args = [&["normalize"], args, &["in", &out]].concat();
        assert_eq!(run(root.path(), &args, &[]).code, 0);
        let file = |i| fs::read(root.path().join(format!("{out}/{i:02}.tif"))).unwrap();
        (0..31).map(|i| words(&file(i))).collect()
    };
    /// Whether equal values have equal results wherever they are.
    fn is_one_function(stack: &[Vec<u16>], results: &[Vec<u16>]) -> bool {
        let mut function = BTreeMap::new();
        let mut pairs = stack.iter().flatten().zip(results.iter().flatten());
        pairs.all(|(value, result)| {
            function
                .insert(value, result)
                .is_none_or(|one| one == result)
        })
    }
    let mean = |page: &Vec<u16>| {
        page.iter().map(|&value| f64::from(value)).sum::<f64>() / page.len() as f64
    };
    let stack: Vec<Vec<u16>> = stack.into_iter().map(|page| page.1).collect();
    let (min, max) = range(&stack.concat());
    let scale = 65535.0 / f64::from(max - min);

    let across = results(&["--across"]);
    assert!(is_one_function(&stack, &across));
    for (before, after) in stack.iter().zip(&across) {
        assert_eq!(*after, stretched(before, (min, max), 65535));
        // Rounding moves a mean by half a step at most.
        let expected = (mean(before) - f64::from(min)) * scale;
        assert!((mean(after) - expected).abs() <= 0.5);
    }
    let order = |pages: &[Vec<u16>]| {
        let mut order: Vec<usize> = (0..pages.len()).collect();
        order.sort_by(|&a, &b| mean(&pages[a]).total_cmp(&mean(&pages[b])));
        order
    };
    assert_eq!(order(&across), order(&stack));

    let alone = results(&[]);
    assert!(!is_one_function(&stack, &alone));
    assert_ne!(order(&alone), order(&stack));
    assert!(alone.iter().all(|page| range(page) == (0, 65535)));
}

#[test]
fn a_file_that_was_not_measured_left_the_range_without_a_word() {
    let image =
        |value: u16| [b"P5\n1 2\n65535\n\0\0".to_vec(), value.to_be_bytes().into()].concat();
    let (dark, bright) = (image(100), image(200));
    // Half of a copy that is under way: nothing can be read of its second row.
    let files: [(&str, &[u8]); 4] = [
        ("in/a.pgm", &dark),
        ("in/b.pgm", b"P5\n1 "),
        ("in/c.pgm", &bright),
        ("in/notes.txt", b"no image"),
    ];
    for verbs in [
        &["normalize", "--across"][..],
        &["run", "normalize --across + flip vertical"],
    ] {
        let root = folder(&files);
        let go = |more: &[&str]| run(root.path(), &[verbs, more, &["in", "out"]].concat(), &[]);
        let Run { code, stderr, .. } = go(&["--report", "report"]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains("cannot read in/b.pgm: "), "{stderr}");
        assert!(
            stderr.contains("1 of 3 could not be read (use --keep-going"),
            "{stderr}"
        );
        assert!(!root.path().join("out").exists() && !root.path().join("report").exists());

        // Left out of both passes, named once and counted, although it is whole by now.
        let Run { code, stderr, .. } = go(&["--keep-going", "--report", "report"]);
        assert_eq!(code, 1, "{stderr}");
        assert_eq!(stderr.matches("in/b.pgm").count(), 1, "{stderr}");
        assert!(stderr.contains("2 of 3 files done, 1 failed"), "{stderr}");
        let found = tree(&root.path().join("out"));
        assert_eq!(found.len(), 2);
        let samples = [
            &found[Path::new("a.pgm")][13..],
            &found[Path::new("c.pgm")][13..],
        ];
        let half = 32_768u16.to_be_bytes();
        assert!(samples[0].ends_with(&half) || samples[0].starts_with(&half));
        let report = fs::read_to_string(root.path().join("report")).unwrap();
        assert_eq!(report.lines().count(), 3);
    }
    // Where nothing is left, no folder is made.
    let root = folder(&[("in/b.pgm", b"P5\n1 ")]);
    let args = ["normalize", "--across", "--keep-going", "in", "out"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1);
    assert_eq!(
        stderr.matches("cannot read in/b.pgm").count(),
        1,
        "{stderr}"
    );
    assert!(!root.path().join("out").exists());
}

#[test]
fn zeros_of_a_damaged_image_were_counted_in_the_range_of_all() {
    let damaged = [&b"P5 2 2 255\n"[..], &[150]].concat();
    let files: [(&str, &[u8]); 3] = [
        ("in/a.pgm", b"P5 2 1 255\n\x64\x96"),
        ("in/b.pgm", b"P5 2 1 255\n\x96\xc8"),
        ("in/c.pgm", &damaged),
    ];
    let root = folder(&files);
    let go = |args: &[&str]| {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains("in/c.pgm"), "{stderr}");
    };
    go(&["normalize", "--across", "--keep-going", "in", "across"]);
    go(&["histogram", "--keep-going", "in", "-o", "h.hist"]);
    go(&["normalize", "--range-from", "h.hist", "in", "from"]);
    // 100 to 200 become 0 to 255: 150 is 128.
    for out in ["across", "from"] {
        let results = tree(&root.path().join(out));
        let images = results
            .iter()
            .filter(|(name, _)| name.extension() == Some("pgm".as_ref()));
        let samples: Vec<&[u8]> = images.map(|(_, bytes)| &bytes[bytes.len() - 2..]).collect();
        assert_eq!(samples, [[0, 128], [128, 255]], "{out}");
    }
}
