"""A codec of numcodecs: chunks that are PNG or TIFF files, for Zarr 2, Kerchunk and N5.

>>> from gpuimg.numcodecs import ImageCodec
>>> zarr.create_array("a.zarr", shape=(9, 512, 512), chunks=(1, 512, 512), dtype="uint16", zarr_format=2, compressors=ImageCodec())

Its identifier is ``gpuimg``.
"""

from __future__ import annotations

from typing import Any

from numcodecs.abc import Codec  # type: ignore[import-untyped]
from numcodecs.compat import ndarray_copy  # type: ignore[import-untyped]

from ._chunks import checked_options, encode_chunk

__all__ = ["ImageCodec"]


class ImageCodec(Codec):  # type: ignore[misc]  # numcodecs has no types
    """Encodes an array as an image file, without loss. Arguments and shapes as for `gpuimg.zarr.ImageCodec`."""

    codec_id = "gpuimg"

    def __init__(self, format: str = "png", *, png: str | None = None, tiff: str | None = None) -> None:
        self._options = checked_options(format, png, tiff)

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id, **self._options}

    def encode(self, buf: Any) -> bytes:
        import numpy

        chunk = numpy.asarray(buf)
        if not chunk.dtype.isnative:
            # Zarr 2 reads what `decode` returns as the array's type, whatever the byte order of the samples is.
            raise ValueError(f"chunks of {chunk.dtype.str!r} cannot be images in Zarr 2: create the array as {chunk.dtype.name!r}, in native byte order")
        return encode_chunk(chunk, self._options)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The samples of a file of any format that gpuimg reads."""
        import numpy

        import gpuimg

        return ndarray_copy(numpy.asarray(gpuimg.decode(buf)), out)
