#!/bin/bash
# Builds what users of aarch64 install, runs the program under qemu, and compares every byte with what the program for this machine
# gives, which packaging/build.sh builds too if it is not in FOLDER. Says SKIPPED, and why, where something cannot be had.
#
#   packaging/emulated.sh [FOLDER]        target/dist
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
dist=$(realpath -m "${1:-target/dist}")
machine=$(uname -m)
[[ $machine != aarch64 ]] || { skip "aarch64: it is this machine's, so nothing is emulated"; exit 0; }
build() { # TARGET
    local status=0
    packaging/build.sh "$dist" "$1" || status=$?
    [[ $status != 77 ]] || { skip "aarch64: see above"; exit 0; }
    [[ $status == 0 ]] || exit "$status"
}
[[ -n $(find "$dist" -name "gpuimg-*-$machine-unknown-linux-gnu.tar.gz" 2> /dev/null) ]] || build "$machine-unknown-linux-gnu"
build aarch64-unknown-linux-gnu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unpack() { tar -xzf "$(ls "$dist"/gpuimg-*-"$1"-unknown-linux-gnu.tar.gz)" -C "$work"; echo "$work"/gpuimg-*-"$1"-*/bin/gpuimg; }
packaging/same_bytes.py --samples "$(unpack "$machine")" qemu-aarch64-static -L /usr/aarch64-linux-gnu "$(unpack aarch64)"
