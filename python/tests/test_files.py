"""Streams, batches, signals and forks."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading

import gpuimg
import numpy
import pytest


def files(count):
    os.mkdir("in")
    for index in range(count):
        samples = numpy.random.default_rng(index).integers(0, 65536, (20 + index, 31)).astype("uint16")
        gpuimg.write(f"in/{index:03}.tif", samples)
    return [f"in/{index:03}.tif" for index in range(count)]


@pytest.mark.parametrize("workers", [None, 1, 7])
def test_stream_is_in_order(folder, workers):
    paths = files(40)
    results = list(gpuimg.stream(paths, ops="normalize + rotate 90", workers=workers))
    assert [str(image.path) for image in results] == paths
    for path, image in zip(paths, results):
        assert image == gpuimg.run(gpuimg.read(path), "normalize + rotate 90")


def test_stream_takes_paths_as_they_are_needed(folder):
    (path,) = files(1)
    taken = []

    def paths():
        while True:
            taken.append(path)
            yield pathlib.Path(path)

    stream = gpuimg.stream(paths(), workers=2)
    for _ in range(10):
        next(stream)
    # Two for each worker, and those that were given.
    assert len(taken) <= 10 + 4


def test_stream_in_batches(folder):
    batches = list(gpuimg.stream(files(10), batch=4, dtype="float32"))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert batches[2][1].shape == (29, 31) and batches[0][0].dtype == "float32"


def test_stream_raises_or_returns_errors(folder):
    paths = files(3)
    paths.insert(1, "missing.tif")
    stream = gpuimg.stream(paths)
    assert next(stream).height == 20
    with pytest.raises(FileNotFoundError, match="missing.tif"):
        next(stream)
    assert next(stream).height == 21
    results = list(gpuimg.stream(paths, errors="return"))
    assert isinstance(results[1], gpuimg.NotFoundError) and results[3].height == 22
    with pytest.raises(TypeError):
        next(gpuimg.stream([3]))
    assert list(gpuimg.stream([])) == []


def test_process_gives_the_bytes_of_the_program(folder, program):
    files(6)
    pathlib.Path("in/bad.tif").write_bytes(b"II*\0")
    seen = []
    results = gpuimg.process("in", "out", ops="normalize + rotate 90", on_progress=seen.append)
    assert results == seen and len(results) == 7
    assert [result.finished for result in results] == list(range(1, 8))
    (failed,) = [result for result in results if result.status == "failed"]
    assert failed.input == "in/bad.tif" and isinstance(failed.error, gpuimg.Error) and failed.error.path == "in/bad.tif"
    program("run", "normalize + rotate 90", "in", "expected")
    for result in results:
        if result.status == "done":
            name = os.path.basename(result.output)
            assert result.ranges and pathlib.Path(result.output).read_bytes() == pathlib.Path("expected", name).read_bytes()
    again = gpuimg.process(["in"], "out", ops="normalize + rotate 90", resume=True, exclude="bad*")
    assert {result.status for result in again} == {"skipped"}
    (missing,) = gpuimg.process("nowhere.tif", "out")
    assert missing.status == "failed" and isinstance(missing.error, FileNotFoundError)
    with pytest.raises(gpuimg.Error):
        gpuimg.process([], "out")


def contents(path):
    """The bytes of a file, or of all files of a folder by their names."""
    path = pathlib.Path(path)
    if path.is_file():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "name, options, words",
    [
        ("cog.tif", {"tiff_layout": "cog", "tiff": "zstd"}, "--tiff-layout cog --tiff zstd"),
        ("plain.zarr", {"zarr": "none"}, "--zarr none"),
        ("shards.zarr", {"zarr_chunk": 8, "zarr_shard": 16, "zarr_levels": 3}, "--zarr-chunk 8 --zarr-shard 16 --zarr-levels 3"),
    ],
)
def test_options_of_outputs_are_those_of_the_program(folder, program, name, options, words):
    (path,) = files(1)
    gpuimg.write(name, gpuimg.read(path), **options)
    program("convert", path, f"expected-{name}", *words.split())
    expected = contents(f"expected-{name}")
    assert contents(name) == expected and len(expected) > 1
    (result,) = gpuimg.process(path, f"processed-{name}", ops="convert", **options)
    assert result.status == "done" and contents(f"processed-{name}") == expected


def test_wrong_options_of_outputs_are_named(folder):
    samples = numpy.zeros((3, 2), "uint16")
    for options, words in [
        ({"tiff_layout": "rows"}, "expected strips, cog"),
        ({"zarr": "gzip"}, "expected none, zstd"),
        ({"zarr_chunk": 0}, "zarr_chunk: expected a number from 1 to 16384, not 0"),
        ({"zarr_chunk": 8, "zarr_shard": 12}, "--zarr-shard 12 is not a multiple of --zarr-chunk 8"),
        ({"zarr_levels": 65}, "zarr_levels: expected a number from 1 to 64, not 65"),
    ]:
        with pytest.raises(gpuimg.Error, match=words):
            gpuimg.write("out.zarr", samples, **options)
    with pytest.raises(gpuimg.Error, match="one image, not 2 pages"):
        gpuimg.write("out.tif", [samples, samples], tiff_layout="cog")
    assert os.listdir() == []
    assert gpuimg.encode(samples, "tiff", tiff_layout="cog")[:4] == b"II*\0"


def test_an_exception_in_on_progress_stops_a_batch(folder):
    files(20)

    def stop(result):
        raise KeyError(result.finished)

    with pytest.raises(KeyError, match="1"):
        gpuimg.process("in", "out", on_progress=stop, jobs=1)
    assert len(list(pathlib.Path("out").glob("*.tif"))) < 20


def test_keyboard_interrupt_stops_a_batch_and_a_stream(folder):
    # It is ignored in a process that a shell started in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    paths = files(30)

    def interrupt(result=None):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        gpuimg.process("in", "out", on_progress=interrupt, jobs=1)
    # A file that never comes.
    os.mkfifo("pipe")
    timer = threading.Timer(0.2, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(gpuimg.stream([paths[0], "pipe"]))
    finally:
        timer.join()
        # Lets the worker end.
        os.close(os.open("pipe", os.O_RDWR | os.O_NONBLOCK))


SCRIPT = """
import multiprocessing, os, sys
import gpuimg, numpy

