"""The codecs of Zarr 3 and of numcodecs: chunks that are image files."""

import json
import pathlib

import gpuimg
import numpy
import pytest

zarr = pytest.importorskip("zarr", reason="SKIPPED: Zarr is not installed")
numcodecs = pytest.importorskip("numcodecs", reason="SKIPPED: numcodecs is not installed")

from gpuimg import numcodecs as codecs2  # noqa: E402
from gpuimg import zarr as codecs3  # noqa: E402

RAMP = numpy.arange(4 * 70 * 33, dtype="uint16").reshape(4, 70, 33)


def create(version, format, samples, chunks):
    """Writes an array with the codec of a version of Zarr's format."""
    if version == 3:
        codec = {"serializer": codecs3.ImageCodec(format), "compressors": None}
    else:
        codec = {"compressors": codecs2.ImageCodec(format)}
    array = zarr.create_array(
        "a.zarr", shape=samples.shape, chunks=chunks, dtype=samples.dtype, zarr_format=version, overwrite=True, **codec
    )
    array[:] = samples


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("format", ["png", "tiff"])
def test_an_array_comes_back_and_its_chunks_are_files(folder, version, format):
    create(version, format, RAMP, (1, 32, 33))
    # Opened by name: the codec is found by its entry point.
    assert (zarr.open_array("a.zarr", mode="r")[:] == RAMP).all()
    chunk = pathlib.Path("a.zarr", *("c", "2", "1", "0") if version == 3 else ("2.1.0",))
    image = gpuimg.read(chunk)
    assert image.dtype == "uint16" and (numpy.asarray(image) == RAMP[2, 32:64]).all()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint32", "int32", "float32", "float64"])
def test_tiff_chunks_keep_every_type(folder, version, dtype):
    samples = (numpy.random.default_rng(4).integers(-(1 << 31), 1 << 31, (6, 5, 3)) / 7).astype(dtype)
    create(version, "tiff", samples, (4, 5, 3))
    assert (zarr.open_array("a.zarr", mode="r")[:] == samples).all()


def test_arrays_of_the_other_byte_order(folder):
    swapped = RAMP.astype(">u2")
    create(3, "png", swapped, (1, 70, 33))
    assert (zarr.open_array("a.zarr", mode="r")[:] == RAMP).all()
    # Samples came back with their bytes swapped.
    with pytest.raises(ValueError, match="native byte order"):
        create(2, "png", swapped, (1, 70, 33))


def folder_as_array(shape, dtype):
    """Frames of a folder as the chunks of an array: only zarr.json is new."""
    root = pathlib.Path("frames.zarr")
    array = zarr.create_array(
        root, shape=shape, chunks=(1, *shape[1:]), dtype=dtype, serializer=codecs3.ImageCodec(), compressors=None, overwrite=True
    )
    for index in range(shape[0]):
        chunk = root / "c" / str(index) / "/".join(["0"] * (len(shape) - 1))
        chunk.parent.mkdir(parents=True)
        chunk.symlink_to(pathlib.Path(f"{index}.png").resolve())
    return array


def test_frames_of_a_folder_are_an_array(folder):
    for index, frame in enumerate(RAMP):
        gpuimg.write(f"{index}.png", frame)
    frames = folder_as_array(RAMP.shape, "uint16")
    assert (frames[1:3, 5] == RAMP[1:3, 5]).all()


@pytest.mark.parametrize("wrong", [RAMP[0].astype("uint8"), RAMP[0, :69], numpy.zeros((70, 34), "uint16"), numpy.zeros((70, 33, 3), "uint16")])
def test_a_file_that_is_not_the_chunk_is_an_error(folder, wrong):
    gpuimg.write("0.png", wrong)
    frames = folder_as_array((1, 70, 33), "uint16")
    with pytest.raises(ValueError, match="chunk|pixels"):
        frames[:]


def test_a_damaged_file_is_an_error(folder):
    data = gpuimg.encode(RAMP[0], "png")
    pathlib.Path("0.png").write_bytes(data[:-100])
    frames = folder_as_array((1, 70, 33), "uint16")
    with pytest.raises(gpuimg.Error):
        frames[:]


@pytest.mark.parametrize(
    "format, samples, sentence",
    [
        ("png", RAMP[0].astype("float32"), "png files cannot hold float32"),
        ("png", RAMP[0].astype("int16"), "png files cannot hold int16"),
        ("tiff", RAMP[0].astype("int64"), "tiff files cannot hold int64"),
        ("tiff", RAMP, "not one image"),
        ("tiff", RAMP[0, 0], "not one image"),
    ],
)
def test_what_is_not_an_image_is_refused(format, samples, sentence):
    with pytest.raises(ValueError, match=sentence):
        codecs2.ImageCodec(format).encode(samples)


def test_configurations_are_those_of_zarr(folder):
    create(3, "tiff", RAMP, (1, 70, 33))
    (stored,) = json.loads(pathlib.Path("a.zarr/zarr.json").read_text())["codecs"]
    assert stored == {"name": "gpuimg", "configuration": {"format": "tiff"}}
    codec = numcodecs.get_codec({"id": "gpuimg", "format": "png", "png": "small"})
    assert codec == codecs2.ImageCodec(png="small")
    assert codec.get_config() == {"id": "gpuimg", "format": "png", "png": "small"}
    for wrong in [codecs2.ImageCodec, codecs3.ImageCodec]:
        with pytest.raises(ValueError, match="png or tiff, got 'jpeg'"):
            wrong("jpeg")


def test_numcodecs_decodes_into_memory_of_the_caller():
    data = codecs2.ImageCodec("tiff", tiff="zstd").encode(RAMP[:1])
    out = numpy.zeros((70, 33), "uint16")
    assert codecs2.ImageCodec().decode(data, out) is out
    assert (out == RAMP[0]).all()
