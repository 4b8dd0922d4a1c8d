//! `--watch`: what is taken, when, and what becomes of it. Every test waits for a result or a line, and
//! never for a time.

use crate::support::batch::{JOURNAL, pgm, tree};
use crate::support::watch::{Watch, collected, until};
use crate::support::{Run, binary, folder, listing, run, skipped, told};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// What `normalize` makes of an image.
fn normalized(image: &[u8]) -> Vec<u8> {
    let root = folder(&[("in.pgm", image)]);
    assert_eq!(
        run(root.path(), &["normalize", "in.pgm", "out.pgm"], &[]).code,
        0
    );
    fs::read(root.path().join("out.pgm")).expect("output")
}

fn image(seed: u64) -> Vec<u8> {
    pgm(30, 20, seed)
}

/// Waits for a result.
fn comes(root: &Path, name: &str, seed: u64) {
    let (path, expected) = (root.join(name), normalized(&image(seed)));
    until(&format!("{name} comes"), || {
        fs::read(&path).is_ok_and(|bytes| bytes == expected)
    });
}

fn put(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    fs::write(path, bytes).expect("file");
}

#[test]
fn files_are_taken_as_they_come() {
    let root = folder(&[("in/a.pgm", &image(1)), ("in/deep/b.pgm", &image(2))]);
    let root = root.path();
    let watch = Watch::start(
        root,
        &["normalize", "in", "out", "--watch", "--report", "r"],
    );
    comes(root, "out/a.pgm", 1);
    comes(root, "out/deep/b.pgm", 2);
    // Written in place, renamed from elsewhere, in folders made later, as a folder renamed in, as links.
    put(root, "in/c.pgm", &image(3));
    comes(root, "out/c.pgm", 3);
    put(root, "d.part", &image(4));
    fs::rename(root.join("d.part"), root.join("in/d.pgm")).expect("rename");
    comes(root, "out/d.pgm", 4);
    put(root, "in/new/er/e.pgm", &image(5));
    comes(root, "out/new/er/e.pgm", 5);
    put(root, "moved/f.pgm", &image(6));
    fs::rename(root.join("moved"), root.join("in/moved")).expect("rename");
    comes(root, "out/moved/f.pgm", 6);
    put(root, "in/moved/g.pgm", &image(7));
    comes(root, "out/moved/g.pgm", 7);
    fs::hard_link(root.join("in/a.pgm"), root.join("in/hard.pgm")).expect("link");
    comes(root, "out/hard.pgm", 1);
    put(root, "h.pgm", &image(8));
    std::os::unix::fs::symlink("../h.pgm", root.join("in/soft.pgm")).expect("link");
    comes(root, "out/soft.pgm", 8);
    // Not processed: files that are not images, hidden, or temporarily named, and our own.
    for name in [
        "x.txt",
        ".a.pgm",
        "y.pgm.part",
        ".gpuimg-tmp-00000000-aB3dE6",
        ".gpuimg-journal",
    ] {
        put(root, &format!("in/{name}"), &image(9));
    }
    put(root, "in/last.pgm", &image(10));
    comes(root, "out/last.pgm", 10);
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("10 files done; "), "{stderr}");
    assert_eq!(tree(&root.join("out")).len(), 10);
    let report = fs::read_to_string(root.join("r")).expect("report");
    assert_eq!(report.matches("\"status\":\"done\"").count(), 10);
    // Those that were there before have no latency.
    assert_eq!(report.matches("\"latency\":").count(), 8, "{report}");
    // The next watch has nothing to do, and a batch that continues neither.
    let again = [
        "normalize",
        "in",
        "out",
        "--watch",
        "--idle",
        "0",
        "--report",
        "r",
    ];
    let Run { code, stderr, .. } = run(root, &again, &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("0 files done, 10 already done"), "{stderr}");
}

