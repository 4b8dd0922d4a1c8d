#!/usr/bin/env python3
"""Image files as float32 tensors for PyTorch: a Dataset for shuffled access, an IterableDataset that reads ahead.

    pytorch_dataset.py FILE…        needs torch and numpy
"""

import sys

import gpuimg
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

OPS = "normalize --clip 0.1:99.9"


def tensor(image):
    """Channels × height × width, from 0 to 1. float32, because PyTorch has no operators on uint16."""
    samples = torch.from_dlpack(image)
    samples = samples.unsqueeze(0) if samples.ndim == 2 else samples.permute(2, 0, 1)
    return samples / 65535


class Files(Dataset):
    """One file at a time, for DataLoader with workers."""

    def __init__(self, paths, ops=OPS):
        self.paths, self.ops = list(paths), ops

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return tensor(gpuimg.run(gpuimg.read(self.paths[index]), self.ops, dtype="float32", device="cpu"))


class Stream(IterableDataset):
    """The files in order, read ahead by the threads of gpuimg. Each worker of a DataLoader takes every so-many-th file."""

    def __init__(self, paths, ops=OPS):
        self.paths, self.ops = list(paths), ops

    def __iter__(self):
        worker = get_worker_info()
        mine = self.paths[worker.id :: worker.num_workers] if worker else self.paths
        return map(tensor, gpuimg.stream(mine, ops=self.ops, dtype="float32", device="cpu"))


if __name__ == "__main__":
    for batch in DataLoader(Files(sys.argv[1:]), batch_size=4, num_workers=2, multiprocessing_context="spawn"):
        print(tuple(batch.shape), batch.dtype)
    for sample in Stream(sys.argv[1:]):
        print(tuple(sample.shape), sample.dtype)
