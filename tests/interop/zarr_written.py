"""OME-Zarr stores of gpuimg, read by zarr-python.

Needs numpy, tifffile and zarr, and ome-zarr-models where it can be had. Usage: python tests/interop/zarr_written.py path/to/gpuimg
Stores of every type of sample and of many sizes, with and without shards and compression, from stacks of every axis and from RGB:
the full size is compared with the source, and each further level with the mean of the area that its pixels cover, in exact
arithmetic. The metadata are those that OME-NGFF 0.5 asks for, and gpuimg reads its own stores back.
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tifffile
import zarr

from area_means import halved, is_same, mean

try:
    from ome_zarr_models.v05 import Image as Model
except ImportError:
    Model = None

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(38)
number = itertools.count()
counts = {}


def run(*arguments):
    done = subprocess.run([gpuimg, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def check(name, good, what):
    counts[name] = counts.get(name, 0) + 1
    if not good:
        sys.exit(f"{name} differs: {what}")


def new(extension):
    return folder / f"{next(number)}.{extension}"


def samples(shape, kind):
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return rng.normal(0, 1e3, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def compare(store, image, what):
    """Compares all levels of a store with an image whose last axes are y and x, and checks the metadata of OME-NGFF 0.5."""
    group = zarr.open_group(store, mode="r", zarr_format=3)
    ome = group.attrs["ome"]
    check("version", ome["version"] == "0.5" and len(ome["multiscales"]) == 1, what)
    multiscales = ome["multiscales"][0]
    axes = multiscales["axes"]
    kinds = [axis["type"] for axis in axes]
    order = ["time", "channel", "space"]
    check("axes", kinds == sorted(kinds, key=order.index) and 2 <= kinds.count("space") <= 3, (what, axes))
    check("axes", len({axis["name"] for axis in axes}) == image.ndim, (what, axes))
    full = None
    for level, dataset in enumerate(multiscales["datasets"]):
        array = group[dataset["path"]]
        names = [axis["name"] for axis in axes]
        check("dimension names", list(array.metadata.dimension_names) == names, (what, level))
        check("types", array.dtype == image.dtype, (what, level, array.dtype))
        if level == 0:
            expected = image
        else:
            shape = tuple(halved(side, level) for side in image.shape[-2:])
            planes = image.reshape(-1, *image.shape[-2:])
            planes = [mean(plane, shape) for plane in planes]
            expected = np.stack(planes).reshape(*image.shape[:-2], *shape)
        stored = array[:]
        check("shapes", stored.shape == expected.shape, (what, level, stored.shape, expected.shape))
        check("samples", is_same(stored, expected, level), (what, level))
        scale, *translation = dataset["coordinateTransformations"]
        check("scales", scale["type"] == "scale" and len(scale["scale"]) == image.ndim, (what, level))
        full = full or scale["scale"]
        times = [old / new for old, new in zip(image.shape, stored.shape)]
        check("scales", np.allclose(scale["scale"], np.multiply(full, times), rtol=1e-12), (what, level, scale))
        shift = translation[0]["translation"] if translation else [0] * image.ndim
        # The centre of the first pixel.
        centre = [size * (time - 1) / 2 for size, time in zip(full, times)]
        check("translations", np.allclose(shift, centre, rtol=1e-12), (what, level, shift))
    if Model is not None:
        Model.from_zarr(group)
        check("ome-zarr-models", True, what)
    return ome


def convert(image, *options, **metadata):
    source, store = new("tif"), new("zarr")
    if metadata.pop("ome", False):
        source = source.with_suffix(".ome.tif")
        tifffile.imwrite(source, image, ome=True, **metadata)
    elif metadata:
        tifffile.imwrite(source, image, **metadata)
    else:
        # Page by page, since tifffile takes the axes of an array of small sizes for others.
        with tifffile.TiffWriter(source) as pages:
            for plane in image.reshape(-1, *image.shape[-2:]):
                pages.write(plane, contiguous=False, metadata=None)
    run("convert", source, store, *options)
    return source, store


def read_back(store, what):
    """A store that gpuimg reads and writes again has the same files and facts."""
    array = zarr.open_group(store, mode="r")["0"]
    copy = new("zarr")
    pixels = array[:].reshape(-1, *array.shape[-2:])
    npy = new("npy")
    run("convert", store, npy)
    result = np.load(npy)
    check("read back", np.array_equal(result.reshape(pixels.shape), pixels, equal_nan=pixels.dtype.kind == "f"), what)
    chunk = ["--zarr-chunk", max(array.chunks)]
    levels = len(list(zarr.open_group(store, mode="r").array_keys()))
    run("convert", store, copy, *chunk, "--zarr-levels", levels)
    facts = [json.loads(run("info", path, "--json")) for path in (store, copy)]
    for fact in facts:
        for changing in ("path", "bytes", "input", "size", "file_bytes"):
            fact.pop(changing, None)
    check("facts", facts[0] == facts[1], (what, facts))
    attributes = [dict(zarr.open_group(path, mode="r").attrs) for path in (store, copy)]
    check("attributes", attributes[0] == attributes[1], (what, attributes))


SIZES = [(1, 1), (1, 7), (9, 1), (37, 53), (64, 64), (130, 65)]
for kind, size in itertools.product(["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"], SIZES):
    image = samples((3, *size), kind)
    if np.dtype(kind).kind == "f":
        image.flat[0] = np.nan
    for options in [("--zarr-chunk", 16), ("--zarr-chunk", 16, "--zarr", "none"), ("--zarr-chunk", 48, "--zarr", "blosc"), ("--zarr-chunk", 16, "--zarr-shard", 48)]:
        _, store = convert(image, *options)
        compare(store, image, (kind, size, options))
        check("partial", not pathlib.Path(f"{store}.partial").exists(), store)
    read_back(store, (kind, size))

image = samples((1023, 1025), "u2")
for options in [(), ("--low-memory",), ("--zarr-levels", 3), ("--zarr-shard", 2048), ("--zarr", "blosc", "--zarr-shard", 2048)]:
    _, store = convert(image, *options)
    compare(store, image, options)
whole, bands = (convert(image, "--zarr-chunk", 100, *options)[1] for options in [(), ("--low-memory",)])
same = subprocess.run(["diff", "-r", whole, bands], capture_output=True)
check("bands", same.returncode == 0, same.stdout)

for order in ["ZYX", "CYX", "TYX", "ZCYX", "CZYX", "TZCYX", "TCZYX", "CTZYX"]:
    sizes = {"T": 2, "C": 3, "Z": 4, "Y": 40, "X": 50}
    image = samples([sizes[axis] for axis in order], "u2")
    described = {
        "axes": order, "PhysicalSizeX": 0.325, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 500.0, "PhysicalSizeYUnit": "nm",
        "PhysicalSizeZ": 2.0, "TimeIncrement": 0.5, "TimeIncrementUnit": "min",
    }
    if "C" in order:
        described["Channel"] = {"Name": ["DAPI", "GFP", "é & <ü>"], "Color": [65535, 16711935, -16776961]}
    _, store = convert(image, "--zarr-chunk", 16, ome=True, metadata=described)
    names = sorted(order, key="TCZYX".index)
    if "Z" not in order:
        names.insert(names.index("Y"), "Z")
    if "T" not in order:
        names.insert(0, "T")
    expected = np.transpose(image, [order.index(axis) for axis in names if axis in order])
    expected = expected.reshape([sizes[axis] if axis in order else 1 for axis in names])
    ome = compare(store, expected, order)
    axes = {axis["name"]: axis.get("unit") for axis in ome["multiscales"][0]["axes"]}
    scale = ome["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
    known = dict(zip(axes, scale))
    check("units", (axes["t"], axes["z"], axes["y"], axes["x"]) == ("minute", "micrometer", "nanometer", "micrometer"), axes)
    check("units", (known["t"], known["z"], known["y"], known["x"]) == (0.5, 2.0, 500.0, 0.325), known)
    if "C" in order:
        channels = ome["omero"]["channels"]
        check("channels", [it["label"] for it in channels] == ["DAPI", "GFP", "é & <ü>"], channels)
        check("channels", [it["color"] for it in channels] == ["0000FF", "00FF00", "FF0000"], channels)
        coarse = zarr.open_group(store, mode="r")
        coarse = np.moveaxis(coarse[sorted(coarse.array_keys())[-1]][:], names.index("C"), 0)
        for channel, plane in zip(channels, coarse):
            window = channel["window"]
            check("windows", (window["start"], window["end"]) == (plane.min(), plane.max()), window)
            check("windows", (window["min"], window["max"]) == (0, 65535), window)
    read_back(store, order)

image = samples((2, 45, 61, 3), "u1")
_, store = convert(image, "--zarr-chunk", 32, photometric="rgb")
compare(store, np.moveaxis(image, -1, 0), "RGB")

image = samples((6, 40, 50), "u2")
source, store = convert(image, imagej=True, resolution=(4, 2), metadata={"unit": "um", "spacing": 0.75, "axes": "ZYX"})
ome = compare(store, image, "ImageJ")
scale = ome["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"]
check("units", scale == [0.75, 0.5, 0.25], scale)

# Verbs, and a folder as one stack.
stack = folder / "stack"
stack.mkdir()
for index, plane in enumerate(image):
    tifffile.imwrite(stack / f"{index}.tif", plane)
store = new("zarr")
run("convert", stack, "-o", store, "--stack")
compare(store, image, "--stack")
turned = new("zarr")
run("flip", "vertical", store, turned)
compare(turned, image[:, ::-1], "flip")
stretched = new("zarr")
run("normalize", store, stretched, "--range", "0:65535")
compare(stretched, image, "normalize")
run("project", "max", store, turned, "--overwrite")
compare(turned, image.max(axis=0), "project")

print(counts, "" if Model else "without ome-zarr-models")