#[test]
fn a_name_that_goes_and_comes_again() {
    let root = folder(&[("in/a.pgm", &image(1)), ("in/sub/s.pgm", &image(1))]);
    let root = root.path();
    let watch = Watch::start(root, &["normalize", "in", "out", "--watch"]);
    comes(root, "out/a.pgm", 1);
    comes(root, "out/sub/s.pgm", 1);
    // Rewritten.
    put(root, "in/a.pgm", &image(2));
    comes(root, "out/a.pgm", 2);
    // Replaced.
    put(root, "b", &image(3));
    fs::rename(root.join("b"), root.join("in/a.pgm")).expect("rename");
    comes(root, "out/a.pgm", 3);
    // Deleted and made again.
    fs::remove_file(root.join("in/a.pgm")).expect("remove");
    put(root, "in/a.pgm", &image(4));
    comes(root, "out/a.pgm", 4);
    // Renamed: another input; the result under the old name stays.
    fs::rename(root.join("in/a.pgm"), root.join("in/c.pgm")).expect("rename");
    comes(root, "out/c.pgm", 4);
    assert!(root.join("out/a.pgm").exists());
    // A folder, and the watched folder itself.
    fs::remove_dir_all(root.join("in/sub")).expect("remove");
    put(root, "in/sub/s.pgm", &image(5));
    comes(root, "out/sub/s.pgm", 5);
    fs::remove_dir_all(root.join("in")).expect("remove");
    watch.says("in has disappeared");
    put(root, "in/sub/s.pgm", &image(6));
    put(root, "in/n.pgm", &image(7));
    comes(root, "out/sub/s.pgm", 6);
    comes(root, "out/n.pgm", 7);
    put(root, "in/sub/t.pgm", &image(8));
    comes(root, "out/sub/t.pgm", 8);
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_file_that_grows_is_waited_for_and_a_broken_one_is_named() {
    let root = folder(&[("in/x", b"")]);
    let root = root.path();
    let args = ["normalize", "in", "out", "--watch", "--settle"];
    let watch = Watch::start(root, &[&args[..], &["20"]].concat());
    let whole = image(1);
    // In two parts, and closed in between: tried, and then waited for.
    put(root, "in/a.pgm", &whole[..500]);
    put(root, "in/first.pgm", &image(2));
    comes(root, "out/first.pgm", 2);
    let mut file = OpenOptions::new().append(true).open(root.join("in/a.pgm"));
    file.as_mut()
        .expect("file")
        .write_all(&whole[500..])
        .expect("file");
    drop(file);
    comes(root, "out/a.pgm", 1);
    let Run { code, stderr, .. } = watch.end();
    assert_eq!((code, stderr.contains("truncated")), (0, false), "{stderr}");

    let watch = Watch::start(root, &[&args[..], &["0.2"]].concat());
    // Held open, however long.
    let mut held = File::create(root.join("in/held.pgm")).expect("file");
    held.write_all(&whole[..500]).expect("file");
    put(root, "in/broken.pgm", &whole[..400]);
    watch.says("cannot read in/broken.pgm: truncated at byte 400");
    assert!(!watch.stderr().contains("held"), "{}", watch.stderr());
    // Repaired, it is processed after all.
    put(root, "in/broken.pgm", &image(3));
    comes(root, "out/broken.pgm", 3);
    held.write_all(&whole[500..]).expect("file");
    drop(held);
    comes(root, "out/held.pgm", 1);
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(
        (code, stderr.matches("cannot read").count()),
        (1, 1),
        "{stderr}"
    );
}

#[test]
fn more_events_than_the_system_keeps() {
    let root = folder(&[("in/x", b"")]);
    let root = root.path();
    let watch = Watch::start(root, &["transpose", "in", "out", "--watch"]);
    put(root, "in/sub/first.pgm", &pgm(3, 2, 1));
    until("the first", || root.join("out/sub/first.pgm").exists());
    // Four events a file, and 16384 are kept.
    watch.send(Signal::STOP);
    for i in 0..4500 {
        put(root, &format!("in/sub/{i}.pgm"), &pgm(3, 2, i));
    }
    // Gone before anybody inspects it, which is not a failure.
    fs::remove_file(root.join("in/sub/7.pgm")).expect("remove");
    watch.send(Signal::CONT);
    watch.says("the system dropped file events");
    until("all", || {
        thread::sleep(Duration::from_millis(200));
        listing(&root.join("out/sub")).len() == 4500
    });
    // Once more, with two events each time: what came meanwhile is taken, and nothing said again.
    watch.send(Signal::STOP);
    for _ in 0..9000 {
        let opened = OpenOptions::new()
            .append(true)
            .open(root.join("in/sub/1.pgm"));
        drop(opened.expect("file"));
    }
    put(root, "in/sub/7.pgm", &pgm(3, 2, 7));
    watch.send(Signal::CONT);
    until("the last", || root.join("out/sub/7.pgm").exists());
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(
        (
            code,
            stderr.matches("the system dropped file events").count()
        ),
        (0, 1),
        "{stderr}"
    );
    assert_eq!(tree(&root.join("out")).len(), 4501);
}

#[test]
fn a_file_that_is_gone_again_is_no_failure() {
    let root = folder(&[("in/x", b"")]);
    let root = root.path();
    let watch = Watch::start(root, &["normalize", "in", "out", "--watch", "--idle", "1"]);
    watch.send(Signal::STOP);
    put(root, "in/a.pgm", &image(1));
    fs::remove_file(root.join("in/a.pgm")).expect("remove");
    put(root, "in/b.pgm", &image(2));
    watch.send(Signal::CONT);
    let Run { code, stderr, .. } = watch.ended();
    assert_eq!(
        (code, stderr.matches("1 file done").count()),
        (0, 1),
        "{stderr}"
    );
}

#[test]
fn results_inside_the_watched_folder_do_not_come_in_again() {
    let root = folder(&[("in/a.pgm", &image(1))]);
    let args = [
        "normalize",
        "in",
        "in/out",
        "--watch",
        "--idle",
        "1",
        "--report",
        "r",
    ];
    let Run { code, stderr, .. } = Watch::start(root.path(), &args).ended();
    assert_eq!(code, 0, "{stderr}");
    let report = fs::read_to_string(root.path().join("r")).expect("report");
    assert_eq!(report.lines().count(), 1, "{report}");
    // Names that lead back into it are refused.
    let name = ["--name", "raw/{stem}_n.{ext}"];
    let root = folder(&[("all/raw/a.pgm", &image(1))]);
    let args = ["normalize", "all/raw", "all", "--watch", "--idle", "0"];
    let Run { code, stderr, .. } = run(root.path(), &[&args[..], &name].concat(), &[]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("would become a new input"), "{stderr}");
    assert_eq!(listing(&root.path().join("all/raw")), ["a.pgm"]);
}

#[test]
fn folders_without_events_are_polled() {
    let root = folder(&[("in/a.pgm", &image(1))]);
    let root = root.path();
    let args = [
        "normalize",
        "in",
        "out",
        "--watch",
        "--poll",
        "0.1",
        "--settle",
        "0.1",
    ];
    let watch = Watch::start(root, &args);
    comes(root, "out/a.pgm", 1);
    put(root, "in/new/b.pgm", &image(2));
    comes(root, "out/new/b.pgm", 2);
    put(root, "in/a.pgm", &image(3));
    comes(root, "out/a.pgm", 3);
    fs::remove_dir_all(root.join("in")).expect("remove");
    put(root, "in/a.pgm", &image(4));
    comes(root, "out/a.pgm", 4);
    put(root, "in/broken.pgm", b"P5 ");
    watch.says("cannot read in/broken.pgm");
    let Run { code, stderr, .. } = watch.end();
    assert_eq!((code, stderr.matches("broken").count()), (1, 1), "{stderr}");
}

#[test]
fn it_ends_as_it_is_told_to() {
    // By a signal: what is under way is finished, and that is no failure.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let root = folder(&[]);
        for i in 0..40 {
            put(root.path(), &format!("in/{i}.pgm"), &pgm(700, 700, i));
        }
        let watch = Watch::start(
            root.path(),
            &["rotate", "90", "in", "out", "--watch", "-j", "1"],
        );
        until("one", || root.path().join("out/0.pgm").exists());
        watch.send(signal);
        let Run { code, stderr, .. } = watch.ended();
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("stopping after"), "{stderr}");
        for (_, bytes) in tree(&root.path().join("out")) {
            assert_eq!(bytes.len(), 700 * 700 * 2 + 17);
        }
        let again = ["rotate", "90", "in", "out", "--watch", "--idle", "0"];
        assert_eq!(run(root.path(), &again, &[]).code, 0);
        assert_eq!(tree(&root.path().join("out")).len(), 40);
    }
    // By a file, which is not an input; what came before it is done, settled or not.
    let root = folder(&[("in/a.pgm", &image(1))]);
    let root = root.path();
    let watch = Watch::start(
        root,
        &[
            "normalize",
            "in",
            "out",
            "--watch",
            "--until-file",
            "end.pgm",
        ],
    );
    put(root, "in/sub/end.pgm", &image(3));
    comes(root, "out/sub/end.pgm", 3);
    put(root, "in/b.pgm", &image(2));
    put(root, "in/end.pgm", &image(2));
    let Run { code, stderr, .. } = watch.ended();
    assert_eq!(
        (code, stderr.contains("3 files done")),
        (0, true),
        "{stderr}"
    );
    assert_eq!(
        listing(&root.join("out")),
        [JOURNAL, "a.pgm", "b.pgm", "sub"]
    );
}

