"""Arrays in and out: memory, strides, lifetimes, dtypes, threads."""

import gc
import os
import pickle
import sys
import threading
import weakref

import gpuimg
import numpy
import pytest

RAMP = numpy.arange(24, dtype="uint16").reshape(4, 6)


class Interface:
    """Only `__array_interface__`."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class DLPack:
    """Only `__dlpack__`, on the device that is named."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def test_an_array_of_an_image_shares_its_memory_and_keeps_it():
    image = gpuimg.rotate(RAMP, 180)
    first, second = numpy.asarray(image), numpy.asarray(image)
    assert first.__array_interface__["data"][0] == second.__array_interface__["data"][0]
    assert not first.flags.writeable and first.flags.c_contiguous
    owned = sys.getrefcount(image)
    del second
    assert sys.getrefcount(image) == owned - 1
    del image
    gc.collect()
    assert first.tolist() == RAMP[::-1, ::-1].tolist()
    with pytest.raises(ValueError):
        first[0, 0] = 1
    copy = numpy.array(first)
    copy[0, 0] = 1


def test_converted_samples_are_shared_too():
    image = gpuimg.rotate(RAMP.astype("float32"), 180)
    first, second = numpy.asarray(image), numpy.asarray(image)
    assert first.__array_interface__["data"][0] == second.__array_interface__["data"][0]
    del image
    assert first.tolist() == RAMP[::-1, ::-1].tolist()


def test_attributes():
    image = gpuimg.Image(numpy.zeros((2, 3, 4), "int16"))
    assert (image.shape, image.ndim, image.dtype, image.axes) == ((2, 3, 4), 3, "int16", "yxc")
    assert (image.width, image.height, image.channels, image.nbytes) == (3, 2, 4, 48)
    assert repr(image) == "<gpuimg.Image 3×2 RGB + alpha int16>"
    assert (image.path, image.warnings, image.metadata.orientation) == (None, [], None)
    assert gpuimg.Image(RAMP).axes == "yx"
    assert numpy.dtype(image.dtype) == numpy.int16
    assert image == gpuimg.Image(numpy.zeros((2, 3, 4), "int16"))
    assert image != gpuimg.Image(numpy.ones((2, 3, 4), "int16"))
    assert image.__array__("float64").dtype == "float64"
    assert memoryview(image).format == "h" and memoryview(image).readonly


@pytest.mark.parametrize(
    "view",
    [
        RAMP,
        RAMP[::-1],
        RAMP[:, ::-1],
        RAMP[::2, 1::3],
        RAMP.T,
        numpy.asfortranarray(RAMP),
        RAMP[:, :1],
        numpy.broadcast_to(RAMP[0], (5, 6)),
        RAMP.astype(">u2"),
        RAMP.astype("<u2"),
        RAMP.reshape(4, 2, 3),
        RAMP.reshape(4, 2, 3)[..., ::-1],
        RAMP.reshape(4, 2, 3)[..., 1],
        RAMP.reshape(3, 4, 2).transpose(1, 2, 0),
        RAMP.reshape(4, 6, 1),
        RAMP.astype("float64")[::2, ::-1],
        RAMP.astype(">f4").T,
        RAMP.astype("int8")[1:, ::2],
    ],
)
def test_strides_and_byte_orders(view):
    native = view.astype(view.dtype.newbyteorder("="))
    squeezed = native[..., 0] if native.ndim == 3 and native.shape[2] == 1 else native
    numpy.testing.assert_array_equal(numpy.asarray(gpuimg.Image(view)), squeezed, strict=True)
    numpy.testing.assert_array_equal(numpy.asarray(gpuimg.flip(view, "h")), squeezed[:, ::-1], strict=True)


def test_large_views_are_copied_by_several_threads():
    samples = numpy.random.default_rng(1).integers(0, 65536, (1500, 1201, 3)).astype("uint16")
    for view in (samples, samples[::-1], samples[:, ::2], samples.swapaxes(0, 1), samples[..., 1]):
        numpy.testing.assert_array_equal(numpy.asarray(gpuimg.convert(view)), view, strict=True)
        out = numpy.zeros(view.shape[::-1], "uint16").T
        if view.ndim == 2:
            assert gpuimg.convert(view, out=out) is out
            numpy.testing.assert_array_equal(out, view)


@pytest.mark.parametrize("wrapper", [Interface, DLPack, memoryview, gpuimg.Image])
def test_other_arrays(wrapper):
    assert numpy.asarray(gpuimg.rotate(wrapper(RAMP), 180)).tolist() == RAMP[::-1, ::-1].tolist()


