#!/bin/bash
# Builds gpuimg for s390x, whose bytes are in the other order, runs it under qemu, and compares what it writes with what this machine's
# program writes (packaging/same_bytes.py). Ten minutes, most of them the build. Not in CI. What it needs beside Rust it installs as root
# on a Debian: qemu-user, gcc-s390x-linux-gnu, libc6-dev-s390x-cross.
#
#   tests/big_endian.sh [--samples]
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh

target=s390x-unknown-linux-gnu
need qemu-s390x qemu-user && need s390x-linux-gnu-gcc gcc-s390x-linux-gnu libc6-dev-s390x-cross || wrong "see above"
[[ -d $(rustc --print target-libdir --target $target) ]] || rustup target add $target
cargo build --bin gpuimg
# Crates with less optimisation than here: they run but once, under an emulator.
CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc \
    cargo build --bin gpuimg --target $target --target-dir target/big_endian --config 'profile.dev.package."*".opt-level=1'
packaging/same_bytes.py "$@" target/debug/gpuimg qemu-s390x -L /usr/s390x-linux-gnu target/big_endian/$target/debug/gpuimg