#[test]
fn what_a_watch_cannot_do_is_refused_with_the_reason() {
    let root = folder(&[
        ("in/a.pgm", &image(1)),
        ("in/sub/a.pgm", &image(1)),
        ("list", b"in/a.pgm"),
        ("x.hist", b"{}"),
    ]);
    for (line, reason) in [
        (
            "normalize in out --watch --across",
            "does not know future images",
        ),
        (
            "normalize in out --watch --dry-run",
            "waits for future files",
        ),
        ("normalize in out --watch --files-from list", "lists files"),
        (
            "normalize in/a.pgm out --watch",
            "expects folders, but in/a.pgm is not a folder",
        ),
        (
            "normalize - out.png --watch",
            "expects folders, but - is not a folder",
        ),
        (
            "normalize none out --watch",
            "expects folders, but none is not a folder",
        ),
        (
            "normalize in in --watch --overwrite",
            "results would become inputs",
        ),
        (
            "normalize in ./in/../in --watch --overwrite",
            "results would become inputs",
        ),
        ("normalize in in/sub out --watch", "one contains the other"),
        (
            "normalize in out --watch --until-file a/b",
            "a file name without folders",
        ),
        ("normalize in out --watch --poll 0", "--poll expects"),
        ("normalize in out --watch --settle x", "expected seconds"),
        ("normalize in out --idle 3", "--watch"),
        ("normalize in out --watch --follow", "--range-from"),
        ("normalize in out --follow --range-from x.hist", "--watch"),
        ("sum in --watch --dry-run", "waits for future files"),
        ("histogram in -o o.hist --watch", "when it is complete"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let Run { code, stderr, .. } = run(root.path(), &args, &[]);
        assert_eq!(code, 2, "{line}: {stderr}");
        assert!(stderr.contains(reason), "{line}: {stderr}");
    }
    assert_eq!(listing(root.path()), ["in", "list", "x.hist"]);
}

#[test]
fn a_gpu_that_is_not_there_is_told_before_a_file_comes() {
    let root = folder(&[("in/x", b"")]);
    let args = ["normalize", "in", "out", "--watch", "--device", "gpu:63"];
    let Run { code, stderr, .. } = run(root.path(), &args, &[]);
    assert_eq!(code, 3, "{stderr}");
    assert_eq!(
        stderr.matches("the GPU is not usable").count(),
        1,
        "{stderr}"
    );
}

#[test]
fn two_inputs_never_share_a_result_and_files_of_others_stay() {
    let root = folder(&[("in/a.pgm", &image(1)), ("out/theirs.png", b"another's")]);
    let root = root.path();
    let args = [
        "flip", "vertical", "in", "out", "--watch", "--format", "png",
    ];
    let watch = Watch::start(root, &args);
    until("a", || root.join("out/a.png").exists());
    let first = fs::read(root.join("out/a.png")).expect("file");
    put(root, "in/a.ppm", b"P6 1 1 255 abc");
    watch.says("in/a.pgm and in/a.ppm would both be written to out/a.png");
    put(root, "in/theirs.pgm", &image(2));
    watch.says("cannot write out/theirs.png: it already exists");
    // When the first is gone, the name is free.
    assert_eq!(fs::read(root.join("out/a.png")).expect("file"), first);
    fs::remove_file(root.join("in/a.pgm")).expect("remove");
    put(root, "in/a.ppm", b"P6 1 1 255 abd");
    until("another", || {
        fs::read(root.join("out/a.png")).expect("file") != first
    });
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(
        fs::read(root.join("out/theirs.png")).expect("file"),
        b"another's"
    );
    let replaced = [&args[..], &["--overwrite", "--idle", "0"]].concat();
    assert_eq!(run(root, &replaced, &[]).code, 0);
    assert_ne!(
        fs::read(root.join("out/theirs.png")).expect("file"),
        b"another's"
    );
}

#[test]
fn a_damaged_file_is_made_again_when_it_is_mended() {
    let root = folder(&[("in/x", b"")]);
    let root = root.path();
    let args = [
        "normalize",
        "in",
        "out",
        "--watch",
        "--keep-going",
        "--settle",
        "0.1",
    ];
    let watch = Watch::start(root, &args);
    put(root, "in/a.pgm", &image(1)[..900]);
    watch.says("in/a.pgm is damaged");
    put(root, "in/a.pgm", &image(1));
    comes(root, "out/a.pgm", 1);
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(
        (code, stderr.matches("is damaged").count()),
        (1, 1),
        "{stderr}"
    );
}

#[test]
fn parts_of_a_watch_share_the_files() {
    let root = folder(&[("in/x", b"")]);
    let root = root.path();
    let part = |part| {
        Watch::start(
            root,
            &["normalize", "in", "out", "--watch", "--shard", part],
        )
    };
    let watches = [part("1/2"), part("2/2")];
    for i in 0..20 {
        put(root, &format!("in/{i}.pgm"), &image(i));
    }
    for i in 0..20 {
        comes(root, &format!("out/{i}.pgm"), i);
    }
    let mut done = 0;
    for watch in watches {
        let Run { code, stderr, .. } = watch.end();
        assert_eq!(code, 0, "{stderr}");
        let count = stderr
            .split("Z gpuimg: ")
            .find_map(|it| it.split_once(" files done"));
        done += count.expect(&stderr).0.parse::<usize>().expect(&stderr);
    }
    assert_eq!(done, 20);
}

#[test]
fn sums_are_printed_as_files_come() {
    let root = folder(&[("in/a.pgm", &image(1))]);
    let root = root.path();
    let watch = Watch::start(root, &["sum", "in", "--watch", "--json"]);
    let prints = |text: &str| {
        until(text, || watch.stdout.lock().expect("lock").contains(text));
    };
    prints("\"file\":\"in/a.pgm\"");
    put(root, "in/b.pgm", &image(2));
    prints("\"file\":\"in/b.pgm\"");
    put(root, "in/b.pgm", &image(3));
    until("again", || {
        watch
            .stdout
            .lock()
            .expect("lock")
            .matches("in/b.pgm")
            .count()
            == 2
    });
    let Run { code, stdout, .. } = watch.end();
    assert_eq!((code, stdout.lines().count()), (0, 3), "{stdout}");
}

#[test]
fn a_histogram_that_is_replaced_is_followed() {
    let root = folder(&[
        ("one/a.pgm", &image(1)),
        ("two/a.pgm", b"P5\n2 1\n65535\n\0\x01\xf0\0"),
        ("in/a.pgm", &image(3)),
    ]);
    let root = root.path();
    let count = |set: &str| {
        let args = ["histogram", set, "-o", "x.hist", "--overwrite"];
        assert_eq!(run(root, &args, &[]).code, 0);
    };
    let alone = |input: &str| {
        let args = [
            "normalize",
            input,
            "alone.pgm",
            "--range-from",
            "x.hist",
            "--overwrite",
        ];
        assert_eq!(run(root, &args, &[]).code, 0);
        fs::read(root.join("alone.pgm")).expect("file")
    };
    count("one");
    let args = [
        "normalize",
        "in",
        "out",
        "--watch",
        "--range-from",
        "x.hist",
        "--follow",
    ];
    let watch = Watch::start(root, &args);
    let is = |name: &str, expected: &[u8]| {
        until(name, || {
            fs::read(root.join(name)).is_ok_and(|bytes| bytes == expected)
        });
    };
    let first = alone("in/a.pgm");
    is("out/a.pgm", &first);
    count("two");
    put(root, "in/b.pgm", &image(3));
    assert_ne!(alone("in/b.pgm"), first);
    is("out/b.pgm", &alone("in/b.pgm"));
    // A file that is not a histogram changes nothing and is reported.
    put(root, "new.hist", b"{}");
    fs::rename(root.join("new.hist"), root.join("y.hist")).expect("rename");
    let second = alone("in/b.pgm");
    fs::rename(root.join("y.hist"), root.join("x.hist")).expect("rename");
    put(root, "in/c.pgm", &image(3));
    is("out/c.pgm", &second);
    watch.says("keeping the previous range");
    assert_eq!(
        fs::read(root.join("out/a.pgm")).expect("file"),
        first,
        "made before"
    );
    assert_eq!(watch.end().code, 0);
}

#[test]
fn killed_and_started_again_it_makes_each_output_once() {
    let root = folder(&[("in/x", b"")]);
    let root = root.path();
    let args = ["normalize", "in", "out", "--watch", "--report", "r"];
    let mut expected = BTreeMap::new();
    for round in 0..6 {
        let mut watch = Watch::start(root, &args);
        for i in 0..30 {
            let (name, seed) = (format!("{round}-{i}.pgm"), round * 100 + i);
            put(root, &format!("in/{name}"), &image(seed));
            expected.insert(PathBuf::from(name), normalized(&image(seed)));
            if i == 10 + 3 * round {
                watch.child.kill().expect("kill");
                watch.child.wait().expect("wait");
            }
        }
    }
    let again = [&args[..], &["--idle", "0"]].concat();
    let Run { code, stderr, .. } = run(root, &again, &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(tree(&root.join("out")) == expected);
    let lines = |path: &str| fs::read_to_string(root.join(path)).expect("file");
    // Each start has dropped what the journal need not say.
    let journal = lines("out/.gpuimg-journal");
    for name in expected.keys() {
        let name = format!("\"output\":\"{}\"", name.display());
        assert_eq!(journal.matches(&name).count(), 1, "{name}");
    }
}

#[test]
fn the_journal_stays_short() {
    let root = folder(&[("in/a.pgm", &image(0)), ("in/b.pgm", &image(0))]);
    let root = root.path();
    let watch = Watch::start(root, &["normalize", "in", "out", "--watch"]);
    comes(root, "out/b.pgm", 0);
    for seed in 1..6 {
        put(root, "in/a.pgm", &image(seed));
        comes(root, "out/a.pgm", seed);
    }
    assert_eq!(watch.end().code, 0);
    let lines = || {
        let text = fs::read_to_string(root.join("out").join(JOURNAL)).expect("journal");
        text.lines().count()
    };
    assert_eq!(lines(), 7);
    fs::remove_file(root.join("in/b.pgm")).expect("remove");
    fs::remove_file(root.join("out/b.pgm")).expect("remove");
    // Another run that writes to it keeps it as it is.
    let other = Watch::start(root, &["normalize", "in", "out", "--watch"]);
    assert_eq!(lines(), 1, "a line for a");
    put(root, "in/a.pgm", &image(7));
    comes(root, "out/a.pgm", 7);
    let again = ["normalize", "in", "out", "--watch", "--idle", "0"];
    let Run { code, stderr, .. } = run(root, &again, &[]);
    assert_eq!((code, lines()), (0, 2), "{stderr}");
    assert!(stderr.contains("0 files done, 1 already done"), "{stderr}");
    assert_eq!(other.end().code, 0);
}

/// What a terminal of so many columns gets to see of a watch of `in`.
fn on_terminal(root: &Path, columns: u16) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let window = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("pty");
    grantpt(&window).expect("pty");
    unlockpt(&window).expect("pty");
    let size = rustix::termios::Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&window, size).expect("pty");
    let name = ptsname(&window, Vec::new()).expect("pty");
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let terminal = options.open(name.to_str().expect("text")).expect("pty");
    let mut child = Command::new(binary())
        .args([
            "normalize",
            "in",
            "out",
            "--watch",
            "--idle",
            "2",
            "--overwrite",
        ])
        .current_dir(root)
        .env("TERM", "xterm")
        .stdout(Stdio::null())
        .stderr(terminal)
        .spawn()
        .expect("the program runs");
    let seen = collected(File::from(window));
    let out = root.join("out");
    until("all", || out.is_dir() && tree(&out).len() == 3);
    until("it ends", || child.try_wait().expect("wait").is_some());
    until("all is read", || {
        let text = seen.lock().expect("lock");
        text.contains("files done")
    });
    seen.lock().expect("lock").clone()
}

