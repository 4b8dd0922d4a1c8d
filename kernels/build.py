#!/usr/bin/env python3
"""Compiles kernels/*.cu and kernels/papers/*.cu into kernels/compiled/. Called by build.sh, which provides NVRTC and ptxas.

usage: build.py LIBNVRTC PTXAS [--check]

x.cu becomes compiled/x.compute_60.ptx.gz and x.compute_90.ptx.gz and, where it is not a paper's, x.sm_90.cubin.gz and so on:
machine code, which spares the driver the 50 to 130 ms that it takes to compile the PTX of one file. NVRTC 12.0 writes that
of the GPUs that it knows; of later ones, ptxas translates the PTX of compute_90, as their driver would. A source with
lines like
    // forms: SAMPLE=u8,u16 CHANNELS=1,3 named {SAMPLE}_c{CHANNELS}
is compiled once for each combination of these macros, to x.u8_c1.compute_60.ptx.gz and so on, with FORM defined as
u8_c1: a driver then loads, and where it must compiles, only what one image needs. A kernel that is `in sets` gets a second entry
point, x_set, which launch.py adds to the source: one launch of it does the work of several images. compiled/list.rs lists all
files for src/gpu/modules.rs, which embeds them as they are, compressed: 10 MB of 46. src/gpu/launch.rs comes from launch.py. With
--check nothing is written; the exit status is 1, and each file is named, where a committed one does not hold what the sources
give.
"""

import concurrent.futures
import ctypes
import gzip
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import launch

HERE = pathlib.Path(__file__).resolve().parent
COMPILED = HERE / "compiled"
PTX = ("compute_60", "compute_90")
# sm_80 also runs on compute capability 8.0 to 8.9, sm_86 on 8.6 to 8.9, sm_100 on 10.x, sm_120 on 12.x. Of sm_89, 86 of 100
# kernels have byte for byte the code of sm_86.
BY_NVRTC = ("sm_80", "sm_86", "sm_90")
BY_PTXAS = ("sm_100", "sm_120")
MACHINE_CODE = BY_NVRTC + BY_PTXAS
# NVRTC 12.0 gives two forms of a few kernels, each in about half of the attempts: it moves constants before or after a branch.
ATTEMPTS = 24
# More files that differ than NVRTC's two forms explain: their sources have changed.
MOST_RETRIED = 10


def compiled(nvrtc, source, target, form, macros):
    """One form of a source, as PTX or as machine code; ends the program with the compiler's log where it fails."""
    text = launch.with_sets(launch.Source.of(source)).encode()
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={target}", f"--include-path={HERE}", "--std=c++17"]
    options += [f"--define-macro={key}={value}" for key, value in ({"FORM": form, **macros} if form else {}).items()]
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    # The name is the bare file name, so that no path can enter the PTX.
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None)
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)

    def fetched(what):
        length = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(length))
        buffer = ctypes.create_string_buffer(length.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    log = fetched("ProgramLog").rstrip(b"\0").decode()
    if status != 0:
        sys.exit(f"{source.name} {form or ''} for {target}:\n{log}")
    if log.strip():
        print(log, file=sys.stderr)
    ptx = fetched("PTX").rstrip(b"\0")
    # NVRTC numbers the calls of functions through everything that a process compiles: here, from 0 in each file.
    numbers = {}
    ptx = re.sub(rb"callseq (\d+)", lambda match: b"callseq %d" % numbers.setdefault(match[1], len(numbers)), ptx)
    code = fetched("CUBIN") if target in BY_NVRTC else ptx
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if not re.search(rb"^\.version 8\.0$", ptx, re.M):
        sys.exit(f"{source.name} for {target}: not PTX ISA 8.0; is this NVRTC 12.0?")
    return code


def assembled(ptxas, ptx, target):
    """Machine code of PTX."""
    with tempfile.TemporaryDirectory() as folder:
        source, code = pathlib.Path(folder, "x.ptx"), pathlib.Path(folder, "x.cubin")
        source.write_bytes(ptx)
        subprocess.run([ptxas, f"--gpu-name={target}", source, f"--output-file={code}"], check=True)
        return code.read_bytes()


def gives(job, target, committed):
    """Whether a compiler gives the committed file in one of ATTEMPTS attempts."""
    library, ptxas, source, form, macros, _ = job
    nvrtc = ctypes.CDLL(library)
    for _ in range(ATTEMPTS):
        if target in BY_PTXAS:
            code = assembled(ptxas, compiled(nvrtc, source, "compute_90", form, macros), target)
        else:
            code = compiled(nvrtc, source, target, form, macros)
        if code == committed:
            return True
    return False


def content(path):
    """What a committed file holds; nothing if it is not whole, so that it is written anew."""
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error):
        return b""


