#!/usr/bin/env python3
"""Times gpuimg against the programs that people use, whole process and file to file, in pairs.

    cargo build --release && benches/peers/peers.py [--quick] [--scale N] [--peer NAME] [--json FILE] [CASE ...]

For each case gpuimg and each peer run in turn (A B A C A B A C ...), input in the page cache, output
removed before. A line gives the medians of both, the median and the range of the ratios of
neighbouring runs, CPU seconds, peak memory and file sizes, and how many samples differ from the exact
floor((p - min) * 65535 / (max - min) + 1/2); of gpuimg's none may, or no time is printed.

What is needed is installed: Python packages into a throw-away environment in the cache folder
(~/.cache/gpuimg-peers), Debian packages if the user is root; what is missing is said and left out.
--quick makes 3 rounds instead of 9; --scale divides the sides of the images; --json records the medians,
the machine and the versions for chart.py; the environment's
GPUIMG is the program measured and GPUIMG_DEVICE where it works (default: the CPU).
"""

import argparse
import datetime
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "gpuimg-peers"
PYTHON = CACHE / "bin" / "python"
GPUIMG = os.environ.get("GPUIMG", str(HERE.parents[1] / "target" / "release" / "gpuimg"))
PACKAGES = ["numpy", "opencv-python-headless", "pyvips[binary]", "tifffile"]
DEBIAN = {
    "pnmnorm": "netpbm",
    "convert-im6.q16": "imagemagick",
    "gm": "graphicsmagick",
    "oiiotool": "openimageio-tools",
    "gdal_translate": "gdal-bin",
}
NEEDS = {
    "netpbm": "pnmnorm",
    "netpbm PGM": "pnmnorm",
    "ImageMagick 6": "convert-im6.q16",
    # Debian has had it since release 13.
    "ImageMagick 7": "magick",
    "GraphicsMagick": "gm",
    "oiiotool": "oiiotool",
    "GDAL": "gdal_translate",
}
# A peer slower than this is run in 3 rounds at most.
SLOW = 4.0

OPENCV = """
import sys, cv2
image = cv2.imread(sys.argv[1], cv2.IMREAD_UNCHANGED)
image = cv2.normalize(image, None, 0, 65535, cv2.NORM_MINMAX, cv2.CV_16U)
cv2.imwrite(sys.argv[2], image, [cv2.IMWRITE_TIFF_COMPRESSION, 1] if sys.argv[2].endswith("tif") else [])
"""
PYVIPS = """
import sys, pyvips
image = pyvips.Image.new_from_file(sys.argv[1])
stats = image.stats()
low, high = stats(0, 0)[0], stats(1, 0)[0]
((image - low) * (65535 / (high - low))).rint().cast("ushort").write_to_file(sys.argv[2])
"""
NUMPY = """
import sys, numpy, tifffile
image = tifffile.imread(sys.argv[1])
low, high = int(image.min()), int(image.max())
values = numpy.arange(low, high + 1, dtype=numpy.uint64) - low
table = numpy.zeros(65536, numpy.uint16)
table[low : high + 1] = (values * 131070 + (high - low)) // (2 * (high - low))
tifffile.imwrite(sys.argv[2], table[image])
"""
OPENCV_SUM = "import sys, cv2; print(int(cv2.imread(sys.argv[1], cv2.IMREAD_UNCHANGED).sum(dtype='u8')))"
PYVIPS_SUM = "import sys, pyvips; i = pyvips.Image.new_from_file(sys.argv[1]); print(i.stats()(2, 0)[0])"


def python(script):
    return [str(PYTHON), "-c", script, "{in}", "{out}"]


def shell(line):
    return ["sh", "-c", line]


