"""The module gives the bytes of the command line, for each verb, sample type and shape."""

import os
import pathlib

import gpuimg
import numpy
import pytest

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]
SHAPES = [(1, 1), (5, 7), (70, 33), (5, 7, 2), (9, 4, 3), (6, 11, 4), (300, 401)]

# The words of the command line, and the call.
VERBS = [
    (["normalize"], lambda it: gpuimg.normalize(it, device="cpu")),
    (["normalize", "--clip", "5:90"], lambda it: gpuimg.normalize(it, clip=(5, 90), device="cpu")),
    (["normalize", "--per-channel"], lambda it: gpuimg.normalize(it, per_channel=True, device="cpu")),
    (["normalize", "--range", "-3:100", "--to", "10:200"], lambda it: gpuimg.normalize(it, range=(-3, 100), to=(10, 200))),
    (["normalize", "--window", "40:60", "--unsigned"], lambda it: gpuimg.normalize(it, window="40:60", unsigned=True)),
    (["normalize", "--ignore", "0,17"], lambda it: gpuimg.normalize(it, ignore=(0, 17))),
    (["normalize", "--auto", "--undo"], lambda it: gpuimg.normalize(it, auto=True, undo=True)),
    (["normalize", "--curve", "asinh:0.2"], lambda it: gpuimg.normalize(it, curve="asinh:0.2")),
    (["normalize", "--range", "zscale"], lambda it: gpuimg.normalize(it, range="zscale")),
    (["normalize", "--range", "stf"], lambda it: gpuimg.normalize(it, range="stf")),
    (["debayer", "GRBG"], lambda it: gpuimg.debayer(it, "GRBG")),
    (["debayer", "RGGB", "--method", "malvar"], lambda it: gpuimg.debayer(it, "RGGB", method="malvar")),
    (["lut", "fire"], lambda it: gpuimg.lut(it, "fire")),
    (["run", "normalize + lut Viridis + flip h"], lambda it: gpuimg.run(it, "normalize + lut Viridis + flip h")),
    (["convert", "--channel", "2"], lambda it: gpuimg.convert(it, channel=2)),
    (["rotate", "90"], lambda it: gpuimg.rotate(it, 90)),
    (["rotate", "180"], lambda it: gpuimg.rotate(it, "180")),
    (["rotate", "270"], lambda it: gpuimg.rotate(it, 270)),
    (["transpose"], lambda it: gpuimg.transpose(it)),
    (["flip", "h"], lambda it: gpuimg.flip(it, "h")),
    (["flip", "vertical"], lambda it: gpuimg.flip(it, "vertical")),
    (["crop", "1,2,3x3"], lambda it: gpuimg.crop(it, (1, 2, 3, 3))),
    (["convert"], lambda it: gpuimg.convert(it)),
    (["convert", "--fit", "5"], lambda it: gpuimg.convert(it, fit=5)),
    (["convert", "--depth", "8"], lambda it: gpuimg.convert(it, depth=8)),
    (["normalize", "--depth", "16"], lambda it: gpuimg.normalize(it, depth=16)),
    (["restore"], lambda it: gpuimg.restore(it)),
    (["run", "normalize --clip 1:99 + rotate 90 + flip h"], lambda it: gpuimg.run(it, "normalize --clip 1:99 + rotate 90 + flip h")),
]


def array(dtype, shape):
    """Samples without a pattern, with negative values where the type has them."""
    samples = numpy.random.default_rng(len(shape) * 1000 + shape[0]).integers(0, 1 << 16, shape)
    if dtype.startswith("float"):
        return (samples / 256 - 100).astype(dtype)
    if dtype.endswith("32"):
        return (samples * 3001).astype(dtype)
    return samples.astype(dtype)


def inputs(folder):
    os.mkdir(folder)
    for dtype in TYPES:
        for shape in SHAPES:
            name = f"{folder}/{dtype}-{'x'.join(map(str, shape))}.tif"
            gpuimg.write(name, array(dtype, shape))
            yield name, dtype, shape


@pytest.mark.parametrize("words, call", VERBS, ids=[" ".join(words) for words, _ in VERBS])
def test_every_verb_gives_the_bytes_of_the_program(folder, program, words, call):
    done = 0
    names = list(inputs("in"))
    program(*words, "in", "out")
    for name, dtype, shape in names:
        expected = pathlib.Path("out", os.path.basename(name))
        try:
            result = call(gpuimg.read(name))
        except gpuimg.Error as error:
            assert not expected.exists(), error
            continue
        gpuimg.write("module.tif", result, overwrite=True)
        assert pathlib.Path("module.tif").read_bytes() == expected.read_bytes(), name
        # An array, without metadata, has the same samples.
        if words != ["restore"]:
            plain = call(array(dtype, shape))
            assert (plain.shape, plain.dtype) == (result.shape, result.dtype)
            assert numpy.asarray(plain).tobytes() == numpy.asarray(gpuimg.read(expected)).tobytes(), name
        done += 1
    # Neither side refuses everything; no file has the record that restore needs.
    assert (done > 0) == (words != ["restore"])


