#!/bin/bash
# On a GPU machine: all tests with the GPU required, then every production kernel under the four tools
# of compute-sanitizer where it is installed. Made part of a bundle by tests/gpu/bundle.sh.
set -euo pipefail
cd "$(dirname "$0")"
export GPUIMG_REQUIRE_GPU=1 GPUIMG_BIN=$PWD/gpuimg GPUIMG_ROOT=$PWD
# The tests with a stand-in driver are for machines without one of their own; others read the whole repository.
./gpuimg-tests --include-ignored --skip full_gpu --skip driver:: --skip documents:: --skip structure::
# It takes all of the GPU's memory from whoever runs beside it.
./gpuimg-tests --ignored full_gpu
if command -v compute-sanitizer > /dev/null; then
    # A process for each tool and test, because a tool slows kernels down a hundredfold.
    check() {
        log=$(compute-sanitizer --tool "$1" --error-exitcode 1 ./gpuimg-tests --exact --test-threads 1 "$2" 2>&1) ||
            { echo "$log"; echo "$1 $2: FAILED"; return 1; }
        echo "$1 $2: clean"
    }
    export -f check
    tests=$(./gpuimg-tests --list 2> /dev/null | sed -n 's/\(.*every_kernel_on_small_images.*\): test$/\1/p')
    for tool in racecheck memcheck initcheck synccheck; do
        printf "$tool %s\n" $tests
    done | xargs -P "$(nproc)" -L 1 bash -c 'check "$@"' check
else
    echo "SKIPPED compute-sanitizer: it is not installed"
fi