#[test]
fn the_status_line_fits_the_terminal() {
    for columns in [80, 40] {
        let root = folder(&[
            ("in/a.pgm", &image(1)),
            (
                "in/ein_sehr_langer_Name_einer_Aufnahme_der_nirgends_hineinpasst_0001.pgm",
                &image(2),
            ),
            ("in/z.pgm", &image(3)),
        ]);
        let seen = on_terminal(root.path(), columns);
        assert!(seen.contains("3 done, "), "{seen:?}");
        assert!(seen.contains(".pgm"), "{seen:?}");
        // Without escapes, no line of the status is too long. Messages may be.
        let mut text = String::new();
        let mut parts = seen.split('\u{1b}');
        text += parts.next().unwrap_or_default();
        for part in parts {
            let end = part
                .find(|c: char| c.is_ascii_alphabetic())
                .expect("an escape ends");
            text = text + "\n" + &part[end + 1..];
        }
        let lines = text
            .split(['\n', '\r'])
            .filter(|line| !line.contains("gpuimg: "));
        // They are filled with spaces.
        let longest = lines.map(|line| line.trim_end().chars().count()).max();
        let longest = longest.unwrap_or(0);
        assert!(
            (10..usize::from(columns)).contains(&longest),
            "{longest}: {seen:?}"
        );
    }
}

