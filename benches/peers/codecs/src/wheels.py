"""Libraries that come as wheels, for main.rs, which writes a line a request: a name, a verb, a file, the
number of threads, the length of what comes out, width and channels. The answer is the processor seconds, the elapsed
seconds, and the length of the result. The first line names the libraries that are there."""

import os
import sys
import time

FOUND = {}
try:
    from isal import isal_zlib

    FOUND["ISA-L"] = {
        "inflate": lambda data, threads, length, shape: isal_zlib.decompress(data, bufsize=length),
        "deflate": lambda data, threads, length, shape: isal_zlib.compress(data, 1),
    }
except ImportError:
    pass
try:
    import rapidgzip

    def rapid(data, threads, length, shape):
        out = bytearray(length)
        with rapidgzip.open(data, parallelization=threads) as file:
            at, view = 0, memoryview(out)
            while at < length and (count := file.readinto(view[at:])):
                at += count
        return view[:at]

    FOUND["rapidgzip"] = {"gunzip": rapid}
except ImportError:
    pass
try:
    import imagecodecs
    import numpy

    def spng(data, threads, length, shape):
        array = numpy.frombuffer(data, numpy.uint16).reshape(-1, *shape)
        return imagecodecs.spng_encode(array, level=1)

    imagecodecs.spng_version()
    FOUND["libspng"] = {
        "decode": lambda data, threads, length, shape: memoryview(imagecodecs.spng_decode(data)).cast("B"),
        "encode": spng,
    }
except ImportError:
    pass

print(",".join(FOUND), flush=True)
name, data = None, None
for line in sys.stdin:
    library, verb, path, threads, length, width, channels = line.split()
    if verb == "gunzip":
        given = path
    else:
        if path != name:
            name, data = path, open(path, "rb").read()
        given = data
    shape = (int(width),) if channels == "1" else (int(width), int(channels))
    cpu, wall = time.process_time(), time.perf_counter()
    result = FOUND[library][verb](given, int(threads), int(length), shape)
    took = time.process_time() - cpu, time.perf_counter() - wall
    print(*took, len(result), flush=True)
    del result
