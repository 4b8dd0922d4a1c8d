//! What `--resume` takes for done, whose files it replaces, and journals that were tampered with.

use crate::support::batch::{JOURNAL, pgm, series, tree};
use crate::support::{Run, binary, folder, listing, run};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// A folder `z` of three images, one of them square.
fn three() -> tempfile::TempDir {
    folder(&[
        ("z/a.pgm", &pgm(30, 20, 1)),
        ("z/b.pgm", &pgm(20, 30, 2)),
        ("z/deep/c.pgm", &pgm(16, 16, 3)),
    ])
}

/// Runs a line of words, and expects a status and a part of what is said.
fn expect(root: &Path, line: &str, code: i32, said: &str) {
    let args: Vec<&str> = line.split(' ').collect();
    let run = run(root, &args, &[]);
    assert_eq!(run.code, code, "{line}: {}", run.stderr);
    assert!(run.stderr.contains(said), "{line}: {}", run.stderr);
}

const ALL_BEFORE: &str = "0 of 3 files done, 3 already done";

#[test]
fn other_pages_and_upright_images_were_done_before() {
    let options: [&[&str]; 8] = [
        &[],
        &["--pages", "1"],
        &["--auto-orient"],
        &["--depth", "8"],
        &["--png", "small"],
        &["--range", "0:99"],
        &["--scope", "page"],
        &["--keep-going"],
    ];
    let root = three();
    let go = |more: &[&str]| {
        let args = ["normalize", "z/a.pgm", "z/b.pgm", "out", "--format", "png"];
        run(root.path(), &[&args[..], &["--resume"], more].concat(), &[]).stderr
    };
    for options in options {
        let told = go(options);
        assert!(told.contains("2 of 2 files done"), "{options:?}: {told}");
        let told = go(options);
        assert!(told.contains("2 already done"), "{options:?}: {told}");
    }
}

#[test]
fn a_folder_without_a_journal_is_not_resumed() {
    let root = three();
    expect(
        root.path(),
        "rotate 90 z bare --no-journal",
        0,
        "3 of 3 files done",
    );
    expect(root.path(), "rotate 90 z kept", 0, "3 of 3 files done");
    assert!(!root.path().join("bare").join(JOURNAL).exists());
    assert!(root.path().join("kept").join(JOURNAL).exists());
    fs::remove_file(root.path().join("kept").join(JOURNAL)).expect("removed");
    let bare = tree(&root.path().join("bare"));
    assert!(bare == tree(&root.path().join("kept")));
    expect(
        root.path(),
        "rotate 90 z bare --resume",
        1,
        "0 of 3 files done",
    );
    expect(
        root.path(),
        "rotate 90 z bare --no-journal --overwrite",
        0,
        "3 of 3 files",
    );
    for other in ["--resume", "--watch"] {
        let line = format!("rotate 90 z bare --no-journal {other}");
        expect(root.path(), &line, 2, "cannot be combined");
    }
}

#[test]
fn in_place_images_were_turned_twice() {
    let root = three();
    expect(root.path(), "rotate 90 z once", 0, "3 of 3 files done");
    let once = tree(&root.path().join("once"));
    expect(root.path(), "rotate 90 z z --overwrite", 0, "3 of 3 files");
    for line in [
        "rotate 90 z z --resume",
        "rotate 90 z z --overwrite --resume",
        "rotate 90 ./z/ z --overwrite --resume",
    ] {
        expect(root.path(), line, 0, ALL_BEFORE);
        assert!(tree(&root.path().join("z")) == once, "{line}");
    }
    // Through links to the folder and to a file, and a file alone.
    symlink("z", root.path().join("y")).expect("link");
    expect(
        root.path(),
        "rotate 90 y z --overwrite --resume",
        0,
        ALL_BEFORE,
    );
    expect(
        root.path(),
        "rotate 90 z y --overwrite --resume",
        0,
        ALL_BEFORE,
    );
    fs::create_dir_all(root.path().join("links/real")).expect("folder");
    fs::write(root.path().join("links/real/one.pgm"), pgm(3, 2, 1)).expect("file");
    symlink("real/one.pgm", root.path().join("links/one.pgm")).expect("link");
    let line = "rotate 90 links/real/one.pgm links --overwrite";
    expect(root.path(), line, 0, "1 of 1");
    let turned = fs::read(root.path().join("links/real/one.pgm")).expect("file");
    let line = "rotate 90 links/real/one.pgm links --overwrite --resume";
    expect(root.path(), line, 0, "1 already done");
    assert!(fs::read(root.path().join("links/real/one.pgm")).expect("file") == turned);
    fs::write(root.path().join("one.pgm"), pgm(3, 2, 1)).expect("file");
    let line = "rotate 90 one.pgm one.pgm --overwrite --resume";
    expect(root.path(), line, 0, "1 of 1 file");
    expect(root.path(), line, 0, "1 already done");
    assert!(fs::read(root.path().join("one.pgm")).expect("file") == turned);
    assert!(tree(&root.path().join("z")) == once);
}

