"""Runs what `tests/mutants.py --build` has built. Python's standard library is all that is needed.

Each test is run by itself, first without a change, and then with mutants of a function that the test reaches. Those that reach least are
asked, as many as take TOGETHER seconds, the quick ones first, until one fails. A test that fails without a change is named and
left out. Each has two cores, a folder for temporary files, and a limit of memory. A test that takes much longer than without a change
hangs, which is noticed too.

Environment: MUTANTS_SECONDS, after which no further mutant is begun; MUTANTS_JOBS, tests at a time (one a core by default).
"""

import gzip
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Of tests/main.rs: those whose result hangs on time or on a signal, which many tests at once disturb, or that need other programs.
LEFT_OUT = "bench bench_claims driver kills mutations power schemas signals simd soak terminal version watch".split()
# Seconds: a test that takes longer than the first is not asked, and the tests of a mutant take no longer together than the second. A
# test hangs after so many more than PATIENCE times what it takes without a change.
LONGEST, TOGETHER, PATIENCE, MORE = 40, 50, 4, 10
MEMORY, FILE = 16 << 30, 1 << 30


def settle(places):
    """Gives a worker, and the tests that it starts, two neighbouring cores, and limits."""
    os.sched_setaffinity(0, places.get())
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def passes(program, test, patience, **environment):
    """Whether a test passes, and the seconds it took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        # Some tests run the program as another user.
        os.chmod(temporary, 0o755)
        environment = os.environ | environment | {"TMPDIR": temporary, "RUST_BACKTRACE": "0"}
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run = subprocess.Popen([program, "--exact", test], env=environment, cwd=ROOT, start_new_session=True, **quiet)
        try:
            good = run.wait(patience) == 0
        except subprocess.TimeoutExpired:
            good = False
        try:
            os.killpg(run.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        run.wait()
    return good, time.monotonic() - start


def first_run(task):
    """A test without a change: whether it passes, its time, and the functions it reaches."""
    program, test = task
    with tempfile.NamedTemporaryFile("r") as reached:
        good, seconds = passes(program, test, 4 * LONGEST, MUTANTS_REACHED=reached.name)
        functions = {int(it) for it in reached.read().split()}
    return program, test, good, seconds, functions


def change(task):
    """A mutant, the test that notices it, or None, and how many tests were asked."""
    mutant, tests, end = task
    if time.time() > end:
        return mutant, None, -1
    for asked, (program, test, seconds) in enumerate(tests, 1):
        good, _ = passes(program, test, PATIENCE * seconds + MORE, MUTANT=str(mutant["number"]))
        if not good:
            return mutant, test, asked
    return mutant, None, len(tests)


def chosen(tests):
    """The tests that are asked about a function, of those that reach it: those that reach least, the quick ones first."""
    seconds, some = 0, []
    for test in sorted(tests, key=lambda it: it[3]):
        seconds += test[2]
        if some and seconds > TOGETHER:
            break
        some.append(test)
    return [test[:3] for test in sorted(some, key=lambda it: it[2] * it[3])]


def tests_of(program, left_out):
    listed = subprocess.run([program, "--list", "--format", "terse"], capture_output=True, text=True, check=True)
    names = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
    return [(program, name) for name in names if name.split("::")[0] not in left_out]


def run(folder, numbers):
    """Runs the mutants of these numbers, or all; says what became of each. The exit status."""
    end = time.time() + float(os.environ.get("MUTANTS_SECONDS", "1e9"))
    mutants = json.loads((folder / "mutants.json").read_text())
    mutants = [it for it in mutants if not numbers or it["number"] in numbers]
    cores = sorted(os.sched_getaffinity(0))
    jobs = int(os.environ.get("MUTANTS_JOBS", len(cores)))
    with tempfile.TemporaryDirectory() as unpacked:
        os.chmod(unpacked, 0o755)
        programs = {}
        for kind in ("bin", "lib", "test"):
            programs[kind] = Path(unpacked, kind)
            with gzip.open(folder / f"{kind}.gz") as packed:
                programs[kind].write_bytes(packed.read())
            programs[kind].chmod(0o755)
        os.environ |= {"GPUIMG_BIN": str(programs["bin"]), "GPUIMG_ROOT": str(ROOT)}
        places = multiprocessing.Queue()
        for job in range(jobs):
            places.put({cores[job % len(cores)], cores[(job + 1) % len(cores)]})
        with multiprocessing.Pool(jobs, settle, [places]) as pool:
            tests = tests_of(programs["lib"], []) + tests_of(programs["test"], LEFT_OUT)
            by_function, start = defaultdict(list), time.time()
            for program, test, good, seconds, functions in pool.imap_unordered(first_run, tests):
                if not good or seconds > LONGEST:
                    print("not asked:", test, f"({seconds:.0f} s)" if good else "(fails without a change)", flush=True)
                    continue
                for function in functions:
                    by_function[function].append((program, test, seconds, len(functions)))
            print(f"{len(tests)} tests without a change in {time.time() - start:.0f} s", flush=True)
            tasks = [(it, chosen(by_function[it["reached"]]), end) for it in mutants]
            # A run that ends early has taken some of every file.
            random.Random(0).shuffle(tasks)
            count = Counter()
            for mutant, test, asked in pool.imap_unordered(change, tasks):
                became = "noticed" if test else "NOT BEGUN" if asked < 0 else "SURVIVES" if asked else "NOT REACHED"
                count[became] += 1
                by = f"by {test}, number {asked}" if test else f"after {max(asked, 0)} tests"
                print(f"{became}\t{mutant['number']}\t{mutant['name']}\t{by}", flush=True)
    print("mutants:", ", ".join(f"{number} {what}" for what, number in sorted(count.items())))
    return 1 if set(count) - {"noticed"} else 0
