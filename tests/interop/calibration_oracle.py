#!/usr/bin/env python3
"""`calibrate --to f32`, `--log`, `--flat-start` and the counts of clamped samples against NumPy, fractions and Python's decimal, by
the definitions of docs/CONTRACT.md.

usage: calibration_oracle.py GPUIMG
"""

import decimal
import json
import math
import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

import numpy as np

gpuimg = str(pathlib.Path(sys.argv[1]).resolve())
rng = np.random.default_rng(41)
decimal.getcontext().prec = 50
SHAPE = (23, 31)
cases = 0


def run(folder, *args):
    done = subprocess.run([gpuimg, *map(str, args)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr}")


def compared(what, found, expected):
    global cases
    if found.dtype != expected.dtype or not np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"):
        differs = found != expected
        sys.exit(f"{what} differs: {found[differs][:3]}, expected {expected[differs][:3]}")
    cases += 1


def mean(flat, below):
    """The difference of the exact sums, rounded once, over the number of pixels."""
    exact = sum(map(Fraction, flat.ravel().tolist())) - sum(map(Fraction, below.ravel().tolist()))
    return float(exact) / flat.size


def real(p, dark, flat, below, offset=0):
    p, dark, flat, below = (image.astype(np.float64) for image in (p, dark, flat, below))
    y = flat - below
    q = np.where(y > 0, y, 1.0)
    return ((p - dark) * mean(flat, below) / q + offset).astype(np.float32)


def nearest(value):
    """The float32 nearest to a Decimal: rounded by way of a double, the neighbours are compared exactly."""
    near = np.float32(float(value))
    around = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    return min(around, key=lambda it: abs(decimal.Decimal(float(it)) - value))


def attenuation(p, dark, flat, below):
    """The correctly rounded logarithm of the quotient, which is a double."""
    p, dark, flat, below = (image.astype(np.float64) for image in (p, dark, flat, below))
    y = flat - below
    ratio = np.where(y > 0, y, 1.0) / np.maximum(p - dark, 1.0)
    logs = [nearest(decimal.Decimal(float(value)).ln()) for value in ratio.ravel()]
    return np.array(logs, np.float32).reshape(p.shape)


def counts(folder, report):
    lines = [json.loads(line) for line in (folder / report).read_text().splitlines()]
    return [page["clamped"] for line in lines for page in line["pages"]]


def frames(kind):
    """Bias, dark frame and flat fields, with dead pixels, and images of which some lie below the dark frame."""
    bias = rng.integers(5, 12, SHAPE)
    dark = bias + rng.integers(0, 9, SHAPE)
    flat = bias + rng.integers(90, 200, SHAPE)
    flat[rng.random(SHAPE) < 0.05] = 3
    other = np.maximum(flat - rng.integers(0, 40, SHAPE), 3)
    lights = rng.integers(0, 256, (6, *SHAPE))
    if kind == np.float32:
        return [(image / 7).astype(kind) for image in (bias, dark, flat, other, lights)]
    return [image.astype(kind) for image in (bias, dark, flat, other, lights)]


def whole(p, dark, flat, below, offset):
    """The definition for integers, before it is clamped."""
    p, dark, flat, below = (image.astype(np.int64) for image in (p, dark, flat, below))
    y = flat - below
    q, n = np.maximum(y, 1), y.size
    return (2 * (p - dark) * y.sum() + n * q) // (2 * n * q) + offset


def between(start, end, index, count):
    """The flat field of an image, by the definition."""
    steps = max(count - 1, 1)
    if start.dtype == np.float32:
        start, end = start.astype(np.float64), end.astype(np.float64)
        return ((start * (steps - index) + end * index) / steps).astype(np.float32)
    exact = start.astype(np.int64) * (steps - index) + end.astype(np.int64) * index
    return ((2 * exact + steps) // (2 * steps)).astype(start.dtype)


for kind in (np.uint8, np.uint16, np.int16, np.float32):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "lights").mkdir()
        bias, dark, flat, other, lights = frames(kind)
        for name, image in (("bias", bias), ("dark", dark), ("flat", flat), ("other", other)):
            np.save(folder / f"{name}.npy", image)
        for index, image in enumerate(lights):
            np.save(folder / f"lights/{index}.npy", image)
        plain = ("--dark", "dark.npy", "--flat", "flat.npy", "--to", "f32")
        biased = (*plain, "--bias", "bias.npy")
        run(folder, "calibrate", *plain, "--offset", -3, "lights", "plain", "-q")
        run(folder, "calibrate", *biased, "lights", "biased", "-q")
        run(folder, "calibrate", *plain, "--log", "lights", "logs", "-q", "--report", "logs.jsonl", "-j", 1)
        clamped = []
        for index, image in enumerate(lights):
            name = f"{index}.npy"
            compared("f32", np.load(folder / "plain" / name), real(image, dark, flat, dark, -3))
            compared("f32, bias", np.load(folder / "biased" / name), real(image, dark, flat, bias))
            compared("log", np.load(folder / "logs" / name), attenuation(image, dark, flat, dark))
            clamped.append(int((image.astype(np.float64) - dark < 1).sum()))
        compared("clamped, log", np.array(counts(folder, "logs.jsonl")), np.array(clamped))
        changing = ("--dark", "dark.npy", "--flat-start", "flat.npy", "--flat-end", "other.npy")
        count = len(lights)
        if kind == np.float32:
            run(folder, "calibrate", *changing, "--to", "f32", "lights", "series", "-q")
            for index, image in enumerate(lights):
                expected = real(image, dark, between(flat, other, index, count), dark)
                compared("series, f32", np.load(folder / f"series/{index}.npy"), expected)
            continue
        for part in (1, 2, 3):
            run(folder, "calibrate", *changing, "lights", "series", "-q", "--shard", f"{part}/3")
        run(folder, "calibrate", "--dark", "dark.npy", "--flat", "flat.npy", "--offset", 9, "lights", "out", "-q", "--report", "out.jsonl", "-j", 1)
        clamped, info = [], np.iinfo(kind)
        for index, image in enumerate(lights):
            expected = whole(image, dark, between(flat, other, index, count), dark, 0)
            compared("series", np.load(folder / f"series/{index}.npy"), expected.clip(info.min, info.max).astype(kind))
            expected = whole(image, dark, flat, dark, 9)
            compared("whole", np.load(folder / f"out/{index}.npy"), expected.clip(info.min, info.max).astype(kind))
            clamped.append(int(((expected < info.min) | (expected > info.max)).sum()))
        compared("clamped", np.array(counts(folder, "out.jsonl")), np.array(clamped))

# Logarithms of many quotients: a flat field of ones, and images of any magnitude; and all of those of small whole numbers.
with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    magnitudes = (2.0 ** rng.uniform(0, 120, (200, 250))).astype(np.float32)
    near = (1 + rng.integers(0, 1 << 23, (200, 250)) * 2.0**-23).astype(np.float32)
    np.save(folder / "one.npy", np.ones((200, 250), np.float32))
    for name, image in (("magnitudes", magnitudes), ("near", near)):
        np.save(folder / f"{name}.npy", image)
        run(folder, "calibrate", "--to", "f32", "--log", "--flat", "one.npy", f"{name}.npy", "out.npy", "-f", "-q")
        zero, one = np.zeros_like(image), np.ones_like(image)
        compared("logarithms", np.load(folder / "out.npy"), attenuation(image, zero, one, zero))
    numerators, denominators = (axis.astype(np.uint16) for axis in np.mgrid[1:201, 1:251])
    np.save(folder / "numerators.npy", numerators)
    np.save(folder / "denominators.npy", denominators)
    run(folder, "calibrate", "--to", "f32", "--log", "--flat", "numerators.npy", "denominators.npy", "ratios.npy", "-q")
    zero = np.zeros_like(numerators)
    compared("ratios", np.load(folder / "ratios.npy"), attenuation(denominators, zero, numerators, zero))
    assert math.log(2) == float(decimal.Decimal(2).ln())
print(f"{cases} results as NumPy, fractions and decimal have them")