#[test]
fn in_place_what_is_not_known_is_said() {
    let root = three();
    let begun = root.path().join("begun");
    let copy = |from: &str, to: &Path| {
        let from = root.path().join(from);
        let done = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(done.expect("cp").success());
    };
    copy("z", &begun);
    expect(root.path(), "rotate 90 z z --overwrite", 0, "3 of 3 files");
    let once = tree(&root.path().join("z"));
    // Killed between the line and the name: what is there is what was read. It is not replaced
    // without a word, and with it, it is turned.
    fs::remove_file(root.path().join("z/a.pgm")).expect("remove");
    copy("begun/a.pgm", &root.path().join("z/a.pgm"));
    expect(
        root.path(),
        "rotate 90 z z --resume",
        1,
        "it already exists",
    );
    let go = "rotate 90 z z --overwrite --resume";
    expect(root.path(), go, 0, "1 of 3 files done, 2 already done");
    assert!(tree(&root.path().join("z")) == once);
    // A folder that was copied with its times.
    copy("z", &root.path().join("moved"));
    let line = "rotate 90 moved moved --overwrite --resume";
    expect(root.path(), line, 0, ALL_BEFORE);
    // Somebody has changed a result.
    let same = fs::read(root.path().join("z/a.pgm")).expect("file");
    fs::write(root.path().join("z/a.pgm"), same).expect("file");
    let said =
        "cannot rotate z/a.pgm: it is neither the input nor the result of an earlier run in place";
    expect(root.path(), go, 1, said);
    assert!(tree(&root.path().join("z")) == once);
    // Other options are no going on; another verb is new work, after which the first is unclear.
    let line = "rotate 180 z z --overwrite --resume";
    expect(
        root.path(),
        line,
        1,
        "cannot rotate z/b.pgm: an earlier run processed it in place with different",
    );
    let line = "normalize z z --overwrite --resume";
    expect(root.path(), line, 0, "3 of 3 files done");
    expect(root.path(), line, 0, ALL_BEFORE);
    expect(root.path(), go, 1, "3 failed");
    // Without --resume everything is processed again, and later runs resume that.
    expect(root.path(), "rotate 90 z/b.pgm z --overwrite", 0, "1 of 1");
    expect(root.path(), go, 0, "2 of 3 files done, 1 already done");
    expect(root.path(), go, 0, ALL_BEFORE);
    // A range of all of them cannot be measured again.
    let line = "normalize --across moved moved --overwrite";
    expect(root.path(), line, 0, "3 of 3 files done");
    let line = format!("{line} --resume");
    expect(root.path(), &line, 1, "then use --range-from");
}

#[test]
fn files_of_others_were_replaced() {
    let root = three();
    fs::write(root.path().join("z/bad.pgm"), b"P5\n9 9\n").expect("file");
    let go = "normalize z o --resume";
    expect(root.path(), go, 1, "3 of 4 files done, 1 failed");
    // A file where the first run failed, and one over a result; of the same length and inode.
    fs::write(root.path().join("o/bad.pgm"), b"mine").expect("file");
    let result = fs::read(root.path().join("o/a.pgm")).expect("file");
    let mine = vec![b'm'; result.len()];
    fs::write(root.path().join("o/a.pgm"), &mine).expect("file");
    fs::write(root.path().join("z/bad.pgm"), pgm(3, 2, 1)).expect("file");
    // Another input makes an own result outdated, which may be replaced.
    fs::write(root.path().join("z/b.pgm"), pgm(3, 2, 9)).expect("file");
    let Run { code, stderr, .. } = run(root.path(), &["normalize", "z", "o", "--resume"], &[]);
    assert_eq!(code, 1);
    let both = "2 outputs already exist (first: o/a.pgm): they were not written by an earlier run";
    assert!(stderr.contains(both), "{stderr}");
    assert!(stderr.contains("1 of 4 files done, 1 already done, 2 failed"));
    let read = |name: &str| fs::read(root.path().join(name)).expect("file");
    assert!(read("o/a.pgm") == mine && read("o/bad.pgm") == b"mine");
    expect(root.path(), &format!("{go} --overwrite"), 0, "2 of 4 files");
    assert!(read("o/a.pgm") == result);
}