/// What runs the program without a privilege to read a folder that nobody may read; `None`, said loudly,
/// where there is no such way.
fn without_privileges(root: &Path, what: &str) -> Option<&'static [&'static str]> {
    let closed = root.join("closed");
    fs::create_dir(&closed).expect("folder");
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).expect("mode");
    if fs::read_dir(&closed).is_err() {
        return Some(&[]);
    }
    let runner: &[&str] = &["unshare", "--user"];
    let listed = Command::new(runner[0])
        .args(&runner[1..])
        .arg("ls")
        .arg(&closed)
        .output();
    if listed.is_ok_and(|it| String::from_utf8_lossy(&it.stderr).contains("denied")) {
        return Some(runner);
    }
    skipped(&format!("{what}: everything may be read here"));
    None
}

#[test]
fn a_folder_that_nobody_may_read_ended_the_watch() {
    let root = folder(&[("in/a.pgm", &image(1))]);
    let root = root.path();
    let Some(runner) = without_privileges(root, "a watch of a folder that nobody may read") else {
        return;
    };
    let private = root.join("in/private");
    let close = |mode| fs::set_permissions(&private, Permissions::from_mode(mode)).expect("mode");
    let args = ["normalize", "in", "out", "--watch"];
    let watch = Watch::start_by(runner, root, &args);
    comes(root, "out/a.pgm", 1);
    // Under another name first, so that it is never there with other permissions.
    fs::create_dir(root.join("new")).expect("folder");
    fs::set_permissions(root.join("new"), Permissions::from_mode(0o000)).expect("mode");
    fs::rename(root.join("new"), &private).expect("rename");
    watch.says("cannot read in/private: permission denied");
    put(root, "in/b.pgm", &image(2));
    comes(root, "out/b.pgm", 2);
    // It is tried again.
    close(0o755);
    put(root, "in/private/c.pgm", &image(3));
    comes(root, "out/private/c.pgm", 3);
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(
        (code, stderr.matches("in/private").count()),
        (1, 1),
        "{stderr}"
    );
    // From the beginning.
    close(0);
    put(root, "in/d.pgm", &image(4));
    let watch = Watch::start_by(runner, root, &[&args[..], &["--idle", "0"]].concat());
    let Run { code, stderr, .. } = watch.ended();
    assert_eq!(
        (code, stderr.matches("in/private").count()),
        (1, 1),
        "{stderr}"
    );
    comes(root, "out/d.pgm", 4);
    close(0o755);
}

