#!/usr/bin/env python3
"""Runs the concurrent code under thousands of schedules, with shuttle's random and PCT schedulers, and shows that it finds bugs: in a
copy of the source a bug is planted in each piece, and a law of that piece must fail.

  tests/schedules.py             the laws, then the planted bugs
  tests/schedules.py laws        the laws alone; GPUIMG_SCHEDULES=50 for 50 times as many schedules
  tests/schedules.py planted     the planted bugs alone

A law that fails prints the schedule that led to it; GPUIMG_SCHEDULE='...' and the test's name run that one again:

  GPUIMG_SCHEDULE=9102... cargo test --features schedules --lib LAW
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What a copy needs to be built.
SOURCES = ["Cargo.toml", "Cargo.lock", "build.rs", "clippy.toml", "tests/main.rs", "src", "kernels/compiled", "packaging", "benches", "examples", "docs/schemas"]

# A bug in each piece: what it is, the file, the right text, the wrong one, and the law that must find it.
PLANTED = [
    (
        "a wake-up goes to one waiter, perhaps to one whose part is still too large",
        "src/os/memory_budget.rs",
        "self.budget.given_back.notify_all();",
        "self.budget.given_back.notify_one();",
        "os::memory_budget::schedules::who_fits_is_not_kept_waiting_by_who_does_not",
    ),
    (
        "a place is announced before it is free",
        "src/gpu/slots.rs",
        "let mut free = self.0.free.lock().unwrap_or_else(PoisonError::into_inner);\n        *free += 1;\n        self.0.freed.notify_one();",
        "self.0.freed.notify_one();\n        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;",
        "gpu::slots::schedules::no_slot_is_given_twice_and_none_is_lost",
    ),
    (
        "looking and taking are two steps",
        "src/gpu/driver/budget.rs",
        """        let less = |left: usize| left.checked_sub(bytes);
        (self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less))
        .is_ok()""",
        """        let enough = self.left.load(Ordering::Relaxed) >= bytes;
        if enough {
            self.left.fetch_sub(bytes, Ordering::Relaxed);
        }
        enough""",
        "gpu::driver::budget::schedules::no_byte_of_the_device_is_given_twice",
    ),
    (
        "a worker that fails wakes nobody",
        "src/formats/ordered.rs",
        "self.0.lock().over = true;\n        self.0.moved.notify_all();",
        "self.0.lock().over = true;",
        "formats::ordered::schedules::a_failure_wakes_everyone",
    ),
    (
        "a part is taken before there are buffers for it",
        "src/deflate/inflate/parallel.rs",
        "let waiting = idle.lock().map_err(poisoned)?;",
        """let mut early = parts.lock().map_err(poisoned)?.take(&mut PartBuffers::default())?;
        let waiting = idle.lock().map_err(poisoned)?;""",
        "deflate::inflate::parallel::schedules::parts_are_joined_in_order",
    ),
    (
        "(the same)",
        "src/deflate/inflate/parallel.rs",
        "match parts.lock().map_err(poisoned)?.take(&mut buffers)? {",
        "match early.take().map_or_else(|| parts.lock().map_err(poisoned)?.take(&mut buffers), |job| Ok(Some(job)))? {",
        "deflate::inflate::parallel::schedules::parts_are_joined_in_order",
    ),
    (
        "the next number is read and written in two steps",
        "src/batch/workers.rs",
        "move || match taken.fetch_add(1, Ordering::Relaxed) {\n        number if number < count",
        """move || match {
        let number = taken.load(Ordering::Relaxed);
        taken.store(number + 1, Ordering::Relaxed);
        number
    } {
        number if number < count""",
        "batch::workers::schedules::each_item_is_done_once",
    ),
    (
        "a line is written outside the lock, perhaps to a journal that has been replaced",
        "src/batch/journal.rs",
        """        let mut pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep_in_place(&mut pen)""",
        """        let mut file = {
            let pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
            pen.file.try_clone()?
        };
        file.write_all(format!("{line}\\n").as_bytes())?;
        let line = "";
        let mut pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep_in_place(&mut pen)""",
        "batch::journal::schedules::no_line_is_lost_while_the_journal_is_shortened",
    ),
    (
        "one worker is woken for a file, perhaps one that leaves it to the first",
        "src/batch/watch/queue.rs",
        "self.state().push(item, came);\n        self.changed.notify_all();",
        "self.state().push(item, came);\n        self.changed.notify_one();",
        "batch::watch::queue::schedules::a_file_that_comes_alone_is_not_left",
    ),
    (
        "the end of work on a refused file wakes nobody, as once happened",
        "src/batch/watch/queue.rs",
        "            drop(state);\n            self.changed.notify_all();\n            return true;",
        "            return true;",
        "batch::watch::queue::schedules::each_file_is_taken_once_and_no_wake_up_is_lost",
    ),
]


def laws(folder, **environment):
    """The outcome of each law, by its name, of the source in a folder."""
    command = ["cargo", "test", "--quiet", "--release", "--features", "schedules", "--lib", "--", "schedules::", "--format=pretty"]
    environment = os.environ | {"RUST_BACKTRACE": "0", "CARGO_TARGET_DIR": str(target())} | environment
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
    outcomes = dict(re.findall(r"^test (\S+::schedules::\S+) \.\.\. (ok|FAILED)$", run.stdout, re.M))
    if not outcomes:
        sys.exit(f"schedules: nothing was run\n{run.stdout}{run.stderr}")
    return outcomes, run.stdout


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def all_hold():
    outcomes, text = laws(ROOT)
    failed = [law for law, outcome in outcomes.items() if outcome != "ok"]
    if failed:
        sys.exit(f"{text}\nschedules: {len(failed)} of {len(outcomes)} laws do not hold: {', '.join(failed)}")
    print(f"schedules: {len(outcomes)} laws hold")


def bugs_are_found():
    with tempfile.TemporaryDirectory() as folder:
        for name in SOURCES:
            source, copy = ROOT / name, Path(folder, name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
        for what, name, right, wrong, _ in PLANTED:
            path = Path(folder, name)
            text = path.read_text()
            if text.count(right) != 1:
                sys.exit(f"schedules: {name} has changed: no place for the bug that {what}")
            path.write_text(text.replace(right, wrong))
        outcomes, _ = laws(folder)
    for what, name, _, _, law in PLANTED:
        if law not in outcomes:
            sys.exit(f"schedules: no law {law}")
        if outcomes[law] == "ok":
            sys.exit(f"schedules: {law} did not find this bug in {name}: {what}")
        print(f"found: {name}: {what}")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["laws", "planted"]
    if "laws" in wanted:
        all_hold()
    if "planted" in wanted:
        bugs_are_found()
