#!/usr/bin/env python3
"""Prints what llvm-cov exported of each fuzz target says of the code that they are for: the regions that each reaches, those that all
together reach of each file, and the functions of which most is not reached.

  coverage.py ROOT TARGET...        TARGET is the path of an export, without .json; COVERAGE_FUNCTIONS=100 prints more functions"""

import json
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
MOST = int(os.environ.get("COVERAGE_FUNCTIONS", "40"))
LOOKED_AT = "src/formats", "src/deflate", "src/image/metadata"
CODE = 0


def name(lines, first):
    """The function that begins at a line, or the one that a closure is in."""
    for line in range(first, 0, -1):
        found = re.search(r"\bfn (\w+)", lines[line - 1])
        if found:
            return found[1] + ("" if line == first else ", a closure")
    return "?"


def regions(export):
    """Each region of code: its file, its function by that one's first line, its own place, and whether it was reached."""
    for function in json.loads(export.read_text())["data"][0]["functions"]:
        for line, column, to_line, to_column, count, file, _, kind in function["regions"]:
            path = function["filenames"][file]
            if kind == CODE and path.startswith(f"{ROOT}/"):
                path = path[len(f"{ROOT}/") :]
                if path.startswith(LOOKED_AT):
                    yield path, function["regions"][0][0], (line, column, to_line, to_column), count > 0


def row(reached, every, what):
    print(f"{reached:8} {every:6} {100 * reached // max(1, every):4}  {what}")


def main():
    # A generic function is there several times, and reached if one of them is.
    files = defaultdict(lambda: defaultdict(dict))
    by_target = {}
    for target in map(Path, sys.argv[2:]):
        mine = set()
        for path, first, place, reached in regions(target.with_suffix(".json")):
            inside = files[path][first]
            inside[place] = inside.get(place, False) or reached
            if reached:
                mine.add((path, first, place))
        by_target[target.name] = len(mine)
    functions, rows = [], []
    for path, there in sorted(files.items()):
        rows.append((sum(sum(each.values()) for each in there.values()), sum(map(len, there.values())), path))
        lines = (ROOT / path).read_text().splitlines()
        for first, each in there.items():
            functions.append((len(each) - sum(each.values()), len(each), f"{path}:{first} {name(lines, first)}"))
    reached, every = (sum(row[i] for row in rows) for i in (0, 1))
    print(f"{'reached':>8} {'of':>6} {'%':>4}")
    for target, mine in by_target.items():
        row(mine, every, target)
    row(reached, every, "all")
    print()
    for each in rows:
        row(*each)
    print("\nregions that are not reached, of so many:")
    for missed, of, what in sorted(functions, key=lambda it: (-it[0], it[2]))[:MOST]:
        print(f"{missed:8} {of:6}  {what}")


if __name__ == "__main__":
    main()
