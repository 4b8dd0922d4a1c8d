"""JPEG 2000, JPEG-LS and JPEG XL of OpenJPEG, CharLS and libjxl, as files and in DICOM, read by gpuimg.

Needs imagecodecs, numpy and pydicom. Usage: python tests/interop/coded_images.py path/to/gpuimg
Lossless images must come back sample by sample, for every number of bits, sign and number of channels; lossy ones must be
near those that the other decoder gives. Damaged files: an error or an image, and never a panic.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile

import imagecodecs
import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import JPEG2000, JPEG2000Lossless, JPEGLSLossless, JPEGLSNearLossless, SecondaryCaptureImageStorage

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(38)
counts = {}


def start(*arguments):
    return subprocess.run([gpuimg, *map(str, arguments)], capture_output=True, text=True)


def check(name, good, what):
    counts[name] = counts.get(name, 0) + 1
    if not good:
        sys.exit(f"{name} differs: {what}")


def read(path):
    target = folder / "out.npy"
    done = start("convert", path, target, "--overwrite", "--format", "npy")
    assert done.returncode == 0, (path, done.stderr)
    return np.load(target)


def samples(shape, bits, signed=False):
    """A ramp with noise, and the extreme values."""
    least = -(1 << (bits - 1)) if signed else 0
    most = least + (1 << bits) - 1
    ramp = np.linspace(least, most, int(np.prod(shape))).reshape(shape)
    image = np.clip(ramp + rng.normal(0, (most - least) / 50, shape), least, most)
    image.flat[:2] = least, most
    kind = f"{'i' if signed else 'u'}{1 if bits <= 8 else 2}"
    return image.astype(kind)


SHAPES = [(37, 53), (64, 64), (1, 1), (200, 301), (33, 40, 3)]


def jpeg2000():
    for shape, bits, signed, kind in itertools.product(SHAPES, [8, 10, 12, 15, 16], [False, True], ["jp2", "j2k"]):
        if signed and (len(shape) == 3 or kind == "jp2"):
            continue
        image = samples(shape, bits, signed)
        path = folder / f"a.{kind}"
        path.write_bytes(imagecodecs.jpeg2k_encode(image, level=0, codecformat=kind, reversible=True, bitspersample=bits))
        result = read(path)
        check("JPEG 2000", np.array_equal(result, image) and result.dtype == image.dtype, (shape, bits, signed, kind, result.dtype))
    for shape in [(37, 53), (200, 301), (33, 40, 3)]:
        image = samples(shape, 16)
        coded = imagecodecs.jpeg2k_encode(image, level=60, codecformat="j2k", reversible=False)
        path = folder / "a.j2k"
        path.write_bytes(coded)
        # OpenJPEG takes the middle of a step of quantization, and gpuimg's library its lower end.
        errors = [np.sqrt(np.mean((result.astype(float) - image) ** 2)) for result in (read(path), imagecodecs.jpeg2k_decode(coded))]
        check("JPEG 2000, lossy", errors[0] <= 2.5 * errors[1], (shape, errors))


def dicom(frames, bits, signed, syntax, coded):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    meta.TransferSyntaxUID = syntax
    data = Dataset()
    data.file_meta = meta
    data.SOPClassUID, data.SOPInstanceUID = SecondaryCaptureImageStorage, "1.2.3"
    data.Rows, data.Columns = frames.shape[1:3]
    data.SamplesPerPixel = 1 if frames.ndim == 3 else 3
    data.PhotometricInterpretation = "MONOCHROME2" if frames.ndim == 3 else "RGB"
    if frames.ndim == 4:
        data.PlanarConfiguration = 0
    data.BitsAllocated, data.BitsStored, data.HighBit = frames.dtype.itemsize * 8, bits, bits - 1
    data.PixelRepresentation = int(signed)
    data.NumberOfFrames = len(frames)
    data.PixelData = encapsulate(coded)
    data["PixelData"].is_undefined_length = True
    path = folder / "a.dcm"
    data.save_as(path, enforce_file_format=True)
    return path


def dicom_frames():
    shapes = [(37, 53), (64, 65), (20, 31, 3)]
    for shape, bits, signed, count in itertools.product(shapes, [8, 12, 16], [False, True], [1, 3]):
        if signed and len(shape) == 3:
            continue
        frames = np.stack([samples(shape, bits, signed) for _ in range(count)])
        coded = [imagecodecs.jpeg2k_encode(frame, level=0, codecformat="j2k", reversible=True, bitspersample=bits) for frame in frames]
        for syntax in [JPEG2000Lossless, JPEG2000]:
            path = dicom(frames, bits, signed, syntax, coded)
            result = read(path)
            expected = frames[0] if count == 1 else frames
            check("DICOM, JPEG 2000", np.array_equal(result, expected), (shape, bits, signed, count))
            try:
                other = pydicom.dcmread(path).pixel_array
            except RuntimeError:
                # None of its decoders is installed, or takes such frames.
                continue
            check("DICOM, JPEG 2000, pydicom", np.array_equal(result, other), (shape, bits, signed, count))


def jpeg_ls():
    """Frames of noise, of ramps with runs, and of one value; every number of bits."""
    shapes = [(37, 53), (64, 65), (1, 9), (9, 1), (200, 301), (20, 31, 3)]
    for shape, bits, near in itertools.product(shapes, [8, 9, 12, 15, 16], [0, 1, 3]):
        if len(shape) == 3 and bits != 8:
            continue
        most = (1 << bits) - 1
        noise = samples(shape, bits)
        steps = noise >> (bits - 2) << (bits - 3)
        flat = np.full(shape, most // 3, noise.dtype)
        half = np.where(np.arange(shape[1]).reshape(-1, *[1] * (len(shape) - 2)) % 40 < 30, flat, noise)
        for frame in [noise, steps, flat, half]:
            frame = np.ascontiguousarray(frame)
            coded = imagecodecs.jpegls_encode(frame, level=near)
            expected = imagecodecs.jpegls_decode(coded)
            syntax = JPEGLSNearLossless if near else JPEGLSLossless
            # The encoder stores words of 16 bits.
            stored = 8 if bits == 8 else 16
            result = read(dicom(frame[None], stored, False, syntax, [coded]))
            check("DICOM, JPEG-LS", np.array_equal(result, expected), (shape, bits, near))
            check("DICOM, JPEG-LS", near or np.array_equal(result, frame), (shape, bits, near))
            path = folder / "a.jls"
            path.write_bytes(coded)
            check("JPEG-LS", np.array_equal(read(path), expected), (shape, bits, near))


def jpegxl():
    for shape, bits in itertools.product([*SHAPES, (33, 40, 4), (33, 40, 2)], [8, 16]):
        image = samples(shape, bits)
        path = folder / "a.jxl"
        path.write_bytes(imagecodecs.jpegxl_encode(image, lossless=True))
        result = read(path)
        check("JPEG XL", np.array_equal(result, image) and result.dtype == image.dtype, (shape, bits, result.shape))
    for shape, effort in itertools.product([(37, 53), (300, 401), (33, 40, 3)], [1, 5, 7]):
        image = samples(shape, 16)
        path.write_bytes(imagecodecs.jpegxl_encode(image, lossless=True, effort=effort))
        check("JPEG XL", np.array_equal(read(path), image), (shape, effort))
    image = rng.normal(0, 1, (37, 53)).astype("f4")
    path.write_bytes(imagecodecs.jpegxl_encode(image, lossless=True))
    check("JPEG XL, floating point", np.array_equal(read(path), image), "f4")
    for shape in [(200, 301), (33, 40, 3)]:
        coded = imagecodecs.jpegxl_encode(samples(shape, 8), distance=1.0)
        path.write_bytes(coded)
        difference = np.abs(read(path).astype(int) - imagecodecs.jpegxl_decode(coded))
        check("JPEG XL, lossy", difference.max() <= 2, (shape, difference.max()))


def damaged():
    image = samples((40, 50), 12)
    files = {
        "a.jp2": imagecodecs.jpeg2k_encode(image, level=0, codecformat="jp2", reversible=True, bitspersample=12),
        "a.jxl": imagecodecs.jpegxl_encode(image, lossless=True),
    }
    for name, whole in files.items():
        path = folder / name

        def outcome(content):
            path.write_bytes(content)
            done = start("sum", path, "--quiet")
            check("damage", done.returncode in (0, 1) and "panic" not in done.stderr, (name, done.stderr))
            return done.returncode

        for size in range(0, len(whole) - 1, 23):
            check("truncated", outcome(whole[:size]) == 1, (name, size))
        for at in [*range(200), *range(200, len(whole), 17)]:
            changed = bytearray(whole)
            changed[at] ^= int(rng.integers(1, 256))
            outcome(bytes(changed))


jpeg2000()
dicom_frames()
jpeg_ls()
jpegxl()
damaged()
print(", ".join(f"{name}: {count}" for name, count in counts.items()))
