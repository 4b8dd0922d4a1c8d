"""The levels of pyramids in exact arithmetic, for the scripts that compare them."""
from fractions import Fraction

import numpy as np


def halved(side, level):
    """A side of a level: that of the full size divided by a power of two, rounded half up."""
    return max(1, int(Fraction(side, 2**level) + Fraction(1, 2)))


def weights(old, new):
    """The part of each old pixel that each new pixel covers, in steps of 1 / new of an old pixel."""
    table = np.zeros((new, old), np.int64)
    for i in range(new):
        for x in range(i * old // new, -(-(i + 1) * old // new)):
            table[i, x] = min((x + 1) * new, (i + 1) * old) - max(x * new, i * old)
    return table


def mean(image, shape):
    """The mean of the area that each pixel of a smaller image covers: of integers exact, and rounded half up."""
    down, across = (weights(old, new).astype(np.float64) for old, new in zip(image.shape[-2:], shape))
    whole = image.shape[-2] * image.shape[-1]
    if image.dtype.kind == "f":
        means = down @ np.nan_to_num(image.astype(np.float64)) @ across.T / whole
        return np.where(down @ np.isnan(image) @ across.T > 0, np.nan, means).astype(image.dtype)
    # Sums of halves of 16 bits are exact in floating point of 64 bits, which NumPy multiplies much faster than integers.
    assert whole < 2**30
    wide = image.astype(np.int64)
    high, low = ((down @ part.astype(np.float64) @ across.T).astype(np.int64) for part in (wide >> 16, wide & 0xFFFF))
    return ((2 * ((high << 16) + low) + whole) // (2 * whole)).astype(image.dtype)


def is_same(stored, expected, level):
    """Whether samples of a level are the expected ones: sums of 64 bits differ in their last bits with the order of the terms."""
    if expected.dtype.kind != "f":
        return np.array_equal(stored, expected)
    if level == 0:
        return np.array_equal(stored, expected, equal_nan=True)
    scale = np.nanmax(np.abs(expected), initial=0)
    tolerance = scale * (1e-6 if expected.dtype == np.float32 else 1e-13)
    return np.allclose(stored, expected, rtol=0, atol=tolerance, equal_nan=True)
