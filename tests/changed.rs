//! Inputs that another program replaces or writes to while they are read, or between two runs.

use crate::batch::{pgm, tree};
use crate::support::{Run, binary, folder, listing, run, told};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// How a file becomes another one of the same length and modification time.
#[derive(Clone, Copy, Debug)]
enum How {
    /// A new file takes its name.
    Replaced,
    /// Its bytes are written over.
    Rewritten,
}

fn change(path: &Path, bytes: &[u8], how: How) {
    let about = fs::metadata(path).expect("the input");
    assert_eq!(about.len(), bytes.len() as u64);
    let new = match how {
        How::Replaced => path.with_extension("new"),
        How::Rewritten => path.into(),
    };
    fs::write(&new, bytes).expect("file");
    let file = fs::File::options().write(true).open(&new).expect("file");
    file.set_modified(about.modified().expect("time"))
        .expect("time");
    fs::rename(&new, path).expect("rename");
}

/// Runs the program and changes `input` immediately before the `number`th call of a `kind` on it; `None`
/// if there are fewer calls.
fn run_with_change(
    root: &Path,
    args: &[&str],
    (kind, number): (&str, usize),
    input: &str,
    change: impl FnOnce(),
) -> Option<Run> {
    let child = Command::new(binary())
        .args(args)
        .current_dir(root)
        .env("GPUIMG_DEVICE", "cpu")
        .env("GPUIMG_FAULT", format!("{kind}:{input}:{number}=stop"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let id = Pid::from_child(&child);
    let until = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(id), until)
        .expect("a child")
        .expect("a status");
    let stopped = status.stopped();
    if stopped {
        change();
        kill_process(id, Signal::CONT).expect("it goes on");
    }
    let result = told(child.wait_with_output().expect("it ends"));
    stopped.then_some(result)
}

/// A verb that reads its inputs more than once.
struct Case {
    args: &'static [&'static str],
    /// The input that is changed, and its other content.
    input: &'static str,
    other: Vec<u8>,
}

fn image(side: usize, seed: u64, bright: bool) -> Vec<u8> {
    let mut file = pgm(side, side, seed);
    let start = file.len() - 2 * side * side;
    // Of 0 to 16191, or of 49152 to 65343.
    for sample in file[start..].chunks_exact_mut(2).filter(|_| bright) {
        sample[0] |= 0xc0;
    }
    file
}

/// Dark images in `in`, and stacks; a bright image, and a stack in which the second page is bright.
fn inputs() -> (tempfile::TempDir, Vec<u8>, Vec<u8>) {
    let dark: Vec<Vec<u8>> = (0..3).map(|seed| image(64, seed, false)).collect();
    let root = folder(&[
        ("in/0.pgm", &dark[0]),
        ("in/1.pgm", &dark[1]),
        ("in/2.pgm", &dark[2]),
        ("bright.pgm", &image(64, 9, true)),
    ]);
    let stack = |second: &str, name: &str| {
        let args = [
            "flip",
            "horizontal",
            "in/0.pgm",
            second,
            "in/2.pgm",
            name,
            "--stack",
        ];
        assert_eq!(run(root.path(), &args, &[]).code, 0);
        fs::read(root.path().join(name)).expect("stack")
    };
    stack("in/1.pgm", "stack.tif");
    let other = stack("bright.pgm", "other.tif");
    let bright = fs::read(root.path().join("bright.pgm")).expect("file");
    fs::create_dir(root.path().join("dark")).expect("folder");
    for name in ["0.pgm", "1.pgm", "2.pgm"] {
        fs::copy(
            root.path().join("in").join(name),
            root.path().join("dark").join(name),
        )
        .expect("copy");
    }
    let header = "ObjectType = Image\nNDims = 3\nDimSize = 64 64 3\nElementType = MET_USHORT\n\
                  ElementByteOrderMSB = False\nElementDataFile = v.raw\n";
    fs::write(root.path().join("v.mhd"), header).expect("file");
    fs::write(
        root.path().join("v.raw"),
        dark.concat().split_off(dark[0].len() * 3 - 24_576),
    )
    .expect("file");
    (root, bright, other)
}

