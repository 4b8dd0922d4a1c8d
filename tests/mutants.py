#!/usr/bin/env python3
"""Changes the source in one place at a time, and runs tests that should notice: a change that none notices is named, and fails this
script. cargo-mutants lists the changes; all of them are compiled at once, in a copy of the source, and an environment variable
chooses one, so that a mutant costs a run of some tests and no build.

  tests/mutants.py FILE...       some files, of those that SUITES names
  tests/mutants.py               all of them
  MUTANTS=100 tests/mutants.py   at most so many of each file, evenly spread

Needs cargo-mutants (cargo install cargo-mutants --locked). What a survivor may be is explained in docs/PROOF.md.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The tests that are to notice a change: filters of the unit tests, and of tests/main.rs.
OPS = (["ops::"], ["devices::", "laws::", "rounding::", "bands::"])
SUITES = {
    "src/ops/extremes.rs": OPS,
    "src/ops/sum.rs": (["ops::"], ["devices::", "laws::", "records::", "wide::"]),
    "src/ops/normalize.rs": (["ops::"], ["devices::", "laws::", "rounding::", "ranges::", "stacks::", "previews::", "wide::"]),
    "src/ops/normalize/lanes.rs": OPS,
    "src/ops/symmetry.rs": OPS,
    "src/ops/symmetry/cpu.rs": OPS,
    "src/ops/histogram.rs": (["ops::"], ["devices::", "laws::", "ranges::", "series::"]),
    "src/codec/pnm.rs": (["codec::pnm"], ["pnm::", "formats::"]),
    "src/codec/pnm/plain.rs": (["codec::pnm"], ["pnm::", "formats::"]),
    "src/batch/journal.rs": (["batch::journal"], ["journal::", "resume::"]),
    "src/batch/journal/history.rs": (["batch::journal"], ["journal::", "resume::"]),
    "src/files/target.rs": (["files::"], ["inputs::", "sync::", "command::"]),
    "src/metadata.rs": (["metadata::"], ["metadata::", "untrue::", "previews::", "formats::"]),
    "src/memory_budget.rs": (["memory_budget::"], ["limits::"]),
}
# A run that takes so many times as long as without a change, and more seconds than these, hangs, which is noticed.
PATIENCE = 6, 20
SWITCH = """
/// The change that this run makes; 0 for none.
pub(crate) fn mutant() -> u32 {
    static MUTANT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *MUTANT.get_or_init(|| std::env::var("MUTANT").map_or(0, |it| it.parse().unwrap_or(0)))
}
"""


def mutants_of(files):
    command = ["cargo", "mutants", "--list", "--json", *(arg for file in files for arg in ("--file", file))]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"mutants: {run.stderr}")
    most = int(os.environ.get("MUTANTS", "1000000"))
    # A function that returns `impl Trait` has one type, and one body.
    found = [it for it in json.loads(run.stdout) if it.get("function") and "impl " not in it["function"]["return_type"]]
    each = [[it for it in found if it["file"] == file] for file in files]
    return [it for inside in each for it in inside[:: max(1, -(-len(inside) // most))]]


def offset(starts, place):
    return starts[place["line"] - 1] + place["column"] - 1


def rewritten(text, mutants):
    """The source with every function's bodies: its own, and one for each mutant."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    functions = defaultdict(list)
    for mutant in mutants:
        span = mutant["function"]["span"]
        functions[offset(starts, span["start"]), offset(starts, span["end"])].append(mutant)
    for (start, end), inside in sorted(functions.items(), reverse=True):
        # The body starts at the first brace outside of brackets.
        depth, body = 0, None
        for at in range(start, end):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
            if text[at] == "{" and depth == 0:
                body = at
                break
        if body is None or re.search(r"\bconst fn\b", text[start:body]):
            continue
        arms = []
        for mutant in inside:
            a, b = offset(starts, mutant["span"]["start"]), offset(starts, mutant["span"]["end"])
            if a <= body or b >= end:
                continue
            changed = text[body:a] + mutant["replacement"] + text[b:end]
            arms.append(f"{mutant['number']} => // MUTANT {mutant['number']}\n{changed}\n")
        if arms:
            whole = "{ match crate::mutant() {\n" + "".join(arms) + f"_ => // MUTANT 0\n{text[body:end]}\n" + "} }"
            text = text[:body] + whole + text[end:]
    return text


