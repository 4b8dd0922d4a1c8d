#!/bin/bash
# Other programs' readers and writers against gpuimg, in a Python environment of its own below target/; says loudly
# where the packages cannot be had.
#
#   tests/interop/run.sh [GPUIMG]
set -euo pipefail
cd "$(dirname "$0")/../.."
gpuimg=$(realpath "${1:-target/release/gpuimg}")
environment=target/interop
if ! { python3 -m venv "$environment" && "$environment/bin/pip" install -q -r tests/interop/requirements.txt; } > /dev/null 2>&1; then
    echo "SKIPPED the comparison with other programs: the Python packages cannot be installed" >&2
    exit 0
fi
for script in foreign_tiff foreign_kinds foreign_formats foreign_fields numpy_oracle clipping_oracle calibration_oracle wide_oracle colour_oracle zarr_stores zarr_written cog_files hdf5_files coded_images sweep; do
    echo "== $script"
    "$environment/bin/python" "tests/interop/$script.py" "$gpuimg" | tail -20
done
