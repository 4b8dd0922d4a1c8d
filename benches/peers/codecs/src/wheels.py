"""Libraries that come as wheels, and libspng by ctypes, for main.rs, which writes a line a request: a name, a verb, a file, the
number of threads, the length of what comes out, width and channels. The answer is the processor seconds, the elapsed
seconds, and the length of the result. The first line names the libraries that are there."""

import ctypes
import struct
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
    spng = ctypes.CDLL("libspng.so.0")
    spng.spng_ctx_new.restype = spng.spng_get_png_buffer.restype = ctypes.c_void_p

    def call(name, context, *arguments):
        if fault := getattr(spng, name)(context, *arguments):
            raise ValueError(f"{name}: {fault}")

    def spng_decode(data, threads, length, shape):
        context, out = ctypes.c_void_p(spng.spng_ctx_new(0)), ctypes.create_string_buffer(length)
        call("spng_set_png_buffer", context, data, ctypes.c_size_t(len(data)))
        # In the file's format, with the machine's order of bytes.
        call("spng_decode_image", context, out, ctypes.c_size_t(length), 256, 0)
        spng.spng_ctx_free(context)
        return out

    def spng_encode(data, threads, length, shape):
        context, size, fault = ctypes.c_void_p(spng.spng_ctx_new(2)), ctypes.c_size_t(), ctypes.c_int()
        width, channels = shape
        colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
        header = struct.pack("IIBBBBB", width, length // (2 * width * channels), 16, colour, 0, 0, 0)
        for option, value in ((2, 1), (12, 1)):  # level 1, to memory
            call("spng_set_option", context, option, value)
        call("spng_set_ihdr", context, header)
        call("spng_encode_image", context, data, ctypes.c_size_t(len(data)), 256, 2)
        spng.spng_get_png_buffer(context, ctypes.byref(size), ctypes.byref(fault))
        spng.spng_ctx_free(context)
        return range(size.value)

    FOUND["libspng"] = {"decode": spng_decode, "encode": spng_encode}
except OSError:
    pass

print(",".join(FOUND), flush=True)
for line in sys.stdin:
    library, verb, path, threads, length, width, channels = line.split()
    # rapidgzip reads the file itself.
    given = path if verb == "gunzip" else open(path, "rb").read()
    shape = int(width), int(channels)
    cpu, wall = time.process_time(), time.perf_counter()
    result = FOUND[library][verb](given, int(threads), int(length), shape)
    took = time.process_time() - cpu, time.perf_counter() - wall
    print(*took, len(result), flush=True)
    del result
