//! `prove`: the outputs of a report, derived again and compared.

use crate::support::batch::pgm;
use crate::support::{Run, folder, listing, run_on_cpu};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn inputs() -> TempDir {
    folder(&[("in/a.pgm", &pgm(30, 20, 1)), ("in/b.pgm", &pgm(30, 20, 2))])
}

/// Runs a command that has to succeed.
fn go(root: &Path, args: &[&str]) {
    let done = run_on_cpu(root, args);
    assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
}

fn prove(root: &Path) -> Run {
    run_on_cpu(root, &["prove", "r.jsonl", "-v"])
}

/// Expects that `prove` ends with `code`, and that a line has all of `parts`.
fn expect(root: &Path, code: i32, parts: &[&str]) {
    let proven = prove(root);
    assert_eq!(proven.code, code, "{}{}", proven.stdout, proven.stderr);
    let has_all = |line: &str| parts.iter().all(|part| line.contains(part));
    assert!(
        proven.stdout.lines().any(has_all),
        "{parts:?}: {}",
        proven.stdout
    );
}

/// Changes each line of the report.
fn edit(root: &Path, change: impl Fn(&mut Value)) {
    let report = root.join("r.jsonl");
    let text = fs::read_to_string(&report).expect("a report");
    let lines = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        change(&mut line);
        format!("{line}\n")
    });
    fs::write(&report, lines.collect::<String>()).expect("a report");
}

/// Changes the last byte of a file.
fn change_last_byte(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(path, bytes).expect("a file");
}

#[test]
fn outputs_of_every_kind_of_verb_are_proven_by_their_bytes() {
    for args in [
        &["normalize", "in", "out", "--format", "png"][..],
        &["normalize", "in", "out", "--across", "--clip", "1:99"],
        &["normalize", "in", "out", "--range-from", "all.hist"],
        &["calibrate", "in", "out", "--dark", "in/a.pgm"],
        &[
            "run",
            "normalize --clip 1:99 + rotate 90",
            "in",
            "out",
            "--format",
            "tif",
        ],
        &["run", "flip vertical + normalize --across", "in", "out"],
        &["crop", "1,2,5x6", "in", "out", "--depth", "8"],
        &["preview", "in/a.pgm", "look.jpg"],
    ] {
        let root = inputs();
        let root = root.path();
        go(root, &["histogram", "in", "-o", "all.hist"]);
        go(root, &[args, &["--report", "r.jsonl"]].concat());
        let before = listing(root);
        expect(root, 0, &[" proven by bytes"]);
        let proven = prove(root).stdout;
        let outputs = proven.lines().count() - 1;
        assert_eq!(
            proven.matches(": the same bytes").count(),
            outputs,
            "{args:?}: {proven}"
        );
        assert_eq!(listing(root), before);
    }
}

/// Verbs that make one output of the files in `in`.
const COMBINING: [&[&str]; 12] = [
    &["project", "mean", "in", "o.pgm"],
    &["project", "median", "--to", "f32", "in", "o.tif"],
    &[
        "project", "max", "in/b.pgm", "in/a.pgm", "o.jpg", "--fit", "9",
    ],
    &["run", "project mean + rotate 90", "in", "o.png"],
    &[
        "run",
        "project sum --saturate + calibrate --dark in/a.pgm + normalize",
        "in",
        "-o",
        "o.png",
    ],
    &["combine", "in/a.pgm", "in/b.pgm", "in/a.pgm", "o.png"],
    &[
        "combine",
        "in/a.pgm",
        "in/b.pgm",
        "-o",
        "o.tif",
        "--colours",
        "C1=green,C2=#ff00ff",
    ],
    &["convert", "--stack", "in", "o.tif"],
    &[
        "normalize",
        "in/b.pgm",
        "in/a.pgm",
        "o.tif",
        "--stack",
        "--clip",
        "1:99",
    ],
    &[
        "normalize",
        "in",
        "o.tif",
        "--stack",
        "--range-from",
        "all.hist",
    ],
    &[
        "calibrate",
        "in",
        "o.tif",
        "--stack",
        "--flat-start",
        "in/a.pgm",
        "--flat-end",
        "in/b.pgm",
    ],
    &[
        "run",
        "normalize + rotate 90",
        "in",
        "o.tif",
        "--stack",
        "--fit",
        "9",
    ],
];

