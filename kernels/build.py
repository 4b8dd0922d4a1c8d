#!/usr/bin/env python3
"""Compiles kernels/*.cu and kernels/papers/*.cu to PTX with NVRTC. Called by build.sh, which provides NVRTC.

usage: build.py LIBNVRTC [--check]

x.cu becomes x.compute_60.ptx and x.compute_90.ptx beside it. With --check nothing is written; the exit status
is 1, and each file is named, where a committed PTX is not what the sources give.
"""

import ctypes
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ("compute_60", "compute_90")


def compile_ptx(nvrtc, source, target):
    """The PTX of one source for one target; ends the program with the compiler's log where it fails."""
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={target}", f"--include-path={HERE}", "--std=c++17"]
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    # The name is the bare file name, so that no path can enter the PTX.
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)

    def text(size, get):
        length = ctypes.c_size_t()
        size(program, ctypes.byref(length))
        buffer = ctypes.create_string_buffer(length.value)
        get(program, buffer)
        return buffer.value.decode()

    log = text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
    if status != 0:
        sys.exit(f"{source.name} for {target}:\n{log}")
    if log.strip():
        print(log, file=sys.stderr)
    ptx = text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if not re.search(r"^\.version 8\.0$", ptx, re.M):
        sys.exit(f"{source.name} for {target}: not PTX ISA 8.0; is this NVRTC 12.0?")
    return ptx


def main():
    nvrtc = ctypes.CDLL(sys.argv[1])
    check = "--check" in sys.argv[2:]
    expected = {}
    for source in sorted(HERE.glob("*.cu")) + sorted(HERE.glob("papers/*.cu")):
        for target in TARGETS:
            expected[source.with_suffix(f".{target}.ptx")] = compile_ptx(nvrtc, source, target)
    if not expected:
        sys.exit(f"no .cu file under {HERE}")
    present = set(HERE.glob("*.ptx")) | set(HERE.glob("papers/*.ptx"))
    wrong = []
    for path in sorted(present | set(expected)):
        name = path.relative_to(HERE)
        if path not in expected:
            wrong.append(f"{name} has no source")
            if not check:
                path.unlink()
        elif path not in present or path.read_text() != expected[path]:
            wrong.append(f"{name} differs from what its source gives" if path in present else f"{name} is missing")
            if not check:
                path.write_text(expected[path])
    for line in wrong:
        print(line if check else f"{line}: mended")
    if check and wrong:
        sys.exit("run kernels/build.sh and commit what it writes")
    print(f"{len(expected)} PTX files " + ("as committed" if check else "up to date"))


main()
