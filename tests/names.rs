//! Names that are not text, in what is printed.

use crate::support::batch::pgm;
use crate::support::{Run, binary, folder, run};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

#[test]
fn two_names_that_are_not_text_were_printed_alike() {
    let root = folder(&[("in/x", b"")]);
    fs::remove_file(root.path().join("in/x")).expect("remove");
    for (name, seed) in [(&b"\xe9.pgm"[..], 1), (b"\xe8.pgm", 2), (b"\\xE9.pgm", 3)] {
        let path = root.path().join("in").join(OsStr::from_bytes(name));
        if fs::write(path, pgm(3, 2, seed)).is_err() {
            return crate::support::skipped(
                "names that are not UTF-8: refused by this file system",
            );
        }
    }
    let bad = root
        .path()
        .join("in")
        .join(OsStr::from_bytes(b"\xea\n.pgm"));
    fs::write(bad, b"P5 ").expect("file");
    let Run { code, stderr, .. } = run(
        root.path(),
        &["normalize", "in", "out", "--report", "r"],
        &[],
    );
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("cannot read in/\\xEA\\x0A.pgm: "),
        "{stderr}"
    );
    let report = fs::read_to_string(root.path().join("r")).expect("report");
    let lines = report
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let has = |input: &str, input_hex: Option<&str>, output_hex: Option<&str>| {
        let is_it = |line: &&Value| {
            line["input"] == input
                && line["input_hex"].as_str() == input_hex
                && line["output_hex"].as_str() == output_hex
        };
        assert_eq!(lines.iter().filter(is_it).count(), 1, "{input}: {report}");
    };
    has(
        "in/\\xE9.pgm",
        Some("696e2fe92e70676d"),
        Some("6f75742fe92e70676d"),
    );
    has(
        "in/\\xE8.pgm",
        Some("696e2fe82e70676d"),
        Some("6f75742fe82e70676d"),
    );
    has("in/\\xE9.pgm", None, None);
    let Run { stdout, .. } = run(root.path(), &["sum", "in"], &[]);
    for name in ["in/\\xE9.pgm: ", "in/\\xE8.pgm: ", "in/\\\\xE9.pgm: "] {
        assert!(stdout.contains(name), "{name}: {stdout}");
    }
    let Run { stdout, .. } = run(root.path(), &["sum", "in", "--json"], &[]);
    assert!(
        stdout.contains("\"file_hex\":\"696e2fe82e70676d\""),
        "{stdout}"
    );
}

/// Messages of verbs that had names of their own: a replacement character stood for every byte that is not UTF-8, and control
/// characters reached the terminal.
#[test]
fn names_that_are_not_text_were_ambiguous_in_messages_of_some_verbs() {
    let root = folder(&[("a.pgm", &pgm(3, 2, 1))]);
    let name = OsStr::from_bytes(b"\xe9\x07.pgm");
    if fs::write(root.path().join(name), b"P5 ").is_err() {
        return crate::support::skipped("names that are not UTF-8: refused by this file system");
    }
    let verbs: [&[&str]; 5] = [
        &["verify", "a.pgm"],
        &["project", "mean", "out.pgm", "a.pgm"],
        &["calibrate", "a.pgm", "out.pgm", "--dark"],
        &["normalize", "a.pgm", "out.pgm", "--range-from"],
        &["bench", "--from"],
    ];
    for verb in verbs {
        let mut command = Command::new(binary());
        let command = command.args(verb).arg(name).current_dir(root.path());
        let done = command.output().expect("the program runs");
        let stderr = String::from_utf8(done.stderr).expect("text");
        assert!(!done.status.success(), "{verb:?}");
        assert!(stderr.contains("\\xE9\\x07.pgm"), "{verb:?}: {stderr}");
        assert!(!stderr.contains('\u{fffd}'), "{verb:?}: {stderr}");
    }
}
