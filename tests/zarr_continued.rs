//! OME-Zarr stores that a killed run has begun and another continues, and those that several tasks write together.

use crate::support::axes::{HYPERSTACK, file};
use crate::support::batch::{JOURNAL, pgm, tree};
use crate::support::stopped::{kill_at, stop_at};
use crate::support::{Run, folder, listing, placed, run, run_on_cpu};
use gpuimg::internals::os::Digest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::thread;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A change of an unfinished store, and its name.
type Damage = (&'static str, fn(&Path));

/// Twelve pages of 3 × 2 pixels in three levels: 9 shards a page.
const OPTIONS: &str = "in.tif out.zarr --zarr-chunk 1 --zarr-shard 1 --zarr-levels 3 -q";

fn convert(more: &str) -> Vec<String> {
    let line = format!("convert {OPTIONS} {more}");
    line.split_whitespace().map(String::from).collect()
}

fn gpuimg(root: &Path, more: &str) -> Run {
    let args = convert(more);
    run_on_cpu(root, &args.iter().map(|it| &**it).collect::<Vec<_>>())
}

/// Runs the conversion with these options; it succeeds without a word.
fn done(root: &Path, more: &str) {
    let Run { code, stderr, .. } = gpuimg(root, more);
    assert_eq!((code, &*stderr), (0, ""), "{more}");
}

fn killed(root: &Path, more: &str, fault: &str) -> bool {
    let args = convert(more);
    let args: Vec<&str> = args.iter().map(|it| &**it).collect();
    kill_at(root, &args, fault)
}

/// Twelve pages in two channels with names, so that the store has the ranges of their samples.
fn input() -> Vec<u8> {
    let pixels =
        r#"DimensionOrder="XYCZT" SizeX="3" SizeY="2" SizeC="2" SizeZ="3" SizeT="2" Type="uint16""#;
    let channels =
        r#"<Channel ID="Channel:0:0" Name="DAPI"/><Channel ID="Channel:0:1" Name="GFP"/>"#;
    let xmlns = "http://www.openmicroscopy.org/Schemas/OME/2016-06";
    file(
        12,
        &format!(
            r#"<OME xmlns="{xmlns}"><Image ID="Image:0"><Pixels ID="Pixels:0" {pixels}>{channels}<TiffData/></Pixels></Image></OME>"#
        ),
    )
}

/// The store of an input that one run writes without interruption.
fn whole(input: &[u8], more: &str) -> Files {
    let place = folder(&[("in.tif", input)]);
    done(place.path(), more);
    tree(&place.path().join("out.zarr"))
}

/// Checks the store, and that nothing else is left.
fn check(root: &Path, expected: &Files, what: &str) {
    let names = listing(root);
    let names: Vec<&String> = names
        .iter()
        .filter(|name| !name.starts_with(JOURNAL))
        .collect();
    assert_eq!(names, ["in.tif", "out.zarr"], "{what}");
    assert!(tree(&root.join("out.zarr")) == *expected, "{what}");
}

/// When each of these files was written.
fn times(store: &Path, names: impl IntoIterator<Item = PathBuf>) -> BTreeMap<PathBuf, i128> {
    let time = |name: PathBuf| {
        let about = fs::metadata(store.join(&name)).expect("a file");
        let nanos = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
        (name, nanos)
    };
    names.into_iter().map(time).collect()
}

/// The files that the record of a run has.
fn recorded(store: &Path) -> Vec<PathBuf> {
    let record = fs::read_to_string(store.join(".gpuimg-record/1-of-1")).unwrap_or_default();
    let lines = record.lines().flat_map(serde_json::from_str::<Value>);
    let names = lines.filter_map(|line| Some(line["file"]["name"].as_str()?.into()));
    names.collect()
}

/// Wherever a run is killed, the next one makes the same store, and writes no file again that was finished.
#[test]
fn a_killed_run_is_continued() {
    let input = input();
    let expected = whole(&input, "");
    let (mut kills, mut kept) = (0, 0);
    for (kind, step) in [
        ("write", 10),
        ("close", 20),
        ("create", 30),
        ("mkdir", 20),
        ("unlink", 1),
        ("rename", 1),
    ] {
        for number in (1..).step_by(step) {
            let place = folder(&[("in.tif", &input)]);
            let (root, fault) = (place.path(), format!("{kind}:{number}"));
            if !killed(root, "--resume", &fault) {
                break;
            }
            kills += 1;
            let partial = root.join("out.zarr.partial");
            let before = times(&partial, recorded(&partial));
            done(root, "--resume");
            check(root, &expected, &fault);
            let after = times(&root.join("out.zarr"), before.keys().cloned());
            assert_eq!(before, after, "{fault}");
            kept += before.len();
        }
    }
    assert!(kills > 30 && kept > 1000, "{kills} kills, {kept} files");
}

/// A run that was killed twice, and one that was killed without `--resume`.
#[test]
fn a_run_is_continued_more_than_once() {
    let input = input();
    let expected = whole(&input, "");
    let place = folder(&[("in.tif", &input)]);
    let root = place.path();
    for (more, number) in [("", 60), ("--resume", 20), ("--resume", 30)] {
        assert!(killed(root, more, &format!("write:/c/:{number}")));
    }
    let record = fs::read_to_string(root.join("out.zarr.partial/.gpuimg-record/1-of-1"));
    let pages = record.expect("a record").matches("\"page\":{").count();
    assert!(pages > 6, "{pages}");
    done(root, "--resume");
    check(root, &expected, "killed three times");
    let store = root.join("out.zarr");
    let before = times(&store, expected.keys().cloned());
    done(root, "--resume");
    assert_eq!(before, times(&store, expected.keys().cloned()));
}

/// What is not what the record says is written again.
#[test]
fn damaged_files_are_not_believed() {
    let input = input();
    let expected = whole(&input, "");
    let damage: [Damage; 4] = [
        ("a truncated shard", |root| {
            let path = root.join("0/c/0/0/0/0/0");
            let bytes = fs::read(&path).expect("a shard");
            fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
        }),
        ("a changed shard", |root| {
            let path = root.join("1/c/0/0/1/0/0");
            let mut bytes = fs::read(&path).expect("a shard");
            *bytes.last_mut().expect("bytes") ^= 1;
            fs::write(&path, bytes).expect("written");
        }),
        ("a missing shard", |root| {
            fs::remove_file(root.join("2/c/0/0/0/0/0")).expect("removed");
        }),
        ("a record without a line", |root| {
            let path = root.join(".gpuimg-record/1-of-1");
            let text = fs::read_to_string(&path).expect("a record");
            let lines: Vec<&str> = text.lines().collect();
            let third = lines.iter().position(|line| line.contains("\"file\""));
            let kept = lines.iter().enumerate();
            let kept = kept.filter(|(index, _)| Some(*index) != third);
            let kept: Vec<&str> = kept.map(|(_, line)| *line).collect();
            fs::write(&path, kept.join("\n")).expect("written");
        }),
    ];
    for (what, damage) in damage {
        let place = folder(&[("in.tif", &input)]);
        let root = place.path();
        assert!(killed(root, "--resume", "write:/c/:60"));
        damage(&root.join("out.zarr.partial"));
        done(root, "--resume");
        check(root, &expected, what);
    }
}

/// What was begun of another input, or with other options, is begun anew.
#[test]
fn stores_of_other_inputs_and_options_are_not_mixed() {
    let (input, other) = (
        input(),
        file(12, &HYPERSTACK.replace("spacing=0.5", "spacing=2.5")),
    );
    let place = folder(&[("in.tif", &input)]);
    let root = place.path();
    assert!(killed(root, "--resume", "write:/c/:60"));
    fs::write(root.join("in.tif"), &other).expect("written");
    done(root, "--resume");
    check(root, &whole(&other, ""), "another input");
    for more in ["--zarr none", "--fit 2", "--pages 2-7"] {
        fs::remove_dir_all(root.join("out.zarr")).expect("removed");
        assert!(killed(root, "--resume", "write:/c/:60"), "{more}");
        done(root, &format!("--resume {more}"));
        check(root, &whole(&other, more), more);
    }
    // A leftover without `--resume` is removed.
    fs::remove_dir_all(root.join("out.zarr")).expect("removed");
    assert!(killed(root, "--resume", "write:/c/:60"));
    done(root, "");
    check(root, &whole(&other, ""), "without --resume");
}

/// With `--resume`, an error and a signal keep what is finished, and nothing if nothing is.
#[test]
fn errors_and_signals_keep_what_is_finished() {
    let input = input();
    let expected = whole(&input, "");
    let place = folder(&[("in.tif", &input)]);
    let root = place.path();
    let env = |fault| [("GPUIMG_DEVICE", "cpu"), ("GPUIMG_FAULT", fault)];
    let args = convert("--resume");
    let args: Vec<&str> = args.iter().map(|it| &**it).collect();
    let full = run(root, &args, &env("write:/c/:1+=ENOSPC"));
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert_eq!(listing(root), [JOURNAL, "in.tif"]);
    let full = run(root, &args, &env("write:/c/:60+=ENOSPC"));
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert!(full.stderr.contains("no space left"), "{}", full.stderr);
    assert_eq!(listing(root), [JOURNAL, "in.tif", "out.zarr.partial"]);
    let mut child = stop_at(root, &args, "write:/c/:30").expect("it writes more");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
    kill_process(Pid::from_child(&child), Signal::CONT).expect("a signal");
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    assert_eq!(listing(root), [JOURNAL, "in.tif", "out.zarr.partial"]);
    assert_eq!(recorded(&root.join("out.zarr.partial")).len(), 59 + 29);
    done(root, "--resume");
    check(root, &expected, "after an error and a signal");
}

/// Several tasks, whatever their order and number, write the store of one run.
#[test]
fn tasks_write_one_store() {
    let input = input();
    let expected = whole(&input, "");
    let described = String::from_utf8_lossy(&expected[Path::new("zarr.json")]);
    assert!(described.contains("\"window\""), "{described}");
    for (count, orders) in [
        (1, vec![vec![1]]),
        (4, vec![vec![1, 2, 3, 4], vec![4, 2, 3, 1]]),
        (13, vec![(1..=13).rev().collect()]),
    ] {
        for order in orders {
            let place = folder(&[("in.tif", &input)]);
            let root = place.path();
            for (place, task) in order.iter().enumerate() {
                let is_last = place + 1 == order.len();
                done(root, &format!("--shard {task}/{count}"));
                assert_eq!(root.join("out.zarr").exists(), is_last, "{order:?}");
            }
            check(root, &expected, &format!("{order:?}"));
            // A task that is run again has nothing to do.
            done(root, &format!("--shard {}/{count} --resume", order[0]));
            check(root, &expected, "again");
        }
    }
}

#[test]
fn tasks_write_one_store_at_the_same_time() {
    let input = input();
    let expected = whole(&input, "");
    for round in 0..10 {
        let place = folder(&[("in.tif", &input)]);
        thread::scope(|scope| {
            for task in 1..=4 {
                let root = place.path();
                scope.spawn(move || done(root, &format!("--shard {task}/4")));
            }
        });
        check(place.path(), &expected, &format!("round {round}"));
    }
}

/// Four tasks at the same time in place of an unfinished store of other options.
#[test]
fn tasks_replace_what_is_made_of_something_else() {
    let input = input();
    let expected = whole(&input, "");
    for _ in 0..5 {
        let place = folder(&[("in.tif", &input)]);
        assert!(killed(
            place.path(),
            "--zarr none --shard 2/4",
            "write:/c/:9"
        ));
        thread::scope(|scope| {
            for task in 1..=4 {
                let root = place.path();
                scope.spawn(move || done(root, &format!("--shard {task}/4")));
            }
        });
        check(place.path(), &expected, "of other options");
    }
}

/// A task that was killed is repeated, before or after the others; nobody else writes its part meanwhile.
#[test]
fn a_killed_task_is_repeated() {
    let input = input();
    let expected = whole(&input, "");
    let place = folder(&[("in.tif", &input)]);
    let root = place.path();
    let args = convert("--shard 3/4");
    let args: Vec<&str> = args.iter().map(|it| &**it).collect();
    let mut child = stop_at(root, &args, "write:/c/:9").expect("it writes more");
    for task in [1, 4, 2] {
        done(root, &format!("--shard {task}/4"));
    }
    let twice = gpuimg(root, "--shard 3/4");
    assert_eq!(twice.code, 1);
    let words = "out.zarr.partial: another run is writing part 3/4 of it";
    assert!(twice.stderr.contains(words), "{}", twice.stderr);
    child.kill().expect("killed");
    assert_eq!(child.wait().expect("it ends").signal(), Some(9));
    // Another task that is run again does not complete the store.
    done(root, "--shard 1/4");
    assert!(!root.join("out.zarr").exists());
    done(root, "--shard 3/4");
    check(root, &expected, "repeated");
}

/// The task that finishes last does not believe damaged files of the others.
#[test]
fn damaged_files_of_other_tasks_are_named() {
    let input = input();
    let expected = whole(&input, "");
    let place = folder(&[("in.tif", &input)]);
    let root = place.path();
    done(root, "--shard 1/2");
    fs::write(root.join("out.zarr.partial/0/c/0/0/0/0/0"), "x").expect("written");
    let refused = gpuimg(root, "--shard 2/2");
    assert_eq!(refused.code, 1);
    let words = "files of part 1/2 are damaged: run that part again";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    done(root, "--shard 1/2");
    check(root, &expected, "after the part was run again");
}

#[test]
fn what_tasks_cannot_write_together_is_refused() {
    let place = folder(&[("in.tif", &input())]);
    let root = place.path();
    done(root, "");
    for (code, line, words) in [
        (
            1,
            "convert out.zarr b.zarr --shard 1/2",
            "cannot write b.zarr: several tasks cannot write it, because its input is a stream or a Zarr store: remove --shard",
        ),
        (
            2,
            "convert in.tif b.zarr --shard 1/2 --keep-going",
            "--keep-going cannot be combined with --shard for one Zarr store",
        ),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let refused = run_on_cpu(root, &args);
        assert_eq!(refused.code, code, "{line}");
        assert!(refused.stderr.contains(words), "{line}: {}", refused.stderr);
        assert!(!root.join("b.zarr").exists() && !root.join("b.zarr.partial").exists());
    }
    // A store as input has no single file whose state tells that nothing has changed: all is written again.
    let args = ["convert", "out.zarr", "b.zarr", "--resume", "-q"];
    assert!(kill_at(root, &args, "write:b.zarr.partial/0:2"));
    let Run { code, stderr, .. } = run_on_cpu(root, &args);
    assert_eq!((code, &*stderr), (0, ""));
    assert!(root.join("b.zarr").exists() && !root.join("b.zarr.partial").exists());
}

/// The pages of a folder of images, in one store.
#[test]
fn a_stack_of_files_is_continued_and_shared() {
    let files: Vec<(String, Vec<u8>)> = (0..6)
        .map(|i| (format!("in/{i}.pgm"), pgm(7, 5, i)))
        .collect();
    let place = placed(&files);
    let root = place.path();
    let line = |more: &str| format!("convert in out.zarr --stack --zarr-chunk 2 -q{more}");
    let go = |more: &str| {
        let line = line(more);
        let Run { code, stderr, .. } = run_on_cpu(root, &line.split(' ').collect::<Vec<_>>());
        assert_eq!((code, &*stderr), (0, ""), "{more}");
    };
    go("");
    let expected = tree(&root.join("out.zarr"));
    let check_anew = |what: &str| {
        assert!(tree(&root.join("out.zarr")) == expected, "{what}");
        assert_eq!(listing(root), ["in", "out.zarr"], "{what}");
        fs::remove_dir_all(root.join("out.zarr")).expect("removed");
    };
    check_anew("whole");
    for number in [1, 30, 70] {
        let line = line(" --resume");
        let args: Vec<&str> = line.split(' ').collect();
        assert!(kill_at(root, &args, &format!("write:/c/:{number}")));
        let partial = root.join("out.zarr.partial");
        let before = times(&partial, recorded(&partial));
        assert_eq!(before.len(), number - 1);
        go(" --resume");
        assert_eq!(
            before,
            times(&root.join("out.zarr"), before.keys().cloned())
        );
        check_anew("continued");
    }
    for task in [3, 1, 2] {
        go(&format!(" --shard {task}/3"));
    }
    check_anew("of three tasks");
    // Another order of the files is another store.
    let line = line(" --resume");
    let args: Vec<&str> = line.split(' ').collect();
    assert!(kill_at(root, &args, "write:/c/:70"));
    fs::rename(root.join("in/0.pgm"), root.join("in/9.pgm")).expect("renamed");
    go(" --resume");
    let other = tree(&root.join("out.zarr"));
    fs::remove_dir_all(root.join("out.zarr")).expect("removed");
    go("");
    assert!(tree(&root.join("out.zarr")) == other && other != expected);
}

/// The digest of bytes that are written is that of the file that is read.
#[test]
fn digests_of_content_are_those_of_files() {
    for length in [0, 1, 16384, 16385, 300_000] {
        let bytes: Vec<u8> = (0..length)
            .map(|at: u32| (at.wrapping_mul(at) >> 7) as u8)
            .collect();
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, &bytes).expect("written");
        let read = Digest::of_file(file.as_file(), bytes.len() as u64, file.path());
        assert_eq!(read.expect("read"), Digest::of_content(&bytes), "{length}");
    }
}
