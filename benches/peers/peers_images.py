"""Inputs for peers.py, and the check of outputs:

    peers_images.py make FILE SIDE       a camera-like image; FILE's name says which (grey, rgb, own,
                                         paeth) and its extension the format
    peers_images.py check INPUT OUTPUT   prints how many samples are not exactly normalized
"""

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy
import tifffile

GPUIMG = os.environ.get("GPUIMG", str(Path(__file__).parents[2] / "target" / "release" / "gpuimg"))


def camera(side, channels):
    """A smooth field with shot noise, 16 bits: after filtering it entropy-codes to about 0.7."""
    random = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0:side, 0:side].astype(numpy.float32) / side
    field = 20000 + 15000 * numpy.sin(7 * x) * numpy.cos(5 * y)
    planes = [field * gain for gain in (1, 0.8, 0.6)[:channels]]
    planes = [p + 0.8 * numpy.sqrt(p) * random.standard_normal(p.shape, numpy.float32) for p in planes]
    return numpy.stack(planes, axis=2).astype(numpy.uint16)


def make(path, side):
    kind = path.stem
    image = camera(side, 3 if kind == "rgb" else 1)
    if path.suffix == ".tif":
        tifffile.imwrite(path, image[:, :, 0])
    elif kind == "paeth":
        cv2.imwrite(str(path), image, [cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_PAETH])
    else:
        cv2.imwrite(str(path), image)
    if kind == "own":  # turned over, so that gpuimg is who wrote it
        turned = path.with_suffix(".turned.png")
        subprocess.run([GPUIMG, "flip", "horizontal", path, turned], check=True)
        turned.replace(path)


def check(source, output):
    before, after = (cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in (source, output))
    if after is None or after.shape != before.shape or after.dtype != before.dtype:
        return before.size
    low, high = int(before.min()), int(before.max())
    values = numpy.arange(65536, dtype=numpy.int64) - low
    table = (values * 131070 + (high - low)) // (2 * (high - low))
    return numpy.count_nonzero(table.clip(0, 65535).astype(numpy.uint16)[before] != after)


if __name__ == "__main__":
    verb, first, second = sys.argv[1:]
    if verb == "make":
        make(Path(first), int(second))
    else:
        print(check(first, second))