#[test]
fn outputs_of_several_inputs_are_proven() {
    for args in COMBINING {
        let root = inputs();
        let root = root.path();
        go(root, &["histogram", "in", "-o", "all.hist"]);
        go(root, &[args, &["--report", "r.jsonl"]].concat());
        let before = listing(root);
        expect(root, 0, &["o.", ": the same bytes"]);
        assert_eq!(listing(root), before, "{args:?}");
        edit(root, |line| line["version"] = json!("0.1.0"));
        let version = "the same samples (version 0.1.0 wrote it)";
        expect(root, 0, &["o.", version]);
        edit(root, |line| {
            line["version"] = json!(env!("CARGO_PKG_VERSION"))
        });
        // Every input counts.
        for name in ["a", "b"] {
            let path = root.join(format!("in/{name}.pgm"));
            change_last_byte(&path);
            expect(root, 1, &["o.", "changed"]);
            change_last_byte(&path);
        }
        fs::remove_file(root.join("in/b.pgm")).expect("a file");
        expect(root, 1, &["o.", "in/b.pgm"]);
    }
}

/// The digest of all inputs was that of a set, so a changed order of `project` was not found.
#[test]
fn a_changed_order_of_several_inputs_was_not_found() {
    for args in [
        &["combine", "in/a.pgm", "in/b.pgm", "in/c.pgm", "o.tif"][..],
        &["convert", "--stack", "in", "o.tif"],
        &["project", "mean", "in", "o.tif"],
    ] {
        let root = inputs();
        let root = root.path();
        let [b, c] = ["in/b.pgm", "in/c.pgm"].map(|name| root.join(name));
        fs::write(&c, pgm(30, 20, 3)).expect("a file");
        go(root, &[args, &["--report", "r.jsonl"]].concat());
        expect(root, 0, &["o.tif: the same bytes"]);
        let (first, second) = (fs::read(&b).expect("b"), fs::read(&c).expect("c"));
        fs::write(&b, second).expect("a file");
        fs::write(&c, first).expect("a file");
        let told = "some of its 3 inputs, or their order, have changed";
        expect(root, 1, &["o.tif: cannot be proven", told]);
    }
}

/// Two parts of a set of three images, and a merged projection with its report.
fn merged(how: &str) -> TempDir {
    let folder = inputs();
    let root = folder.path();
    fs::write(root.join("in/c.pgm"), pgm(30, 20, 3)).expect("a file");
    for part in ["1", "2"] {
        let (shard, output) = (format!("{part}/2"), format!("p/{part}.partial"));
        go(
            root,
            &[
                "project",
                how,
                "in",
                &output,
                "--partial",
                "--shard",
                &shard,
            ],
        );
    }
    go(
        root,
        &[
            "merge", "p", "-o", "o.tif", "--tiff", "deflate", "--report", "r.jsonl",
        ],
    );
    folder
}

#[test]
fn merged_projections_are_proven() {
    for how in ["mean", "max"] {
        let root = merged(how);
        let root = root.path();
        let before = listing(root);
        expect(root, 0, &["o.tif: the same bytes"]);
        assert_eq!(listing(root), before);
        // Its parts, and the image whose metadata it keeps.
        for (name, told) in [
            ("p/1.partial", "its input p/1.partial has changed"),
            ("p/2.partial", "cannot be proven: cannot read p/2.partial"),
            (
                "in/a.pgm",
                "cannot be proven: the first image, whose metadata it keeps, has changed",
            ),
            ("o.tif", "changed after it was written"),
        ] {
            change_last_byte(&root.join(name));
            expect(root, 1, &["o.tif: ", told]);
            change_last_byte(&root.join(name));
        }
        for forged in [json!(["p/1.partial"]), json!([])] {
            let report = fs::read(root.join("r.jsonl")).expect("a report");
            edit(root, |line| line["inputs"] = forged.clone());
            expect(root, 1, &["o.tif: cannot be proven: "]);
            fs::write(root.join("r.jsonl"), report).expect("a report");
        }
    }
}

