"""Samples that are read and written where they are: lent arrays, out, DLPack, projections, dtypes."""

import gc
import itertools
import weakref

import gpuimg
import numpy
import pytest

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]
RANDOM = numpy.random.default_rng(3)
# Large enough for the threads, for chunks, and for memory that is kept.
LARGE = RANDOM.integers(0, 65536, (1600, 1500)).astype("uint16")


def address(array):
    return numpy.asarray(array).__array_interface__["data"][0]


def test_an_array_is_not_changed_and_no_result_refers_to_it():
    samples = LARGE.copy()
    calls = [
        lambda: gpuimg.convert(samples),
        lambda: gpuimg.normalize(samples),
        lambda: gpuimg.normalize(samples, range=(0, 65535)),
        lambda: gpuimg.rotate(samples, 180),
        lambda: gpuimg.flip(samples, "h"),
        lambda: gpuimg.flip(samples, "v"),
        lambda: gpuimg.transpose(samples),
        lambda: gpuimg.crop(samples, (0, 0, 1500, 1600)),
        lambda: gpuimg.calibrate(samples, offset=1, dark=samples // 2),
        lambda: gpuimg.Image(samples),
    ]
    for call in calls:
        result = call()
        assert (samples == LARGE).all()
        assert not numpy.shares_memory(numpy.asarray(result), samples)
        before = numpy.array(result)
        samples[:] = 0
        assert (numpy.asarray(result) == before).all()
        samples[:] = LARGE


def test_results_of_kept_memory_do_not_share_it():
    kept = [numpy.asarray(gpuimg.normalize(LARGE))]
    for _ in range(6):
        gpuimg.flip(LARGE, "h")
        kept.append(numpy.asarray(gpuimg.normalize(LARGE)))
    assert len({address(array) for array in kept}) == len(kept)
    for array in kept[1:]:
        assert (array == kept[0]).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_out_has_the_result_of_every_call(dtype):
    samples = (RANDOM.integers(0, 1 << 16, (70, 33, 3)) / 3).astype(dtype)
    calls = [
        lambda **out: gpuimg.normalize(samples, **out),
        lambda **out: gpuimg.normalize(samples, clip=(1, 90), **out),
        lambda **out: gpuimg.rotate(samples, 90, **out),
        lambda **out: gpuimg.rotate(samples, 180, **out),
        lambda **out: gpuimg.flip(samples, "v", **out),
        lambda **out: gpuimg.convert(samples, **out),
        lambda **out: gpuimg.convert(samples, channel=2, **out),
        lambda **out: gpuimg.crop(samples, (1, 2, 30, 40), **out),
        lambda **out: gpuimg.run(samples, "rotate 90 + normalize + flip h", **out),
    ]
    for call in calls:
        expected = numpy.asarray(call())
        # Two arrays side by side: nothing is written beyond the first.
        both = numpy.full((2, *expected.shape), 7, expected.dtype)
        out = both[0]
        assert call(out=out) is out
        assert out.tobytes() == expected.tobytes()
        assert (both[1] == 7).all()


def test_out_may_overlap_with_the_input():
    for shift in (0, 1, 5, 64):
        for call in (
            lambda it, **out: gpuimg.flip(it, "h", **out),
            lambda it, **out: gpuimg.flip(it, "v", **out),
            lambda it, **out: gpuimg.convert(it, **out),
            lambda it, **out: gpuimg.normalize(it, **out),
            lambda it, **out: gpuimg.transpose(it, **out),
            lambda it, **out: gpuimg.calibrate(it, dark=it, offset=3, **out),
        ):
            memory = numpy.arange(64 * 64 + 64, dtype="uint16")
            source = memory[: 64 * 64].reshape(64, 64)
            target = memory[shift:][: 64 * 64].reshape(64, 64)
            expected = numpy.array(call(source.copy()))
            call(source, out=target)
            assert (target == expected).all(), shift


def test_out_may_be_the_dark_frame():
    image, dark = LARGE[:64, :64].copy(), LARGE[64:128, :64] // 2
    expected = numpy.array(gpuimg.calibrate(image, dark=dark))
    gpuimg.calibrate(image, dark=dark, out=dark)
    assert (dark == expected).all()


def test_an_array_out_of_alignment_is_read():
    memory = bytearray(b"x") + LARGE[:50, :70].tobytes()
    samples = numpy.frombuffer(memory, "uint16", count=3500, offset=1).reshape(50, 70)
    assert (numpy.asarray(gpuimg.flip(samples, "h")) == LARGE[:50, 69::-1]).all()
    assert gpuimg.sum(samples).sum == int(LARGE[:50, :70].sum())


def test_read_only_arrays_are_read():
    samples = LARGE[:64].copy()
    samples.flags.writeable = False
    assert (numpy.asarray(gpuimg.flip(samples, "h")) == LARGE[:64, ::-1]).all()
    with pytest.raises(ValueError, match="read-only"):
        gpuimg.flip(LARGE[:64], "h", out=samples)
    assert (samples == LARGE[:64]).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 7), (70, 33, 2), (1, 1)])
