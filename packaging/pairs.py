#!/usr/bin/env python3
"""Times two programs with the same arguments, turn about, so that a busy machine is the same for both.

  packaging/pairs.py COUNT PROGRAM OTHER ARGUMENT…

  packaging/pairs.py 500 target/release/gpuimg target/dist/…/bin/gpuimg --version
"""

import os
import statistics
import subprocess
import sys
import time

count, programs, args = int(sys.argv[1]), sys.argv[2:4], sys.argv[4:]


def once(program):
    """Wall-clock and processor time of one run, in ms."""
    before, began = os.times(), time.perf_counter()
    subprocess.run([program, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall * 1e3, used * 1e3


for program in programs:
    once(program)
# Each pair in the other order than the one before.
pairs = []
for index in range(count):
    order = programs if index % 2 == 0 else programs[::-1]
    figures = {program: once(program) for program in order}
    pairs.append([figures[program] for program in programs])
for place, program in enumerate(programs):
    wall = [pair[place][0] for pair in pairs]
    used = [pair[place][1] for pair in pairs]
    print(f"{program}: median {statistics.median(wall):.2f} ms, fastest {min(wall):.2f} ms, processor {statistics.mean(used):.2f} ms")
ratio = statistics.median(other[0] / one[0] for one, other in pairs)
print(f"the second takes {ratio:.2f} times as long as the first (median of {count} pairs)")