PEERS = {
    "OpenCV": python(OPENCV),
    "pyvips": python(PYVIPS),
    "NumPy": python(NUMPY),
    "ImageMagick 6": ["convert-im6.q16", "{in}", "-auto-level", "{out}"],
    "ImageMagick 7": ["magick", "{in}", "-auto-level", "{out}"],
    "GraphicsMagick": ["gm", "convert", "{in}", "-normalize", "{out}"],
    "oiiotool": ["oiiotool", "{in}", "--contrast:black={TOP.MINCOLOR}:white={TOP.MAXCOLOR}", "-d", "uint16", "-o", "{out}"],
    # It finds a range by itself only for an output from 0 to 255.
    "GDAL": shell(
        "range=$(gdalinfo -mm {in} | sed -n 's/.*Min\\/Max=\\(.*\\),\\(.*\\)/\\1 \\2/p') &&"
        " gdal_translate -q -of $(case {out} in *.png) echo PNG;; *) echo GTiff; esac)"
        " -ot UInt16 -scale $range 0 65535 {in} {out}"
    ),
    "netpbm": shell("pngtopnm {in} | pnmnorm -bsingle -wsingle 2>&- | pnmtopng > {out}"),
    "netpbm PGM": shell("pnmnorm -bsingle -wsingle {in} > {out} 2>&-"),
    "OpenCV sum": python(OPENCV_SUM),
    "pyvips sum": python(PYVIPS_SUM),
}
MAGICK = ["ImageMagick 6", "ImageMagick 7", "GraphicsMagick"]
RGB = ["OpenCV", "pyvips", *MAGICK, "netpbm"]
PNG = [*RGB, "oiiotool", "GDAL"]
# Name, side, input's name (its kind and format are told by it), peers.
CASES = [
    ("png8192", 8192, "grey.png", PNG),
    ("own8192", 8192, "own.png", PNG),
    ("png2048", 2048, "grey.png", PNG),
    ("png256", 256, "grey.png", PNG),
    ("rgb4096", 4096, "rgb.png", RGB),
    ("tiff8192", 8192, "grey.tif", ["NumPy", "OpenCV", "pyvips", *MAGICK, "oiiotool", "GDAL"]),
    ("pgm8192", 8192, "grey.pgm", ["netpbm PGM", "OpenCV", "pyvips", *MAGICK]),
    ("paeth4096", 4096, "paeth.png", ["OpenCV sum", "pyvips sum"]),
]


