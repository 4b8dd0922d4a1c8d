//! The bytes of outputs, recorded. Every verb and option runs on images of every sample type and format, and the digest of
//! each run's outputs must be the one in tests/recorded.txt: a change of structure must not change a byte.
//! `RECORD=write cargo test --test main recorded` records the digests anew, after a change that is meant to alter bytes.

use crate::support::batch::tree;
use crate::support::{Numbers, counted, folder, repository, run, sample};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// NumPy's names of the sample types, and the bytes of a sample.
const TYPES: [(&str, usize); 8] = [
    ("|u1", 1),
    ("|i1", 1),
    ("<u2", 2),
    ("<i2", 2),
    ("<u4", 4),
    ("<i4", 4),
    ("<f4", 4),
    ("<f8", 8),
];

/// Every format that is written, as `--format` takes it, and the extension of its files.
const FORMATS: [&str; 10] = [
    "png", "tiff", "pnm", "pam", "npy", "pfm", "fits", "farbfeld", "jpeg", "bmp",
];

/// Verbs with options, run on the files of each format.
const VERBS: [&str; 40] = [
    "normalize",
    "normalize --clip 0.1:99.9",
    "normalize --range 3:90",
    "normalize --to 5:100",
    "normalize --ignore 0,100",
    "normalize --per-channel",
    "normalize --unsigned",
    "normalize --undo --format tiff",
    "normalize --depth 8",
    "normalize --depth 16",
    "normalize --depth 8 --format png",
    "normalize --fit 9",
    "normalize --auto-orient",
    "normalize --low-memory",
    "normalize --png small --format png",
    "rotate 90",
    "rotate 180 --depth 16 --format tiff",
    "rotate 270 --auto-orient",
    "transpose",
    "transpose --low-memory",
    "flip horizontal",
    "flip vertical --low-memory --format png",
    "flip vertical --tiff deflate --format tiff",
    "rotate 180 --tiff zstd --format tiff",
    "rotate 180 --tiff lzw --format tiff",
    "rotate 180 --format fits",
    "rotate 180 --format npy",
    "rotate 90 --fit 7",
    "run 'normalize + rotate 90'",
    "run 'flip vertical + normalize --clip 1:99 + transpose'",
    "run 'rotate 90 + normalize --to 5:100' --depth 8 --format png",
    "run 'normalize + rotate 180' --low-memory",
    "sum",
    "sum --all",
    "rotate 180 --format pam",
    "convert",
    "convert --format tiff --tiff zstd",
    "convert --depth 16 --format png",
    "preview --format png",
    "normalize --to 0:255 --unsigned --format pnm",
];

/// Verbs on stacks and on a folder as a whole.
const STACKS: [&str; 8] = [
    "normalize",
    "normalize --scope page",
    "normalize --low-memory --clip 1:99",
    "normalize --pages 2-3",
    "rotate 90",
    "run 'transpose + normalize --scope page' --format tiff",
    "sum --all",
    "run 'flip vertical + normalize'",
];

/// Verbs on a set of images of one type.
const SETS: [&str; 7] = [
    "normalize --across",
    "normalize --across --clip 1:99 --depth 8",
    "histogram",
    "project mean",
    "project max",
    "project median",
    "calibrate --dark set/0.npy --offset=20",
];

/// A NumPy file of random samples.
fn numpy((name, bytes): (&str, usize), shape: &[usize], seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed + 1);
    let sides: Vec<String> = shape.iter().map(usize::to_string).collect();
    let mut header = format!(
        "{{'descr': '{name}', 'fortran_order': False, 'shape': ({}), }}",
        sides.join(", ")
    );
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    for _ in 0..shape.iter().product() {
        let random = numbers.next() >> 20;
        match name {
            "<f4" => file.extend((random as f32 % 30_000.0 - 9_000.5).to_le_bytes()),
            "<f8" => file.extend((random as f64 % 30_000.0 - 9_000.25).to_le_bytes()),
            _ => file.extend(&(random % 40_011).to_le_bytes()[..bytes]),
        }
    }
    file
}

/// The digest of files with their names.
fn digest(files: &BTreeMap<PathBuf, Vec<u8>>) -> u128 {
    let mut hasher = XxHash3_128::new();
    for (name, bytes) in files {
        hasher.write(name.to_string_lossy().as_bytes());
        hasher.write(&(bytes.len() as u64).to_le_bytes());
        hasher.write(bytes);
    }
    hasher.finish_128()
}

/// The lines of the record, and the outputs that they stand for.
#[derive(Default)]
struct Record {
    lines: String,
    outputs: usize,
}