def test_dlpack_lends_the_samples_to_numpy(dtype, shape):
    samples = (RANDOM.integers(0, 1 << 16, shape) / 3).astype(dtype)
    image = gpuimg.Image(samples)
    assert image.__dlpack_device__() == (1, 0)
    array = numpy.from_dlpack(image)
    numpy.testing.assert_array_equal(array, samples, strict=True)
    assert address(array) == address(image)
    assert not array.flags.writeable
    copy = numpy.from_dlpack(image, copy=True)
    numpy.testing.assert_array_equal(copy, samples, strict=True)
    assert address(copy) != address(image)
    copy[:] = 0
    del image
    gc.collect()
    numpy.testing.assert_array_equal(array, samples, strict=True)


def test_dlpack_of_receivers_before_its_version_1_is_a_copy():
    class Old:
        def __init__(self, image):
            self.image = image

        def __dlpack_device__(self):
            return self.image.__dlpack_device__()

        def __dlpack__(self, **_):
            return self.image.__dlpack__()

    image = gpuimg.Image(LARGE)
    array = numpy.from_dlpack(Old(image))
    assert (array == LARGE).all() and address(array) != address(image)


def test_dlpack_refuses_what_it_cannot_do():
    image = gpuimg.Image(LARGE[:3])
    with pytest.raises(BufferError, match="read-only"):
        image.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="no stream"):
        image.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="host memory"):
        image.__dlpack__(dl_device=(2, 0))
    # Capsules that nobody receives free their tensors.
    for version in (None, (0, 8), (1, 0), (1, 1), (2, 0)):
        assert "dltensor" in repr(image.__dlpack__(max_version=version))


def test_pytorch_takes_images():
    image = gpuimg.Image(LARGE[:64])
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert (torch.from_dlpack(gpuimg.convert(image, dtype="float32")).numpy() == LARGE[:64]).all()


