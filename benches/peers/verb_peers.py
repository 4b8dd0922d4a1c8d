#!/usr/bin/env python3
"""Times single verbs and formats of gpuimg on the CPU against pyvips, file to file.

    pip install numpy pyvips-binary pyvips tifffile
    benches/peers/verb_peers.py [GPUIMG]

gpuimg is timed with its start, pyvips in this process without Python's. They run in turns, nine times each; a line gives
the medians, pyvips' time by gpuimg's, and the length of gpuimg's file by pyvips' where both write one.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPUIMG = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/gpuimg").resolve()
SIDE = 4096
pyvips.cache_set_max(0)


def camera(channels):
    y, x = numpy.mgrid[0:SIDE, 0:SIDE] / SIDE
    mean = (20000 + 15000 * numpy.sin(7 * x) * numpy.cos(5 * y))[:, :, None] * [1, 0.8, 0.6][:channels]
    noise = numpy.random.default_rng(1).normal(size=mean.shape)
    return (mean + 0.8 * numpy.sqrt(mean) * noise).astype(numpy.uint16).squeeze()


def loaded(path):
    return pyvips.Image.new_from_file(str(path), access="sequential")


def rows(folder):
    """Name, gpuimg's arguments, what pyvips does, and the output of each, if there is one."""
    grey, rgb = camera(1), camera(3)
    vips = {name: pyvips.Image.new_from_array(image).copy(interpretation=kind)
            for name, image, kind in (("grey", grey, "grey16"), ("rgb", rgb, "rgb16"))}
    tifffile.imwrite(folder / "rgb.tif", rgb, photometric="rgb")
    vips["grey"].pngsave(str(folder / "adaptive.png"), filter="all")
    vips["grey"].pngsave(str(folder / "interlaced.png"), interlace=True)
    vips["rgb"].tiffsave(str(folder / "deflate.tif"), compression="deflate", predictor="horizontal")
    tifffile.imwrite(folder / "grey.tif", grey)
    yield ("rotate 90, RGB TIFF of 16 bits", ["rotate", "90", "rgb.tif", "o.tif"],
           lambda: pyvips.Image.new_from_file(str(folder / "rgb.tif")).rot90().tiffsave(str(folder / "v.tif")), "tif")
    for name in ("adaptive.png", "interlaced.png", "deflate.tif"):
        yield f"sum, {name}", ["sum", name], lambda name=name: loaded(folder / name).avg(), None
    for mode in ("fast", "small"):
        yield (f"PNG, {mode}, of a TIFF", ["flip", "horizontal", "grey.tif", "o.png", "--png", mode],
               lambda: loaded(folder / "grey.tif").fliphor().pngsave(str(folder / "v.png")), "png")
    for packing in ("deflate", "lzw"):
        yield (f"TIFF, {packing}, of a TIFF", ["flip", "horizontal", "grey.tif", "o.tif", "--tiff", packing],
               lambda packing=packing: loaded(folder / "grey.tif").fliphor().tiffsave(
                   str(folder / "v.tif"), compression=packing, predictor="horizontal"), "tif")


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    print(f"{'':38}{'gpuimg':>9}{'pyvips':>9}{'times':>8}{'length':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what, arguments, theirs, kind in rows(folder):
            ours = lambda: subprocess.run([GPUIMG, *arguments, "-q", "--device", "cpu"], cwd=folder, check=True, capture_output=True)
            seconds = []
            for _ in range(9):
                if kind:
                    (folder / f"o.{kind}").unlink(missing_ok=True)
                seconds.append((timed(ours), timed(theirs)))
            mine, other = (statistics.median(column) for column in zip(*seconds))
            length = (folder / f"o.{kind}").stat().st_size / (folder / f"v.{kind}").stat().st_size if kind else float("nan")
            print(f"{what:38}{mine:9.3f}{other:9.3f}{other / mine:8.2f}{length:8.3f}", flush=True)


if __name__ == "__main__":
    main()
