//! What is taken, where results go, and what is refused before anything is touched. Each test is
//! called after what went wrong.

use crate::support::batch::{JOURNAL, names, pgm, tree};
use crate::support::{Run, binary, folder, listing, own_copy, run, sample, skipped};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The first bytes of formats.
const PNG: &[u8] = b"\x89PNG";
const TIFF: &[u8] = b"II*\0";

/// A folder with `in/a.pgm` to `in/c.pgm`, different images.
fn three() -> tempfile::TempDir {
    folder(&[
        ("in/a.pgm", &pgm(9, 7, 1)),
        ("in/b.pgm", &pgm(9, 7, 2)),
        ("in/c.pgm", &pgm(9, 7, 3)),
    ])
}

/// A run that must be refused as wrong usage, with `sentence`, and leave everything as it is.
fn refused(root: &Path, args: &[&str], sentence: &str) {
    let before = tree(root);
    let Run { code, stderr, .. } = run(root, args, &[]);
    assert_eq!(code, 2, "{args:?}: {stderr}");
    assert!(
        stderr.contains(sentence),
        "{args:?}: {stderr:?} does not say {sentence:?}"
    );
    assert!(tree(root) == before, "{args:?} changed something");
}

/// A run that must be done.
fn done(root: &Path, args: &[&str]) -> Run {
    let run = run(root, args, &[]);
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    run
}

fn shell(root: &Path, script: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(binary()).current_dir(root);
    command.stdin(Stdio::null()).output().expect("bash")
}

#[test]
fn a_list_from_a_pipe_was_read_twice_and_nothing_was_done() {
    let root = three();
    done(root.path(), &["normalize", "--across", "in", "expected"]);
    let expected = tree(&root.path().join("expected"));
    assert_eq!(expected.len(), 3);
    for (out, script) in [
        (
            "o1",
            "printf '%s\\n' in/*.pgm | \"$0\" normalize --files-from - --across o1",
        ),
        (
            "o2",
            "\"$0\" normalize --files-from <(printf '%s\\0' in/*.pgm) --across o2",
        ),
        (
            "o3",
            "printf '%s\\n' in/*.pgm | \"$0\" normalize --files-from - o3",
        ),
    ] {
        let output = shell(root.path(), script);
        assert!(output.status.success(), "{script}: {output:?}");
        let found = tree(&root.path().join(out).join("in"));
        assert_eq!(found.len(), 3, "{script}");
        assert_eq!(found == expected, out != "o3", "{script}");
    }
    // An empty list is not a success.
    for across in ["--across", ""] {
        let script = format!("\"$0\" normalize --files-from - {across} empty < /dev/null");
        let output = shell(root.path(), &script);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("the list is empty"), "{stderr}");
        assert!(!root.path().join("empty").exists());
    }
}

#[test]
fn an_image_from_a_pipe_was_to_be_read_twice() {
    let root = three();
    let sentence = "can be read only once";
    for args in [
        &["normalize", "--across", "-", "o.pgm"][..],
        &["normalize", "in/a.pgm", "-", "-", "o"],
        &["normalize", "--files-from", "-", "-", "o"],
        &["sum", "-", "-"],
    ] {
        refused(root.path(), args, sentence);
    }
    let output = shell(
        root.path(),
        "\"$0\" normalize --across <(cat in/a.pgm) o.pgm",
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(sentence));
}

