"""Read, write and process images of 8 to 64 bits, exactly, with the bytes of the program gpuimg.

>>> import gpuimg, numpy
>>> image = gpuimg.read("scan.tif")
>>> image.shape, image.dtype
((2048, 2048), 'uint16')
>>> array = numpy.asarray(image)                    # shares the memory of the image; read-only
>>> out = gpuimg.normalize(array, clip=(0.1, 99.9))  # an array gives an Image
>>> gpuimg.write("out.png", out, metadata=image.metadata)
>>> gpuimg.run(array, "normalize --clip 0.1:99.9 + rotate 90").shape
(2048, 2048)

An image is an array of height × width, or height × width × 1 to 4 channels (grey; grey and alpha; RGB; RGB and alpha), of
uint8, int8, uint16, int16, uint32, int32, float32 or float64. Arguments may be an Image, and anything with the buffer protocol,
``__array_interface__``, ``__array__`` or ``__dlpack__`` in host memory: NumPy, PyTorch, Pillow. Arrays may have any strides; those
without gaps are read where they are. A channel axis of one channel is dropped.

Results are an Image, which lends its samples through the buffer protocol: ``numpy.asarray(result)`` copies nothing, and keeps the
Image alive. It is read-only; ``numpy.array(result)`` is a copy that can be changed. ``from_dlpack`` of NumPy, PyTorch and JAX take it too.

``device="cuda"`` keeps results in the memory of a GPU: ``gpuimg.read("scan.png", device="cuda")`` decodes there, and
``torch.from_dlpack(image)`` or ``cupy.from_dlpack(image)`` copies nothing. Arrays of CuPy, PyTorch and JAX on a GPU are arguments, too.

The interpreter's lock is released during work, and calls from several threads run at the same time.
"""

from __future__ import annotations

from . import _verbs
from ._errors import (
    AccessError,
    ArgumentError,
    DeviceError,
    Error,
    ExistsError,
    ImageWarning,
    NotFoundError,
    OutOfMemoryError,
)
from ._gpuimg import VERSION as __version__
from ._gpuimg import Image, Metadata, Stream, set_threads
from ._gpuimg import apply as _apply
from ._gpuimg import calibrate as _calibrate
from ._gpuimg import combine as _combine
from ._gpuimg import decode as _decode
from ._gpuimg import encode as _encode
from ._gpuimg import histogram as _histogram
from ._gpuimg import info as _info
from ._gpuimg import pages as _pages
from ._gpuimg import process as _process
from ._gpuimg import project as _project
from ._gpuimg import read as _read
from ._gpuimg import stream as _stream
from ._gpuimg import sum as _sum
from ._gpuimg import write as _write
from ._results import ChannelSum, FileResult, Histogram, Sums
from ._verbs import *
from ._words import dtype_name as _dtype_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Callable, Iterable, Sequence

    Path = str | os.PathLike[str]

__all__ = [
    "AccessError",
    "ArgumentError",
    "ChannelSum",
    "DeviceError",
    "Error",
    "ExistsError",
    "FileResult",
    "Histogram",
    "Image",
    "ImageWarning",
    "Metadata",
    "NotFoundError",
    "OutOfMemoryError",
    "Stream",
    "Sums",
    "calibrate",
    "combine",
    "decode",
    "encode",
    "histogram",
    "info",
    "process",
    "project",
    "read",
    "read_pages",
    "run",
    "set_threads",
    "stream",
    "sum",
    "write",
]
__all__ += _verbs.__all__


def _reading(
    page: int | None = None,
    axes: str | None = None,
    level: int = 0,
    max_pixels: int | None = None,
    keep_going: bool = False,
    raw: str | None = None,
) -> dict[str, Any]:
    return {"page": page, "axes": axes, "level": level, "max_pixels": max_pixels, "keep_going": keep_going, "raw": raw}


def _writing(
    format: str | None = None,
    png: str | None = None,
    tiff: str | None = None,
    quality: int | None = None,
    overwrite: bool = False,
    sync: bool = False,
    *,
    tiff_layout: str | None = None,
    zarr: str | None = None,
    zarr_chunk: int | None = None,
    zarr_shard: int | None = None,
    zarr_levels: int | None = None,
) -> dict[str, Any]:
    return {
        "format": format,
        "png": png,
        "tiff": tiff,
        "tiff_layout": tiff_layout,
        "zarr": zarr,
        "zarr_chunk": zarr_chunk,
        "zarr_shard": zarr_shard,
        "zarr_levels": zarr_levels,
        "quality": quality,
        "overwrite": overwrite,
        "sync": sync,
    }


