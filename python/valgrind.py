#!/usr/bin/env python3
"""Runs tests of the boundary between Python and Rust under valgrind: arrays, DLPack, buffers, pickles and errors.

usage: python/valgrind.py PYTHON [PYTEST OPTION...]

PYTHON has gpuimg, NumPy and pytest. Errors count if their stack goes through the module: reads and writes of memory that is freed or
was never allocated, uses of values that were never written, and memory that is lost. There must be none, and a read of freed memory
that is made on purpose must be found. Python's own allocator is off, since it hides the borders of objects.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

TESTS = pathlib.Path(__file__).resolve().parent / "tests"
MODULE = "_gpuimg"
# Small arrays, since everything takes 50 times as long.
CHOSEN = (
    "dlpack or alignment or read_only or dark_frame or overlap or released or pickled or refused or accepted or what_cannot or nan or dtypes"
)

# Memory of the C library that is freed, and then given to the module as an array.
PLANTED = """
import ctypes, gpuimg
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
address = libc.malloc(4096)
class Freed:
    __array_interface__ = {"version": 3, "shape": (32, 64), "typestr": "<u2", "data": (address, False)}
libc.free(address)
gpuimg.sum(Freed())
"""


def errors_of_module(python, *words):
    """Runs PYTHON under valgrind; the descriptions of errors, and their stacks, that go through the module."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "errors.xml")
        valgrind = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40"]
        valgrind += ["--xml=yes", f"--xml-file={log}"]
        environment = {**os.environ, "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([*valgrind, python, *words], env=environment, cwd=folder, check=True)
        root = xml.parse(log).getroot()
    found = []
    for error in root.iter("error"):
        frames = list(error.iter("frame"))
        if any(MODULE in (frame.findtext("obj") or "") for frame in frames):
            what = error.findtext("what") or error.findtext("xwhat/text")
            names = [frame.findtext("fn") or frame.findtext("obj") or "?" for frame in frames]
            found.append("\n    ".join([what, *names]))
    return found


def main():
    python, *options = sys.argv[1:]
    # A path of an environment stays as it is: resolving it would leave the environment.
    python = os.path.abspath(python)
    if not errors_of_module(python, "-c", PLANTED):
        sys.exit("python/valgrind.py: a read of freed memory was not found")
    tests = [str(TESTS / name) for name in ("test_memory.py", "test_arrays.py")]
    chosen = options or ["-k", CHOSEN]
    found = errors_of_module(python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen, *tests)
    for error in found:
        print(error, file=sys.stderr)
    if found:
        sys.exit(f"python/valgrind.py: {len(found)} errors")
    print("valgrind: no errors in the module; one that was planted was found")


main()
