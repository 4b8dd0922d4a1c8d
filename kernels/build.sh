#!/bin/sh
# Compiles the kernels to what the program embeds, kernels/compiled: kernels/build.sh, or kernels/build.sh
# --check to compare with what is committed. Needs Python 3 with pip, and no CUDA: NVRTC 12.0 comes from PyPI into target/nvrtc.
# NVRTC 12.0 writes PTX ISA 8.0, which drivers from 525 on accept; a later one would shut older drivers out.
set -eu
cd "$(dirname "$0")/.."
nvrtc=target/nvrtc
library=$nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
if [ ! -e "$library" ]; then
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$nvrtc" nvidia-cuda-nvrtc-cu12==12.0.76
fi
# NVRTC opens its second library, the built-ins, by its bare name.
LD_LIBRARY_PATH=$(dirname "$library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec python3 kernels/build.py "$library" "$@"