samples = numpy.random.default_rng(3).integers(0, 65536, (700, 801)).astype("uint16")

def work(which):
    array = samples[: 5 if which % 2 else None]
    images = list(gpuimg.stream(["a.tif"] * 5, ops="rotate 90"))
    results = gpuimg.process("a.tif", f"{os.getpid()}-{which}.tif", overwrite=True)
    assert [result.status for result in results] == ["done"], results
    gpuimg.decode(gpuimg.encode(array, "png"))
    return numpy.asarray(gpuimg.normalize(array)).sum(dtype="uint64"), images[4].shape, os.getpid()

if __name__ == "__main__":
    gpuimg.write("a.tif", samples, overwrite=True)
    open_stream = gpuimg.stream(["a.tif"] * 9)
    next(open_stream)
    expected = [work(which)[:2] for which in range(6)]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        results = pool.map(work, range(6))
    assert [result[:2] for result in results] == expected
    assert os.getpid() not in [result[2] for result in results]
    assert work(0)[:2] == expected[0]
    if sys.argv[1] == "fork":
        child = os.fork()
        if child == 0:
            try:
                next(open_stream)
            except RuntimeError as error:
                os._exit(7 if "make another one after the fork" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(list(open_stream)) == 8
    print("good")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes(folder, method):
    pathlib.Path("script.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, "script.py", method], capture_output=True, text=True, timeout=300)
    assert done.stdout == "good\n", done.stderr


def test_a_level_that_does_not_exist_is_refused(folder):
    gpuimg.write("one.png", numpy.zeros((3, 2), "uint16"))
    assert gpuimg.read("one.png", level=0).shape == (3, 2)
    with pytest.raises(gpuimg.Error, match="it has no level 1"):
        gpuimg.read("one.png", level=1)


def test_info_is_that_of_the_program(folder, program):
    path = pathlib.Path("stack.tif")
    gpuimg.write(path, [numpy.full((2, 3), value, "uint16") for value in (7, 900)])
    (about,) = gpuimg.info(path, range=True)
    assert about == json.loads(program("info", path, "--json", "--range"))
    assert (about["width"], about["height"], about["pages"], about["depth"]) == (3, 2, 2, 16)
    assert about["range"] == {"min": 7, "max": 900}
    assert gpuimg.info(path)[0]["range"] is None
    with pytest.raises(gpuimg.NotFoundError, match="missing.tif: no such file"):
        gpuimg.info("missing.tif")
