"""Small files of many formats, each dimension beside every other, against the programs that know them.

Needs the packages of requirements.txt. Usage:
    python tests/interop/sweep.py path/to/gpuimg [GROUP…]
Each group writes a folder of files, with another program or here where none writes them, has gpuimg flip them in one run, and
compares every page with NumPy's flip of what the other program reads or of what was written. A wrong result was most often
found beside a case that was tested: so the dimensions of a format are combined, all of them or a seeded choice. A file that is
refused is a difference, too. All differences are printed.
"""
import itertools
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import cv2
import imagecodecs
import numpy as np
import PIL.Image
import PIL.ImageOps
import pydicom
import SimpleITK
import tifffile
from astropy.io import fits

rng = np.random.default_rng(33)
GROUPS = {}


def group(function):
    GROUPS[function.__name__] = function
    return function


class Files:
    """A folder of files, and what another program reads from each."""

    def __init__(self, folder):
        self.inputs, self.outputs = folder / "in", folder / "out"
        self.inputs.mkdir(parents=True)
        self.expected = {}
        self.options = []

    def path(self, what, extension):
        """Where to write the next file; `what` describes it."""
        path = self.inputs / f"{len(self.expected):04}.{extension}"
        self.expected[path.stem] = [path.name, what, None, 0]
        return path

    def add(self, path, pages, within=0):
        """States the pages of a file: arrays, (height, width) or (height, width, channels)."""
        self.expected[path.stem][2:] = [[np.asarray(page) for page in pages], within]

    def compare(self, gpuimg):
        """Sentences about the files that come out otherwise."""
        command = [gpuimg, "flip", "vertical", self.inputs, self.outputs, "--format", "tiff", "--device", "cpu", *self.options]
        done = subprocess.run(command, capture_output=True, text=True)
        for name, what, expected, within in self.expected.values():
            output = self.outputs / name.replace(name.split(".")[-1], "tif")
            reason = next((line for line in done.stderr.splitlines() if f"{name}:" in line or f"{name}," in line), done.stderr)
            if not output.exists():
                yield f"{what}: refused: {reason}"
            else:
                with tifffile.TiffFile(output) as file:
                    pages = [page.asarray() for page in file.pages]
                if apart := difference(pages, [page[::-1] for page in expected], within):
                    yield f"{what}: {apart}"


def difference(found, expected, within):
    if len(found) != len(expected):
        return f"{len(found)} pages, not {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected)):
        a, b = (page[..., 0] if page.ndim == 3 and page.shape[2] == 1 else page for page in (a, b))
        b = b.astype(b.dtype.newbyteorder("="))
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"page {i + 1}: {a.dtype} {a.shape}, not {b.dtype} {b.shape}"
        if within == 0:
            if a.tobytes() != b.tobytes():
                bad = np.argwhere(a != b)
                first = tuple(bad[0]) if len(bad) else "a NaN"
                return f"page {i + 1}: {len(bad)} samples differ, the first at {first}: {a[first] if len(bad) else ''}, not {b[first] if len(bad) else ''}"
        elif (most := np.abs(a.astype(float) - b.astype(float)).max()) > within:
            return f"page {i + 1}: samples differ by {most}, more than {within}"
    return None


