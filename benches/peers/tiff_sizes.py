#!/usr/bin/env python3
"""Lengths of compressed TIFF files, and what they cost: gpuimg beside tifffile and pyvips.

    pip install numpy imagecodecs pyvips-binary pyvips tifffile
    benches/peers/tiff_sizes.py [GPUIMG]

Prints for each image and compression the length of gpuimg's file by tifffile's and by pyvips', and the processor time of
both by that of gpuimg's whole process. All three store differences of neighbours, at their default levels. Every file of gpuimg is read
back by tifffile and compared. pyvips' library has no zstd.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import pyvips
import tifffile

import png_sizes

GPUIMG = sys.argv[1] if len(sys.argv) > 1 else "gpuimg"
WAYS = {"deflate": "deflate", "zstd": None, "lzw": "lzw"}


def seconds(work):
    """Processor seconds of this process and its children."""
    def used():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    start = used()
    work()
    return used() - start


def vips(samples, path, way):
    kind = "rgb16" if samples.ndim == 3 else "grey16"
    image = pyvips.Image.new_from_array(samples).copy(interpretation=kind)
    return seconds(lambda: image.tiffsave(path, compression=way, predictor="horizontal"))


def main():
    pyvips.cache_set_max(0)  # files of one name after the other
    print("lengths by those of tifffile and pyvips; processor time of tifffile and pyvips by that of gpuimg")
    print(" " * 18 + "".join(f"{way:>30}" for way in WAYS))
    with tempfile.TemporaryDirectory() as folder:
        source, own, other = (Path(folder, name) for name in ("in.tif", "out.tif", "other.tif"))
        for name, samples in png_sizes.images():
            tifffile.imwrite(source, samples)
            samples, line = numpy.ascontiguousarray(samples[::-1]), f"{name:18}"
            for way, vips_way in WAYS.items():
                command = [GPUIMG, "flip", "vertical", "-q", "--overwrite", "--tiff", way, source, own]
                ours = seconds(lambda: subprocess.run(command, check=True))
                assert (tifffile.imread(own) == samples).all(), f"{name}: other samples"
                length = own.stat().st_size
                took = seconds(lambda: tifffile.imwrite(other, samples, compression=way, predictor=True))
                cell = f"{length / other.stat().st_size:9.3f} {took / ours:5.1f}×"
                if vips_way:
                    took = vips(samples, other, vips_way)
                    cell += f"{length / other.stat().st_size:8.3f} {took / ours:5.1f}×"
                line += f"{cell:>30}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
