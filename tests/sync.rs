//! `--sync`: in which order the program's calls put an output, its line and its name on the disk, as
//! strace sees them.

use crate::support::batch::pgm;
use crate::support::{binary, folder, skipped};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CALLS: &str =
    "trace=fsync,fdatasync,linkat,renameat2,rename,renameat,mkdir,mkdirat,write,ftruncate";

/// The calls of a run that matter here, in the order in which they began; none where processes cannot
/// be traced, which is said.
fn calls(root: &Path, line: &str, env: &[(&str, &str)]) -> Option<Vec<String>> {
    let traced = Command::new("strace")
        .args(["-f", "-y", "-s", "4096", "-o", "calls", "-e", CALLS])
        .arg(binary())
        .args(line.split(' '))
        .current_dir(root)
        .envs(env.iter().copied())
        .stderr(Stdio::piped())
        .output();
    let said = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    match traced {
        Ok(output) if !said(&output).contains("strace: ") => {
            assert!(output.status.success(), "{line}: {}", said(&output));
            let text = fs::read(root.join("calls")).expect("calls");
            let text = String::from_utf8_lossy(&text).into_owned();
            Some(text.lines().map(String::from).collect())
        }
        _ => {
            skipped("the order of calls with --sync: no strace here, or it may not trace");
            None
        }
    }
}

/// Finds calls that contain these words, each after the one before.
fn in_order(calls: &[String], expected: &[&[&str]], what: &str) {
    let mut rest = calls.iter();
    for words in expected {
        assert!(
            rest.any(|call| words.iter().all(|word| call.contains(word))),
            "{what}: {words:?} is missing, or too early, in\n{}",
            calls.join("\n")
        );
    }
}

#[test]
fn done_was_journalled_before_the_data_were_on_the_disk() {
    for (env, unnamed) in [
        (&[][..], "/#"),
        (&[("GPUIMG_NO_TMPFILE", "1")], "/.gpuimg-tmp-"),
    ] {
        let root = folder(&[
            ("in/sub/a.pgm", &pgm(30, 20, 1)),
            ("in/b.pgm", &pgm(30, 20, 2)),
        ]);
        let line = "transpose in new/out --sync -j 1 --device cpu";
        let Some(found) = calls(root.path(), line, env) else {
            return;
        };
        let journal = "/new/out/.gpuimg-journal>";
        let named = |name: &str| {
            let name = Path::new(name).file_name().expect("a name");
            let flag = if env.is_empty() {
                ", AT_SYMLINK_FOLLOW"
            } else {
                ""
            };
            format!(">, \"{}\"{flag}", name.display())
        };
        for (name, folder) in [("b.pgm", "/new/out>"), ("sub/a.pgm", "/new/out/sub>")] {
            let line = format!("\\\"output\\\":\\\"{name}\\\"");
            let steps: [&[&str]; 6] = [
                &["ftruncate(", unnamed],
                &["fsync(", unnamed],
                &["write(", journal, &line],
                &["fdatasync(", journal],
                &[&named(name)],
                &["fsync(", folder],
            ];
            in_order(&found, &steps, line.as_str());
        }
        // Folders' own entries, before anything in them.
        let made = |folder: &str| format!("mkdir(\"{folder}\"");
        let steps: [&[&str]; 7] = [
            &[&made("new")],
            &["fsync(", &format!("{}>", root.path().display())],
            &[&made("new/out")],
            &["fsync(", "/new>"],
            // The journal's.
            &["fsync(", "/new/out>"],
            &["mkdirat(", "/new/out>, \"sub\""],
            &["fsync(", "/new/out>"],
        ];
        in_order(&found, &steps, "folders");
        // Over an existing file.
        let line = "transpose in new/out --sync -j 1 --device cpu --overwrite";
        let found = calls(root.path(), line, env).expect("traced before");
        let steps: [&[&str]; 5] = [
            &["fsync(", unnamed],
            &["write(", journal, "b.pgm"],
            &["fdatasync(", journal],
            &["rename", "/new/out>, \"b.pgm\""],
            &["fsync(", "/new/out>"],
        ];
        in_order(&found, &steps, "--overwrite");
    }
    // It is not paid for where it is not asked for.
    let root = folder(&[("in/b.pgm", &pgm(30, 20, 2))]);
    let Some(found) = calls(root.path(), "transpose in out --device cpu", &[]) else {
        return;
    };
    assert!(found.iter().any(|call| call.contains("linkat(")));
    let synced = found.iter().find(|call| call.contains("sync("));
    assert_eq!(synced, None);
}

#[test]
fn histogram_and_merge_did_not_know_sync() {
    let root = folder(&[("a.pgm", &pgm(30, 20, 1))]);
    for line in ["histogram a.pgm -o a.hist", "merge a.hist -o all.hist"] {
        let (_, output) = line.rsplit_once(' ').expect("words");
        let Some(found) = calls(root.path(), &format!("{line} --sync"), &[]) else {
            return;
        };
        let here = format!("{}>", root.path().display());
        let steps: [&[&str]; 3] = [&["fsync(", "/#"], &["linkat(", output], &["fsync(", &here]];
        in_order(&found, &steps, line);
        fs::remove_file(root.path().join(output)).expect("remove");
        let found = calls(root.path(), line, &[]).expect("traced before");
        assert!(!found.iter().any(|call| call.contains("sync(")), "{line}");
    }
}
