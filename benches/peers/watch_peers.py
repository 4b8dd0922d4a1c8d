#!/usr/bin/env python3
"""Latency of gpuimg --watch beside a shell loop and Python, as images come at fixed rates.

    cargo build --release && benches/peers/watch_peers.py [--rates 5,30] [--sets png,tif] [--seconds N]
        [--devices cpu,gpu,auto] [--gpuimg PROGRAM] [--here]

Images of 2048x2048 and 16 bits are renamed into a folder at a fixed rate for N (5) seconds, and each program
normalizes them into another. The latency of an image is the time from its rename to the moment when its
result is whole under its name, as inotify reports it for every program alike: a link or rename of gpuimg's,
the close of what OpenCV writes under the name itself. A line gives the median, 95 %, 99 % and the most, in ms,
and how many results were there 10 s after the last image had come: a program that does not keep up has fewer.

The rivals: `inotifywait | xargs -P CORES gpuimg normalize`, a process a file; and Python with watchdog and
OpenCV, in as many threads as there are cores. Where inotifywait or watchdog is missing, a stand-in of this
script's reports the events, and the line says so; where OpenCV is missing, the rival is left out. Needs
nothing else but Python and the program; without --here the packages go into a throw-away environment.
"""

import argparse
import ctypes
import os
import queue
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "gpuimg-peers"
PACKAGES = ["opencv-python-headless", "watchdog"]
GPUIMG = os.environ.get("GPUIMG", str(HERE.parents[1] / "target" / "release" / "gpuimg"))
SIDE, DISTINCT = 2048, 4
CLOSE_WRITE, MOVED_TO, CREATE = 0x8, 0x80, 0x100
PATIENCE = 10


def events(folder, mask):
    """The names in a folder that an event of the mask happens to, each with the time."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_CLOEXEC)
    assert libc.inotify_add_watch(descriptor, os.fsencode(folder), mask) >= 0, os.strerror(ctypes.get_errno())
    while True:
        data, now, at = os.read(descriptor, 1 << 16), time.monotonic(), 0
        while at < len(data):
            _, _, _, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0")
            at += 16 + length
            yield os.fsdecode(name), now


PYTHON = """
import sys, queue, threading, cv2
sys.path.insert(0, sys.argv[4])
source, target, cores = sys.argv[1], sys.argv[2], int(sys.argv[3])
cv2.setNumThreads(1)
names = queue.Queue()
def work():
    while True:
        name = names.get()
        image = cv2.imread(f"{source}/{name}", cv2.IMREAD_UNCHANGED)
        options = [cv2.IMWRITE_TIFF_COMPRESSION, 1] if name.endswith("tif") else []
        cv2.imwrite(f"{target}/{name}", cv2.normalize(image, None, 0, 65535, cv2.NORM_MINMAX), options)
for _ in range(cores):
    threading.Thread(target=work, daemon=True).start()
try:
    from watchdog.observers import Observer
    from watchdog.events import FileSystemEventHandler
    class Handler(FileSystemEventHandler):
        def on_created(self, event):  # a rename from elsewhere
            names.put(event.src_path.rsplit("/", 1)[1])
    observer = Observer()
    observer.schedule(Handler(), source)
    observer.start()
    print("watching", flush=True)
    observer.join()
except ImportError:
    import watch_peers
    print("watching", flush=True)
    for name, _ in watch_peers.events(source, watch_peers.MOVED_TO):
        names.put(name)