#[test]
fn a_forged_line_led_out_of_the_folder() {
    let root = three();
    let at = |name: &str| root.path().join(name);
    expect(root.path(), "normalize z o", 0, "3 of 3 files done");
    let journal = at("o").join(JOURNAL);
    let text = fs::read_to_string(&journal).expect("journal");
    assert_eq!(
        text.lines().count(),
        4,
        "one line each, and the run's: {text}"
    );
    // Each forged line says that this program has made another's file.
    fs::write(at("mine.pgm"), b"mine").expect("file");
    let line = text
        .lines()
        .find(|line| line.contains("\"a.pgm\""))
        .expect("line");
    let forged = ["../mine.pgm", "/etc/passwd", "deep/../../mine.pgm", ""]
        .map(|name| line.replace("\"a.pgm\"", &format!("\"{name}\"")) + "\n");
    fs::write(&journal, forged.concat() + &text).expect("journal");
    expect(root.path(), "normalize z o --resume", 0, ALL_BEFORE);
    assert_eq!(fs::read(at("mine.pgm")).expect("file"), b"mine");
    // A bad byte, a torn line, endless lines and other data void themselves alone.
    let a = text.find("a.pgm").expect("name");
    let mut bytes = text.clone().into_bytes();
    bytes[a] = 0xff;
    bytes.extend(b"{}\n[1]\n\n\0\0\0\n{\"v\":99}\n");
    bytes.extend(vec![b'['; 1 << 20]);
    bytes.extend(b"\n{\"v\":2,\"output\":\"b.pg");
    fs::write(&journal, bytes).expect("journal");
    let run = run(root.path(), &["normalize", "z", "o", "--resume"], &[]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("2 already done, 1 failed"),
        "{}",
        run.stderr
    );
    fs::remove_file(at("o/a.pgm")).expect("remove");
    // The first line after a torn one begins a line of its own.
    for done in ["1 of 3 files done, 2 already", ALL_BEFORE] {
        expect(root.path(), "normalize z o --resume", 0, done);
    }
}

#[test]
fn a_journal_that_is_none() {
    let root = three();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("o")).expect("folder");
    fs::write(at("precious"), b"mine").expect("file");
    for name in [JOURNAL.to_string(), format!("{JOURNAL}.1-of-2")] {
        let journal = at("o").join(&name);
        let refused = |said: &str| {
            let lines: &[&str] = match name == JOURNAL {
                true => &["normalize z o", "normalize z o --resume"],
                // Another's is only read.
                false => &["normalize z o --resume", "normalize z o --shard 1/2"],
            };
            for line in lines {
                expect(root.path(), line, 1, said);
            }
        };
        symlink("../precious", &journal).expect("link");
        refused("it is a symbolic link (the journal must be a regular file");
        fs::remove_file(&journal).expect("remove");
        let made = Command::new("mkfifo").arg(&journal).status();
        assert!(made.expect("mkfifo").success());
        refused("it is not a regular file");
        fs::remove_file(&journal).expect("remove");
        fs::create_dir(&journal).expect("folder");
        refused("it is not a regular file");
        fs::remove_dir(&journal).expect("remove");
    }
    assert_eq!(fs::read(at("precious")).expect("file"), b"mine");
    // What is only called like one is nobody's business.
    symlink("../precious", at("o").join(format!("{JOURNAL}.old"))).expect("link");
    expect(
        root.path(),
        "normalize z o --resume",
        0,
        "3 of 3 files done",
    );
}

#[test]
fn each_part_has_a_journal_and_reads_all() {
    let (root, expected) = series(12);
    for part in ["1/3", "2/3", "3/3"] {
        let line = format!("normalize --format png in out --shard {part}");
        expect(root.path(), &line, 0, "files done");
    }
    let out = root.path().join("out");
    assert!(tree(&out) == expected);
    let journals: Vec<String> = listing(&out)
        .into_iter()
        .filter(|name| name.starts_with('.'))
        .collect();
    let names = [1, 2, 3].map(|part| format!("{JOURNAL}.{part}-of-3"));
    assert_eq!(journals, names);
    // However the next run is split.
    let line = "normalize --format png in out --resume";
    expect(root.path(), line, 0, "0 of 12 files done, 12 already done");
    for part in ["1/2", "2/2"] {
        expect(
            root.path(),
            &format!("{line} --shard {part}"),
            0,
            "gpuimg: 0 of ",
        );
    }
}

