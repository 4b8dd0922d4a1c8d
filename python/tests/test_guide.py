"""The Python of docs/guide/python.md, run as doctest: a namespace for the page, a test for each of its sections."""

import doctest
import pathlib
import re
import shutil

import gpuimg
import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide/python.md"
SAMPLES = ["nuclei.tif", "nuclei-stack.tif", "thermal.tif"]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="SKIPPED: the guide is not here")


def sections():
    """The examples of each section, by its heading."""
    text = GUIDE.read_text() if GUIDE.exists() else ""
    parts = re.split(r"^## (.*)\n", text, flags=re.M)[1:]
    for heading, section in zip(parts[::2], parts[1::2]):
        blocks = re.findall(r"```python\n(.*?)```", section, re.S)
        yield heading, [example for block in blocks for example in doctest.DocTestParser().get_examples(block)]


def imported(examples):
    return {name for example in examples for name in re.findall(r"^(?:import|from) (\w+)", example.source, re.M)}


def test_the_guide_is_true(folder):
    for name in SAMPLES:
        shutil.copy(ROOT / "samples" / name, name)
    names, ran = {}, 0
    for heading, examples in sections():
        missing = [name for name in sorted(imported(examples)) if not available(name)]
        if missing:
            print(f"SKIPPED {heading}: {', '.join(missing)} is not installed")
            continue
        test = doctest.DocTest(examples, names, heading, str(GUIDE), 0, None)
        said = []
        results = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append, clear_globs=False)
        # The test has a copy of the names, which the next section continues with.
        names = test.globs
        assert results.failed == 0, "".join(said)
        ran += results.attempted
    assert ran > 20


def available(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def test_notebooks_show_images():
    image = gpuimg.read(ROOT / "samples/nuclei.tif")
    shown = gpuimg.decode(image._repr_png_())
    assert (numpy.asarray(shown) == numpy.asarray(gpuimg.preview(image, fit=800))).all()
    assert gpuimg.decode(gpuimg.Image(numpy.arange(2000.0).reshape(1, 2000))._repr_png_()).shape == (1, 800)
    assert gpuimg.decode(gpuimg.Image(numpy.array([[1, numpy.nan]]))._repr_png_()).shape == (1, 2)
