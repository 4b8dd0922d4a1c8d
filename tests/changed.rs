//! Inputs that another program replaces or writes to while they are read, or between two runs.

use crate::support::batch::{pgm, tree};
use crate::support::stopped::run_with_change;
use crate::support::{Run, binary, folder, listing, run, run_on_cpu, told};
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
        ("large/0.pgm", &image(512, 0, false)),
        ("large/1.pgm", &image(512, 1, false)),
        ("large/2.pgm", &image(512, 2, false)),
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
            &["project", "median", "large", "o.pgm", "--mem-limit", "1M"],
            "large/1.pgm",
            &image(512, 9, true),
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
        let Run { code, stderr, .. } = run_on_cpu(root, args);
        assert_eq!(code, 0, "{args:?}: {stderr}");
        results(root)
    };
    let (after, before) = (whole(&case.other), whole(&first));
    assert!(before != after && !before.is_empty(), "{args:?}");
    let (mut number, mut named) = (0, 0);
    loop {
        change(&input, &first, How::Replaced);
        clear(root);
        let call = format!("{kind}:{}:{}", case.input, number + 1);
        let result = run_with_change(root, args, &call, || {
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
                assert!(stderr.contains("changed while it was being read"), "{at}");
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

/// Runs one line in `root` and gives back what it printed.
fn ok(root: &Path, line: &str, env: &[(&str, &str)]) -> String {
    let args: Vec<&str> = line.split(' ').collect();
    let Run { code, stderr, .. } = run(root, &args, env);
    assert_eq!(code, 0, "{line}: {stderr}");
    stderr
}

const RESUME: &str = "normalize in out --resume";

#[test]
fn a_replaced_input_of_the_same_length_and_time_was_done_before() {
    let (old, new) = (image(9, 1, false), image(9, 2, true));
    for how in [How::Replaced, How::Rewritten] {
        let root = folder(&[("in/a.pgm", &old), ("in/b.pgm", &old), ("new.pgm", &new)]);
        let root = root.path();
        ok(root, "normalize new.pgm expected.pgm", &[]);
        ok(root, RESUME, &[]);
        change(&root.join("in/a.pgm"), &new, how);
        let said = ok(root, RESUME, &[]);
        assert!(said.contains("1 of 2 files done, 1 already done"), "{said}");
        let same = |name| fs::read(root.join(name)).expect("a result");
        assert!(same("out/a.pgm") == same("expected.pgm"), "{how:?}");
        // A watch continues with what was done in the same way.
        change(&root.join("in/b.pgm"), &new, how);
        ok(root, "normalize in out --watch --idle 0.2", &[]);
        assert!(same("out/b.pgm") == same("expected.pgm"), "{how:?}");
    }
}

#[test]
fn an_input_that_was_replaced_under_a_watch_was_done_before() {
    let (old, new) = (image(9, 1, false), image(9, 2, true));
    let root = folder(&[("in/a.pgm", &old), ("new.pgm", &new)]);
    let root = root.path();
    ok(root, "normalize new.pgm expected.pgm", &[]);
    let child = Command::new(binary())
        .args(["normalize", "in", "out", "--watch", "--idle", "2"])
        .current_dir(root)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let output = root.join("out/a.pgm");
    while !output.exists() {
        thread::sleep(std::time::Duration::from_millis(5));
    }
    // Made elsewhere and moved in, as by a copy that keeps times.
    let about = fs::metadata(root.join("in/a.pgm")).expect("file");
    let file = fs::File::options()
        .write(true)
        .open(root.join("new.pgm"))
        .expect("file");
    file.set_modified(about.modified().expect("time"))
        .expect("time");
    fs::rename(root.join("new.pgm"), root.join("in/a.pgm")).expect("rename");
    let Run { code, stderr, .. } = told(child.wait_with_output().expect("it ends"));
    assert_eq!(code, 0, "{stderr}");
    let read = |name| fs::read(root.join(name)).expect("a result");
    assert!(read("out/a.pgm") == read("expected.pgm"), "{stderr}");
}

#[test]
fn a_folder_that_was_copied_with_its_times_is_gone_on_with() {
    let place = folder(&[
        ("first/in/a.pgm", &image(9, 1, false)),
        ("first/in/b.pgm", &image(9, 2, true)),
    ]);
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    ok(&first, RESUME, &[]);
    let copied = Command::new("cp")
        .arg("-a")
        .arg(&first)
        .arg(&second)
        .status();
    assert!(copied.expect("cp").success());
    let reads = |expected: usize| {
        let calls = place.path().join("calls");
        let _ = fs::remove_file(&calls);
        let said = ok(
            &second,
            RESUME,
            &[("GPUIMG_FAULT_COUNT", calls.to_str().expect("text"))],
        );
        assert!(said.contains("0 of 2 files done, 2 already done"), "{said}");
        let calls = fs::read_to_string(calls).expect("calls");
        let of_inputs = calls.lines().filter(|line| line.starts_with("read in/"));
        assert_eq!(of_inputs.count(), expected, "{calls}");
    };
    // The content decides once, and is noted.
    reads(2);
    reads(0);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(second.join("in/a.pgm"), mode).expect("chmod");
    reads(1);
    reads(0);
}

#[test]
fn a_line_of_version_0_2_proves_no_copy() {
    let place = folder(&[("first/in/a.pgm", &image(9, 1, false))]);
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    ok(&first, RESUME, &[]);
    let journal = first.join("out/.gpuimg-journal");
    let text = fs::read_to_string(&journal).expect("the journal");
    let old: Vec<String> = text
        .lines()
        .map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).expect("a line");
            if let Some(input) = line
                .get_mut("input")
                .and_then(|input| input.as_object_mut())
            {
                input.retain(|name, _| ["size", "changed", "inode"].contains(&&**name));
            }
            // The order of keys within `key` is compared as text.
            line.to_string()
        })
        .collect();
    let key = |text: &str| text[text.rfind("\"key\":").expect("a key")..].to_owned();
    assert!(old.len() == 1 && text.contains("\"digest\":\""), "{text}");
    let input = &old[0][old[0].find("\"input\":").expect("an input")..];
    let input = &input[..=input.find('}').expect("its end")];
    let begins = &text[..text.find("\"input\":").expect("an input")];
    fs::write(&journal, format!("{begins}{input},{}", key(&text))).expect("journal");
    let said = ok(&first, RESUME, &[]);
    assert!(said.contains("0 of 1 file done, 1 already done"), "{said}");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(&first)
        .arg(&second)
        .status();
    assert!(copied.expect("cp").success());
    let said = run(
        &second,
        &["normalize", "in", "out", "--resume", "--overwrite"],
        &[],
    );
    assert!(said.stderr.contains("1 of 1 file done"), "{}", said.stderr);
}

