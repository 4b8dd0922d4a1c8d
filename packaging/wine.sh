#!/bin/bash
# Builds the program for Windows with zig, runs it under Wine, and compares its outputs with those of the program for this
# machine. What cannot be had is skipped loudly.
#
#   packaging/wine.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
target=x86_64-pc-windows-gnu
need wine wine wine64 || { skip "Windows: Wine is missing"; exit 0; }
tools ziglang==0.17.1 cargo-zigbuild==0.24.0 || { skip "Windows: zig, from PyPI, is missing"; exit 0; }
export PATH=$PWD/$tools/bin:$PATH
[[ -d $(rustc --print target-libdir --target "$target") ]] || rustup target add "$target" ||
    { skip "Windows: Rust's standard library for it is missing"; exit 0; }
cargo build --release --quiet --bin gpuimg
# No time goes into making the libraries fast.
cargo-zigbuild build --quiet --locked --bin gpuimg --target "$target" --target-dir target/packaging/check \
    --config 'profile.dev.package."*".opt-level=0'
here=$PWD/target/release/gpuimg
exe=$PWD/target/packaging/check/$target/debug/gpuimg.exe
work=$(mktemp -d)
export WINEDEBUG=-all WINEPREFIX=$work/wine
trap 'wineserver --kill --wait || true; rm -rf "$work"' EXIT
windows() { timeout 120 wine "$exe" "$@"; }

# Wine before version 9 lacks bcryptprimitives.dll, from which Rust takes random numbers: this library of that name has its one
# function.
cat > "$work/random.c" << 'RANDOM'
typedef unsigned char *PBYTE;
__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *, unsigned long);
__declspec(dllexport) int __stdcall ProcessPrng(PBYTE bytes, unsigned long long count) {
    return SystemFunction036(bytes, (unsigned long)count);
}
RANDOM
"$tools/bin/python" -m ziglang cc -target x86_64-windows-gnu -shared "$work/random.c" -ladvapi32 \
    -o "$(dirname "$exe")/bcryptprimitives.dll"
wine wineboot --init > /dev/null 2>&1 || true

same() { # WHAT ONE OTHER
    cmp "$2" "$3" || wrong "$1 differs on Windows"
}
cases=0
for verb in normalize "rotate 90" transpose "flip horizontal"; do
    for sample in photo-rgb16.png nuclei.tif thermal.tif nuclei-stack.tif; do
        "$here" $verb "samples/$sample" "$work/here-$sample" --overwrite
        windows $verb "samples/$sample" "$work/there-$sample" --overwrite
        same "$verb of $sample" "$work/here-$sample" "$work/there-$sample"
        cases=$((cases + 1))
    done
done
# A pipe.
"$here" normalize - - --format png < samples/nuclei.tif > "$work/here.png"
windows normalize - - --format png < samples/nuclei.tif > "$work/there.png"
same "a pipe" "$work/here.png" "$work/there.png"
# A folder, with a journal: the second run has nothing to do; what exists is not replaced.
windows normalize samples "$work/out"
windows normalize samples "$work/out" --resume 2>&1 | grep -q "0 of 4 files done, 4 already done"
if windows normalize samples "$work/out" 2> "$work/message"; then wrong "outputs were replaced without --overwrite"; fi
grep -q "already exist" "$work/message"
windows normalize samples "$work/out" --overwrite
if compgen -G "$work/out/.gpuimg-tmp-*"; then wrong "a temporary file remained"; fi
"$here" normalize samples "$work/expected" -q
for file in "$work"/expected/*; do same "$file" "$file" "$work/out/${file##*/}"; done
# A damaged input leaves no output.
head -c 3000 samples/nuclei.tif > "$work/cut.tif"
if windows normalize "$work/cut.tif" "$work/cut-out.tif" 2> "$work/message"; then wrong "a damaged input passed"; fi
grep -q truncated "$work/message"
[[ ! -e $work/cut-out.tif ]]
echo "Windows: the bytes of $cases outputs, a pipe and a folder are those of this machine"