#[test]
fn a_report_destroyed_an_input_or_an_output() {
    let root = three();
    let at = |name: &str| root.path().join(name);
    done(root.path(), &["normalize", "in", "o"]);
    symlink("in/a.pgm", at("link")).expect("link");
    symlink("in", at("linked")).expect("link");
    fs::hard_link(at("in/b.pgm"), at("hard")).expect("link");
    fs::write(at("list"), "in/a.pgm\nin/b.pgm\n").expect("list");
    let absolute = at("in/c.pgm").to_string_lossy().into_owned();
    let reports = [
        "in/a.pgm",
        "./in/../in/a.pgm",
        "link",
        "linked/b.pgm",
        "hard",
        &absolute,
        "o/a.pgm",
        "o/../o/b.pgm",
    ];
    for report in reports {
        for more in ["--overwrite", "--resume", "--no-progress"] {
            let args = ["normalize", "in", "o", more, "--report", report];
            refused(root.path(), &args, "the report would overwrite ");
        }
    }
    for args in [
        &["normalize", "in", "p", "--report", "p/a.pgm"][..],
        &["normalize", "in/a.pgm", "p/", "--report", "p/a.pgm"],
        &["normalize", "in/a.pgm", "p.png", "--report", "p.png"],
        &[
            "normalize",
            "in/a.pgm",
            "p.png",
            "--report",
            "./p.png",
            "--across",
        ],
        &[
            "normalize",
            "in/a.pgm",
            "p.png",
            "--report",
            "in/a.pgm",
            "--overwrite",
        ],
        &[
            "normalize",
            "--files-from",
            "list",
            "p",
            "--report",
            "list",
            "--overwrite",
        ],
        &[
            "normalize",
            "in",
            "o",
            "--report",
            "o/.gpuimg-journal",
            "--resume",
        ],
        &[
            "normalize",
            "in",
            "o",
            "--range-from",
            "list",
            "--report",
            "list",
            "--overwrite",
        ],
        &["sum", "in", "--report", "hard", "--resume"],
        &["sum", "in/a.pgm", "--report", "link", "--resume"],
        &["histogram", "in", "-o", "h", "--report", "h"],
        &[
            "histogram",
            "in",
            "-o",
            "h",
            "--report",
            "in/a.pgm",
            "--resume",
        ],
    ] {
        refused(root.path(), args, "would overwrite ");
    }
    refused(
        root.path(),
        &["sum", "in", "--report", "-"],
        "would both use standard output",
    );
    // A link to what will be an output.
    symlink("o/new.pgm", at("dangling")).expect("link");
    let args = [
        "normalize",
        "in/a.pgm",
        "o/new.pgm",
        "--overwrite",
        "--report",
        "dangling",
    ];
    assert_eq!(run(root.path(), &args, &[]).code, 2);
    assert!(!at("o/new.pgm").exists());
    // A report of its own is written, among the results too.
    done(
        root.path(),
        &["normalize", "in", "q", "--report", "q/r.jsonl"],
    );
    assert_eq!(names(&at("q")), ["a.pgm", "b.pgm", "c.pgm", "r.jsonl"]);
}

#[test]
fn a_histogram_destroyed_an_image() {
    let root = three();
    fs::hard_link(root.path().join("in/b.pgm"), root.path().join("hard")).expect("link");
    for output in ["in/a.pgm", "hard"] {
        let args = ["histogram", "in", "-o", output, "--overwrite"];
        refused(root.path(), &args, "the histogram would overwrite in/");
    }
    // What exists is refused before all is counted.
    fs::write(root.path().join("h"), "precious").expect("file");
    let Run { code, stderr, .. } = run(root.path(), &["histogram", "in", "-o", "h"], &[]);
    assert_eq!(code, 1);
    let expected = "gpuimg: cannot write h: it already exists (use --overwrite to replace it)\n";
    assert_eq!(stderr, expected);
    // No folder can be created in a file.
    let Run { code, stderr, .. } = run(root.path(), &["histogram", "in", "-o", "h/h"], &[]);
    assert_eq!(code, 1);
    assert_eq!(stderr, "gpuimg: cannot write h/h: h is not a folder\n");
}

#[test]
fn two_inputs_reached_one_output_through_a_linked_folder() {
    let root = folder(&[
        ("in/x/1.pgm", &pgm(9, 7, 1)),
        ("in/y/1.pgm", &pgm(9, 7, 2)),
        ("o/x/old", b"old"),
        ("p/a.pgm", b"old"),
    ]);
    let at = |name: &str| root.path().join(name);
    symlink("x", at("o/y")).expect("link");
    for more in ["--overwrite", "--resume", "--no-progress"] {
        refused(
            root.path(),
            &["normalize", "in", "o", more],
            "in/x/1.pgm and in/y/1.pgm would both be written to o/x/1.pgm, which is also o/y/1.pgm",
        );
    }
    // A result that is a link to another's.
    symlink("a.pgm", at("p/b.pgm")).expect("link");
    fs::copy(at("in/x/1.pgm"), at("a.pgm")).expect("copy");
    fs::copy(at("in/y/1.pgm"), at("b.pgm")).expect("copy");
    refused(
        root.path(),
        &["normalize", "a.pgm", "b.pgm", "p", "--overwrite"],
        "a.pgm and b.pgm would both be written to p/a.pgm, which is also p/b.pgm",
    );
    // By other ways to the same name.
    fs::write(at("list"), "./a.pgm\nin/../a.pgm\n").expect("list");
    refused(
        root.path(),
        &["normalize", "--files-from", "list", "new"],
        "would both be written to new/a.pgm",
    );
}