#[test]
fn two_runs_that_went_on_failed_each_other() {
    let start = |root: &Path, line: &str| {
        Command::new(binary())
            .args(line.split(' '))
            .current_dir(root)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs")
    };
    let (root, expected) = series(60);
    let turned = "rotate 90 expected turned -q";
    expect(root.path(), turned, 0, "");
    let turned = tree(&root.path().join("turned"));
    for round in 0..6 {
        let place = format!("place{round}");
        let copied = Command::new("cp")
            .arg("-r")
            .args(["expected", &place])
            .current_dir(root.path())
            .status();
        assert!(copied.expect("cp").success());
        fs::remove_file(root.path().join(&place).join(JOURNAL)).expect("remove");
        for (line, folder, expected) in [
            (
                format!("normalize --format png in out{round} --resume"),
                format!("out{round}"),
                &expected,
            ),
            (
                format!("rotate 90 {place} {place} --overwrite --resume"),
                place.clone(),
                &turned,
            ),
        ] {
            let runs = [0, 1, 2].map(|i| {
                thread::sleep(Duration::from_millis(i * round));
                start(root.path(), &line)
            });
            for run in runs {
                let output = run.wait_with_output().expect("wait");
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{line}: {told}");
            }
            assert!(tree(&root.path().join(folder)) == *expected, "{line}");
        }
    }
}

#[test]
fn names_that_are_not_utf_8_were_changed() {
    let root = folder(&[]);
    let z = root.path().join("z");
    fs::create_dir(&z).expect("folder");
    let names: [&[u8]; 4] = [
        b"caf\xe9.pgm",
        b"caf\xe8.pgm",
        "caf\u{fffd}.pgm".as_bytes(),
        b"caf%E9.pgm",
    ];
    for (seed, name) in names.iter().enumerate() {
        fs::write(z.join(OsStr::from_bytes(name)), pgm(3, 2, seed as u64)).expect("file");
    }
    let line = "transpose z o --name {stem}_{ext}.{ext}";
    expect(root.path(), line, 0, "4 of 4 files done");
    let made = fs::read_dir(root.path().join("o")).expect("folder");
    let made: Vec<PathBuf> = made
        .map(|entry| PathBuf::from(entry.expect("entry").file_name()))
        .filter(|name| name != Path::new(JOURNAL))
        .collect();
    assert_eq!(made.len(), 4);
    for name in names {
        let stem = name.strip_suffix(b".pgm").expect("suffix");
        let made_of = [stem, b"_pgm.pgm"].concat();
        assert!(
            made.contains(&PathBuf::from(OsStr::from_bytes(&made_of))),
            "{made:?}"
        );
    }
    let line = format!("{line} --resume");
    expect(root.path(), &line, 0, "0 of 4 files done, 4 already done");
}

#[test]
fn leftovers_of_a_killed_run_are_removed() {
    let root = folder(&[("in/big.pgm", &pgm(300, 200, 1))]);
    let args = [
        "normalize",
        "in",
        "out",
        "--format",
        "png",
        "--png",
        "small",
    ];
    let unfinished = |name: &String| name.starts_with(".gpuimg-tmp-");
    let out = root.path().join("out");
    let mut child = Command::new(binary())
        .args(args)
        .env("GPUIMG_NO_TMPFILE", "1")
        .env("GPUIMG_FAULT", "rename:big.png:1=stop")
        .current_dir(root.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    while !out.exists() || !listing(&out).iter().any(unfinished) {
        assert!(child.try_wait().expect("wait").is_none(), "it has ended");
        thread::sleep(Duration::from_millis(1));
    }
    // While it lives, its file is none of another's business.
    fs::write(root.path().join("small.pgm"), pgm(3, 2, 1)).expect("file");
    expect(root.path(), "normalize small.pgm out --resume", 0, "1 of 1");
    assert!(listing(&out).iter().any(unfinished));
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(listing(&out).iter().any(unfinished));
    let again = run(
        root.path(),
        &[&args[..], &["--resume"]].concat(),
        &[("GPUIMG_NO_TMPFILE", "1")],
    );
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(listing(&out), [JOURNAL, "big.png", "small.pgm"]);
}

/// A MetaImage or NRRD header is often a file of its own, which stays as it is when its samples change.
#[test]
fn samples_beside_their_header_were_called_unchanged() {
    let mhd = b"ObjectType = Image\nNDims = 2\nDimSize = 3 1\nElementType = MET_UCHAR\nElementDataFile = a.raw\n";
    let nhdr =
        b"NRRD0004\ntype: uchar\ndimension: 2\nsizes: 3 1\nencoding: raw\ndata file: a.raw\n\n";
    for (name, header) in [("a.mhd", &mhd[..]), ("a.nhdr", &nhdr[..])] {
        let root = folder(&[(&format!("in/{name}"), header), ("in/a.raw", b"abc")]);
        let line = "rotate 180 in out --format pnm --resume";
        expect(root.path(), line, 0, "1 of 1 file done");
        expect(root.path(), line, 0, "0 of 1 file done, 1 already done");
        fs::write(root.path().join("in/a.raw"), "xyz").expect("write");
        expect(root.path(), line, 0, "1 of 1 file done");
        let made = fs::read(root.path().join("out/a.pnm")).expect("the output");
        assert!(made.ends_with(b"zyx"), "{name}");
    }
}