#[test]
fn samples_that_are_older_than_their_header_were_done_before() {
    let mhd = b"ObjectType = Image\nNDims = 2\nDimSize = 3 1\nElementType = MET_UCHAR\nElementDataFile = a.raw\n";
    let root = folder(&[
        ("in/a.mhd", mhd),
        ("in/a.raw", b"abc"),
        ("other.raw", b"xyz"),
    ]);
    let root = root.path();
    let hour = std::time::Duration::from_secs(3600);
    for name in ["in/a.raw", "other.raw"] {
        let file = fs::File::options()
            .write(true)
            .open(root.join(name))
            .expect("file");
        let before = std::time::SystemTime::now() - hour * (1 + name.len() as u32);
        file.set_modified(before).expect("time");
    }
    let line = "rotate 180 in out --format pnm --resume";
    ok(root, line, &[]);
    assert!(ok(root, line, &[]).contains("1 already done"));
    fs::rename(root.join("other.raw"), root.join("in/a.raw")).expect("rename");
    ok(root, line, &[]);
    assert!(
        fs::read(root.join("out/a.pnm"))
            .expect("a result")
            .ends_with(b"zyx")
    );
    // Of the same length and time, too.
    assert!(ok(root, line, &[]).contains("1 already done"));
    change(&root.join("in/a.raw"), b"mno", How::Replaced);
    ok(root, line, &[]);
    assert!(
        fs::read(root.join("out/a.pnm"))
            .expect("a result")
            .ends_with(b"onm")
    );
}

/// The journal has a digest of every input. That of a file whose first bytes are not all read, as those after
/// the directory at the beginning of a TIFF, was made by reading all of it again.
#[test]
fn a_file_was_read_twice_for_its_digest() {
    const SIDE: u32 = 1024;
    let mut tiff = b"II*\0\x08\0\0\0".to_vec();
    let entries = [
        (256, SIDE),
        (257, SIDE),
        (258, 16),
        (259, 1),
        (262, 1),
        (273, 4096),
        (277, 1),
        (278, SIDE),
        (279, SIDE * SIDE * 2),
    ];
    tiff.extend((entries.len() as u16).to_le_bytes());
    for (tag, value) in entries {
        tiff.extend([&(tag as u16).to_le_bytes()[..], &[4, 0, 1, 0, 0, 0]].concat());
        tiff.extend(value.to_le_bytes());
    }
    tiff.resize(4096, 0);
    tiff.extend((0..SIDE * SIDE).flat_map(|i| (i as u16).to_le_bytes()));
    let root = folder(&[("in/a.tif", &tiff)]);
    let reads = |args: &[&str]| {
        let calls = tempfile::NamedTempFile::new().expect("file");
        let name = calls.path().to_str().expect("UTF-8");
        let Run { code, stderr, .. } = run(root.path(), args, &[("GPUIMG_FAULT_COUNT", name)]);
        assert_eq!(code, 0, "{stderr}");
        let calls = fs::read_to_string(calls.path()).expect("calls");
        let reads = |line: &&str| line.starts_with("read ") && line.ends_with("in/a.tif");
        calls.lines().filter(reads).count()
    };
    let alone = reads(&["normalize", "in/a.tif", "o.tif"]);
    let batch = reads(&["normalize", "in", "out"]);
    assert!(alone >= 8, "{alone}");
    // One more for what lies between the header and the samples.
    assert!(batch <= alone + 1, "{batch} reads instead of {alone}");
}