#[test]
fn two_inputs_reached_one_output_where_case_does_not_count() {
    let root = folder(&[("in/a.pgm", &pgm(9, 7, 1)), ("in/A.pgm", &pgm(9, 7, 2))]);
    // Where it does, they are two.
    done(root.path(), &["normalize", "in", "two"]);
    assert_eq!(names(&root.path().join("two")), ["A.pgm", "a.pgm"]);
    let script = "mkdir m && mount -t tmpfs -o casefold none m && mkdir m/o && chattr +F m/o || exit 99; \
                  \"$0\" normalize in m/o --overwrite; status=$?; ls -A m/o; exit $status";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(binary())
        .current_dir(root.path())
        .output();
    match output {
        Ok(output) if output.status.code() == Some(2) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(
                stderr.contains("in/A.pgm and in/a.pgm would both be written to"),
                "{stderr}"
            );
            assert!(output.stdout.is_empty(), "something was left behind");
        }
        Ok(output) if output.status.success() => panic!("{output:?}"),
        _ => skipped("names that differ by case alone: no file system here that ignores it"),
    }
}

#[test]
fn a_result_replaced_the_input_of_another() {
    let root = folder(&[("z/a.pgm", &pgm(9, 7, 1)), ("z/a_n.pgm", &pgm(9, 7, 2))]);
    let args = ["normalize", "--name", "{stem}_n.{ext}", "z", "z"];
    let sentence = "the result of z/a.pgm would replace the input z/a_n.pgm";
    refused(
        root.path(),
        &[&args[..], &["--overwrite"]].concat(),
        sentence,
    );
    // In place, each replaces its own.
    done(
        root.path(),
        &["rotate", "180", "z", "z", "--overwrite", "-q"],
    );
    assert_eq!(names(&root.path().join("z")), ["a.pgm", "a_n.pgm"]);
}

#[test]
fn results_were_called_out_of_the_output_folder() {
    let root = three();
    let absolute = root.path().join("stray.pgm").to_string_lossy().into_owned();
    for name in [
        "../{stem}.{ext}",
        &absolute,
        "x/../../{stem}.{ext}",
        "",
        ".",
        "{stem}/",
    ] {
        let args = ["normalize", "in", "o", "--name", name];
        refused(root.path(), &args, "must stay within the output folder");
    }
    let args = [
        "normalize",
        "in/a.pgm",
        "o",
        "--name",
        JOURNAL,
        "--overwrite",
    ];
    refused(
        root.path(),
        &args,
        "the result of in/a.pgm cannot be named .gpuimg-journal",
    );
    done(
        root.path(),
        &["normalize", "in", "o", "--name", "n/{stem}.{ext}"],
    );
    assert_eq!(
        names(&root.path().join("o")),
        ["n/a.pgm", "n/b.pgm", "n/c.pgm"]
    );
}

#[test]
fn a_link_in_the_output_folder_led_out_of_it() {
    let root = folder(&[
        ("in/sub/a.pgm", &pgm(9, 7, 1)),
        ("in/b.pgm", &pgm(9, 7, 2)),
        ("o/inside/x", b""),
        ("elsewhere/x", b""),
    ]);
    let at = |name: &str| root.path().join(name);
    let out = "is a link out of o: the result would be written to ";
    for target in ["../elsewhere", "../in/sub"] {
        symlink(target, at("o/sub")).expect("link");
        for more in ["--overwrite", "--dry-run"] {
            refused(root.path(), &["rotate", "90", "in", "o", more], out);
        }
        fs::remove_file(at("o/sub")).expect("remove");
    }
    // So does a file's link, where it would be written through.
    symlink("../elsewhere/x", at("o/b.pgm")).expect("link");
    refused(
        root.path(),
        &["rotate", "90", "in", "o", "--overwrite"],
        out,
    );
    fs::remove_file(at("o/b.pgm")).expect("remove");
    // One that stays inside is followed, and the folder that is named may be a link itself.
    symlink("inside", at("o/sub")).expect("link");
    symlink("o", at("linked")).expect("link");
    done(root.path(), &["rotate", "90", "in", "linked"]);
    assert!(at("o/inside/a.pgm").exists() && at("o/b.pgm").exists());
}

