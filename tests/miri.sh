#!/bin/bash
# Runs unit tests of the pure Rust core under Miri, which interprets them and stops at undefined behaviour. Needs Rust's nightly, whose
# components miri and rust-src it installs; builds all crates anew, for minutes.
#
#   tests/miri.sh [TARGET]        this machine's; GPUIMG_MIRI_TOOLCHAIN names another nightly
#
# Miri calls neither C (libdeflate, Zstandard) nor most of the system, so tests are chosen by name: those of values and bytes in memory
# that do not take an interpreter long.
set -euo pipefail
cd "$(dirname "$0")/.."

toolchain=${GPUIMG_MIRI_TOOLCHAIN:-nightly}
target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
cargo "+$toolchain" miri --version > /dev/null 2>&1 ||
    rustup toolchain install "$toolchain" --component miri,rust-src --profile minimal

# Threads of rayon's pool outlive the tests; the crates below it follow the model of tree borrows, not the older one.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows ${MIRIFLAGS:-}"
# What build scripts compile of C is never called, so this machine's compiler does for any target.
export CC=${CC:-cc} AR=${AR:-ar} RAYON_NUM_THREADS=2
cargo "+$toolchain" miri test --target "$target" --lib -- \
    ops::normalize::range metadata:: image:: \
    ops::tests formats::png::tests formats::png::decode::interlaced formats::foreign formats::format formats::packed formats::tiff::exif formats::tiff::gdal \
    formats::tiff::description formats::tiff::ome formats::tiff::shape batch::journal::line batch::naming batch::shard::tests::tasks
