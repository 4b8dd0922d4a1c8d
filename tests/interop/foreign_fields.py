"""Files of fields that other programs write, through gpuimg: OpenEXR, Radiance HDR, DICOM, and TIFFs that are no plain RGB.

Needs numpy, OpenEXR, opencv-python-headless, pydicom, python-gdcm, tifffile, imagecodecs and Pillow. Usage:
    python tests/interop/foreign_fields.py path/to/gpuimg
Writes each kind of file with the program that knows it best, has gpuimg flip it (to .npy, so that NumPy reads
the samples themselves), and compares with NumPy's flip of what that program reads.
"""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["OPENCV_IO_ENABLE_OPENEXR"] = "1"

import cv2
import gdcm
import numpy as np
import OpenEXR
import PIL.Image
import pydicom
import pydicom.data
import pydicom.encaps
import pydicom.uid
import tifffile

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
counts = {}
rng = np.random.default_rng(5)


def flip(source, *options):
    done = subprocess.run(
        [gpuimg, "flip", "vertical", "--overwrite", *options, source, folder / "out.npy"], capture_output=True, text=True
    )
    assert done.returncode == 0, (source, done.stderr)
    return np.load(folder / "out.npy")


def check(name, found, expected, what, within=0):
    counts[name] = counts.get(name, 0) + 1
    same = found.dtype == expected.dtype and found.shape == expected.shape
    if same and expected.dtype.kind == "f" and within == 0:
        same = found.tobytes() == expected.tobytes()
    elif same:
        same = np.abs(found.astype(np.int64) - expected.astype(np.int64)).max() <= within
    if not same:
        sys.exit(f"{name} differs: {what}: {found.dtype} {found.shape} {expected.dtype} {expected.shape}")


def picture(shape, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 100, shape).astype(dtype)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(least, most, shape, dtype, endpoint=True)


def exr():
    path = folder / "in.exr"
    lossless = ["NO", "RLE", "ZIPS", "ZIP", "PIZ"]
    lossy = ["PXR24", "B44", "B44A", "DWAA", "DWAB"]
    for compression, dtype, names, storage in itertools.product(
        lossless + lossy, ("f2", "f4", "u4"), ("Y", "YA", "RGB", "RGBA"), (OpenEXR.scanlineimage, OpenEXR.tiledimage)
    ):
        if compression in lossy and dtype == "u4":
            continue
        channels = {name: picture((67, 53), dtype) for name in names}
        header = {"compression": getattr(OpenEXR, compression + "_COMPRESSION"), "type": storage}
        if storage == OpenEXR.tiledimage:
            header["tiles"] = OpenEXR.TileDescription()
        OpenEXR.File(header, channels).write(str(path))
        # What the library itself reads, which for lossy compressions is not what was written.
        with OpenEXR.File(str(path), separate_channels=True) as opened:
            stored = {name: opened.channels()[name].pixels for name in names}
        wide = "u4" if dtype == "u4" else "f4"
        expected = np.stack([stored[name] for name in names], -1).astype(wide)[::-1]
        if len(names) == 1:
            expected = expected[..., 0]
        done = subprocess.run(
            [gpuimg, "flip", "vertical", "--overwrite", path, folder / "out.tif"], capture_output=True, text=True
        )
        if compression in lossy and done.returncode != 0:
            assert "not supported" in done.stderr, done.stderr
            counts["OpenEXR, refused"] = counts.get("OpenEXR, refused", 0) + 1
            continue
        assert done.returncode == 0, (compression, dtype, names, done.stderr)
        found = tifffile.imread(folder / "out.tif")
        if compression in ("DWAA", "DWAB", "B44", "B44A") and found.shape == expected.shape:
            close = np.abs(found - expected).max() <= 1e-2 * np.abs(expected).max()
            assert close, (compression, dtype, names, np.abs(found - expected).max())
            counts["OpenEXR, lossy, nearly"] = counts.get("OpenEXR, lossy, nearly", 0) + 1
            continue
        check("OpenEXR → gpuimg → tifffile", found, expected, (compression, dtype, names, storage))


def hdr():
    path = folder / "in.hdr"
    for shape in ((1, 1), (5, 7), (67, 53), (9, 300)):
        cv2.imwrite(str(path), np.abs(picture((*shape, 3), "f4")))
        expected = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)[::-1, :, ::-1]
        check("OpenCV's HDR → gpuimg → NumPy", flip(path), np.ascontiguousarray(expected), shape)


