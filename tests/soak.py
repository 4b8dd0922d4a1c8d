#!/usr/bin/env python3
"""A watch under load: files that come at random, some broken, some written again, and a kill -9.

    tests/soak.py [--files N] [--rate FILES/S] [--gpuimg PROGRAM] [--seed S]

N (2000) small images come into subfolders, at a random rate around FILES/S (400), written in place, in two
parts, or renamed in. One of a hundred is broken, one of a hundred is written again later with other samples. In
the middle the watch is killed, files go on coming, and it is started again. At the end every result must be
right and of the last content, no broken file may have one, every broken file must be named, and no
content may have been processed twice but those that were under way at the kill. Resident memory, file
descriptors and threads are sampled all along and printed. Python's own library is all that is needed.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 24, 16
CONTENTS = 997  # distinct images


def content(number):
    """An image, and what becomes of it: floor((p - min) * 65535 / (max - min) + 1/2)."""
    numbers = random.Random(number)
    samples = [numbers.randrange(200, 4000) for _ in range(WIDTH * HEIGHT)]
    least, most = min(samples), max(samples)
    span = most - least
    scaled = [((p - least) * 65535 + span // 2) // span for p in samples]
    pgm = lambda maximum, values: b"P5\n%d %d\n%d\n" % (WIDTH, HEIGHT, maximum) + struct.pack(f">{len(values)}H", *values)
    return pgm(65535, samples), pgm(65535, scaled)


class Watch:
    """The program, and what it takes of the machine."""

    def __init__(self, program, root):
        self.errors = open(root / "errors", "ab")
        command = [program, "normalize", "in", "out", "--watch", "--report", "report", "--device", "cpu", "-j", "2"]
        self.process = subprocess.Popen(command, cwd=root, stderr=self.errors)
        self.samples, self.begun = [], time.monotonic()
        threading.Thread(target=self.sample, daemon=True).start()

    def sample(self):
        about = pathlib.Path(f"/proc/{self.process.pid}")
        while self.process.poll() is None:
            try:
                lines = (about / "status").read_text().splitlines()
                status = dict(line.split(":", 1) for line in lines)
                resident, threads = int(status["VmRSS"].split()[0]) / 1e3, int(status["Threads"])
                self.samples.append((time.monotonic() - self.begun, resident, len(os.listdir(about / "fd")), threads))
            except (OSError, KeyError):
                pass
            time.sleep(0.5)

    def told(self, done):
        """The samples at ten moments."""
        print(f"{'s':>8} {'RSS MB':>8} {'fds':>5} {'threads':>8}")
        step = max(len(self.samples) // 10, 1)
        for at, resident, descriptors, threads in self.samples[::step]:
            print(f"{at:8.1f} {resident:8.1f} {descriptors:5} {threads:8}")
        print(f"most: {max(s[1] for s in self.samples):.1f} MB, {max(s[2] for s in self.samples)} descriptors,"
              f" {max(s[3] for s in self.samples)} threads; {done} files had come")


def put(path, data, numbers, elsewhere):
    path.parent.mkdir(exist_ok=True)
    way = numbers.random()
    if way < 0.45:
        path.write_bytes(data)
    elif way < 0.9:
        elsewhere.write_bytes(data)
        elsewhere.rename(path)
    else:
        with open(path, "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            if way > 0.99:
                time.sleep(0.01)
            file.write(data[len(data) // 2 :])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=400)
    parser.add_argument("--gpuimg", default=HERE / "target/release/gpuimg", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    program, numbers = arguments.gpuimg.resolve(), random.Random(arguments.seed)
    contents = [content(number) for number in range(CONTENTS)]

    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place)
        (root / "in").mkdir()
        expected, broken, times_put = {}, set(), collections.Counter()
        later = []  # files to write again: (when, name)
        watch, killed = Watch(program, root), None
        begun, due = time.monotonic(), 0.0
        for number in range(arguments.files):
            if number == arguments.files // 2:
                watch.process.send_signal(signal.SIGKILL)
                watch.process.wait()
                killed = watch
            if number == arguments.files // 2 + arguments.files // 50:
                watch = Watch(program, root)
            name = f"{number // 1000:03}/{number:06}.pgm"
            which = numbers.randrange(CONTENTS)
            data, scaled = contents[which]
            fate = numbers.random()
            if fate < 0.01:
                data = data[: numbers.randrange(1, len(data))]
                broken.add(name)
            else:
                expected[name] = scaled
                if fate < 0.02:
                    later.append((number + numbers.randrange(1, 2000), name))
            put(root / "in" / name, data, numbers, root / "part")
            times_put[name] += 1
            while later and (later[0][0] <= number or number == arguments.files - 1):
                _, again = later.pop(0)
                data, expected[again] = contents[numbers.randrange(CONTENTS)]
                put(root / "in" / again, data, numbers, root / "part")
                times_put[again] += 1
            # Bursts and pauses, at the given rate on the whole.
            due += numbers.expovariate(arguments.rate / 20) if numbers.random() < 0.05 else 0
            time.sleep(max(0.0, begun + due - time.monotonic()))
        came = time.monotonic() - begun

        out = root / "out"
        right = lambda name: (out / name).is_file() and (out / name).read_bytes() == expected[name]
        left, patience = list(expected), time.monotonic() + 600
        while left and time.monotonic() < patience:
            left = [name for name in left if not right(name)]
            time.sleep(0.2)
        named = lambda: {name for name in broken if f"in/{name}" in errors()}
        errors = lambda: (root / "errors").read_text()
        while named() != broken and time.monotonic() < patience:
            time.sleep(0.2)
        watch.process.send_signal(signal.SIGTERM)
        code = watch.process.wait(timeout=60)
        wrong = [name for name in expected if not right(name)]
        made = {path.relative_to(out).as_posix() for path in out.rglob("*.pgm")}
        lines = [json.loads(line) for line in (root / "report").read_text().splitlines() if line.endswith("}")]
        done = collections.Counter(line["input"][3:] for line in lines if line["status"] == "done")
        twice = [name for name, count in done.items() if count > times_put[name]]
        # What was done just before the kill may have no line of its own: the next start has seen it.
        before = {line["input"][3:] for line in lines if line["status"] == "skipped"}
        unreported = [name for name in expected if not done[name]]
        never = [name for name in unreported if name not in before]

        for which, run in (("before the kill", killed), ("after it", watch)):
            print(f"\n{which}:")
            run.told(arguments.files)
        journal = (out / ".gpuimg-journal").read_text().count("\n")
        print(f"\n{arguments.files} files in {came:.0f} s ({arguments.files / came:.0f}/s), {len(broken)} of them broken,"
              f" {sum(count - 1 for count in times_put.values())} written again; {len(made)} results, {len(wrong)} wrong,"
              f" {len(made - set(expected))} of broken files, {len(broken - named())} broken ones not named,"
              f" {len(twice)} made twice, {len(unreported)} whose line of the report was lost in the kill;"
              f" {journal} lines of the journal; status {code}")
        faults = [wrong, made - set(expected), broken - named(), twice, never]
        if any(faults) or made != set(expected) or code != (1 if broken else 0):
            print(errors()[-2000:], file=sys.stderr)
            sys.exit(f"the soak failed: {[list(fault)[:5] for fault in faults]}")


if __name__ == "__main__":
    main()
