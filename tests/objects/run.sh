#!/bin/bash
# The feature `remote`: its tests, and stores in a bucket of S3 that are read and written, which a server on this machine pretends to have (moto). The server is
# installed in a Python environment below target/; says loudly where it cannot be had.
#
#   tests/objects/run.sh              build with the feature, and run all
#   tests/objects/run.sh GPUIMG       only the bucket, with a gpuimg that has the feature
set -euo pipefail
cd "$(dirname "$0")/../.."
gpuimg=${1:-}
if [[ -z $gpuimg ]]; then
    target=target/remote
    cargo test --release --features remote --target-dir "$target" remote::
    gpuimg=$target/release/gpuimg
fi
gpuimg=$(realpath "$gpuimg")
environment=target/objects
if ! { python3 -m venv "$environment" && "$environment/bin/pip" install -q boto3 'moto[server]'; } > /dev/null 2>&1; then
    echo "SKIPPED stores in buckets: the server moto cannot be installed" >&2
    exit 0
fi
"$environment/bin/python" tests/objects/s3.py "$gpuimg"