fn cases(bright: &[u8], stack: &[u8]) -> Vec<Case> {
    let volume = [vec![1; 8192], vec![200; 16_384]].concat();
    let case = |args, input, other: &[u8]| Case {
        args,
        input,
        other: other.to_vec(),
    };
    vec![
        case(&["normalize", "in", "o/", "--across"], "in/1.pgm", bright),
        case(
            &["normalize", "in/1.pgm", "o.pgm", "--across"],
            "in/1.pgm",
            bright,
        ),
        case(
            &["run", "normalize --across + rotate 180", "in", "o/"],
            "in/1.pgm",
            bright,
        ),
        case(
            &[
                "run",
                "normalize --across --to 9:999 + normalize --across",
                "in",
                "o/",
            ],
            "in/1.pgm",
            bright,
        ),
        case(
            &["normalize", "stack.tif", "o/", "--split", "--across"],
            "stack.tif",
            stack,
        ),
        case(&["normalize", "in", "o.tif", "--stack"], "in/1.pgm", bright),
        case(
            &[
                "run",
                "normalize + normalize --clip 1:99",
                "in",
                "o.tif",
                "--stack",
            ],
            "in/1.pgm",
            bright,
        ),
        case(&["normalize", "stack.tif", "o.tif"], "stack.tif", stack),
        case(
            &["normalize", "stack.tif", "o/", "--split"],
            "stack.tif",
            stack,
        ),
        case(
            &[
                "run",
                "normalize + normalize --clip 1:99",
                "stack.tif",
                "o.tif",
            ],
            "stack.tif",
            stack,
        ),
        case(
            &["normalize", "in/1.pgm", "o.pgm", "--low-memory"],
            "in/1.pgm",
            bright,
        ),
        case(&["project", "mean", "in", "o.pgm"], "in/1.pgm", bright),
        case(
            &["project", "median", "in", "o.pgm", "--mem-limit", "24K"],
            "in/1.pgm",
            bright,
        ),
        case(
            &["calibrate", "--dark", "dark", "in/0.pgm", "o.pgm"],
            "dark/1.pgm",
            bright,
        ),
        case(&["normalize", "v.mhd", "o.tif"], "v.raw", &volume),
        case(
            &["normalize", "v.mhd", "o/", "--split", "--format", "pgm"],
            "v.raw",
            &volume,
        ),
    ]
}

/// The results of a run.
fn results(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut results = match root.join("o").is_dir() {
        true => tree(&root.join("o")),
        false => BTreeMap::new(),
    };
    for name in listing(root).iter().filter(|name| name.starts_with("o.")) {
        results.insert(name.into(), fs::read(root.join(name)).expect("a result"));
    }
    results
}

fn clear(root: &Path) {
    let _ = fs::remove_dir_all(root.join("o"));
    for name in results(root).into_keys() {
        fs::remove_file(root.join(name)).expect("remove");
    }
}

/// Changes an input before each of the calls of a kind on it. What comes out is that of the inputs before
/// or after, or the input is named; returns how many calls there were, and how often it was named.
fn every_call(index: usize, kind: &str, how: How) -> (usize, usize) {
    let (root, bright, stack) = inputs();
    let root = root.path();
    let case = cases(&bright, &stack).swap_remove(index);
    let input = root.join(case.input);
    let first = fs::read(&input).expect("the input");
    let args = case.args;
    let whole = |bytes: &[u8]| {
        change(&input, bytes, How::Replaced);
        clear(root);
        let Run { code, stderr, .. } = run(root, args, &[("GPUIMG_DEVICE", "cpu")]);
        assert_eq!(code, 0, "{args:?}: {stderr}");
        results(root)
    };
    let (after, before) = (whole(&case.other), whole(&first));
    assert!(before != after && !before.is_empty(), "{args:?}");
    let (mut number, mut named) = (0, 0);
    loop {
        change(&input, &first, How::Replaced);
        clear(root);
        let call = (kind, number + 1);
        let result = run_with_change(root, args, call, case.input, || {
            change(&input, &case.other, how);
        });
        let Some(Run { code, stderr, .. }) = result else {
            return (number, named);
        };
        number += 1;
        let at = format!("{how:?} before {kind} {number}: {args:?}: status {code}, {stderr}");
        let found = results(root);
        let among = |all: &BTreeMap<PathBuf, Vec<u8>>| {
            found
                .iter()
                .all(|(name, bytes)| all.get(name) == Some(bytes))
        };
        match code {
            0 => assert!(found == before || found == after, "a mixture, {at}"),
            _ => {
                named += 1;
                assert_eq!(code, 1, "{at}");
                let name = Path::new(case.input)
                    .file_name()
                    .and_then(|name| name.to_str());
                assert!(stderr.contains(name.expect("a name")), "{at}");
                assert!(stderr.contains("changed while it was read"), "{at}");
                assert!(among(&before) || among(&after), "a mixture, {at}");
            }
        }
    }
}

#[test]
fn inputs_that_changed_between_two_passes_were_mixed() {
    let (_root, bright, stack) = inputs();
    let all = cases(&bright, &stack).len();
    let counts: Vec<[(usize, usize); 3]> = thread::scope(|scope| {
        let threads: Vec<_> = (0..all)
            .map(|index| {
                scope.spawn(move || {
                    [
                        every_call(index, "open", How::Replaced),
                        every_call(index, "open", How::Rewritten),
                        every_call(index, "read", How::Rewritten),
                    ]
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().expect("the case holds"))
            .collect()
    });
    for (index, [replaced, opened, read]) in counts.into_iter().enumerate() {
        let args = cases(&bright, &stack)[index].args;
        assert!(replaced.0 > 0 && opened.0 > 0 && read.0 > 0, "{args:?}");
        assert!(read.1 > 0, "no change was seen: {args:?}");
    }
}
