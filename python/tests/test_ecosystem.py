"""Examples with other packages, and the plugin for napari. Packages that are not installed are skipped."""

import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys

import gpuimg
import numpy
import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
PAGES = [numpy.arange(600, dtype="uint16").reshape(20, 30) * (page + 1) for page in range(3)]


def files():
    names = [f"{page}.tif" for page in range(3)]
    for name, samples in zip(names, PAGES):
        gpuimg.write(name, samples)
    return names


def example(name, *arguments):
    command = [sys.executable, EXAMPLES / name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("package, name", [("dask.distributed", "dask_blocks.py"), ("ray", "ray_files.py")])
def test_clusters_normalize_files(folder, package, name):
    pytest.importorskip(package, reason=f"SKIPPED: {package} is not installed")
    # The smallest sample becomes 0 and the largest 65535, in even steps: the mean is the middle.
    means = [float(word) for word in example(name, *files()).strip(" []\n").replace(",", " ").split()]
    expected = [numpy.asarray(gpuimg.normalize(page)).mean() for page in PAGES]
    assert numpy.allclose(means, expected) and abs(means[0] - 32767.5) < 1


def test_pytorch_loads_batches(folder):
    pytest.importorskip("torch", reason="SKIPPED: PyTorch is not installed")
    lines = example("pytorch_dataset.py", *files()).splitlines()
    assert lines == ["(3, 1, 20, 30) torch.float32", *["(1, 20, 30) torch.float32"] * 3]


def test_jax_takes_images():
    pytest.importorskip("jax", reason="SKIPPED: JAX is not installed")
    import jax.dlpack

    image = gpuimg.convert(PAGES[1], dtype="float32")
    array = jax.dlpack.from_dlpack(image)
    assert array.dtype == "float32" and (numpy.asarray(array) == PAGES[1]).all()


def test_a_process_that_was_forked_after_a_gpu_was_started_says_so(folder):
    # Whether there is a GPU or not: the library has tried to start one.
    script = """
import gpuimg, numpy, os
samples = numpy.zeros((300, 300), "uint16")
try:
    gpuimg.flip(samples, "h", device="gpu")
except gpuimg.DeviceError:
    pass
child = os.fork()
if child == 0:
    gpuimg.flip(samples, "h"), gpuimg.flip(samples, "h", device="cpu")
    try:
        gpuimg.flip(samples, "h", device="gpu:0")
    except gpuimg.DeviceError as error:
        os._exit(7 if 'get_context("spawn")' in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "7\n", done.stderr


def test_the_plugin_for_napari_knows_every_format():
    manifest = pathlib.Path(gpuimg.__file__).with_name("napari.yaml").read_text()
    patterns = re.findall(r'- "\*\.(.*)"', manifest)
    formats = map(json.loads, program_formats().splitlines())
    assert patterns == [name for entry in formats for name in entry["extensions"]]
    (point,) = importlib.metadata.entry_points(group="napari.manifest", name="gpuimg")
    assert point.value == "gpuimg:napari.yaml"
    module, function = re.search(r"python_name: (.*):(.*)", manifest).groups()
    assert callable(getattr(__import__(module, fromlist=[function]), function))


def program_formats():
    command = pathlib.Path(sys.executable).with_name("gpuimg")
    return subprocess.run([command, "formats", "--json"], capture_output=True, text=True, check=True).stdout


def test_napari_validates_the_plugin():
    npe2 = pytest.importorskip("npe2", reason="SKIPPED: npe2 is not installed")
    manifest = npe2.PluginManifest.from_distribution("gpuimg")
    assert manifest.contributions.readers[0].command == "gpuimg.read"


def test_napari_reads_layers(folder):
    from gpuimg._napari import reader

    colours = numpy.arange(60, dtype="uint8").reshape(4, 5, 3)
    gpuimg.write("stack.tif", PAGES)
    gpuimg.write("colours.png", colours)
    gpuimg.write("alpha.png", colours[..., :2])
    gpuimg.write("mixed.tif", [PAGES[0], PAGES[0][:5]])
    assert reader(".") is None, "a folder of files"
    samples, options, kind = reader("stack.tif")("stack.tif")[0]
    assert (samples == numpy.stack(PAGES)).all() and kind == "image"
    assert options["name"] == "stack.tif" and "rgb" not in options
    (first, one, _), (second, _, _) = reader(["colours.png", "alpha.png"])(["colours.png", "alpha.png"])
    assert (first == colours).all() and one["rgb"] and (second == colours[..., 0]).all()
    assert reader("mixed.tif")("mixed.tif")[0][0].shape == (20, 30)
