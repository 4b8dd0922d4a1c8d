#!/usr/bin/env python3
"""Metadata listed before and after by exiftool and tifffile: what is kept, swapped, corrected or left out.

    cargo build --release && tests/interop/metadata_listings.py [path/to/gpuimg]

Builds PNGs and TIFFs that tell of themselves whatever they can, normalizes each and rotates it by 90
degrees into the same format, and says of every field what became of it. What is not `kept` must be
what EXPECTED says, with a sentence of the program's own about what is left out; stacks must open in
tifffile with the right axes and samples, and GeoTIFF's places must be the same places. Exit status 1
if not. Python packages go into a throw-away environment in the cache folder, and exiftool is
installed if the user is root.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib
from pathlib import Path

CACHE = Path.home() / ".cache" / "gpuimg-metadata"
PYTHON = CACHE / "bin" / "python"
PACKAGES = ["numpy", "tifffile", "Pillow"]

if not os.environ.get("GPUIMG_METADATA"):
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", CACHE], check=True)
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    if not shutil.which("exiftool") and os.geteuid() == 0:
        subprocess.run(["apt-get", "install", "-y", "-q", "libimage-exiftool-perl"], stdout=subprocess.DEVNULL)
    os.execve(PYTHON, [str(PYTHON), __file__, *sys.argv[1:]], {**os.environ, "GPUIMG_METADATA": "1"})

import numpy as np
import tifffile
from PIL import Image, ImageCms

HERE = Path(__file__).resolve().parent
GPUIMG = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "target/release/gpuimg").resolve()
FOLDER = Path(tempfile.mkdtemp())
ICC = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
RNG = np.random.default_rng(5)
VERBS = {"normalize": ["normalize"], "rotate 90": ["rotate", "90"]}

# Fields that say how the file is laid out, or what exiftool makes of others.
LAYOUT = ("SourceFile", "ExifTool:", "System:", "File:", "Composite:", "ICC_Profile:", "ICC-header:", "ICC-")
OFFSETS = ("StripOffsets", "StripByteCounts", "RowsPerStrip", "Interlace", "Filter", "Compression", "ThumbnailOffset",
           "IJMetadataByteCounts", "IJMetadata", "Exif_0xc696", "Exif_0xc697",
           "PlanarConfiguration", "SampleFormat")  # told or not, where they are what goes without saying
# What trades places on a quarter turn.
PAIRS = {}
for pair in (("ImageWidth", "ImageHeight"), ("XResolution", "YResolution"), ("PixelsPerUnitX", "PixelsPerUnitY"),
             ("ExifImageWidth", "ExifImageHeight"), ("SizeX", "SizeY"), ("PhysicalSizeX", "PhysicalSizeY")):
    PAIRS.update({pair[0]: pair[1], pair[1]: pair[0]})

# What does not stay as it is: by verb, by the field's name without its group. A sentence of the program
# must tell of what is left out; `None` says that none has to, since another field says it anew.
TURNED = {name: ("swapped", None) for name in PAIRS}
EXPECTED = {
    "normalize": {
        "SignificantBits": ("left out", None),  # the samples have all bits now
        "OME:OME/Image/Pixels/SignificantBits": ("corrected", None),
        "BackgroundColor": ("left out", "bKGD"),
        "ModifyDate (tIME)": ("left out", "tIME"),
        "chunk prVA": ("left out", "prVA"),
        "min": ("corrected", None),
        "max": ("corrected", None),
        "Ranges": ("left out", "ImageJ's display ranges"),
    },
    "rotate 90": {
        **TURNED,
        "ImageOffset": ("left out", "oFFs"),
        "ModifyDate (tIME)": ("left out", "tIME"),
        "chunk prVA": ("left out", "prVA"),
        "PixelScale": ("left out", None),
        "ModelTiePoint": ("left out", None),
        "ModelTransform": ("new", None),
    },
}


def words(*shape, top=65536):
    return RNG.integers(0, top, shape).astype(np.uint16)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(path, *chunks):
    image = words(20, 30, 3)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in image)
    head = struct.pack(">IIBBBBB", 30, 20, 16, 2, 0, 0, 0)
    parts = [(b"IHDR", head), *chunks, (b"IDAT", zlib.compress(rows)), (b"tEXt", b"Comment\0behind"), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts))
    return image


def exif():
    told = Image.Exif()
    told[271], told[272], told[274] = "ACM", "Nine", 6
    told.get_ifd(0x8769).update({40962: 30, 40963: 20, 33434: 0.01})
    return told.tobytes().removeprefix(b"Exif\0\0")


def rich_png(path):
    chromaticities = struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
    return png(
        path,
        (b"gAMA", struct.pack(">I", 45455)), (b"cHRM", chromaticities),
        (b"iCCP", b"profile\0\0" + zlib.compress(ICC)), (b"sBIT", bytes([12, 12, 12])),
        (b"bKGD", struct.pack(">3H", 1, 2, 3)), (b"pHYs", struct.pack(">IIB", 2000, 4000, 1)),
        (b"oFFs", struct.pack(">iiB", 5, 6, 0)), (b"tIME", struct.pack(">H5B", 2026, 1, 2, 3, 4, 5)),
        (b"tEXt", b"Description\0a rich file"), (b"zTXt", b"Copyright\0\0" + zlib.compress(b"\xa9 me")),
        (b"iTXt", "Author\0\0\0\0\0Zoë".encode()), (b"eXIf", exif()),
        (b"prVa", b"safe to copy"), (b"prVA", b"not safe to copy"),
    )


def other_png(path):
    return png(path, (b"cICP", bytes([9, 16, 0, 1])), (b"sRGB", b"\1"), (b"tEXt", b"Title\0the other colours"))


def rich_tiff(path):
    image = words(20, 30, 3)
    tifffile.imwrite(
        path, image, photometric="rgb", description="what it shows", software="a camera", datetime="2026:11:22 00:00:00",
        iccprofile=ICC, resolution=(400, 200), resolutionunit="CENTIMETER", metadata=None,
        extratags=[(315, "s", 0, "Zoe", True), (33432, "s", 0, "(c) me", True), (269, "s", 0, "its title", True),
                   (271, "s", 0, "ACM", True), (272, "s", 0, "Nine", True), (274, "H", 1, 6, True),
                   (316, "s", 0, "a host", True), (65000, "s", 0, "private", True)],
    )
    return image


SCALE, TIE = (2.5, 1.5, 0.0), (0.0, 0.0, 0.0, 440000.0, 5200000.0, 0.0)


def geotiff(path):
    image = words(20, 30)
    keys = (1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 32632)  # projected, in UTM zone 32N
    tifffile.imwrite(path, image, metadata=None, extratags=[
        (33550, "d", 3, SCALE, True), (33922, "d", 6, TIE, True), (34735, "H", len(keys), keys, True)])
    return image


def imagej(path):
    image = words(2, 3, 4, 20, 30, top=4000)
    tifffile.imwrite(path, image, imagej=True, resolution=(400, 200), metadata={
        "axes": "TZCYX", "unit": "um", "spacing": 0.5, "finterval": 2.0, "min": 100.0, "max": 3000.0,
        "Labels": [f"plane {i}" for i in range(24)], "Ranges": (100.0, 3000.0) * 4, "Info": "what it shows"})
    return image


def ome(path):
    image = words(2, 3, 20, 30, top=4000)
    tifffile.imwrite(path, image, ome=True, resolution=(400, 200), resolutionunit="CENTIMETER", metadata={
        "axes": "CZYX", "PhysicalSizeX": 0.1, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 0.2,
        "PhysicalSizeYUnit": "µm", "PhysicalSizeZ": 0.7, "PhysicalSizeZUnit": "µm", "SignificantBits": 12,
        "Channel": {"Name": ["DAPI", "GFP"]}, "Description": "what it shows"})
    return image


CASES = {"PNG": ("png", rich_png), "PNG of cICP, sRGB": ("png", other_png), "TIFF": ("tif", rich_tiff),
         "GeoTIFF": ("tif", geotiff), "ImageJ hyperstack": ("tif", imagej), "OME-TIFF": ("tif", ome)}


def chunks(path):
    data, at = path.read_bytes(), 8
    while at < len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        yield data[at + 4 : at + 8].decode(), data[at + 8 : at + 8 + length]
        at += 12 + length


def flattened(node, path=""):
    """The attributes and texts of an XML tree, each by its place; but for the places of planes in the file."""
    name = node.tag.split("}")[-1]
    for key, value in node.attrib.items():
        if not (name == "TiffData" or key.endswith("schemaLocation")):
            yield f"{path}{name}/{key}", value
    if (node.text or "").strip():
        yield f"{path}{name}", node.text
    counts = {}
    for child in node:
        counts[child.tag] = counts.get(child.tag, -1) + 1
        yield from flattened(child, f"{path}{name}[{counts[child.tag]}]/" if counts[child.tag] else f"{path}{name}/")


def listing(path):
    """Every field, by its name; those of exiftool's, and what it does not list."""
    said = subprocess.run(["exiftool", "-j", "-G1", "-a", "-s", "-n", "-u", path], capture_output=True, text=True)
    fields = {}
    for name, value in json.loads(said.stdout)[0].items():
        group, _, field = name.rpartition(":")
        if name.startswith(LAYOUT) or field in OFFSETS or field == "ImageDescription" and path.suffix == ".tif" and "<OME" in str(value):
            continue
        # ImageJ's description is listed line by line below.
        if field == "ImageDescription" and str(value).startswith("ImageJ="):
            continue
        # Of each directory; one value where all have the same.
        group = group.rstrip("0123456789") if group.startswith("IFD") else group
        fields.setdefault(f"{group}:{field}", []).append(value)
    fields = {name: values[0] if len({str(v) for v in values}) == 1 else tuple(values) for name, values in fields.items()}
    icc = subprocess.run(["exiftool", "-icc_profile", "-b", path], capture_output=True).stdout
    if icc:
        fields["ICC profile"] = f"{len(icc)} bytes, CRC {zlib.crc32(icc):08x}"
    if path.suffix == ".png":
        for kind, data in chunks(path):
            if kind[:3] == "prV":
                fields[f"chunk {kind}"] = data
            if kind == "tIME":
                fields["ModifyDate (tIME)"] = data
        fields.pop("PNG:ModifyDate", None)
    else:
        with tifffile.TiffFile(path) as file:
            for name, value in (file.imagej_metadata or {}).items():
                fields[f"ImageJ:{name}"] = value
            if file.ome_metadata:
                fields.update({f"OME:{k}": v for k, v in flattened(xml.etree.ElementTree.fromstring(file.ome_metadata))})
    return fields