#[test]
fn tiff_was_written_under_the_name_of_png() {
    let thermal = fs::read(sample("thermal.tif")).expect("sample");
    let root = folder(&[("in/t.tif", &thermal), ("in/wrong.png", &thermal)]);
    let at = |name: &str| root.path().join(name);
    let begins = |name: &str, magic: &[u8]| {
        let bytes = fs::read(at(name)).expect(name);
        assert!(bytes.starts_with(magic), "{name}");
    };
    done(
        root.path(),
        &["normalize", "in", "o", "--name", "{stem}_n.png"],
    );
    begins("o/t_n.png", PNG);
    begins("o/wrong_n.png", PNG);
    done(root.path(), &["normalize", "in", "p"]);
    begins("p/t.tif", TIFF);
    begins("p/wrong.png", PNG);
    // For one file too; and the one file is the same.
    done(
        root.path(),
        &["normalize", "in/t.tif", "q", "--name", "{stem}_n.png"],
    );
    assert!(tree(&at("q"))[Path::new("t_n.png")] == tree(&at("o"))[Path::new("t_n.png")]);
    done(
        root.path(),
        &["normalize", "in/t.tif", "v1.2", "--name", "{stem}.{ext}"],
    );
    assert_eq!(names(&at("v1.2")), ["t.tif"]);
    for (args, sentence) in [
        (
            &[
                "normalize",
                "in",
                "r",
                "--name",
                "{stem}.png",
                "--format",
                "tiff",
            ][..],
            "the result of in/t.tif would be named t.png, which is PNG, but --format is TIFF",
        ),
        (
            &["normalize", "in/t.tif", "r.tif", "--name", "{stem}.png"],
            "--name is for results in a folder, but r.tif is the name of one image",
        ),
        (
            &["normalize", "in", "r", "--name", "{stem}_{pages}.tif"],
            "unknown placeholder {pages}; use {stem}, {ext}",
        ),
        (
            &["normalize", "in", "r", "--name", "{stem"],
            "unmatched { (write {{ for a literal brace)",
        ),
    ] {
        refused(root.path(), args, sentence);
    }
}

#[test]
fn a_plan_did_not_tell_the_truth() {
    let stack = fs::read(sample("nuclei-stack.tif")).expect("sample");
    let root = folder(&[
        ("in/1.pgm", &pgm(160, 120, 1)),
        ("in/2.pgm", &pgm(160, 120, 2)),
        ("in/3.pgm", &pgm(160, 120, 3)),
        ("in/sub/4.pgm", &pgm(160, 120, 4)),
        ("in/stack.tif", &stack),
    ]);
    let at = |name: &str| root.path().join(name);
    // A plan ends as the run after it does.
    let plan = |args: &[&str]| {
        let before = tree(root.path());
        let plan = run(root.path(), &[args, &["--dry-run"]].concat(), &[]);
        assert!(tree(root.path()) == before, "{args:?} changed something");
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(plan.code, code, "{args:?}: {} {stderr}", plan.stdout);
        plan.stdout
    };
    let has = |plan: &str, words: &[&str]| {
        for words in words {
            assert!(plan.contains(words), "{words:?} is not in {plan}");
        }
        let summaries = plan.matches(" of samples; ").count();
        assert_eq!(summaries, 1, "{plan}");
    };
    let pages = 1 + stack_pages(&stack);
    let told = plan(&["normalize", "in", "deep/o", "--across"]);
    has(
        &told,
        &[
            "in/1.pgm → deep/o/1.pgm: 160×120 grey, 16 bits\n",
            &format!(", {} pages\n", pages - 1),
            "3 folders would be created (deep, …)\n",
            &format!("5 files: 5 to do; {} pages, ", pages + 3),
        ],
    );
    // What is there is refused, or skipped, or replaced.
    fs::write(at("in/2.pgm"), pgm(99, 12, 2)).expect("file");
    fs::remove_file(at("deep/o/3.pgm")).expect("remove");
    let resumed = [
        "normalize",
        "in",
        "deep/o",
        "--across",
        "--resume",
        "--dry-run",
    ];
    let Run { code, stdout, .. } = run(root.path(), &resumed[..], &[]);
    assert_eq!(code, 0);
    assert!(!stdout.contains("folder"), "{stdout}");
    let told = plan(&["normalize", "in", "deep/o"]);
    has(
        &told,
        &[
            "cannot write deep/o/1.pgm: it already exists (use --overwrite to replace it)\n",
            "in/3.pgm → deep/o/3.pgm: 160×120 grey, 16 bits\n",
            "5 files: 1 to do, 4 would fail; 1 page, ",
        ],
    );
    let told = plan(&["normalize", "in", "deep/o", "--overwrite"]);
    has(
        &told,
        &[
            "in/2.pgm → deep/o/2.pgm: 99×12 grey, 16 bits, replaces a file\n",
            "5 files: 5 to do; ",
        ],
    );
    fs::remove_file(at("deep/o/3.pgm")).expect("remove");
    let told = plan(&["normalize", "in", "deep/o", "--resume"]);
    has(
        &told,
        &[
            "in/1.pgm → deep/o/1.pgm: already done; --resume skips it\n",
            "in/3.pgm → deep/o/3.pgm: 160×120 grey, 16 bits\n",
            "5 files: 1 to do, 4 already done; 1 page, ",
        ],
    );
    // What would fail on the way.
    let told = plan(&["normalize", "in/stack.tif", "new/", "--format", "png"]);
    has(
        &told,
        &[
            "pages do not fit into one PNG file",
            "1 file: 0 to do, 1 would fail; 0 pages",
        ],
    );
    has(
        &plan(&[
            "normalize",
            "in/1.pgm",
            "no/o.png",
            "--no-progress",
            "--resume",
        ]),
        &["cannot write no/o.png: folder no does not exist\n"],
    );
    assert!(!at("no").exists());
    fs::write(at("r.jsonl"), "precious").expect("file");
    let args = ["normalize", "in/1.pgm", "new2/", "--report", "r.jsonl"];
    has(&plan(&args), &["cannot write r.jsonl: it already exists"]);
    // With -q the summary, and what would fail.
    let args = ["normalize", "in", "new3", "--dry-run", "-q"];
    let Run { code, stdout, .. } = run(root.path(), &args, &[]);
    assert_eq!((code, stdout.lines().count()), (0, 2), "{stdout}");
}

