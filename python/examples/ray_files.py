#!/usr/bin/env python3
"""Normalizes many files with Ray: a task for each file; the results are arrays in Ray's shared memory.

    ray_files.py FILE…        needs ray and numpy
"""

import sys

import gpuimg
import numpy
import ray


@ray.remote(num_cpus=1)
def normalized(path):
    # Ray counts a core for each task.
    gpuimg.set_threads(1)
    return numpy.asarray(gpuimg.normalize(gpuimg.read(path), device="cpu"))


@ray.remote(num_cpus=1)
def mean(samples):
    return gpuimg.sum(samples).mean


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False)
    print(ray.get([mean.remote(normalized.remote(path)) for path in sys.argv[1:]]))
    ray.shutdown()
