//! Names that another program exchanges while a run is under way, at the very call: the run stops before
//! it (`GPUIMG_FAULT`), the test exchanges the name, and the run continues.

use crate::support::batch::{JOURNAL, pgm};
use crate::support::stopped::run_with_change;
use crate::support::{Run, folder, listing, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A folder with images in `in/`, one of them below, and a file `victim` that no run may touch.
fn outset() -> tempfile::TempDir {
    folder(&[
        ("in/a.pgm", &pgm(5, 4, 1)),
        ("in/sub/b.pgm", &pgm(5, 4, 2)),
        ("victim", b"of value\n"),
    ])
}

/// A run that stops before the call that `fault` names, and continues after `exchange`.
fn exchanged(root: &Path, args: &[&str], fault: &str, exchange: impl Fn()) -> Run {
    let run = run_with_change(root, args, fault, exchange);
    let run = run.unwrap_or_else(|| panic!("{args:?} made no call {fault}"));
    let victim = fs::read(root.join("victim")).expect("victim");
    assert_eq!(victim, b"of value\n", "{args:?} {fault}: {}", run.stderr);
    run
}

/// Makes a FIFO.
fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

#[test]
fn a_result_exchanged_for_a_link_overwrote_what_the_link_led_to() {
    for fault in [
        "stat:out/a.pgm:1",
        "create:out:1",
        "close:out:1",
        "link:out/a.pgm:1",
    ] {
        for args in [
            &["normalize", "in/a.pgm", "out/", "--overwrite"][..],
            &["normalize", "in/a.pgm", "out/a.pgm", "--overwrite"],
        ] {
            // A link that is there when the user's name is looked up is followed, as a name is.
            if args[2] == "out/a.pgm" && fault.starts_with("stat") {
                continue;
            }
            let root = outset();
            fs::create_dir(root.path().join("out")).expect("folder");
            let link = root.path().join("out/a.pgm");
            exchanged(root.path(), args, fault, || {
                symlink("../victim", &link).expect("link");
            });
        }
    }
}

#[test]
fn a_folder_of_results_exchanged_for_a_link_led_out_of_the_output_folder() {
    for fault in [
        "create:out/sub:1",
        "link:out/sub/b.pgm:1",
        "mkdir:out/sub:1",
        "open:out/sub:2",
    ] {
        let root = outset();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("elsewhere")).expect("folder");
        exchanged(
            root.path(),
            &["normalize", "in", "out", "-j", "1"],
            fault,
            || {
                let _ = fs::rename(at("out/sub"), at("moved"));
                symlink("../elsewhere", at("out/sub")).expect("link");
            },
        );
        assert!(listing(&at("elsewhere")).is_empty(), "{fault}");
    }
}

#[test]
fn the_journal_was_shortened_through_a_link() {
    for fault in [
        "create:out:1",
        "rename:.gpuimg-journal:1",
        "stat:.gpuimg-journal:5",
    ] {
        let root = outset();
        let at = |name: &str| root.path().join(name);
        run(root.path(), &["normalize", "in", "out"], &[]);
        let journal = fs::read_to_string(at("out").join(JOURNAL)).expect("journal");
        let gone = journal.replace("a.pgm", "gone.pgm");
        fs::write(at("out").join(JOURNAL), journal + &gone).expect("journal");
        let args = ["normalize", "in", "out", "--watch", "--idle", "0"];
        exchanged(root.path(), &args, fault, || {
            let _ = fs::remove_file(at("out").join(JOURNAL));
            symlink("../victim", at("out").join(JOURNAL)).expect("link");
        });
    }
}

#[test]
fn a_fifo_in_the_output_folder_was_waited_for() {
    let root = outset();
    fs::create_dir(root.path().join("out")).expect("folder");
    fifo(&root.path().join("out/a.pgm"));
    for more in [&[][..], &["--overwrite"], &["--resume"]] {
        let args = [&["normalize", "in", "out"][..], more].concat();
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 1, "{stderr}");
        let sentence = "out/a.pgm: it is a FIFO, not a regular file: remove it";
        assert!(stderr.contains(sentence), "{stderr}");
    }
}

#[test]
fn a_dry_run_called_a_fifo_in_the_output_folder_writable() {
    let root = outset();
    fs::create_dir(root.path().join("out")).expect("folder");
    fifo(&root.path().join("out/a.pgm"));
    let args = ["normalize", "in", "out", "--overwrite", "--dry-run"];
    let Run { code, stdout, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 1, "{stdout}");
    let sentence = "cannot write out/a.pgm: it is a FIFO, not a regular file: remove it";
    assert!(stdout.contains(sentence), "{stdout}");
}

/// An error of the disk counted as "no file there": a link was replaced instead of what it leads to.
#[test]
fn a_link_that_could_not_be_looked_at_was_replaced() {
    for args in [
        &["flip", "vertical", "in/a.pgm", "out/a.pgm", "--overwrite"][..],
        &["flip", "vertical", "in", "out", "--overwrite"],
    ] {
        let mut failed = 0;
        for number in 1..=8 {
            let root = outset();
            fs::create_dir(root.path().join("out")).expect("folder");
            let (link, led_to) = (root.path().join("out/a.pgm"), root.path().join("out/b.pgm"));
            fs::write(&led_to, b"old").expect("file");
            symlink("b.pgm", &link).expect("link");
            let fault = format!("stat:out/a.pgm:{number}=EIO");
            let Run { code, stderr, .. } = run(root.path(), args, &[("GPUIMG_FAULT", &fault)]);
            assert!(link.is_symlink(), "{fault} {args:?}: {code} {stderr}");
            let is_old = fs::read(&led_to).expect("file") == b"old";
            assert_eq!(is_old, code != 0, "{fault} {args:?}: {stderr}");
            failed += usize::from(code != 0);
        }
        assert!(failed > 0, "{args:?}");
    }
}