def install():
    """Sees to Python's packages and Debian's; returns the peers that are missing."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE], check=True)
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    wanted = [package for program, package in DEBIAN.items() if not shutil.which(program)]
    if wanted and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted])
    missing = [peer for peer, program in NEEDS.items() if not shutil.which(program)]
    if missing:
        print(f"left out, since not installed: {', '.join(missing)}")
    return missing


def images(*arguments):
    """Runs images.py, which makes and checks images, in a process of its own: this one stays small,
    since a child's peak memory counts from its parent's."""
    command = [PYTHON, HERE / "peers_images.py", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Run:
    """One run of a command: wall and CPU seconds, peak MiB of its largest process, its output."""

    def __init__(self, command, source, output):
        output.unlink(missing_ok=True)
        command = [part.replace("{in}", str(source)).replace("{out}", str(output)) for part in command]
        with tempfile.TemporaryFile() as said:
            start = time.perf_counter()
            child = subprocess.Popen(command, stdout=said)
            _, status, usage = os.wait4(child.pid, 0)
            self.wall = time.perf_counter() - start
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            self.said = said.read().decode()
        self.failed = child.returncode != 0
        self.cpu = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss / 1024


def measure(name, source, peers, rounds, folder):
    """Prints a line for each peer, and returns the medians as rows for --json."""
    sums = source.stem == "paeth"
    ours = [GPUIMG, "sum", "{in}"] if sums else [GPUIMG, "normalize", "{in}", "{out}"]
    mine, other = (folder / f"{who}{source.suffix}" for who in ("mine", "other"))

    if Run(ours, source, mine).failed:
        sys.exit(f"{name}: gpuimg failed")
    if not sums and (wrong := images("check", source, mine)) != "0":
        sys.exit(f"{name}: {wrong} samples of gpuimg's output are wrong")
    verdicts, times = {}, {}
    for peer in peers:
        run = Run(PEERS[peer], source, other)
        if run.failed or not (sums or other.exists()):
            print(f"{name:10} {peer} failed")
            continue
        verdicts[peer] = ("", 0) if sums else (images("check", source, other), other.stat().st_size)
        times[peer] = ([], [], min(rounds, 3) if run.wall > SLOW else rounds)
    for turn in range(rounds):
        for peer, (our_runs, peer_runs, most) in times.items():
            if turn < most:
                our_runs.append(Run(ours, source, mine))
                peer_runs.append(Run(PEERS[peer], source, other))
    size, rows = 0 if sums else mine.stat().st_size, []
    for peer, (our_runs, peer_runs, _) in times.items():
        ratios = sorted(theirs.wall / mine.wall for mine, theirs in zip(our_runs, peer_runs))

        def both(what):
            return [statistics.median(what(run) for run in runs) for runs in (our_runs, peer_runs)]

        wall, cpu, memory = both(lambda r: r.wall), both(lambda r: r.cpu), both(lambda r: r.memory)
        wrong, peer_size = verdicts[peer]
        print(
            f"{name:10} {peer.removesuffix(' sum').removesuffix(' PGM'):14} {wall[0]:8.4f} {wall[1]:8.4f}"
            f" {statistics.median(ratios):7.2f} [{ratios[0]:.2f}–{ratios[-1]:.2f}]".ljust(62)
            + f" {cpu[0]:7.3f} {cpu[1]:7.3f} {memory[0]:6.0f} {memory[1]:6.0f}"
            + (f" {size:>11} {peer_size:>11} {size / peer_size:6.3f} {wrong:>10}" if peer_size else ""),
            flush=True,
        )
        rows.append({
            "peer": peer, "gpuimg_s": round(wall[0], 4), "peer_s": round(wall[1], 4),
            "ratio": round(statistics.median(ratios), 2), "least": round(ratios[0], 2), "most": round(ratios[-1], 2),
            "rounds": len(ratios), "wrong_samples": int(wrong or 0),
        })
    return rows


def machine():
    """The processor, as far as Linux names it, and its cores."""
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def versions():
    """The version of each program, as it names itself."""
    def first_line(*command):
        return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0]

    packages = subprocess.run([PYTHON, "-m", "pip", "freeze"], capture_output=True, text=True, check=True).stdout.split()
    programs = [first_line(GPUIMG, "--version")]
    programs += [first_line(program, "-version") for program in DEBIAN if "convert" in program and shutil.which(program)]
    return programs + [package for package in packages if package.partition("==")[0] in ("opencv-python-headless", "pyvips", "pyvips-binary")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case[0] for case in CASES))
    parser.add_argument("--peer", action="append", metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 9")
    parser.add_argument("--scale", type=int, default=1, metavar="N", help="divide all sides by N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the medians to FILE")
    options = parser.parse_args()
    missing = install()
    os.environ.setdefault("GPUIMG_DEVICE", "cpu")
    print(f"{os.cpu_count()} cores; ratio = peer's wall time by gpuimg's, median [least–most] of pairs")
    print(
        f"{'case':10} {'peer':14} {'gpuimg s':>8} {'peer s':>8} {'ratio':>7}".ljust(62)
        + f" {'CPU s':>7} {'peer':>7} {'MiB':>6} {'peer':>6} {'bytes':>11} {'peer':>11} {'ratio':>6} {'wrong':>10}"
    )
    rows, loads = [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, side, source, peers in CASES:
            if options.cases and name not in options.cases:
                continue
            source = folder / source
            images("make", source, side // options.scale)
            here = [p for p in peers if p not in missing and p in (options.peer or peers)]
            loads.append(os.getloadavg()[0])
            measured = measure(name, source, here, 3 if options.quick else 9, folder)
            rows += [{"case": name, "side": side // options.scale, **row} for row in measured]
            print(f"{name:10} load before {loads[-1]:.1f}, after {os.getloadavg()[0]:.1f}", flush=True)
            source.unlink()
    if options.json:
        command = shlex.join(["benches/peers/peers.py", *sys.argv[1:]])
        recorded = {"command": command, "date": str(datetime.date.today()), "machine": machine(), "load": f"{min(loads):.0f}–{max(loads):.0f}",
                    "versions": versions(), "rows": rows}
        options.json.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
