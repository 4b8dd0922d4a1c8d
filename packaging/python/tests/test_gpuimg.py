"""The module as it is installed from the wheel, with the program that comes with it."""

import concurrent.futures
import copy
import multiprocessing
import os
import pathlib
import pickle
import struct
import subprocess
import sys

import gpuimg
import pytest


def pgm(*rows, maxval=65535):
    """A 16-bit PGM of rows of samples."""
    head = "P5\n{} {}\n{}\n".format(len(rows[0]), len(rows), maxval)
    return head.encode() + b"".join(struct.pack(">{}H".format(len(row)), *row) for row in rows)


# By the definition: floor((p - 100) * 65535 / 200 + 1/2).
IN = pgm((100, 101, 150), (200, 299, 300))
OUT = pgm((0, 328, 16384), (32768, 65207, 65535))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUIMG", raising=False)
    monkeypatch.setenv("GPUIMG_DEVICE", "cpu")
    (tmp_path / "in.pgm").write_bytes(IN)
    return tmp_path


def test_the_program_is_the_one_installed_with_the_module(folder):
    assert pathlib.Path(gpuimg.program()).parent == pathlib.Path(sys.prefix, "bin")
    said = subprocess.run([gpuimg.program(), "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert said == "gpuimg {}\n".format(gpuimg.__version__)
    assert subprocess.run([sys.executable, "-m", "gpuimg", "--version"], stdout=subprocess.PIPE).stdout.decode() == said


def test_a_module_found_by_pythonpath_has_its_own_program(folder):
    modules = str(pathlib.Path(gpuimg.__file__).parent.parent)
    outside = pathlib.Path(sys.base_prefix, "bin", "python{}.{}".format(*sys.version_info[:2]))
    asked = [str(outside), "-c", "import gpuimg; print(gpuimg.program(), gpuimg.__version__)"]
    said = subprocess.run(asked, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": modules}, check=True).stdout.decode()
    assert said == "{} {}\n".format(pathlib.Path(sys.prefix, "bin", "gpuimg"), gpuimg.__version__)


def test_the_wheel_has_man_pages_completions_types_and_licences(folder):
    share = pathlib.Path(sys.prefix, "share")
    for path in [
        "man/man1/gpuimg.1",
        "man/man1/gpuimg-normalize.1",
        "bash-completion/completions/gpuimg",
        "zsh/site-functions/_gpuimg",
        "fish/vendor_completions.d/gpuimg.fish",
    ]:
        assert "normalize" in (share / path).read_text(), path
    assert pathlib.Path(gpuimg.__file__).with_name("py.typed").exists()
    assert b"Eric Biggers" in gpuimg.run(["--licenses"]).stdout


def test_normalize_is_exact(folder):
    gpuimg.normalize("in.pgm", "out.pgm")
    assert pathlib.Path("out.pgm").read_bytes() == OUT
    gpuimg.normalize(folder / "in.pgm", folder / "b.pgm", range=(100, 300), to=(0, 65535), per_channel=False, clip=None)
    assert pathlib.Path("b.pgm").read_bytes() == OUT
    gpuimg.normalize("in.pgm", "eight", depth=8, format="pnm")
    assert pathlib.Path("eight").read_bytes().endswith(bytes((0, 1, 64, 128, 254, 255)))


def test_lists_and_folders(folder):
    (folder / "-dash.pgm").write_bytes(IN)
    gpuimg.normalize(["in.pgm", "-dash.pgm"], "out/")
    assert sorted(os.listdir("out")) == ["-dash.pgm", ".gpuimg-journal", "in.pgm"]
    gpuimg.normalize(folder, folder / "in turn", include=["i*", "no*"], exclude="out", jobs=1)
    assert [name for name in os.listdir("in turn") if name[0] != "."] == ["in.pgm"]


def test_an_existing_file_is_refused_and_replaced_when_asked(folder):
    gpuimg.normalize("in.pgm", "out.pgm")
    with pytest.raises(gpuimg.GpuimgError, match="out.pgm.*--overwrite") as caught:
        gpuimg.normalize("in.pgm", "out.pgm")
    assert caught.value.status == 1 and type(caught.value) is gpuimg.GpuimgError
    gpuimg.normalize("in.pgm", "out.pgm", overwrite=True)


def test_an_error_carries_the_sentence_of_the_program(folder):
    (folder / "bad.pgm").write_bytes(IN[:-1])
    with pytest.raises(gpuimg.GpuimgError) as caught:
        gpuimg.normalize("bad.pgm", "out.pgm")
    direct = subprocess.run([gpuimg.program(), "normalize", "bad.pgm", "out.pgm"], stderr=subprocess.PIPE)
    assert "gpuimg: {}\n".format(caught.value).encode() == direct.stderr
    assert caught.value.args_given[0] == "normalize"
    assert not pathlib.Path("out.pgm").exists()


def test_kinds_of_errors(folder):
    with pytest.raises(gpuimg.UsageError) as caught:
        gpuimg.normalize("in.pgm", "out.pgm", no_such_option=True)
    assert caught.value.status == 2 and "--no-such-option" in str(caught.value)
    with pytest.raises(gpuimg.UsageError):
        gpuimg.sum([])
    with pytest.raises(gpuimg.DeviceError) as caught:
        gpuimg.normalize("in.pgm", "out.pgm", device="gpu:99")
    assert caught.value.status == 3
    assert not pathlib.Path("out.pgm").exists()


def test_sum_is_a_dictionary_a_page(folder):
    (folder / "b.pgm").write_bytes(pgm((1, 2)))
    a, b = gpuimg.sum(["in.pgm", pathlib.Path("b.pgm")])
    assert (a["file"], a["width"], a["height"], a["depth"], a["sum"]) == ("in.pgm", 3, 2, 16, 1150)
    assert a["channels"][0]["name"] == "grey" and b["sum"] == 3
    (only,) = gpuimg.sum("b.pgm", all=True)
    assert (only["min"], only["max"], only["mean"]) == (1, 2, 1.5)


def test_sum_has_the_other_results_when_a_file_fails(folder):
    (folder / "bad.pgm").write_bytes(b"P5\n1 1\n")
    with pytest.raises(gpuimg.GpuimgError, match="bad.pgm") as caught:
        gpuimg.sum(["bad.pgm", "in.pgm"])
    assert [page["sum"] for page in caught.value.results] == [1150]


def test_keys_of_a_later_program_are_kept(folder, monkeypatch):
    later = folder / "later"
    later.write_text('#!/bin/sh\necho \'{"schema":9,"file":"a","sum":1,"median":7}\'\n')
    later.chmod(0o755)
    monkeypatch.setenv("GPUIMG", str(later))
    assert gpuimg.sum("a") == [{"schema": 9, "file": "a", "sum": 1, "median": 7}]


def test_a_warning_of_the_program_is_a_warning(folder):
    (folder / "flat.pgm").write_bytes(pgm((7, 7)))
    with pytest.warns(gpuimg.GpuimgWarning, match="flat.pgm: the image is flat") as caught:
        gpuimg.normalize("flat.pgm", "out.pgm")
    assert caught[0].filename == __file__


def test_standard_input_and_output(folder):
    done = gpuimg.run(["normalize", "-", "-", "--format", "pnm"], input=IN)
    assert done.stdout == OUT
    # Without input there is none, and no terminal is waited for.
    with pytest.raises(gpuimg.GpuimgError):
        gpuimg.run(["normalize", "-", "-", "--format", "pnm"])


def test_a_signal_is_an_error(folder):
    later = folder / "killed"
    later.write_text("#!/bin/sh\nkill -9 $$\n")
    later.chmod(0o755)
    os.environ["GPUIMG"] = str(later)
    try:
        with pytest.raises(gpuimg.GpuimgError, match="status -9") as caught:
            gpuimg.run([])
    finally:
        del os.environ["GPUIMG"]
    assert caught.value.status == -9


@pytest.mark.parametrize("kind", [gpuimg.GpuimgError, gpuimg.UsageError, gpuimg.DeviceError])
def test_errors_did_not_unpickle(kind):
    error = kind(1, "cannot read a.tif", ["sum", "a.tif"], "{}\n")
    error.results = [{"file": "b.tif"}]
    for same in [pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)]:
        assert (type(same), str(same), same.args) == (kind, "cannot read a.tif", error.args)
        assert (same.status, same.args_given, same.stdout, same.results) == (1, ["sum", "a.tif"], "{}\n", [{"file": "b.tif"}])


def test_one_bad_file_broke_a_process_pool(folder):
    (folder / "bad.pgm").write_bytes(b"P5\n3 2\n65535\n")
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        bad = pool.submit(gpuimg.normalize, "bad.pgm", "bad.png")
        good = pool.submit(gpuimg.normalize, "in.pgm", "out.pgm")
        with pytest.raises(gpuimg.GpuimgError, match="bad.pgm") as raised:
            bad.result()
        good.result()
    assert raised.value.status == 1
    assert (folder / "out.pgm").read_bytes() == OUT