def _wanted(ops: str, depth: int | None, fit: int | None, auto_orient: bool) -> dict[str, Any]:
    return {"ops": ops, "depth": depth, "fit": fit, "auto_orient": auto_orient}


def read(
    path: Path,
    *,
    page: int | None = None,
    axes: str | None = None,
    level: int = 0,
    dtype: Any = None,
    max_pixels: int | None = None,
    keep_going: bool = False,
    raw: str | None = None,
    device: str = "cpu",
) -> Image:
    """Read an image file, whose content decides its format.

    Args:
        page: the page of a stack, counted from 1 as on the command line; the first one without it.
        axes: the position of the page on the axes of a stack, as in "C=1,Z=3".
        dtype: convert the samples to a type that holds every value: "float32", or "int32" for "uint16".
        level: a level of a pyramid (OME-Zarr); 0 is the full size.
        max_pixels: refuse images with more pixels, before memory is allocated.
        keep_going: read damaged files as far as possible; the other samples are 0, and `Image.damage` has the damage.
        raw: read a file without a header, as in "640x480:u16le".
        device: "cpu", or "cuda" or "cuda:N" for an image in the memory of that GPU, which decodes large PNGs, and TIFFs with
            deflate or LZW.
    """
    return _read(path, _reading(page, axes, level, max_pixels, keep_going, raw), _dtype_name(dtype), device)


def read_pages(
    path: Path,
    *,
    axes: str | None = None,
    level: int = 0,
    dtype: Any = None,
    max_pixels: int | None = None,
    keep_going: bool = False,
    raw: str | None = None,
) -> list[Image]:
    """Read all pages of a stack. Options as for `read`. All verbs and `write` take the list."""
    return _pages(path, _reading(None, axes, level, max_pixels, keep_going, raw), _dtype_name(dtype))


def decode(
    data: Any,
    *,
    page: int | None = None,
    axes: str | None = None,
    dtype: Any = None,
    max_pixels: int | None = None,
    keep_going: bool = False,
    raw: str | None = None,
) -> Image:
    """Decode the bytes of an image file (bytes, bytearray, memoryview). Options as for `read`."""
    return _decode(data, _reading(page, axes, 0, max_pixels, keep_going, raw), _dtype_name(dtype))


def info(
    path: Path,
    *,
    range: bool = False,
    axes: str | None = None,
    level: int = 0,
    max_pixels: int | None = None,
    keep_going: bool = False,
    raw: str | None = None,
) -> list[dict[str, Any]]:
    """Describe the images of a file by its header, as ``gpuimg info --json`` does: format, width, height, pages, axes, metadata.

    A file has one image, whose pages may be many; HDF5 files can have several. ``info(path)[0]["width"]``

    Args:
        range: decode all pages, too, for "range", the smallest and the largest value.
        others: as for `read`.
    """
    import json

    reading = _reading(None, axes, level, max_pixels, keep_going, raw)
    return [json.loads(image) for image in _info(path, reading, range)]


def write(
    path: Path,
    image: Any,
    *,
    metadata: Metadata | None = None,
    format: str | None = None,
    png: str | None = None,
    tiff: str | None = None,
    tiff_layout: str | None = None,
    zarr: str | None = None,
    zarr_chunk: int | None = None,
    zarr_shard: int | None = None,
    zarr_levels: int | None = None,
    quality: int | None = None,
    overwrite: bool = False,
    sync: bool = False,
) -> None:
    """Write an image, or the pages of a stack, to a file, whose extension decides the format. It gets its name when it is complete.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        metadata: the metadata of another image; without it those of the Image.
        format: the format, whatever the extension is: "png", "tiff".
        png: "fast", "small" or "store".
        tiff: "none", "deflate", "lzw" or "zstd".
        tiff_layout: "strips", or "cog": a cloud-optimized TIFF of one image, with tiles and overviews.
        zarr: the compression of an OME-Zarr, "zstd", "blosc" or "none".
        zarr_chunk: the rows and columns of a chunk in an OME-Zarr; 1024 without it.
        zarr_shard: the rows and columns of a file that holds several chunks, a multiple of `zarr_chunk`.
        zarr_levels: the number of levels of an OME-Zarr; without it the image is halved until it fits into one chunk.
        quality: the quality of JPEG, 1 to 100.
        overwrite: replace an existing file; without it one is an `ExistsError`.
        sync: sync the file to the disk before it gets its name.

    Warns with `ImageWarning` what the format cannot store and changes the meaning of the file.
    """
    writing = _writing(
        format,
        png,
        tiff,
        quality,
        overwrite,
        sync,
        tiff_layout=tiff_layout,
        zarr=zarr,
        zarr_chunk=zarr_chunk,
        zarr_shard=zarr_shard,
        zarr_levels=zarr_levels,
    )
    for sentence in _write(path, image, writing, metadata):
        import warnings

        warnings.warn(sentence, ImageWarning, stacklevel=2)


