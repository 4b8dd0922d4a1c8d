#!/usr/bin/env python3
"""Times of the module beside those of NumPy, OpenCV and scikit-image, measured in turns; prints the medians of the ratios.

    python/bench.py [ROUNDS]        needs numpy, opencv-python-headless and scikit-image
"""

import statistics
import subprocess
import sys
import time

import cv2
import gpuimg
import numpy
from skimage.exposure import rescale_intensity

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
IMAGE = numpy.random.default_rng(1).integers(100, 60000, (2048, 2048)).astype("uint16")
SMALL = numpy.random.default_rng(2).integers(100, 60000, (64, 64)).astype("uint16")


def seconds(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def numpy_normalize(image):
    low, high = int(image.min()), int(image.max())
    scaled = ((image.astype("uint32") - low) * numpy.float64(65535 / (high - low)) + 0.5).astype("uint16")
    return scaled


def wrong_samples(normalized):
    """How many samples of the normalized image are not the exact result, which is computed in whole numbers."""
    low, high = int(IMAGE.min()), int(IMAGE.max())
    exact = ((IMAGE.astype("int64") - low) * 2 * 65535 + (high - low)) // (2 * (high - low))
    return int((numpy.asarray(normalized) != exact).sum())


PAIRS = [
    ("normalize", lambda: gpuimg.normalize(IMAGE, device="cpu"), "cv2.normalize", lambda: cv2.normalize(IMAGE, None, 0, 65535, cv2.NORM_MINMAX)),
    ("normalize", lambda: gpuimg.normalize(IMAGE, device="cpu"), "skimage rescale_intensity", lambda: rescale_intensity(IMAGE)),
    ("normalize", lambda: gpuimg.normalize(IMAGE, device="cpu"), "NumPy", lambda: numpy_normalize(IMAGE)),
    ("rotate 90", lambda: gpuimg.rotate(IMAGE, 90, device="cpu"), "cv2.rotate", lambda: cv2.rotate(IMAGE, cv2.ROTATE_90_CLOCKWISE)),
    ("rotate 90", lambda: gpuimg.rotate(IMAGE, 90, device="cpu"), "NumPy", lambda: numpy.rot90(IMAGE, -1).copy()),
    ("sum", lambda: gpuimg.sum(IMAGE, device="cpu"), "NumPy sum, min, max", lambda: (IMAGE.sum(dtype="uint64"), IMAGE.min(), IMAGE.max())),
]

STACK = [IMAGE, IMAGE[::-1].copy(), IMAGE[:, ::-1].copy(), IMAGE.T.copy()]


def numpy_clip(image):
    low, high = numpy.percentile(image, (0.1, 99.9))
    return rescale_intensity(image, (low, high), (0, 65535))


def numpy_mean(images):
    return (numpy.mean(images, axis=0) + 0.5).astype("uint16")


PAIRS += [
    ("normalize, clip", lambda: gpuimg.normalize(IMAGE, clip=(0.1, 99.9), device="cpu"), "NumPy and scikit-image", lambda: numpy_clip(IMAGE)),
    ("maximum of 4", lambda: gpuimg.project(STACK, "max", device="cpu"), "NumPy", lambda: numpy.max(STACK, axis=0)),
    ("mean of 4", lambda: gpuimg.project(STACK, "mean", device="cpu"), "NumPy", lambda: numpy_mean(STACK)),
    ("median of 4", lambda: gpuimg.project(STACK, "median", device="cpu"), "NumPy", lambda: numpy.median(STACK, axis=0)),
]

CALLS = [
    ("Image(array)", lambda: gpuimg.Image(SMALL)),
    ("convert", lambda: gpuimg.convert(SMALL, device="cpu")),
    ("rotate 90", lambda: gpuimg.rotate(SMALL, 90, device="cpu")),
    ("rotate 90, auto", lambda: gpuimg.rotate(SMALL, 90)),
    ("normalize", lambda: gpuimg.normalize(SMALL, device="cpu")),
    ("sum", lambda: gpuimg.sum(SMALL, device="cpu")),
]


def main():
    cv2.setNumThreads(2)
    gpuimg.set_threads(2)
    print("| 2048 × 2048, 16 bits | compared with | gpuimg (ms) | other (ms) | other ÷ gpuimg | NumPy's copy of an image ÷ gpuimg |")
    print("|---|---|---|---|---|---|")
    for name, ours, other, theirs in PAIRS:
        ours(), theirs()
        rounds = [(seconds(ours), seconds(theirs), seconds(IMAGE.copy)) for _ in range(ROUNDS)]
        mine, yours = (statistics.median(times) * 1e3 for times in list(zip(*rounds))[:2])
        ratio = statistics.median(second / first for first, second, _ in rounds)
        copy = statistics.median(third / first for first, _, third in rounds)
        print(f"| {name} | {other} | {mine:.2f} | {yours:.2f} | {ratio:.2f} | {copy:.2f} |")
    ours, theirs = map(wrong_samples, (gpuimg.normalize(IMAGE, device="cpu"), cv2.normalize(IMAGE, None, 0, 65535, cv2.NORM_MINMAX)))
    print(f"\nnormalized samples that are not exact: {ours} of gpuimg, {theirs} of OpenCV, of {IMAGE.size}")
    print("\n| call on 64 × 64 | smallest (µs) | median (µs) |\n|---|---|---|")
    for name, call in CALLS:
        times = sorted(seconds(call) * 1e6 for _ in range(2000))
        print(f"| {name} | {times[0]:.1f} | {times[1000]:.1f} |")
    empty, start = ([sys.executable, "-c", code] for code in ("pass", "import gpuimg"))
    times = [(seconds(lambda: subprocess.run(empty)), seconds(lambda: subprocess.run(start))) for _ in range(ROUNDS)]
    empty, start = (min(column) * 1e3 for column in zip(*times))
    print(f"\nstart of Python {empty:.0f} ms, with import gpuimg {start:.0f} ms")


if __name__ == "__main__":
    main()
