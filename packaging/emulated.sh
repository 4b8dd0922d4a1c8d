#!/bin/bash
# Runs the aarch64 program that packaging/build.sh has built under qemu, over the samples, and compares every byte with
# what the program for this machine gives. Needs qemu-user-static and libc6-arm64-cross of Debian.
#
#   packaging/emulated.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-target/dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unpack() { tar -xzf "$(ls "$dist"/gpuimg-*-"$1"-unknown-linux-gnu.tar.gz)" -C "$work"; echo "$work"/gpuimg-*-"$1"-*/bin/gpuimg; }
here=$(unpack "$(uname -m)")
program=$(unpack aarch64)
there() { qemu-aarch64-static -L /usr/aarch64-linux-gnu "$program" "$@"; }
export GPUIMG_DEVICE=cpu
cases=0
for sample in samples/*.{png,tif}; do
    for verb in normalize "normalize --per-channel --clip 1:99" "normalize --depth 8" "rotate 90" transpose "flip horizontal"; do
        for form in "png --png fast" "png --png small" "tiff --tiff deflate" "tiff --tiff lzw" "tiff --tiff zstd" pnm; do
            status=0
            "$here" $verb "$sample" "$work/here" --overwrite --format $form 2> "$work/here.said" || status=$?
            other=0
            there $verb "$sample" "$work/there" --overwrite --format $form 2> "$work/there.said" || other=$?
            [[ $status == "$other" ]] && { [[ $status != 0 ]] || cmp "$work/here" "$work/there"; } ||
                { echo "WRONG: $verb $sample --format $form: status $other instead of $status" >&2; cat "$work/there.said" >&2; exit 1; }
            cases=$((cases + 1))
        done
    done
done
cmp <("$here" sum --all --json samples/*.tif) <(there sum --all --json samples/*.tif)
echo "aarch64 under qemu: the same bytes in $cases cases"
