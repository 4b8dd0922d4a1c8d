#!/usr/bin/env python3
"""Normalizes many files with Dask: the pages of a lazy array are read and normalized where Dask runs them.

    dask_blocks.py FILE…        needs dask[distributed] and numpy
"""

import sys

import dask
import dask.array
import gpuimg
import numpy


def lazy_stack(paths):
    """A lazy array of files × height × width of grey images, which all have the shape and the dtype of the first."""
    first = gpuimg.read(paths[0])
    read = dask.delayed(lambda path: numpy.asarray(gpuimg.read(path)), pure=True)
    pages = [dask.array.from_delayed(read(path), first.shape, first.dtype) for path in paths]
    return dask.array.stack(pages)


def normalize_page(block):
    """Normalizes a block of one page; the device is the CPU, whose cores Dask shares out."""
    return numpy.asarray(gpuimg.normalize(block[0], device="cpu"))[numpy.newaxis]


def normalized(paths):
    return lazy_stack(paths).map_blocks(normalize_page, dtype="uint16")


if __name__ == "__main__":
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        print(normalized(sys.argv[1:]).mean(axis=(1, 2)).compute())
