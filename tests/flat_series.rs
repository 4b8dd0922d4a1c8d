//! Flat fields that change from image to image: weights by hand, lists, stacks, shards, resumed runs, and proofs.

use crate::support::batch::names;
use crate::support::stacks::{pages, stack};
use crate::support::tiff::Build;
use crate::support::{folder, listing, run_on_cpu};
use gpuimg::internals::image::metadata::Metadata;
use gpuimg::internals::image::{Image, Samples};
use gpuimg::internals::ops::calibrate::{Calibrate, FlatField, Frame, FrameSet, Settings};
use gpuimg::internals::ops::{OpResult, Operation, Position, SampleTypes, Statistics};
use gpuimg::internals::timing::Timeline;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn grey(values: [u16; 2]) -> Image {
    crate::support::contract::grey(2, values)
}

fn tif(values: [u16; 2]) -> Vec<u8> {
    Build::default().file(&grey(values))
}

const START: [u16; 2] = [100, 200];
const END: [u16; 2] = [200, 105];
const IMAGE: [u16; 2] = [1000, 1000];

/// The result for `IMAGE` with the flat field of image `index` of `count`, by the definition.
fn expected(index: u64, count: u64) -> Vec<u16> {
    let steps = (count - 1).max(1);
    let flat = [0, 1].map(|i| {
        let sum = u64::from(START[i]) * (steps - index) + u64::from(END[i]) * index;
        (2 * sum + steps) / (2 * steps)
    });
    let sum: u64 = flat.iter().sum();
    let result = |q: u64| ((2 * 1000 * sum + 2 * q) / (2 * 2 * q)) as u16;
    flat.map(result).to_vec()
}

/// A flat field of 100, 200 becomes 200, 105: after a third of the way it is 133.3, 168.3, in the middle 150, 152.5.
#[test]
fn flat_fields_by_hand() {
    let frame = |values| Frame::new("flat.tif", grey(values), false);
    let frames = FrameSet {
        flat: Some(FlatField::Changing {
            start: frame(START),
            end: frame(END),
        }),
        ..FrameSet::default()
    };
    let op = Calibrate::with_frames(frames, Settings::default()).unwrap();
    let image = grey(IMAGE);
    let at = |index, count| {
        let types = SampleTypes {
            position: Some(Position { index, count }),
            ..SampleTypes::plain(&image.shape())
        };
        let bound = op.bind(types, &Statistics::None).unwrap();
        let results = [
            bound.naive(&image).unwrap(),
            bound.cpu(image.clone(), &mut Timeline::default()).unwrap(),
        ];
        let [one, other] = results.map(|result| match result {
            OpResult::Image(image) => match image.samples() {
                Samples::U16(samples) => samples.to_vec(),
                _ => panic!("16 bits were expected"),
            },
            _ => panic!("an image was expected"),
        });
        assert_eq!(one, other);
        one
    };
    // 1000·150/100, 1000·150/200; 1000·152.5/200, 1000·152.5/105.
    assert_eq!(at(0, 1), [1500, 750]);
    assert_eq!(at(0, 4), [1500, 750]);
    assert_eq!(at(3, 4), [763, 1452]);
    // 133, 168: a mean of 150.5.
    assert_eq!(at(1, 4), [1132, 896]);
    // 150, 153.
    assert_eq!(at(1, 3), [1010, 990]);
    for count in 1..40 {
        for index in 0..count {
            assert_eq!(
                at(index, count),
                expected(index, count),
                "{index} of {count}"
            );
        }
    }
    assert!(op.check_types(&SampleTypes::plain(&image.shape())).is_err());
}

const FLATS: [&str; 4] = ["--flat-start", "start.tif", "--flat-end", "end.tif"];

