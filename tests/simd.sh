#!/bin/bash
# Runs the tests of codecs and operations at every level of vector instructions that this machine has, but its highest, which all
# other tests use. `tests/simd.sh LEVEL...` for some of them; CARGO_TEST_ARGS=--release for the build that users have.
set -euo pipefail
cd "$(dirname "$0")/.."

levels=("$@")
if [[ $# == 0 ]]; then
    # The refusal of an unknown level would name them all; these are those that are there.
    levels=(scalar)
    if [[ $(uname -m) == x86_64 ]]; then
        flags=$(grep -m1 '^flags' /proc/cpuinfo)
        [[ $flags == *" avx2"* && $flags == *" bmi2"* ]] && levels+=(sse2)
        [[ $flags == *" avx512vl"* && $flags == *" avx512dq"* ]] && levels+=(avx2)
    fi
fi
for level in "${levels[@]}"; do
    echo "GPUIMG_SIMD=$level"
    # shellcheck disable=SC2086
    GPUIMG_SIMD=$level cargo test -q ${CARGO_TEST_ARGS:-} --lib -- ops:: formats:: deflate:: image::simd::
    # shellcheck disable=SC2086
    GPUIMG_SIMD=$level cargo test -q ${CARGO_TEST_ARGS:-} --test main -- \
        devices:: laws:: rounding:: wide:: calibrate:: project:: png_decode:: png_encode:: tiff:: formats::
done
