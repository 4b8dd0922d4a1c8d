#!/usr/bin/env python3
"""Prints what `llvm-cov export` says on standard input of the code that fuzz targets are for: regions reached, file by file, and
the functions of which most regions are not.   coverage.py ROOT [FUNCTIONS]"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
MOST = int(sys.argv[2]) if len(sys.argv) > 2 else 40
LOOKED_AT = "src/codec", "src/deflate", "src/metadata"
CODE = 0


def name(lines, first):
    """The function that begins at a line, or the one that a closure is in."""
    for line in range(first, 0, -1):
        found = re.search(r"\bfn (\w+)", lines[line - 1])
        if found:
            return found[1] + ("" if line == first else ", a closure")
    return "?"


def main():
    # Of each file, of each function by its first line, of each region the most it was reached: a generic function is there several times.
    files = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for data in json.load(sys.stdin)["data"]:
        for function in data["functions"]:
            for line, column, to_line, to_column, count, file, _, kind in function["regions"]:
                path = function["filenames"][file]
                if kind == CODE and path.startswith(str(ROOT)):
                    path = str(Path(path).relative_to(ROOT))
                    if path.startswith(LOOKED_AT):
                        region = (line, column, to_line, to_column)
                        first = function["regions"][0][0]
                        inside = files[path][first]
                        inside[region] = max(inside[region], count)
    functions, total = [], [0, 0]
    print(f"{'reached':>8} {'of':>6} {'%':>4}  file")
    for path, there in sorted(files.items()):
        reached = sum(count > 0 for regions in there.values() for count in regions.values())
        every = sum(map(len, there.values()))
        total = [total[0] + reached, total[1] + every]
        print(f"{reached:8} {every:6} {100 * reached // every:4}  {path}")
        lines = (ROOT / path).read_text().splitlines()
        for first, regions in there.items():
            missed = sum(count == 0 for count in regions.values())
            functions.append((missed, len(regions), f"{path}:{first} {name(lines, first)}"))
    print(f"{total[0]:8} {total[1]:6} {100 * total[0] // max(1, total[1]):4}  all\n\nregions that are not reached, of so many:")
    for missed, every, what in sorted(functions, key=lambda it: (-it[0], it[2]))[:MOST]:
        print(f"{missed:8} {every:6}  {what}")


if __name__ == "__main__":
    main()