/// Seven images that are equal, in folders, and the two flat fields.
fn series() -> TempDir {
    let mut files = vec![
        ("start.tif".to_string(), tif(START)),
        ("end.tif".to_string(), tif(END)),
    ];
    let names = ["0", "1", "2", "3/0", "3/1", "4", "5"];
    files.extend(names.map(|name| (format!("in/{name}.tif"), tif(IMAGE))));
    crate::support::placed(&files)
}

fn go(root: &Path, args: &[&str]) -> String {
    let args = [&["calibrate"], &FLATS[..], args].concat();
    let done = run_on_cpu(root, &args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
    done.stderr
}

fn samples(root: &Path, name: &str) -> Vec<Vec<u16>> {
    let file = fs::read(root.join(name)).unwrap();
    pages(&file).into_iter().map(|page| page.1).collect()
}

/// That a folder has the results of all seven images.
fn has_all(root: &Path, folder: &str) {
    let names = names(&root.join(folder));
    assert_eq!(names.len(), 7);
    for (name, index) in names.iter().zip(0..) {
        let path = format!("{folder}/{name}");
        assert_eq!(samples(root, &path), [expected(index, 7)], "{path}");
    }
}

#[test]
fn the_index_is_that_in_the_whole_list() {
    let place = series();
    let root = place.path();
    go(root, &["in", "out"]);
    has_all(root, "out");
    for shard in ["1/3", "2/3", "3/3"] {
        go(root, &["in", "shards", "--shard", shard]);
    }
    has_all(root, "shards");
    // A resumed run makes what is missing with the weights of the whole list.
    fs::remove_file(root.join("out/3/1.tif")).unwrap();
    let told = go(root, &["in", "out", "--resume"]);
    assert!(told.contains("1 of 7 files done, 6 already done"), "{told}");
    has_all(root, "out");
    // One more image changes all weights.
    fs::write(root.join("in/6.tif"), tif(IMAGE)).unwrap();
    let told = go(root, &["in", "out", "--resume"]);
    assert!(told.contains("8 of 8 files done"), "{told}");
    assert_eq!(samples(root, "out/1.tif"), [expected(1, 8)]);
    // One image is the first.
    go(root, &["in/3/0.tif", "one.tif"]);
    assert_eq!(samples(root, "one.tif"), [expected(0, 1)]);
    // The order of the list counts, not that of the names.
    fs::write(root.join("list"), "in/2.tif\nin/0.tif\nin/1.tif\n").unwrap();
    go(root, &["--files-from", "list", "listed/"]);
    assert_eq!(samples(root, "listed/in/2.tif"), [expected(0, 3)]);
    assert_eq!(samples(root, "listed/in/1.tif"), [expected(2, 3)]);
    go(
        root,
        &["in/0.tif", "in/1.tif", "in/2.tif", "all.tif", "--stack"],
    );
    let expected: Vec<_> = (0..3).map(|index| expected(index, 3)).collect();
    assert_eq!(samples(root, "all.tif"), expected);
}

#[test]
fn the_index_is_that_of_the_page_in_one_stack() {
    let place = series();
    let root = place.path();
    let file = stack(
        &[grey(IMAGE), grey(IMAGE), grey(IMAGE)],
        &Metadata::default(),
    );
    fs::write(root.join("stack.tif"), file).unwrap();
    go(root, &["stack.tif", "out.tif"]);
    let all: Vec<_> = (0..3).map(|index| expected(index, 3)).collect();
    assert_eq!(samples(root, "out.tif"), all);
    go(root, &["stack.tif", "some.tif", "--pages", "2-3"]);
    assert_eq!(samples(root, "some.tif"), all[1..]);
    go(root, &["stack.tif", "split", "--split"]);
    assert_eq!(listing(&root.join("split")).len(), 3);
    for (name, expected) in listing(&root.join("split")).iter().zip(&all) {
        assert_eq!(
            samples(root, &format!("split/{name}"))[0],
            *expected,
            "{name}"
        );
    }
    let verbs = "calibrate --flat-start start.tif --flat-end end.tif + flip horizontal";
    let done = run_on_cpu(root, &["run", verbs, "stack.tif", "chain.tif"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let turned = |mut page: Vec<u16>| {
        page.reverse();
        page
    };
    let turned: Vec<_> = all.iter().cloned().map(turned).collect();
    assert_eq!(samples(root, "chain.tif"), turned);
}

#[test]
fn what_is_ambiguous_is_refused() {
    let place = series();
    let root = place.path();
    let file = stack(&[grey(IMAGE), grey(IMAGE)], &Metadata::default());
    fs::write(root.join("stack.tif"), file).unwrap();
    let before = listing(root);
    let expected = "its position in the series is unknown";
    for (code, args, told) in [
        (1, &["stack.tif", "in/0.tif", "out/"][..], expected),
        (1, &["stack.tif", "in/0.tif", "out/", "--split"], expected),
        (2, &["in", "out", "--watch"], "--watch does not"),
        (2, &["in", "out", "--flat", "end.tif"], "--flat"),
    ] {
        let args = [&["calibrate"], &FLATS[..], args].concat();
        let done = run_on_cpu(root, &args);
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(told), "{args:?}: {}", done.stderr);
    }
    let done = run_on_cpu(
        root,
        &["calibrate", "--flat-start", "start.tif", "in", "out"],
    );
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("--flat-end"), "{}", done.stderr);
    let _ = fs::remove_dir_all(root.join("out"));
    assert_eq!(listing(root), before);
}

/// A report records each position, so that one output can be proven alone; another position is another output.
#[test]
fn each_output_is_proven_by_its_position() {
    let place = series();
    let root = place.path();
    go(
        root,
        &["in", "out", "--shard", "1/2", "--report", "r.jsonl"],
    );
    go(
        root,
        &["in", "out", "--shard", "2/2", "--report", "r.jsonl", "-f"],
    );
    go(root, &["in", "all", "--report", "all.jsonl"]);
    let prove = |report: &str| {
        let done = run_on_cpu(root, &["prove", report]);
        (done.code, done.stdout + &done.stderr)
    };
    let (code, told) = prove("all.jsonl");
    assert!(
        code == 0 && told.contains("7 outputs: 7 proven by bytes"),
        "{told}"
    );
    let text = fs::read_to_string(root.join("all.jsonl")).unwrap();
    assert!(
        text.contains(r#""position":{"index":6,"count":7}"#),
        "{text}"
    );
    for option in ["--flat-start", "--flat-end"] {
        assert!(text.contains(&format!(r#""option":"{option}""#)), "{text}");
    }
    let other = text.replace(r#""position":{"index":6,"#, r#""position":{"index":5,"#);
    fs::write(root.join("other.jsonl"), other).unwrap();
    let (code, told) = prove("other.jsonl");
    assert!(
        code == 1 && told.contains("1 missing or different"),
        "{told}"
    );
    for (what, position) in [
        ("beyond", r#""position":{"index":7,"#),
        ("huge", r#""position":{"index":18446744073709551614,"#),
    ] {
        let wrong = text.replace(r#""position":{"index":6,"#, position);
        fs::write(root.join("wrong.jsonl"), wrong).unwrap();
        let (code, told) = prove("wrong.jsonl");
        assert!(
            code != 0 && told.contains("its position is not one of the list"),
            "{what}: {told}"
        );
    }
    fs::write(root.join("end.tif"), tif(START)).unwrap();
    let (code, told) = prove("all.jsonl");
    assert!(
        code == 1 && told.contains("the files that --flat-end names have changed"),
        "{told}"
    );
    let plain = folder(&[("a.tif", &tif(IMAGE))]);
    let done = run_on_cpu(
        plain.path(),
        &["flip", "vertical", "a.tif", "o/", "--report", "r"],
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        !fs::read_to_string(plain.path().join("r"))
            .unwrap()
            .contains("position")
    );
}
