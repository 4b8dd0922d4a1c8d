"""TIFF kinds that go wrong elsewhere, written by tifffile and read back by it, against NumPy.

Needs numpy, tifffile and imagecodecs. Usage: python tests/foreign_kinds.py path/to/gpuimg
1. Every combination of byte order, BigTIFF, compression, predictor, strips or tiles, planes,
   pages, sign and depth: transposed and normalized, samples, sign, pages and byte order compared.
2. ImageJ stacks and hyperstacks, OME-TIFF, tifffile's own shapes: axes and shape of the series
   before and after; and the listings of all tags that changed.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tifffile

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
source, target = folder / "in.tif", folder / "out.tif"
counts = {}


def run(*arguments):
    done = subprocess.run(
        [gpuimg, *arguments, "--overwrite", source, target], capture_output=True, text=True
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stderr


def stretch(image, low, high):
    """The exact definition, over all pages."""
    full = np.iinfo(image.dtype)
    span = int(full.max) - int(full.min)
    away = image.astype(np.int64) - low
    return ((away * span + (high - low) // 2) // (high - low) + int(full.min)).astype(image.dtype)


def check(name, good, what):
    counts[name] = counts.get(name, 0) + 1
    if not good:
        sys.exit(f"{name} differs: {what}")


def kinds():
    rng = np.random.default_rng(7)
    for order, big, compression, predictor, tile, channels, dtype, planar, pages in itertools.product(
        "<>",
        (False, True),
        (None, "lzw", "zlib", "zstd", "packbits"),
        (False, True),
        (None, (16, 32)),
        (1, 3, 4),
        (np.uint8, np.int8, np.uint16, np.int16),
        (False, True),
        (1, 3),
    ):
        if predictor and not compression or planar and channels == 1:
            continue
        limits = np.iinfo(dtype)
        low, high = limits.min // 2 + 3, limits.max // 2
        image = rng.integers(low, high, (pages, 37, 53, channels)).astype(dtype)
        stored = np.moveaxis(image, -1, 1) if planar else image
        what = (order, big, compression, predictor, tile, channels, dtype.__name__, planar, pages)
        tifffile.imwrite(
            source,
            stored.squeeze() if channels == 1 else stored,
            byteorder=order,
            bigtiff=big,
            compression=compression,
            predictor=predictor,
            tile=tile,
            photometric="rgb" if channels > 2 else "minisblack",
            planarconfig=("separate" if planar else "contig") if channels > 1 else None,
            extrasamples=["unassalpha"] if channels == 4 else None,
            rowsperstrip=None if tile else 10,
        )
        colours = image[..., :3]
        for verb, expected in (
            ("transpose", image.swapaxes(1, 2)),
            ("normalize", np.concatenate([stretch(colours, int(colours.min()), int(colours.max())), image[..., 3:]], -1)),
        ):
            run(verb)
            with tifffile.TiffFile(target) as file:
                read = np.stack([page.asarray() for page in file.pages]).reshape(expected.shape)
                check("kinds", read.dtype == dtype and np.array_equal(read, expected), (verb, what))
                check("byte order", file.byteorder == order, (verb, what))
                # As one array, too: what a description says of the shape must be true.
                whole = file.series[0].asarray().reshape(expected.shape)
                check("series", len(file.series) == 1 and np.array_equal(whole, expected), (verb, what))


def listing():
    """Every tag of the first page that tells of the image, and the series' axes and shape."""
    layout = {"StripOffsets", "StripByteCounts", "RowsPerStrip", "TileOffsets", "TileByteCounts"}
    with tifffile.TiffFile(target if target.exists() else source) as file:
        tags = {tag.name: str(tag.value)[:90] for tag in file.pages[0].tags if tag.name not in layout}
        series = file.series[0]
        return tags, (series.axes, series.shape, str(series.dtype), len(file.pages))


def stacks():
    rng = np.random.default_rng(8)
    resolution = dict(resolution=(400, 200), resolutionunit="CENTIMETER")
    cases = {
        "ImageJ hyperstack": dict(
            data=rng.integers(100, 3000, (2, 3, 4, 20, 30)).astype(np.uint16),
            imagej=True,
            metadata={"axes": "TZCYX", "unit": "um", "spacing": 0.5, "min": 100.0, "max": 3000.0,
                      "Labels": [str(i) for i in range(24)], "Ranges": (100.0, 3000.0) * 4},
            **resolution,
        ),
        "ImageJ stack, big-endian": dict(
            data=rng.integers(100, 3000, (5, 20, 30)).astype(np.uint16), imagej=True, byteorder=">", **resolution
        ),
        "OME-TIFF": dict(
            data=rng.integers(100, 3000, (2, 3, 20, 30)).astype(np.uint16),
            ome=True,
            metadata={"axes": "CZYX", "PhysicalSizeX": 0.1, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.2,
                      "PhysicalSizeYUnit": "µm", "SignificantBits": 12, "Channel": {"Name": ["a", "b"]}},
            **resolution,
        ),
        "tifffile's shape": dict(
            data=rng.integers(100, 3000, (2, 3, 20, 30)).astype(np.uint16), photometric="minisblack", **resolution
        ),
        "a rich TIFF": dict(
            data=rng.integers(100, 3000, (20, 30, 3)).astype(np.uint16),
            photometric="rgb",
            description="what it shows",
            software="a camera",
            datetime="2026:11:22 00:00:00",
            iccprofile=b"\0" * 36 + b"acsp" + b"\0" * 100,
            extratags=[(315, "s", 0, "me", True), (33432, "s", 0, "(c) me", True), (65000, "s", 0, "private", True),
                       (274, "H", 1, 6, True)],
            metadata=None,
            **resolution,
        ),
    }
    for name, options in cases.items():
        data = options.pop("data")
        y = data.ndim - (3 if options.get("photometric") == "rgb" else 2)
        target.unlink(missing_ok=True)
        tifffile.imwrite(source, data, **options)
        before, series = listing()
        print(f"\n== {name}: {series}")
        for verb, expected in (
            ("normalize", stretch(data, int(data.min()), int(data.max()))),
            ("transpose", data.swapaxes(y, y + 1)),
        ):
            said = run(verb)
            after, found = listing()
            shape = list(series[1])
            if verb == "transpose":
                shape[y], shape[y + 1] = shape[y + 1], shape[y]
            check("axes", found == (series[0], tuple(shape), *series[2:]), (name, verb, series, found))
            check("stacks", np.array_equal(tifffile.imread(target), expected), (name, verb))
            print(f"-- {verb}: {found}")
            for line in said.splitlines():
                print(f"   {line}")
            for tag in sorted(before.keys() | after.keys()):
                if before.get(tag) != after.get(tag):
                    print(f"   {tag}: {before.get(tag)} → {after.get(tag)}")
            print(f"   {sum(before.get(tag) == after.get(tag) for tag in before)} of {len(before)} tags as before")


kinds()
stacks()
print()
for name, count in counts.items():
    print(f"{count:5} {name}")
