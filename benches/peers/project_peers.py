#!/usr/bin/env python3
"""Times gpuimg's `project mean` and `calibrate` against NumPy, OpenCV, GraphicsMagick and ImageJ.

    cargo build --release && benches/peers/project_peers.py [--quick] [--gpu] [--files N] [--here] [SET ...]

Makes the sets in a temporary folder: png and tif, N (256) camera-like images of 2048x2048 and 16 bits.
All programs make the mean of each set, in turn (A B C A B C ...), whole processes with their start,
inputs in the page cache; then gpuimg and OpenCV subtract a dark frame from every image and divide it by a
flat field. A line gives the median of each program's seconds, its files a second, and the median and the
range of the ratios to gpuimg's run of the same round on the CPU. Samples of the mean that differ from the
exact one are counted; of gpuimg's none may.

NumPy and OpenCV do it as their users do, with a process for each core: each adds up its share of the
files, NumPy in 32 bits, OpenCV with cv2.accumulate in doubles. GraphicsMagick is `gm convert -average`,
where it is installed; ImageJ is its Z project by average over a folder, where the environment's IMAGEJ
names ij.jar and a display is there (`xvfb-run -a`). With --gpu, gpuimg works on the GPU too. Packages and GPUIMG are those of batch_peers.py.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from batch_peers import GPUIMG, SETS, installed, made, seconds

COMMON = """
import multiprocessing, os, sys, cv2, numpy
source, target, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = sorted(os.listdir(source))
read = lambda name: cv2.imread(f"{source}/{name}", cv2.IMREAD_UNCHANGED)
def write(path, image):
    cv2.imwrite(path, image, [cv2.IMWRITE_TIFF_COMPRESSION, 1] if path.endswith("tif") else [])
"""
MEAN = """
os.makedirs(target)
with multiprocessing.get_context("fork").Pool(workers, cv2.setNumThreads, (1,)) as pool:
    sums = sum(pool.map(share, [names[i::workers] for i in range(workers)]))
mean = numpy.floor((2 * sums.astype(numpy.float64) + len(names)) / (2 * len(names))).astype(numpy.uint16)
write(f"{target}/mean.{names[0][-3:]}", mean)
"""
NUMPY = COMMON + """
def share(names):
    sums = numpy.zeros(read(names[0]).shape, numpy.uint32)
    for name in names:
        sums += read(name)
    return sums
""" + MEAN
OPENCV = COMMON + """
def share(names):
    sums = numpy.zeros(read(names[0]).shape, numpy.float64)
    for name in names:
        cv2.accumulate(read(name), sums)
    return sums
""" + MEAN
CALIBRATE = COMMON + """
os.makedirs(target)
dark = read(names[0]).astype(numpy.float32)
flat = numpy.maximum(read(names[1]).astype(numpy.float32) + 9000 - dark, 1)
factor = flat.mean(dtype=numpy.float64).astype(numpy.float32) / flat
def one(name):
    image = cv2.multiply(cv2.subtract(read(name), dark, dtype=cv2.CV_32F), factor)
    write(f"{target}/{name}", cv2.add(image, 0.0, dtype=cv2.CV_16U))
with multiprocessing.get_context("fork").Pool(workers, cv2.setNumThreads, (1,)) as pool:
    pool.map(one, names)
"""
FLAT = COMMON + """
write(target, cv2.add(read(names[1]), 9000.0))
"""
WRONG = COMMON + """
sums = sum(read(name).astype(numpy.uint32) for name in names)
exact = (2 * sums + len(names)) // (2 * len(names))
made = cv2.imread(target + "/" + os.listdir(target)[0], cv2.IMREAD_UNCHANGED)
print(int((made != exact).sum()) if made is not None and made.shape == exact.shape else exact.size)
"""
IMAGEJ = """
File.openSequence("{source}");
run("Z Project...", "projection=[Average Intensity]");
setOption("ScaleConversions", false);
run("16-bit");
saveAs("Tiff", "{target}/mean.tif");
"""


def made_folder(command):
    """The command, behind one that makes the folder that its last word but the file's name is in."""
    return ["sh", "-c", 'mkdir "$0" && exec "$@"', *command]


