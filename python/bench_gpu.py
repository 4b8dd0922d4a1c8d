#!/usr/bin/env python3
"""Files in memory to tensors on a GPU: images a second of gpuimg beside OpenCV with an upload, nvImageCodec and a DataLoader.

    python/bench_gpu.py [COUNT [SIDE]]      needs PyTorch and OpenCV; nvImageCodec if it is installed

COUNT files (1024) of SIDE × SIDE (2048) 16-bit samples are read in batches of 32, from /dev/shm. Each reader runs once over an
eighth of the files first; the best of three runs counts. The samples of the first batch are compared with those that were written.
"""

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import gpuimg
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

try:
    from nvidia import nvimgcodec
except ImportError:
    nvimgcodec = None

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
SIDE = int(sys.argv[2]) if len(sys.argv) > 2 else 2048
BATCH = 32
WORKERS = len(os.sched_getaffinity(0))
FOLDER = Path("/dev/shm/gpuimg-bench")
KINDS = {
    "PNG": ("png", []),
    "TIFF": ("tif", [cv2.IMWRITE_TIFF_COMPRESSION, 1]),
    "TIFF, deflate": ("tif", [cv2.IMWRITE_TIFF_COMPRESSION, 8]),
    "TIFF, LZW": ("tif", [cv2.IMWRITE_TIFF_COMPRESSION, 5]),
}


def photograph(seed):
    """A smooth scene with the noise of photons."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    scene = 8000 + 3000 * np.sin(x / 311) * np.cos(y / 277)
    return (scene + random.normal(0, 1, scene.shape).astype(np.float32) * np.sqrt(scene)).astype(np.uint16)


IMAGES = [photograph(seed) for seed in range(8)]


def files_of(kind):
    extension, options = KINDS[kind]
    folder = FOLDER / kind
    folder.mkdir(parents=True)
    paths = [folder / f"{number:05}.{extension}" for number in range(COUNT)]
    for number, path in enumerate(paths):
        if number < len(IMAGES):
            cv2.imwrite(str(path), IMAGES[number], options)
        else:
            os.link(paths[number % len(IMAGES)], path)
    return [str(path) for path in paths]


def batches(items):
    return [items[start : start + BATCH] for start in range(0, len(items), BATCH)]


def with_gpuimg(paths):
    for images in gpuimg.stream(paths, device="cuda", batch=BATCH):
        yield [torch.from_dlpack(image) for image in images]


def with_opencv(paths):
    cv2.setNumThreads(1)

    def upload(path):
        return torch.from_numpy(cv2.imread(path, cv2.IMREAD_UNCHANGED)).cuda(non_blocking=True)

    with ThreadPoolExecutor(WORKERS) as pool:
        for batch in batches(paths):
            yield list(pool.map(upload, batch))


def with_nvimgcodec(paths):
    options = nvimgcodec.DecodeParams(color_spec=nvimgcodec.ColorSpec.UNCHANGED, allow_any_depth=True)
    for batch in batches(paths):
        yield [torch.from_dlpack(image) for image in DECODER.read(batch, params=options)]


def measure(name, read, paths, check):
    first = next(read(paths[:BATCH]))
    check(first)
    for _ in read(paths[: max(BATCH, COUNT // 8)]):
        pass
    best = float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        for tensors in read(paths):
            pass
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begun)
    print(f"  {name:34} {COUNT / best:7.0f} images/s  {COUNT * IMAGES[0].nbytes / best / 1e9:6.2f} GB/s", flush=True)


def has_the_samples(tensors):
    for number, tensor in enumerate(tensors):
        wanted = IMAGES[number % len(IMAGES)]
        np.testing.assert_array_equal(tensor.cpu().numpy().reshape(wanted.shape), wanted)


def normalized_by_gpuimg(paths):
    """Batches of float32 between 0 and 1. PyTorch has no arithmetic for uint16: `.float()` converts."""
    for images in gpuimg.stream(paths, "normalize", device="cuda", batch=BATCH):
        yield torch.stack([torch.from_dlpack(image).float() for image in images]) / 65535


class Files(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        cv2.setNumThreads(1)
        return torch.from_numpy(cv2.imread(self.paths[index], cv2.IMREAD_UNCHANGED).view(np.int16))


def normalized_by_torch(paths):
    # The workers start once, as they do in training.
    loader = LOADERS.setdefault(
        len(paths), DataLoader(Files(paths), BATCH, num_workers=WORKERS, pin_memory=True, persistent_workers=True)
    )
    for batch in loader:
        values = (batch.cuda(non_blocking=True).int() & 0xFFFF).float()
        low, high = values.amin((1, 2), True), values.amax((1, 2), True)
        yield (values - low) / (high - low)


LOADERS = {}


def is_normalized(batch):
    for number, image in enumerate(batch):
        wanted = IMAGES[number % len(IMAGES)].astype(np.float64)
        wanted = (wanted - wanted.min()) / (wanted.max() - wanted.min())
        assert np.abs(image.cpu().numpy() - wanted).max() < 1e-5


def main():
    print(f"{torch.cuda.get_device_name()}, {WORKERS} cores; {COUNT} files of {SIDE} × {SIDE}")
    for kind in KINDS:
        paths = files_of(kind)
        print(kind)
        measure("gpuimg.stream", with_gpuimg, paths, has_the_samples)
        measure("OpenCV, threads, upload", with_opencv, paths, has_the_samples)
        if nvimgcodec is not None:
            measure("nvImageCodec", with_nvimgcodec, paths, has_the_samples)
        if kind == "PNG":
            measure("gpuimg.stream, normalized float32", normalized_by_gpuimg, paths, is_normalized)
            measure("DataLoader, normalized float32", normalized_by_torch, paths, is_normalized)
        shutil.rmtree(FOLDER / kind)


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    if nvimgcodec is not None:
        DECODER = nvimgcodec.Decoder(max_num_cpu_threads=WORKERS)
    try:
        main()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
