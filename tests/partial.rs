//! Partial projections: the parts of a set, merged, have the bytes of one machine's; what does not belong
//! together, and files that are not what they should be, are refused by name.

use crate::support::stacks::stack;
use crate::support::tiff::Build;
use crate::support::{Kind, Run, folder, image, listing, run};
use gpuimg::internals::image::Depth;
use gpuimg::internals::image::metadata::Metadata;
use std::fs;
use std::path::Path;

/// A set of 11 images of 16 bits, one of them a stack, and one of 8 bits whose largest value is 200.
fn place() -> tempfile::TempDir {
    let noise = |width| image(width, 9, 3, Depth::Sixteen, Kind::Noise);
    let tif = |index: u64| {
        let build = Build::default().tag(282, 5, &[300 + index, 1]);
        build.file(&noise(31))
    };
    let mut files: Vec<(String, Vec<u8>)> = (0..10)
        .map(|index| (format!("in/{index}.tif"), tif(index)))
        .collect();
    let pages = [noise(31), noise(31)];
    files.push(("in/deep/s.tif".into(), stack(&pages, &Metadata::default())));
    for (index, most) in [(0, 200), (1, 200), (2, 190)] {
        let head = format!("P5 3 1 {most}\n").into_bytes();
        let file = [head, vec![index, 100 + index, 180]].concat();
        files.push((format!("small/{index}.pgm"), file));
    }
    files.push(("other.tif".into(), Build::default().file(&noise(30))));
    let files: Vec<(&str, &[u8])> = (files.iter())
        .map(|(name, file)| (&**name, &**file))
        .collect();
    folder(&files)
}

fn go(root: &Path, args: &[&str]) -> Run {
    let done = run(root, args, &[]);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done
}

/// Writes the parts of a set.
fn parts(root: &Path, how: &[&str], input: &str, of: u64) {
    let _ = fs::remove_dir_all(root.join("parts"));
    for part in 1..=of {
        let (shard, name) = (format!("{part}/{of}"), format!("parts/{part}.partial"));
        let args = [
            "project",
            how[0],
            input,
            &name,
            "--partial",
            "--shard",
            &shard,
        ];
        go(root, &[&args[..], &how[1..]].concat());
    }
}

