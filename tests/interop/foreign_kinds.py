"""TIFF kinds that go wrong elsewhere, written by tifffile and read back by it, against NumPy.

Needs numpy, tifffile and imagecodecs. Usage: python tests/interop/foreign_kinds.py path/to/gpuimg
0. TIFFs of 1 to 16 bits, in both byte orders, in strips and tiles, interleaved and in planes, in every
   compression, from grey to RGB with alpha, and turned and white-is-zero ones, put together here and
   read by tifffile as a check: transposed, normalized, brought upright and made 8 bits.
1. Every combination of byte order, BigTIFF, compression, predictor, strips or tiles, planes,
   pages, sign and depth: transposed and normalized, samples, sign, pages and byte order compared.
2. ImageJ stacks and hyperstacks, OME-TIFF, tifffile's own shapes: axes and shape of the series
   before and after; and the listings of all tags that changed.
"""
import itertools
import pathlib
import struct
import subprocess
import sys
import tempfile

import imagecodecs
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


COMPRESSIONS = {
    None: (1, bytes),
    "lzw": (5, imagecodecs.lzw_encode),
    "zlib": (8, imagecodecs.zlib_encode),
    "packbits": (32773, imagecodecs.packbits_encode),
    "zstd": (50000, imagecodecs.zstd_encode),
}


def write(path, pages, bits, order, tile, planar, compression, orientation=1, white_is_zero=False):
    """Pages of height, width, channels as a classic TIFF, every sample of so many bits."""
    code, pack = COMPRESSIONS[compression]
    file = bytearray(struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 0))
    link = 4

    def packed(part):
        rows = part.reshape(len(part), -1)
        if bits in (8, 16):
            return rows.astype(f"{order}u{bits // 8}").tobytes()
        return np.packbits((rows[..., None] >> np.arange(bits - 1, -1, -1) & 1).reshape(len(part), -1), 1).tobytes()

    for image in pages:
        height, width, channels = image.shape
        chunks = []
        for plane in np.moveaxis(image, -1, 0)[..., None] if planar else [image]:
            if tile:
                full = np.pad(plane, ((0, -height % tile[0]), (0, -width % tile[1]), (0, 0)))
                for y, x in itertools.product(range(0, height, tile[0]), range(0, width, tile[1])):
                    chunks.append(pack(packed(full[y : y + tile[0], x : x + tile[1]])))
            else:
                chunks += [pack(packed(plane[y : y + 10])) for y in range(0, height, 10)]
        offsets = []
        for chunk in chunks:
            offsets.append(len(file))
            file += chunk
        file += bytes(len(file) % 2)
        sizes = [len(chunk) for chunk in chunks]
        tags = {
            256: ("H", [width]), 257: ("H", [height]), 258: ("H", [bits] * channels), 259: ("H", [code]),
            262: ("H", [2 if channels > 2 else 0 if white_is_zero else 1]), 274: ("H", [orientation]),
            277: ("H", [channels]), 284: ("H", [2 if planar else 1]),
        }
        if channels % 2 == 0:
            tags[338] = ("H", [2])
        if tile:
            tags |= {322: ("H", [tile[1]]), 323: ("H", [tile[0]]), 324: ("I", offsets), 325: ("I", sizes)}
        else:
            tags |= {273: ("I", offsets), 278: ("H", [10]), 279: ("I", sizes)}
        struct.pack_into(order + "I", file, link, len(file))
        behind = len(file) + 2 + 12 * len(tags) + 4
        directory, values = struct.pack(order + "H", len(tags)), b""
        for tag, (kind, numbers) in sorted(tags.items()):
            data = struct.pack(f"{order}{len(numbers)}{kind}", *numbers)
            directory += struct.pack(order + "HHI", tag, 3 if kind == "H" else 4, len(numbers))
            directory += data.ljust(4, b"\0") if len(data) <= 4 else struct.pack(order + "I", behind + len(values))
            values += data if len(data) > 4 else b""
        file += directory + bytes(4) + values
        link = len(file) - len(values) - 4
    path.write_bytes(file)


def whole(file):
    """All pages of a file, with channels last."""
    pages = []
    for page in file.pages:
        image = page.asarray()
        if page.samplesperpixel > 1 and page.planarconfig == 2:
            image = np.moveaxis(image, 0, -1)
        pages.append(image.reshape(page.imagelength, page.imagewidth, page.samplesperpixel))
    return np.stack(pages)


