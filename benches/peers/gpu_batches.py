#!/usr/bin/env python3
"""Times batches on a GPU against the CPU, and versions of gpuimg against each other.

    benches/peers/gpu_batches.py GPUIMG [OLDER_GPUIMG ...] [--counts 1024,4096] [--devices cpu,gpu,auto] [--rounds 2] [--rows ROW,...]

Makes images like those of a camera (Poisson noise on a smooth scene) in memory (tmpfs): 8 different ones of each kind, and links to
them. A row is VERB-KIND, such as normalize-png or sum-lzw; the default is all of ROWS. Every run is a whole process, and the programs
and devices of a row take turns. A line gives the files a second of the fastest run with each count, the start counted, and the steady
rate, which is that of the files by which the counts differ. Needs NumPy, OpenCV, and 60 GB of memory for the default counts.

The device gpux4 is four GPUs. gpuimg uses several only for more bytes than memory holds, so a hidden sparse file of 1 TB beside the images
pretends that there are so many.
"""

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

# The side in pixels, the suffix, and what OpenCV is told for each kind of file (TIFF: 1 is none, 5 is LZW, 8 is deflate).
KINDS = {
    "png": (2048, ".png", []),
    "png512": (512, ".png", []),
    "none": (2048, ".tif", [cv2.IMWRITE_TIFF_COMPRESSION, 1]),
    "lzw512": (512, ".tif", [cv2.IMWRITE_TIFF_COMPRESSION, 5]),
    "deflate512": (512, ".tif", [cv2.IMWRITE_TIFF_COMPRESSION, 8]),
    "lzw": (2048, ".tif", [cv2.IMWRITE_TIFF_COMPRESSION, 5]),
    "deflate": (2048, ".tif", [cv2.IMWRITE_TIFF_COMPRESSION, 8]),
}
ROWS = ["normalize-png", "sum-png", "histogram-png", "normalize-png512", "normalize-none", "sum-lzw", "normalize-lzw", "sum-deflate"]
RESULTS = {"normalize", "convert"}
DISTINCT = 8


def camera(side, seed):
    y, x = np.mgrid[0:side, 0:side].astype(np.float32)
    scene = 8000 + 3000 * np.sin(x / 311) * np.cos(y / 277) + 2500 * np.exp(-((x - side / 2) ** 2 + (y - side / 2) ** 2) / (side**2 / 18))
    noise = np.random.default_rng(seed).normal(0, 1, (side, side)).astype(np.float32)
    return np.clip(scene + noise * np.sqrt(scene), 0, 65535).astype(np.uint16)


def folder(root, kind, count):
    side, suffix, options = KINDS[kind]
    path = root / f"{kind}-{count}"
    if path.exists():
        return path
    path.mkdir()
    originals = [root / f"{kind}-{seed}{suffix}" for seed in range(DISTINCT)]
    for seed, original in enumerate(originals):
        if not original.exists():
            assert cv2.imwrite(str(original), camera(side, seed), options)
    for index in range(count):
        os.link(originals[index % DISTINCT], path / f"{index:05}{suffix}")
    return path


def seconds(program, verb, source, target, device):
    shutil.rmtree(target, ignore_errors=True)
    device, _, gpus = device.partition("x")
    environment = dict(os.environ)
    hidden = source / ".length"
    hidden.unlink(missing_ok=True)
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(int(gpus))))
        hidden.touch()
        os.truncate(hidden, 1 << 40)
    command = [program, verb, str(source), *([str(target)] if verb in RESULTS else []), "--device", device]
    begun = time.perf_counter()
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    taken = time.perf_counter() - begun
    if run.returncode:
        sys.exit(f"{' '.join(command)}: {run.stderr[-300:]}")
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="GPUIMG")
    parser.add_argument("--counts", default="1024,4096")
    parser.add_argument("--devices", default="cpu,gpu,auto")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rows", default=",".join(ROWS))
    options = parser.parse_args()
    few, many = (int(count) for count in options.counts.split(","))
    print(f"{os.cpu_count()} cores; files a second: steady, of {few} and of {many} with the start\n")
    print("| row | program | device | steady | " + f"{few} | {many} |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
        root = Path(root)
        for row in options.rows.split(","):
            verb, kind = row.split("-")
            cases = list(itertools.product(options.programs, options.devices.split(",")))
            least = {}
            for _ in range(options.rounds):
                for (program, device), count in itertools.product(cases, (few, many)):
                    taken = seconds(program, verb, folder(root, kind, count), root / "out", device)
                    key = (program, device, count)
                    least[key] = min(taken, least.get(key, taken))
            for program, device in cases:
                short, long = (least[program, device, count] for count in (few, many))
                steady = (many - few) / (long - short) if long > short else float("nan")
                print(f"| {row} | {program} | {device} | {steady:.0f} | {few / short:.0f} | {many / long:.0f} |", flush=True)
            for left in root.glob(f"{kind}-*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()


if __name__ == "__main__":
    main()