#[test]
fn parts_give_the_bytes_of_one_machine() {
    let place = place();
    let root = place.path();
    let read = |name: &str| fs::read(root.join(name)).unwrap();
    let mut cases = 0;
    for how in [
        &["mean"][..],
        &["min"],
        &["max"],
        &["sum", "--scale"],
        &["sum", "--saturate"],
    ] {
        for (input, extension) in [("in", "tif"), ("small", "pgm")] {
            let whole = format!("whole.{extension}");
            let whole_args = [
                &["project", how[0], input, &whole, "--overwrite"],
                &how[1..],
            ]
            .concat();
            go(root, &whole_args);
            // Of more parts than images some are empty.
            for of in [1, 3, 23] {
                parts(root, how, input, of);
                let merged = format!("merged.{extension}");
                go(root, &["merge", "parts", "-o", &merged, "-f"]);
                assert!(read(&merged) == read(&whole), "{how:?}, {input}, {of}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 30);
    // Two whole sets may be joined, as histograms may: the mean of an image and of itself is the image.
    go(
        root,
        &["project", "mean", "other.tif", "o.partial", "--partial"],
    );
    go(root, &["merge", "o.partial", "o.partial", "-o", "o.tif"]);
    go(
        root,
        &["project", "mean", "other.tif", "other.tif", "oo.tif"],
    );
    assert!(read("o.tif") == read("oo.tif"));
    // The options of the format are those of the merge.
    parts(root, &["mean"], "in", 2);
    go(root, &["merge", "parts", "-o", "l.tif", "--tiff", "lzw"]);
    go(root, &["project", "mean", "in", "m.tif", "--tiff", "lzw"]);
    assert!(read("l.tif") == read("m.tif"));
}

#[test]
fn parts_that_do_not_belong_together_are_refused_by_name() {
    let place = place();
    let root = place.path();
    let part = |name: &str, args: &[&str]| {
        go(root, &[&["project"], args, &[name, "--partial"]].concat());
    };
    part("1.partial", &["mean", "in", "--shard", "1/2"]);
    part("2.partial", &["mean", "in", "--shard", "2/2"]);
    part("third.partial", &["mean", "in", "--shard", "2/3"]);
    part("max.partial", &["max", "in", "--shard", "2/2"]);
    part("sum.partial", &["sum", "in", "--scale", "--shard", "1/2"]);
    part(
        "clamped.partial",
        &["sum", "in", "--saturate", "--shard", "2/2"],
    );
    part("other.partial", &["mean", "other.tif"]);
    part("all.partial", &["mean", "in"]);
    go(root, &["histogram", "in", "-o", "a.hist"]);
    let before = listing(root);
    for (code, names, told) in [
        (
            1,
            &["1.partial", "1.partial"][..],
            "part 1 of 2 is in this file and in another one",
        ),
        (1, &["1.partial"], "part 2 of 2 is missing"),
        (
            1,
            &["1.partial", "third.partial"],
            "it belongs to a set of 3 parts",
        ),
        (
            1,
            &["1.partial", "max.partial"],
            "it holds project max, but the others hold project mean",
        ),
        (
            1,
            &["sum.partial", "clamped.partial"],
            "it holds project sum --saturate, but the others hold project sum --scale",
        ),
        (
            1,
            &["all.partial", "other.partial"],
            "its images are 30×9 RGB, 16 bits, but those of the others are 31×9 RGB, 16 bits",
        ),
        (
            1,
            &["1.partial", "a.hist"],
            "cannot read a.hist: it is not a partial projection",
        ),
        (
            1,
            &["a.hist", "1.partial"],
            "cannot read 1.partial: it is not a histogram file",
        ),
        (
            1,
            &["1.partial", "missing.partial"],
            "cannot read missing.partial",
        ),
    ] {
        let done = run(root, &[&["merge"], names, &["-o", "out.tif"]].concat(), &[]);
        assert_eq!(done.code, code, "{names:?}: {}", done.stderr);
        assert!(done.stderr.contains(told), "{names:?}: {}", done.stderr);
        assert_eq!(listing(root), before);
    }
    for (args, told) in [
        (
            &["project", "median", "in", "m.partial", "--partial"][..],
            "a median needs all images at once",
        ),
        (
            &["project", "mean", "in", "m.tif", "--partial"],
            "--partial does not write an image: use a name such as m.partial",
        ),
        (
            &["project", "mean", "in", "m.tif", "--shard", "1/2"],
            "project requires --partial",
        ),
        (
            &["merge", "1.partial", "2.partial", "-o", "x.hist"],
            "x.hist",
        ),
    ] {
        let done = run(root, args, &[]);
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(told), "{args:?}: {}", done.stderr);
        assert_eq!(listing(root), before);
    }
    // A bad image leaves no part, unless it is left out, which is then reported.
    fs::write(root.join("in/9.tif"), b"II*\0").unwrap();
    let args = ["project", "mean", "in", "b.partial", "--partial"];
    assert_eq!(run(root, &args, &[]).code, 1);
    assert_eq!(listing(root), before);
    assert_eq!(
        run(root, &[&args[..], &["--keep-going"]].concat(), &[]).code,
        1
    );
    let told = go(root, &["merge", "b.partial", "-o", "b.tif"]).stderr;
    assert!(
        told.contains("b.tif does not include 1 image that could not be read"),
        "{told}"
    );
    // The first image has gone.
    fs::remove_file(root.join("in/0.tif")).unwrap();
    let done = run(
        root,
        &["merge", "1.partial", "2.partial", "-o", "c.tif"],
        &[],
    );
    assert!(
        done.code == 1 && done.stderr.contains("the first image"),
        "{}",
        done.stderr
    );
    assert!(!root.join("c.tif").exists());
}

/// Cut, enlarged and rewritten files: an error that names the file, and no memory that they ask for.
#[test]
fn hostile_parts_are_named() {
    let place = place();
    let root = place.path();
    go(root, &["project", "mean", "in", "a.partial", "--partial"]);
    let good = fs::read(root.join("a.partial")).unwrap();
    let end = good.iter().position(|&byte| byte == b'\n').unwrap();
    let head = std::str::from_utf8(&good[..end]).unwrap();
    let mut bad: Vec<Vec<u8>> = [0, 1, 5, 21, 22, end / 2, end, end + 1, good.len() - 1]
        .map(|length| good[..length].to_vec())
        .into();
    bad.push([&good[..], b"\0"].concat());
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    bad.push(flipped);
    for (from, to) in [
        ("\"gpuimg_projection\":1", "\"gpuimg_projection\":2"),
        ("\"gpuimg_projection\":1", "\"gpuimg_projection\":-1"),
        ("\"width\":31", "\"width\":0"),
        ("\"width\":31", "\"width\":4294967295"),
        ("\"width\":31", "\"width\":18446744073709551615"),
        ("\"height\":9", "\"height\":1000000000000"),
        ("\"channels\":3", "\"channels\":0"),
        ("\"channels\":3", "\"channels\":5"),
        ("\"depth\":16", "\"depth\":12"),
        ("\"depth\":16", "\"depth\":8"),
        ("\"count\":12", "\"count\":0"),
        ("\"count\":12", "\"count\":1"),
        ("\"count\":12", "\"count\":65536"),
        ("\"count\":12", "\"count\":18446744073709551615"),
        ("\"maxval\":null", "\"maxval\":0"),
        ("\"how\":\"mean\"", "\"how\":\"median\""),
        ("\"how\":\"mean\"", "\"how\":\"mode\""),
        ("\"how\":\"mean\"", "\"how\":\"max\""),
        ("\"saturate\":false", "\"saturate\":true"),
        ("\"parts\":[1]", "\"parts\":[]"),
        ("\"parts\":[1]", "\"parts\":[2]"),
        ("\"of\":1", "\"of\":99999999999"),
        ("\"first\":\"", "\"first\":\"%"),
    ] {
        assert!(head.contains(from), "{from}: {head}");
        let head = head.replacen(from, to, 1);
        bad.push([head.as_bytes(), &good[end..]].concat());
    }
    let before = listing(root).len();
    for (index, file) in bad.iter().enumerate() {
        fs::write(root.join("bad.partial"), file).unwrap();
        // 1 GiB of address space is enough for all of them.
        let script = "ulimit -v 1048576; exec \"$0\" merge bad.partial -o out.tif";
        let out = std::process::Command::new("sh")
            .args(["-c", script])
            .arg(crate::support::binary())
            .current_dir(root)
            .env("RAYON_NUM_THREADS", "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{index}: {told}");
        assert!(
            told.starts_with("gpuimg: cannot read bad.partial: "),
            "{index}: {told}"
        );
        assert_eq!(listing(root).len(), before + 1, "{index}");
    }
    assert_eq!(bad.len(), 34);
}

#[test]
fn parts_of_a_set_that_grew_were_merged() {
    let root = folder(&[]);
    let root = root.path();
    fs::create_dir(root.join("in")).unwrap();
    let add = |names: std::ops::Range<u8>, length: u8| {
        for name in names {
            let file = [
                &b"P5 1 "[..],
                &[b'0' + length],
                b" 255\n",
                &vec![9; length.into()],
            ]
            .concat();
            fs::write(root.join(format!("in/{name}.pgm")), file).unwrap();
        }
    };
    let part = |part: u8| {
        let shard = format!("{part}/2");
        let (sum, hist) = (format!("p/{part}.partial"), format!("h/{part}.hist"));
        let more = ["--shard", &shard];
        let projection = [&["project", "sum", "in", &sum, "--partial"], &more[..]].concat();
        let _ = (
            fs::remove_file(root.join(&sum)),
            fs::remove_file(root.join(&hist)),
        );
        go(root, &projection);
        go(
            root,
            &[&["histogram", "in", "-o", &hist, "-q"], &more[..]].concat(),
        );
    };
    let merges = |sentence: &str| {
        for (parts, output) in [("p", "s.pgm"), ("h", "all.hist")] {
            let Run { code, stderr, .. } = run(root, &["merge", parts, "-o", output], &[]);
            assert_eq!(code, i32::from(!sentence.is_empty()), "{stderr}");
            assert!(stderr.contains(sentence), "{stderr}");
            assert!(sentence.is_empty() || stderr.contains(&format!("cannot merge {parts}/2.")));
            assert_eq!(root.join(output).exists(), sentence.is_empty());
        }
    };
    add(0..6, 1);
    part(1);
    add(6..10, 1);
    part(2);
    merges("it belongs to a set of 10 files, but the others to one of 6 files");
    part(1);
    // As many files, one of them another.
    fs::rename(root.join("in/9.pgm"), root.join("in/a.pgm")).unwrap();
    part(2);
    merges("the files of its set have other names or lengths");
    part(1);
    merges("");
}
