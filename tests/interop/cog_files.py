"""Cloud-optimized TIFF files of gpuimg, read by tifffile and GDAL, and judged by rio-cogeo's validator.

Needs numpy and tifffile, and rio-cogeo and rasterio where they can be had. Usage: python tests/interop/cog_files.py path/to/gpuimg
Files of every type of sample and of many sizes, with every compression: the full size is compared with the source, and each
overview with the mean of the area that its pixels cover, in exact arithmetic. Their order in the file is that of a cloud-optimized
TIFF. The position on the earth is kept, and gpuimg reads its own files back as one image.
"""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import tifffile

from area_means import halved, is_same, mean

try:
    import rasterio
    from rio_cogeo.cogeo import cog_validate

    warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
except ImportError:
    rasterio = None
    print("SKIPPED rio-cogeo's validator and GDAL: rio-cogeo or rasterio is not installed", file=sys.stderr)

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(39)
number = itertools.count()
counts = {}
TILE = 512


def run(*arguments):
    done = subprocess.run([gpuimg, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def check(name, good, what):
    counts[name] = counts.get(name, 0) + 1
    if not good:
        sys.exit(f"{name} differs: {what}")


def new(extension="tif"):
    return folder / f"{next(number)}.{extension}"


def samples(shape, kind):
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        image = rng.normal(0, 1e3, shape).astype(dtype)
        image.flat[0] = np.nan
        return image
    limits = np.iinfo(dtype)
    rows, columns = np.indices(shape[:2])
    ramp = (rows * 3 + columns).reshape(*shape[:2], *[1] * (len(shape) - 2))
    # A ramp with noise, so that compressed tiles have different lengths.
    noise = rng.integers(0, 9, shape) * (ramp % 700 > 350)
    return ((ramp + noise) % (limits.max - limits.min) + limits.min).astype(dtype)


def level(image, index):
    """An overview of an image of rows × columns, or of rows × columns × channels."""
    shape = tuple(halved(side, index) for side in image.shape[:2])
    planes = np.moveaxis(np.atleast_3d(image), -1, 0)
    means = np.stack([mean(plane, shape) for plane in planes], axis=-1)
    return means.reshape(*shape, *image.shape[2:])


def all_levels(image):
    """The full size and its overviews, the last of which fits into a tile."""
    levels = [image]
    while max(levels[-1].shape[:2]) > TILE:
        levels.append(level(image, len(levels)))
    return levels


def compare(path, image, what):
    levels = all_levels(image)
    starts = []
    with tifffile.TiffFile(path) as file:
        check("levels", len(file.pages) == len(levels), (what, len(file.pages), len(levels)))
        check("first directory", file.pages[0].offset == (16 if file.is_bigtiff else 8), what)
        directories = [page.offset for page in file.pages]
        check("directories", directories == sorted(directories), (what, directories))
        for index, (page, expected) in enumerate(zip(file.pages, levels)):
            check("tiles", page.is_tiled and (page.tilelength, page.tilewidth) == (TILE, TILE), (what, index))
            check("reduced", page.subfiletype == (1 if index else 0), (what, index, page.subfiletype))
            stored = page.asarray()
            check("types", (stored.dtype, stored.shape) == (image.dtype, expected.shape), (what, index, stored.dtype, stored.shape))
            check("samples", is_same(stored, expected, index), (what, index))
            check("row-major", list(page.dataoffsets) == sorted(page.dataoffsets), (what, index))
            starts.append((page.dataoffsets[0], page.dataoffsets[-1] + page.databytecounts[-1]))
        check("directories first", min(start for start, _ in starts) > directories[-1], (what, starts))
        # The smallest overview first, without a gap.
        ends = [end for _, end in starts[::-1]]
        check("order", [start for start, _ in starts[::-1]][1:] == ends[:-1], (what, starts))
        check("length", ends[-1] == path.stat().st_size, (what, ends[-1]))
    if rasterio is None:
        return
    valid, errors, remarks = cog_validate(path, strict=True, quiet=True)
    # It takes a level that is exactly as wide as a tile for one in strips.
    is_mistaken = any(width == TILE < height for height, width in (image.shape[:2] for image in levels))
    valid = valid or is_mistaken and all("not tiled" in error for error in errors)
    check("rio-cogeo", valid, (what, errors, remarks))
    for index, expected in enumerate(levels):
        selected = {} if index == 0 else {"OVERVIEW_LEVEL": index - 1}
        with rasterio.open(path, **selected) as file:
            stored = np.moveaxis(file.read(), 0, -1).reshape(expected.shape)
            check("GDAL", is_same(stored, expected, index), (what, index))


def convert(image, *options, **metadata):
    source, path = new(), new()
    tifffile.imwrite(source, image, metadata=None, **metadata)
    run("convert", source, path, "--tiff-layout", "cog", *options)
    return source, path


def read_back(path, image, what):
    npy = new("npy")
    run("convert", path, npy)
    check("read back", np.array_equal(np.load(npy), image, equal_nan=image.dtype.kind == "f"), what)
    check("one page", json.loads(run("info", path, "--json"))["pages"] == 1, what)


COMPRESSIONS = ["none", "deflate", "lzw", "zstd"]
SIZES = [(1, 1), (512, 512), (3, 1025), (700, 513)]
for kind, compression, size in itertools.product(["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"], COMPRESSIONS, SIZES):
    image = samples(size, kind)
    byteorder = ">" if compression in ("none", "zstd") else "<"
    _, path = convert(image, "--tiff", compression, byteorder=byteorder)
    compare(path, image, (kind, compression, size))
    read_back(path, image, (kind, compression, size))

for channels, kind in itertools.product([3, 4], ["u1", "u2", "f4"]):
    image = samples((600, 1030, channels), kind)
    extra = {"extrasamples": ["unassalpha"]} if channels == 4 else {}
    for compression in COMPRESSIONS:
        _, path = convert(image, "--tiff", compression, photometric="rgb", **extra)
        compare(path, image, (channels, kind, compression))
    read_back(path, image, (channels, kind))

# Bands of rows give the file of the whole image.
image = samples((2100, 1300), "u2")
for compression in COMPRESSIONS:
    files = [convert(image, "--tiff", compression, *options)[1] for options in [(), ("--low-memory",)]]
    compare(files[0], image, compression)
    check("bands", files[0].read_bytes() == files[1].read_bytes(), compression)

# Verbs, with the position on the earth as it is in strips.
source = new()
geo = [
    (33550, 12, 3, (10.0, 10.0, 0.0), True), (33922, 12, 6, (0.0, 0.0, 0.0, 600000.0, 5100000.0, 0.0), True),
    (34735, 3, 16, (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632), True), (42113, 2, 2, "0", True),
]
tifffile.imwrite(source, image, metadata=None, extratags=geo)
for verb in [("convert",), ("normalize", "--range", "0:40000"), ("crop", "100,200,1024x1500"), ("rotate", "90"), ("flip", "vertical"), ("convert", "--fit", "900")]:
    strips, cog = new(), new()
    run(*verb, source, strips)
    run(*verb, source, cog, "--tiff-layout", "cog", "--tiff", "deflate")
    compare(cog, tifffile.imread(strips), verb)
    if rasterio is not None:
        with rasterio.open(strips) as plain, rasterio.open(cog) as tiled:
            facts = [(file.transform, file.crs, file.nodata, file.tags()) for file in (plain, tiled)]
            check("position", facts[0] == facts[1] and facts[0][1].to_epsg() == 32632, (verb, facts))

print(counts, "" if rasterio else "without rio-cogeo")
