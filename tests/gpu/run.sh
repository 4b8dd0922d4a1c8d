#!/bin/bash
# On a GPU machine: all tests with the GPU required, then every production kernel under
# compute-sanitizer where it is installed. Made part of a bundle by tests/gpu/bundle.sh.
set -euo pipefail
cd "$(dirname "$0")"
export GPUIMG_REQUIRE_GPU=1 GPUIMG_BIN=$PWD/gpuimg GPUIMG_ROOT=$PWD
# The tests with a stand-in driver are for machines without one of their own; others read the whole repository.
./gpuimg-tests --include-ignored --skip full_gpu --skip driver:: --skip documents:: --skip structure::
# It takes all of the GPU's memory from whoever runs beside it.
./gpuimg-tests --ignored full_gpu
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck; do
        compute-sanitizer --tool $tool --error-exitcode 1 ./gpuimg-tests --test-threads 1 every_kernel_on_small_images
    done
else
    echo "SKIPPED compute-sanitizer: it is not installed"
fi
