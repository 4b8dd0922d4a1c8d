#!/usr/bin/env python3
"""Shows that the tests find a bug that only one level of vector instructions has. In a copy of the source bugs are planted in functions
that are compiled for several levels. An environment variable chooses one of them and its level; a test that runs at that level must
fail, and the same tests at the processor's highest level must pass with all bugs planted at the level below it.

  tests/simd_planted.py               every bug at every level that this machine has
  tests/simd_planted.py avx2          at some levels
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mutants import ROOT, copy_source, test_programs

SWITCH = """
/// Whether this bug is in the level in use: PLANTED is `BUG@LEVEL`, or `all@LEVEL`.
pub(crate) fn planted(bug: &str) -> bool {
    static PLANTED: std::sync::OnceLock<Option<(String, String)>> = std::sync::OnceLock::new();
    let planted = PLANTED.get_or_init(|| {
        let planted = env::var("PLANTED").ok()?;
        planted.split_once('@').map(|(bug, level)| (bug.into(), level.into()))
    });
    let here = |(name, at): &(String, String)| (name == "all" || name == bug) && at == level().name();
    planted.as_ref().is_some_and(here)
}
"""

LANES = "src/ops/normalize/lanes.rs"
CPU = "src/ops/symmetry/cpu.rs"
# A bug in each function: its name, what is wrong, the files with the right text and the wrong one, and the test of
# tests/main.rs that must find it. IF stands for the question whether the bug is there.
DEVICES = "devices::the_cpu_gives_what_the_definition_says"
PLANTED = {
    "normalize": (
        "the first sample of a run is not scaled",
        [
            (LANES, "for value in samples {", "for value in samples.iter_mut().skip(usize::from(IF)) {"),
            (LANES, "in block.iter_mut().enumerate() {", "in block.iter_mut().enumerate().skip(usize::from(IF)) {"),
        ],
        DEVICES,
    ),
    "extremes": (
        "the last samples have no maximum",
        [("src/ops/extremes.rs", "            max[lane] = value;", "            max[lane] = if IF { T::ZERO } else { value };")],
        DEVICES,
    ),
    "sum": (
        "the last samples are left out",
        [("src/ops/sum.rs", "let mut sums = T::sum_blocks(blocks);", "let rest = if IF { &rest[..0] } else { rest };\n        let mut sums = T::sum_blocks(blocks);")],
        "laws::totals_do_not_overflow_and_survive_turning",
    ),
    "turn": (
        "the first rows of a tile are not turned",
        [
            (CPU, ".zip((0..).step_by(8))", ".zip((0..).step_by(8))\n        .skip(usize::from(IF))"),
            (CPU, ".zip((0..).step_by(SIDE))", ".zip((0..).step_by(SIDE))\n        .skip(usize::from(IF))"),
        ],
        "laws::symmetries_form_a_group",
    ),
    "flip": (
        "the first pixels are not exchanged",
        [(CPU, "in head.iter_mut().zip(tail.iter_mut().rev()) {", "in head.iter_mut().zip(tail.iter_mut().rev()).skip(usize::from(IF)) {")],
        "laws::symmetries_of_three_by_two",
    ),
    "mean": (
        "a mean is cut and not rounded",
        [("src/ops/project/finish.rs", "2.0 * f64::from(sum) + images,", "2.0 * f64::from(sum) + if IF { 0.0 } else { images },")],
        "project::three_by_two_by_hand",
    ),
    "median": (
        "the rank is one too high",
        [("src/ops/project/median.rs", "if below[i] <= rank {", "if below[i] <= rank + u16::from(IF) {")],
        "project::medians_of_many_images",
    ),
    "sorting": (
        "a comparison is left out",
        [("src/ops/project/median.rs", "if first & p == r {", "if first & p == r && !(IF && p == 1 && first == 0) {")],
        "project::three_by_two_by_hand",
    ),
    "calibrate": (
        "a quotient is cut and not rounded",
        [("src/ops/calibrate/whole/cpu.rs", "floored(twice + q, 2.0 * q)", "floored(twice + if IF { 0.0 } else { q }, 2.0 * q)")],
        "calibrate::three_by_two_by_hand",
    ),
    "filter": (
        "the mean of two bytes is rounded up",
        [("src/formats/png/encode/filter.rs", "x.wrapping_sub((a & b) + (a ^ b) / 2)", "x.wrapping_sub((a & b) + ((a ^ b) + u8::from(IF && a ^ b < 255)) / 2)")],
        "png_encode::every_kind_depth_and_size_survives",
    ),
    "unfilter": (
        "the last pixel of a vector is not carried on",
        [("src/formats/png/decode/unfilter_simd.rs", "        left += last::<STEP>(sums);", "        if !IF {\n            left += last::<STEP>(sums);\n        }")],
        "png_decode::every_kind_filter_and_size",
    ),
    "deflate": (
        "the first bytes of a run are left out",
        [
            ("src/deflate/compress/block.rs", "for group in groups {\n            for half", "for group in groups.iter().skip(usize::from(IF)) {\n            for half"),
            ("src/deflate/compress/put_simd.rs", "        for block in blocks {\n            let mut bytes", "        for block in blocks.iter().skip(usize::from(IF)) {\n            let mut bytes"),
        ],
        "png_encode::every_kind_depth_and_size_survives",
    ),
    "inflate": (
        "a block ends at its first copy",
        [("src/deflate/inflate/cursor.rs", "                ended = cursor.other();", "                ended = if IF { Ok(true) } else { cursor.other() };")],
        "png_decode::every_kind_filter_and_size",
    ),
}
# The modules of tests/main.rs that these tests are in, or use: the others take minutes to compile.
MODULES = "support calibrate contract devices laws png_decode png_encode project stacks tiff".split()
# What has no form of its own at the lowest level.
NO_SCALAR = ["unfilter"]


def levels():
    """Those that this machine has, the lowest first, as src/image/simd.rs finds them."""
    if platform.machine() != "x86_64":
        return ["scalar", "neon" if platform.machine() == "aarch64" else "vector"]
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    found = ["scalar", "sse2"]
    for level, needs in {"avx2": ["avx2", "bmi1", "bmi2"], "avx512": ["avx512f", "avx512bw", "avx512dq", "avx512vl"]}.items():
        if not set(needs) <= set(flags):
            break
        found.append(level)
    return found


def passes(program, tests, level, planted):
    environment = os.environ | {"GPUIMG_SIMD": level, "PLANTED": planted, "RUST_BACKTRACE": "0"}
    run = subprocess.run([program, "--exact", *tests], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if f"running {len(tests)} test" not in run.stdout:
        sys.exit(f"simd: not all of {', '.join(tests)} are there\n{run.stdout}{run.stderr}")
    return run.returncode == 0


def main():
    there = levels()
    unknown = [level for level in sys.argv[1:] if level not in there]
    if unknown:
        sys.exit(f"simd: this machine has no {', '.join(unknown)} (it has {', '.join(there)})")
    with tempfile.TemporaryDirectory() as folder:
        copy_source(folder)
        simd = Path(folder, "src/image/simd.rs")
        simd.write_text(simd.read_text().replace("#[cfg(test)]\n", SWITCH + "\n#[cfg(test)]\n", 1))
        for bug, (what, changes, _) in PLANTED.items():
            for name, right, wrong in changes:
                path = Path(folder, name)
                text = path.read_text()
                if text.count(right) != 1:
                    sys.exit(f"simd: {name} has changed: no place for the bug that {what}")
                path.write_text(text.replace(right, wrong.replace("IF", f'crate::image::simd::planted("{bug}")')))
        tests = Path(folder, "tests/main.rs")
        others = rf"(^///.*\n)*^mod (?!({'|'.join(MODULES)});)\w+;\n"
        tests.write_text(re.sub(others, "", tests.read_text(), flags=re.M))
        program = test_programs(folder, "--test", "main")["test"]
        for level in sys.argv[1:] or there:
            found = 0
            for bug, (what, _, test) in PLANTED.items():
                if level == "scalar" and bug in NO_SCALAR:
                    continue
                if passes(program, [test], level, f"{bug}@{level}"):
                    sys.exit(f"simd: at {level}, {test} does not find this bug: {bug}: {what}")
                found += 1
            print(f"{level}: {found} bugs that only it has, all found", flush=True)
        tests = sorted({test for _, _, test in PLANTED.values()})
        if not passes(program, tests, there[-1], f"all@{there[-2]}"):
            sys.exit(f"simd: tests at {there[-1]} fail where {there[-2]} alone has bugs")
        print(f"{there[-1]}: no test fails for what only {there[-2]} has")


if __name__ == "__main__":
    main()
