#!/usr/bin/env python3
"""Shows how the host keeps several GPUs busy, on a machine without one.

    benches/pretended_gpus.py GPUIMG [--files 400] [--kernel 1250] [--jobs 24] [--devices 1,2,4,8]

The stand-in driver (tests/driver/libcuda.c) pretends to have GPUs whose kernels take a fixed time each and do nothing, and whose copies
take none, while gpuimg reads and writes real files: links to one uncompressed TIFF of 512 x 512 pixels, in memory (tmpfs). The results are
worthless. A line gives the files per second of the fastest of three runs, its share of what the GPUs could do, and the share of the
launches that each GPU had. The last line of each verb is the limit of the host, with kernels that take 1 us. Needs a C compiler.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("gpuimg", type=Path)
parser.add_argument("--files", type=int, default=400)
parser.add_argument("--kernel", type=int, default=1250, help="microseconds of a launch")
parser.add_argument("--jobs", type=int, default=24, help="workers")
parser.add_argument("--devices", default="1,2,4,8", type=lambda text: [int(number) for number in text.split(",")])
options = parser.parse_args()
gpuimg = options.gpuimg.resolve()


def run(root, verb, devices, kernel):
    """The files per second of a whole process, and the launches on each GPU."""
    log, out = root / "log", root / "out"
    log.unlink(missing_ok=True)
    shutil.rmtree(out, ignore_errors=True)
    command = [gpuimg, verb, root / "in", "--device", "gpu", "--jobs", str(options.jobs), "-q"]
    command[3:3] = [out] if verb == "normalize" else []
    variables = {"LD_LIBRARY_PATH": str(root), "STUB_LOG": str(log), "STUB_DEVICES": str(devices), "STUB_KERNEL": str(kernel)}
    start = time.perf_counter()
    subprocess.run(command, check=True, env=os.environ | variables, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    counts = dict(line.split() for line in log.read_text().splitlines())
    return options.files / seconds, [int(counts[f"launches_of_{device}"]) for device in range(devices)]


with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    root = Path(folder)
    library = root / "libcuda.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "tests/driver/libcuda.c", "-lm", "-lpthread"], check=True)
    shutil.copy(library, root / "libcuda.so.1")
    (root / "in").mkdir()
    original = root / "original.tif"
    subprocess.run([gpuimg, "convert", HERE / "samples/nuclei.tif", original, "--tiff", "none", "-q"], check=True)
    for index in range(options.files):
        (root / "in" / f"{index:05}.tif").symlink_to(original)
    for verb in ["normalize", "sum"]:
        for devices, kernel in [(devices, options.kernel) for devices in options.devices] + [(1, 1)]:
            rate, launches = max(run(root, verb, devices, kernel) for _ in range(3))
            if kernel == 1:
                print(f"{verb}, the host alone: {rate:.0f} files/s", flush=True)
                continue
            possible = 1e6 * devices * options.files / (sum(launches) * kernel)
            shares = " ".join(f"{100 * count / sum(launches):.0f}%" for count in launches)
            print(f"{verb}, GPUs of {possible / devices:.0f} files/s: {devices}: {rate:.0f} files/s, {100 * rate / possible:.0f} % of the GPUs' ({shares})", flush=True)