def dicom_file(image, syntax, stored, frames=1, **elements):
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    data = pydicom.Dataset()
    data.file_meta = meta
    data.SOPClassUID = meta.MediaStorageSOPClassUID
    data.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    data.PatientName = "Doe^Jane"
    colours = image.ndim == 3 and image.shape[-1] == 3
    data.Rows, data.Columns = image.shape[1:3] if frames > 1 else image.shape[:2]
    data.SamplesPerPixel = 3 if colours else 1
    data.PhotometricInterpretation = "RGB" if colours else "MONOCHROME2"
    if colours:
        data.PlanarConfiguration = 0
    if frames > 1:
        data.NumberOfFrames = frames
    data.BitsAllocated = 8 * image.dtype.itemsize
    data.BitsStored, data.HighBit = stored, stored - 1
    data.PixelRepresentation = int(image.dtype.kind == "i")
    for name, value in elements.items():
        setattr(data, name, value)
    big = syntax == pydicom.uid.ExplicitVRBigEndian
    data.PixelData = image.astype(image.dtype.newbyteorder(">" if big else "<")).tobytes()
    if len(data.PixelData) % 2:
        data.PixelData += b"\0"
    data["PixelData"].VR = "OB" if image.dtype.itemsize == 1 else "OW"
    path = folder / "in.dcm"
    implicit = syntax == pydicom.uid.ImplicitVRLittleEndian
    data.save_as(path, implicit_vr=implicit, little_endian=not big, enforce_file_format=True)
    return path


def dicom():
    plain = [pydicom.uid.ExplicitVRLittleEndian, pydicom.uid.ImplicitVRLittleEndian, pydicom.uid.ExplicitVRBigEndian]
    for syntax, (dtype, stored), shape in itertools.product(
        plain, (("u1", 8), ("i1", 8), ("u2", 16), ("u2", 12), ("i2", 16), ("i2", 12)), ((67, 53), (67, 53, 3), (5, 20, 30))
    ):
        if len(shape) == 3 and shape[-1] == 3 and dtype != "u1":
            continue
        least, most = (-(1 << stored - 1), (1 << stored - 1) - 1) if dtype[0] == "i" else (0, (1 << stored) - 1)
        image = rng.integers(least, most, shape, dtype, endpoint=True)
        frames = shape[0] if shape[0] == 5 else 1
        path = dicom_file(image, syntax, stored, frames)
        expected = pydicom.dcmread(path).pixel_array
        expected = np.flip(expected, 1 if frames > 1 else 0).astype(dtype)
        check("pydicom → gpuimg → NumPy", flip(path), expected, (syntax.name, dtype, stored, shape))
    for slope, intercept, dtype, stored in ((1, -1024, "u2", 12), (1, -1024, "i2", 16), (2, 5, "u2", 12), (1, 100, "u1", 8)):
        image = rng.integers(0, 200 if dtype == "u1" else 2000, (67, 53), dtype)
        path = dicom_file(image, plain[0], stored, RescaleSlope=slope, RescaleIntercept=intercept)
        expected = pydicom.pixels.apply_modality_lut(image, pydicom.dcmread(path))[::-1].astype(np.int64)
        found = flip(path)
        assert found.astype(np.int64).tolist() == expected.tolist(), (slope, intercept, dtype, found.dtype)
        counts["pydicom's modality values"] = counts.get("pydicom's modality values", 0) + 1
    for dtype, shape in itertools.product(("u1", "u2", "i2"), ((67, 53), (4, 20, 30))):
        image = picture(shape, dtype)
        path = dicom_file(image, plain[0], 8 * image.dtype.itemsize, shape[0] if shape[0] == 4 else 1)
        data = pydicom.dcmread(path)
        data.compress(pydicom.uid.RLELossless, encoding_plugin="pydicom")
        data.save_as(path)
        check("pydicom's runs → gpuimg → NumPy", flip(path), np.flip(image, len(shape) - 2), (dtype, shape))
    kinds = (("u1", 8), ("u2", 16), ("u2", 12), ("u2", 10), ("i2", 16), ("i2", 12))
    shapes = ((68, 54), (4, 20, 30), (68, 54, 3), (2, 1))
    syntaxes = (pydicom.uid.JPEGLossless, pydicom.uid.JPEGLosslessSV1)
    for (dtype, stored), shape, syntax in itertools.product(kinds, shapes, syntaxes):
        if len(shape) == 3 and shape[-1] == 3 and dtype != "u1":
            continue
        least, most = (-(1 << stored - 1), (1 << stored - 1) - 1) if dtype[0] == "i" else (0, (1 << stored) - 1)
        image = rng.integers(least, most, shape, dtype, endpoint=True)
        path = dicom_file(image, plain[0], stored, shape[0] if shape[0] == 4 else 1)
        compress_losslessly(path, syntax)
        expected = np.flip(image, 1 if shape[0] == 4 else 0)
        check("GDCM's lossless JPEG → gpuimg → NumPy", flip(path), expected, (dtype, stored, shape, syntax.name))
    path = pydicom.data.get_testdata_file("SC_rgb_jpeg_gdcm.dcm")
    check("pydicom's sample of lossless JPEG → gpuimg → NumPy", flip(path), pydicom.dcmread(path).pixel_array[::-1], "SC")


