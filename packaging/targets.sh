#!/bin/bash
# Compiles the program, without linking it, for macOS (on aarch64) and Windows, where it uses the CPU: a call that only Linux has must
# not come in unseen. zig stands in for the C compilers. What cannot be had is skipped loudly. packaging/emulated.sh runs
# the program for aarch64, and packaging/wine.sh the one for Windows.
#
#   packaging/targets.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
tools ziglang==0.17.1 cargo-zigbuild==0.24.0 || { skip "macOS and Windows: zig, from PyPI, is missing"; exit 0; }
export PATH=$PWD/$tools/bin:$PATH
for target in aarch64-apple-darwin x86_64-pc-windows-gnu; do
    [[ -d $(rustc --print target-libdir --target "$target") ]] || rustup target add "$target" ||
        { skip "$target: Rust's standard library for it is missing"; continue; }
    # Nothing of it is run: no time goes into making the C libraries fast.
    cargo-zigbuild check --quiet --locked --bin gpuimg --target "$target" --target-dir target/packaging/check \
        --config 'profile.dev.package."*".opt-level=0'
    echo "$target: it compiles"
done
