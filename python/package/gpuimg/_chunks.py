"""Chunks of arrays as image files, for the codecs of Zarr and numcodecs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Formats that keep every sample, and the sample types of each.
LOSSLESS = {
    "png": ("uint8", "uint16"),
    "tiff": ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"),
}


def checked_options(format: str, png: str | None, tiff: str | None) -> dict[str, Any]:
    """The options of a codec as its configuration."""
    if format not in LOSSLESS:
        raise ValueError(f"format expects {' or '.join(LOSSLESS)}, got {format!r}")
    return {"format": format, **({"png": png} if png else {}), **({"tiff": tiff} if tiff else {})}


def encode_chunk(chunk: Any, options: dict[str, Any]) -> bytes:
    """The file of a chunk of height × width, or height × width × 1 to 4 channels, after any number of axes of length 1."""
    import gpuimg

    format = options["format"]
    if chunk.dtype.name not in LOSSLESS[format]:
        raise ValueError(f"{format} files cannot hold {chunk.dtype} samples: expected {', '.join(LOSSLESS[format])}")
    shape = chunk.shape
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) < 2 or len(shape) > 3 or (len(shape) == 3 and shape[-1] > 4):
        raise ValueError(f"a chunk of shape {chunk.shape} is not one image: expected height × width, or height × width × 1 to 4 channels")
    return gpuimg.encode(chunk.reshape(shape), **options)


def decode_chunk(data: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The samples of a file, which must be those of a chunk, as a NumPy array."""
    import math

    import numpy

    import gpuimg

    samples = numpy.asarray(gpuimg.decode(data, max_pixels=math.prod(shape)))
    if samples.dtype != dtype.newbyteorder("=") or samples.size != math.prod(shape):
        raise ValueError(f"the file has {samples.dtype} samples of shape {samples.shape}, but the chunk is {dtype} of shape {shape}")
    return samples.astype(dtype, copy=False).reshape(shape)
