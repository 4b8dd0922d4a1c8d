"""The command ``gpuimg`` of the wheel: the program itself, which is part of the module."""

import signal
import sys

from . import _gpuimg


def main() -> None:
    # The program handles signals itself, and until then they end it, as those of any program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_gpuimg.main(["gpuimg", *sys.argv[1:]]))