def test_dlpack_is_released():
    class Watched(numpy.ndarray):
        pass

    image = gpuimg.Image(LARGE[:64])
    array = numpy.from_dlpack(image).view(Watched)
    kept = weakref.ref(array)
    del array, image
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_projections_are_those_of_numpy(dtype, count):
    images = [(RANDOM.integers(0, 1 << 16, (70, 33, 3)) // 8).astype(dtype) for _ in range(count)]
    stack = numpy.stack(images).astype("int64")
    ordered = numpy.sort(stack, axis=0)
    median = (ordered[(count - 1) // 2] + ordered[count // 2] + 1) // 2
    expected = {
        "min": stack.min(axis=0),
        "max": stack.max(axis=0),
        "mean": (2 * stack.sum(axis=0) + count) // (2 * count),
        "median": median,
    }
    for how, samples in expected.items():
        for given in (images, tuple(images), numpy.stack(images), map(gpuimg.Image, images)):
            result = gpuimg.project(given, how)
            numpy.testing.assert_array_equal(numpy.asarray(result), samples.astype(dtype), strict=True)
    wide = gpuimg.project(images, "sum", to=32)
    assert wide.dtype == ("int32" if dtype.startswith("int") else "uint32")
    assert (numpy.asarray(wide) == stack.sum(axis=0)).all()
    limits = numpy.iinfo(dtype)
    clamped = gpuimg.project(images, "sum", saturate=True)
    assert (numpy.asarray(clamped) == stack.sum(axis=0).clip(limits.min, limits.max)).all()


def test_combined_channels_are_those_of_numpy():
    red, green, blue = (RANDOM.integers(0, 1 << 16, (33, 70)).astype("uint16") for _ in range(3))
    for given in ([red, green, blue], (red, green, blue), numpy.stack([red, green, blue]), map(gpuimg.Image, (red, green, blue))):
        numpy.testing.assert_array_equal(numpy.asarray(gpuimg.combine(given)), numpy.dstack([red, green, blue]), strict=True)
    colours = [(0, 255, 0), (255, 0, 51)]
    sums = red[..., None] * numpy.array(colours[0], "int64") + green[..., None] * numpy.array(colours[1], "int64")
    expected = numpy.minimum((sums + 127) // 255, 65535).astype("uint16")
    numpy.testing.assert_array_equal(numpy.asarray(gpuimg.combine([red, green], colours=colours)), expected, strict=True)
    with pytest.raises(gpuimg.ArgumentError, match="give each image a colour"):
        gpuimg.combine([red, green], colours=colours[:1])
    with pytest.raises(gpuimg.Error):
        gpuimg.combine([red, green])


def test_a_projection_of_files_has_the_bytes_of_the_program(folder, program):
    for number in range(3):
        gpuimg.write(f"{number}.tif", (LARGE[:40, :50] // (number + 2)).astype("uint16"))
    images = [gpuimg.read(f"{number}.tif") for number in range(3)]
    for how in ("sum", "mean", "min", "max", "median"):
        words, options = (["--to", "32"], {"to": 32}) if how == "sum" else ([], {})
        program("project", how, *words, "0.tif", "1.tif", "2.tif", f"{how}.tif")
        gpuimg.write(f"module-{how}.tif", gpuimg.project(images, how, **options))
        assert open(f"module-{how}.tif", "rb").read() == open(f"{how}.tif", "rb").read(), how


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda: gpuimg.project([], "mean"), "there is no image"),
        (lambda: gpuimg.project([LARGE], "average"), "expected sum, mean, min, max or median"),
        (lambda: gpuimg.project([LARGE, LARGE[:5]], "mean"), "image 2 is"),
        (lambda: gpuimg.project([LARGE, LARGE], "sum"), "can hold only 0 to 65535"),
        (lambda: gpuimg.project([LARGE], "sum", to=24), 'expected 16, 32 or "f32"'),
        (lambda: gpuimg.project([LARGE], "mean", saturate=True), "saturate"),
        (lambda: gpuimg.sum(LARGE, nan=float("inf")), "finite"),
        (lambda: gpuimg.convert(LARGE, dtype="uint8"), "hold every value"),
        (lambda: gpuimg.convert(LARGE, dtype="int16"), "hold every value"),
    ],
)
def test_what_cannot_be_done_is_an_error(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_sums_leave_nan_out_or_replace_it():
    samples = numpy.array([[1.5, numpy.nan], [numpy.inf, 2.0]], "float32")
    with pytest.raises(gpuimg.Error):
        gpuimg.sum(samples)
    assert gpuimg.sum(samples, nan=0).sum == 3.5
    assert gpuimg.sum(samples, nan=10).sum == 23.5
    assert gpuimg.sum(samples.astype("float64"), nan=-1).sum == 1.5


def test_dtypes_hold_every_value():
    limits = {name: numpy.iinfo(name) for name in TYPES if "int" in name}
    for given, wanted in itertools.product(TYPES, TYPES):
        if given.startswith("float"):
            samples = numpy.array([[-1.5, 0.0, 3e38]], given)
        else:
            samples = numpy.array([[limits[given].min, 1, limits[given].max]], given)
        exact = numpy.can_cast(given, wanted, "safe")
        if exact:
            result = numpy.asarray(gpuimg.convert(samples, dtype=wanted))
            numpy.testing.assert_array_equal(result, samples.astype(wanted), strict=True)
        else:
            with pytest.raises(ValueError, match="hold every value"):
                gpuimg.convert(samples, dtype=wanted)