"""


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0


def interpreter(here):
    if here:
        return sys.executable
    python = CACHE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE], check=True)
    if not has(python, "cv2, watchdog"):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES])
    return str(python)


def images(folder, suffix, gpuimg):
    """Distinct images: a slope with 8 bits of noise, about as compressible as a camera's."""
    folder.mkdir()
    for seed in range(DISTINCT):
        samples = bytearray(2 * SIDE * SIDE)
        for y in range(SIDE):
            samples[2 * y * SIDE : 2 * (y + 1) * SIDE : 2] = bytes([60 + y * 80 // SIDE]) * SIDE
        samples[1::2] = random.Random(seed).randbytes(SIDE * SIDE)
        raw = folder / f"{seed}.pgm"
        raw.write_bytes(b"P5\n%d %d\n65535\n" % (SIDE, SIDE) + samples)
        subprocess.run([gpuimg, "flip", "vertical", "-q", "--device", "cpu", raw, folder / f"{seed}.{suffix}"], check=True)
        raw.unlink()


def programs(arguments, python, cores, source, target):
    """Each rival: its name, its command, whether it says when it is ready, and the event of a whole result."""
    found = []
    for device in arguments.devices.split(","):
        command = [arguments.gpuimg, "normalize", source, target, "--watch", "--device", device]
        found.append((f"gpuimg --watch, {device}", command, True, CREATE | MOVED_TO))
    wait = ["inotifywait", "-m", "-q", "-e", "moved_to", "--format", "%f", str(source)]
    name = "inotifywait | xargs gpuimg"
    if not shutil.which("inotifywait"):
        wait, name = [sys.executable, __file__, "--report-events", str(source)], "stand-in | xargs gpuimg"
    one = f"{arguments.gpuimg} normalize -q --device cpu {source}/{{}} {target}/{{}}"
    shell = f"{' '.join(wait)} | xargs -P {cores} -I{{}} {one}"
    found.append((name, ["sh", "-c", shell], False, CREATE | MOVED_TO))
    if has(python, "cv2"):
        watches = "watchdog" if has(python, "watchdog") else "stand-in"
        command = [python, "-c", PYTHON, source, target, str(cores), str(HERE)]
        found.append((f"Python, {watches}, OpenCV", command, True, CLOSE_WRITE))
    return found


def run(program, source, target, staged, rate, seconds):
    """The latencies of one program at one rate, and how many images came."""
    _, command, says, mask = program
    for folder in (source, target):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    results = queue.Queue()

    def collect():
        for name, now in events(target, mask):
            results.put((name, now))

    threading.Thread(target=collect, daemon=True).start()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    if says:
        child.stdout.readline()
    # What is ready has not always begun to look; and a GPU starts meanwhile.
    time.sleep(2)
    threading.Thread(target=child.stdout.read, daemon=True).start()
    came, count = {}, max(int(rate * seconds), 10)
    waiting = staged.parent / "waiting"
    waiting.mkdir()
    suffix = next(staged.iterdir()).suffix
    for i in range(count):
        os.link(staged / f"{i % DISTINCT}{suffix}", waiting / f"{i:06}{suffix}")
    begun = time.monotonic()
    for i in range(count):
        time.sleep(max(0, begun + i / rate - time.monotonic()))
        name = f"{i:06}{suffix}"
        came[name] = time.monotonic()
        os.rename(waiting / name, source / name)
    done, end = {}, time.monotonic() + PATIENCE
    while len(done) < count and time.monotonic() < end:
        try:
            name, now = results.get(timeout=0.5)
        except queue.Empty:
            continue
        if name in came:
            done[name] = now
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    shutil.rmtree(waiting)
    return sorted(1e3 * (done[name] - came[name]) for name in done), count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="5,30,60,200", help="images a second")
    parser.add_argument("--sets", default="png,tif")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--gpuimg", default=GPUIMG, help="the program measured")
    parser.add_argument("--here", action="store_true", help="take this interpreter's packages, install none")
    parser.add_argument("--report-events", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.report_events:
        for name, _ in events(arguments.report_events, MOVED_TO):
            print(name, flush=True)
    cores = len(os.sched_getaffinity(0))
    python = interpreter(arguments.here)
    # In memory where that is possible: the disk is not what is measured.
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as place:
        place = Path(place)
        source, target = place / "in", place / "out"
        print(f"{cores} cores; {SIDE}x{SIDE}, 16 bits; latency in ms")
        print(f"{'set':4} {'files/s':>8} {'program':30} {'p50':>8} {'p95':>8} {'p99':>8} {'most':>8} {'done':>12}")
        for suffix in arguments.sets.split(","):
            staged = place / suffix
            images(staged, suffix, arguments.gpuimg)
            for rate in map(float, arguments.rates.split(",")):
                for program in programs(arguments, python, cores, source, target):
                    took, count = run(program, source, target, staged, rate, arguments.seconds)
                    part = lambda percent: took[min(int(percent / 100 * len(took)), len(took) - 1)] if took else float("nan")
                    figures = [statistics.median(took) if took else float("nan"), part(95), part(99), part(100)]
                    print(f"{suffix:4} {rate:8g} {program[0]:30} " + " ".join(f"{figure:8.1f}" for figure in figures)
                          + f" {len(took):5} of {count}", flush=True)


if __name__ == "__main__":
    main()