#[test]
fn a_plan_emptied_a_pipe() {
    let root = three();
    let script = "cat in/a.pgm | (\"$0\" normalize - o.pgm --dry-run && \"$0\" normalize - o.pgm)";
    let output = shell(root.path(), script);
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        told.starts_with("- → o.pgm: a stream (not inspected)\n1 file: 1 to do; "),
        "{told}"
    );
    assert!(root.path().join("o.pgm").exists());
}

fn stack_pages(stack: &[u8]) -> usize {
    let mut decoder = tiff::decoder::Decoder::new(std::io::Cursor::new(stack)).expect("TIFF");
    let mut pages = 1;
    while decoder.more_images() {
        decoder.next_image().expect("page");
        pages += 1;
    }
    pages
}

#[test]
fn a_new_folder_for_results_was_taken_for_a_wrong_file() {
    let root = three();
    let at = |name: &str| root.path().join(name);
    done(root.path(), &["normalize", "in/a.pgm", "one/"]);
    assert_eq!(names(&at("one")), ["a.pgm"]);
    done(root.path(), &["normalize", "in/a.pgm", "deep/one"]);
    assert_eq!(names(&at("deep/one")), ["a.pgm"]);
    done(root.path(), &["normalize", "in/a.pgm", "in/b.pgm", "two"]);
    assert_eq!(names(&at("two")), ["a.pgm", "b.pgm"]);
    done(root.path(), &["normalize", "in/a.pgm", "like.png/"]);
    assert_eq!(names(&at("like.png")), ["a.pgm"]);
    let mut command = Command::new(binary());
    command.args(["normalize", "-", "std/", "--name", "x.png"]);
    command.stdin(fs::File::open(at("in/a.pgm")).expect("file"));
    assert!(
        command
            .current_dir(root.path())
            .status()
            .expect("run")
            .success()
    );
    assert_eq!(names(&at("std")), ["x.png"]);
}

#[test]
fn the_wrong_argument_was_blamed() {
    let root = three();
    let at = |name: &str| root.path().join(name);
    fs::write(at("file"), "text").expect("file");
    for (args, sentence) in [
        (
            &["normalize", "in/a.pgm", "in/b.pgm", "in/c.pgm"][..],
            "in/c.pgm is a file",
        ),
        (
            &["normalize", "in", "file"],
            "in is a folder of images, but file is a file",
        ),
        (&["normalize", "in/a.pgm", "file/"], "file/ is a file"),
        (
            &["normalize", "in", "-"],
            "in is a folder of images, but - is a single stream",
        ),
        (&["normalize", "in/a.pgm", "x.xyz"], ".xyz is not supported"),
        (
            &["normalize", "--files-from", "none", "o"],
            "cannot read none: no such file",
        ),
    ] {
        refused(root.path(), args, sentence);
    }
    // The input that is missing, and no folder for what cannot come.
    for output in ["o", "o/", "o.png"] {
        for more in ["--no-progress", "--across", "--resume"] {
            let Run { code, stderr, .. } =
                run(root.path(), &["normalize", "none", output, more], &[]);
            assert_eq!(code, 1, "{stderr}");
            assert!(
                stderr.contains("cannot read none: no such file"),
                "{stderr}"
            );
            assert!(!at("o").exists(), "{output} {more}");
        }
    }
    // A folder that cannot be made.
    let Run { code, stderr, .. } = run(root.path(), &["normalize", "in", "file/o"], &[]);
    assert_eq!(code, 1);
    assert!(
        stderr.contains("cannot create the folder file/o: not a directory"),
        "{stderr}"
    );
    // One file, with the options of many and without: the folder above it is not made.
    for more in [&[][..], &["--report", "r"]] {
        let args = [&["normalize", "in/a.pgm", "no/o.png"], more].concat();
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!((code, at("no").exists()), (1, false));
        assert_eq!(
            stderr,
            "gpuimg: cannot write no/o.png: folder no does not exist\n"
        );
    }
}

