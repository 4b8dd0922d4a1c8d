"""The reader of napari's plugin (``napari.yaml``): every format of gpuimg as image layers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    Layer = tuple[Any, dict[str, Any], str]


def reader(path: str | Sequence[str]) -> Callable[[str | Sequence[str]], list[Layer]] | None:
    """The function that reads these files. napari asks for it by the names in ``napari.yaml``, and for every folder."""
    import os

    folders = [each for each in _paths(path) if os.path.isdir(each)]
    return layers if all(os.fspath(folder).lower().endswith(".zarr") for folder in folders) else None


def layers(path: str | Sequence[str]) -> list[Layer]:
    """A layer for each file: height × width, with the pages of a stack before and the channels of colour images after them."""
    return [_layer(each) for each in _paths(path)]


def _paths(path: str | Sequence[str]) -> Sequence[str]:
    import os

    return [os.fspath(path)] if isinstance(path, (str, os.PathLike)) else path


def _layer(path: str) -> Layer:
    import os

    import numpy

    import gpuimg

    pages = gpuimg.read_pages(path)
    same = all((page.shape, page.dtype) == (pages[0].shape, pages[0].dtype) for page in pages)
    # Pages of another size, such as previews, are no part of the stack.
    images = pages if same else pages[:1]
    samples = numpy.asarray(images[0]) if len(images) == 1 else numpy.stack([numpy.asarray(image) for image in images])
    options: dict[str, Any] = {"name": os.path.basename(path), "metadata": {"gpuimg": images[0].metadata}}
    if images[0].channels == 2:
        # Grey and alpha: napari has no such image.
        samples = samples[..., 0]
    elif images[0].channels > 2:
        options["rgb"] = True
    return samples, options, "image"
