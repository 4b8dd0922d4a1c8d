#!/usr/bin/env python3
"""Compares, verb by verb and format by format, what two programs write: this machine's, and one for another kind of processor under an
emulator. Every byte, exit status and sentence is to be the same.

  packaging/same_bytes.py [--samples] HERE THERE...

HERE is a program, THERE a command with its first arguments (qemu-s390x -L /usr/s390x-linux-gnu gpuimg). The images are small and made
here: every type of sample, grey to RGB + alpha. What HERE writes of them in every format is read by both. With --samples the images of
samples/ are compared too, which takes an emulator minutes.
"""

import itertools
import os
import random
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
WIDTH, HEIGHT = 37, 21
# NumPy's name of a type, that of Python's struct, and the range of its noise.
TYPES = [("|u1", "B", 0, 255), ("<u2", "H", 0, 65535), (">u2", "H", 90, 4000), ("<i2", "h", -(1 << 15), (1 << 15) - 1),
         (">u4", "I", 0, (1 << 32) - 1), ("<f4", "f", -1e3, 1e6)]
# Formats with a way to compress them.
FORMS = ["png --png fast", "png --png small", "png --png store", "tiff", "tiff --tiff deflate", "tiff --tiff lzw", "tiff --tiff zstd", "pnm",
         "pam", "npy", "pfm", "fits", "farbfeld", "jpeg", "bmp"]
JOURNAL = ".gpuimg-journal"
VERBS = ["transpose", "normalize", "normalize --per-channel --clip 1:99 --undo", "normalize --depth 8", "rotate 90", "flip horizontal"]


def made(folder):
    """Images of every type and number of channels, as NumPy's files."""
    numbers = random.Random(7)
    for (name, code, low, high), channels in itertools.product(TYPES, (1, 2, 3, 4)):
        draw = numbers.uniform if code == "f" else numbers.randint
        noise = [draw(low, high) for _ in range(WIDTH * HEIGHT * channels)]
        # A half of them equal, so that there is something to compress.
        noise[len(noise) // 2:] = [noise[0]] * (len(noise) - len(noise) // 2)
        shape = f"({HEIGHT}, {WIDTH}" + (f", {channels})" if channels > 1 else ")")
        header = f"{{'descr': '{name}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        order = ">" if name[0] == ">" else "<"
        samples = struct.pack(f"{order}{len(noise)}{code}", *noise)
        path = folder / f"{name[1:]}{'be' if order == '>' else 'le'}{channels}.npy"
        path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + samples)


class Pair:
    """The two programs, each in a folder of its own with the same files."""

    def __init__(self, here, there, root):
        self.commands = {root / "here": here, root / "there": there}
        self.cases = self.refused = 0
        self.wrong = []

    def give(self, files):
        """Files for both, instead of those that they have had."""
        for place in self.commands:
            shutil.rmtree(place, ignore_errors=True)
            (place / "out").mkdir(parents=True)
            shutil.copytree(files, place / "in")

    def run(self, *lines):
        """Runs the lines in both folders, and compares what is printed and which files there are afterwards."""
        with ThreadPoolExecutor() as threads:
            found = list(threads.map(lambda place: [self.one(place, line) for line in lines], self.commands))
        here, there = self.commands
        for line, *both in zip(lines, *found):
            self.cases += 1
            self.refused += both[0][0] != 0
            if both[0] != both[1]:
                self.report(line, *both)
        # A journal has inodes and times.
        names = [{path.relative_to(place) for path in place.rglob("*") if path.is_file() and path.name != JOURNAL} for place in self.commands]
        for name in sorted(names[0] ^ names[1]):
            self.report(f"{name}: written by one alone")
        for name in sorted(names[0] & names[1]):
            if (here / name).read_bytes() != (there / name).read_bytes():
                self.report(f"{name} differs")
        for place in self.commands:
            shutil.rmtree(place / "out")
            (place / "out").mkdir()

    def one(self, place, line):
        said = subprocess.run([*self.commands[place], *shlex.split(line)], cwd=place, capture_output=True)
        # What is said of several files has times, memory and the order in which they were done.
        return said.returncode, said.stdout, b"" if b" done" in said.stderr else said.stderr

    def resume(self, line):
        """Each program takes what the other has made of a folder for done."""
        places = list(self.commands)
        for place, other in (places, places[::-1]):
            self.cases += 1
            self.one(place, line)
            done = {path: path.stat().st_mtime_ns for path in (place / "out").rglob("*") if path.name != JOURNAL}
            said = subprocess.run([*self.commands[other], *shlex.split(line), "--resume"], cwd=place, capture_output=True)
            after = {path: path.stat().st_mtime_ns for path in done if path.exists()}
            if said.returncode or done != after or not done:
                self.report(f"{line}, resumed in {place.name} by the other", said.stderr)
            shutil.rmtree(place / "out")
            (place / "out").mkdir()

    def report(self, what, *both):
        self.wrong.append(what)
        print(f"WRONG: {what}", *both, sep="\n  ", file=sys.stderr)