def picture(shape, dtype):
    """Every value of integers; of floating point any bits that are a number."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (rng.normal(0, 1, shape) * 10.0 ** rng.integers(-4, 5, shape)).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def smooth(height, width, channels):
    """What a lossy format holds nearly."""
    ramp = np.add.outer(2 * np.arange(height), 3 * np.arange(width))[..., None] + 40 * np.arange(channels)
    image = np.clip(ramp, 0, 255).astype(np.uint8)
    return image[..., 0] if channels == 1 else image


def some(count, *dimensions):
    """So many of all combinations."""
    everything = list(itertools.product(*dimensions))
    chosen = rng.permutation(len(everything))[:count]
    return [everything[i] for i in sorted(chosen)]


@group
def tiff(files):
    """Byte order × BigTIFF × type × channels × planes × compression × predictor × tiles × white."""
    types = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8", "b1")
    for order, big, dtype, channels, planar, compression, predictor, tile, white, pages in some(
        900, "<>", (False, True), types, (1, 2, 3, 4), (False, True),
        (None, "lzw", "zlib", "zstd", "packbits"), (None, 2, 3), (None, (16, 32)), (False, True), (1, 3),
    ):
        kind = np.dtype(dtype).kind
        if predictor and not compression or predictor == 3 and kind != "f" or predictor and dtype == "b1" or white and channels > 2:
            continue
        # Differences of floating point as integers are not what others agree on.
        if predictor == 2 and kind == "f":
            continue
        planar = planar and channels > 1
        if dtype == "b1" and channels > 1:
            continue
        image = picture((pages, 37, 53, channels), dtype)
        stored = np.moveaxis(image, -1, 1) if planar else image
        what = ("TIFF", order, big, dtype, channels, planar, compression, predictor, tile, white, pages)
        path = files.path(what, "tif")
        tifffile.imwrite(
            path, stored.squeeze(-1) if channels == 1 else stored, byteorder=order, bigtiff=big, compression=compression,
            predictor=predictor, tile=tile, photometric="rgb" if channels > 2 else "miniswhite" if white else "minisblack",
            planarconfig=("separate" if planar else "contig") if channels > 1 else None,
            extrasamples=["unassalpha"] if channels in (2, 4) else None, rowsperstrip=None if tile else 10, metadata=None,
        )
        expected = image.astype("f4") if dtype == "f2" else image.astype("u1") * 255 if dtype == "b1" else image
        files.add(path, expected)


@group
def tiff_extra(files):
    """Samples beside the colours: of no more than a pixel holds, and of more."""
    for order, dtype, photometric, extra, planar, (compression, predictor), tile in some(
        400, "<>", ("u1", "u2", "u4", "f4", "f8"), ("minisblack", "rgb", "separated"), range(0, 4), (False, True),
        ((None, None), ("zlib", None), ("lzw", 2)), (None, (16, 32))
    ):
        if predictor and dtype[0] == "f":
            predictor = 3
        colours = {"minisblack": 1, "rgb": 3, "separated": 4}[photometric]
        channels = colours + extra
        planar = planar and channels > 1
        image = picture((37, 53, channels), dtype)
        path = files.path(("TIFF", order, dtype, photometric, extra, planar, compression, predictor, tile), "tif")
        tifffile.imwrite(
            path, (np.moveaxis(image, -1, 0) if planar else image).squeeze(), byteorder=order, compression=compression, predictor=predictor, tile=tile,
            photometric=photometric, planarconfig=("separate" if planar else "contig") if channels > 1 else None,
            extrasamples=["unspecified"] * extra or None, metadata=None, rowsperstrip=None if tile else 10,
        )
        one_page = channels == colours or channels <= 4 and extra == 1
        files.add(path, [image] if one_page else np.moveaxis(image, -1, 0))


@group
def tiff_coded(files):
    """JPEG in strips and tiles, interleaved and in planes; YCbCr of any compression."""
    for channels, planar, tile, colours, subsampling in itertools.product(
        (1, 3), (False, True), (None, (16, 32)), ("rgb", "ycbcr"), ((1, 1), (2, 1), (2, 2))
    ):
        if channels == 1 and (planar or colours == "ycbcr") or colours == "rgb" and subsampling != (1, 1) or planar and subsampling != (1, 1):
            continue
        image = smooth(48, 64, channels)
        path = files.path(("JPEG in TIFF", channels, planar, tile, colours, subsampling), "tif")
        tifffile.imwrite(
            path, np.moveaxis(image, -1, 0) if planar else image, compression="jpeg", compressionargs={"level": 95}, tile=tile,
            photometric=colours if channels == 3 else "minisblack", planarconfig=("separate" if planar else "contig") if channels > 1 else None,
            subsampling=subsampling if colours == "ycbcr" else None, rowsperstrip=None if tile else 16, metadata=None,
        )
        # Another program's colours: tifffile stores what it is given as luma and chroma.
        found = as_libtiff(path) if planar and colours == "ycbcr" else tifffile.imread(path)
        files.add(path, [np.moveaxis(found, 0, -1) if found.shape[0] == 3 else found], 3 if subsampling == (1, 1) else 8)


def tiff_file(order, tags, chunks, offsets=273, counts=279, after=b""):
    """A classic TIFF: tags are {tag: (type letter, numbers)}; `after` are bytes that follow the chunks and that no tag lists."""
    file = bytearray(struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 0))
    places = []
    for chunk in chunks:
        places.append(len(file))
        file += chunk + bytes(len(chunk) % 2)
    file += after + bytes(len(after) % 2)
    tags = tags | {offsets: ("I", places), counts: ("I", [len(chunk) for chunk in chunks])}
    struct.pack_into(order + "I", file, 4, len(file))
    end = len(file) + 2 + 12 * len(tags) + 4
    directory, values = struct.pack(order + "H", len(tags)), b""
    for tag, (kind, numbers) in sorted(tags.items()):
        data = struct.pack(f"{order}{len(numbers)}{kind}", *numbers)
        directory += struct.pack(order + "HHI", tag, {"B": 1, "H": 3, "I": 4}[kind], len(numbers))
        directory += data.ljust(4, b"\0") if len(data) <= 4 else struct.pack(order + "I", end + len(values))
        values += data + bytes(len(data) % 2) if len(data) > 4 else b""
    return bytes(file + directory + bytes(4) + values)


PACK = {1: bytes, 5: imagecodecs.lzw_encode, 8: imagecodecs.zlib_encode, 32773: imagecodecs.packbits_encode, 50000: imagecodecs.zstd_encode}


def packed_rows(part, bits, order):
    """The bytes of rows of samples of so many bits."""
    rows = part.reshape(len(part), -1)
    if bits in (8, 16, 32):
        return rows.astype(f"{order}u{bits // 8}").tobytes()
    # The most significant bit first in both byte orders, 24 bits too.
    each = rows.astype(np.int64)[..., None] >> np.arange(bits - 1, -1, -1) & 1
    return np.packbits(each.astype(np.uint8).reshape(len(part), -1), 1).tobytes()


def tiff_by_hand(order, image, bits, code, tile=None, planar=False, reverse=False, tags={}):
    """A TIFF of unsigned samples of any number of bits, in strips of 10 rows or in tiles."""
    height, width, channels = image.shape
    chunks = []
    for plane in np.moveaxis(image, -1, 0)[..., None] if planar else [image]:
        if tile:
            full = np.pad(plane, ((0, -height % tile[0]), (0, -width % tile[1]), (0, 0)))
            chunks += [full[y : y + tile[0], x : x + tile[1]] for y in range(0, height, tile[0]) for x in range(0, width, tile[1])]
        else:
            chunks += [plane[y : y + 10] for y in range(0, height, 10)]
    chunks = [PACK[code](packed_rows(chunk, bits, order)) for chunk in chunks]
    if reverse:
        chunks = [bytes(int(f"{byte:08b}"[::-1], 2) for byte in chunk) for chunk in chunks]
    all_tags = {
        256: ("I", [width]), 257: ("I", [height]), 258: ("H", [bits] * channels), 259: ("H", [code]),
        262: ("H", [2 if channels > 2 else 1]), 266: ("H", [2 if reverse else 1]), 277: ("H", [channels]), 284: ("H", [2 if planar else 1]),
    }
    if tile:
        return tiff_file(order, all_tags | {322: ("H", [tile[1]]), 323: ("H", [tile[0]])} | tags, chunks, 324, 325)
    return tiff_file(order, all_tags | {278: ("H", [10])} | tags, chunks)


@group
def tiff_bits(files):
    """Every number of bits × FillOrder × compression × channels × planes × tiles."""
    bits = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32)
    for order, bits, code, channels, planar, reverse, tile in some(
        400, "<>", bits, PACK, (1, 2, 3, 4), (False, True), (False, True), (None, (16, 32))
    ):
        planar = planar and channels > 1
        image = rng.integers(0, 1 << bits, (37, 53, channels))
        path = files.path(("TIFF by hand", order, bits, code, channels, planar, reverse, tile), "tif")
        tags = {338: ("H", [2])} if channels % 2 == 0 else {}
        path.write_bytes(tiff_by_hand(order, image, bits, code, tile, planar, reverse, tags))
        if bits < 8:
            most = (1 << bits) - 1
            image = (image * 255 + most // 2) // most
        files.add(path, [image.astype("u1" if bits <= 8 else "u2" if bits <= 16 else "u4")])


@group
def tiff_palette(files):
    """Of every number of bits, with and without alpha."""
    for bits, order, code, tile, wide, channels, planar in some(
        200, (1, 2, 4, 8), "<>", PACK, (None, (16, 32)), (False, True), (1, 2), (False, True)
    ):
        indices = rng.integers(0, 1 << bits, (37, 53, channels))
        palette = rng.integers(0, 65536, (3, 1 << bits)).astype(np.uint16)
        if not wide:
            palette = palette // 256 * 257
        path = files.path(("palette", bits, order, code, tile, wide, channels, planar), "tif")
        tags = {262: ("H", [3]), 320: ("H", palette.ravel().tolist())} | ({338: ("H", [2])} if channels == 2 else {})
        path.write_bytes(tiff_by_hand(order, indices, bits, code, tile, planar and channels == 2, tags=tags))
        shown = np.moveaxis(palette, 0, -1)[indices[..., 0]]
        shown = shown if wide else (shown // 257).astype(np.uint8)
        most = (1 << bits) - 1
        alpha = (indices[..., 1:] * 255 + most // 2) // most * (257 if wide else 1)
        files.add(path, [np.concatenate([shown, alpha.astype(shown.dtype)], -1)])


def as_libtiff(path):
    """The colours that libtiff makes of a file, with OpenCV."""
    image = cv2.imread(str(path), cv2.IMREAD_COLOR)
    return image[..., ::-1]


@group
def tiff_ycbcr(files):
    for order, (across, down), code, tile, size in itertools.product(
        "<>", ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2), (4, 4)), (1, 5, 8, 32773), (None, (16, 32)), ((48, 64), (37, 53))
    ):
        height, width = size
        # libtiff gets units of 4×4 wrong in tiles that the image's border cuts.
        if (across, down) == (4, 4) and tile and size == (37, 53):
            continue
        chunk_height, chunk_width = tile or (16, width)
        chunks = []
        for y in range(0, height, chunk_height):
            for x in range(0, width, chunk_width):
                rows = chunk_height if tile else min(chunk_height, height - y)
                units = -(-rows // down) * -(-chunk_width // across)
                luma = rng.integers(60, 190, (units, across * down))
                chroma = rng.integers(100, 156, (units, 2))
                chunks.append(PACK[code](np.concatenate([luma, chroma], 1).astype(np.uint8).tobytes()))
        tags = {256: ("I", [width]), 257: ("I", [height]), 258: ("H", [8, 8, 8]), 259: ("H", [code]), 262: ("H", [6]), 277: ("H", [3]),
                284: ("H", [1]), 530: ("H", [across, down])}
        path = files.path(("YCbCr TIFF", order, (across, down), code, tile, size), "tif")
        if tile:
            path.write_bytes(tiff_file(order, tags | {322: ("H", [32]), 323: ("H", [16])}, chunks, 324, 325))
        else:
            path.write_bytes(tiff_file(order, tags | {278: ("H", [16])}, chunks))
        files.add(path, [as_libtiff(path)], 2)
    for order, code, tile in itertools.product("<>", (1, 5, 8, 32773), (None, (16, 32))):
        image = rng.integers(80, 176, (37, 53, 3))
        path = files.path(("YCbCr TIFF in planes", order, code, tile), "tif")
        path.write_bytes(tiff_by_hand(order, image, 8, code, tile, planar=True, tags={262: ("H", [6]), 530: ("H", [1, 1])}))
        files.add(path, [as_libtiff(path)], 2)


def jpeg_parts(data):
    """The segments of a baseline JPEG as {marker: [payloads]}, its head up to the image data, and these."""
    parts, at = {}, 2
    while True:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        parts.setdefault(marker, []).append(data[at + 4 : at + 2 + length])
        at += 2 + length
        if marker == 0xDA:
            return parts, data[:at], data[at:-2]


@group
def tiff_old_jpeg(files):
    """The forms of compression 6: a stream, streams in strips, and tables that the directory lists; """
    for form, order, subsampling, tile, size in itertools.product(
        ("stream", "strips", "tables", "elsewhere"), "<>", ("grey", "444", "422", "420"), (None, (48, 64)), ((48, 64), (37, 53))
    ):
        if form == "stream" and tile or form == "elsewhere" and (tile is None) == (size == (48, 64)):
            continue
        image = smooth(*size, 1 if subsampling == "grey" else 3)
        height, width = tile or (size[0] if form in ("stream", "elsewhere") else 16, size[1])
        full = np.pad(image, ((0, -size[0] % height if tile else 0), (0, -size[1] % width), (0, 0))[: image.ndim], "edge")
        options = {} if subsampling == "grey" else {"subsampling": subsampling}
        streams = [imagecodecs.jpeg8_encode(np.ascontiguousarray(full[y : y + height, x : x + width]), level=95, **options)
                   for y in range(0, len(full), height) for x in range(0, full.shape[1], width)]
        across, down = {"grey": (1, 1), "444": (1, 1), "422": (2, 1), "420": (2, 2)}[subsampling]
        channels = 1 if subsampling == "grey" else 3
        tags = {256: ("I", [size[1]]), 257: ("I", [size[0]]), 258: ("H", [8] * channels), 259: ("H", [6]), 262: ("H", [6 if channels == 3 else 1]),
                277: ("H", [channels]), 530: ("H", [across, down]), 512: ("H", [1])}
        tags |= {322: ("I", [tile[1]]), 323: ("I", [tile[0]])} if tile else {278: ("I", [height])}
        where = (324, 325) if tile else ()
        what = ("old-style JPEG", form, order, subsampling, tile, size)
        path = files.path(what, "tif")
        if form == "strips":
            path.write_bytes(tiff_file(order, tags, streams, *where))
        elif form == "stream":
            path.write_bytes(tiff_file(order, tags | {513: ("I", [8]), 514: ("I", [len(streams[0])])}, streams, *where))
        else:
            split = [jpeg_parts(stream) for stream in streams]
            data = [part[2] for part in split]
            # After the header of the file and the data of the chunks.
            at = 8 + sum(len(part) + len(part) % 2 for part in data)
            parts, head, _ = split[0]
            if form == "elsewhere":
                after, extra = head, {513: ("I", [at]), 514: ("I", [len(head)])}
            else:
                q, huffman = b"".join(parts[0xDB]), b"".join(parts[0xC4])
                tables = {}
                while q:
                    tables[0xDB, q[0]], q = q[1:65], q[65:]
                while huffman:
                    count = 17 + sum(huffman[1:17])
                    tables[0xC4, huffman[0]], huffman = huffman[1:count], huffman[count:]
                places, after = {}, b""
                for key, table in tables.items():
                    places[key] = at + len(after)
                    after += table + bytes(len(table) % 2)
                each = [0] if channels == 1 else [0, 1, 1]
                extra = {519: ("I", [places[0xDB, i] for i in each]), 520: ("I", [places[0xC4, i] for i in each]),
                         521: ("I", [places[0xC4, 16 + i] for i in each])}
            path.write_bytes(tiff_file(order, tags | extra, data, *where, after=after))
        # As libjpeg reads the streams: libtiff reads neither grey ones nor several whole ones, and some big-endian ones wrongly.
        chunks = [imagecodecs.jpeg8_decode(stream) for stream in streams]
        found = chunks[0][: size[0], : size[1]] if tile else np.concatenate(chunks)
        files.add(path, [found], 3 if across == 1 else 16)


@group
def tiff_fax(files):
    """Bitmaps of fax machines, in every form, read by libtiff."""
    for kind, white_is_zero, reverse, size, rows in itertools.product(
        ("group3", "group4", "tiff_ccitt"), (False, True), (1, 2), ((37, 53), (16, 64), (5, 1), (40, 300)), (8, 1000)
    ):
        image = np.kron(rng.integers(0, 2, (-(-size[0] // 2), -(-size[1] // 5))), np.ones((2, 5)))[: size[0], : size[1]].astype(bool)
        for options in (0, 1, 4, 5) if kind == "group3" else (0,):
            path = files.path(("fax", kind, white_is_zero, reverse, size, rows, options), "tif")
            tags = {262: int(not white_is_zero), 266: reverse, 278: rows} | ({292: options} if kind == "group3" else {})
            PIL.Image.fromarray(image).save(path, compression=kind, tiffinfo=tags)
            with PIL.Image.open(path) as opened:
                shown = np.asarray(opened).astype(np.uint8) * 255
                white = opened.tag_v2.get(262) == 0
            files.add(path, [255 - shown if white else shown])


@group
def tiff_inks(files):
    """CMYK, as samples and as JPEG."""
    for order, compression, planar, tile in itertools.product("<>", (None, "zlib", "jpeg"), (False, True), (None, (16, 32))):
        image = smooth(48, 64, 4)
        path = files.path(("CMYK TIFF", order, compression, planar, tile), "tif")
        tifffile.imwrite(
            path, np.moveaxis(image, -1, 0) if planar else image, byteorder=order, compression=compression, tile=tile, photometric="separated",
            planarconfig="separate" if planar else "contig", rowsperstrip=None if tile else 16, metadata=None,
        )
        found = tifffile.imread(path)
        files.add(path, [np.moveaxis(found, 0, -1) if planar else found], 2 if compression == "jpeg" else 0)


@group
def upright(files):
    """Every orientation in every format that says it."""
    files.options = ["--auto-orient"]
    for orientation, extension, size in itertools.product(range(1, 9), ("jpg", "png", "webp", "tif"), ((37, 53), (8, 3), (1, 5))):
        image = PIL.Image.fromarray(smooth(*size, 3))
        exif = PIL.Image.Exif()
        exif[0x112] = orientation
        path = files.path(("orientation", orientation, extension, size), extension)
        options = {"tif": {"tiffinfo": {274: orientation}}, "webp": {"exif": exif, "lossless": True}, "jpg": {"exif": exif, "quality": 95, "subsampling": 0}}
        image.save(path, **options.get(extension, {"exif": exif}))
        with PIL.Image.open(path) as opened:
            files.add(path, [np.asarray(PIL.ImageOps.exif_transpose(opened))], 3 if extension == "jpg" else 0)


@group
def png(files):
    """Every type and depth, interlaced or not, with and without tRNS."""
    kinds = [(0, bits) for bits in (1, 2, 4, 8, 16)] + [(3, bits) for bits in (1, 2, 4, 8)] + [(kind, bits) for kind in (2, 4, 6) for bits in (8, 16)]
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    for (kind, bits), interlaced, transparent, size in itertools.product(kinds, (0, 1), (0, 1), ((1, 1), (5, 3), (37, 53))):
        if transparent and kind in (4, 6):
            continue
        image = rng.integers(0, 1 << bits, (*size, channels[kind]), np.uint32)

        def filtered(part):
            if not part.size:
                return b""
            rows = part.reshape(len(part), -1)
            if bits >= 8:
                data = rows.astype(f">u{bits // 8}").view(np.uint8).reshape(len(part), -1)
            else:
                data = np.packbits((rows[..., None] >> np.arange(bits - 1, -1, -1) & 1).astype(np.uint8).reshape(len(part), -1), 1)
            step = max(1, channels[kind] * bits // 8)
            out, above = b"", np.zeros(data.shape[1], int)
            for y, row in enumerate(data.astype(int)):
                left = np.concatenate([np.zeros(step, int), row])[: len(row)]
                corner = np.concatenate([np.zeros(step, int), above])[: len(row)]
                estimate = left + above - corner
                a, b, c = abs(estimate - left), abs(estimate - above), abs(estimate - corner)
                paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, above, corner))
                guess = [0 * row, left, above, (left + above) // 2, paeth][y % 5]
                out += bytes([y % 5]) + ((row - guess) % 256).astype(np.uint8).tobytes()
                above = row
            return out

        parts = [image[y::down, x::across] for x, y, across, down in passes] if interlaced else [image]
        data = zlib.compress(b"".join(filtered(part) for part in parts))
        chunks = [(b"IHDR", struct.pack(">IIBBBBB", size[1], size[0], bits, kind, 0, 0, interlaced))]
        palette = rng.integers(0, 256, (1 << bits, 3)).astype(np.uint8) if kind == 3 else None
        if kind == 3:
            chunks.append((b"PLTE", palette.tobytes()))
        if transparent:
            alpha = rng.integers(0, 256, max(1, (1 << bits) - 1)).astype(np.uint8) if kind == 3 else None
            key = image[0, 0]
            chunks.append((b"tRNS", alpha.tobytes() if kind == 3 else key.astype(">u2").tobytes()))
        chunks += [(b"IDAT", data), (b"IEND", b"")]
        path = files.path(("PNG", kind, bits, interlaced, transparent, size), "png")
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks))
        full = 65535 if bits == 16 else 255
        if kind == 3:
            shown = palette[image[..., 0]]
            if transparent:
                opacity = np.full(1 << bits, 255, np.uint8)
                opacity[: len(alpha)] = alpha
                shown = np.concatenate([shown, opacity[image]], -1)
        else:
            most = (1 << bits) - 1
            shown = (image.astype(np.int64) * full + most // 2) // most
            if transparent:
                shown = np.concatenate([shown, np.where((image == key).all(-1, keepdims=True), 0, full)], -1)
        files.add(path, [shown.astype(np.uint16 if bits == 16 else np.uint8)])


@group
def pnm(files):
    """P1 to P7 of every width of samples, plain and not; PFM of both byte orders."""
    for number, most, comment in itertools.product("123456", (1, 2, 15, 100, 254, 255, 256, 1023, 4095, 65534, 65535), ("", "# a comment\n")):
        if number in "14" and most != 1:
            continue
        channels = 3 if number in "36" else 1
        image = rng.integers(0, most + 1, (11, 13, channels))
        head = f"P{number}\n{comment}13 11\n" + ("" if number in "14" else f"{comment}{most}\n")
        if number in "123":
            body = " ".join(str(value) for value in image.ravel()).encode() + b"\n"
        elif number == "4":
            body = np.packbits(image[..., 0].astype(np.uint8), 1).tobytes()
        else:
            body = image.astype(">u2" if most > 255 else "u1").tobytes()
        path = files.path(("PNM", number, most, comment), "pnm")
        path.write_bytes(head.encode() + body)
        files.add(path, [(255 * (1 - image)).astype("u1") if number in "14" else image.astype("u2" if most > 255 else "u1")])
    for kind, depth, most in itertools.product(("BLACKANDWHITE", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"), (0,), (1, 255, 1000, 65535)):
        if (kind == "BLACKANDWHITE") != (most == 1):
            continue
        channels = {"BLACKANDWHITE": 1, "GRAYSCALE": 1, "GRAYSCALE_ALPHA": 2, "RGB": 3, "RGB_ALPHA": 4}[kind]
        image = rng.integers(0, most + 1, (11, 13, channels))
        path = files.path(("PAM", kind, most), "pam")
        path.write_bytes(f"P7\nWIDTH 13\nHEIGHT 11\nDEPTH {channels}\nMAXVAL {most}\nTUPLTYPE {kind}\nENDHDR\n".encode() + image.astype(">u2" if most > 255 else "u1").tobytes())
        files.add(path, [image.astype("u2" if most > 255 else "u1")])
    for order, channels in itertools.product("<>", (1, 3)):
        image = picture((11, 13, channels), "f4")
        path = files.path(("PFM", order, channels), "pfm")
        path.write_bytes(f"P{'F' if channels == 3 else 'f'}\n13 11\n{'-' if order == '<' else ''}1.0\n".encode() + image[::-1].astype(order + "f4").tobytes())
        files.add(path, [image])


@group
def fits_files(files):
    for dtype, shape, place in itertools.product(("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"), ((1, 1), (7, 5), (3, 7, 5), (2, 3, 7, 5)), (0, 1)):
        image = picture(shape, dtype)
        path = files.path(("FITS", dtype, shape, place), "fits")
        parts = [fits.PrimaryHDU(image)] if place == 0 else [fits.PrimaryHDU(), fits.ImageHDU(image)]
        fits.HDUList(parts).writeto(path)
        files.add(path, image.reshape(-1, *shape[-2:]))


@group
def dicom(files):
    syntaxes = {name: getattr(pydicom.uid, name) for name in ("ExplicitVRLittleEndian", "ImplicitVRLittleEndian", "ExplicitVRBigEndian", "RLELossless")}
    for syntax, (allocated, stored), signed, colours, planar, frames, wide, width in itertools.product(
        syntaxes, ((8, 8), (8, 7), (16, 16), (16, 12), (16, 9), (32, 32), (32, 20)), (False, True), ("MONOCHROME2", "MONOCHROME1", "RGB"), (0, 1),
        (1, 3), ("OB", "OW"), (6, 5)
    ):
        if colours != "RGB" and planar or colours == "RGB" and (signed or allocated == 32) or wide == "OB" and (allocated > 8 or "Implicit" in syntax):
            continue
        if syntax == "RLELossless" and (planar or wide == "OB" or allocated == 32):
            continue
        channels = 3 if colours == "RGB" else 1
        dtype = f"{'i' if signed else 'u'}{allocated // 8}"
        least, most = (-(1 << stored - 1), (1 << stored - 1) - 1) if signed else (0, (1 << stored) - 1)
        image = rng.integers(least, most, (frames, 7, width, channels), dtype, endpoint=True)
        data = pydicom.Dataset()
        data.file_meta = pydicom.dataset.FileMetaDataset()
        data.file_meta.TransferSyntaxUID = syntaxes["ExplicitVRLittleEndian"] if "RLE" in syntax else syntaxes[syntax]
        data.file_meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
        data.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        data.SOPClassUID, data.SOPInstanceUID = data.file_meta.MediaStorageSOPClassUID, data.file_meta.MediaStorageSOPInstanceUID
        data.Rows, data.Columns, data.SamplesPerPixel = 7, width, channels
        data.PhotometricInterpretation = colours
        if channels == 3:
            data.PlanarConfiguration = planar
        if frames > 1:
            data.NumberOfFrames = frames
        data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = allocated, stored, stored - 1, int(signed)
        big = "Big" in syntax
        samples = (np.moveaxis(image, -1, 1) if planar else image).astype((">" if big else "<") + dtype).tobytes()
        samples += bytes(len(samples) % 2)
        if big and allocated == 8 and wide == "OW":
            samples = np.frombuffer(samples, "u2").byteswap().tobytes()
        data.PixelData = samples
        data["PixelData"].VR = wide
        path = files.path(("DICOM", syntax, (allocated, stored), signed, colours, planar, frames, wide, width), "dcm")
        if "RLE" in syntax:
            data.compress(syntaxes[syntax], encoding_plugin="pydicom")
        data.save_as(path, implicit_vr="Implicit" in syntax, little_endian=not big, enforce_file_format=True)
        files.add(path, image)


@group
def volumes(files):
    """NRRD and MetaImage."""
    types = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")
    for dtype, shape, extension, packed in itertools.product(types, ((7, 5), (3, 7, 5), (2, 3, 7, 5)), ("mha", "mhd", "nrrd", "nhdr"), (False, True)):
        image = picture(shape, dtype)
        path = files.path(("volume", dtype, shape, extension, packed), extension)
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(image, isVector=False), str(path), useCompression=packed)
        files.add(path, image.reshape(-1, *shape[-2:]))
    for dtype, channels, extension, packed in itertools.product(("u1", "u2", "f4"), (2, 3, 4), ("mha", "nrrd"), (False, True)):
        image = picture((7, 5, channels), dtype)
        path = files.path(("vectors", dtype, channels, extension, packed), extension)
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(image, isVector=True), str(path), useCompression=packed)
        files.add(path, [image])
    names = {"u1": "uchar", "i1": "int8", "u2": "ushort", "i2": "short", "u4": "uint32", "i4": "int", "f4": "float", "f8": "double"}
    for dtype, order, encoding, skip in itertools.product(types, "<>", ("raw", "gzip", "ascii"), ("", "line skip: 2\n", "byte skip: 7\n", "byte skip: -1\n")):
        if encoding == "ascii" and (skip.startswith("byte") or order == ">") or encoding != "raw" and "-1" in skip:
            continue
        image = picture((7, 5), dtype)
        data = image.astype(order + dtype).tobytes()
        if encoding == "gzip":
            # Skipped bytes are those of the inflated data.
            data = imagecodecs.gzip_encode((b"x" * 7 if "byte" in skip else b"") + data)
        elif encoding == "ascii":
            data = " ".join(repr(value.item()) for value in image.ravel()).encode() + b"\n"
        elif "7" in skip:
            data = b"x" * 7 + data
        elif "-1" in skip:
            data = b"anything" + data
        if "line" in skip:
            data = b"one\ntwo\n" + data
        head = f"NRRD0004\ntype: {names[dtype]}\ndimension: 2\nsizes: 5 7\nendian: {'little' if order == '<' else 'big'}\nencoding: {encoding}\n{skip}\n"
        path = files.path(("NRRD by hand", dtype, order, encoding, skip), "nrrd")
        path.write_bytes(head.encode() + data)
        files.add(path, [image])


@group
def tga(files):
    """Kinds × bits × runs × where the first pixel is × attribute bits × name."""
    for kind, bits, map_bits, runs, place, attributes, name in itertools.product(
        (1, 2, 3), (8, 16, 24, 32), (0, 16, 24, 32), (False, True), range(4), (0, 8), (b"", b"a name")
    ):
        if kind == 1 and (bits != 8 or map_bits == 0) or kind != 1 and map_bits or kind == 2 and bits == 8 or kind == 3 and bits not in (8, 16):
            continue
        has_alpha = (map_bits or bits) == 32 or kind == 3 and bits == 16
        if attributes and not has_alpha:
            continue
        height, width, first = 11, 13, 2
        size = bits // 8
        if kind == 1:
            pixels = rng.integers(first, first + 6, (height, width)).astype(np.uint8)
        else:
            pixels = rng.integers(0, 256, (height, width, size)).astype(np.uint8)
        pixels[:, 3:9] = pixels[:, 3:4]
        colours = rng.integers(0, 256, (6, map_bits // 8)).astype(np.uint8)

        def shown(it):
            if it.shape[-1] == 2 and kind != 3:
                word = it[..., 0].astype(int) | it[..., 1].astype(int) << 8
                return np.stack([((word >> shift & 31) * 255 + 15) // 31 for shift in (10, 5, 0)], -1).astype(np.uint8)
            return it if it.shape[-1] < 3 else it[..., [2, 1, 0, 3][: it.shape[-1]]]

        expected = shown(colours)[pixels - first] if kind == 1 else shown(pixels)
        # Place: bit 0, from the right; bit 1, from the top.
        stored = pixels if place & 2 else pixels[::-1]
        stored = stored[:, ::-1] if place & 1 else stored
        if runs:
            data = b""
            for row in stored.reshape(height, width, -1):
                x = 0
                while x < width:
                    count = 1
                    while x + count < width and (row[x + count] == row[x]).all():
                        count += 1
                    if count > 1:
                        data += bytes([127 + count]) + row[x].tobytes()
                    else:
                        data += bytes([0]) + row[x].tobytes()
                    x += count
        else:
            data = stored.tobytes()
        head = struct.pack("<BBBHHBHHHHBB", len(name), kind == 1, kind + 8 * runs, first if kind == 1 else 0, 6 if kind == 1 else 0, map_bits, 0, 0, width, height, bits, place << 4 | attributes)
        path = files.path(("TGA", kind, bits, map_bits, runs, place, attributes, name), "tga")
        path.write_bytes(head + name + colours.tobytes() + data)
        within = 8 if 16 in (map_bits, bits) and kind != 3 else 0
        files.add(path, [expected], within)


@group
def bmp(files):
    """Bits × headers × direction, with masks of every kind; Pillow reads some, the rest is as the format says."""
    for bits, header, downward in itertools.product((1, 4, 8, 16, 24, 32), (12, 40, 52, 56, 64, 108, 124), (False, True)):
        if header == 12 and (downward or bits in (16, 32)) or header == 64 and bits in (16, 32):
            continue
        height, width = 7, 13
        palette = None
        if bits <= 8:
            image = rng.integers(0, 1 << bits, (height, width)).astype(np.uint8)
            palette = rng.integers(0, 256, (1 << bits, 3)).astype(np.uint8)
            expected = palette[image]
            rows = np.packbits((image[..., None] >> np.arange(bits - 1, -1, -1) & 1).reshape(height, -1), 1) if bits < 8 else image
        elif bits == 16:
            image = rng.integers(0, 1 << 15, (height, width)).astype("<u2")
            expected = np.stack([((image.astype(int) >> shift & 31) * 255 + 15) // 31 for shift in (10, 5, 0)], -1).astype(np.uint8)
            rows = image.view(np.uint8).reshape(height, -1)
        else:
            expected = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
            four = np.concatenate([expected[..., ::-1], np.zeros((height, width, 1), np.uint8)], -1)
            rows = (four if bits == 32 else four[..., :3]).reshape(height, -1)
        rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
        rows = rows if downward else rows[::-1]
        colours = b"" if palette is None else b"".join(bytes(color[::-1]) + (b"" if header == 12 else b"\0") for color in palette)
        if header == 12:
            dib = struct.pack("<IHHHH", 12, width, height, 1, bits)
        else:
            dib = struct.pack("<IiiHHIIiiII", header, width, -height if downward else height, 1, bits, 0, rows.size, 0, 0, 0, 0).ljust(header, b"\0")
        path = files.path(("BMP", bits, header, downward), "bmp")
        start = 14 + len(dib) + len(colours)
        path.write_bytes(struct.pack("<2sIII", b"BM", start + rows.size, 0, start) + dib + colours + rows.tobytes())
        files.add(path, [expected], 1 if bits == 16 else 0)
    masks = {
        16: [(0x7C00, 0x3E0, 0x1F, 0), (0xF800, 0x7E0, 0x1F, 0), (0xF00, 0xF0, 0xF, 0xF000), (0xF, 0xF0, 0xF00, 0), (0x7C00, 0x3E0, 0x1F, 0x8000), (0xE0, 0x1C, 0x3, 0xFF00)],
        32: [(0xFF0000, 0xFF00, 0xFF, 0), (0xFF0000, 0xFF00, 0xFF, 0xFF000000), (0xFF, 0xFF00, 0xFF0000, 0xFF000000), (0xFF000000, 0xFF0000, 0xFF00, 0),
             (0xFF000000, 0xFF0000, 0xFF00, 0xFF), (0x3FF00000, 0xFFC00, 0x3FF, 0), (0xF800, 0x7E0, 0x1F, 0), (0x7C00, 0x3E0, 0x1F, 0x80000000)],
    }
    for bits, header in itertools.product((16, 32), (40, 52, 56, 108, 124)):
        for mask in masks[bits]:
            if mask[3] and header in (40, 52):
                continue
            height, width = 7, 13
            image = rng.integers(0, 1 << bits, (height, width), np.uint64)

            def value(mask):
                low = (mask & -mask).bit_length() - 1
                most = mask >> low
                return ((image.astype(np.int64) & mask) >> low) * 255 / most

            expected = np.stack([value(m) for m in mask if m], -1)
            rows = image.astype(f"<u{bits // 8}").view(np.uint8).reshape(height, -1)
            rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))[::-1]
            dib = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, 3, rows.size, 0, 0, 0, 0)
            dib = (dib + struct.pack("<IIII", *mask)[: 12 if header <= 52 else 16]).ljust(header, b"\0")
            path = files.path(("BMP", bits, header, [hex(m) for m in mask]), "bmp")
            start = 14 + len(dib)
            path.write_bytes(struct.pack("<2sIII", b"BM", start + rows.size, 0, start) + dib + rows.tobytes())
            files.add(path, [(expected + 0.5).astype(np.uint8)], 1 if bits == 32 and mask[0] == 0x3FF00000 or bits == 16 or mask[0] < 0x10000 else 0)


@group
def bmp_runs(files):
    """Runs of 8 and 4 bits with every kind of code; what they pass over has the first colour."""
    for bits, width, seed in itertools.product((8, 4), (1, 2, 7, 13, 64, 301), range(4)):
        height = 9
        data = b""
        indices = np.zeros((height, width), np.uint8)
        for y in range(height):
            x = 0
            while x < width:
                count = int(rng.integers(1, min(255, width - x) + 1))
                kind = rng.integers(0, 3)
                if kind == 0 or count < 3:
                    value = int(rng.integers(0, 256))
                    data += bytes([count, value])
                    indices[y, x : x + count] = value if bits == 8 else np.resize([value >> 4, value & 15], count)
                elif kind == 1:
                    values = rng.integers(0, 256, count if bits == 8 else -(-count // 2)).astype(np.uint8).tobytes()
                    data += bytes([0, count]) + values + bytes(len(values) % 2)
                    each = np.frombuffer(values, np.uint8)
                    indices[y, x : x + count] = each if bits == 8 else np.stack([each >> 4, each & 15], -1).ravel()[:count]
                elif y < height - 1 and seed % 2:
                    # To the right, and on from there.
                    data += bytes([0, 2, count, 0])
                else:
                    break
                x += count
            data += b"\0\0" if y < height - 1 else b"\0\1"
        colours = 1 << bits
        shown = rng.integers(0, 256, (colours, 3)).astype(np.uint8)
        palette = b"".join(color[::-1].tobytes() + b"\0" for color in shown)
        start = 54 + len(palette)
        path = files.path(("BMP in runs", bits, width, seed), "bmp")
        path.write_bytes(
            struct.pack("<2sIII", b"BM", start + len(data), 0, start)
            + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 1 if bits == 8 else 2, len(data), 0, 0, colours, 0) + palette + data)
        files.add(path, [shown[indices[::-1]]])


@group
def webp(files):
    for channels, lossless, size in itertools.product((3, 4), (False, True), ((1, 1), (7, 13), (37, 53))):
        image = picture((*size, channels), "u1") if lossless else smooth(*size, channels)
        path = files.path(("WebP", channels, lossless, size), "webp")
        PIL.Image.fromarray(image).save(path, lossless=lossless, exact=True, quality=90)
        with PIL.Image.open(path) as opened:
            files.add(path, [np.asarray(opened)], 0 if lossless else 24)


@group
def gif(files):
    for colours, interlace, transparent, size in itertools.product((2, 5, 16, 200, 256), (0, 1), (False, True), ((1, 1), (7, 13), (37, 53))):
        indices = rng.integers(0, colours, size).astype(np.uint8)
        palette = rng.integers(0, 256, (colours, 3)).astype(np.uint8)
        image = PIL.Image.fromarray(indices, "P")
        image.putpalette(palette.tobytes())
        path = files.path(("GIF", colours, interlace, transparent, size), "gif")
        image.save(path, interlace=interlace, optimize=False, **({"transparency": 1} if transparent else {}))
        shown = palette[indices]
        if transparent:
            shown = np.concatenate([shown, np.where(indices == 1, 0, 255)[..., None].astype(np.uint8)], -1)
            with PIL.Image.open(path) as opened:
                shown = np.asarray(opened.convert("RGBA"))
        files.add(path, [shown])


@group
def jpeg(files):
    for kind, progressive, subsampling, restart, size in itertools.product(
        ("grey", "ycbcr", "rgb", "adobe"), (False, True), (0, 1, 2), (0, 1, 3), ((8, 8), (37, 53), (64, 48))
    ):
        if kind in ("grey", "rgb") and subsampling:
            continue
        image = smooth(*size, 1 if kind == "grey" else 3)
        path = files.path(("JPEG", kind, progressive, subsampling, restart, size), "jpg")
        options = {"restart_marker_blocks": restart} if restart else {}
        PIL.Image.fromarray(image).save(
            path, quality=95, progressive=progressive, subsampling=subsampling if kind != "grey" else -1, keep_rgb=kind == "rgb", **options)
        if kind == "adobe":
            # The colours said once more, as Photoshop does, without JFIF.
            data = path.read_bytes()
            length = struct.unpack(">H", data[4:6])[0]
            path.write_bytes(data[:2] + b"\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0\1" + data[4 + length :])
        with PIL.Image.open(path) as opened:
            files.add(path, [np.asarray(opened)], 3 if subsampling == 0 else 16)
    for subsampling, size in itertools.product(("444", "422", "420", "411", "440"), ((8, 8), (37, 53), (64, 48))):
        path = files.path(("JPEG of libjpeg-turbo", subsampling, size), "jpg")
        path.write_bytes(imagecodecs.jpeg8_encode(smooth(*size, 3), level=95, subsampling=subsampling))
        files.add(path, [imagecodecs.jpeg8_decode(path.read_bytes())], 3 if subsampling == "444" else 16)


def main():
    gpuimg = pathlib.Path(sys.argv[1]).resolve()
    counts, wrong = {}, 0
    for name in sys.argv[2:] or GROUPS:
        with tempfile.TemporaryDirectory() as folder:
            files = Files(pathlib.Path(folder))
            GROUPS[name](files)
            counts[name] = len(files.expected)
            for sentence in files.compare(gpuimg):
                wrong += 1
                print(f"{name}: {sentence}")
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(f"{sum(counts.values())} files, {wrong} of them otherwise than other programs read them")
    sys.exit(1 if wrong else 0)


main()
