"""The operations on an image. Written by generate.py from the options of the command line."""

from __future__ import annotations

from ._words import apply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from ._gpuimg import Image

    Pair = tuple[float, float] | str
    Values = Sequence[float] | float | str

__all__ = ["normalize", "preview", "convert", "crop", "debayer", "lut", "transpose", "rotate", "flip", "restore"]


def normalize(
    image: Any,
    *,
    range: Pair | None = None,
    window: Pair | None = None,
    to: Pair | None = None,
    curve: str | None = None,
    nan: float | None = None,
    per_channel: bool = False,
    clip: Pair | None = None,
    auto: bool = False,
    ignore: Values | None = None,
    unsigned: bool = False,
    undo: bool = False,
    scope: str | None = None,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Scale the range of values to the full depth, correctly rounded.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        range: Use this input range instead of the image's minimum and maximum; values outside are clamped. Signed
            images have signed values. auto-window uses the window stored in each file (DICOM). zscale and stf measure
            each image as astropy's ZScaleInterval and Siril's autostretch do.
        window: Use this window as the input range: WIDTH values around CENTER, as for CT images.
        to: Scale to this output range instead of the full depth (0:65535, or 0:255 for 8 bits; -32768:32767 or -128:127
            for signed images).
        curve: Change the values x between both ranges, 0 to 1: gamma:G is x^(1/G), asinh:A (default 0.1) is
            asinh(x/A)/asinh(1/A), log is ln(1000x+1)/ln(1001).
        nan: Replace NaN and infinite samples with this value; they do not count in the range. Without this option they
            are refused.
        per_channel: Measure and scale each colour channel separately; in a stack whose metadata name a channel axis,
            also the pages of each channel.
        clip: Ignore the darkest LOW percent and the brightest 100 − HIGH percent when measuring the range, e.g.
            0.1:99.9.
        auto: Ignore outliers, as clip 0.1:99.9 does, and print the range that was used.
        ignore: Ignore samples with these no-data values when measuring the range, e.g. 0 or 0,65535.
        unsigned: Write signed images as unsigned (the minimum becomes 0).
        undo: Store the range in the file, so that gpuimg restore can restore the original values (PNG, TIFF and FITS).
        scope: Measure one range for all pages of a stack (no flicker) or one for each page (page, stack).
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "normalize",
        image,
        (),
        (
            ("range", range, ":"),
            ("window", window, ":"),
            ("to", to, ":"),
            ("curve", curve, ""),
            ("nan", nan, ""),
            ("per-channel", per_channel, None),
            ("clip", clip, ":"),
            ("auto", auto, None),
            ("ignore", ignore, "*,"),
            ("unsigned", unsigned, None),
            ("undo", undo, None),
            ("scope", scope, ""),
        ),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def preview(
    image: Any,
    *,
    nan: float | None = None,
    scope: str | None = None,
    depth: int | None = 8,
    fit: int | None = 1024,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Make a small 8-bit image to look at, ignoring outliers: normalize --auto --fit 1024 --depth 8.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        nan: Replace NaN and infinite samples with this value (default: the least value); they do not count in the
            range.
        scope: Measure one range for all pages of a stack (no flicker) or one for each page (page, stack).
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "preview",
        image,
        (),
        (
            ("nan", nan, ""),
            ("scope", scope, ""),
        ),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def convert(
    image: Any,
    *,
    channel: int | None = None,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Change the depth, size or dtype; keep values and metadata.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        channel: Take one channel of each image, counted from 1: of RGB images 1 is red, 2 green, 3 blue, and 4 alpha.
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "convert",
        image,
        (),
        (
            ("channel", channel, ""),
        ),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def crop(
    image: Any,
    region: tuple[int, int, int, int] | str,
    *,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Take a rectangle of the image.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        region: The rectangle: its first column and row, counted from 0 at the upper left, and its width and height.
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "crop",
        image,
        ((region, ",,x"),),
        (),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def debayer(
    image: Any,
    pattern: str,
    *,
    method: str | None = None,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Compute an RGB image from the Bayer mosaic of a sensor.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        pattern: The colours of the upper left 2×2 pixels, row by row (RGGB, BGGR, GRBG, GBRG).
        method: How the two missing colours of a pixel are computed (bilinear, malvar).
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "debayer",
        image,
        ((pattern, ""),),
        (
            ("method", method, ""),
        ),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def lut(
    image: Any,
    palette: str,
    *,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Show grey images in the colours of a table, as RGB of 8 or 16 bits.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        palette: The table of colours, which covers all values of the sample type (gray, viridis, magma, inferno, fire,
            ironbow).
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "lut",
        image,
        ((palette, ""),),
        (),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def transpose(
    image: Any,
    *,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Transpose (swap rows and columns).

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "transpose",
        image,
        (),
        (),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def rotate(
    image: Any,
    angle: int | str,
    *,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Rotate clockwise by 90, 180 or 270 degrees.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        angle: Clockwise angle in degrees (90, 180, 270).
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "rotate",
        image,
        ((angle, ""),),
        (),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def flip(
    image: Any,
    axis: str,
    *,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Mirror left to right (horizontal) or top to bottom (vertical).

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        axis: The direction (horizontal, vertical).
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "flip",
        image,
        ((axis, ""),),
        (),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )


def restore(
    image: Any,
    *,
    nearest: bool = False,
    depth: int | None = None,
    fit: int | None = None,
    auto_orient: bool = False,
    dtype: Any = None,
    device: str = "auto",
    stream: Any = None,
    out: Any = None,
) -> Image:
    """Restore the values from before normalize --undo.

    Args:
        image: an Image, or an array of height × width or height × width × 1 to 4 channels; a list for a stack.
        nearest: Accept the nearest value where the original is lost: outliers that were clamped, and ranges with more
            values than the output type.
        depth: 8 or 16 bits for the result; 16 converts 8-bit images before the operation.
        fit: Make the result smaller, so that its longer side has at most this many pixels.
        auto_orient: Bring the image upright first, as its orientation says.
        dtype: Convert the result to a type that holds every value: "float32", or "int32" for "uint16".
        device: "cpu", "gpu", "gpu:N", or "auto", the faster one, with the result in host memory; "cuda" or "cuda:N"
            with the result in the memory of that GPU, where the result of an image on a GPU always is.
        stream: For arrays in the memory of a GPU: wait for the work that is queued on this CUDA stream (its address, or
            a stream of PyTorch or CuPy), before the image is read and out is written. The result is complete when the
            function returns.
        out: A writable array of the result's shape and dtype, which receives the result and is returned.

    Returns the result as a new Image, or `out`; a list for a stack.
    """
    return apply(
        "restore",
        image,
        (),
        (
            ("nearest", nearest, None),
        ),
        depth,
        fit,
        auto_orient,
        dtype,
        device,
        stream,
        out,
    )