def written(pair, inputs):
    """Every type to every format, by one verb after the other: what a format cannot hold is refused in the same words."""
    verbs = itertools.cycle(VERBS)
    for name in inputs:
        pair.run(*(f"{next(verbs)} in/{name} out/{i} --format {form}" for i, form in enumerate(FORMS)))


def read(pair, here, root, inputs):
    """What HERE writes of all types in every format, read by the verbs that have a way of their own."""
    for number, form in enumerate(FORMS):
        extension = form.split()[0]
        files = root / f"files{number}"
        files.mkdir()
        for name in inputs:
            command = [here, "transpose", root / "inputs" / name, files / f"{name[:-4]}.{extension}", "--format", *form.split()]
            subprocess.run(command, stderr=subprocess.DEVNULL)
        pair.give(files)
        names = sorted(path.name for path in files.iterdir())
        pair.run("sum --all --json in", "normalize in out/all --format tiff")
        grey = [f"in/{name}" for name in names if name[:2] == "u2" and name[4] == "1"]
        if grey:
            pair.run(f"histogram {' '.join(grey)} --output out/histogram.json", f"normalize --across {' '.join(grey)} out/across")
            pair.resume(f"transpose {' '.join(grey)} out/all --format npy")
        name = grey[0] if grey else f"in/{names[-1]}"
        pair.run(f"project mean {name} {name} out/mean.tif", f"project median {name} {name} {name} out/median.tif",
                 f"project sum --to 32 {name} {name} out/sum.tif", f"calibrate --dark {name} --offset 7 {name} out/dark.tif",
                 f"run 'rotate 90 + normalize' {name} out/run.tif", f"normalize --undo {name} out/undo.tif", "restore out/undo.tif out/first.tif")


def main():
    arguments = sys.argv[1:]
    samples = arguments[:1] == ["--samples"]
    # Run in other folders than this one, so with whole paths.
    here, *there = [str(Path(word).absolute()) if Path(word).is_file() else word for word in arguments[samples:]]
    os.environ["GPUIMG_DEVICE"] = "cpu"
    with tempfile.TemporaryDirectory() as root:
        root = Path(root)
        (root / "inputs").mkdir()
        made(root / "inputs")
        inputs = sorted(path.name for path in (root / "inputs").iterdir())
        pair = Pair([here], there, root)
        pair.give(root / "inputs")
        written(pair, inputs)
        read(pair, here, root, inputs)
        if samples:
            pair.give(SAMPLES)
            for sample in sorted([*SAMPLES.glob("*.png"), *SAMPLES.glob("*.tif")]):
                pair.run(*(f"{verb} in/{sample.name} out/{i} --format {form}"
                           for i, (verb, form) in enumerate(itertools.product(VERBS, FORMS[:8]))), f"sum --all --json in/{sample.name}")
    print(f"{pair.cases} runs, {pair.refused} of them refused: {len(pair.wrong) or 'nothing'} differs")
    sys.exit(1 if pair.wrong else 0)


main()
