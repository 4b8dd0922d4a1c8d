#!/usr/bin/env python3
"""kernels/launch.py refuses signatures and lengths that it cannot express: each change of a kernel below, by itself."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

for file, old, new, said in [
    ("depth.cu", "u32 kept) {", "u32 kept, u32 more) {", "differ from what was read: narrow"),
    ("depth.cu", "narrow(const u16 *src, u64 samples, u8", "narrow(const u16 **src, u64 samples, u8", "cannot be expressed"),
    ("depth.cu", "narrow(const u16 *src, u64 samples, u8", "narrow(Thing src, u64 samples, u8", "is no number"),
    ("depth.cu", "// lengths: src[samples], dst[samples]", "// lengths: src[samples]", "no length of dst"),
    ("depth.cu", "// lengths: src[samples], dst[samples]", "// lengths: src[n], dst[samples]", "'n' is no parameter"),
    ("depth.cu", "// lengths: src[samples], dst[samples]", "// lengths: src[..], dst[samples]", "nothing is trusted"),
    ("depth.cu", 'extern "C" __global__', "__global__", "1 kernels, of which 0 can be read"),
    ("inflate_find.cu", "    u32 codes, head, data, last;", "    u32 codes; u64 head; u32 data;", "there is a gap"),
    ("normalize.cu", "// in place: src = dst", "// in place: dst = src", "are not a const pointer and another"),
    ("depth.cu", "", "", ""),
]:
    with tempfile.TemporaryDirectory() as folder:
        kernels = pathlib.Path(folder, "kernels")
        shutil.copytree(ROOT / "kernels", kernels)
        (pathlib.Path(folder) / "src/gpu").mkdir(parents=True)
        text = (kernels / file).read_text(encoding="utf-8")
        assert old in text, f"{file} has no '{old}'"
        (kernels / file).write_text(text.replace(old, new), encoding="utf-8")
        ran = subprocess.run([sys.executable, "-B", kernels / "launch.py"], capture_output=True, text=True)
        assert said in ran.stderr and (ran.returncode != 0) == bool(said), f"{file}, '{new}': {ran.stderr}"
        if not said:
            made = pathlib.Path(folder, "src/gpu/launch.rs").read_bytes()
            assert made == (ROOT / "src/gpu/launch.rs").read_bytes(), "src/gpu/launch.rs is not what kernels/launch.py writes"
print("signatures that cannot be expressed are refused")
