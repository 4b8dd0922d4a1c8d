//! The types of samples between the steps of `gpuimg run`: those of a file between the two. A chain and its
//! steps one by one are given the same images of every type, and every output has the same bytes.

use crate::support::batch::tree;
use crate::support::formats::{dictionary, npy};
use crate::support::{Numbers, counted, placed, run_on_cpu};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Verbs that keep, drop or need the sign and the depth of samples, with bounds that every type has.
const VERBS: [&str; 9] = [
    "normalize",
    "normalize --range 3:90",
    "normalize --to 5:100",
    "normalize --ignore 0,100 --clip 2:95",
    "normalize --unsigned",
    "rotate 90",
    "flip vertical",
    "calibrate --dark dark_i2.tif --offset=20",
    "calibrate --dark dark_u2.tif",
];

/// Every format that is written, as `--format` takes it.
const FORMATS: [&str; 10] = [
    "png", "tiff", "pnm", "pam", "npy", "pfm", "fits", "farbfeld", "jpeg", "bmp",
];

/// Every type of samples: NumPy's name, and the bytes of one.
const TYPES: [(&str, usize); 7] = [
    ("|u1", 1),
    ("|i1", 1),
    ("<u2", 2),
    ("<i2", 2),
    ("<u4", 4),
    ("<i4", 4),
    ("<f4", 4),
];

/// The side of every image: square, so that a frame fits before and after a turn.
const SIDE: usize = 5;

/// A NumPy file of random samples with so many pages and channels.
fn numpy((name, bytes): (&str, usize), pages: usize, channels: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed + 1);
    let pages_shape = if pages > 1 {
        format!("{pages}, ")
    } else {
        String::new()
    };
    let channels_shape = if channels > 1 {
        format!(", {channels}")
    } else {
        String::new()
    };
    let shape = format!("({pages_shape}{SIDE}, {SIDE}{channels_shape})");
    let mut samples = Vec::new();
    for _ in 0..pages * SIDE * SIDE * channels {
        let random = numbers.next() >> 20;
        if name == "<f4" {
            samples.extend((random as f32 % 30_000.0 - 9_000.5).to_le_bytes());
        } else {
            samples.extend(&random.to_le_bytes()[..bytes]);
        }
    }
    npy(1, &dictionary(name, &shape), &samples)
}

/// Images of every type in `in/`, and of three channels; three images of each narrow type in folders of
/// their own; and a stack of each.
fn place() -> tempfile::TempDir {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (number, each) in TYPES.into_iter().enumerate() {
        let name = &each.0[1..];
        let seed = 10 * number as u64;
        files.push((format!("in/{name}.npy"), numpy(each, 1, 1, seed)));
        files.push((format!("stacks/{name}.npy"), numpy(each, 3, 1, seed + 1)));
        for index in 0..3 {
            let page = numpy(each, 1, 1, seed + 2 + index);
            files.push((format!("set_{name}/{index}.npy"), page));
        }
    }
    for each in [TYPES[0], TYPES[3]] {
        let name = &each.0[1..];
        files.push((format!("in/rgb_{name}.npy"), numpy(each, 1, 3, 70)));
    }
    let place = placed(&files);
    for name in ["i2", "u2"] {
        let (image, dark) = (format!("in/{name}.npy"), format!("dark_{name}.tif"));
        step(place.path(), "normalize --to 0:40", &image, &dark, &[]);
        assert!(place.path().join(dark).exists());
    }
    place
}

/// One verb by itself. Images that it refuses have no output.
fn step(root: &Path, verb: &str, from: &str, to: &str, more: &[&str]) {
    let mut args: Vec<&str> = verb.split(' ').collect();
    args.extend([from, to, "-q"]);
    args.extend(more);
    let done = run_on_cpu(root, &args);
    assert!(done.code < 2, "{args:?}: {}", done.stderr);
}

/// The outputs below a path, or the one there.
fn outputs(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    if path.is_dir() {
        return tree(path);
    }
    let file = fs::read(path).ok();
    file.map(|file| (PathBuf::new(), file))
        .into_iter()
        .collect()
}

/// Compares chains with their steps, and counts the outputs.
struct Comparison<'a> {
    root: &'a Path,
    /// The outputs of both ways, with the same bytes.
    same: AtomicUsize,
    /// The runs of chains.
    chains: AtomicUsize,
    /// Chains with other outputs than the steps have.
    different: Mutex<Vec<String>>,
}

