//! Power cuts with `--sync`. A run is recorded, call by call, and every state that a power cut may leave after is made
//! from the record: at each moment, with all that was not synced, without, and with parts of it (`power/disk.rs`). In
//! every state the results that have their names are whole, no old result is lost, and `--resume` completes the rest;
//! when the run has ended, nothing can be lost.

mod disk;
mod trace;

use crate::support::batch::{JOURNAL, pgm, tree};
use crate::support::{folder, run, skipped};
use disk::{Disk, State};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use trace::traced;

/// A run whose results a power cut must not damage.
struct Case {
    line: &'static str,
    env: &'static [(&'static str, &'static str)],
    /// Runs before it, whose results are there.
    before: &'static [&'static str],
}

const NAMED: &[(&str, &str)] = &[("GPUIMG_NO_TMPFILE", "1")];

const CASES: [Case; 5] = [
    Case {
        line: "rotate 90 in new/out --sync",
        env: &[],
        before: &[],
    },
    Case {
        line: "rotate 90 in new/out --sync",
        env: NAMED,
        before: &[],
    },
    Case {
        line: "rotate 90 in out --sync --overwrite",
        env: &[],
        before: &["transpose in out"],
    },
    Case {
        line: "rotate 90 in out --sync --overwrite",
        env: NAMED,
        before: &["transpose in out"],
    },
    Case {
        line: "rotate 90 in in --sync --overwrite",
        env: &[],
        before: &[],
    },
];

fn inputs() -> tempfile::TempDir {
    folder(&[
        ("in/sub/a.pgm", &pgm(13, 7, 1)),
        ("in/b.pgm", &pgm(11, 5, 2)),
        ("in/c.pgm", &pgm(9, 8, 3)),
    ])
}

/// What went wrong after a power cut, of all states.
#[derive(Debug, Default)]
struct Found {
    moments: usize,
    states: usize,
    wrong: Vec<String>,
}

impl Case {
    fn find(&self, left_out: &[&str]) -> Option<Found> {
        let folder = inputs();
        let root = folder.path();
        for before in self.before {
            let args: Vec<&str> = before.split(' ').collect();
            assert_eq!(run(root, &args, &[]).code, 0, "{before}");
        }
        let mut disk = Disk::of(root);
        let old = tree(root);
        let (code, calls) = traced(root, self.line, self.env, left_out)?;
        assert_eq!(code, 0, "{}", self.line);
        let new = tree(root);
        for (path, bytes) in &new {
            disk.remember_time(&root.join(path), bytes);
        }
        let mut found = Found::default();
        let mut seen = HashSet::new();
        let mut check = |disk: &Disk, ended: bool, found: &mut Found| {
            found.moments += 1;
            for state in disk.states() {
                self.names(&state, (&old, &new), ended, found);
                let key = (hash(&state), ended);
                if seen.insert(key) && found.wrong.is_empty() {
                    found.states += 1;
                    self.resume(&state, &new, &disk.times, found);
                }
            }
        };
        for call in &calls {
            if disk.act(call) {
                check(&disk, false, &mut found);
            }
        }
        check(&disk, true, &mut found);
        Some(found)
    }

    /// Checks that each file is an old one or a new one, that none is missing that was there, and that at the end all
    /// are new.
    fn names(&self, state: &State, (old, new): (&State, &State), ended: bool, found: &mut Found) {
        for (path, bytes) in state {
            let name = path.to_string_lossy();
            let is_ours = name.contains(JOURNAL) || name.contains(".gpuimg-tmp-");
            let known = [old, new]
                .iter()
                .any(|files| files.get(path) == Some(bytes));
            if !is_ours && !known {
                found.wrong.push(format!("{name} is damaged"));
            }
        }
        let needed = if ended { new } else { old };
        for (path, bytes) in needed {
            match state.get(path) {
                None => found.wrong.push(format!("{} is lost", path.display())),
                Some(there) if ended && there != bytes => {
                    found
                        .wrong
                        .push(format!("{} is the old one at the end", path.display()));
                }
                Some(_) => {}
            }
        }
    }

    /// Continues the run where the power cut left it.
    fn resume(
        &self,
        state: &State,
        new: &State,
        times: &HashMap<Vec<u8>, SystemTime>,
        found: &mut Found,
    ) {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        for (path, bytes) in state {
            write(&root.join(path), bytes, times.get(bytes));
        }
        let mut args: Vec<&str> = self
            .line
            .split(' ')
            .filter(|word| *word != "--sync")
            .collect();
        if !args.contains(&"--watch") {
            args.push("--resume");
        }
        let resumed = run(root, &args, self.env);
        let mut there: BTreeMap<PathBuf, Vec<u8>> = tree(root);
        // One that another process may still write is removed when it is an hour old.
        there.retain(|path, _| !path.to_string_lossy().contains(".gpuimg-tmp-"));
        if resumed.code != 0 || there != *new {
            let names: Vec<_> = state
                .iter()
                .map(|(path, bytes)| (path, bytes.len()))
                .collect();
            found
                .wrong
                .push(format!("cannot go on: {} {names:?}", resumed.stderr));
        }
    }
}

fn write(path: &Path, bytes: &[u8], time: Option<&SystemTime>) {
    fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    fs::write(path, bytes).expect("file");
    if let Some(time) = time {
        let file = File::options().write(true).open(path).expect("file");
        file.set_modified(*time).expect("time");
    }
}

fn hash(state: &State) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// Checks a case; says loudly where nothing can be checked.
fn check(case: &Case) {
    let Some(found) = case.find(&[]) else {
        skipped("power cuts: no strace here, or it may not trace");
        return;
    };
    let Found {
        moments,
        states,
        wrong,
    } = found;
    let what = format!("{} {:?}", case.line, case.env);
    assert!(wrong.is_empty(), "{what}: {wrong:#?}");
    assert!(
        moments > 7 && states > 3,
        "{what}: {states} states at {moments} moments"
    );
}

#[test]
fn nothing_that_is_done_is_lost_in_a_power_cut() {
    CASES.iter().for_each(check);
}

/// After a power cut there were neither its old lines nor the new ones, and the results were somebody else's.
#[test]
fn a_journal_that_a_watch_shortened_was_not_synced() {
    check(&Case {
        line: "normalize in out --sync --watch --settle 0.01 --idle 0",
        env: &[],
        before: &["normalize in out", "normalize in out --overwrite"],
    });
}

/// What is found is found: each kind of sync that is left out loses something.
#[test]
fn a_sync_that_is_left_out_is_found() {
    for (left_out, words) in [
        (&["fsync"][..], "is damaged"),
        (&["fdatasync"], "cannot go on"),
        (&["fsync", "fdatasync"], "is damaged"),
    ] {
        let Some(found) = CASES[0].find(left_out) else {
            return;
        };
        let said = found.wrong.iter().any(|wrong| wrong.contains(words));
        assert!(said, "{left_out:?}: {:?}", found.wrong);
    }
}