def test_out():
    out = numpy.empty((6, 4), "uint16")
    assert gpuimg.rotate(RAMP, 90, out=out) is out
    assert (out == numpy.rot90(RAMP, -1)).all()
    both = RAMP.copy()
    gpuimg.flip(both, "h", out=both)
    assert (both == RAMP[:, ::-1]).all()
    gpuimg.flip(RAMP, "v", out=both[:, ::-1])
    assert (both == RAMP[::-1, ::-1]).all()
    for wrong in (numpy.empty((4, 6), "uint16"), numpy.empty((6, 4), "int16"), numpy.empty((6, 4), ">u2")):
        with pytest.raises(ValueError, match="out has"):
            gpuimg.rotate(RAMP, 90, out=wrong)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        gpuimg.rotate(RAMP, 90, out=out)


def test_dtypes():
    assert (numpy.asarray(gpuimg.convert(RAMP, dtype="float32")) == RAMP.astype("float32")).all()
    for dtype in (numpy.float64, numpy.dtype("float64"), "float64"):
        assert gpuimg.convert(RAMP.astype("int32") - 5, dtype=dtype).dtype == "float64"
    assert (numpy.asarray(gpuimg.convert(RAMP.astype("int8"), dtype="float32")) == RAMP).all()
    assert gpuimg.normalize(RAMP, dtype="float32").ranges == [[(0.0, 23.0)]]
    with pytest.raises(ValueError, match="uint16 are not converted to uint8"):
        gpuimg.convert(RAMP, dtype="uint8")
    with pytest.raises(ValueError, match="uint32 are not converted to float32"):
        gpuimg.convert(RAMP.astype("uint32"), dtype="float32")
    with pytest.raises(ValueError, match="there is no dtype 'complex'"):
        gpuimg.convert(RAMP, dtype=complex)


@pytest.mark.parametrize(
    "wrong, kind, sentence",
    [
        (RAMP.astype("int64"), ValueError, "int64 are not supported"),
        (RAMP.astype("uint64"), ValueError, "uint64 are not supported"),
        (RAMP.astype("float16"), ValueError, "float16 are not supported"),
        (RAMP.astype(bool), ValueError, "bool are not supported"),
        (RAMP.astype(complex), ValueError, "Zd are not supported"),
        (RAMP[0], ValueError, "not of 1 dimensions"),
        (b"bytes", ValueError, "not of 1 dimensions"),
        (RAMP.reshape(2, 2, 2, 3), ValueError, "not of 4 dimensions"),
        (RAMP.reshape(2, 2, 6), ValueError, "1 to 4 channels, not 6"),
        (RAMP[:0], ValueError, "empty"),
        ("text", TypeError, "not str"),
        (None, TypeError, "not NoneType"),
        ([], ValueError, "there is no image"),
        (numpy.lib.stride_tricks.as_strided(RAMP, (1 << 30, 1 << 31), (0, 0)), MemoryError, "not enough memory"),
    ],
)
def test_wrong_arrays(wrong, kind, sentence):
    with pytest.raises(kind, match=sentence):
        gpuimg.rotate(wrong, 90)


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: gpuimg.rotate(RAMP, 45), "expected 90, 180 or 270 first, got '45'"),
        (lambda: gpuimg.crop(RAMP, (1, 2, 3)), "crop expects 4 values, not 3"),
        (lambda: gpuimg.crop(RAMP, (1, 2, 30, 30)), "crop"),
        (lambda: gpuimg.normalize(RAMP, clip=(1, 2, 3)), "clip expects 2 values, not 3"),
        (lambda: gpuimg.normalize(RAMP, clip=(90, 5)), "--clip"),
        (lambda: gpuimg.normalize(RAMP, range=(1, 2), clip=(5, 95)), "--clip"),
        (lambda: gpuimg.normalize(RAMP, depth=12), "depth 8 or 16, not 12"),
        (lambda: gpuimg.normalize(RAMP, fit=0), "fit is 1 pixel or more"),
        (lambda: gpuimg.run(RAMP, "blur 3"), "unknown verb"),
        (lambda: gpuimg.run(RAMP, "normalize 'x"), "quotation mark"),
        (lambda: gpuimg.rotate(RAMP, "90' + flip h"), "expected 90, 180 or 270"),
        (lambda: gpuimg.convert(RAMP, device="cuda:x"), "expected auto, cpu, gpu, gpu:N, cuda or cuda:N"),
        (lambda: gpuimg.process(["a.png"], "out", "rotate 90", device="cuda"), "the result is in host memory"),
        (lambda: gpuimg.calibrate(RAMP, dark=DLPack(RAMP, (2, 0))), r"in the memory of a GPU.*tensor.cpu\(\)"),
        (lambda: gpuimg.convert(RAMP, device="tpu"), "tpu"),
        (lambda: gpuimg.encode(RAMP, "xyz"), "no format has the name 'xyz'"),
        (lambda: gpuimg.decode(b"not an image"), "not"),
        (lambda: gpuimg.restore(RAMP), "restore"),
        (lambda: gpuimg.set_threads(0), "1 or more"),
        (lambda: gpuimg.stream([], batch=0), "1 or more"),
    ],
)
def test_wrong_arguments(call, sentence):
    with pytest.raises(gpuimg.ArgumentError, match=sentence) as caught:
        call()
    assert isinstance(caught.value, ValueError)