def cargo(folder, *args):
    environment = os.environ | {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
    command = ["cargo", *args, "--message-format=json", "--config", "profile.dev.package.gpuimg.opt-level=1"]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    messages = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return run, messages


def copy_source(folder):
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, tracked.stdout.split("\0")):
        if (ROOT / name).is_file():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, Path(folder, name))


def test_programs(folder, *targets):
    """The unit tests and tests/main.rs, built, or what is asked for; by `lib` and `test`."""
    run, messages = cargo(folder, "test", "--no-run", *(targets or ["--lib", "--test", "main"]))
    if run.returncode:
        errors = [it["message"]["rendered"] for it in messages if (it.get("message") or {}).get("level") == "error"]
        sys.exit(f"the copy does not compile\n{''.join(errors)}{run.stderr}")
    return {it["target"]["kind"][0]: it["executable"] for it in messages if it.get("executable") and it["profile"]["test"]}


def broken(folder, messages):
    """The mutants that do not compile."""
    numbers, others = set(), []
    for message in messages:
        message = message.get("message") or {}
        if message.get("level") != "error" or not message.get("spans"):
            continue
        for span in message["spans"]:
            if not span["is_primary"]:
                continue
            path = Path(folder, span["file_name"])
            before = path.read_text().splitlines()[: span["line_start"]] if path.is_file() else []
            marks = [it for it in map(lambda line: re.search(r"// MUTANT (\d+)$", line), reversed(before)) if it]
            if marks and int(marks[0][1]):
                numbers.add(int(marks[0][1]))
            else:
                others.append(message["rendered"])
    return numbers, others


def survives(number, folder, programs, suite, patience=None):
    environment = os.environ | {"MUTANT": str(number), "RUST_BACKTRACE": "0"}
    for program, filters in zip(programs, suite):
        try:
            run = subprocess.run([program, "--quiet", *filters], cwd=folder, env=environment, capture_output=True, timeout=patience)
        except subprocess.TimeoutExpired:
            return False
        if run.returncode:
            return False
    return True


def main():
    files = sys.argv[1:] or list(SUITES)
    unknown = [file for file in files if file not in SUITES]
    if unknown:
        sys.exit(f"mutants: no tests are named for {', '.join(unknown)}")
    mutants = mutants_of(files)
    for number, mutant in enumerate(mutants, 1):
        mutant["number"] = number
    with tempfile.TemporaryDirectory() as folder:
        copy_source(folder)
        library = Path(folder, "src/lib.rs")
        library.write_text(library.read_text() + SWITCH)
        while True:
            for file in files:
                inside = [it for it in mutants if it["file"] == file]
                Path(folder, file).write_text(rewritten((ROOT / file).read_text(), inside))
            # Not `check`, for which all crates would be compiled in another way.
            run, messages = cargo(folder, "test", "--no-run", "--lib")
            if run.returncode == 0:
                break
            numbers, others = broken(folder, messages)
            if not numbers:
                sys.exit(f"mutants: the copy does not compile\n{''.join(others)}{run.stderr}")
            mutants = [it for it in mutants if it["number"] not in numbers]
        built = test_programs(folder)
        programs = [built["lib"], built["test"]]
        patience = {}
        for file in files:
            start = time.monotonic()
            if not survives(0, folder, programs, SUITES[file]):
                sys.exit(f"mutants: the tests for {file} fail without a change")
            patience[file] = max(PATIENCE[1], PATIENCE[0] * (time.monotonic() - start))
        survivors = []
        for mutant in mutants:
            file = mutant["file"]
            lives = survives(mutant["number"], folder, programs, SUITES[file], patience[file])
            if lives:
                survivors.append(mutant)
            print("SURVIVES" if lives else "noticed", mutant["name"], flush=True)
    print(f"mutants: {len(mutants)} in {len(files)} files, {len(survivors)} survive")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