#[test]
fn a_file_that_could_not_be_looked_at_was_taken_to_be_gone() {
    let names = ["1.pgm", "2.pgm", "3.pgm"];
    for path in ["in", "in/2.pgm"] {
        for number in 1..=4 {
            let root = folder(&[]);
            for (name, seed) in names.iter().zip(1..) {
                put(root.path(), &format!("in/{name}"), &image(seed));
            }
            let traced = Command::new("strace")
                .args(["-f", "-qq", "-o", "trace", "-P", path])
                .args(["-e", "trace=statx,newfstatat"])
                .arg("-e")
                .arg(format!(
                    "inject=statx,newfstatat:error=ESTALE:when={number}"
                ))
                .arg(binary())
                .args(["normalize", "in", "out", "--watch", "--idle", "0"])
                .args(["--settle", "0.05"])
                .current_dir(root.path())
                .env_remove("GPUIMG_DEVICE")
                .output();
            let trace = fs::read_to_string(root.path().join("trace")).unwrap_or_default();
            let Ok(output) = traced else {
                return skipped("errors of system calls: no strace here");
            };
            if !trace.contains("INJECTED") {
                assert!(number > 1 || !trace.contains("statx"), "{path}: {trace}");
                skipped(&format!("error {number} of {path}: strace injected none"));
                continue;
            }
            let Run { code, stderr, .. } = told(output);
            let results = names
                .iter()
                .filter(|name| root.path().join("out").join(name).exists());
            match code {
                0 => assert_eq!(results.count(), 3, "{path} {number}: {stderr}"),
                _ => assert!(
                    stderr.contains("stale file handle"),
                    "{path} {number}: {stderr}"
                ),
            }
        }
    }
}

