#!/bin/bash
# Stores in a bucket of S3, which a server on this machine pretends to have (moto). The server is installed in a Python environment
# below target/; says loudly where it cannot be had.
#
#   tests/objects/run.sh [GPUIMG]        a gpuimg that was built with --features remote
set -euo pipefail
cd "$(dirname "$0")/../.."
gpuimg=$(realpath "${1:-target/release/gpuimg}")
environment=target/objects
if ! { python3 -m venv "$environment" && "$environment/bin/pip" install -q 'moto[server]' boto3; } > /dev/null 2>&1; then
    echo "SKIPPED stores in buckets: the server moto cannot be installed" >&2
    exit 0
fi
"$environment/bin/python" tests/objects/s3.py "$gpuimg"