def test_errors_have_fields_and_can_be_pickled(folder):
    with pytest.raises(FileNotFoundError) as caught:
        gpuimg.read("missing.tif")
    error = caught.value
    assert isinstance(error, gpuimg.Error)
    assert str(error) == "cannot read missing.tif: no such file"
    assert (error.path, error.operation, error.reason) == ("missing.tif", "read", "no such file")
    assert error.filename == "missing.tif"
    gpuimg.write("a.png", RAMP)
    with pytest.raises(FileExistsError) as exists:
        gpuimg.write("a.png", RAMP)
    gpuimg.write("a.png", RAMP, overwrite=True)
    with open("bad.png", "wb") as file:
        file.write(open("a.png", "rb").read()[:-20])
    with pytest.raises(gpuimg.Error) as bad:
        gpuimg.read("bad.png")
    assert type(bad.value) is gpuimg.Error and bad.value.path == "bad.png"
    with pytest.raises(ValueError) as wrong:
        gpuimg.rotate(RAMP, 1)
    for error in (error, exists.value, bad.value, wrong.value):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
        assert (again.path, again.operation, again.reason) == (error.path, error.operation, error.reason)
        assert getattr(again, "errno", None) == getattr(error, "errno", None)


def test_a_gpu_that_does_not_exist_is_an_error():
    with pytest.raises(gpuimg.DeviceError):
        gpuimg.normalize(RAMP, device="gpu:99")


def test_images_can_be_pickled():
    for dtype in ("uint8", "int16", "float64"):
        image = gpuimg.Image(RAMP.reshape(4, 2, 3).astype(dtype))
        assert (numpy.asarray(pickle.loads(pickle.dumps(image))) == numpy.asarray(image)).all()


def test_metadata_are_kept_and_given(folder):
    # A PNG with a resolution of 300 dots per inch: 11811 per metre.
    import struct
    import zlib

    data = gpuimg.encode(RAMP, "png")
    body = b"pHYs" + struct.pack(">IIB", 11811, 5906, 1)
    chunk = struct.pack(">I", 9) + body + struct.pack(">I", zlib.crc32(body))
    image = gpuimg.decode(data[:33] + chunk + data[33:])
    assert image.metadata.resolution == (11811.0, 5906.0, "metre")
    turned = gpuimg.rotate(image, 90)
    assert turned.metadata.resolution == (5906.0, 11811.0, "metre")
    gpuimg.write("plain.png", numpy.asarray(turned))
    assert gpuimg.read("plain.png").metadata.resolution is None
    gpuimg.write("given.png", numpy.asarray(turned), metadata=turned.metadata)
    assert gpuimg.read("given.png").metadata == turned.metadata
    assert gpuimg.Image(RAMP, metadata=image.metadata).metadata.resolution == (11811.0, 5906.0, "metre")


def test_warnings_of_write(folder):
    flat = gpuimg.normalize(numpy.full((3, 3), 7, "uint16"))
    assert flat.warnings


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_the_lock_of_the_interpreter_is_released(folder):
    # With the lock held, the writer would never get to write.
    os.mkfifo("pipe")
    data = gpuimg.encode(RAMP, "png")

    def write():
        with open("pipe", "wb") as pipe:
            pipe.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    image = gpuimg.read("pipe")
    writer.join()
    assert (numpy.asarray(image) == RAMP).all()


