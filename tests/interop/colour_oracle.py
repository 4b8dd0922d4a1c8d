#!/usr/bin/env python3
"""`debayer` against OpenCV, inside of the border, and against NumPy's sums; `combine` against NumPy, with stacks that tifffile
writes and reads; `lut` against the tables of matplotlib, with 16 bits against NumPy's interpolation.

usage: colour_oracle.py GPUIMG
"""

import pathlib
import subprocess
import sys
import tempfile

import cv2
import matplotlib
import numpy as np
import tifffile

gpuimg = str(pathlib.Path(sys.argv[1]).resolve())
rng = np.random.default_rng(11)
# OpenCV names a pattern by the colours of the second row from the second column on.
PATTERNS = {"RGGB": "BG", "BGGR": "RG", "GRBG": "GB", "GBRG": "GR"}


def run(folder, *args):
    done = subprocess.run([gpuimg, *map(str, args)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr}")


def compared(what, found, expected):
    if found.shape != expected.shape or not np.array_equal(found, expected):
        sys.exit(f"{what} differs: {found.shape}, {expected.shape}")


def malvar(mosaic, pattern):
    """Figure 2 of the paper, by masks of the colours, in whole numbers."""
    height, width = mosaic.shape
    padded = np.pad(mosaic.astype(np.int64), 2, mode="reflect")

    def shifted(y, x):
        return padded[2 + y : 2 + y + height, 2 + x : 2 + x + width]

    y, x = np.mgrid[:height, :width]
    colours = np.array(list(pattern)).reshape(2, 2)
    own, beside = colours[y % 2, x % 2], colours[y % 2, (x + 1) % 2]
    centre = shifted(0, 0)
    left_right, up_down = shifted(0, -1) + shifted(0, 1), shifted(-1, 0) + shifted(1, 0)
    diagonal = shifted(-1, -1) + shifted(-1, 1) + shifted(1, -1) + shifted(1, 1)
    far_x, far_y = shifted(0, -2) + shifted(0, 2), shifted(-2, 0) + shifted(2, 0)
    green = 8 * centre + 4 * (left_right + up_down) - 2 * (far_x + far_y)
    in_row = 10 * centre + 8 * left_right - 2 * far_x - 2 * diagonal + far_y
    in_column = 10 * centre + 8 * up_down - 2 * far_y - 2 * diagonal + far_x
    opposite = 12 * centre + 4 * diagonal - 3 * (far_x + far_y)
    planes = []
    for colour in "RGB":
        if colour == "G":
            sums = green
        else:
            sums = np.where(own == "G", np.where(beside == colour, in_row, in_column), opposite)
        plane = np.where(own == colour, centre, (sums + 8) // 16)
        planes.append(plane.clip(0, np.iinfo(mosaic.dtype).max))
    return np.stack(planes, -1).astype(mosaic.dtype)


cases = 0
with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    for kind in (np.uint8, np.uint16):
        for height, width in ((64, 48), (37, 53), (2, 2), (3, 200)):
            mosaic = rng.integers(0, np.iinfo(kind).max, (height, width), dtype=kind, endpoint=True)
            tifffile.imwrite(folder / "raw.tif", mosaic)
            for pattern, name in PATTERNS.items():
                run(folder, "debayer", pattern, "raw.tif", "rgb.tif", "--overwrite")
                found = tifffile.imread(folder / "rgb.tif")
                if min(height, width) > 2:
                    expected = cv2.demosaicing(mosaic, getattr(cv2, f"COLOR_Bayer{name}2RGB"))
                    compared(f"{pattern} of {mosaic.shape}", found[1:-1, 1:-1], expected[1:-1, 1:-1])
                run(folder, "debayer", pattern, "raw.tif", "rgb.tif", "--overwrite", "--method", "malvar")
                compared(f"{pattern}, malvar", tifffile.imread(folder / "rgb.tif"), malvar(mosaic, pattern))
                cases += 2
    for kind in (np.uint8, np.int16, np.uint16, np.uint32, np.float32, np.float64):
        planes = rng.integers(0, 100, (3, 31, 17)).astype(kind)
        for channel, plane in zip("rgb", planes):
            tifffile.imwrite(folder / f"{channel}.tif", plane)
        run(folder, "combine", "r.tif", "g.tif", "b.tif", "rgb.tif", "--overwrite")
        found = tifffile.imread(folder / "rgb.tif")
        compared(f"combined {kind}", found, planes.transpose(1, 2, 0))
        cases += 1
    colours = {"green": (0, 255, 0), "#ff00ff": (255, 0, 255), "#108001": (16, 128, 1)}
    parts = np.array(list(colours.values()), dtype=np.int64)
    text = ",".join(f"C{number}={colour}" for number, colour in enumerate(colours, 1))
    for kind in (np.uint8, np.uint16):
        most = np.iinfo(kind).max
        stack = rng.integers(0, most, (2, 4, 3, 20, 30), dtype=kind, endpoint=True)
        sums = np.einsum("tzcyx,ck->tzyxk", stack.astype(np.int64), parts)
        expected = ((sums + 127) // 255).clip(0, most)
        for options in ({"imagej": True}, {"ome": True}):
            tifffile.imwrite(folder / "stack.tif", stack, metadata={"axes": "TZCYX"}, **options)
            run(folder, "combine", "stack.tif", "rgb.tif", "--colours", text, "--overwrite")
            with tifffile.TiffFile(folder / "rgb.tif") as made:
                series = made.series[0]
                if "".join(axis for axis in series.axes if axis != "S") != "TZYX":
                    sys.exit(f"the axes are {series.axes}")
                compared(f"{kind} in colours", made.asarray(), expected)
            cases += 1
    names = {"gray": "gray", "viridis": "viridis", "magma": "magma", "inferno": "inferno", "ironbow": "gnuplot"}
    for name, theirs in names.items():
        fractions = matplotlib.colormaps[theirs](np.arange(256))[:, :3]
        table = np.floor(fractions * 255 + 0.5).astype(np.uint8)
        every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
        for samples in (every, (every >> 8).astype(np.uint8)):
            tifffile.imwrite(folder / "grey.tif", samples)
            run(folder, "lut", name, "grey.tif", "rgb.tif", "--overwrite")
            compared(f"lut {name}", tifffile.imread(folder / "rgb.tif"), table[every >> 8])
            run(folder, "lut", name, "grey.tif", "rgb.tif", "--overwrite", "--depth", "16")
            wide = samples.astype(np.int64) * (257 if samples.dtype == np.uint8 else 1)
            knots = np.arange(256) * 257
            parts = [np.interp(wide, knots, table[:, colour].astype(float) * 257) for colour in range(3)]
            compared(f"lut {name}, 16 bits", tifffile.imread(folder / "rgb.tif"), np.rint(np.stack(parts, -1)))
            cases += 2
    # tifffile looks for the pages of its own files behind the first one, where small pages are not.
    for pages, height, width in ((2, 3, 4), (4, 5, 6), (9, 2, 2), (4, 40, 30)):
        stack = rng.integers(0, 65535, (pages, height, width), dtype=np.uint16)
        tifffile.imwrite(folder / "stack.tif", stack, photometric="minisblack")
        for verb in (["convert"], ["crop", f"1,1,{width - 1}x{height - 1}"]):
            run(folder, *verb, "stack.tif", "out.tif", "--overwrite")
            expected = stack if verb == ["convert"] else stack[:, 1:, 1:]
            compared(f"{verb} of {stack.shape}", tifffile.imread(folder / "out.tif"), expected)
            cases += 1
print(f"{cases} cases are as OpenCV, NumPy and matplotlib have them")
