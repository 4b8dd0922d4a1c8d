#!/bin/bash
# On a GPU machine: all tests with the GPU required, then every production kernel under
# compute-sanitizer where it is installed. Made part of a bundle by tests/gpu/bundle.sh.
set -euo pipefail
cd "$(dirname "$0")"
export GPUIMG_REQUIRE_GPU=1 GPUIMG_BIN=$PWD/gpuimg GPUIMG_ROOT=$PWD
./suite --include-ignored --skip full_gpu
# It takes all of the GPU's memory from whoever runs beside it.
./suite --ignored full_gpu
if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck; do
        compute-sanitizer --tool $tool --error-exitcode 1 ./suite --test-threads 1 every_kernel_on_small_images
    done
else
    echo "SKIPPED compute-sanitizer: it is not installed"
fi
