"""Normalize, rotate and sum 16-bit images with the program gpuimg, which is included in this module.

>>> import gpuimg
>>> gpuimg.normalize("in.png", "out.png", clip=(0.1, 99.9), overwrite=True)
>>> gpuimg.sum(["a.tif", "b.tif"], all=True)[0]["mean"]
1234.5
>>> gpuimg.run(["rotate", "90", "in.tif", "out.tif"])

The module is pure Python: each call runs the program once, and an error is an exception with the message of the
program. For many images, make one call with a folder or a list: the program processes them at the same time.
"""

import json
import os
import subprocess
import warnings
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from ._program import program

__all__ = ["DeviceError", "GpuimgError", "GpuimgWarning", "UsageError", "normalize", "program", "run", "sum"]

try:
    __version__ = _version("gpuimg")
except PackageNotFoundError:  # used out of the source tree
    __version__ = "0"

Path = Union[str, "os.PathLike[str]"]
#: What an option can be given: a flag, a number, a text, the two ends of a range, or several texts.
Value = Union[bool, int, float, str, "os.PathLike[str]", Sequence[Union[int, float]], Sequence[str], None]


class GpuimgError(Exception):
    """The program ended with an error: a file failed (status 1), or a signal stopped it.

    ``str(error)`` is the standard error of the program, without its name. ``status`` is the exit status (the negative
    signal number if a signal ended the program), ``args_given`` are the arguments, and ``stdout`` is the standard output
    so far. For `sum`, ``results`` has the results of the files that could be read.
    """

    def __init__(self, status: int, message: str, args_given: Sequence[str] = (), stdout: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.args_given = list(args_given)
        self.stdout = stdout
        self.results: List[Dict[str, Any]] = []

    def __reduce__(self) -> Any:
        # Exceptions are copied by `args` alone, which is the message. Process pools, Dask and Ray pickle them.
        return type(self), (self.status, str(self), self.args_given, self.stdout), self.__dict__


class UsageError(GpuimgError):
    """The arguments are wrong (status 2); no file was changed."""


class DeviceError(GpuimgError):
    """The requested GPU cannot be used (status 3); no file was changed."""


class GpuimgWarning(UserWarning):
    """A warning of the program, such as a flat image or metadata that are left out."""


def run(
    args: Iterable[Path],
    *,
    input: Optional[bytes] = None,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Path] = None,
    timeout: Optional[float] = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run ``gpuimg`` with ``args`` and return its output as bytes: ``stdout`` and ``stderr``.

    ``input`` is passed to standard input, for the file name ``-``. Raises `UsageError`, `DeviceError` or `GpuimgError` unless
    the program ends with status 0, and `subprocess.TimeoutExpired` after ``timeout`` seconds.
    """
    given = [os.fspath(arg) for arg in args]
    command = [program(), *given]
    # Without input an empty one, so that no terminal is read.
    done = subprocess.run(command, input=input or b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=cwd, timeout=timeout)
    if done.returncode == 0:
        return done
    kind = {2: UsageError, 3: DeviceError}.get(done.returncode, GpuimgError)
    said = done.stderr.decode("utf-8", "replace").strip()
    lines = [line[len("gpuimg: ") :] if line.startswith("gpuimg: ") else line for line in said.split("\n")]
    message = "\n".join(lines) or "gpuimg ended with status {}".format(done.returncode)
    raise kind(done.returncode, message, given, done.stdout.decode("utf-8", "replace"))


def normalize(input: Union[Path, Iterable[Path]], output: Path, **options: Value) -> None:
    """Scale the range of values of an image, a list of images or a folder, correctly rounded.

    ``output`` is a file for one image and a folder for several. Each option is the program's option with that name:
    ``range=(400, 3700)``, ``to=(0, 4095)``, ``clip=(0.1, 99.9)``, ``per_channel=True``, ``depth=8``, ``format="png"``,
    ``across=True``, ``resume=True``, ``overwrite=True``, ``device="gpu"``, …; ``gpuimg normalize --help`` lists them all.
    """
    _warn(run(["normalize", *_options(options), "--", *_paths(input), output]))


def sum(paths: Union[Path, Iterable[Path]], **options: Value) -> List[Dict[str, Any]]:
    """Add up the samples of images or folders exactly. Returns one dictionary per page, in the order of the files.

    Each has ``file``, ``width``, ``height``, ``depth``, ``sum`` and ``channels`` (a list with ``name`` and ``sum``), and ``page`` for
    files with several pages. With ``all=True`` it also has ``min``, ``max`` and ``mean``. Other options are those of the program.

    Raises `GpuimgError` if a file cannot be read; its ``results`` has those of the others.
    """
    args: List[Path] = ["sum", "--json", *_options(options), "--", *_paths(paths)]
    try:
        done = run(args)
    except GpuimgError as error:
        error.results = _objects(error.stdout)
        raise
    _warn(done)
    return _objects(done.stdout.decode("utf-8"))


def _warn(done: "subprocess.CompletedProcess[bytes]") -> None:
    """Pass the program's warnings to the caller of the caller."""
    for line in done.stderr.decode("utf-8", "replace").splitlines():
        name, warning, sentence = line.partition("warning: ")
        if name == "gpuimg: " and warning:
            warnings.warn(sentence, GpuimgWarning, stacklevel=3)


def _objects(text: str) -> List[Dict[str, Any]]:
    """The JSON objects of a text, one on a line. Keys that this version does not know are kept."""
    objects = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    # A file that failed has a line too; the error names it.
    return [found for found in objects if found.get("status") != "failed"]


def _paths(paths: Union[Path, Iterable[Path]]) -> List[Path]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def _options(options: Mapping[str, Value]) -> List[str]:
    """Options as they are typed: ``per_channel=True`` is ``--per-channel``, ``range=(1, 2)`` is ``--range=1:2``, and
    ``include=["a*", "b*"]`` is given more than once."""
    typed: List[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            typed.append(option)
        elif isinstance(value, (str, int, float, os.PathLike)):
            typed.append("{}={}".format(option, os.fspath(value) if isinstance(value, os.PathLike) else value))
        elif all(isinstance(part, str) for part in value):
            typed.extend("{}={}".format(option, part) for part in value)
        else:
            typed.append("{}={}".format(option, ":".join(str(end) for end in value)))
    return typed
