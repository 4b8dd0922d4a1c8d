"""``python -m gpuimg``: the program."""

from ._program import main

main()