#[test]
fn results_under_another_mount_came_in_again() {
    let image = image(1);
    let mounted = |from: &str, to: &str, output: &str, results: &str| {
        let root = folder(&[("data/in/a.pgm", &image[..])]);
        for name in ["data/in/res", "mnt", "out"] {
            fs::create_dir_all(root.path().join(name)).expect("folder");
        }
        let script = format!(
            "mount --bind {from} {to} || exit 99; \
             timeout -s INT 100 \"$0\" transpose data/in {output} --watch --idle 0.5"
        );
        let output = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                script.as_str(),
            ])
            .arg(binary())
            .current_dir(root.path())
            .output();
        match output {
            Ok(output)
                if output.status.code() != Some(99) && !output.stderr.starts_with(b"unshare") =>
            {
                Some((told(output), tree(&root.path().join(results)).len()))
            }
            _ => None,
        }
    };
    // The watched folder, under another name.
    let Some((run, count)) = mounted("data/in", "mnt", "mnt/res", "data/in/res") else {
        return skipped("results under another mount: nothing can be mounted here");
    };
    assert_eq!((run.code, count), (0, 1), "{}", run.stderr);
    let (run, _) = mounted("data/in", "mnt", "mnt", "data/in/res").expect("mounts");
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(
        run.stderr.contains("--watch cannot write to"),
        "{}",
        run.stderr
    );
    // The folder of the results, under a name below the watched one.
    let (run, count) = mounted("out", "data/in/res", "out", "out").expect("mounts");
    assert_eq!((run.code, count), (0, 1), "{}", run.stderr);
}