#[test]
fn a_folder_without_an_image_was_a_success() {
    let root = folder(&[
        ("in/notes.txt", b"text"),
        ("in/more.txt", b"text"),
        ("in/.hidden.pgm", &pgm(3, 2, 1)),
        ("good/a.pgm", &pgm(3, 2, 1)),
    ]);
    fs::create_dir(root.path().join("empty")).expect("folder");
    let why = "cannot read in: it contains no image; skipped 2 × not an image (in/more.txt, …), \
               1 × hidden (in/.hidden.pgm)";
    for (args, sentence) in [
        (&["normalize", "in", "o"][..], why),
        (&["normalize", "-q", "in", "o"], why),
        (
            &["normalize", "empty", "o"],
            "cannot read empty: it contains no image\n",
        ),
        (&["sum", "in"], why),
        (&["histogram", "in", "-o", "h"], why),
        (
            &["sum", "good", "--include", "*.tif"],
            "1 × excluded by --include or --exclude (good/a.pgm)",
        ),
        (&["sum", "good", "in"], "1 of 2 files done, 1 failed"),
    ] {
        let Run { code, stderr, .. } = run(root.path(), args, &[]);
        assert_eq!(code, 1, "{args:?}: {stderr}");
        assert!(stderr.contains(sentence), "{args:?}: {stderr}");
    }
    assert_eq!(listing(root.path()), ["empty", "good", "in"]);
    let args = ["normalize", "in", "o", "--report", "r.jsonl"];
    assert_eq!(run(root.path(), &args, &[]).code, 1);
    let report = fs::read_to_string(root.path().join("r.jsonl")).expect("report");
    assert!(report.contains("it contains no image"), "{report}");
}

#[test]
fn dangling_links_and_pipes_in_a_folder_were_passed_over_in_silence() {
    let root = three();
    let at = |name: &str| root.path().join("in").join(name);
    symlink("gone.pgm", at("dangling.pgm")).expect("link");
    symlink("loop.pgm", at("loop.pgm")).expect("link");
    symlink("gone", at("README")).expect("link");
    symlink("/", at("root")).expect("link");
    let _socket = UnixListener::bind(at("socket.pgm")).expect("socket");
    let made = Command::new("mkfifo").arg(at("pipe.pgm")).status();
    assert!(made.expect("mkfifo").success());
    let Run { code, stderr, .. } = run(root.path(), &["normalize", "in", "o"], &[]);
    assert_eq!(code, 1, "{stderr}");
    for sentence in [
        "gpuimg: cannot read in/dangling.pgm: a broken link\n",
        "gpuimg: cannot read in/loop.pgm: too many levels of symbolic links\n",
        "gpuimg: skipped in/README: a broken link\n",
        "gpuimg: skipped in/socket.pgm: a socket\n",
        "gpuimg: skipped in/pipe.pgm: a FIFO\n",
        "gpuimg: skipped 1 × a link to a folder (in/root); -v lists them\n",
        "gpuimg: 3 of 5 files done, 2 failed",
    ] {
        assert!(stderr.contains(sentence), "{sentence:?} is not in {stderr}");
    }
    assert_eq!(names(&root.path().join("o")), ["a.pgm", "b.pgm", "c.pgm"]);
}