def scaled(values, most, full):
    """floor(v·full/most + 1/2)"""
    return (values.astype(np.int64) * full + most // 2) // most


def packed_kinds():
    """Every depth through four commands, a folder of files at a time; counts every output."""
    rng = np.random.default_rng(9)
    shown = {  # the image as shown, of one that is stored with an orientation
        1: lambda a: a, 2: lambda a: a[:, :, ::-1], 3: lambda a: a[:, ::-1, ::-1], 4: lambda a: a[:, ::-1],
        5: lambda a: a.swapaxes(1, 2), 6: lambda a: np.rot90(a, -1, (1, 2)),
        7: lambda a: a[:, ::-1, ::-1].swapaxes(1, 2), 8: lambda a: np.rot90(a, 1, (1, 2)),
    }
    files = {}
    inputs = folder / "packed"
    inputs.mkdir()
    for bits, order, tile, channels, planar, compression in itertools.product(
        range(1, 17), "<>", (None, (16, 32)), (1, 2, 3, 4), (False, True), COMPRESSIONS
    ):
        if planar and channels == 1:
            continue
        pages, orientation = int(rng.integers(1, 4)), int(rng.integers(1, 9))
        white = channels == 1 and bool(rng.integers(2))
        most = (1 << bits) - 1
        image = rng.integers(0, most + 1, (pages, 37, 53, channels)).astype(np.uint16)
        if bits > 3:
            image[..., : channels - (channels % 2 == 0)] //= 2  # something to stretch
        name = f"{len(files)}.tif"
        write(inputs / name, image, bits, order, tile, planar, compression, orientation, white)
        with tifffile.TiffFile(inputs / name) as file:
            there = whole(file)
        if bits == 1:
            there = there.astype(np.uint16)
        what = (bits, order, tile, channels, planar, compression, pages, orientation, white)
        check("files put together here, by tifffile", np.array_equal(there, image), what)
        files[name] = (image, bits, channels, orientation, order, what)
    for verb, pages in (
        (("transpose",), None), (("normalize",), None), (("flip", "vertical", "--depth", "8"), None),
        (("flip", "vertical", "--depth", "16"), None), (("flip", "horizontal", "--auto-orient"), None),
        (("normalize", "--auto-orient", "--depth", "8"), None), (("rotate", "90", "--pages", "1"), 1),
    ):
        outputs = folder / "-".join(("out", *verb))
        outputs.mkdir()
        done = subprocess.run([gpuimg, *verb, "--device", "cpu", inputs, outputs], capture_output=True, text=True)
        assert done.returncode == 0, (verb, done.stderr)
        for name, (image, bits, channels, orientation, order, what) in files.items():
            most = (1 << bits) - 1
            full = 255 if bits <= 8 else 65535
            colours = channels - (channels % 2 == 0)
            expected = image[:pages].astype(np.int64)
            if bits < 8:
                expected, most = scaled(expected, most, 255), 255
            if "--auto-orient" in verb:
                expected = shown[orientation](expected)
            if verb[0] == "normalize":
                full = 255 if "8" in verb else full
                low, high = int(expected[..., :colours].min()), int(expected[..., :colours].max())
                stretched = scaled(expected[..., :colours] - low, high - low, full)
                expected = np.concatenate([stretched, scaled(expected[..., colours:], most, full)], -1)
            elif "--depth" in verb:
                # 9 to 15 bits have samples of 16 already, and keep their values there.
                full = (1 << int(verb[-1])) - 1
                expected = expected if full == 65535 and bits > 8 else scaled(expected, most, full)
            if verb[0] == "transpose":
                expected = expected.swapaxes(1, 2)
            elif verb[0] == "rotate":
                expected = np.rot90(expected, -1, (1, 2))
            elif verb[0] == "flip":
                expected = expected[:, ::-1] if verb[1] == "vertical" else expected[:, :, ::-1]
            with tifffile.TiffFile(outputs / name) as file:
                read = whole(file)
                check("byte order", file.byteorder == order, (verb, what))
            same = read.dtype.itemsize == (1 if full == 255 else 2) and np.array_equal(read, expected)
            check("1 to 16 bits: " + " ".join(verb), same, (verb, what))


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


packed_kinds()
kinds()
stacks()
print()
for name, count in counts.items():
    print(f"{count:5} {name}")