#[test]
fn a_thread_that_could_not_be_started_aborted_the_watch() {
    let root = folder(&[("in/a.pgm", &image(1))]);
    for most in 1..=6 {
        let script = format!(
            "ulimit -c 0; ulimit -u {most}; exec \"$0\" transpose in out{most} --watch --idle 0"
        );
        let output = Command::new("unshare")
            .args(["--user", "sh", "-c", script.as_str()])
            .arg(binary())
            .current_dir(root.path())
            .output();
        let Ok(output) = output else {
            return skipped("a limit on threads: no unshare here");
        };
        if output.stderr.starts_with(b"unshare") {
            return skipped("a limit on threads: no user namespaces here");
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 1)) && !stderr.contains("panicked"),
            "{most}: {code:?} {stderr}"
        );
    }
}

#[test]
fn a_removed_folder_of_results_lost_the_journal() {
    let root = folder(&[("in/a.pgm", &image(1))]);
    let root = root.path();
    let args = ["normalize", "in", "out", "--watch"];
    let watch = Watch::start(root, &args);
    comes(root, "out/a.pgm", 1);
    fs::rename(root.join("out"), root.join("away")).expect("rename");
    put(root, "in/b.pgm", &image(2));
    comes(root, "out/b.pgm", 2);
    // The journal alone.
    fs::remove_file(root.join("out").join(JOURNAL)).expect("remove");
    put(root, "in/c.pgm", &image(3));
    comes(root, "out/c.pgm", 3);
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(code, 0, "{stderr}");
    fs::remove_file(root.join("out/b.pgm")).expect("remove");
    // The next runs know what is theirs.
    let Run { code, stderr, .. } = run(root, &[&args[..], &["--idle", "0"]].concat(), &[]);
    assert_eq!(
        (code, stderr.contains("2 files done, 1 already done")),
        (0, true),
        "{stderr}"
    );
    let Run { code, stderr, .. } = run(root, &["normalize", "in", "out", "--resume"], &[]);
    assert_eq!(
        (code, stderr.contains("3 already done")),
        (0, true),
        "{stderr}"
    );
}

#[test]
fn a_lock_that_another_process_kept_made_runs_wait_for_ever() {
    let root = folder(&[("in/a.pgm", &image(1))]);
    let root = root.path();
    let resume = ["normalize", "in", "out", "--resume"];
    let watch = ["normalize", "in", "out", "--watch", "--idle", "0"];
    assert_eq!(run(root, &resume, &[]).code, 0);
    // Whoever may read it may lock it.
    let journal = File::open(root.join("out").join(JOURNAL)).expect("journal");
    flock(&journal, FlockOperation::LockExclusive).expect("lock");
    for args in [&resume[..], &watch] {
        let Run { code, stderr, .. } = run(root, args, &[("GPUIMG_LOCK_WAIT", "0.5")]);
        assert_eq!(code, 1, "{stderr}");
        for part in [
            "gpuimg: waiting at most 0.5 s for ",
            "process",
            ", which has locked out/.gpuimg-journal",
            "cannot write out/.gpuimg-journal: ",
            "has held the lock for 0.5 s (stop that process, or write to another folder)",
        ] {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        let about = journal.metadata().expect("journal");
        let device = about.dev() as _;
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let place = format!(" {major:02x}:{minor:02x}:{} ", about.ino());
        // The numbers of a file in the list are others on some file systems.
        if locks.contains(&place) {
            let process = format!("for process {} (", std::process::id());
            assert!(stderr.contains(&process), "{process}: {stderr}");
        }
    }
    flock(&journal, FlockOperation::Unlock).expect("unlock");
    let Run { code, stderr, .. } = run(root, &resume, &[]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn bare_samples_in_a_watched_folder_were_no_inputs() {
    let root = folder(&[("in/x.bin", b"abcdef")]);
    let root = root.path();
    let args = [
        "transpose",
        "in",
        "out",
        "--raw",
        "3x2:u8",
        "--format",
        "pgm",
        "--watch",
    ];
    let watch = Watch::start(root, &args);
    let there = |name: &str| root.join("out").join(name).exists();
    until("x", || there("x.pnm"));
    put(root, "in/sub/y", b"ghijkl");
    until("y", || there("sub/y.pnm"));
    let Run { code, stderr, .. } = watch.end();
    assert_eq!(code, 0, "{stderr}");
}