#[test]
fn merged_histograms_have_no_report() {
    let root = inputs();
    let root = root.path();
    go(root, &["histogram", "in", "-o", "all.hist"]);
    let args = ["merge", "all.hist", "-o", "b.hist", "--report", "r.jsonl"];
    let done = run_on_cpu(root, &args);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(
        done.stderr.contains("these are histograms"),
        "{}",
        done.stderr
    );
    assert!(!root.join("b.hist").exists() && !root.join("r.jsonl").exists());
}

#[test]
fn a_stack_that_is_a_store_is_recorded_but_not_proven() {
    let root = inputs();
    let root = root.path();
    let args = ["convert", "--stack", "in", "o.zarr", "--report", "r.jsonl"];
    go(root, &args);
    let told = "o.zarr: cannot be proven: its output is a Zarr store";
    expect(root, 1, &[told]);
    let clash = ["convert", "--stack", "in", "o.tif", "--report", "o.tif"];
    assert_eq!(run_on_cpu(root, &clash).code, 2);
}

#[test]
fn a_forged_line_about_several_inputs_is_found() {
    let root = inputs();
    let root = root.path();
    fs::copy(root.join("in/a.pgm"), root.join("in/c.pgm")).expect("a copy");
    let args = ["project", "mean", "in", "o.pgm", "--report", "r.jsonl"];
    go(root, &args);
    // Others in place of the inputs, fewer of them, and none.
    let report = fs::read_to_string(root.join("r.jsonl")).expect("a report");
    for forged in [
        json!(["in/a.pgm", "in/b.pgm"]),
        json!(["in/a.pgm", "in/b.pgm", "in/b.pgm"]),
        json!([]),
    ] {
        edit(root, |line| line["inputs"] = forged.clone());
        expect(root, 1, &["o.pgm: cannot be proven"]);
        fs::write(root.join("r.jsonl"), &report).expect("a report");
    }
    expect(root, 0, &["o.pgm: the same bytes"]);
    change_last_byte(&root.join("o.pgm"));
    expect(root, 1, &["o.pgm", "changed after it was written"]);
}

#[test]
fn a_report_of_several_inputs_needs_all_of_them() {
    let root = inputs();
    let root = root.path();
    for (args, told) in [
        (&["--keep-going"][..], "--keep-going cannot"),
        (&["-"], "can be read only once"),
        (&["--partial"], "--partial"),
    ] {
        let all = [
            &["project", "mean", "in"],
            args,
            &["o.pgm", "--report", "r.jsonl"],
        ]
        .concat();
        let done = run_on_cpu(root, &all);
        assert_eq!(done.code, 2, "{all:?}: {}", done.stderr);
        assert!(done.stderr.contains(told), "{all:?}: {}", done.stderr);
        assert!(!root.join("r.jsonl").exists() && !root.join("o.pgm").exists());
    }
    let clash = ["project", "mean", "in", "o.pgm", "--report", "in/a.pgm"];
    assert_eq!(run_on_cpu(root, &clash).code, 2);
}

