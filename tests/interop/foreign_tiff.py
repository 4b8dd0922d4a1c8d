"""TIFF files of other programs through gpuimg, and gpuimg's through other programs.

Needs numpy, tifffile, imagecodecs, opencv-python-headless and Pillow. Usage:
    python tests/interop/foreign_tiff.py path/to/gpuimg
Writes every combination of byte order, BigTIFF, compression, predictor, strips or tiles, channels
and depth with tifffile, and some with Pillow and OpenCV; has gpuimg flip each to a TIFF of every
compression and to PNM; and compares what tifffile, Pillow and OpenCV read with NumPy's flip.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np
import PIL.Image
import tifffile

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
counts = {}


def flip(source, target, *options):
    done = subprocess.run(
        [gpuimg, "flip", "vertical", "--overwrite", *options, source, target],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (source, done.stderr)


def check(name, image, expected, what):
    counts[name] = counts.get(name, 0) + 1
    if image is None or image.dtype != expected.dtype or not np.array_equal(image, expected):
        sys.exit(f"{name} differs: {what}")


def picture(height, width, channels, dtype):
    rng = np.random.default_rng(height * width)
    ramp = np.add.outer(np.arange(height), np.arange(width))[..., None] * 37
    noise = rng.integers(0, 300, (height, width, channels))
    image = ((ramp + noise) % (np.iinfo(dtype).max + 1)).astype(dtype)
    return image[..., 0] if channels == 1 else image


def read_by_gpuimg():
    """Files of others, of every layout."""
    path, out = folder / "in.tif", folder / "out.tif"
    for order, big, compression, predictor, tile, channels, dtype, size in itertools.product(
        "<>",
        (False, True),
        (None, "lzw", "zlib", "zstd", "packbits"),
        (False, True),
        (None, (16, 32)),
        (1, 2, 3, 4),
        (np.uint8, np.uint16),
        ((1, 1), (67, 53)),
    ):
        if predictor and not compression:
            continue  # tifffile writes no such file
        image = picture(*size, channels, dtype)
        options = dict(
            byteorder=order,
            bigtiff=big,
            compression=compression,
            predictor=predictor,
            tile=tile,
            photometric="rgb" if channels > 2 else "minisblack",
            planarconfig="contig" if channels > 1 else None,
            extrasamples=["unassalpha"] if channels in (2, 4) else None,
            rowsperstrip=None if tile else 10,
        )
        tifffile.imwrite(path, image, **options)
        flip(path, out)
        check("tifffile → gpuimg", tifffile.imread(out), image[::-1], options)
    for channels, compression in itertools.product(
        (1, 3, 4), ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd")
    ):
        image = picture(67, 53, channels, np.uint8)
        PIL.Image.fromarray(image).save(path, compression=compression)
        flip(path, out)
        check("Pillow → gpuimg", tifffile.imread(out), image[::-1], compression)
    # Not four channels: OpenCV leaves the meaning of the fourth out (no ExtraSamples).
    for channels, dtype, compression, predictor in itertools.product(
        (1, 3), (np.uint8, np.uint16), (1, 5, 8, 32773), (1, 2)
    ):
        image = picture(67, 53, channels, dtype)
        parameters = [cv2.IMWRITE_TIFF_COMPRESSION, compression, cv2.IMWRITE_TIFF_PREDICTOR, predictor]
        assert cv2.imwrite(str(path), image, parameters)
        flip(path, out)
        if channels > 2:  # OpenCV has blue first
            image = image[..., ::-1]
        check("OpenCV → gpuimg", tifffile.imread(out), image[::-1], parameters)


def written_by_gpuimg():
    """gpuimg's files, of every kind."""
    path = folder / "in.tif"
    for channels, dtype, size in itertools.product((1, 2, 3, 4), (np.uint8, np.uint16), ((1, 1), (67, 53), (700, 1201))):
        image = picture(*size, channels, dtype)
        tifffile.imwrite(
            path,
            image,
            photometric="rgb" if channels > 2 else "minisblack",
            planarconfig="contig" if channels > 1 else None,
            extrasamples=["unassalpha"] if channels in (2, 4) else None,
        )
        expected = image[::-1]
        for compression in ("none", "deflate", "lzw", "zstd"):
            out, what = folder / "out.tif", (image.shape, dtype, compression)
            flip(path, out, "--tiff", compression)
            check("gpuimg → tifffile", tifffile.imread(out), expected, what)
            if dtype == np.uint8:
                with PIL.Image.open(out) as opened:
                    check("gpuimg → Pillow", np.asarray(opened), expected, what)
            # OpenCV's wheel knows neither two channels nor zstd, and multiplies 8-bit colours by alpha.
            if channels in (1, 3) and compression != "zstd":
                read = cv2.imread(str(out), cv2.IMREAD_UNCHANGED)
                if channels > 2 and read is not None:
                    read = read[..., ::-1]
                check("gpuimg → OpenCV", read, expected, what)
        if channels in (1, 3):
            out = folder / "out.pnm"
            flip(path, out)
            read = cv2.imread(str(out), cv2.IMREAD_UNCHANGED)
            check("gpuimg → PNM → OpenCV", read if channels == 1 else read[..., ::-1], expected, image.shape)
            back = folder / "back.tif"
            flip(out, back)
            check("PNM → gpuimg", tifffile.imread(back), image, image.shape)


read_by_gpuimg()
written_by_gpuimg()
for name, count in counts.items():
    print(f"{count:5} {name}")