def verdict(name, before, after):
    group, _, field = name.replace("/", ":").rpartition(":")
    partner = name[: len(name) - len(field)] + PAIRS[field] if field in PAIRS else None
    if name not in before:
        return "new"
    if name not in after:
        return "left out"
    if partner and after[name] == before.get(partner) != before[name]:
        return "swapped"
    if partner and before[name] == before.get(partner) == after[name]:
        return "either"  # both were the same
    return "kept" if after[name] == before[name] else "corrected"


def right(image, output, verb, suffix):
    """Whether the output has the right samples, and in tifffile the right axes."""
    if suffix == "png":
        return None
    with tifffile.TiffFile(FOLDER / "in.tif") as file:
        axes = file.series[0].axes
    y = axes.index("Y")
    if verb == "normalize":
        least, most = int(image.min()), int(image.max())
        expected = ((image.astype(np.int64) - least) * 65535 + (most - least) // 2) // (most - least)
    else:
        expected = np.rot90(image, -1, (y, y + 1))
    with tifffile.TiffFile(output) as file:
        series = file.series[0]
        if len(file.series) != 1 or series.axes != axes or series.shape != expected.shape:
            return f"axes {series.axes} {series.shape}"
        return None if np.array_equal(series.asarray(), expected) else "other samples"


def same_place(output):
    """Whether corners of pixels lie where they lay: the turned image's column is height − row, its row the column."""
    with tifffile.TiffFile(output) as file:
        tags = file.pages[0].tags
        if 34264 not in tags:
            return None if tuple(tags[33550].value) == SCALE and tuple(tags[33922].value) == TIE else "another place"
        matrix = np.array(tags[34264].value).reshape(4, 4)
    for column, row in ((0, 0), (30, 0), (0, 20), (7, 3)):
        place = (TIE[3] + SCALE[0] * column, TIE[4] - SCALE[1] * row)
        if not np.allclose((matrix @ [20 - row, column, 0, 1])[:2], place, rtol=0, atol=1e-6):
            return "another place"


if not shutil.which("exiftool"):
    sys.exit("exiftool is not there (Debian has it in libimage-exiftool-perl)")
wrong, table, sentences = [], [], []
for case, (suffix, build) in CASES.items():
    source, output = FOLDER / f"in.{suffix}", FOLDER / f"out.{suffix}"
    image = build(source)
    before, found = listing(source), {}
    for verb, words_of in VERBS.items():
        done = subprocess.run([GPUIMG, *words_of, "-v", "--device", "cpu", "--overwrite", source, output], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{case}, {verb}: {done.stderr}")
        said = [line.split(": ", 2)[-1] for line in done.stderr.splitlines() if "in." in line and "CPU" not in line]
        sentences += [f"{case}, {verb}: {line}" for line in said]
        after = listing(output)
        for name in before | after:
            became = verdict(name, before, after)
            found.setdefault(name, {})[verb] = (became, after.get(name))
            bare = name.replace("/", ":").rpartition(":")[2]
            expected, sentence = EXPECTED[verb].get(name) or EXPECTED[verb].get(bare, ("kept", None))
            if became not in (expected, "either"):
                wrong.append(f"{case}, {verb}: {name} is {became}, not {expected}: {before.get(name)!s:.60} → {after.get(name)!s:.60}")
            if sentence and became == "left out" and not any(sentence in line for line in said):
                wrong.append(f"{case}, {verb}: nothing is said of {name}")
        checks = [right(image, output, verb, suffix), same_place(output) if case == "GeoTIFF" else None]
        wrong += [f"{case}, {verb}: {check}" for check in checks if check]
    fields = [(name, *(became.get(verb, ("–",))[0] for verb in VERBS)) for name, became in found.items()]
    kept = sum(set(verdicts) <= {"kept", "either"} for _, *verdicts in fields)
    table.append((case, f"{kept} of {len(fields)} fields", "kept", "kept"))
    alike = {}
    for name, *verdicts in fields:
        if not set(verdicts) <= {"kept", "either"}:
            cells = [f"{v} ({found[name][verb][1]!s:.24})" if v == "corrected" else v for v, verb in zip(verdicts, VERBS)]
            bare = name.replace("/", ":").rpartition(":")[2]
            alike.setdefault(tuple(cells), []).append(f"OME's {bare}" if name.startswith("OME") else bare)
    table += [(case, ", ".join(names), *cells) for cells, names in alike.items()]

print("| file | field | " + " | ".join(VERBS) + " |\n|---|---|" + "---|" * len(VERBS))
last = None
for case, *cells in table:
    print(f"| {'' if case == last else case} | " + " | ".join(cells) + " |")
    last = case
print("\nWhat the program said:")
print("\n".join(sentences))
if wrong:
    print("\nNot as it should be:\n" + "\n".join(wrong))
sys.exit(bool(wrong))
