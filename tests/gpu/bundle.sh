#!/bin/bash
# Puts the program, its tests and the samples into one folder, bundle/, for a GPU machine without
# Rust: copy the folder there and run bundle/run.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --quiet
tests=$(cargo test --release --no-run --message-format=json --quiet |
    python3 -c 'import json, sys
for line in sys.stdin:
    artifact = json.loads(line)
    if artifact.get("target", {}).get("kind") == ["test"]: print(artifact["executable"])')
rm -rf bundle
mkdir bundle
cp -r samples docs bundle/
cp target/release/gpuimg bundle/gpuimg
cp "$tests" bundle/gpuimg-tests
# What the tests read of the repository, at the same paths.
mkdir bundle/tests
cp -r tests/files tests/recorded.txt bundle/tests/
cp tests/gpu/run.sh bundle/run.sh
strip bundle/gpuimg bundle/gpuimg-tests
du -sh bundle