#[test]
fn a_folder_that_cannot_be_read_stopped_all() {
    let root = three();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("in/locked")).expect("folder");
    fs::write(at("in/locked/x.pgm"), pgm(3, 2, 1)).expect("file");
    fs::write(at("in/secret"), pgm(3, 2, 1)).expect("file");
    fs::create_dir(at("o")).expect("folder");
    let program = own_copy(root.path());
    for (name, mode) in [
        ("", 0o755),
        ("o", 0o777),
        ("in/locked", 0),
        ("in/secret", 0),
    ] {
        fs::set_permissions(at(name), Permissions::from_mode(mode)).expect("mode");
    }
    let as_nobody = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(args).current_dir(root.path());
        // Permissions do not bind root, so root asks as nobody.
        if rustix::process::getuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let output = command.output().expect("run");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        stderr
    };
    let stderr = as_nobody(&["normalize", "in", "o"]);
    for sentence in [
        "gpuimg: cannot read in/locked: permission denied\n",
        "gpuimg: cannot read in/secret: permission denied\n",
        "gpuimg: 3 of 5 files done, 2 failed",
    ] {
        assert!(stderr.contains(sentence), "{sentence:?} is not in {stderr}");
    }
    assert_eq!(names(&at("o")), ["a.pgm", "b.pgm", "c.pgm"]);
    let stderr = as_nobody(&["normalize", "in/locked", "o"]);
    assert!(
        stderr.contains("cannot read in/locked: permission denied"),
        "{stderr}"
    );
    // A histogram would be that of the others: it is written only if that is asked for, and says so.
    let stderr = as_nobody(&["histogram", "in", "-o", "o/h"]);
    assert!(stderr.contains("2 of 5 could not be read"), "{stderr}");
    assert!(!at("o/h").exists());
    let stderr = as_nobody(&["histogram", "in", "-o", "o/h", "--keep-going"]);
    assert!(stderr.contains("o/h does not include 2 images"), "{stderr}");
    let histogram = fs::read_to_string(at("o/h")).expect("histogram");
    assert!(histogram.contains(r#""failed":2"#), "{histogram}");
    as_nobody(&["histogram", "in/locked", "-o", "o/none", "--keep-going"]);
    assert!(!at("o/none").exists());
    fs::set_permissions(at("in/locked"), Permissions::from_mode(0o755)).expect("mode");
}

#[test]
fn a_path_of_more_than_4096_bytes_stopped_all() {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let root = three();
    let name = "n".repeat(250);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut deep = openat(CWD, root.path().join("in"), flags, Mode::empty()).expect("folder");
    for _ in 0..20 {
        mkdirat(&deep, name.as_str(), Mode::from_raw_mode(0o755)).expect("folder");
        deep = openat(&deep, name.as_str(), flags, Mode::empty()).expect("folder");
    }
    let Run { code, stderr, .. } = run(root.path(), &["normalize", "in", "o"], &[]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains(&format!("{name}: file name too long\n")),
        "{stderr}"
    );
    assert!(stderr.contains("3 of 4 files done, 1 failed"), "{stderr}");
    assert_eq!(names(&root.path().join("o")), ["a.pgm", "b.pgm", "c.pgm"]);
}

#[test]
fn names_that_are_no_text_were_changed() {
    let root = folder(&[("in/a.pgm", &pgm(9, 7, 1))]);
    let odd: [&[u8]; 3] = [b"\xff\xfe.pgm", b"a\nb c.pgm", b"-q.pgm"];
    for name in odd {
        let path = root.path().join("in").join(OsStr::from_bytes(name));
        fs::copy(root.path().join("in/a.pgm"), path).expect("copy");
    }
    done(root.path(), &["normalize", "in", "o"]);
    let script = "cd in && printf '%s\\0' * | \"$0\" normalize --files-from - ../p";
    let output = shell(root.path(), script);
    assert!(output.status.success(), "{output:?}");
    for out in ["o", "p"] {
        for name in odd {
            let path = root.path().join(out).join(OsStr::from_bytes(name));
            assert!(path.is_file(), "{out}: {name:?}");
        }
        assert_eq!(listing(&root.path().join(out)).len(), 5, "with the journal");
    }
}

#[test]
fn a_file_that_was_no_image_left_an_empty_folder() {
    let root = folder(&[
        ("in/a/fine.pgm", &pgm(3, 2, 1)),
        ("in/b/words.dat", b"only words"),
        ("in/c/d/cut.pgm", b"P5\n9"),
    ]);
    let args = [
        "flip",
        "v",
        "in",
        "out",
        "--include",
        "*.pgm",
        "--include",
        "*.dat",
    ];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1, "{stderr}");
    let made = listing(&root.path().join("out"));
    assert_eq!(made, [JOURNAL, "a"]);
}

#[test]
fn a_list_is_a_folder_spelled_out_and_a_named_file_is_not() {
    let root = folder(&[("in/a/x.pgm", &pgm(3, 2, 1)), ("list", b"in/a/x.pgm\n")]);
    done(
        root.path(),
        &["flip", "v", "--files-from", "list", "listed/"],
    );
    done(root.path(), &["flip", "v", "in/a/x.pgm", "named/"]);
    done(root.path(), &["flip", "v", "in", "walked/"]);
    for result in ["listed/in/a/x.pgm", "named/x.pgm", "walked/a/x.pgm"] {
        assert!(root.path().join(result).is_file(), "{result}");
    }
    let help = run(root.path(), &["flip", "--help"], &[]).stdout;
    let words: Vec<&str> = help.split_whitespace().collect();
    let told = words
        .join(" ")
        .contains("Results keep the folders of relative names in the list");
    assert!(told, "{help}");
}

