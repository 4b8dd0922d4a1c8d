#!/usr/bin/env python3
"""Samples of 32 bits against Python's fractions, NumPy and tifffile: TIFFs of uint32, int32 and float32 of every byte order,
compression, predictor, layout and number of channels are turned, normalized and summed, and compared with the definitions of
docs/CONTRACT.md. The medians of `--range stf` are NumPy's.

usage: wide_oracle.py GPUIMG
"""

import fractions
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tifffile

gpuimg = str(pathlib.Path(sys.argv[1]).resolve())
rng = np.random.default_rng(11)
folder = pathlib.Path(tempfile.mkdtemp())


def run(*args):
    done = subprocess.run([gpuimg, *map(str, args)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr}")
    return done.stdout


def picture(kind, shape):
    if kind == "f4":
        image = rng.integers(0, 2**32, shape, np.uint32).view("f4").copy()
        image[~np.isfinite(image)] = -0.0
        return image
    if kind == "ties":
        return rng.integers(0, 131071, shape).astype("f4")
    if kind == "unit":
        return rng.random(shape, np.float32)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, kind, endpoint=True)


def normalized(image, per_channel):
    def stretched(colours):
        values = [fractions.Fraction(value) for value in colours.ravel().tolist()]
        least, most = min(values), max(values)
        step = fractions.Fraction(65535) / (most - least)
        whole = [math.floor((value - least) * step + fractions.Fraction(1, 2)) for value in values]
        return np.array(whole, np.uint16).reshape(colours.shape)

    if per_channel and image.ndim == 3:
        return np.stack([stretched(image[..., channel]) for channel in range(image.shape[2])], axis=-1)
    return stretched(image)


def screen_stretched(image):
    """`--range stf`: medians by NumPy, the curve in fractions."""
    half = fractions.Fraction(1, 2)
    channels = image.reshape(image.shape[0] * image.shape[1], -1).astype("f8").T
    lowest, highest = channels.min(), channels.max()
    if image.dtype.kind in "ui":
        info = np.iinfo(image.dtype)
        lowest, highest = float(info.min), float(info.max)
    elif 0 <= lowest and highest <= 1:
        lowest, highest = 0.0, 1.0
    width = highest - lowest
    medians = [float(np.median(channel)) for channel in channels]
    spreads = [float(np.median(np.abs(channel - median))) for channel, median in zip(channels, medians)]
    clipping = 2.8 * (sum(1.4826 * spread if spread else 0.001 * width for spread in spreads) / len(spreads))
    median = sum(medians) / len(medians)
    inverted = all(median > (lowest + highest) / 2 for median in medians)
    end = min(median + clipping, highest) if inverted else max(median - clipping, lowest)
    end = math.floor(end + 0.5) if image.dtype.kind in "ui" else float(image.dtype.type(end))
    x = fractions.Fraction(min(max(math.floor(abs(end - median) / width * 2**32 + 0.5), 1), 2**32), 2**32)
    balance = 3 * x / (2 * x + 1)
    if inverted:
        balance = 1 - balance
    least, most = map(fractions.Fraction, (lowest, end) if inverted else (end, highest))
    results = []
    for value in image.ravel().tolist():
        value = (min(max(fractions.Fraction(value), least), most) - least) / (most - least)
        value = fractions.Fraction(math.floor(value * 65535 + half), 65535)
        value = (1 - balance) * value / ((1 - 2 * balance) * value + balance) if value else value
        results.append(math.floor(value * 65535 + half))
    return np.array(results, np.uint16).reshape(image.shape)


def sky(kind, shape):
    """A dark background with noise, or a bright one, and a few stars."""
    level = rng.choice([0.02, 0.9])
    values = np.abs(rng.normal(level, 0.003, shape)).clip(0, 1)
    values[rng.random(shape) < 0.01] = 1
    info = np.iinfo(kind) if kind in ("u4", "i4") else None
    if info:
        return (values * (int(info.max) - int(info.min)) + int(info.min)).clip(info.min, info.max).astype(kind)
    return (values * (50000 if kind == "f8" else 1) - (100 if kind == "f8" else 0)).astype("f8" if kind == "f8" else "f4")


cases = 0
layouts = ({}, {"rowsperstrip": 7}, {"tile": (32, 16)}, {"planarconfig": "separate"})
codecs = ((None, None), ("lzw", None), ("lzw", True), ("zlib", True), ("zstd", True), ("packbits", None))
for kind, order, layout, (codec, predictor), channels in itertools.product(
    ("u4", "i4", "f4", "ties", "unit"), "<>", layouts, codecs, (1, 3)
):
    if "planarconfig" in layout and channels == 1:
        continue
    shape = (37, 29) + ((3,) if channels == 3 else ())
    image = picture(kind, shape)
    there = np.moveaxis(image, -1, 0) if "planarconfig" in layout else image
    options = dict(layout, photometric="rgb" if channels == 3 else "minisblack", compression=codec, metadata=None)
    tifffile.imwrite(folder / "in.tif", there, byteorder=order, predictor=predictor, **options)
    what = (kind, order, layout, codec, predictor, channels)

    kept = ("none", "deflate", "lzw", "zstd")[cases % 4]
    run("flip", "horizontal", "in.tif", "out.tif", "--overwrite", "--tiff", kept)
    found = tifffile.imread(folder / "out.tif")
    if found.dtype.newbyteorder("=") != image.dtype or found.astype(image.dtype).tobytes() != image[:, ::-1].tobytes():
        sys.exit(f"flipped differs: {what} {kept}")

    per_channel = cases % 3 == 0
    run("normalize", "in.tif", "out.npy", "--overwrite", *(["--per-channel"] if per_channel else []))
    found, expected = np.load(folder / "out.npy"), normalized(image, per_channel)
    if not np.array_equal(found, expected):
        sys.exit(f"normalized differs: {what} {np.argwhere(found != expected)[:3]}")

    total = json.loads(run("sum", "--all", "--json", "in.tif"))
    exact = image.astype(object).sum() if image.dtype.kind != "f" else math.fsum(image.ravel().tolist())
    if (total["sum"], total["min"], total["max"]) != (exact, image.min(), image.max()):
        sys.exit(f"sum differs: {what} {total} {exact}")
    cases += 1
for kind, side, channels in itertools.product(("u4", "i4", "f4", "f8", "flat"), (1, 2, 5, 31, 32), (1, 3)):
    shape = (side, side + 2) + ((3,) if channels == 3 else ())
    image = np.full(shape, 0.25, "f4") if kind == "flat" else sky(kind, shape)
    tifffile.imwrite(folder / "in.tif", image, photometric="rgb" if channels == 3 else "minisblack", metadata=None)
    run("normalize", "--range", "stf", "in.tif", "out.npy", "--overwrite")
    found, expected = np.load(folder / "out.npy"), screen_stretched(image)
    if not np.array_equal(found, expected):
        sys.exit(f"stf differs: {kind} {shape} {np.argwhere(found != expected)[:3]}")
    cases += 1
if cases < 450:
    sys.exit(f"only {cases} cases")
print(f"{cases} TIFFs, turned, normalized and summed as NumPy and Python's fractions have it")
