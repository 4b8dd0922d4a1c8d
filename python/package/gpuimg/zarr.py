"""A codec of Zarr 3: chunks that are PNG or TIFF files.

>>> import zarr
>>> from gpuimg.zarr import ImageCodec
>>> zarr.create_array("a.zarr", shape=(9, 512, 512), chunks=(1, 512, 512), dtype="uint16", serializer=ImageCodec(), compressors=None)

Arrays that were written so are read by any Zarr with this package installed, which registers the codec as ``gpuimg``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zarr.abc.codec import ArrayBytesCodec

from ._chunks import checked_options, decode_chunk, encode_chunk

if TYPE_CHECKING:
    from typing import Self

    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer
    from zarr.core.common import JSON

__all__ = ["ImageCodec"]


@dataclass(frozen=True)
class ImageCodec(ArrayBytesCodec):
    """Stores each chunk as an image file, without loss.

    A chunk is an image of height × width, or height × width × 1 to 4 channels; axes of length 1 may precede it. Files of every
    format that gpuimg reads are decoded, whatever ``format`` is.

    Args:
        format: "png" (uint8 and uint16) or "tiff" (every sample type of gpuimg).
        png: "fast", "small" or "store".
        tiff: "none", "deflate", "lzw" or "zstd".
    """

    options: dict[str, Any] = field(hash=False)
    is_fixed_size = False

    def __init__(self, format: str = "png", *, png: str | None = None, tiff: str | None = None) -> None:
        object.__setattr__(self, "options", checked_options(format, png, tiff))

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        configuration: Any = data.get("configuration", {})
        return cls(**configuration)

    def to_dict(self) -> dict[str, JSON]:
        return {"name": "gpuimg", "configuration": {**self.options}}

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        data = chunk_bytes.as_numpy_array()
        samples = await asyncio.to_thread(decode_chunk, data, chunk_spec.shape, chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.nd_buffer.from_numpy_array(samples)

    async def _encode_single(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        data = await asyncio.to_thread(encode_chunk, chunk_array.as_numpy_array(), self.options)
        return chunk_spec.prototype.buffer.from_bytes(data)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        raise NotImplementedError("the size of an image file depends on its samples")
