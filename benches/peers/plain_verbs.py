#!/usr/bin/env python3
"""Times `convert`, `crop`, `preview` and `combine` on folders of images against OpenCV, pyvips and ImageMagick, on the CPU.

    pip install numpy opencv-python-headless pyvips-binary pyvips
    benches/peers/plain_verbs.py [GPUIMG [FILES]]

64 camera-like images of 2048x2048 and 16 bits as PNG and as uncompressed TIFF, in the page cache. gpuimg is timed with its start. OpenCV
and pyvips run in a pool with a process for each core, which is started before, each image in one thread. ImageMagick is a process for
each image, as many at a time as there are cores; it is left out where `convert-im6.q16` is missing. All run in turns, five times; a line
gives the medians in seconds, and the best rival's time by gpuimg's.

Every program writes what gpuimg's verb defines as far as it can: `crop` a square of 1024 pixels, `preview` a JPEG of 1024 pixels with the
range of the percentiles 0.1 and 99.9, `combine` an RGB image of three grey ones.
"""
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy
import pyvips

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPUIMG = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/gpuimg").resolve()
FILES = int(sys.argv[2]) if len(sys.argv) > 2 else 64
SIDE, CROP = 2048, (512, 256, 1024)
CORES = len(os.sched_getaffinity(0))
PLAIN_TIFF = [cv2.IMWRITE_TIFF_COMPRESSION, 1]


def make(folder):
    y, x = numpy.mgrid[0:SIDE, 0:SIDE].astype(numpy.float32) / SIDE
    mean = 20000 + 15000 * numpy.sin(7 * x) * numpy.cos(5 * y)
    for number in range(4):
        noise = numpy.random.default_rng(number).standard_normal(mean.shape, numpy.float32)
        image = (mean + 0.8 * numpy.sqrt(mean) * noise).astype(numpy.uint16)
        for kind in ("png", "tif"):
            cv2.imwrite(str(folder / f"first.{kind}"), image, PLAIN_TIFF if kind == "tif" else [])
            (folder / kind).mkdir(exist_ok=True)
            for copy in range(number, FILES, 4):
                shutil.copy(folder / f"first.{kind}", folder / kind / f"{copy:03}.{kind}")


# What a process of OpenCV's pool and of pyvips' pool does with some inputs and an output.

def opencv(verb, inputs, output):
    images = [cv2.imread(name, cv2.IMREAD_UNCHANGED) for name in inputs]
    image = images[0]
    if verb == "crop":
        x, y, side = CROP
        image = image[y:y + side, x:x + side]
    elif verb == "combine":
        image = cv2.merge(images[::-1])
    elif verb == "preview":
        counts = cv2.calcHist([image], [0], None, [65536], [0, 65536]).ravel().cumsum()
        low, high = numpy.searchsorted(counts, [counts[-1] * 0.001, counts[-1] * 0.999])
        small = cv2.resize(image, (1024, 1024), interpolation=cv2.INTER_AREA)
        image = cv2.convertScaleAbs(small.astype(numpy.float32) - float(low), alpha=255 / max(1, int(high - low)))
    cv2.imwrite(output, image, PLAIN_TIFF if output.endswith("tif") else [])


def vips(verb, inputs, output):
    images = [pyvips.Image.new_from_file(name, access="sequential" if verb != "preview" else "random") for name in inputs]
    image = images[0]
    if verb == "crop":
        image = image.crop(CROP[0], CROP[1], CROP[2], CROP[2])
    elif verb == "combine":
        image = image.bandjoin(images[1:]).copy(interpretation="rgb16")
    elif verb == "preview":
        low, high = image.percent(0.1), image.percent(99.9)
        image = ((image.shrink(2, 2) - low) * (255 / max(1, high - low))).cast("uchar")
    image.write_to_file(output)


def run_task(task):
    program, verb, inputs, output = task
    program(verb, inputs, output)


def begin():
    cv2.setNumThreads(1)
    pyvips.cache_set_max(0)


def magick(verb, inputs, output):
    x, y, side = CROP
    options = {
        "convert": [], "crop": ["-crop", f"{side}x{side}+{x}+{y}", "+repage"],
        "combine": ["-combine"], "preview": ["-contrast-stretch", "0.1%x0.1%", "-scale", "1024x1024", "-depth", "8"],
    }[verb]
    subprocess.run(["convert-im6.q16", *inputs, *options, output], check=True)


def rows():
    """A verb, the kinds of its inputs and outputs, and gpuimg's arguments between its input and its output."""
    for kind, other in (("png", "tif"), ("tif", "png")):
        yield "convert", kind, other, ["--format", other]
        yield "crop", kind, kind, []
        yield "preview", kind, "jpg", ["--format", "jpg"]
        yield "combine", kind, kind, []


def gpuimg(verb, options, inputs, output):
    arguments = {"crop": [f"{CROP[0]},{CROP[1]},{CROP[2]}x{CROP[2]}"]}.get(verb, [])
    command = [GPUIMG, verb, *arguments, *inputs, output, *options, "-q", "--device", "cpu"]
    subprocess.run(command, check=True)


def main():
    os.environ["VIPS_CONCURRENCY"] = "1"
    rivals = {"OpenCV": opencv, "pyvips": vips}
    if shutil.which("convert-im6.q16"):
        rivals["ImageMagick"] = magick
    print(f"{FILES} images of {SIDE}x{SIDE}, {CORES} cores")
    print("".join(f"{name:>14}" for name in ["", "gpuimg", *rivals, "best / gpuimg"]))
    with tempfile.TemporaryDirectory() as name, multiprocessing.get_context("spawn").Pool(CORES, begin) as pool:
        folder = pathlib.Path(name)
        make(folder)
        for verb, kind, other, options in rows():
            names = sorted(str(path) for path in (folder / kind).iterdir())
            # combine makes one file a call, of three images.
            sets = [names[i:i + 3] for i in range(0, len(names) - 2, 3)] if verb == "combine" else [[name] for name in names]
            seconds = []
            for _ in range(5):
                times = []
                for program in ["gpuimg", *rivals]:
                    target = folder / "out"
                    shutil.rmtree(target, ignore_errors=True)
                    target.mkdir()
                    tasks = [(rivals.get(program), verb, inputs, str(target / f"{pathlib.Path(inputs[0]).stem}.{other}")) for inputs in sets]
                    start = time.perf_counter()
                    if program != "gpuimg":
                        pool.map(run_task, tasks, chunksize=1)
                    elif verb == "combine":
                        for _, _, inputs, output in tasks:
                            gpuimg(verb, options, inputs, output)
                    else:
                        gpuimg(verb, options, [str(folder / kind)], str(target))
                    times.append(time.perf_counter() - start)
                    assert len(list(target.glob(f"*.{other}"))) == len(sets), program
                seconds.append(times)
            mine, *others = (statistics.median(column) for column in zip(*seconds))
            line = f"{verb + ' ' + kind:>14}{mine:14.3f}" + "".join(f"{other:14.3f}" for other in others)
            print(f"{line}{min(others) / mine:14.2f}", flush=True)


if __name__ == "__main__":
    main()
