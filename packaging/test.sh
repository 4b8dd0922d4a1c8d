#!/bin/bash
# What must hold of what users install: every licence is allowed and printed, the Python module's types are sound, and
# the artefacts are built, installed, run and removed. Says SKIPPED where a tool cannot be had.
#
#   packaging/test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "SKIPPED $*" >&2; }

packaging/crates.py licenses --check
packaging/crates.py check
if cargo deny --version > /dev/null 2>&1; then
    cargo deny --locked check --hide-inclusion-graph
else
    skip "known vulnerabilities: cargo-deny is not installed (cargo install --locked cargo-deny)"
fi

status=0
packaging/build.sh || status=$?
[[ $status != 77 ]] || exit 0
[[ $status == 0 ]] || exit "$status"
if target/packaging/tools/bin/python -m pip install -q 'mypy==2.4.1'; then
    target/packaging/tools/bin/python -m mypy --strict --python-version 3.10 packaging/python/gpuimg
else
    skip "the Python module's types: mypy cannot be installed"
fi
packaging/check.sh
