"""Formats of uncompressed samples beside uncompressed TIFF: whole processes, from file to file of the same format.

Needs numpy. Usage:
    python benches/peers/plain_formats.py path/to/gpuimg [SIDE]
Every round runs each format once, so that what else the machine does meets all; printed are the shortest and the
median time, the median of the rounds' ratios to TIFF of 16 bits, and the ratio of the least processor times, which
means something on a busy machine too. Floating point has half as many pixels, and so as many bytes. Files are in
/dev/shm where there is one.
"""
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROUNDS = 9
gpuimg = pathlib.Path(sys.argv[1]).resolve()
side = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
memory = pathlib.Path("/dev/shm")


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(folder, *arguments):
    """Elapsed and processor time."""
    start, before = time.perf_counter(), processor()
    done = subprocess.run([gpuimg, *arguments, "--device", "cpu"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return time.perf_counter() - start, processor() - before


def measure(folder):
    noise = np.random.default_rng(1).integers(0, 3000, (side, side), dtype=np.uint16)
    image = noise + np.arange(side, dtype=np.uint16)[:, None]
    np.save(folder / "in.npy", image)
    image.tofile(folder / "in.bin")
    header = f"NRRD0004\ntype: uint16\ndimension: 2\nsizes: {side} {side}\nencoding: raw\nendian: little\n\n"
    (folder / "in.nrrd").write_bytes(header.encode() + image.tobytes())
    np.save(folder / "real.npy", image[: side // 2].astype(np.float32) / 7)
    for name in ("tif", "fits", "pgm"):
        seconds(folder, "flip", "vertical", "in.npy", f"in.{name}")
    for name in ("tif", "fits", "pfm"):
        seconds(folder, "flip", "vertical", "real.npy", f"real.{name}")
    cases = {
        "TIFF": ("in.tif", "out.tif"),
        "NumPy": ("in.npy", "out.npy"),
        "FITS": ("in.fits", "out.fits"),
        "PGM": ("in.pgm", "out.pgm"),
        "raw to TIFF": ("in.bin", "out.tif", "--raw", f"{side}x{side}:u16le"),
        "NRRD to TIFF": ("in.nrrd", "out.tif"),
        "float TIFF": ("real.tif", "real-out.tif"),
        "float NumPy": ("real.npy", "real-out.npy"),
        "float FITS": ("real.fits", "real-out.fits"),
    }
    for verb in (["normalize"], ["flip", "vertical"], ["sum"]):
        times = {name: [] for name in cases}
        for _ in range(ROUNDS):
            for name, (source, target, *options) in cases.items():
                output = [] if verb == ["sum"] else [target, "--overwrite"]
                times[name].append(seconds(folder, *verb, source, *output, *options))
        for name, both in times.items():
            own, tiff = ([elapsed for elapsed, _ in times[which]] for which in (name, "TIFF"))
            ratio = statistics.median(time / other for time, other in zip(own, tiff))
            least, middle = 1e3 * min(own), 1e3 * statistics.median(own)
            used, other = (min(used for _, used in times[which]) for which in (name, "TIFF"))
            print(f"{' '.join(verb):14}  {name:12}  {least:6.0f} ms  {middle:6.0f} ms  × {ratio:.2f}  processor × {used / other:.2f}")


with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
    measure(pathlib.Path(folder))
