#!/usr/bin/env python3
"""Lengths of PNG files: gpuimg's `--png fast` and `small` beside pyvips' at its default level.

    pip install numpy pyvips-binary pyvips tifffile
    benches/peers/png_sizes.py [GPUIMG]

Prints a line an image: the length of gpuimg's files by the shorter of pyvips' two (without filter, and with adaptive
filters), and pyvips' seconds for each by those of `small`: medians of five in turns, gpuimg's with its start and from
a TIFF, pyvips' from memory. Every file of gpuimg is read back by pyvips and compared.
"""
import pathlib
import statistics
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
    yield "camera, 8 bits", (camera(1) >> 8).astype(numpy.uint8)
    yield "labels, 8 bits", labels().astype(numpy.uint8)
    yield "smooth, 8 bits", (smooth() >> 8).astype(numpy.uint8)


def vips(samples, path, filters):
    kind = ("rgb" if samples.ndim == 3 else "grey") + str(8 * samples.itemsize)
    image = pyvips.Image.new_from_array(samples)
    image.copy(interpretation={"rgb8": "srgb", "grey8": "b-w"}.get(kind, kind)).pngsave(path, filter=filters)


def timed(work, *arguments):
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def main():
    pyvips.cache_set_max(0)  # files of one name after the other
    print(f"{'':18}{'fast':>8}{'small':>8}   pyvips' seconds by small's: without filters, with")
    with tempfile.TemporaryDirectory() as folder:
        source, target, theirs = f"{folder}/in.tif", f"{folder}/out.png", f"{folder}/vips.png"

        def gpuimg(mode):
            subprocess.run([GPUIMG, "flip", "horizontal", source, target, "--png", mode, "-q", "--overwrite"], check=True)

        for name, image in images():
            tifffile.imwrite(source, image[:, ::-1], photometric="rgb" if image.ndim == 3 else "minisblack")
            best = float("inf")
            for filters in ("none", "all"):
                vips(image, theirs, filters)
                best = min(best, pathlib.Path(theirs).stat().st_size)
            lengths = []
            for mode in ("fast", "small"):
                gpuimg(mode)
                read = pyvips.Image.new_from_file(target).numpy()
                assert numpy.array_equal(read.squeeze(), image), f"{name}, {mode}: other pixels"
                lengths.append(pathlib.Path(target).stat().st_size / best)
            rounds = [(timed(gpuimg, "small"), timed(vips, image, theirs, "none"), timed(vips, image, theirs, "all"))
                      for _ in range(5)]
            ours, plain, filtered = (statistics.median(column) for column in zip(*rounds))
            print(f"{name:18}{lengths[0]:8.3f}{lengths[1]:8.3f}   {plain / ours:.2f}, {filtered / ours:.2f}", flush=True)


if __name__ == "__main__":
    main()
