#!/usr/bin/env python3
"""`project` and `calibrate` against NumPy: series of TIFFs of every depth, sign and number of channels, written by tifffile,
and the same computed in NumPy's integers of 64 bits by the definitions of docs/CONTRACT.md.

usage: numpy_oracle.py GPUIMG
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tifffile

gpuimg = str(pathlib.Path(sys.argv[1]).resolve())
rng = np.random.default_rng(7)


def run(folder, *args):
    done = subprocess.run([gpuimg, *map(str, args)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr}")


def middle(a):
    s = np.sort(a, axis=0)
    return (s[(len(s) - 1) // 2] + s[len(s) // 2] + 1) // 2


def compared(what, found, expected):
    if found.dtype.itemsize > 2 or not np.array_equal(found.astype(np.int64), expected):
        sys.exit(f"{what} differs at {np.argwhere(found != expected)[:3]}")


cases = 0
for kind in (np.uint8, np.uint16, np.int8, np.int16):
    for channels in (1, 3, 4):
        for count in (1, 2, 5, 8):
            info = np.iinfo(kind)
            shape = (count, 37, 53) + ((channels,) if channels > 1 else ())
            a = rng.integers(info.min, info.max, shape, dtype=np.int64, endpoint=True)
            with tempfile.TemporaryDirectory() as place:
                folder = pathlib.Path(place)
                (folder / "in").mkdir()
                extra = {"extrasamples": ["unassalpha"]} if channels == 4 else {}
                photometric = "rgb" if channels > 1 else "minisblack"

                def write(name, image):
                    tifffile.imwrite(folder / name, image.astype(kind), photometric=photometric, metadata=None, **extra)

                for index, image in enumerate(a):
                    write(f"in/{index}.tif", image)
                mean = (2 * a.sum(0) + count) // (2 * count)
                saturated = a.sum(0).clip(info.min, info.max)
                if channels == 4:
                    # The sum of alpha is its mean, in samples counted from the least.
                    saturated[..., 3] = mean[..., 3]
                for how, expected in (
                    ("mean", mean),
                    ("min", a.min(0)),
                    ("max", a.max(0)),
                    ("median", middle(a)),
                    ("sum", saturated),
                ):
                    more = ["--saturate"] if how == "sum" else []
                    run(folder, "project", how, "in", f"{how}.tif", "-q", *more)
                    compared(f"{how} of {count}, {kind.__name__}, {channels} channels", tifffile.imread(folder / f"{how}.tif"), expected)
                    cases += 1
                # A dark frame in the lowest quarter of the values, a flat field in the upper half.
                span = int(info.max) - int(info.min)
                dark = rng.integers(info.min, info.min + span // 4, a[0].shape, dtype=np.int64)
                flat = rng.integers(info.min + span // 8, info.max, a[0].shape, dtype=np.int64)
                write("dark.tif", dark)
                write("flat.tif", flat)
                run(folder, "calibrate", "--dark", "dark.tif", "--flat", "flat.tif", "--offset", 11, "in", "out", "-q")
                n, d = dark.shape[0] * dark.shape[1], flat - dark
                total, q = d.reshape(n, -1).sum(0).reshape((1, 1, -1)[3 - dark.ndim :]), np.maximum(d, 1)
                for index, image in enumerate(a):
                    expected = ((2 * (image - dark) * total + n * q) // (2 * n * q) + 11).clip(info.min, info.max)
                    if channels == 4:
                        expected[..., 3] = image[..., 3]
                    compared(f"calibrate, {kind.__name__}, {channels} channels", tifffile.imread(folder / f"out/{index}.tif"), expected)
                    cases += 1
print(f"{cases} results as NumPy has them")
