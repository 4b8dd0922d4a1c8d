#!/usr/bin/env python3
"""Lengths of PNG files: gpuimg's `--png fast` and `small` beside pyvips' at its default level.

    pip install numpy pyvips-binary pyvips tifffile
    benches/peers/png_sizes.py [GPUIMG]

Prints a line an image: the length of gpuimg's files by the shorter of pyvips' two (without filter, and with adaptive
filters), and pyvips' processor seconds for each. Every file of gpuimg is read back by pyvips and compared.
"""
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import pyvips
import tifffile

GPUIMG = sys.argv[1] if len(sys.argv) > 1 else "gpuimg"
SAMPLES = pathlib.Path(__file__).parents[2] / "samples"
SIDE = 2048
draw = numpy.random.default_rng(1)


def u16(values):
    return numpy.clip(values, 0, 65535).astype(numpy.uint16)


def dark(level, noise):
    return u16(numpy.rint(level + draw.normal(0, noise, (SIDE, SIDE))))


def stars():
    sky = 1000 + draw.normal(0, 8, (SIDE, SIDE))
    offsets = numpy.arange(-7, 8)
    spot = numpy.exp(-(offsets[:, None] ** 2 + offsets**2) / 4.5) / (2 * numpy.pi * 2.25)
    for _ in range(3000):
        x, y = draw.integers(8, SIDE - 8, 2)
        sky[y - 7 : y + 8, x - 7 : x + 8] += 10 ** draw.uniform(2, 5) * spot
    return u16(sky)


def tiled(tile):
    times = [-(-SIDE // side) for side in tile.shape[:2]]
    return numpy.tile(tile, times)[:SIDE, :SIDE]


def camera(channels):
    y, x = numpy.mgrid[0:SIDE, 0:SIDE] / SIDE
    mean = (20000 + 15000 * numpy.sin(7 * x) * numpy.cos(5 * y))[:, :, None] * [1, 0.8, 0.6][:channels]
    return u16(mean + 0.8 * numpy.sqrt(mean) * draw.normal(size=mean.shape)).squeeze()


def labels():
    y, x = numpy.ogrid[0:SIDE, 0:SIDE]
    found = numpy.zeros((SIDE, SIDE), numpy.uint16)
    for label in range(1, 401):
        (left, top), radius = draw.integers(0, SIDE, 2), draw.integers(10, 60)
        found[(x - left) ** 2 + (y - top) ** 2 < radius**2] = label
    return found


def smooth():
    y, x = numpy.mgrid[0:SIDE, 0:SIDE] / SIDE
    return u16(20000 + 15000 * numpy.sin(7 * x) * numpy.cos(5 * y))


def images():
    thermal = tifffile.imread(SAMPLES / "thermal.tif")
    yield "dark, noise of 6", dark(500, 6)
    yield "dark, noise of 3", dark(100, 3)
    yield "stars", stars()
    yield "thermal", thermal
    yield "thermal in tiles", tiled(thermal)
    yield "noise in tiles", tiled(u16(20000 + draw.normal(0, 300, (200, 300))))
    yield "nuclei", tifffile.imread(SAMPLES / "nuclei.tif")
    yield "camera", camera(1)
    yield "camera, RGB", camera(3)
    yield "labels", labels()
    yield "smooth", smooth()


def vips(samples, path, filters):
    kind = "rgb16" if samples.ndim == 3 else "grey16"
    image = pyvips.Image.new_from_array(samples).copy(interpretation=kind)
    start = time.process_time()
    image.pngsave(path, filter=filters)
    return pathlib.Path(path).stat().st_size, time.process_time() - start


def main():
    pyvips.cache_set_max(0)  # files of one name after the other
    print(f"{'':18}{'fast':>8}{'small':>8}   pyvips: without filters, with, in seconds")
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/in.tif", f"{folder}/out.png"
        for name, image in images():
            tifffile.imwrite(source, image[:, ::-1], photometric="rgb" if image.ndim == 3 else "minisblack")
            theirs = [vips(image, target, filters) for filters in ("none", "all")]
            ours = []
            for mode in ("fast", "small"):
                pathlib.Path(target).unlink()
                subprocess.run([GPUIMG, "flip", "horizontal", source, target, "--png", mode, "-q"], check=True)
                read = pyvips.Image.new_from_file(target).numpy()
                assert numpy.array_equal(read.squeeze(), image), f"{name}, {mode}: other pixels"
                ours.append(pathlib.Path(target).stat().st_size / min(length for length, _ in theirs))
            seconds = ", ".join(f"{seconds:.2f}" for _, seconds in theirs)
            print(f"{name:18}{ours[0]:8.3f}{ours[1]:8.3f}   {seconds}", flush=True)


if __name__ == "__main__":
    main()