impl Comparison<'_> {
    /// Runs `verbs` as a chain and one by one on `input`. `first` and `last` are the options of files for
    /// the first and the last step; the chain has both. `name` is the name of the results.
    fn holds(&self, input: &str, verbs: &[&str], first: &[&str], last: &[&str], name: &str) {
        let root = self.root;
        let chain = verbs.join(" + ");
        // A folder for itself: the steps leave what they make for each other.
        let number = self.chains.fetch_add(1, Ordering::Relaxed);
        let path = |what: &str| format!("made{number}/{what}/");
        let result = |what: &str| path(what) + name;
        for what in ["chain", "single"] {
            fs::create_dir_all(root.join(path(what))).expect("folder");
        }
        step(
            root,
            "run",
            &chain,
            input,
            &[&[result("chain").as_str()], first, last].concat(),
        );
        let mut from = input.to_string();
        for (index, verb) in verbs.iter().enumerate() {
            let is_last = index + 1 == verbs.len();
            let to = if is_last {
                result("single")
            } else if name.is_empty() {
                path(&index.to_string())
            } else {
                format!("made{number}/{index}.tif")
            };
            let mut more: Vec<&str> = Vec::new();
            if index == 0 {
                more.extend(first);
            }
            more.extend(if is_last { last } else { &["--format", "tiff"] });
            // A step that refuses every image leaves none to the next.
            if outputs(&root.join(&from)).is_empty() {
                break;
            }
            step(root, verb, &from, &to, &more);
            from = to;
        }
        let [expected, found] = ["single", "chain"].map(|what| outputs(&root.join(result(what))));
        if found != expected {
            let what = format!("run '{chain}' {input} {first:?} {last:?}");
            let differ = |name: &&PathBuf| found.get(*name) != expected.get(*name);
            let names: BTreeSet<_> = found.keys().chain(expected.keys()).collect();
            let names: Vec<_> = names.into_iter().filter(differ).collect();
            self.different
                .lock()
                .expect("a list")
                .push(format!("{what}: {names:?}"));
        }
        self.same.fetch_add(expected.len(), Ordering::Relaxed);
        fs::remove_dir_all(root.join(format!("made{number}"))).expect("folder");
    }
}

/// The output's format once made the first step unsigned, and every later one with it.
#[test]
fn the_format_of_the_output_changed_the_types_between_the_steps() {
    let place = place();
    let comparison = Comparison {
        root: place.path(),
        same: AtomicUsize::new(0),
        chains: AtomicUsize::new(0),
        different: Mutex::default(),
    };
    type Case = (
        String,
        Vec<&'static str>,
        Vec<&'static str>,
        Vec<&'static str>,
        &'static str,
    );
    let mut cases: Vec<Case> = Vec::new();
    let mut formats = FORMATS.into_iter().cycle();
    for a in VERBS {
        for b in VERBS {
            for format in FORMATS {
                cases.push((
                    "in".into(),
                    vec![a, b],
                    vec![],
                    vec!["--format", format],
                    "",
                ));
            }
            for c in VERBS {
                let format = formats.next().expect("a format");
                let last = vec!["--format", format];
                cases.push(("in".into(), vec![a, b, c], vec![], last, ""));
            }
        }
    }
    // The range of all images: measured over what the steps before give.
    for (name, formats) in [
        ("u1", &["png", "jpeg"][..]),
        ("i1", &["png", "bmp", "tiff"]),
        ("u2", &["png", "fits"]),
        ("i2", &["png", "pnm", "tiff"]),
    ] {
        let input = format!("set_{name}");
        for across in [
            "normalize --across",
            "normalize --across --clip 1:99 --unsigned",
        ] {
            for verb in VERBS {
                // A frame fits to the images of one type alone.
                if verb.starts_with("calibrate") {
                    continue;
                }
                for &format in formats {
                    let last = vec!["--format", format];
                    for verbs in [
                        vec![verb, across],
                        vec![across, verb],
                        vec!["normalize", verb, across],
                        vec![across, "normalize --unsigned", verb, across],
                    ] {
                        cases.push((input.clone(), verbs, vec![], last.clone(), ""));
                    }
                }
            }
        }
    }
    for a in &VERBS[..7] {
        for b in &VERBS[..7] {
            for format in ["png", "tiff", "npy"] {
                let last = vec!["--format", format, "--split"];
                cases.push(("stacks".into(), vec![a, b], vec![], last, ""));
            }
            for (name, _) in [TYPES[1], TYPES[2], TYPES[3], TYPES[6]] {
                let input = format!("set_{}", &name[1..]);
                let files = [("all.tif", "tiff"), ("all.fits", "fits")];
                for (output, format) in files {
                    let last = vec!["--format", format];
                    cases.push((input.clone(), vec![a, b], vec!["--stack"], last, output));
                }
            }
        }
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((input, verbs, first, last, name)) =
                    cases.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    comparison.holds(input, verbs, first, last, name);
                }
            });
        }
    });
    let (chains, same) = (comparison.chains.into_inner(), comparison.same.into_inner());
    counted(&format!(
        "{chains} chains, {same} outputs with the bytes of the verbs one by one"
    ));
    let different = comparison.different.into_inner().expect("a list");
    assert!(different.is_empty(), "{}: {different:#?}", different.len());
    assert_eq!(chains, cases.len());
    assert!(same > 5000, "{same}");
}

/// A file of the first verb said a resolution that was not known, and `--fit` made another of it.
#[test]
fn fit_after_several_verbs_wrote_another_resolution() {
    let place = place();
    let comparison = Comparison {
        root: place.path(),
        same: AtomicUsize::new(0),
        chains: AtomicUsize::new(0),
        different: Mutex::default(),
    };
    for verbs in [
        ["normalize", "rotate 90"],
        ["rotate 90", "normalize"],
        ["calibrate --dark dark_u2.tif", "normalize"],
        ["normalize --unsigned", "calibrate --dark dark_u2.tif"],
    ] {
        for format in ["tiff", "png", "jpeg"] {
            let last = ["--format", format, "--fit", "3"];
            comparison.holds("in", &verbs, &[], &last, "");
        }
    }
    let different = comparison.different.into_inner().expect("a list");
    assert!(different.is_empty(), "{different:#?}");
    assert!(comparison.same.into_inner() > 30);
}