impl Record {
    /// Runs a verb on `from`, and records the digest of what it writes to `to` and prints.
    fn run(&mut self, root: &Path, verb: &'static str, from: &str, to: &str) {
        // The part in quotes is one argument.
        let words = |(index, part): (usize, &'static str)| {
            let words: Vec<&str> = match index {
                1 => vec![part],
                _ => part.split_whitespace().collect(),
            };
            words
        };
        let mut args: Vec<&str> = verb.split('\'').enumerate().flat_map(words).collect();
        args.push(from);
        match verb.split(' ').next() {
            Some("sum") => {}
            Some("histogram") => args.extend(["--output", to]),
            _ => args.push(to),
        }
        args.push("-q");
        let done = run(root, &args, &[("GPUIMG_DEVICE", "cpu")]);
        assert!(done.code < 2, "{args:?}: {}", done.stderr);
        let path = root.join(to);
        let mut files = if path.is_dir() {
            tree(&path)
        } else {
            let file = fs::read(&path).ok();
            file.map(|file| (PathBuf::new(), file))
                .into_iter()
                .collect()
        };
        if verb.starts_with("sum") {
            files.insert("stdout".into(), done.stdout.into_bytes());
        }
        self.outputs += files.len();
        let (digest, count) = (digest(&files), files.len());
        writeln!(self.lines, "{digest:032x} {count:3} {verb} : {from}").expect("text");
        if path.is_dir() {
            fs::remove_dir_all(&path).expect("outputs");
        } else if path.exists() {
            fs::remove_file(&path).expect("output");
        }
    }
}

/// Images of all types: small ones in `in/`, of odd sizes, with and without colours and alpha; stacks; and in `large/` images that
/// are processed in pieces and in bands.
fn images() -> tempfile::TempDir {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (number, each) in TYPES.into_iter().enumerate() {
        let (name, seed) = (&each.0[1..], 10 * number as u64);
        files.push((format!("in/{name}.npy"), numpy(each, &[13, 22], seed)));
        files.push((
            format!("in/rgb_{name}.npy"),
            numpy(each, &[7, 5, 3], seed + 1),
        ));
        files.push((
            format!("in/row_{name}.npy"),
            numpy(each, &[1, 33], seed + 2),
        ));
        files.push((
            format!("stacks/{name}.npy"),
            numpy(each, &[3, 8, 11], seed + 3),
        ));
        files.push((
            format!("stacks/rgb_{name}.npy"),
            numpy(each, &[3, 6, 4, 3], seed + 4),
        ));
    }
    for index in 0..5 {
        files.push((
            format!("set/{index}.npy"),
            numpy(TYPES[2], &[40, 31], 80 + index),
        ));
    }
    for each in [TYPES[0], TYPES[2]] {
        let name = &each.0[1..];
        files.push((format!("in/alpha_{name}.npy"), numpy(each, &[9, 6, 4], 71)));
        files.push((format!("in/ga_{name}.npy"), numpy(each, &[9, 6, 2], 72)));
    }
    files.push(("large/u2.npy".into(), numpy(TYPES[2], &[1400, 1601], 90)));
    files.push((
        "large/rgb.npy".into(),
        numpy(TYPES[0], &[1100, 1303, 3], 91),
    ));
    files.push(("large/f4.npy".into(), numpy(TYPES[6], &[700, 1603], 92)));
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, file)| (name.as_str(), file.as_slice()))
        .collect();
    let place = folder(&files);
    for name in ["photo-rgb16.png", "thermal.tif", "nuclei.tif"] {
        fs::copy(sample(name), place.path().join("in").join(name)).expect("sample");
    }
    fs::copy(
        sample("nuclei-stack.tif"),
        place.path().join("stacks/nuclei-stack.tif"),
    )
    .expect("sample");
    place
}

#[test]
fn the_bytes_of_every_output_are_those_that_were_recorded() {
    let place = images();
    let root = place.path();
    let mut record = Record::default();
    for format in FORMATS {
        let to = format!("as_{format}");
        for (from, ending) in [("in", ""), ("stacks", "_stacks")] {
            let (verb, to) = (format!("rotate 180 --format {format}"), to.clone() + ending);
            let all = [&verb[..], from, &to, "-q"].join(" ");
            let args: Vec<&str> = all.split(' ').collect();
            run(root, &args, &[("GPUIMG_DEVICE", "cpu")]);
            let files = tree(&root.join(&to));
            record.outputs += files.len();
            writeln!(
                record.lines,
                "{:032x} {:3} {verb} : {from}",
                digest(&files),
                files.len()
            )
            .expect("text");
        }
    }
    for format in ["png", "tiff", "npy", "fits", "pnm"] {
        for verb in VERBS {
            record.run(root, verb, &format!("as_{format}"), "out");
        }
    }
    for format in ["tiff", "npy", "fits"] {
        for verb in STACKS {
            record.run(root, verb, &format!("as_{format}_stacks"), "out");
        }
    }
    for verb in VERBS {
        record.run(root, verb, "large", "out");
    }
    for verb in SETS {
        let to = if verb.starts_with("project") {
            "out.tif"
        } else {
            "out"
        };
        record.run(root, verb, "set", to);
    }
    counted(&format!("{} outputs with recorded bytes", record.outputs));
    assert!(record.outputs >= 3000, "only {} outputs", record.outputs);
    let path = repository("tests").join("recorded.txt");
    if std::env::var_os("RECORD").is_some_and(|wish| wish == "write") {
        fs::write(&path, &record.lines).expect("the record");
        return;
    }
    let known = fs::read_to_string(&path).expect("the record");
    let differences: Vec<String> = known
        .lines()
        .zip(record.lines.lines())
        .filter(|(known, now)| known != now)
        .map(|(known, now)| format!("- {known}\n+ {now}"))
        .collect();
    assert!(
        differences.is_empty(),
        "other bytes than recorded:\n{}",
        differences.join("\n")
    );
    assert_eq!(known.lines().count(), record.lines.lines().count());
}