def compress_losslessly(path, syntax):
    """Has GDCM compress the frames of a file, which is written anew."""
    reader = gdcm.ImageReader()
    reader.SetFileName(str(path))
    assert reader.Read()
    change = gdcm.ImageChangeTransferSyntax()
    change.SetTransferSyntax(gdcm.TransferSyntax(gdcm.TransferSyntax.GetTSType(str(syntax))))
    change.SetInput(reader.GetImage())
    assert change.Change()
    fragments = change.GetOutput().GetDataElement().GetSequenceOfFragments()
    buffers = [fragments.GetFragment(i).GetByteValue().GetBuffer() for i in range(fragments.GetNumberOfFragments())]
    # Some versions of its binding take bytes for text.
    frames = [it if isinstance(it, bytes) else it.encode("utf-8", "surrogateescape") for it in buffers]
    data = pydicom.dcmread(path)
    data.file_meta.TransferSyntaxUID = syntax
    data.PixelData = pydicom.encaps.encapsulate(frames)
    data["PixelData"].VR = "OB"
    data["PixelData"].is_undefined_length = True
    data.save_as(path)


def tiffs():
    path = folder / "in.tif"
    shapes = [(count, planes) for count in (3, 4, 5, 12) for planes in ("contig", "separate")]
    for (count, planes), dtype, compression in itertools.product(
        shapes, ("u1", "u2", "i2", "f4"), (None, "zlib", "lzw")
    ):
        bands = picture((count, 67, 53), dtype)
        image = bands if planes == "separate" else np.ascontiguousarray(np.moveaxis(bands, 0, -1))
        tifffile.imwrite(
            path,
            image,
            photometric="minisblack",
            planarconfig=planes,
            compression=compression,
            extrasamples=(0,) * (count - 1),
            metadata=None if compression else {"axes": "YXS"} if planes == "contig" else {"axes": "SYX"},
        )
        if tifffile.TiffFile(path).pages[0].samplesperpixel != count:
            continue
        expected = np.flip(bands, 1)
        check("bands of tifffile → gpuimg → NumPy", flip(path), expected, (count, planes, dtype, compression))
    for dtype, order, tile in itertools.product(("f2", "f4", "f8"), "<>", (None, (32, 48))):
        image = picture((67, 53), "f2" if dtype == "f2" else "f4").astype(dtype)
        tifffile.imwrite(path, image, byteorder=order, tile=tile)
        check("tifffile's floats → gpuimg → NumPy", flip(path), image[::-1].astype("f8" if dtype == "f8" else "f4"), (dtype, order, tile))
    for dtype in ("u1", "u2"):
        image = picture((67, 53, 4), dtype)
        tifffile.imwrite(path, image, photometric="separated", compression="zlib")
        out = folder / "out.tif"
        subprocess.run([gpuimg, "rotate", "90", "--overwrite", path, out], check=True)
        assert tifffile.TiffFile(out).pages[0].photometric == tifffile.PHOTOMETRIC.SEPARATED
        check("CMYK of tifffile → gpuimg → tifffile", tifffile.imread(out), np.rot90(image, -1), dtype)
    for compression, shape in itertools.product(("group3", "group4"), ((1, 1), (67, 53), (300, 1001), (64, 64))):
        image = (np.cumsum(rng.integers(-1, 2, shape), 1) % 7 > 3) if shape[0] > 1 else np.ones(shape, bool)
        PIL.Image.fromarray(image).save(path, compression=compression)
        expected = np.array(PIL.Image.open(path)).astype(np.uint8)[::-1] * np.uint8(255)
        found = flip(path, "--format", "npy") if tifffile.TiffFile(path).pages[0].photometric == 1 else None
        if found is None:
            # 0 is white: TIFF alone keeps it.
            subprocess.run([gpuimg, "flip", "vertical", "--overwrite", path, folder / "out.tif"], check=True)
            found = ~tifffile.imread(folder / "out.tif")
        check("libtiff's fax → gpuimg", found, expected, (compression, shape))
    ramp = np.add.outer(np.arange(67), 2 * np.arange(53)) % 256
    for photometric, tile in itertools.product(("minisblack", "rgb", "ycbcr"), (None, (32, 48))):
        image = ramp.astype(np.uint8)
        if photometric != "minisblack":
            image = np.clip(np.stack([ramp, ramp // 2, 255 - ramp], -1), 0, 255).astype(np.uint8)
        tifffile.imwrite(path, image, photometric=photometric, compression="jpeg", tile=tile)
        expected = tifffile.imread(path)[::-1]
        check("JPEG of tifffile → gpuimg → NumPy", flip(path), expected, (photometric, tile), within=4)


    image = np.clip(np.stack([ramp, ramp // 2, 255 - ramp], -1), 0, 255).astype(np.uint8)
    tifffile.imwrite(path, image, photometric="rgb", compression="jpeg", compressionargs={"outcolorspace": "rgb"})
    if tifffile.TiffFile(path).pages[0].photometric == tifffile.PHOTOMETRIC.RGB:
        check("JPEG of tifffile → gpuimg → NumPy", flip(path), tifffile.imread(path)[::-1], "RGB", within=2)


for kind in (exr, hdr, dicom, tiffs):
    kind()
for name, count in counts.items():
    print(f"{count:5} {name}")
