#!/bin/bash
# What must hold of what users install: every licence is allowed and printed, no crate is yanked or known to be vulnerable, the
# bill of materials follows its schema, the tools for Galaxy and the recipes for conda and nf-core are sound, the artefacts for this
# machine are built, installed, run and removed (packaging/check.sh), and the program compiles for other processors and systems. Those for
# aarch64 are tested by packaging/emulated.sh. Needs Rust; what else it needs it installs. Says SKIPPED, and why, where something
# cannot be had.
#
#   packaging/test.sh [FOLDER [TARGET]]        target/dist, and the target of this machine, or `here` (packaging/build.sh)
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
dist=${1:-target/dist} target=${2:-$(uname -m)-unknown-linux-gnu}

tests/crates.py
packaging/crates.py licenses --check
packaging/crates.py check
status=0
packaging/crates.py yanked || status=$?
[[ $status != 77 ]] || skip "which crates are yanked: the registry cannot be asked"
[[ $status == 0 || $status == 77 ]] || exit "$status"
status=0
packaging/build.sh "$dist" "$target" || status=$?
[[ $status != 77 ]] || { skip "the packages: see above"; exit 0; }
[[ $status == 0 ]] || exit "$status"
if tools 'cyclonedx-python-lib[json-validation]==11.12.0'; then
    "$tools/bin/python" - "$dist"/gpuimg-*.cdx.json << 'VALID'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(wrong and f"WRONG: {sys.argv[1]}: {wrong}")
VALID
else
    skip "the bill of materials' schema: cyclonedx-python-lib cannot be installed"
fi
if tools galaxy-tool-util==26.1.2 edam-ontology==1.25.3 ct3==3.4.0.post5 py-rattler-build==0.73.0; then
    tar -xzf "$(ls "$dist"/gpuimg-*-"$(uname -m)"-unknown-linux-gnu.tar.gz)" -C target/packaging
    "$tools/bin/python" packaging/recipes.py target/packaging/gpuimg-*-"$(uname -m)"-unknown-linux-gnu/bin/gpuimg
else
    skip "the tools for Galaxy and the recipes for conda and nf-core: Galaxy's or rattler-build's Python packages cannot be installed"
fi
packaging/check.sh "$dist"
packaging/targets.sh
