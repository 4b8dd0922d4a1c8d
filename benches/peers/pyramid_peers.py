#!/usr/bin/env python3
"""A stack of TIFFs to an OME-Zarr with a pyramid: gpuimg beside tensorstore and ngff-zarr.

    cargo build --release && benches/peers/pyramid_peers.py [--slices N] [--side N] [--rounds N] [--gpuimg PROGRAM]
        [--folder FOLDER] [--only NAMES]

Makes N (30) uncompressed 16-bit TIFFs of SIDE (8192) rows and columns, a smooth field with shot noise, and has each program write
them as one store of five levels, chunks of 1024 x 1024 of one slice, Zstandard of level 1. The programs take turns. A line has the
seconds of the fastest round, the peak memory of the process, the bytes of the store, and how many times as long as gpuimg it took.
The levels of the first and the last slice are compared with the exact means of the slice, rounded half up. The rivals:

* tensorstore: writes each slice, and reads each further level from the one before it through its driver `downsample` (means);
* ngff-zarr: `to_multiscales` with `DASK_BIN_SHRINK`, `to_ngff_zarr`, on slices that Dask reads one at a time.

Needs numpy, tifffile and zarr; a rival that cannot be imported is left out, and its line says so.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import tifffile
import zarr

GPUIMG = os.environ.get("GPUIMG", str(Path(__file__).resolve().parents[2] / "target" / "release" / "gpuimg"))
LEVELS, CHUNK = 5, 1024

TENSORSTORE = """
import sys, json, pathlib
import numpy, tifffile, tensorstore as ts
source, target, levels, chunk = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = sorted(source.iterdir())
first = tifffile.imread(names[0])
def spec(level): return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{target}/{level}"}}
def create(level, shape):
    side = [1, min(chunk, shape[1]), min(chunk, shape[2])]
    metadata = {"shape": shape, "data_type": "uint16", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": side}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 1}}]}
    return ts.open({**spec(level), "metadata": metadata, "create": True}).result()
shape = [len(names), *first.shape]
full = create(0, shape)
# Two slices at a time, so that a slice is read while the one before it is written.
last = None
for index, name in enumerate(names):
    slice = tifffile.imread(name)
    if last is not None: last.result()
    last = full[index].write(slice)
last.result()
for level in range(1, levels):
    coarse = ts.open({"driver": "downsample", "downsample_factors": [1, 2, 2], "downsample_method": "mean", "base": spec(level - 1)}).result()
    shape = list(coarse.shape)
    target_level = create(level, shape)
    for index in range(shape[0]):
        target_level[index].write(coarse[index]).result()
group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
(pathlib.Path(target) / "zarr.json").write_text(json.dumps(group))
"""

NGFF_ZARR = """
import sys, pathlib
import dask, dask.array, numpy, tifffile, ngff_zarr, zarr
from zarr.codecs import ZstdCodec
source, target, levels, chunk = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = sorted(source.iterdir())
shape = tifffile.TiffFile(names[0]).pages[0].shape
slices = [dask.array.from_delayed(dask.delayed(tifffile.imread)(name), shape, numpy.uint16) for name in names]
image = ngff_zarr.to_ngff_image(dask.array.stack(slices), dims=("z", "y", "x"))
factors = [{"z": 1, "y": 2 ** level, "x": 2 ** level} for level in range(1, levels)]
levels = ngff_zarr.to_multiscales(image, factors, method=ngff_zarr.Methods.DASK_BIN_SHRINK, chunks={"z": 1, "y": chunk, "x": chunk})
ngff_zarr.to_ngff_zarr(target, levels, version="0.5", compressors=[ZstdCodec(level=1)])
"""

RIVALS = {"tensorstore": TENSORSTORE, "ngff_zarr": NGFF_ZARR}


def images(folder, slices, side):
    """Slices of a smooth field with shot noise, each moved a little."""
    folder.mkdir()
    random = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0:side, 0:side].astype(numpy.float32) / side
    field = 20000 + 15000 * numpy.sin(7 * x) * numpy.cos(5 * y)
    image = (field + 0.8 * numpy.sqrt(field) * random.standard_normal(field.shape, numpy.float32)).astype(numpy.uint16)
    for index in range(slices):
        tifffile.imwrite(folder / f"{index:04}.tif", numpy.roll(image, 100 * index, axis=1))


# In a process of its own: a child's peak counts the memory of the process that forked it.
MEASURE = """
import resource, subprocess, sys, time
start = time.monotonic()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def measure(command):
    """Runs a command; its seconds, and the peak of its memory in MB."""
    command = [sys.executable, "-c", MEASURE, *(str(word) for word in command)]
    seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(peak) * 1024 / 1e6


def check(store, exact):
    """How many samples of each level are not the exact mean, in the slices whose full size is given."""
    arrays = [zarr.open_array(path.parent, mode="r") for path in sorted(store.rglob("zarr.json")) if is_array(path)]
    arrays = sorted(arrays, key=lambda array: -array.shape[-1])
    assert len(arrays) == LEVELS, [array.shape for array in arrays]
    wrong = [0] * LEVELS
    for index, full in exact.items():
        for level, array in enumerate(arrays):
            times = 2**level
            blocks = full.reshape(full.shape[0] // times, times, full.shape[1] // times, times)
            total = blocks.sum(axis=(1, 3), dtype=numpy.uint64)
            expected = ((2 * total + times * times) // (2 * times * times)).astype(numpy.uint16)
            wrong[level] += int(numpy.count_nonzero(array[index] != expected))
    return wrong


def is_array(document):
    return json.loads(document.read_text()).get("node_type") == "array"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slices", type=int, default=30)
    parser.add_argument("--side", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--gpuimg", default=GPUIMG)
    parser.add_argument("--folder")
    parser.add_argument("--only", default="gpuimg,tensorstore,ngff_zarr")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    source, target = folder / "in", folder / "out.zarr"
    images(source, arguments.slices, arguments.side)
    exact = {index: tifffile.imread(source / f"{index:04}.tif") for index in (0, arguments.slices - 1)}
    options = ["--zarr-levels", LEVELS, "--zarr-chunk", CHUNK, "--device", "cpu", "-q"]
    commands = {
        "gpuimg": [arguments.gpuimg, "convert", source, target, "--stack", *options],
        "gpuimg --zarr blosc": [arguments.gpuimg, "convert", source, target, "--stack", "--zarr", "blosc", *options],
        "gpuimg --low-memory": [arguments.gpuimg, "convert", source, target, "--stack", "--low-memory", *options],
    }
    for name, script in RIVALS.items():
        if subprocess.run([sys.executable, "-c", f"import {name}"], stderr=subprocess.DEVNULL).returncode:
            print(f"{name}: not here")
            continue
        commands[name] = [sys.executable, "-c", script, source, target, LEVELS, CHUNK]
    commands = {name: it for name, it in commands.items() if name.split()[0] in arguments.only.split(",")}
    results = {name: [] for name in commands}
    sizes, wrong = {}, {}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            results[name].append(measure(command))
            if name not in sizes:
                sizes[name] = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
                wrong[name] = check(target, exact)
            shutil.rmtree(target)
    ours = min(seconds for seconds, _ in results.get("gpuimg", [(float("nan"), 0)]))
    print(f"{arguments.slices} slices of {arguments.side}, {os.cpu_count()} cores")
    print(f"{'':22}{'seconds':>9}{'peak MB':>9}{'store MB':>10}{'/ gpuimg':>10}  samples of levels 0-4 that are not exact")
    for name, rounds in results.items():
        seconds, peak = min(rounds)
        print(f"{name:22}{seconds:9.1f}{peak:9.0f}{sizes[name] / 1e6:10.0f}{seconds / ours:10.2f}  {wrong[name]}", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
