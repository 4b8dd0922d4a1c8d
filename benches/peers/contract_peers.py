#!/usr/bin/env python3
"""What gpuimg and six peers make of awkward images: the table of docs/CONTRACT.md, measured.

    cargo build --release && benches/peers/contract_peers.py

Writes one small image a case, has each program mirror it top to bottom (or normalize it) into a file
of the same format, reads that with tifffile or libpng, and says what became of it: `right`, what is
wrong (`values`, `8 bits`, `1 of 3 pages`, a tag that is lost or no longer true), or `refused` (status
other than 0 and no file left). Python packages go into a throw-away environment in the cache folder,
Debian packages are installed if the user is root; what is missing is left out.
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

CACHE = Path.home() / ".cache" / "gpuimg-contract"
PYTHON = CACHE / "bin" / "python"
PACKAGES = ["numpy", "tifffile", "imagecodecs", "opencv-python-headless", "pyvips[binary]", "Pillow"]
DEBIAN = {"convert-im6.q16": "imagemagick", "gm": "graphicsmagick", "pamflip": "netpbm"}

if not os.environ.get("GPUIMG_CONTRACT"):
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE], check=True)
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    missing = [package for program, package in DEBIAN.items() if not shutil.which(program)]
    if missing and os.geteuid() == 0:
        subprocess.run(["apt-get", "install", "-y", "-q", *missing], stdout=subprocess.DEVNULL)
    os.execve(PYTHON, [str(PYTHON), __file__, *sys.argv[1:]], {**os.environ, "GPUIMG_CONTRACT": "1"})

import imagecodecs
import numpy as np
import tifffile
from PIL import ImageCms

HERE = Path(__file__).resolve().parent
GPUIMG = os.environ.get("GPUIMG", str(HERE.parents[1] / "target/release/gpuimg"))
FOLDER = Path(tempfile.mkdtemp())
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
RNG = np.random.default_rng(3)

CV = "import sys, cv2; i = cv2.imread(sys.argv[1], cv2.IMREAD_UNCHANGED); {}; cv2.imwrite(sys.argv[2], i)"
VIPS = "import sys, pyvips; i = pyvips.Image.new_from_file(sys.argv[1]); {}; i.write_to_file(sys.argv[2])"
PIL = "import sys; from PIL import Image, ImageOps; i = Image.open(sys.argv[1]); i.load(); {}; i.save(sys.argv[2])"
# Mirrored, and normalized, as their users do it.
PROGRAMS = {
    "gpuimg": ([GPUIMG, "flip", "vertical"], [GPUIMG, "normalize"]),
    "ImageMagick": (["convert-im6.q16", "IN", "-flip", "OUT"], ["convert-im6.q16", "IN", "-auto-level", "OUT"]),
    "GraphicsMagick": (["gm", "convert", "IN", "-flip", "OUT"], ["gm", "convert", "IN", "-normalize", "OUT"]),
    "libvips": (
        [PYTHON, "-c", VIPS.format("i = i.flipver()")],
        [PYTHON, "-c", VIPS.format(
            "s = i.stats(); l, h = s(0, 0)[0], s(1, 0)[0]; i = ((i - l) * (65535 / (h - l))).rint().cast('ushort')")],
    ),
    "OpenCV": (
        [PYTHON, "-c", CV.format("i = cv2.flip(i, 0)")],
        [PYTHON, "-c", CV.format("i = cv2.normalize(i, None, 0, 65535, cv2.NORM_MINMAX, cv2.CV_16U)")],
    ),
    "Pillow": (
        [PYTHON, "-c", PIL.format("i = i.transpose(Image.Transpose.FLIP_TOP_BOTTOM)")],
        [PYTHON, "-c", PIL.format("i = ImageOps.autocontrast(i)")],
    ),
    "netpbm": ("pamflip -tb", "pnmnorm -bpercent=0 -wpercent=0"),
}


def words(*shape, top=65536):
    return RNG.integers(0, top, shape).astype(np.uint16)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(array, *chunks, bits=16, colour=None):
    height, width = array.shape[:2]
    channels = array.shape[2] if array.ndim == 3 else 1
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels] if colour is None else colour
    if bits == 16:
        rows = [b"\0" + row.astype(">u2").tobytes() for row in array]
    else:
        bit_rows = (np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, -bits:].ravel() for row in array)
        rows = [b"\0" + np.packbits(row).tobytes() for row in bit_rows]
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", head), *(chunk(*one) for one in chunks), chunk(b"IDAT", zlib.compress(b"".join(rows)))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


def tiff(array, **options):
    path = FOLDER / "made.tif"
    options.setdefault("metadata", None)
    tifffile.imwrite(path, array, **options)
    return path.read_bytes()


def patched(data, *changes):
    """The values of tags of the first page changed in place (or a tag named anew)."""
    path = FOLDER / "made.tif"
    path.write_bytes(data)
    with tifffile.TiffFile(path, mode="r+") as file:
        for tag, value in changes:
            file.pages[0].tags[tag].overwrite(value)
    return path.read_bytes()


def tag(number, expected):
    def check(file):
        found = tifffile.TiffFile(file).pages[0].tags.get(number)
        name = tifffile.TIFF.TAGS.get(number, number)
        if found is None:
            return f"{name} lost"
        return None if found.value == expected else f"{name} {getattr(found.value, 'name', found.value)}"
    return check


def png_chunk(kind, expected):
    def check(file):
        data = Path(file).read_bytes()
        at = data.find(kind)
        if at < 0:
            return f"{kind.decode()} lost"
        length = struct.unpack(">I", data[at - 4 : at])[0]
        return None if data[at + 4 : at + 4 + length] == expected else f"{kind.decode()} changed"
    return check


def icc(file):
    data = Path(file).read_bytes()
    at = data.find(b"iCCP")
    if at < 0:
        return "iCCP lost"
    stream = data[data.index(b"\0", at + 4) + 2 :]
    return None if zlib.decompressobj().decompress(stream) == ICC else "iCCP changed"


def maxval(expected):
    def check(file):
        found = Path(file).read_bytes().split(None, 4)[3]
        return None if found == expected else f"maxval {found.decode()}"
    return check


def description(file):
    told = tifffile.TiffFile(file).pages[0].description
    if "images=" not in told:
        return "ImageJ's description lost"


def twelve(array):
    bits = np.unpackbits(array.astype(">u2")[..., None].view(np.uint8), axis=-1).reshape(*array.shape, 16)[..., 4:]
    packed = np.packbits(bits.reshape(array.shape[0], -1), axis=1)
    raw = tiff(packed, photometric="minisblack")
    return patched(raw, (256, array.shape[1]), (258, 12))


def cases():
    grey, rgb, rgba, pages = words(20, 30), words(20, 30, 3), words(20, 30, 4), words(3, 20, 30)
    signed = grey.view(np.int16)
    flip = lambda array: [np.flip(array, 0)]
    profile = (b"iCCP", b"x\0\0" + zlib.compress(ICC))
    low = words(20, 30, top=4096)
    yield "flat image, normalized", "png", png(np.full((20, 30), 77, np.uint16)), [np.full((20, 30), 77, np.uint16)], None, 1
    opaque = rgba.copy() // 2
    colours = opaque[..., :3].astype(np.int64)
    least, most = colours.min(), colours.max()
    scaled = ((colours - least) * 65535 + (most - least) // 2) // (most - least)
    expected = np.concatenate([scaled.astype(np.uint16), opaque[..., 3:]], -1)
    yield "alpha, normalized", "png", png(opaque), [expected], None, 1
    yield "RGB + alpha", "png", png(rgba), flip(rgba), None, 0
    yield "grey + alpha", "png", png(words(20, 30, 2)), "same", None, 0
    yield "RGB", "png", png(rgb), flip(rgb), None, 0
    yield "associated alpha", "tif", tiff(rgba, photometric="rgb", extrasamples=["assocalpha"]), flip(rgba), tag(338, (1,)), 0
    bits = RNG.integers(0, 2, (20, 30))
    yield "1 bit", "png", png(bits, bits=1), flip((bits * 255).astype(np.uint8)), None, 0
    yield "12 bits: sBIT", "png", png(low << 4, (b"sBIT", b"\x0c")), flip(low << 4), png_chunk(b"sBIT", b"\x0c"), 0
    pgm = b"P5\n30 20\n4095\n" + low.astype(">u2").tobytes()
    yield "12 bits: PGM maxval", "pgm", pgm, flip(low), maxval(b"4095"), 0
    yield "12 bits packed", "tif", twelve(low), flip(low), None, 0
    yield "signed 16 bits", "tif", tiff(signed), flip(signed), None, 0
    yield "32-bit float", "tif", tiff(grey.astype(np.float32)), flip(grey.astype(np.float32)), None, 0
    yield "MinIsWhite", "tif", tiff(grey, photometric="miniswhite"), flip(grey), tag(262, 0), 0
    yield "separate planes", "tif", tiff(np.moveaxis(rgb, 2, 0), photometric="rgb", planarconfig="separate"), flip(rgb), None, 0
    yield "tiles, big-endian", "tif", tiff(grey, tile=(16, 16), byteorder=">"), flip(grey), None, 0
    yield "BigTIFF", "tif", tiff(grey, bigtiff=True), flip(grey), None, 0
    yield "ICC profile", "png", png(rgb, profile), flip(rgb), icc, 0
    yield "text", "png", png(grey, (b"tEXt", b"Author\0me")), flip(grey), png_chunk(b"tEXt", b"Author\0me"), 0
    yield "orientation 6", "tif", tiff(grey, extratags=[(274, "H", 1, 6, True)]), flip(grey), tag(274, 8), 0
    three = [np.flip(page, 0) for page in pages]
    yield "3 pages", "tif", tiff(pages, photometric="minisblack"), three, None, 0
    mixed = FOLDER / "mixed.tif"
    with tifffile.TiffWriter(mixed) as writer:
        for page in (grey, words(7, 9)):
            writer.write(page, metadata=None)
    yield "pages of two sizes", "tif", mixed.read_bytes(), "same", None, 0
    imagej = tiff(pages, imagej=True, metadata={"axes": "ZYX"})
    yield "ImageJ stack", "tif", imagej, three, description, 0
    cmyk = tiff(rgba, photometric="separated")
    yield "CMYK", "tif", cmyk, flip(rgba), tag(262, 5), 0
    yield "1×1", "png", png(words(1, 1)), "same", None, 0
    yield "65500×3", "png", png(words(3, 65500)), "same", None, 0
    yield "empty file", "png", b"", None, None, 0
    whole = png(words(200, 300))
    yield "truncated PNG", "png", whole[: len(whole) // 2], None, None, 0
    whole = tiff(words(200, 300), compression="zlib", rowsperstrip=20)
    with tifffile.TiffFile(FOLDER / "made.tif") as file:
        at, count = file.pages[0].dataoffsets[4], file.pages[0].databytecounts[4]
    yield "damaged TIFF strip", "tif", whole[:at] + b"\xff" * count + whole[at + count :], None, None, 0


def read(path):
    if path.suffix == ".png":
        return [imagecodecs.png_decode(path.read_bytes())]
    if path.suffix == ".pgm":
        _, width, height, most, data = path.read_bytes().split(None, 4)
        return [np.frombuffer(data, ">u2" if int(most) > 255 else "u1").reshape(int(height), int(width)).astype("u2")]
    with tifffile.TiffFile(path) as file:
        arrays = [page.asarray() for page in file.pages]
        return [np.moveaxis(a, 0, 2) if p.planarconfig == 2 and a.ndim == 3 else a for a, p in zip(arrays, file.pages)]


def judge(command, extension, data, expected, check):
    source, target = FOLDER / f"in.{extension}", FOLDER / f"out.{extension}"
    source.write_bytes(data)
    if expected == "same":
        expected = [np.flip(page, 0) for page in read(source)]
    for old in FOLDER.glob("out*"):
        old.unlink()
    if isinstance(command, str):
        alpha = "-alphapam" if extension == "png" and data[25:26] in (b"\4", b"\6") else ""
        into = {"png": f"pngtopam {alpha}", "tif": "tifftopnm", "pgm": "cat"}[extension]
        out = {"png": "pamtopng", "tif": "pamtotiff -truecolor", "pgm": "cat"}[extension]
        line = f"set -o pipefail; {into} < {source} | {command} | {out} > {target}"
        command = ["bash", "-c", line]
    elif "IN" in command:
        command = [{"IN": source, "OUT": target}.get(part, part) for part in command]
    else:
        command = [*command, source, target]
    done = subprocess.run(command, capture_output=True, timeout=60)
    left = [file for file in FOLDER.glob("out*") if file.stat().st_size]
    if done.returncode:
        return "refused, a file left" if left else "refused"
    if not left:
        return "status 0, no file"
    if expected is None:
        return "accepted"
    if len(left) > 1:
        return f"{len(left)} files"
    try:
        pages = read(left[0])
    except Exception as error:
        return f"unreadable ({type(error).__name__})"
    if len(pages) != len(expected):
        return f"{len(pages)} of {len(expected)} pages"
    for page, right in zip(pages, expected):
        if page.dtype != right.dtype:
            return {1: "8 bits", 2: str(page.dtype)}.get(page.dtype.itemsize, str(page.dtype))
        if page.reshape(-1).shape != right.reshape(-1).shape:
            return f"shape {page.shape}"
        if not np.array_equal(page.reshape(-1), right.reshape(-1)):
            return "values"
    return (check and check(left[0])) or "right"


there = {name: commands for name, commands in PROGRAMS.items()
         if not (isinstance(commands[0], list) and not shutil.which(str(commands[0][0]))
                 or isinstance(commands[0], str) and not shutil.which("pamflip"))}
print("| case | " + " | ".join(there) + " |")
print("|---|" + "---|" * len(there))
good = {name: 0 for name in there}
for case, extension, data, expected, check, which in cases():
    row = []
    for name, commands in there.items():
        try:
            verdict = judge(commands[which], extension, data, expected, check)
        except subprocess.TimeoutExpired:
            verdict = "hangs"
        good[name] += verdict == "right" or verdict == "refused" and expected is None
        row.append(verdict)
    print(f"| {case} ({extension}) | " + " | ".join(row) + " |", flush=True)
print("| **right, or refused where nothing else is right** | " + " | ".join(str(count) for count in good.values()) + " |")
