#!/usr/bin/env python3
"""Writes PNG files as other programs write them, for the decoders on the CPU and the GPU.

    tests/interop/png_writers.py COUNT FOLDER [SEED]
    GPUIMG_PNG_FOLDER=FOLDER cargo test foreign_files

Each file combines, by a seeded choice, a compressor (zlib with every level, strategy, window and
memory level; libdeflate, zopfli and zlib-ng as imagecodecs has them; flushes inside the stream), a
filter or all filters mixed, a content, a colour type and a depth, a size from 1x1 on, transparency,
and a division into chunks. Whoever reads them compares decoders with each other.
"""
import pathlib
import random
import struct
import sys
import zlib

import numpy

try:
    import imagecodecs
except ImportError:
    imagecodecs = None

KINDS = [(0, bits) for bits in (1, 2, 4, 8, 16)] + [(3, bits) for bits in (1, 2, 4, 8)]
KINDS += [(colour, bits) for colour in (2, 4, 6) for bits in (8, 16)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def content(numbers, name, height, row):
    """Bytes of packed samples, height x row."""
    y, x = numpy.mgrid[0:height, 0:row]
    if name == "noise":
        return numbers.integers(0, 256, (height, row))
    if name == "smooth":
        return (128 + 90 * numpy.sin(x / 40) * numpy.cos(y / 30) + numbers.normal(0, 2, (height, row))).astype(int)
    if name == "gradient":
        return x // 3 + y // 2
    if name == "flat":
        return numpy.full((height, row), int(numbers.integers(0, 256)))
    if name == "sparse":
        return numpy.where(numbers.random((height, row)) < 0.01, numbers.integers(0, 256, (height, row)), 0)
    if name == "tiles":
        return numbers.integers(0, 256, (8, 16))[y % 8, x % 16]
    return numbers.integers(0, 256, row)[None, :] * (y % 7 < 3)  # stripes


def filtered(kinds, raw, step):
    """Scanlines with their filters (PNG specification, section 9)."""
    height, row = raw.shape
    before = numpy.zeros_like(raw)
    before[:, step:] = raw[:, :-step]
    above = numpy.vstack([numpy.zeros((1, row), int), raw[:-1]])
    corner = numpy.zeros_like(raw)
    corner[:, step:] = above[:, :-step]
    guess = before + above - corner
    a, b, c = abs(guess - before), abs(guess - above), abs(guess - corner)
    paeth = numpy.where((a <= b) & (a <= c), before, numpy.where(b <= c, above, corner))
    guesses = [0 * raw, before, above, (before + above) // 2, paeth]
    rows = numpy.array([(raw - guesses[kind])[y] for y, kind in enumerate(kinds)])
    return numpy.hstack([numpy.array(kinds)[:, None], rows % 256]).astype(numpy.uint8).tobytes()


def compressed(dice, data):
    """A zlib stream and who made it."""
    who = dice.choice(["zlib"] * 6 + ["flushed", "stored", "libdeflate", "zopfli", "zlibng"])
    if who in ("libdeflate", "zopfli", "zlibng") and imagecodecs is not None:
        if who == "libdeflate":
            return who, imagecodecs.deflate_encode(data, level=dice.randint(1, 12))
        if who == "zopfli" and len(data) < 40_000:
            return who, imagecodecs.zopfli_encode(data)
        if who == "zlibng":
            return who, imagecodecs.zlibng_encode(data, level=dice.randint(0, 9))
        who = "zlib"
    level = 0 if who == "stored" else dice.randint(0, 9)
    window = dice.randint(9, 15)
    packer = zlib.compressobj(level, zlib.DEFLATED, window, dice.randint(1, 9), dice.randint(0, 4))
    out = b""
    if who == "flushed":
        for start in range(0, len(data), 1 + len(data) // 5):
            out += packer.compress(data[start:start + 1 + len(data) // 5])
            out += packer.flush(dice.choice([zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH]))
    else:
        out = packer.compress(data)
    return f"{who}{level}", out + packer.flush()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write(dice, numbers, path, index):
    colour, bits = dice.choice(KINDS)
    big = dice.random() < 0.05
    width, height = (dice.randint(1, 500 if big else 130) for _ in range(2))
    row = (width * CHANNELS[colour] * bits + 7) // 8
    name = dice.choice(["noise", "smooth", "gradient", "flat", "sparse", "tiles", "stripes"])
    raw = content(numbers, name, height, row) % 256
    if row * 8 > width * CHANNELS[colour] * bits:  # the bits behind a row are zero
        raw[:, -1] &= 256 - (1 << (row * 8 - width * CHANNELS[colour] * bits))
    kind = dice.randint(0, 5)
    kinds = [kind if kind < 5 else dice.randint(0, 4) for _ in range(height)]
    who, stream = compressed(dice, filtered(kinds, raw, max(1, CHANNELS[colour] * bits // 8)))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    if colour == 3:
        out += chunk(b"PLTE", numbers.bytes(3 << bits))
    if dice.random() < 0.3 and colour in (0, 2, 3):
        entries = {0: 2, 2: 6, 3: dice.randint(1, 1 << bits)}[colour]
        key = numbers.bytes(entries) if colour == 3 else struct.pack(f">{entries // 2}H", *(
            dice.randint(0, (1 << bits) - 1) for _ in range(entries // 2)))
        out += chunk(b"tRNS", key)
    size = dice.choice([len(stream), 8192, 1000, 77])
    for start in range(0, len(stream), size):
        out += chunk(b"IDAT", stream[start:start + size])
    path.joinpath(f"{index:05}-{who}-{name}-c{colour}b{bits}-f{kind}.png").write_bytes(out + chunk(b"IEND", b""))


def main():
    count, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    dice, numbers = random.Random(seed), numpy.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        write(dice, numbers, folder, index)


main()
