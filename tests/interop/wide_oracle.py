#!/usr/bin/env python3
"""Samples of 32 bits against Python's fractions, NumPy and tifffile: TIFFs of uint32, int32 and float32 of every byte order,
compression, predictor, layout and number of channels are turned, normalized and summed, and compared with the definitions of
docs/CONTRACT.md.

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
if cases < 400:
    sys.exit(f"only {cases} cases")
print(f"{cases} TIFFs, each turned, normalized and summed as NumPy and Python's fractions have it")
