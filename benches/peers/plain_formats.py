"""Formats of uncompressed samples beside uncompressed TIFF: whole processes, from file to file of the same format.

Needs numpy. Usage:
    python benches/peers/plain_formats.py path/to/gpuimg [SIDE]
Every round runs each format once, so that what else the machine does meets all; printed are the shortest and the
median time, and the median of the rounds' ratios to TIFF. Files are in /dev/shm where there is one.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROUNDS = 9
gpuimg = pathlib.Path(sys.argv[1]).resolve()
side = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
memory = pathlib.Path("/dev/shm")


def seconds(folder, *arguments):
    start = time.perf_counter()
    done = subprocess.run([gpuimg, *arguments, "--device", "cpu"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return time.perf_counter() - start


def measure(folder):
    noise = np.random.default_rng(1).integers(0, 3000, (side, side), dtype=np.uint16)
    image = noise + np.arange(side, dtype=np.uint16)[:, None]
    np.save(folder / "in.npy", image)
    image.tofile(folder / "in.bin")
    header = f"NRRD0004\ntype: uint16\ndimension: 2\nsizes: {side} {side}\nencoding: raw\nendian: little\n\n"
    (folder / "in.nrrd").write_bytes(header.encode() + image.tobytes())
    for name in ("tif", "fits", "pgm"):
        seconds(folder, "flip", "vertical", "in.npy", f"in.{name}")
    cases = {
        "TIFF": ("in.tif", "out.tif"),
        "NumPy": ("in.npy", "out.npy"),
        "FITS": ("in.fits", "out.fits"),
        "PGM": ("in.pgm", "out.pgm"),
        "raw to TIFF": ("in.bin", "out.tif", "--raw", f"{side}x{side}:u16le"),
        "NRRD to TIFF": ("in.nrrd", "out.tif"),
    }
    for verb in (["normalize"], ["flip", "vertical"], ["sum"]):
        times = {name: [] for name in cases}
        for _ in range(ROUNDS):
            for name, (source, target, *options) in cases.items():
                output = [] if verb == ["sum"] else [target, "--overwrite"]
                times[name].append(seconds(folder, *verb, source, *output, *options))
        for name, own in times.items():
            ratios = [time / tiff for time, tiff in zip(own, times["TIFF"])]
            least, middle = 1e3 * min(own), 1e3 * statistics.median(own)
            print(f"{' '.join(verb):14}  {name:12}  {least:6.0f} ms  {middle:6.0f} ms  × {statistics.median(ratios):.2f}")


with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
    measure(pathlib.Path(folder))
