#!/usr/bin/env python3
"""Checks PNG files against the samples they were made of, with decoders that are not ours.

    PNG_OUT=/tmp/pngs cargo test --test main png_encode && tests/interop/foreign_png.py /tmp/pngs

Every NAME.png of the folder has a NAME.raw beside it: its samples, row by row, 16-bit ones
little-endian. Pillow, OpenCV, pngcheck and libpng's own pngfix (each if it is installed; the
first two with --install into a virtual environment) must read each file; the first two must
find these samples.
"""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import venv


def install(arguments):
    """Runs this script again in a new environment that has the decoders."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = pathlib.Path(folder, "bin", "python")
        packages = ["numpy", "pillow", "opencv-python-headless"]
        subprocess.run([python, "-m", "pip", "--quiet", "install", *packages], check=True)
        sys.exit(subprocess.run([python, __file__, *arguments]).returncode)


def header(path):
    """Width, height, bits and channels as IHDR tells them."""
    data = path.read_bytes()[:26]
    width, height, bits, colour = struct.unpack(">IIBB", data[16:26])
    return width, height, bits, {0: 1, 4: 2, 2: 3, 6: 4}[colour]


def with_pillow(path, wanted, channels, bits):
    # Pillow narrows 16-bit samples to 8 unless the image is grey.
    import numpy
    from PIL import Image

    read = numpy.asarray(Image.open(path))
    if bits == 16 and channels > 1:
        wanted = wanted >> 8
        if channels == 2:  # shown as RGBA or as LA
            read = read[..., [0, -1]]
    return numpy.array_equal(read.reshape(wanted.shape), wanted)


def with_opencv(path, wanted, channels, bits):
    import cv2
    import numpy

    if wanted.shape[1] > 1_000_000:
        return None  # its libpng refuses, by a limit that a caller may raise
    read = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if read is None:
        return False
    if channels == 2:  # grey and alpha are given as BGRA
        read = read[..., [0, 3]]
    elif channels > 2:
        read = read[..., [2, 1, 0, 3][:channels]]
    return numpy.array_equal(read.reshape(wanted.shape), wanted)


def with_tool(*command):
    if not shutil.which(command[0]):
        return None
    return subprocess.run(command, capture_output=True).returncode == 0


def main(arguments):
    if "--install" in arguments:
        install([word for word in arguments if word != "--install"])
    import numpy

    counts = {}
    for path in sorted(pathlib.Path(arguments[0]).glob("*.png")):
        width, height, bits, channels = header(path)
        kind = numpy.dtype("<u2" if bits == 16 else "u1")
        wanted = numpy.fromfile(path.with_suffix(".raw"), kind).reshape(height, width, channels)
        for name, right in {
            "pillow": with_pillow(path, wanted, channels, bits),
            "opencv": with_opencv(path, wanted, channels, bits),
            "pngcheck": with_tool("pngcheck", "-q", path),
            "pngfix": with_tool("pngfix", "-q", path),
        }.items():
            if right is not None:
                good, bad = counts.get(name, (0, 0))
                counts[name] = (good + right, bad + (not right))
                if not right:
                    print(f"{path}: wrong by {name}")
    for name, (good, bad) in counts.items():
        print(f"{name}: {good} right, {bad} wrong")
    sys.exit(not counts or any(bad for _, bad in counts.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
