//! Runs that are stopped, or meet another run or a full disk; and going on where they were.

use crate::support::batch::{pgm, series, tree};
use crate::support::{Numbers, Run, binary, on_small_disk, run};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn going_on_redoes_what_has_changed() {
    let (root, expected) = series(12);
    let out = root.path().join("out");
    let go = |more: &[&str]| {
        let mut args = vec!["normalize", "--format", "png", "in", "out"];
        args.extend(more);
        run(root.path(), &args, &[])
    };
    assert_eq!(go(&[]).code, 0);
    assert!(tree(&out) == expected);
    // Without a word nothing is replaced, not even our own.
    let Run { code, stderr, .. } = go(&[]);
    assert_eq!(code, 1);
    let once = "12 outputs already exist (first: out/0/000.png): use --resume to skip";
    assert_eq!(stderr.matches("exist").count(), 1, "{stderr}");
    assert!(stderr.contains(once), "{stderr}");
    assert!(
        go(&["--resume"])
            .stderr
            .contains("0 of 12 files done, 12 already done")
    );
    // Another input, a missing output.
    fs::write(root.path().join("in/0/000.pgm"), pgm(99, 7, 3)).expect("file");
    fs::remove_file(out.join("2/002.png")).expect("remove");
    let Run { stderr, .. } = go(&["--resume"]);
    assert!(
        stderr.contains("2 of 12 files done, 10 already done"),
        "{stderr}"
    );
    let found = tree(&out);
    let same = found
        .iter()
        .filter(|(name, bytes)| expected[*name] == **bytes);
    assert_eq!(same.count(), 11);
    // Other options make other outputs.
    let Run { stderr, .. } = go(&["--resume", "--range", "0:9000"]);
    assert!(stderr.contains("12 of 12 files done"), "{stderr}");
    // What is not ours is not touched.
    let args = ["normalize", "--format", "png", "in", "new", "--resume"];
    fs::create_dir_all(root.path().join("new/0")).expect("folder");
    fs::write(root.path().join("new/0/003.png"), b"another's").expect("file");
    assert_eq!(run(root.path(), &args, &[]).code, 1);
    assert_eq!(
        fs::read(root.path().join("new/0/003.png")).expect("file"),
        b"another's"
    );
}

/// A run that hears signals, though whoever started the tests may ignore them.
fn start(root: &Path, args: &[&str]) -> Child {
    Command::new("env")
        .arg("--default-signal=INT")
        .arg(binary())
        .args(args)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs")
}

#[test]
fn killed_at_any_moment_and_gone_on_with() {
    let (root, expected) = series(60);
    let args = ["normalize", "--format", "png", "in", "out", "-j", "2"];
    let out = root.path().join("out");
    let begun = Instant::now();
    assert!(start(root.path(), &args).wait().expect("run").success());
    let whole = begun.elapsed();
    let mut numbers = Numbers::new(7);
    for _ in 0..20 {
        fs::remove_dir_all(&out).expect("remove");
        let mut child = start(root.path(), &args);
        thread::sleep(whole.mul_f64((numbers.next() >> 11) as f64 / (1u64 << 53) as f64));
        child.kill().expect("kill");
        child.wait().expect("wait");
        if out.exists() {
            for (name, bytes) in tree(&out) {
                assert!(
                    expected.get(&name) == Some(&bytes),
                    "{} is not whole",
                    name.display()
                );
            }
        }
        let mut again = args.to_vec();
        again.push("--resume");
        let Run { code, stderr, .. } = run(root.path(), &again, &[]);
        assert_eq!(code, 0, "{stderr}");
        assert!(tree(&out) == expected);
    }
}

#[test]
fn interrupted_it_leaves_whole_files_and_says_130() {
    let (root, expected) = series(60);
    // Large enough that it is under way when the signal comes.
    for i in 0..40 {
        fs::write(
            root.path().join(format!("in/big{i}.pgm")),
            pgm(1500, 1500, i),
        )
        .expect("file");
    }
    let child = start(root.path(), &["normalize", "--format", "png", "in", "out"]);
    let out = root.path().join("out");
    while !out.exists() || tree(&out).len() < 5 {
        thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .expect("kill")
            .success()
    );
    let output = child.wait_with_output().expect("wait");
    assert_eq!(output.status.code(), Some(130));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("interrupted"), "{stderr}");
    let last = stderr.lines().last().unwrap_or_default();
    assert!(
        last.contains(" of 100 files done; run the same command with --resume to continue"),
        "{stderr}"
    );
    let found = tree(&out);
    assert!(found.len() < 100);
    for (name, bytes) in found {
        if let Some(whole) = expected.get(&name) {
            assert!(*whole == bytes, "{} is not whole", name.display());
        } else {
            let name = name.to_string_lossy().into_owned();
            assert!(name.starts_with("big"), "{name} was left behind");
        }
    }
}

#[test]
fn two_runs_into_one_folder() {
    let (root, expected) = series(60);
    let args = ["normalize", "--format", "png", "in", "out"];
    let children = [start(root.path(), &args), start(root.path(), &args)];
    let done: usize = children
        .map(|child| {
            let output = child.wait_with_output().expect("wait");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let count = stderr
                .split("gpuimg: ")
                .last()
                .expect("summary")
                .split(' ')
                .next();
            count.expect("a number").parse::<usize>().expect(&stderr)
        })
        .iter()
        .sum();
    assert_eq!(done, 60, "each file is done once");
    assert!(tree(&root.path().join("out")) == expected);
}

#[test]
fn what_is_damaged_is_not_done() {
    let (root, expected) = series(4);
    let damaged = root.path().join("in/2/002.pgm");
    fs::write(&damaged, &pgm(160, 120, 2)[..9000]).expect("file");
    let args = ["normalize", "--format", "png", "--keep-going", "in", "out"];
    let go = |more: &[&str]| run(root.path(), &[&args, more].concat(), &[]);
    let named =
        "gpuimg: in/2/002.pgm is damaged; missing parts are filled with 0: truncated at byte 9000";
    let Run { code, stderr, .. } = go(&["--report", "r.jsonl"]);
    assert_eq!(code, 1);
    assert!(stderr.contains(named), "{stderr}");
    let report = fs::read_to_string(root.path().join("r.jsonl")).expect("report");
    let statuses = |status: &str| report.matches(&format!("\"status\":\"{status}\"")).count();
    assert_eq!((statuses("done"), statuses("damaged")), (3, 1), "{report}");
    // As long as it is damaged, every run does, names and counts it.
    for _ in 0..2 {
        let Run { code, stderr, .. } = go(&["--resume"]);
        assert_eq!(code, 1);
        assert!(stderr.contains(named), "{stderr}");
        let summary = "0 of 4 files done, 3 already done, 1 failed";
        assert!(stderr.contains(summary), "{stderr}");
    }
    fs::write(&damaged, pgm(160, 120, 2)).expect("file");
    let Run { code, stderr, .. } = go(&["--resume"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 of 4 files done, 3 already done"));
    assert!(tree(&root.path().join("out")) == expected);
}

#[test]
fn a_disk_that_gets_full() {
    let (root, expected) = series(60);
    let script = "\"$0\" normalize --format png in small/out; \
                  status=$?; cp -r small/out kept; exit $status";
    let what = "the disk that gets full";
    let Some(Run { code, stderr, .. }) = on_small_disk(root.path(), 400, script, what) else {
        return;
    };
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("no space left on the disk"), "{stderr}");
    let kept = tree(&root.path().join("kept"));
    assert!(!kept.is_empty() && kept.len() < 60);
    assert!(kept.iter().all(|(name, bytes)| expected[name] == *bytes));
}
