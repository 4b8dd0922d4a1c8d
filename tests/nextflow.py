#!/usr/bin/env python3
"""The scripts of samples/workflows/main.nf, run as Nextflow runs them: each task with `bash -ue` in an empty folder of its own, where its
inputs are links. Nextflow itself, a Java program, is not needed: what it does with channels is not tested here. Fails if the
results are not those of one machine, or if a bad image holds others up.

  tests/nextflow.py GPUIMG
"""

import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

SAMPLE = (pathlib.Path(__file__).resolve().parent.parent / "samples/workflows/main.nf").read_text()
PROCESSES = dict(re.findall(r"^process (\w+) \{\n(.*?)^\}", SAMPLE, re.M | re.S))


def run(work, name, values):
    """A task: its folder, and its status."""
    body = PROCESSES[name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work))
    known = {f"params.{key}": str(value) for key, value in values["params"].items()}
    known["task.cpus"] = "2"
    inputs = re.search(r"input:\n(.*?)\n\n", body, re.S)[1]
    for kind, variable, stage in re.findall(r"^ +(val|path) (\w+)(?:, stageAs: '(\w+)')?$", inputs, re.M):
        value = values[variable]
        if kind == "path":
            names = []
            for path in value if isinstance(value, list) else [value]:
                names.append(stage or path.name)
                (folder / names[-1]).symlink_to(path)
            value = " ".join(names)
        known[variable] = str(value)
    # A GString: expressions in braces, and a backslash before what is meant for the shell.
    script = re.search(r'script:\n *"""\n(.*?)"""', body, re.S)[1].replace("\\\n", "")
    script = re.sub(r"\$\{quoted\(([\w.]+)\)\}", lambda match: shlex.quote(known[match[1]]), script)
    script = re.sub(r"(?<!\\)\$\{([\w.]+)\}", lambda match: known[match[1]], script).replace("\\$", "$")
    done = subprocess.run(["bash", "-ue", "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return folder, done


def workflow(work, gpuimg, images, results, parts):
    """The three steps, and the tasks of the last that failed."""
    values = {"params": {"parts": parts, "gpuimg": gpuimg}, "images": images, "results": results}
    counted = []
    for part in range(1, parts + 1):
        folder, done = run(work, "COUNT", {**values, "part": part})
        assert done.returncode == 0, done.stdout
        counted.append(folder / f"{part}.hist")
    merged, done = run(work, "MERGE", {**values, "parts": counted})
    assert done.returncode == 0, done.stdout
    values["range"] = merged / "all.hist"
    tasks = [run(work, "NORMALIZE", {**values, "part": part})[1] for part in range(1, parts + 1)]
    return [done for done in tasks if done.returncode]


def main():
    assert sorted(PROCESSES) == ["COUNT", "MERGE", "NORMALIZE"], "main.nf is not read right"
    gpuimg = str(pathlib.Path(sys.argv[1]).resolve())
    work = pathlib.Path(tempfile.mkdtemp())
    try:
        images = work / "in put's"
        images.mkdir()
        chance = random.Random(7)
        for i in range(20):
            samples = [chance.randrange(100 * i, 200 * i + 50) for _ in range(48)]
            (images / f"{i} ü.pgm").write_bytes(b"P5\n8 6\n65535\n" + struct.pack(">48H", *samples))

        def check(parts, failing):
            one, out = work / f"one-{parts}", work / f"o'ut {parts}"
            alone = subprocess.run([gpuimg, "normalize", "-q", "--across", "--exclude", "bad.pgm", images, one], stderr=subprocess.PIPE, text=True)
            assert alone.returncode == 0, alone.stderr
            failed = workflow(work, gpuimg, images, out, parts)
            assert len(failed) == failing, [done.stdout for done in failed]
            assert all(done.returncode == 1 and "bad.pgm" in done.stdout for done in failed)
            found = {path.name: path.read_bytes() for path in out.glob("*.pgm")}
            assert found == {path.name: path.read_bytes() for path in one.glob("*.pgm")} and len(found) >= 20
            # Once more: nothing is done again, the inputs are links of other folders all the same.
            times = {path: path.stat().st_mtime_ns for path in out.glob("*.pgm")}
            assert len(workflow(work, gpuimg, images, out, parts)) == failing
            assert times == {path: path.stat().st_mtime_ns for path in out.glob("*.pgm")}

        check(3, 0)
        (images / "bad.pgm").write_bytes(b"P5\n8 6\n65535\nshort")
        check(2, 1)
    finally:
        shutil.rmtree(work)
    print("main.nf: its tasks in 3 parts, in 2 with a bad image, and once more: the same bytes as one machine's")


main()
