#!/bin/bash
# Runs the aarch64 program that packaging/build.sh has built under qemu, and compares every byte with what the program for this machine
# gives. Needs qemu-user-static and libc6-arm64-cross of Debian.
#
#   packaging/emulated.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-target/dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unpack() { tar -xzf "$(ls "$dist"/gpuimg-*-"$1"-unknown-linux-gnu.tar.gz)" -C "$work"; echo "$work"/gpuimg-*-"$1"-*/bin/gpuimg; }
packaging/same_bytes.py --samples "$(unpack "$(uname -m)")" qemu-aarch64-static -L /usr/aarch64-linux-gnu "$(unpack aarch64)"
