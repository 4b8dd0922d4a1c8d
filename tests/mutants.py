#!/usr/bin/env python3
"""Changes the source in one place at a time, and runs the tests that come by there: a change that none of them notices is named, and
fails this script. cargo-mutants lists the changes; all of them are compiled at once, in a copy of the source, and an environment variable
chooses one, so that a mutant costs a run of some tests and no build.

  tests/mutants.py [FILE...]                  these files, or those that FILES names
  tests/mutants.py --build FOLDER [FILE...]   only builds; what FOLDER then holds is enough for
  tests/mutants.py --run FOLDER [NUMBER...]   another machine, with a copy of the checkout and without Rust; some mutants, or all
  MUTANTS=100 tests/mutants.py                at most so many of each file, evenly spread

Building needs cargo-mutants (cargo install cargo-mutants --locked). How tests are run, and which, is in mutants_run.py; what a
survivor may be is explained in docs/PROOF.md.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import mutants_run

ROOT = Path(__file__).resolve().parent.parent
FILES = """
    src/ops/extremes.rs src/ops/sum.rs src/ops/normalize.rs src/ops/normalize/lanes.rs src/ops/symmetry.rs src/ops/symmetry/cpu.rs
    src/ops/clip.rs src/ops/counts.rs src/formats/pnm.rs src/formats/pnm/plain.rs src/batch/journal.rs src/batch/journal/*.rs src/os/*.rs
    src/image/metadata.rs src/image/metadata/*.rs src/os/memory_budget.rs
"""
# What the source is given: `mutant(FUNCTION)` says which change is made, and, for who asks, that the function is reached.
SWITCH = """
/// The change that this run makes; 0 for none. The numbers of functions that are reached go to the file that MUTANTS_REACHED names.
pub(crate) fn mutant(function: usize) -> u32 {
    use std::sync::{OnceLock, atomic};
    static MUTANT: OnceLock<u32> = OnceLock::new();
    static REACHED: OnceLock<Option<std::fs::File>> = OnceLock::new();
    static BEFORE: [atomic::AtomicBool; FUNCTIONS] = [const { atomic::AtomicBool::new(false) }; FUNCTIONS];
    let file = REACHED.get_or_init(|| {
        let path = std::env::var_os("MUTANTS_REACHED")?;
        std::fs::OpenOptions::new().append(true).create(true).open(path).ok()
    });
    if let Some(mut file) = file.as_ref()
        && !BEFORE[function].swap(true, atomic::Ordering::Relaxed)
    {
        let _ = std::io::Write::write_all(&mut file, format!("{function}\\n").as_bytes());
    }
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
    found = [it for inside in each for it in inside[:: max(1, -(-len(inside) // most))]]
    functions = {}
    for number, mutant in enumerate(found, 1):
        place = json.dumps([mutant["file"], mutant["function"]["span"]])
        mutant["number"], mutant["reached"] = number, functions.setdefault(place, len(functions))
    return found


def offset(starts, place):
    return starts[place["line"] - 1] + place["column"] - 1


def rewritten(text, mutants):
    """The source with every function's bodies, its own and one for each mutant, and the mutants that are in it."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    functions = defaultdict(list)
    for mutant in mutants:
        span = mutant["function"]["span"]
        functions[offset(starts, span["start"]), offset(starts, span["end"])].append(mutant)
    there = []
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
            there.append(mutant)
        if arms:
            switch = f"match crate::mutant({inside[0]['reached']})"
            whole = f"{{ {switch} {{\n" + "".join(arms) + f"_ => // MUTANT 0\n{text[body:end]}\n" + "} }"
            text = text[:body] + whole + text[end:]
    return text, there


def cargo(folder, *args):
    environment = os.environ | {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
    options = [arg for it in ("opt-level=1", "debug=0") for arg in ("--config", f"profile.dev.package.gpuimg.{it}")]
    run = subprocess.run(["cargo", *args, "--message-format=json", *options], cwd=folder, env=environment, capture_output=True, text=True)
    messages = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return run, messages


def copy_source(folder):
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, tracked.stdout.split("\0")):
        if (ROOT / name).is_file():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, Path(folder, name))


def test_programs(folder, *targets):
    """The unit tests and tests/main.rs, built, or what is asked for, by `lib` and `test`; and by `bin` the program that tests run."""
    run, messages = cargo(folder, "test", "--no-run", *(targets or ["--lib", "--test", "main"]))
    if run.returncode:
        errors = [it["message"]["rendered"] for it in messages if (it.get("message") or {}).get("level") == "error"]
        sys.exit(f"the copy does not compile\n{''.join(errors)}{run.stderr}")
    return {it["target"]["kind"][0]: it["executable"] for it in messages if it.get("executable")}


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


def build(folder, files):
    """The program, its tests and the list of mutants, packed into `folder`."""
    mutants = mutants_of(files)
    with tempfile.TemporaryDirectory() as source:
        copy_source(source)
        library = Path(source, "src/lib.rs")
        functions = max((it["reached"] for it in mutants), default=0) + 1
        library.write_text(library.read_text() + SWITCH.replace("FUNCTIONS", str(functions)))
        while True:
            there = []
            for file in files:
                text, inside = rewritten((ROOT / file).read_text(), [it for it in mutants if it["file"] == file])
                Path(source, file).write_text(text)
                there += inside
            # Not `check`, for which all crates would be compiled in another way.
            run, messages = cargo(source, "test", "--no-run", "--lib")
            if run.returncode == 0:
                break
            numbers, others = broken(source, messages)
            if not numbers:
                sys.exit(f"mutants: the copy does not compile\n{''.join(others)}{run.stderr}")
            print(f"mutants: {len(numbers)} do not compile", flush=True)
            mutants = [it for it in there if it["number"] not in numbers]
        folder.mkdir(parents=True, exist_ok=True)
        for kind, program in test_programs(source).items():
            stripped = Path(source, kind)
            subprocess.run(["strip", "-o", stripped, program], check=True)
            with open(stripped, "rb") as plain, gzip.open(folder / f"{kind}.gz", "wb", 6) as packed:
                shutil.copyfileobj(plain, packed)
    wanted = [{key: it[key] for key in ("number", "reached", "file", "name")} for it in there]
    (folder / "mutants.json").write_text(json.dumps(wanted, indent=1))
    print(f"mutants: {len(there)} in {len(files)} files", flush=True)


def main():
    args = sys.argv[1:]
    if args[:1] == ["--run"]:
        sys.exit(mutants_run.run(Path(args[1]), {int(it) for it in args[2:]}))
    only_build = args[:1] == ["--build"]
    named = args[2:] if only_build else args
    files = named or sorted({str(it.relative_to(ROOT)) for pattern in FILES.split() for it in ROOT.glob(pattern)})
    if only_build:
        return build(Path(args[1]), files)
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), files)
        sys.exit(mutants_run.run(Path(folder), set()))


if __name__ == "__main__":
    main()
