"""``python -m gpuimg``: the program itself, in the place of the interpreter."""

import os
import sys

from ._program import program

path = program()
os.execv(path, [path, *sys.argv[1:]])
