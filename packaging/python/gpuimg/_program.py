"""Where the program is."""

import os
import sysconfig
from importlib.metadata import PackageNotFoundError, files
from typing import Iterator


def program() -> str:
    """The path of the program that was installed with this module.

    ``GPUIMG`` in the environment names another, as in the samples for clusters. Raises `FileNotFoundError` where there is none.
    """
    named = os.environ.get("GPUIMG")
    if named:
        return named
    tried = []
    for path in _places():
        if os.path.isfile(path):
            return path
        tried.append(path)
    raise FileNotFoundError("the program gpuimg is none of {}; install the wheel again".format(", ".join(tried)))


def _places() -> Iterator[str]:
    # Where the installer says that it put it: also right for a module that is found by PYTHONPATH, out of another environment.
    try:
        for file in files("gpuimg") or []:
            if file.parts[-2:] == ("bin", "gpuimg"):
                yield os.path.normpath(str(file.locate()))
    except PackageNotFoundError:
        pass
    # `pip install --target` moves it, and does not say so.
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin", "gpuimg")
    yield os.path.join(sysconfig.get_path("scripts"), "gpuimg")
    yield os.path.join(sysconfig.get_path("scripts", "posix_user"), "gpuimg")