def listed(modules):
    """list.rs: a Rust expression, the slice of all modules, each with its PTX and its machine code by the target's number."""
    lines = ["// Written by kernels/build.py: every module that the program embeds.", "&["]

    def slice_of(targets, files):
        found = [target for target in targets if target in files]
        return "&[" + ", ".join(f'({target.split("_")[1]}, include_bytes!("{files[target]}"))' for target in found) + "]"

    for name, files in modules:
        ptx, code = slice_of(PTX, files), slice_of(MACHINE_CODE, files)
        lines.append(f'    Embedded {{ name: "{name}", ptx: {ptx}, code: {code} }},')
    return "\n".join([*lines, "]", ""]).encode()


def built(job):
    """What one form of a source gives, for each target."""
    library, ptxas, source, form, macros, targets = job
    nvrtc = ctypes.CDLL(library)
    made = {}
    for target in targets:
        if target in BY_PTXAS:
            made[target] = assembled(ptxas, made["compute_90"], target)
        else:
            made[target] = compiled(nvrtc, source, target, form, macros)
    return made


def main():
    library, ptxas = sys.argv[1:3]
    check = "--check" in sys.argv[3:]
    expected = {}
    modules, jobs = [], []
    for source in sorted(HERE.glob("*.cu")) + sorted(HERE.glob("papers/*.cu")):
        targets = PTX if source.parent.name == "papers" else PTX + MACHINE_CODE
        for form, macros in launch.forms_of(source.read_text(encoding="utf-8")):
            name = source.relative_to(HERE).with_suffix(f".{form}" if form else "").as_posix()
            files = {target: f"{name}.{target}.{'cubin' if target in MACHINE_CODE else 'ptx'}.gz" for target in targets}
            modules.append((name, files))
            jobs.append((library, ptxas, source, form, macros, targets))
    if not jobs:
        sys.exit(f"no .cu file under {HERE}")
    # A process for each core: each has its own NVRTC.
    cores = len(os.sched_getaffinity(0))
    with concurrent.futures.ProcessPoolExecutor(cores, multiprocessing.get_context("fork")) as pool:
        different = []
        for job, (_, files), made in zip(jobs, modules, pool.map(built, jobs)):
            for target, file in files.items():
                path = COMPILED / file
                expected[path] = made[target]
                if content(path) != made[target]:
                    different.append((job, target, path))
    if len(different) <= MOST_RETRIED:
        for job, target, path in different:
            if gives(job, target, content(path)):
                expected[path] = content(path)
    expected[COMPILED / "list.rs"] = listed(modules)
    ptx_of = lambda name: expected[COMPILED / f"{name}.compute_90.ptx.gz"].decode()
    expected[launch.OUTPUT] = launch.generated(ptx_of).encode()
    present = {path for kind in ("ptx", "cubin", "gz", "rs") for path in HERE.glob(f"**/*.{kind}")}
    present |= {launch.OUTPUT} if launch.OUTPUT.exists() else set()
    wrong = []
    for path in sorted(present | set(expected)):
        name = path.relative_to(HERE.parent)
        if path not in expected:
            wrong.append(f"{name} has no source")
            if not check:
                path.unlink()
        elif path not in present or content(path) != expected[path]:
            wrong.append(f"{name} differs from what its source gives" if path in present else f"{name} is missing")
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                packed = path.suffix == ".gz"
                path.write_bytes(gzip.compress(expected[path], mtime=0) if packed else expected[path])
    for line in wrong:
        print(line if check else f"{line}: {'removed' if line.endswith('no source') else 'written anew'}")
    if check and wrong:
        sys.exit("run kernels/build.sh and commit what it writes")
    print(f"{len(expected)} files " + ("as committed" if check else "up to date"))


if __name__ == "__main__":
    main()
