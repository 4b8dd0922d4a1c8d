"""NumPy arrays, FITS (also in compressed tiles), NIfTI, JPEG, BMP, GIF, WebP, TGA, QOI, PNM, MetaImage, NRRD and palette TIFFs of other programs through gpuimg, and gpuimg's
through other programs.

Needs numpy, astropy, nibabel, Pillow and SimpleITK. Usage:
    python tests/interop/foreign_formats.py path/to/gpuimg
Writes each kind of file with the program that knows it best, has gpuimg flip it (to .npy, so that NumPy reads
the samples themselves), and compares with NumPy's flip of what that program reads.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile
import warnings

import nibabel
import numpy as np
import PIL.Image
import SimpleITK
from astropy.io import fits

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
counts = {}


def flip(source, target, *options):
    done = subprocess.run(
        [gpuimg, "flip", "vertical", "--overwrite", *options, source, target],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (source, target, done.stderr)


def check(name, image, expected, what, within=0):
    counts[name] = counts.get(name, 0) + 1
    same = image.dtype == expected.dtype and image.shape == expected.shape
    if image.dtype.kind == "f" and same:
        same = image.tobytes() == expected.tobytes()
        image = expected = np.zeros(1, int)
    if not same or np.abs(image.astype(int) - expected.astype(int)).max() > within:
        sys.exit(f"{name} differs: {what}: {image.dtype} {image.shape} {expected.dtype} {expected.shape}")


def picture(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind == "f":
        # Every exponent, NaN and infinities; of 64 bits what 32 hold.
        return rng.integers(0, 2**32, shape, np.uint32).view("f4").astype(dtype)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(least, most, shape, dtype, endpoint=True)


def smooth(height, width, channels):
    """What a lossy format holds nearly."""
    ramp = np.add.outer(2 * np.arange(height), np.arange(width))[..., None] + 30 * np.arange(channels)
    image = (ramp % 256 if channels < 0 else np.clip(ramp, 0, 255)).astype(np.uint8)
    return image[..., 0] if channels == 1 else image


def arrays():
    path, out = folder / "in.npy", folder / "out.npy"
    shapes = ((1, 1), (67, 53), (67, 53, 2), (67, 53, 3), (67, 53, 4), (5, 20, 30), (5, 20, 30, 3))
    for dtype, order, shape in itertools.product(("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"), "<>", shapes):
        image = picture(shape, np.dtype(dtype)).astype(order + dtype)
        np.save(path, image)
        flip(path, out)
        rows = 0 if len(shape) == 2 or (len(shape) == 3 and shape[-1] <= 4) else 1
        expected = np.flip(image, rows).astype(dtype)
        check("NumPy → gpuimg → NumPy", np.load(out), expected, (dtype, order, shape))
        if len(shape) < 4 and (len(shape) == 2 or rows):
            flip(path, folder / "out.fits")
            with fits.open(folder / "out.fits") as opened:
                opened.verify("exception")
                data = opened[0].data
                check("NumPy → gpuimg → astropy", data.astype(dtype), expected, (dtype, order, shape))
                assert expected.dtype.kind == "f" or data.astype(int).tolist() == expected.astype(int).tolist()
    np.save(path, picture((30, 20), np.uint8) > 99)
    flip(path, out)
    check("NumPy → gpuimg → NumPy", np.load(out), np.load(path)[::-1].astype(np.uint8), "bool")


def fits_files():
    path, out = folder / "in.fits", folder / "out.npy"
    types = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")
    for dtype, shape, place in itertools.product(types, ((1, 1), (67, 53), (4, 20, 30)), (0, 1)):
        image = picture(shape, np.dtype(dtype))
        if place == 0:
            parts = [fits.PrimaryHDU(image)]
        else:
            parts = [fits.PrimaryHDU(), fits.ImageHDU(image, name="SCI")]
        for number in range(50):
            parts[-1].header[f"KEY{number}"] = (number, "a comment")
        fits.HDUList(parts).writeto(path, overwrite=True, checksum=place == 0)
        flip(path, out)
        check("astropy → gpuimg", np.load(out), np.flip(image, len(shape) - 2), (dtype, shape, place))
        flip(path, folder / "out.fits")
        with fits.open(folder / "out.fits") as opened:
            opened.verify("exception")
            assert opened[0].header["KEY49"] == 49
            check("gpuimg → astropy", opened[0].data.astype(dtype), np.flip(image, len(shape) - 2), (dtype, shape, place))


def stars(shape, dtype):
    """A sky with noise and stars, as floating point."""
    rng = np.random.default_rng(sum(shape))
    sky = rng.normal(1000, 12, shape)
    sky[rng.random(shape) > 0.98] *= 40
    sky[rng.random(shape) > 0.98] = 0
    return sky.astype(dtype)


def compressed_fits():
    """Images in compressed tiles, as astropy reads them."""
    path, out = folder / "in.fits", folder / "out.npy"

    def through(image, compression, tile, what, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part = fits.CompImageHDU(image, compression_type=compression, tile_shape=tile, **options)
            part.header["OBJECT"] = "M 31"
            fits.HDUList([fits.PrimaryHDU(), part]).writeto(path, overwrite=True)
            with fits.open(path) as opened:
                expected = opened[1].data
        flip(path, out)
        expected = np.flip(expected, expected.ndim - 2).astype(expected.dtype.newbyteorder("="))
        check(f"astropy → gpuimg: {compression}", np.load(out).reshape(expected.shape), expected, what)

    sizes = (
        ((67, 53), (None, (1, 53), (16, 10), (67, 53), (67, 1), (100, 7))),
        ((3, 20, 30), (None, (1, 7, 9), (2, 7, 9), (3, 20, 30))),
        ((2, 3, 20, 30), ((1, 1, 8, 8), (2, 2, 9, 30))),
    )
    for shape, tiles in sizes:
        for tile, compression in itertools.product(tiles, ("RICE_1", "GZIP_1", "GZIP_2", "NOCOMPRESS", "PLIO_1", "HCOMPRESS_1")):
            flat = tile is None or all(length == 1 for length in tile[:-2])
            smallest = tile is None or min(min(tile[-2:]), *(n % t or t for n, t in zip(shape[-2:], tile[-2:])))
            if compression == "HCOMPRESS_1" and not (flat and (tile is None or smallest >= 4)):
                continue
            for dtype in ("u1", "i1", "i2", "u2", "i4", "u4"):
                image = picture(shape, np.dtype(dtype))
                if compression == "PLIO_1":
                    if dtype in ("i1", "u2", "u4"):
                        continue
                    # A mask: astropy 8.0 overruns its memory where PLIO_1 makes a tile longer.
                    mask = np.random.default_rng(5).random(shape) > 0.9
                    image = np.where(mask, np.abs(image.astype(int)) % 2 ** (7 if dtype == "u1" else 15), 0).astype(dtype)
                if compression == "HCOMPRESS_1" and dtype in ("i4", "u4"):
                    image = (image >> 12) << 2
                what = (dtype, shape, tile)
                through(image, compression, tile, what)
                if compression == "HCOMPRESS_1" and dtype in ("i2", "i4"):
                    through(stars(shape, dtype), compression, tile, (what, "lossy"), hcomp_scale=3)
                if compression == "RICE_1":
                    through(stars(shape, np.int32).astype(dtype), compression, tile, (what, "sky"))
                    through(np.full(shape, 77, dtype), compression, tile, (what, "flat"))
            for dtype, method in itertools.product(("f4", "f8"), (None, -1, 1, 2)):
                lossless = method is None
                if lossless and compression not in ("GZIP_1", "GZIP_2", "NOCOMPRESS"):
                    continue
                if compression in ("NOCOMPRESS", "PLIO_1") and not lossless:
                    continue
                image = stars(shape, dtype)
                # One tile is too noisy to be rounded, and some samples have no value.
                image[..., :3, :] *= 1e30
                image[..., 10, 5:9] = np.nan
                if lossless:
                    through(image, compression, tile, (dtype, shape, tile), quantize_level=0)
                else:
                    for seed in (1, 9999):
                        what = (dtype, shape, tile, method, seed)
                        through(image, compression, tile, what, quantize_level=4, quantize_method=method, dither_seed=seed)


def several_images():
    """A file of several images: each is a page."""
    path, out = folder / "in.fits", folder / "out.npy"
    images = [picture((20, 30), np.int16) for _ in range(3)] + [picture((2, 20, 30), np.int16)]
    column = fits.Column("a", "J", array=np.arange(9))
    table = fits.BinTableHDU.from_columns([column])
    parts = [fits.PrimaryHDU(images[0]), table, fits.ImageHDU(images[1]), fits.CompImageHDU(images[2]), fits.ImageHDU(images[3])]
    fits.HDUList(parts).writeto(path, overwrite=True)
    flip(path, out)
    expected = np.concatenate([image.reshape(-1, 20, 30) for image in images])[:, ::-1]
    check("astropy → gpuimg: several images", np.load(out), expected, "several images")
    # In FITS they stay images of their own, of any type and size.
    images[1] = picture((7, 9), np.float32)
    parts[2] = fits.ImageHDU(images[1], name="SCI")
    fits.HDUList(parts).writeto(path, overwrite=True)
    flip(path, folder / "out.fits")
    with fits.open(folder / "out.fits") as opened:
        opened.verify("exception")
        assert opened[1].name == "SCI" and len(opened) == 5
        for part, image in zip(opened, [*images[:3], *images[3]]):
            check("gpuimg → astropy: several images", part.data.astype(part.data.dtype.newbyteorder("=")), image[::-1], part.name)


def nifti():
    out = folder / "out.npy"
    types = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")
    shapes = ((53, 67), (30, 20, 4), (30, 20, 3, 2), (30, 20, 1, 2, 3))
    kinds = itertools.product((nibabel.Nifti1Image, nibabel.Nifti2Image), ("a.nii", "a.nii.gz"), "<>", types, shapes)
    for kind, name, order, dtype, shape in kinds:
        image = picture(shape, np.dtype(dtype)).astype(order + dtype)
        made = kind(image, np.diag([2, 3, 4, 1]), kind.header_class(endianness=order))
        made.header.set_data_dtype(image.dtype)
        made.header.set_slope_inter(1, 0)
        nibabel.save(made, folder / name)
        raw = np.asanyarray(nibabel.load(folder / name).dataobj.get_unscaled()).T
        assert raw.dtype == image.dtype, raw.dtype
        flip(folder / name, out)
        expected = np.flip(raw, raw.ndim - 2).astype(dtype)
        found = np.load(out)
        check("nibabel → gpuimg", found.reshape(expected.shape), expected, (kind.__name__, name, order, dtype, shape))


def pillow():
    out = folder / "out.npy"

    def through(name, what, image, within=0, mode=None, **options):
        path = folder / name
        image.save(path, **options)
        with PIL.Image.open(path) as opened:
            expected = np.asarray(opened.convert(mode) if mode else opened)
        flip(path, out)
        check(f"Pillow → gpuimg: {name.split('.')[1]}", np.load(out), expected[::-1], what, within)

    sizes = ((1, 1), (8, 8), (67, 53), (130, 257))
    for size in sizes:
        grey, colour, alpha = (PIL.Image.fromarray(picture((*size, n)[: 2 + (n > 1)], np.uint8)) for n in (1, 3, 4))
        palette = colour.quantize(31)
        for quality, progressive, sampling in itertools.product((50, 95), (False, True), (0, 1, 2)):
            options = dict(quality=quality, progressive=progressive, subsampling=sampling)
            near = PIL.Image.fromarray(smooth(*size, 3))
            # Libraries differ in how they round the inverse transform and spread the colours of blocks.
            through("a.jpg", options, near, within=4 if sampling == 0 else 24, **options)
        through("a.jpg", "grey", PIL.Image.fromarray(smooth(*size, 1)), within=2, quality=90)
        through("a.jpg", "restarts", PIL.Image.fromarray(smooth(*size, 1)), within=2, restart_marker_blocks=1)
        for image in (grey, colour, alpha):
            through("a.bmp", image.mode, image)
        through("a.bmp", "palette", palette, mode="RGB")
        for image, rle in itertools.product((grey, colour, alpha), (None, "tga_rle")):
            through("a.tga", (image.mode, rle), image, compression=rle)
        through("a.tga", "palette", palette, mode="RGB")
        for image in (colour, alpha):
            # Hidden colours are kept: exact.
            through("a.webp", image.mode, image, lossless=True, exact=True)
        through("a.webp", "lossy", PIL.Image.fromarray(smooth(*size, 3)), within=24, quality=90)
        for image in (colour, alpha):
            through("a.qoi", image.mode, image)
        for interlace in (0, 1):
            through("a.gif", ("interlace", interlace), palette, mode="RGB", interlace=interlace)
        through("a.gif", "transparent", palette, mode="RGBA", transparency=3)
        through("a.gif", "animation", palette, mode="RGB", save_all=True, append_images=[palette.rotate(180)])
        through("a.pbm", "bitmap", grey.convert("1"), mode="L")

        # And back.
        for image, names in ((grey, ("bmp", "jpg")), (colour, ("bmp", "jpg", "pam")), (alpha, ("bmp",))):
            near = image
            for name in names:
                if name == "jpg":
                    near = PIL.Image.fromarray(smooth(*size, 1 if image is grey else 3))
                near.save(folder / "in.png")
                flip(folder / "in.png", folder / f"out.{name}", "--quality", "100")
                if name == "pam":
                    continue
                with PIL.Image.open(folder / f"out.{name}") as opened:
                    expected = np.asarray(near)[::-1]
                    check(f"gpuimg → Pillow: {name}", np.asarray(opened), expected, size, 4 if name == "jpg" else 0)
    # Orientation, resolution and profile of a JPEG, in a JPEG and in a PNG.
    exif = PIL.Image.Exif()
    exif[0x0112] = 3
    near = PIL.Image.fromarray(smooth(40, 30, 3))
    near.save(folder / "a.jpg", exif=exif, dpi=(300, 200), icc_profile=b"\0" * 100_000, quality=95)
    for name in ("b.jpg", "b.png"):
        flip(folder / "a.jpg", folder / name)
        with PIL.Image.open(folder / name) as opened:
            assert opened.getexif()[0x0112] == 3 and opened.info["icc_profile"] == b"\0" * 100_000
            assert [round(value) for value in opened.info["dpi"]] == [300, 200], opened.info["dpi"]
            counts["metadata of a JPEG"] = counts.get("metadata of a JPEG", 0) + 1


def volumes():
    """ITK's MetaImage and NRRD, attached and detached."""
    out = folder / "out.npy"
    shapes = ((67, 53), (4, 20, 30))
    types = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")
    names = ("a.mha", "a.mhd", "a.nrrd", "a.nhdr")
    for dtype, shape, name, compressed in itertools.product(types, shapes, names, (False, True)):
        image = picture(shape, np.dtype(dtype))
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(image), str(folder / name), useCompression=compressed)
        flip(folder / name, out)
        what = (dtype, shape, name, compressed)
        check("ITK → gpuimg", np.load(out), np.flip(image, len(shape) - 2), what)
    for dtype, name in itertools.product(("u1", "u2"), ("a.mha", "a.nrrd")):
        image = picture((67, 53, 3), np.dtype(dtype))
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(image, isVector=True), str(folder / name), useCompression=False)
        flip(folder / name, out)
        check("ITK → gpuimg: vectors", np.load(out), image[::-1], (dtype, name))


def palettes():
    """TIFFs with a palette, and with their bits from the other end."""
    out = folder / "out.npy"
    for colours, compression in itertools.product((2, 16, 200), ("raw", "tiff_lzw", "packbits")):
        image = PIL.Image.fromarray(picture((67, 53, 3), np.uint8)).quantize(colours)
        image.save(folder / "a.tif", compression=compression)
        flip(folder / "a.tif", out)
        check("Pillow → gpuimg: palette", np.load(out), np.asarray(image.convert("RGB"))[::-1], (colours, compression))


arrays()
fits_files()
compressed_fits()
several_images()
nifti()
pillow()
volumes()
palettes()
for name, count in sorted(counts.items()):
    print(f"{count:5} {name}")