#[test]
fn bare_samples_in_a_folder_were_no_inputs() {
    let samples = |first: u8| [first, 200, 30, 4, 5, 60];
    let root = folder(&[
        ("in/a.bin", &samples(1)),
        ("in/b", &samples(2)),
        ("in/deep/c.frame.7", &samples(3)),
        ("in/.hidden", &samples(4)),
        ("in/.gpuimg-journal", &samples(5)),
    ]);
    let raw = ["--raw", "3x2:u8"];
    let convert = ["normalize", "in", "out", "--format", "pgm"];
    done(root.path(), &[&convert[..], &raw].concat());
    assert_eq!(
        names(&root.path().join("out")),
        ["a.pnm", "b.pnm", "deep/c.frame.pnm"]
    );
    let some = ["normalize", "in", "some", "--format", "pgm"];
    let include = ["--include", "*.bin"];
    done(root.path(), &[&some[..], &raw, &include].concat());
    assert_eq!(names(&root.path().join("some")), ["a.pnm"]);
    // Every verb that takes folders.
    let Run {
        code,
        stdout,
        stderr,
    } = run(root.path(), &[&["sum", "in"][..], &raw].concat(), &[]);
    assert_eq!((code, stdout.lines().count()), (0, 3), "{stdout} {stderr}");
    done(
        root.path(),
        &[&["histogram", "in", "-o", "h.json"][..], &raw].concat(),
    );
    done(
        root.path(),
        &[&["project", "max", "in", "max.tif"][..], &raw].concat(),
    );
    done(
        root.path(),
        &[
            &["run", "flip vertical", "in", "run", "--format", "pgm"][..],
            &raw,
        ]
        .concat(),
    );
}

#[test]
fn a_row_that_memory_does_not_hold_aborted_the_run() {
    let root = folder(&[]);
    let file = fs::File::create(root.path().join("s.raw")).expect("file");
    if file.set_len(8_000_000_000).is_err() {
        return skipped("a row of 8 GB: no file of that length here");
    }
    for verb in ["normalize", "flip horizontal"] {
        let script = format!(
            "ulimit -c 0; ulimit -v 4000000; \
             exec \"$0\" {verb} --raw 8000000000x1:u8 s.raw o.tif --low-memory --device cpu"
        );
        let output = Command::new("sh")
            .args(["-c", script.as_str()])
            .arg(binary())
            .current_dir(root.path())
            .output()
            .expect("sh");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{verb}: {stderr}");
        assert!(
            stderr.contains("cannot read s.raw: not enough memory for 8000000000 bytes"),
            "{verb}: {stderr}"
        );
        assert_eq!(names(root.path()), ["s.raw"]);
    }
}

#[test]
fn a_result_replaced_the_histogram_of_its_own_range() {
    let root = three();
    let ran = run(root.path(), &["histogram", "in", "-o", "o/all.hist"], &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let args = [
        "normalize",
        "in/a.pgm",
        "o/",
        "--overwrite",
        "--format",
        "pgm",
        "--name",
        "all.hist",
    ];
    let args = [&args[..], &["--range-from", "o/all.hist"]].concat();
    refused(
        root.path(),
        &args,
        "would replace o/all.hist, which is the histogram of --range-from",
    );
    let args = ["merge", "o/all.hist", "-o", "o/all.hist", "--overwrite"];
    refused(
        root.path(),
        &args,
        "the result would overwrite o/all.hist, which the run itself uses",
    );
}

#[test]
fn a_result_replaced_a_frame_of_a_folder_that_was_given_as_the_dark_frame() {
    let root = three();
    let darks = [
        ("darks/d1.pgm", &pgm(9, 7, 4)),
        ("darks/d2.pgm", &pgm(9, 7, 5)),
    ];
    for (name, bytes) in darks {
        fs::create_dir_all(root.path().join("darks")).expect("folder");
        fs::write(root.path().join(name), bytes).expect("frame");
    }
    let convert = ["in/a.pgm", "darks/", "--overwrite", "--format", "pgm"];
    let convert = [&convert[..], &["--name", "d2.pgm"]].concat();
    let sentence = "the result darks/d2.pgm would replace darks/d2.pgm, which is a frame";
    for verb in [
        &["calibrate", "--dark", "darks"][..],
        &["calibrate", "--dark", "darks/d1.pgm", "--flat", "darks"],
        &["run", "calibrate --dark darks + flip vertical"],
    ] {
        refused(root.path(), &[verb, &convert[..]].concat(), sentence);
    }
    let one = [
        "calibrate",
        "--dark",
        "darks",
        "in/a.pgm",
        "darks/d1.pgm",
        "--overwrite",
    ];
    refused(
        root.path(),
        &one,
        "would replace darks/d1.pgm, which is a frame",
    );
    let report = ["calibrate", "--dark", "darks", "in", "out", "--overwrite"];
    refused(
        root.path(),
        &[&report[..], &["--report", "darks/d1.pgm"]].concat(),
        "the report would overwrite darks/d1.pgm",
    );
    done(root.path(), &["calibrate", "--dark", "darks", "in", "out"]);
}