def encode(
    image: Any,
    format: str,
    *,
    metadata: Metadata | None = None,
    png: str | None = None,
    tiff: str | None = None,
    tiff_layout: str | None = None,
    quality: int | None = None,
) -> bytes:
    """Encode an image, or the pages of a stack, as the bytes of a file. Options as for `write`."""
    return _encode(image, format, _writing(None, png, tiff, quality, tiff_layout=tiff_layout), metadata)


def run(
    image: Any,
    ops: str,
    *,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Any:
    """Run several operations, as ``gpuimg run`` does: ``run(array, "normalize --clip 0.1:99.9 + rotate 90")``.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        ops: the verbs with their options, separated by +.
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the first operation.
        fit: make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: bring the image upright first, as its orientation says.
        dtype: convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N" with the
            result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: for arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or a stream of
            PyTorch or CuPy), before the image is read and `out` is written. The result is complete when the function returns.
        out: a writable array of the result's shape and dtype, which receives the result and is returned.
    """
    return _apply(ops, image, depth, fit, auto_orient, _dtype_name(dtype), device, stream, out)


def calibrate(
    image: Any,
    *,
    bias: Any = None,
    dark: Any = None,
    flat: Any = None,
    flat_start: Any = None,
    flat_end: Any = None,
    offset: int = 0,
    hot: int | None = None,
    to: str | None = None,
    log: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Subtract a dark frame and divide by a flat field, sample by sample, correctly rounded.

    Args:
        image: an Image or an array of 8 or 16 bits, with `to` also of float32; a list for a stack.
        bias: the bias frame, which `dark` and `flat` still contain: it is subtracted from `flat` in place of `dark`, and from
            the image if there is no dark frame.
        dark: the dark frame, an image of the same shape and dtype, which is subtracted.
        flat: the flat field: images are divided by it (minus the dark frame) and multiplied by its mean, for each channel.
        flat_start, flat_end: the flat fields of the first and of the last image of a list, in place of `flat`; those of the
            others lie between them, as their index says.
        offset: added to every result, so that samples below the dark frame are not clamped to 0; −65535 to 65535.
        hot: replaces each sample that exceeds the median of its 8 neighbours by more than this with that median.
        to: "f32" for results in float32, which are not rounded to whole numbers and not clamped.
        log: give ln(flat / image), both minus the dark frame; an image less than 1 above the dark frame counts as 1. Requires
            a flat field and `to="f32"`.
        stream: for arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream, as for `run`.
    """
    result: Image = _calibrate(
        image, bias, dark, flat, flat_start, flat_end, offset, hot, to, log, _dtype_name(dtype), device, stream, out
    )
    return result


def combine(
    images: Iterable[Any],
    *,
    colours: Iterable[tuple[int, int, int]] | None = None,
    dtype: Any = None,
) -> Image:
    """Make an RGB image of grey images of the same shape and dtype.

    Args:
        images: three images for red, green and blue, or four with alpha; with colours any number. A list or another iterable,
            or an array whose first axis counts them.
        colours: a colour for each image, e.g. (0, 255, 0): each image is multiplied by its colour, and the products are added.
        dtype: convert the result to a type that holds every value.
    """
    named = None if colours is None else [(red, green, blue) for red, green, blue in colours]
    return _combine(images, named, _dtype_name(dtype))


def project(
    images: Iterable[Any],
    how: str,
    *,
    saturate: bool = False,
    scale: bool = False,
    to: int | str | None = None,
    sigma: float | None = None,
    nan: float | None = None,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
) -> Image:
    """Combine images of 8 or 16 bits or of float32 into one, pixel by pixel and channel by channel.

    Args:
        images: images of the same shape and dtype, as a list or another iterable, or an array whose first axis counts them.
        how: "sum", "mean" (rounded half up), "min", "max" or "median".
        saturate: clamp sums that exceed the dtype, instead of refusing them.
        scale: scale sums so that the largest magnitude becomes the largest value and 0 stays 0.
        to: bits of a sum: 16 or 32. Every sum fits in 32. "f32" for results in float32, which are not rounded.
        sigma: for means: reject the values of a pixel that are farther than this many standard deviations from their mean, up
            to 5 times.
        nan: replaces NaN and infinite samples, which are refused without it.
        dtype: convert the result to a type that holds every value.
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one.
        stream: for arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream, as for `run`.
    """
    type_name = None if to is None else str(to)
    return _project(images, how, saturate, scale, type_name, sigma, nan, _dtype_name(dtype), device, stream)


def sum(image: Any, *, nan: float | None = None, device: str = "auto") -> Sums:
    """Add up the samples exactly, and find their minimum, maximum and mean, in total (without alpha) and for each channel.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels.
        nan: replaces NaN and infinite samples, which are refused without it; 0 leaves them out of the sum.
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one.
    """
    total, channels = _sum(image, nan, device)
    return Sums(total, channels)


def histogram(image: Any, *, device: str = "auto") -> Histogram:
    """Count exactly how often each value occurs in each channel of an image with 8 or 16 bits."""
    return Histogram(*_histogram(image, device))


def stream(
    paths: Iterable[Path],
    ops: str = "",
    *,
    batch: int | None = None,
    workers: int | None = None,
    errors: str = "raise",
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    page: int | None = None,
    axes: str | None = None,
    level: int = 0,
    max_pixels: int | None = None,
    keep_going: bool = False,
    raw: str | None = None,
) -> Stream:
    """Read many files ahead, run operations on each, and iterate over the results in the order of the paths.

    At most 2 × workers + batch images are in memory, besides those that the caller keeps.

    Args:
        paths: paths, which are taken as they are needed.
        ops: the operations, as for `run`.
        batch: iterate over lists of so many images; the last one may be shorter.
        workers: how many files are read at the same time; by default one for each thread (`set_threads`).
        errors: "raise", or "return" to get the exception in the place of an image that cannot be read.
        device: as for `run`; "cuda" decodes and processes on the GPU, and gives images in its memory.
        others: as for `run` and `read`.
    """
    wanted = _wanted(ops, depth, fit, auto_orient)
    reading = _reading(page, axes, level, max_pixels, keep_going, raw)
    return _stream(paths, wanted, reading, _dtype_name(dtype), device, batch, workers, errors)


def process(
    inputs: Path | Iterable[Path],
    output: Path,
    ops: str = "",
    *,
    on_progress: Callable[[FileResult], object] | None = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    name: str | None = None,
    resume: bool = False,
    jobs: int | None = None,
    memory: str | None = None,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    device: str = "auto",
    format: str | None = None,
    png: str | None = None,
    tiff: str | None = None,
    tiff_layout: str | None = None,
    zarr: str | None = None,
    zarr_chunk: int | None = None,
    zarr_shard: int | None = None,
    zarr_levels: int | None = None,
    quality: int | None = None,
    overwrite: bool = False,
    sync: bool = False,
    axes: str | None = None,
    level: int = 0,
    max_pixels: int | None = None,
    keep_going: bool = False,
    raw: str | None = None,
) -> list[FileResult]:
    """Process files, or all images in folders, from file to file, on all cores and GPUs, as the command line does.

    Bad files are reported, and the others are processed: look at the status of each result.

    Args:
        inputs: a file or folder, or several.
        output: a folder, created if missing; for one input file it may be a file.
        ops: the operations, as for `run`.
        on_progress: called with the result of each file as soon as it is finished. An exception stops the batch after the files
            in progress, and is raised.
        include: of folders, only files that match this pattern, or one of these; `exclude` the other way round.
        name: the names of outputs, as in "{stem}.png".
        resume: skip files that an earlier run with the same options has done.
        jobs: how many files are processed at the same time.
        memory: the memory for all images in progress: "8G".
        others: as for `run`, `write` and `read`.
    """
    results: list[FileResult] = []

    def finished(fields: dict[str, Any]) -> None:
        result = FileResult(fields)
        results.append(result)
        if on_progress is not None:
            on_progress(result)

    selection = {
        "include": [include] if isinstance(include, str) else list(include),
        "exclude": [exclude] if isinstance(exclude, str) else list(exclude),
        "name": name,
        "jobs": jobs,
        "memory": memory,
        "resume": resume,
    }
    _process(
        [inputs] if isinstance(inputs, str) or hasattr(inputs, "__fspath__") else list(inputs),
        output,
        _wanted(ops, depth, fit, auto_orient),
        _reading(None, axes, level, max_pixels, keep_going, raw),
        _writing(
            format,
            png,
            tiff,
            quality,
            overwrite,
            sync,
            tiff_layout=tiff_layout,
            zarr=zarr,
            zarr_chunk=zarr_chunk,
            zarr_shard=zarr_shard,
            zarr_levels=zarr_levels,
        ),
        selection,
        device,
        finished,
    )
    return results
