#!/usr/bin/env python3
"""`project` in floating point and `project mean --sigma` against NumPy and astropy, and `calibrate --bias` against NumPy, by
the definitions of docs/CONTRACT.md.

usage: clipping_oracle.py GPUIMG
"""

import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np
from astropy.stats import sigma_clip

gpuimg = str(pathlib.Path(sys.argv[1]).resolve())
rng = np.random.default_rng(37)
cases = 0


def run(folder, *args):
    done = subprocess.run([gpuimg, *map(str, args)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr}")


def compared(what, found, expected):
    global cases
    if found.dtype != expected.dtype or not np.array_equal(found, expected):
        sys.exit(f"{what} differs at {np.argwhere(found != expected)[:3]}")
    cases += 1


def clipped(column, k):
    """The definition for whole numbers, in fractions."""
    kept = [int(v) for v in column]
    for _ in range(5):
        n, total = len(kept), sum(kept)
        spread = n * sum(v * v for v in kept) - total * total
        near = [v for v in kept if (n * v - total) ** 2 <= k * k * spread]
        if not near or len(near) == len(kept):
            break
        kept = near
    return Fraction(sum(kept), len(kept))


def by_astropy(a, k):
    """With functions of its own for "mean" and "std", astropy applies the last limits to all values, also to those rejected before."""
    clip = sigma_clip(a.astype(np.float64), sigma=k, axis=0, cenfunc=np.nanmean, stdfunc=np.nanstd, maxiters=5)
    return clip.mean(axis=0).data


for count in (1, 2, 5, 12):
    for sigma in ("1.2", "2", "3"):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            for name in ("whole", "real", "lights"):
                (folder / name).mkdir()
            whole = rng.normal(1000, 30, (count, 23, 31)).astype(np.uint16)
            whole[rng.random(whole.shape) < 0.1] = 60000
            real = (whole / 7).astype(np.float32) - np.float32(100)
            for index in range(count):
                np.save(folder / f"whole/{index:02}.npy", whole[index])
                np.save(folder / f"real/{index:02}.npy", real[index])
            exact = [clipped(column, Fraction(sigma)) for column in whole.reshape(count, -1).T]
            floors = [int((value + Fraction(1, 2)) // 1) for value in exact]
            run(folder, "project", "mean", "--sigma", sigma, "whole", "w.npy", "-q")
            compared("whole", np.load(folder / "w.npy"), np.array(floors, np.uint16).reshape(23, 31))
            run(folder, "project", "mean", "--sigma", sigma, "--to", "f32", "whole", "wf.npy", "-q")
            reals = np.array([float(value) for value in exact]).astype(np.float32).reshape(23, 31)
            compared("whole, f32", np.load(folder / "wf.npy"), reals)
            compared("whole, astropy", reals, by_astropy(whole, float(sigma)).astype(np.float32))
            run(folder, "project", "mean", "--sigma", sigma, "real", "r.npy", "-q")
            compared("real, astropy", np.load(folder / "r.npy"), by_astropy(real, float(sigma)).astype(np.float32))
            doubles = real.astype(np.float64)
            total = doubles[0] * 0.0
            for image in doubles:
                total = total + image
            for how, expected in (
                ("sum", total),
                ("mean", total / count),
                ("min", real.min(0)),
                ("max", real.max(0)),
                ("median", np.median(doubles, axis=0)),
            ):
                run(folder, "project", how, "real", f"{how}.npy", "-q")
                compared(how, np.load(folder / f"{how}.npy"), expected.astype(np.float32))
            # The bias lies in the dark frame and in the flat field.
            bias = rng.integers(90, 110, (23, 31), dtype=np.int64)
            dark = bias + rng.integers(0, 30, (23, 31))
            flat = bias + rng.integers(5000, 9000, (23, 31))
            for name, frame in (("bias", bias), ("dark", dark), ("flat", flat)):
                np.save(folder / f"{name}.npy", frame.astype(np.uint16))
            frames = ("--bias", "bias.npy", "--dark", "dark.npy", "--flat", "flat.npy", "--offset", 7)
            run(folder, "calibrate", *frames, "whole", "out", "-q")
            q, n = flat - bias, flat.size
            for index in range(count):
                x = whole[index].astype(np.int64) - dark
                expected = ((2 * x * q.sum() + n * q) // (2 * n * q) + 7).clip(0, 65535)
                compared("bias", np.load(folder / f"out/{index:02}.npy"), expected.astype(np.uint16))
print(f"{cases} results as NumPy and astropy have them")
