#!/usr/bin/env python3
"""Times gpuimg on folders of images against OpenCV in a pool of processes, and CuPy in threads.

    cargo build --release && benches/peers/batch_peers.py [--quick] [--gpu] [--files N] [SET ...]

Makes the sets in a temporary folder: png and tif, N (64) camera-like images of 2048x2048 and 16 bits,
tiny, 10 000 PNGs of 64x64, and small, 1000 TIFFs of 256x256. All programs normalize each set, in turn (A B C A B C ...), whole
processes with their start, inputs in the page cache, the results' folder removed before. A line
gives the median of each program's seconds, its files a second, and the median and the range of the
ratios to gpuimg's run of the same round on the CPU. Samples that differ from the exact result are
counted in three files of each; of gpuimg's none may.

OpenCV does it as its users do, an image a process of a pool as large as the machine, each with one
thread. With --gpu, gpuimg works on the GPU and with `--device auto` too, and 16 threads take turns
with CuPy. Python's packages go into a throw-away environment in the cache folder, which peers.py has
too; --here takes those of this interpreter. The environment's GPUIMG is the program measured.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "gpuimg-peers"
PACKAGES = ["numpy", "opencv-python-headless", "tifffile"]
GPUIMG = os.environ.get("GPUIMG", str(HERE.parents[1] / "target" / "release" / "gpuimg"))
SETS = {"png": ("png", 2048, None), "tif": ("tif", 2048, None), "tiny": ("png", 64, 10_000), "small": ("tif", 256, 1000)}
DISTINCT = 4  # images of a set; the others are copies

COMMON = """
import os, sys, cv2
source, target, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.makedirs(target)
def write(name, image):
    cv2.imwrite(f"{target}/{name}", image, [cv2.IMWRITE_TIFF_COMPRESSION, 1] if name.endswith("tif") else [])
def read(name):
    return cv2.imread(f"{source}/{name}", cv2.IMREAD_UNCHANGED)
"""
OPENCV = COMMON + """
import multiprocessing
def one(name):
    write(name, cv2.normalize(read(name), None, 0, 65535, cv2.NORM_MINMAX))
with multiprocessing.get_context("fork").Pool(workers, cv2.setNumThreads, (1,)) as pool:
    pool.map(one, sorted(os.listdir(source)))
"""
CUPY = COMMON + """
import concurrent.futures, cupy
def one(name):
    image = cupy.asarray(read(name))
    least, most = image.min(), image.max()
    factor = cupy.float32(65535) / (most - least).astype(cupy.float32)
    scaled = (image.astype(cupy.float32) - least) * factor + cupy.float32(0.5)
    write(name, cupy.asnumpy(scaled.astype(cupy.uint16)))
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    list(pool.map(one, sorted(os.listdir(source))))
"""
MAKE = """
import sys, cv2, numpy
folder, suffix, side, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
y, x = numpy.mgrid[0:side, 0:side].astype(numpy.float32) / side
field = 20000 + 15000 * numpy.sin(7 * x) * numpy.cos(5 * y)
for seed in range(count):
    noise = numpy.random.default_rng(seed).standard_normal(field.shape, numpy.float32)
    image = (field + 0.8 * numpy.sqrt(field) * noise).astype(numpy.uint16)
    options = [cv2.IMWRITE_TIFF_COMPRESSION, 1] if suffix == "tif" else []
    cv2.imwrite(f"{folder}/{seed:05}.{suffix}", image, options)
"""


def installed(arguments):
    """The interpreter that has the packages."""
    if arguments.here:
        return sys.executable
    python = CACHE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE], check=True)
    packages = PACKAGES + ["cupy-cuda12x[ctk]"] * arguments.gpu
    known = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    if not all(package.partition("[")[0] in known for package in packages):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return str(python)


def made(folder, python, suffix, side, count):
    folder.mkdir()
    distinct = min(DISTINCT, count)
    subprocess.run([python, "-c", MAKE, folder, suffix, str(side), str(distinct)], check=True)
    for i in range(distinct, count):
        shutil.copy(folder / f"{i % distinct:05}.{suffix}", folder / f"{i:05}.{suffix}")


def seconds(command, target):
    shutil.rmtree(target, ignore_errors=True)
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def wrong(python, source, target):
    """Samples of three files that are not what they should be."""
    files = sorted(source.iterdir())
    check = [python, HERE / "peers_images.py", "check"]
    found = [subprocess.run([*check, file, target / file.name], capture_output=True, text=True, check=True).stdout
             for file in (files[0], files[len(files) // 2], files[-1])]
    return sum(map(int, found))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 5")
    parser.add_argument("--gpu", action="store_true", help="gpuimg and CuPy on the GPU, too")
    parser.add_argument("--files", type=int, default=64, metavar="N", help="images of 2048x2048 in a set")
    parser.add_argument("--here", action="store_true", help="take this interpreter's packages, install none")
    arguments = parser.parse_args()
    if unknown := set(arguments.sets) - set(SETS):
        parser.error(f"no such set: {', '.join(unknown)}")
    python, cores = installed(arguments), str(len(os.sched_getaffinity(0)))

    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place) / "in", Path(place) / "out"
        gpuimg = lambda device: [GPUIMG, "normalize", "-q", "--device", device, source, target]
        programs = {"gpuimg, CPU": gpuimg("cpu"), "OpenCV, pool": [python, "-c", OPENCV, source, target, cores]}
        if arguments.gpu:
            programs |= {"gpuimg, GPU": gpuimg("gpu"), "gpuimg, auto": gpuimg("auto"),
                         "OpenCV + CuPy": [python, "-c", CUPY, source, target, cores]}
        print(f"{cores} cores; ratio = seconds by those of gpuimg on the CPU in the same round, median [least–most]")
        print(f"{'set':5} {'files':>6} {'program':14} {'seconds':>8} {'files/s':>8} {'ratio':>7}".ljust(70) + "wrong samples")
        for name in arguments.sets or SETS:
            suffix, side, count = SETS[name]
            count = count or arguments.files
            made(source, python, suffix, side, count)
            times, faults = {program: [] for program in programs}, {}
            for turn in range(1 + (3 if arguments.quick else 5)):
                for program, command in programs.items():
                    took = seconds(command, target)
                    if turn:  # the first round warms up
                        times[program].append(took)
                    else:
                        faults[program] = wrong(python, source, target)
            shutil.rmtree(source)
            ours = times["gpuimg, CPU"]
            for program, took in times.items():
                ratios = sorted(theirs / mine for theirs, mine in zip(took, ours))
                median = statistics.median(took)
                print(f"{name:5} {count:6} {program:14} {median:8.3f} {count / median:8.0f}"
                      f" {statistics.median(ratios):7.2f} [{ratios[0]:.2f}–{ratios[-1]:.2f}]".ljust(70)
                      + f"{faults[program]}", flush=True)
                if program.startswith("gpuimg") and faults[program]:
                    sys.exit("samples of gpuimg's are wrong")


if __name__ == "__main__":
    main()
