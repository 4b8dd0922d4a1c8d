"""Where the program is."""

import os
import sysconfig


def program() -> str:
    """The path of the program that was installed with this module.

    ``GPUIMG`` in the environment names another, as in the samples for clusters. Raises `FileNotFoundError` where there is none.
    """
    named = os.environ.get("GPUIMG")
    if named:
        return named
    # `pip install`, `pip install --user`, and `pip install --target`.
    schemes = [None, "posix_user"]
    folders = [sysconfig.get_path("scripts") if scheme is None else sysconfig.get_path("scripts", scheme) for scheme in schemes]
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    for folder in folders:
        path = os.path.join(folder, "gpuimg")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError("the program gpuimg is not in {}; install the wheel again".format(", ".join(folders)))