def test_restore_gives_the_bytes_of_the_program(folder, program):
    gpuimg.write("in.tif", array("uint16", (9, 4, 3)))
    program("normalize", "--undo", "in.tif", "scaled.tif")
    program("restore", "scaled.tif", "out.tif")
    scaled = gpuimg.read("scaled.tif")
    assert scaled.metadata.can_be_restored
    restored = gpuimg.restore(scaled)
    gpuimg.write("module.tif", restored)
    assert pathlib.Path("module.tif").read_bytes() == pathlib.Path("out.tif").read_bytes()
    assert (numpy.asarray(restored) == array("uint16", (9, 4, 3))).all()


def test_calibrate_gives_the_bytes_of_the_program(folder, program):
    image, dark, flat = (array("uint16", (8, height + 9, 3)) // 3 for height in range(3))
    image, dark, flat = image[:, :9], dark[:, :9] // 50, flat[:, :9] + 1000
    bias = dark // 3
    for name, frame in (("in", image), ("bias", bias), ("dark", dark), ("flat", flat)):
        gpuimg.write(f"{name}.tif", frame)
    program("calibrate", "--dark", "dark.tif", "--flat", "flat.tif", "--offset", "7", "in.tif", "out.tif")
    result = gpuimg.calibrate(image, dark=dark, flat=gpuimg.read("flat.tif"), offset=7)
    assert numpy.asarray(result).tobytes() == numpy.asarray(gpuimg.read("out.tif")).tobytes()
    program("calibrate", "--bias", "bias.tif", "--flat", "flat.tif", "in.tif", "biased.tif")
    result = gpuimg.calibrate(image, bias=bias, flat=flat)
    assert numpy.asarray(result).tobytes() == numpy.asarray(gpuimg.read("biased.tif")).tobytes()


def test_calibrate_in_floating_point_gives_the_bytes_of_the_program(folder, program):
    image, dark, flat = (array("uint16", (8, height + 9, 3)) // 3 for height in range(3))
    image, dark, flat = image[:, :9], dark[:, :9] // 50, flat[:, :9] + 1000
    real = (flat / 7).astype("float32")
    for name, frame in (("in", image), ("dark", dark), ("flat", flat), ("real", real)):
        gpuimg.write(f"{name}.tif", frame)
    frames = ("--dark", "dark.tif", "--flat", "real.tif", "--to", "f32")
    for options, named in (((), {}), (("--hot", "9"), {"hot": 9}), (("--log",), {"log": True})):
        program("calibrate", *frames, *options, "in.tif", "out.tif", "--overwrite")
        result = numpy.asarray(gpuimg.calibrate(image, dark=dark, flat=real, to="f32", **named))
        assert result.dtype == numpy.float32
        assert result.tobytes() == numpy.asarray(gpuimg.read("out.tif")).tobytes(), options
    # The index in a list is that of the page in a stack.
    stack = [image, image // 2, image // 3]
    gpuimg.write("stack.tif", stack)
    program("calibrate", "--flat-start", "flat.tif", "--flat-end", "in.tif", "stack.tif", "pages.tif")
    results = gpuimg.calibrate(stack, flat_start=flat, flat_end=image)
    for result, page in zip(results, gpuimg.read_pages("pages.tif"), strict=True):
        assert numpy.asarray(result).tobytes() == numpy.asarray(page).tobytes()
    for wrong in ({"flat_start": flat}, {"flat": flat, "log": True}, {"dark": dark, "to": "f64"}):
        with pytest.raises((gpuimg.Error, ValueError)):
            gpuimg.calibrate(image, **wrong)


def test_projections_in_floating_point_give_the_bytes_of_the_program(folder, program):
    whole = [array("uint16", (height + 9, 7))[:9] for height in range(5)]
    real = [(image / 7).astype("float32") for image in whole]
    real[1][0, 0] = numpy.nan
    os.makedirs("whole")
    os.makedirs("real")
    for index, (one, other) in enumerate(zip(whole, real, strict=True)):
        gpuimg.write(f"whole/{index}.tif", one)
        gpuimg.write(f"real/{index}.tif", other)
    for how, options, named in (
        ("mean", ("--to", "f32"), {"to": "f32"}),
        ("median", ("--to", "f32"), {"to": "f32"}),
        ("mean", ("--sigma", "1.5"), {"sigma": 1.5}),
        ("sum", ("--to", "32"), {"to": 32}),
    ):
        program("project", how, *options, "whole", "out.tif", "--overwrite")
        result = numpy.asarray(gpuimg.project(whole, how, **named))
        assert result.tobytes() == numpy.asarray(gpuimg.read("out.tif")).tobytes(), (how, options)
    for how, options, named in (("sum", (), {}), ("mean", ("--sigma", "2"), {"sigma": 2}), ("max", (), {})):
        program("project", how, "--nan", "3", *options, "real", "out.tif", "--overwrite")
        result = numpy.asarray(gpuimg.project(real, how, nan=3, **named))
        assert result.tobytes() == numpy.asarray(gpuimg.read("out.tif")).tobytes(), (how, options)
    with pytest.raises((gpuimg.Error, ValueError)):
        gpuimg.project(real, "mean")
    with pytest.raises((gpuimg.Error, ValueError)):
        gpuimg.project(whole, "mean", to=64)


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_are_those_of_numpy(dtype):
    samples = array(dtype, (9, 4, 3))
    sums = gpuimg.sum(samples)
    if dtype.startswith("float"):
        # Sixteenths: float64 adds them without rounding.
        exact = float(samples.astype("float64").sum())
    else:
        exact = sum(map(int, samples.ravel()))
    assert sums.sum == exact
    assert type(sums.sum) is (float if dtype.startswith("float") else int)
    assert (sums.min, sums.max) == (samples.min(), samples.max())
    assert [channel.name for channel in sums.channels] == ["red", "green", "blue"]
    assert sums.channels[1].max == samples[..., 1].max()


def test_sums_do_not_overflow():
    assert gpuimg.sum(numpy.full((3, 5), 2**32 - 1, "uint32")).sum == 15 * (2**32 - 1)


@pytest.mark.parametrize("dtype, first, values", [("uint8", 0, 256), ("int8", -128, 256), ("uint16", 0, 65536), ("int16", -32768, 65536)])
def test_histograms_are_those_of_numpy(dtype, first, values):
    samples = array(dtype, (30, 41, 2))
    histogram = gpuimg.histogram(samples)
    counts = numpy.asarray(histogram.counts)
    assert (histogram.first_value, counts.shape, counts.dtype) == (first, (2, values), "uint64")
    for channel in range(2):
        expected = numpy.bincount(samples[..., channel].ravel().astype(int) - first, minlength=values)
        assert (counts[channel] == expected).all()


def test_normalize_on_three_by_two():
    # floor((p − 100) · 65535 / 200 + 1/2)
    samples = numpy.array([[100, 101, 150], [200, 299, 300]], "uint16")
    assert numpy.asarray(gpuimg.normalize(samples)).tolist() == [[0, 328, 16384], [32768, 65207, 65535]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_positions_are_those_of_numpy(dtype, shape):
    samples = array(dtype, shape)
    for call, expected in [
        (gpuimg.rotate(samples, 90), numpy.rot90(samples, -1)),
        (gpuimg.rotate(samples, 180), numpy.rot90(samples, 2)),
        (gpuimg.rotate(samples, 270), numpy.rot90(samples, 1)),
        (gpuimg.transpose(samples), samples.swapaxes(0, 1)),
        (gpuimg.flip(samples, "h"), samples[:, ::-1]),
        (gpuimg.flip(samples, "v"), samples[::-1]),
        (gpuimg.crop(samples, (0, 0, shape[1], 1)), samples[:1]),
    ]:
        assert call.dtype == dtype
        numpy.testing.assert_array_equal(numpy.asarray(call), expected, strict=True)


def test_the_program_is_part_of_the_wheel(program):
    assert program("--version") == f"gpuimg {gpuimg.__version__}\n".encode()


def test_files_and_bytes(folder, program):
    samples = array("uint16", (9, 4, 3))
    gpuimg.write("a.png", samples)
    program("convert", "a.png", "b.png")
    assert pathlib.Path("a.png").read_bytes() == pathlib.Path("b.png").read_bytes() == gpuimg.encode(samples, "png")
    for data in (gpuimg.encode(samples, "png"), bytearray(gpuimg.encode(samples, "png")), memoryview(gpuimg.encode(samples, "png"))):
        assert (numpy.asarray(gpuimg.decode(data)) == samples).all()


def test_stacks_share_one_range(folder, program):
    pages = [array("uint16", (9, 4)) // (1 + page) for page in range(3)]
    gpuimg.write("in.tif", pages)
    program("normalize", "in.tif", "out.tif")
    gpuimg.write("module.tif", gpuimg.normalize(gpuimg.read_pages("in.tif")))
    assert pathlib.Path("module.tif").read_bytes() == pathlib.Path("out.tif").read_bytes()
    for page in range(3):
        assert (numpy.asarray(gpuimg.read("in.tif", page=page + 1)) == pages[page]).all()