def rows(name, count, times, faults):
    ours = times["gpuimg, CPU"]
    for program, took in times.items():
        ratios = sorted(theirs / mine for theirs, mine in zip(took, ours))
        median = statistics.median(took)
        print(f"{name:14} {count:6} {program:16} {median:8.3f} {count / median:8.0f}"
              f" {statistics.median(ratios):7.2f} [{ratios[0]:.2f}–{ratios[-1]:.2f}]".ljust(82)
              + str(faults.get(program, "")), flush=True)
        if program.startswith("gpuimg") and faults.get(program):
            sys.exit("samples of gpuimg's are wrong")


def timed(programs, target, turns, check=None):
    times, faults = {program: [] for program in programs}, {}
    for turn in range(1 + turns):
        for program, command in programs.items():
            took = seconds(command, target)
            if turn:  # the first round warms up
                times[program].append(took)
            elif check:
                faults[program] = check()
    return times, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help="png, tif")
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 5")
    parser.add_argument("--gpu", action="store_true", help="gpuimg on the GPU, too")
    parser.add_argument("--files", type=int, default=256, metavar="N", help="images of 2048x2048 in a set")
    parser.add_argument("--here", action="store_true", help="take this interpreter's packages, install none")
    arguments = parser.parse_args()
    sets = arguments.sets or ["png", "tif"]
    if unknown := set(sets) - {"png", "tif"}:
        parser.error(f"no such set: {', '.join(unknown)}")
    devices = {"CPU": "cpu", **({"GPU": "gpu"} if arguments.gpu else {})}
    # What CuPy needs is not.
    python = installed(argparse.Namespace(here=arguments.here, gpu=False))
    cores = str(len(os.sched_getaffinity(0)))
    load, turns, count = os.getloadavg()[0], 3 if arguments.quick else 5, arguments.files
    print(f"{cores} cores, load {load:.1f}; ratio = seconds by those of gpuimg on the CPU in the same round")
    print(f"{'set':14} {'files':>6} {'program':16} {'seconds':>8} {'files/s':>8} {'ratio':>7}".ljust(82) + "wrong samples")
    with tempfile.TemporaryDirectory() as place:
        source, target, flat = Path(place) / "in", Path(place) / "out", Path(place) / "flat.tif"
        for name in sets:
            suffix, side, _ = SETS[name]
            made(source, python, suffix, side, count)
            mean = f"{target}/mean.{suffix}"
            ours = lambda device: [GPUIMG, "project", "mean", "-q", "--device", device, source, mean]
            programs = {
                **{f"gpuimg, {name}": made_folder([target, *ours(device)]) for name, device in devices.items()},
                "NumPy, pool": [python, "-c", NUMPY, source, target, cores],
                "OpenCV, pool": [python, "-c", OPENCV, source, target, cores],
            }
            if shutil.which("gm"):
                every = sorted(str(path) for path in source.iterdir())
                programs["GraphicsMagick"] = made_folder([target, "gm", "convert", *every, "-average", mean])
            if jar := os.environ.get("IMAGEJ"):
                macro = Path(place) / "mean.ijm"
                macro.write_text(IMAGEJ.format(source=source, target=target))
                java = ["java", "-Xmx8g", "-jar", jar, "-batch", macro]
                programs["ImageJ"] = made_folder([target, *java])
            check = lambda: int(subprocess.run([python, "-c", WRONG, source, target, cores],
                                               capture_output=True, text=True, check=True).stdout)
            rows(f"{name}, mean", count, *timed(programs, target, turns, check))
            subprocess.run([python, "-c", FLAT, source, flat, cores], check=True)
            dark = source / f"00000.{suffix}"
            ours = lambda device: [GPUIMG, "calibrate", "-q", "--device", device, "--dark", dark, "--flat", flat, source, target]
            programs = {f"gpuimg, {name}": ours(device) for name, device in devices.items()}
            programs["OpenCV, pool"] = [python, "-c", CALIBRATE, source, target, cores]
            rows(f"{name}, calibrate", count, *timed(programs, target, turns))
            shutil.rmtree(source)


if __name__ == "__main__":
    main()