#[test]
fn digests_are_those_of_the_files() {
    let root = folder(&[("a.pgm", b"P5\n3 2\n255\n\x01\x02\x03\x04\x05\x06")]);
    let root = root.path();
    go(
        root,
        &["flip", "vertical", "a.pgm", "b.pgm", "--report", "r.jsonl"],
    );
    assert_eq!(
        fs::read(root.join("b.pgm")).expect("b"),
        b"P5\n3 2\n255\n\x04\x05\x06\x01\x02\x03"
    );
    let text = fs::read_to_string(root.join("r.jsonl")).expect("a report");
    let line: Value = serde_json::from_str(&text).expect("JSON");
    // Python: hashlib.sha256(the literals above).hexdigest()
    assert_eq!(
        line["input_sha256"],
        "0eb5607ac9919681ed15eaea13d97f4e93c635318a75d67d349e869372ad8311"
    );
    assert_eq!(
        line["output_sha256"],
        "8c65d9dc42ad669b835feb992d4ec816aaec9ebd6343e5a11f5c79febc5d4212"
    );
    assert_eq!(
        (&line["verb"], &line["options"]),
        (&json!("flip"), &json!(["vertical"]))
    );
    assert_eq!(line["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_changed_byte_of_an_output_is_found() {
    let root = inputs();
    let root = root.path();
    go(root, &["normalize", "in", "out", "--report", "r.jsonl"]);
    change_last_byte(&root.join("out/a.pgm"));
    expect(root, 1, &["out/a.pgm", "changed after it was written"]);
    expect(root, 1, &["out/b.pgm: the same bytes"]);
    fs::remove_file(root.join("out/a.pgm")).expect("a file");
    expect(root, 1, &["out/a.pgm: it is missing"]);
}

#[test]
fn a_changed_byte_that_a_forged_digest_hides_is_found() {
    let root = inputs();
    let root = root.path();
    go(
        root,
        &[
            "flip", "vertical", "in/a.pgm", "a.pgm", "--report", "r.jsonl",
        ],
    );
    change_last_byte(&root.join("a.pgm"));
    go(
        root,
        &["convert", "a.pgm", "b.pgm", "--report", "forged.jsonl"],
    );
    let forged = fs::read_to_string(root.join("forged.jsonl")).expect("a report");
    let forged: Value = serde_json::from_str(&forged).expect("JSON");
    edit(root, |line| {
        line["output_sha256"] = forged["input_sha256"].clone()
    });
    expect(
        root,
        1,
        &["a.pgm: it is not what in/a.pgm gives: 1 of 600 samples"],
    );
    edit(root, |line| line["version"] = json!("0.1.0"));
    expect(
        root,
        1,
        &["a.pgm: version 0.1.0 wrote it", "1 of 600 samples"],
    );
}

#[test]
fn swapped_and_missing_inputs_are_found() {
    let root = inputs();
    let root = root.path();
    go(root, &["normalize", "in", "out", "--report", "r.jsonl"]);
    fs::copy(root.join("in/b.pgm"), root.join("in/a.pgm")).expect("a copy");
    expect(root, 1, &["out/a.pgm: its input in/a.pgm has changed"]);
    fs::remove_file(root.join("in/a.pgm")).expect("a file");
    expect(root, 1, &["out/a.pgm: its input in/a.pgm is missing"]);
}

#[test]
fn another_version_is_proven_by_samples() {
    let root = inputs();
    let root = root.path();
    go(
        root,
        &[
            "normalize",
            "in",
            "out",
            "--format",
            "png",
            "--report",
            "r.jsonl",
        ],
    );
    edit(root, |line| line["version"] = json!("0.1.0"));
    expect(
        root,
        0,
        &["out/a.png: the same samples (version 0.1.0 wrote it)"],
    );
    expect(
        root,
        0,
        &["2 outputs: 0 proven by bytes", "2 proven by samples"],
    );
}

#[test]
fn what_a_range_or_a_frame_was_read_from_must_be_unchanged() {
    for (option, file, told) in [
        (
            "--range-from",
            "all.hist",
            "the files that --range-from names have changed",
        ),
        (
            "--dark",
            "dark.pgm",
            "the files that --dark names have changed",
        ),
        (
            "--bias",
            "dark.pgm",
            "the files that --bias names have changed",
        ),
        (
            "--across",
            "in/b.pgm",
            "its range was measured over 2 images",
        ),
    ] {
        let root = inputs();
        let root = root.path();
        go(root, &["histogram", "in", "-o", "all.hist"]);
        fs::write(root.join("dark.pgm"), pgm(30, 20, 3)).expect("a frame");
        let verb = if ["--bias", "--dark"].contains(&option) {
            "calibrate"
        } else {
            "normalize"
        };
        let mut args = vec![verb, "in", "out", "--report", "r.jsonl", option];
        if option != "--across" {
            args.push(file);
        }
        go(root, &args);
        expect(root, 0, &["2 proven by bytes"]);
        if option == "--range-from" {
            go(root, &["histogram", "in/a.pgm", "-o", file, "--overwrite"]);
        } else {
            change_last_byte(&root.join(file));
        }
        expect(root, 1, &["out/a.pgm: cannot be proven", told]);
    }
}

/// The message was "…: they have changed, or are not all in the report (it has 1)" in both cases.
#[test]
fn images_that_a_report_lacks_were_not_told_from_changed_ones() {
    let root = inputs();
    let root = root.path();
    go(
        root,
        &["normalize", "in", "out", "--report", "r.jsonl", "--across"],
    );
    let report = fs::read_to_string(root.join("r.jsonl")).expect("a report");
    let first = report.lines().next().expect("a line");
    fs::write(root.join("r.jsonl"), format!("{first}\n")).expect("a report");
    let lacks = "its range was measured over 2 images, but the report has 1 of them: prove the reports of all shards together";
    expect(root, 1, &["cannot be proven", lacks]);
    fs::write(root.join("r.jsonl"), &report).expect("a report");
    change_last_byte(&root.join("in/b.pgm"));
    let changed = "its range was measured over 2 images, some of which have changed";
    expect(root, 1, &["out/a.pgm: cannot be proven", changed]);
}

#[test]
fn what_has_no_file_or_no_digest_is_named_with_the_reason() {
    let root = inputs();
    let root = root.path();
    go(root, &["sum", "in/a.pgm", "--report", "r.jsonl"]);
    expect(root, 1, &["in/a.pgm: cannot be proven: sum has no output"]);
    fs::remove_file(root.join("r.jsonl")).expect("a report");
    go(
        root,
        &["normalize", "in/a.pgm", "a.pgm", "--report", "r.jsonl"],
    );
    edit(root, |line| {
        let fields = line.as_object_mut().expect("an object");
        fields.retain(|key, _| !key.ends_with("sha256") && key != "version");
    });
    expect(
        root,
        1,
        &["a.pgm: cannot be proven: the report has no digests"],
    );
}

/// The samples of a store are in many files, so a digest of its description alone would prove nothing.
#[test]
fn a_store_is_not_proven_by_its_description() {
    let array = br#"{"zarr_format":2,"shape":[2,3],"chunks":[2,3],"dtype":"<u2","compressor":null,
        "fill_value":0,"order":"C","filters":null}"#;
    let root = folder(&[
        ("a.zarr/.zarray", &array[..]),
        ("a.zarr/0.0", b"\x01\0\x02\0\x03\0\x04\0\x05\0\x06\0"),
    ]);
    let root = root.path();
    go(
        root,
        &[
            "flip", "vertical", "a.zarr", "out.pgm", "--report", "r.jsonl",
        ],
    );
    let written = fs::read(root.join("out.pgm")).expect("an output");
    assert!(written.ends_with(b"\0\x04\0\x05\0\x06\0\x01\0\x02\0\x03"));
    let told = "out.pgm: cannot be proven: its input is a Zarr store";
    expect(root, 1, &[told]);
}

#[test]
fn a_hostile_report_writes_nothing() {
    let root = inputs();
    let root = root.path();
    go(
        root,
        &["normalize", "in/a.pgm", "a.pgm", "--report", "r.jsonl"],
    );
    let original = fs::read(root.join("r.jsonl")).expect("a report");
    let temporary = tempfile::tempdir().expect("folder");
    let changes: [(&str, Value); 12] = [
        ("options", json!(["--report=evil", "--overwrite"])),
        ("options", json!(["--output=evil"])),
        ("options", json!(["-oevil"])),
        ("options", json!(["in/b.pgm", "evil"])),
        ("options", json!(["--", "in/b.pgm", "evil"])),
        ("options", json!(["--range-from=/dev/zero"])),
        ("options", json!(["--help"])),
        ("verb", json!("histogram")),
        ("verb", json!("prove")),
        ("verb", json!("--version")),
        ("input", json!("/dev/zero")),
        ("output", json!("/dev/zero")),
    ];
    let before = (listing(root), fs::read(root.join("a.pgm")).expect("output"));
    for (key, value) in changes {
        fs::write(root.join("r.jsonl"), &original).expect("a report");
        edit(root, |line| line[key] = value.clone());
        let path = temporary.path().to_str().expect("UTF-8");
        let env = [("GPUIMG_DEVICE", "cpu"), ("TMPDIR", path)];
        let proven = crate::support::run(root, &["prove", "r.jsonl"], &env);
        assert_eq!(
            proven.code, 1,
            "{key} {value}: {}{}",
            proven.stdout, proven.stderr
        );
        let after = (listing(root), fs::read(root.join("a.pgm")).expect("output"));
        assert_eq!(after, before, "{key} {value}");
        assert_eq!(listing(temporary.path()), [""; 0], "{key} {value}");
    }
}
