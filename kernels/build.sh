#!/bin/sh
# Compiles the kernels to what the program embeds, kernels/compiled: kernels/build.sh, or kernels/build.sh
# --check to compare with what is committed. Needs Python 3 with pip, and no CUDA: NVRTC 12.0 and ptxas 12.8 come from PyPI into
# target/nvrtc and target/ptxas. NVRTC 12.0 writes PTX ISA 8.0, which drivers from 525 on accept; a later one would shut older
# drivers out. It knows no Blackwell; ptxas 12.8 does, and so does every driver of one.
set -eu
cd "$(dirname "$0")/.."
nvrtc=target/nvrtc
library=$nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
ptxas=target/ptxas/nvidia/cuda_nvcc/bin/ptxas
from_pypi() { # FOLDER REQUIREMENT
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$1" "$2"
}
[ -e "$library" ] || from_pypi "$nvrtc" nvidia-cuda-nvrtc-cu12==12.0.76
[ -x "$ptxas" ] || { from_pypi target/ptxas nvidia-cuda-nvcc-cu12==12.8.93 && chmod +x "$ptxas"; }
# NVRTC opens its second library, the built-ins, by its bare name.
LD_LIBRARY_PATH=$(dirname "$library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec python3 -B kernels/build.py "$library" "$ptxas" "$@"
