#!/bin/bash
# Compiles the program, without linking it, for macOS, where it uses the CPU: nobody has run it there, but a call that only
# Linux has must not come in unseen. zig stands in for a C compiler. What cannot be had is skipped loudly.
#
#   packaging/targets.sh
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
target=aarch64-apple-darwin
[[ -d $(rustc --print target-libdir --target "$target") ]] || rustup target add "$target" ||
    { skip "$target: Rust's standard library for it is missing"; exit 0; }
tools ziglang==0.17.1 cargo-zigbuild==0.24.0 || { skip "$target: zig, from PyPI, is missing"; exit 0; }
export PATH=$PWD/$tools/bin:$PATH
cargo-zigbuild check --quiet --locked --bin gpuimg --target "$target" --target-dir target/packaging/check
echo "$target: it compiles"