#[test]
fn a_fifo_exchanged_for_a_link_overwrote_what_the_link_led_to() {
    let root = outset();
    let at = |name: &str| root.path().join(name);
    fifo(&at("a.pgm"));
    let args = ["normalize", "in/a.pgm", "a.pgm"];
    let Run { code, .. } = exchanged(root.path(), &args, "open:a.pgm:2", || {
        fs::remove_file(at("a.pgm")).expect("fifo");
        symlink("victim", at("a.pgm")).expect("link");
    });
    assert_eq!(code, 1);
}

#[test]
fn overwrite_was_refused_with_the_advice_to_overwrite() {
    let root = outset();
    let out = root.path().join("out");
    let args = ["normalize", "in", "out", "--overwrite", "-j", "1"];
    let Run { code, stderr, .. } = exchanged(root.path(), &args, "link:out/a.pgm:1", || {
        fs::write(out.join("a.pgm"), b"other").expect("file");
    });
    assert_eq!(code, 0, "{stderr}");
    assert!(
        fs::read(out.join("a.pgm"))
            .expect("result")
            .starts_with(b"P5")
    );
}

#[test]
fn samples_beside_a_header_came_through_a_link_from_anywhere() {
    let root = outset();
    let at = |name: &str| root.path().join(name);
    symlink("../victim", at("in/a.raw")).expect("link");
    let mhd = "ObjectType = Image\nNDims = 2\nDimSize = 9 1\nElementType = MET_UCHAR\n\
               ElementDataFile = a.raw\n";
    let nrrd = "NRRD0004\ntype: uint8\ndimension: 2\nsizes: 9 1\nencoding: raw\ndata file: a.raw\n";
    for (name, header) in [("in/a.mhd", mhd), ("in/b.nhdr", nrrd)] {
        fs::write(at(name), header).expect("header");
        let args = ["rotate", "180", name, "o.pgm"];
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains("a.raw: it is a symbolic link"), "{stderr}");
        assert!(!at("o.pgm").exists());
    }
}

#[test]
fn a_named_input_that_became_a_fifo_was_waited_for() {
    let root = outset();
    let input = root.path().join("in/a.pgm");
    let args = ["normalize", "in/a.pgm", "in/sub/b.pgm", "out/", "-j", "1"];
    let Run { code, stderr, .. } = exchanged(root.path(), &args, "mkdir:out:1", || {
        fs::remove_file(&input).expect("file");
        fifo(&input);
    });
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("in/a.pgm: it is no longer a file"),
        "{stderr}"
    );
}

#[test]
fn a_report_waited_for_the_reader_of_a_fifo() {
    let root = outset();
    fifo(&root.path().join("r.jsonl"));
    let args = ["normalize", "in", "out", "--report", "r.jsonl"];
    let Run { stderr, .. } = run(root.path(), &args, &[]);
    let sentence = "cannot write r.jsonl: it is a FIFO without a reader";
    assert!(stderr.contains(sentence), "{stderr}");
}

#[test]
fn what_close_said_of_an_output_was_thrown_away() {
    let root = outset();
    let fault = ("GPUIMG_FAULT", "close:out:1=EDQUOT");
    let args = ["normalize", "in/a.pgm", "out/"];
    for more in [&[][..], &[("GPUIMG_NO_TMPFILE", "1")]] {
        let Run { code, stderr, .. } = run(root.path(), &args, &[&[fault][..], more].concat());
        assert_eq!(code, 1, "{stderr}");
        let left = listing(&root.path().join("out"));
        assert!(left.iter().all(|name| name == JOURNAL), "{left:?}");
    }
}

#[test]
fn nothing_was_written_where_there_are_no_hard_links() {
    let root = outset();
    let lacks = "rename:a.pgm:1=EINVAL;link:a.pgm:1=EPERM";
    let env = [("GPUIMG_FAULT", lacks), ("GPUIMG_NO_TMPFILE", "1")];
    let Run { code, stderr, .. } = run(root.path(), &["normalize", "in/a.pgm", "a.pgm"], &env);
    assert_eq!(code, 0, "{stderr}");
    let result = fs::read(root.path().join("a.pgm")).expect("result");
    assert!(result.starts_with(b"P5"));
    let Run { code, stderr, .. } = run(root.path(), &["normalize", "in/a.pgm", "a.pgm"], &env);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(listing(root.path()), ["a.pgm", "in", "victim"]);
}

#[test]
fn a_leftover_was_removed_from_the_folder_that_a_name_led_to_by_then() {
    let name = ".gpuimg-tmp-00000000-aB3dE6";
    let root = outset();
    let at = |name: &str| root.path().join(name);
    for folder in ["out/sub", "elsewhere"] {
        fs::create_dir_all(at(folder)).expect("folder");
        fs::write(at(folder).join(name), b"x").expect("file");
    }
    // Of another machine, so that it has to be old.
    let file = fs::File::options()
        .write(true)
        .open(at("out/sub").join(name))
        .expect("file");
    let hours_ago = SystemTime::now() - Duration::from_secs(7200);
    file.set_modified(hours_ago).expect("time");
    let args = ["normalize", "in", "out", "--resume"];
    exchanged(root.path(), &args, &format!("unlink:{name}:1"), || {
        fs::rename(at("out/sub"), at("moved")).expect("rename");
        symlink("../elsewhere", at("out/sub")).expect("link");
    });
    assert!(
        at("elsewhere").join(name).exists(),
        "a file of another folder"
    );
    assert!(!at("moved").join(name).exists());
}
