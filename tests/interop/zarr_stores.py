"""Zarr stores of zarr-python, read by gpuimg.

Needs numpy, numcodecs and zarr. Usage: python tests/interop/zarr_stores.py path/to/gpuimg
Stores of Zarr v2 and v3, OME-Zarr 0.4 and 0.5, of every type and byte order, every compressor, in chunks that do and
do not divide the axes, in shards, with chunks that are missing: compared sample by sample, a region and a level too.
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec, Crc32cCodec

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(38)
counts = {}


def run(*arguments):
    done = subprocess.run([gpuimg, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def check(name, good, what):
    counts[name] = counts.get(name, 0) + 1
    if not good:
        sys.exit(f"{name} differs: {what}")


def samples(shape, dtype):
    """Noise in the upper rows, and equal values below, so that chunks of each kind compress differently."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        image = rng.normal(0, 1e3, shape).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        image = rng.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), endpoint=True)
    image[..., shape[-2] // 2 :, :] = 3
    return image.astype(dtype)


def read(store, *options):
    target = folder / "out.npy"
    run("convert", store, target, "--overwrite", "--format", "npy", *options)
    return np.load(target)


def compare(name, store, expected, what):
    planes = expected.reshape(-1, *expected.shape[-2:])
    planes = planes[0] if len(planes) == 1 else planes
    result = read(store)
    check(name, result.dtype.newbyteorder("=") == planes.dtype.newbyteorder("="), (what, result.dtype))
    check(name, np.array_equal(result, planes, equal_nan=planes.dtype.kind == "f"), what)
    if planes.shape[-2] > 4 and planes.shape[-1] > 6:
        height, width = planes.shape[-2:]
        part = read(store, *"--page 1".split())
        first = planes if planes.ndim == 2 else planes[0]
        check(name, np.array_equal(part, first, equal_nan=first.dtype.kind == "f"), what)
        run("crop", f"3,2,{width - 4}x{height - 3}", store, folder / "part.npy", "--overwrite")
        part = np.load(folder / "part.npy")
        check(name, np.array_equal(part, planes[..., 2:-1, 3:-1], equal_nan=planes.dtype.kind == "f"), what)


number = itertools.count()


def new():
    return folder / f"{next(number)}.zarr"


TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"]
for kind, endian in itertools.product(TYPES, "<>"):
    for shape, chunks in [((37, 53), (16, 16)), ((2, 3, 40, 64), (1, 1, 20, 64)), ((5, 7, 9), (2, 3, 4))]:
        for compressor in [None, "zstd", "zlib"]:
            image = samples(shape, endian + kind)
            codec = {None: None, "zstd": numcodecs.Zstd(), "zlib": numcodecs.Zlib()}[compressor]
            store = new()
            zarr.create_array(store, shape=shape, chunks=chunks, dtype=image.dtype, zarr_format=2,
                              compressors=codec, fill_value=0)[:] = image
            compare("v2 types", store, image, (kind, endian, shape, compressor))
    image = samples((2, 37, 53), kind)
    store = new()
    zarr.create_array(store, shape=image.shape, chunks=(1, 16, 16), dtype=image.dtype,
                      serializer=BytesCodec(endian="little" if endian == "<" else "big"))[:] = image
    compare("v3 types", store, image, (kind, endian))

for cname, shuffle, kind, level in itertools.product(
    ["blosclz", "lz4", "lz4hc", "zlib", "zstd"], [0, 1, 2], ["u1", "u2", "f4", "f8"], [1, 9]
):
    for shape, chunks in [((63, 61), (21, 61)), ((600, 700), (600, 700)), ((11, 13), (3, 5))]:
        image = samples(shape, kind)
        image[:, ::3] = 7
        store = new()
        codec = numcodecs.Blosc(cname=cname, clevel=level, shuffle=shuffle)
        zarr.create_array(store, shape=shape, chunks=chunks, dtype=image.dtype, zarr_format=2,
                          compressors=codec)[:] = image
        compare("Blosc", store, image, (cname, shuffle, kind, level, shape))

for codecs in [
    [GzipCodec()], [ZstdCodec(level=3, checksum=True)], [BloscCodec(cname="zstd", shuffle="bitshuffle")],
    [Crc32cCodec()], [ZstdCodec(), Crc32cCodec()], [], [Crc32cCodec(), GzipCodec()],
]:
    for shards, order in [(None, None), ((1, 32, 64), None), ((2, 64, 64), "start")]:
        image = samples((3, 70, 90), "u2")
        store = new()
        array = zarr.create_array(store, shape=image.shape, chunks=(1, 16, 32), dtype="u2", shards=shards,
                                  compressors=codecs or None, fill_value=9)
        array[:2, :50] = image[:2, :50]
        image[2:] = 9
        image[:, 50:] = 9
        compare("v3 codecs", store, image, (codecs, shards))

for separator, version in itertools.product("./", [2, 3]):
    image = samples((2, 30, 40), "u2")
    store = new()
    zarr.create_array(store, shape=image.shape, chunks=(1, 16, 16), dtype="u2", zarr_format=version,
                      chunk_key_encoding={"name": "v2" if version == 2 else "default", "separator": separator})[:] = image
    compare("names of chunks", store, image, (separator, version))

for kind, fill in [("u1", 255), ("i2", -5), ("u4", 4_000_000_000), ("f4", float("nan")), ("f8", float("-inf")), ("f4", 0.1)]:
    for version in [2, 3]:
        store = new()
        array = zarr.create_array(store, shape=(20, 30), chunks=(8, 8), dtype=kind, zarr_format=version, fill_value=fill)
        array[:8, :8] = 1
        compare("fill values", store, array[:], (kind, fill, version))


def ome(store, image, axes, version, channels=()):
    """An OME-Zarr of two levels, by hand."""
    zarr_format = 3 if version == "0.5" else 2
    units = {"t": "second", "c": None, "z": "micrometer", "y": "micrometer", "x": "micrometer"}
    types = {"t": "time", "c": "channel"}
    scales = {"t": 2.5, "c": 1.0, "z": 0.75, "y": 0.325, "x": 0.3251}
    root = zarr.open_group(store, mode="w", zarr_format=zarr_format)
    datasets = []
    for level, step in enumerate([1, 2]):
        data = image[..., ::step, ::step]
        chunks = (1,) * (len(axes) - 2) + (16, 32)
        name = f"{level}" if version == "0.5" else f"scale{level}/image"
        encoding = {"name": "v2" if zarr_format == 2 else "default", "separator": "/"}
        root.create_array(name, shape=data.shape, chunks=chunks, dtype=data.dtype, chunk_key_encoding=encoding)[:] = data
        scale = [scales[axis] * (step if axis in "yx" else 1) for axis in axes]
        datasets.append({"path": name, "coordinateTransformations": [{"type": "scale", "scale": scale}]})
    described = [
        {"name": axis, "type": types.get(axis, "space")} | ({"unit": units[axis]} if units[axis] else {}) for axis in axes
    ]
    attributes = {"multiscales": [{"axes": described, "datasets": datasets, "name": "cells", "version": version}]}
    if channels:
        window = {"min": 0, "max": 65535, "start": 0, "end": 65535}
        attributes["omero"] = {
            "channels": [{"label": label, "color": colour, "window": window} for label, colour in channels]
        }
    root.attrs.update({"ome": attributes | {"version": version}} if version == "0.5" else attributes)


for version in ["0.4", "0.5"]:
    for axes, shape in [("yx", (40, 50)), ("cyx", (3, 40, 50)), ("zyx", (4, 40, 50)), ("tczyx", (2, 3, 4, 40, 50))]:
        image = samples(shape, "u2")
        store = new()
        channels = [("DAPI", "0000FF"), ("GFP", "00FF00"), ("é & <ü>", "FF0000")] if "c" in axes else []
        ome(store, image, axes, version, channels)
        compare("OME-Zarr", store, image, (version, axes))
        half = image[..., ::2, ::2].reshape(-1, 20, 25)
        check("levels", np.array_equal(read(store, "--level", "1"), half.squeeze(0) if len(half) == 1 else half), (version, axes))
        facts = json.loads(run("info", store, "--json"))
        size = dict(zip(axes, shape))
        if len(axes) > 2:
            check("axes", facts["axes"] == {axis: size.get(axis, 1) for axis in "czt"}, facts)
        check("scales", facts["pixels_per_metre"] == [round(1e6 / 0.3251), round(1e6 / 0.325)], facts)

print(counts)
