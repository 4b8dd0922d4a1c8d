import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(sys.executable).with_name("gpuimg")


@pytest.fixture
def program():
    """Runs the command that was installed with the module, on the CPU; returns its standard output, or None if it fails."""

    def run(*words):
        command = [PROGRAM, *map(str, words), "--device", "cpu"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