def test_threads_call_at_the_same_time():
    samples = numpy.random.default_rng(2).integers(0, 65536, (300, 401)).astype("uint16")
    expected = numpy.asarray(gpuimg.normalize(samples)).tobytes()
    wrong = []

    def work():
        for _ in range(20):
            for size in (1, 100, 300):
                gpuimg.rotate(samples[:size], 90)
            if numpy.asarray(gpuimg.normalize(samples)).tobytes() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    gpuimg.set_threads(3)
    for thread in threads:
        thread.join()
    assert not wrong


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def calls_of(group):
    """Calls of entry points that are alike, each of which leaves nothing behind."""
    small = numpy.random.default_rng(5).integers(0, 65536, (64, 64)).astype("uint16")
    signed, wide = small.astype("int16")[:8, :8], numpy.ones((8, 8, 3), "float32")
    image, other = gpuimg.Image(small), gpuimg.Image(signed)
    out, real = numpy.empty((64, 64), "uint16"), numpy.empty((64, 64), "float32")
    tiff, path = gpuimg.encode(small[:8], "tiff"), "flat.tif"

    def refused(call):
        # As pytest.raises, which takes longer than the call.
        try:
            call()
        except (ValueError, OSError, BufferError, gpuimg.Error):
            return
        raise AssertionError("not refused")

    calls = {
        "verbs": [
            lambda: numpy.asarray(gpuimg.rotate(small, 90)),
            lambda: gpuimg.normalize(small, out=out),
            lambda: gpuimg.run(signed, "flip h + crop 1,1,5x5"),
            lambda: gpuimg.convert(small, dtype="float32", out=real),
            lambda: gpuimg.calibrate(signed, dark=signed, offset=3),
            lambda: gpuimg.normalize([small[:8], small[8:16]]),
        ],
        "numbers": [
            lambda: gpuimg.sum(small).mean,
            lambda: gpuimg.sum(wide, nan=0),
            lambda: numpy.asarray(gpuimg.histogram(small[:4].astype("uint8")).counts),
            lambda: gpuimg.project([signed, other.__array__()], "max"),
        ],
        "arrays": [
            lambda: numpy.asarray(gpuimg.Image(small[::2, ::-3])),
            lambda: numpy.from_dlpack(image),
            lambda: numpy.from_dlpack(other, copy=True),
            lambda: numpy.from_dlpack(gpuimg.Image(signed)),
            lambda: image.__dlpack__(),
            lambda: image.__dlpack__(max_version=(1, 0)),
            lambda: memoryview(gpuimg.Image(signed)).tobytes(),
            lambda: (repr(image), image.metadata, image.shape, image == other, image.warnings, image.ranges),
        ],
        "files": [
            lambda: numpy.asarray(gpuimg.decode(tiff)),
            lambda: gpuimg.encode(signed, "npy"),
            lambda: pickle.loads(pickle.dumps(other)),
            lambda: gpuimg.write(path, signed, overwrite=True),
            lambda: gpuimg.read(path, dtype="float64").metadata,
        ],
        "errors": [
            lambda: refused(lambda: gpuimg.set_threads(0)),
            lambda: refused(lambda: gpuimg.flip(small, "h", out=real)),
            lambda: refused(lambda: gpuimg.convert(small, dtype="int16")),
            lambda: refused(lambda: gpuimg.decode(b"no image")),
            lambda: refused(lambda: gpuimg.read("missing.tif")),
            lambda: refused(lambda: image.__dlpack__(copy=False)),
            lambda: refused(lambda: gpuimg.project([small, signed], "mean")),
        ],
    }
    return calls[group]


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize("group", ["verbs", "numbers", "arrays", "files", "errors"])
def test_memory_is_flat_over_100_000_calls(folder, group):
    calls = calls_of(group)

    def work(count):
        for _ in range(count // len(calls)):
            for call in calls:
                call()

    work(4000)
    gc.collect()
    before = resident()
    work(100_000)
    gc.collect()
    # A leak of 84 bytes in every call is found, or of 84 times the number of calls of the group in one of them.
    assert resident() - before < 8 << 20


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_is_flat_over_large_images_and_streams(folder):
    large = numpy.zeros((400, 400), "float32")
    gpuimg.write("large.tif", large)

    def work(count):
        for _ in range(count):
            numpy.asarray(gpuimg.flip(large, "h"))
            gpuimg.decode(gpuimg.encode(large, "tiff"))
            with pytest.raises(ValueError):
                gpuimg.rotate(large, "x")
            for image in gpuimg.stream(["large.tif"] * 3, "flip v", workers=1):
                numpy.from_dlpack(image)

    work(20)
    gc.collect()
    before = resident()
    work(300)
    gc.collect()
    # One image has 640 kB.
    assert resident() - before < 24 << 20


def test_arrays_are_released():
    samples = RAMP.copy()
    kept = weakref.ref(samples)
    image = gpuimg.rotate(samples, 90)
    del samples
    assert kept() is None and image.shape == (6, 4)
