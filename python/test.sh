#!/bin/bash
# Builds the Python module as a wheel, installs it into an environment of its own, and runs its tests. packaging/check.sh runs them
# under other versions of Python. Needs Rust, Python 3.11 or later, and PyPI for maturin, NumPy, Zarr, pytest and mypy. Says SKIPPED, and why, where something
# cannot be had.
#
#   python/test.sh [PYTEST OPTION…]      GPUIMG_WHEEL=FILE tests that wheel, and builds none; GPUIMG_PROFILE=dev builds
#                                        faster, and runs slower; PYTHON_VALGRIND=1 runs tests of the boundary between Python
#                                        and Rust under valgrind instead
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
# The release builds of other crates are shared with the program.
export CARGO_TARGET_DIR=$PWD/target
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { skip "the Python module: python3 is older than 3.11"; exit 0; }

wheels=$CARGO_TARGET_DIR/python/wheels venv=$CARGO_TARGET_DIR/python/venv
rm -rf "$wheels" "$venv"
if [[ -n ${GPUIMG_WHEEL:-} ]]; then
    install -D -t "$wheels" "$GPUIMG_WHEEL"
else
    tools maturin==1.16.0 || { skip "the Python module: maturin cannot be had"; exit 0; }
    "$tools/bin/maturin" build --quiet --locked --profile "${GPUIMG_PROFILE:-release}" --compatibility linux --out "$wheels"
fi
python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 zarr==3.1.6 pytest==9.0.3 mypy==2.4.1 ||
    { skip "the Python module's tests: NumPy, Zarr, pytest or mypy cannot be installed"; exit 0; }
# The examples with other packages; their tests say SKIPPED without them. PyTorch is too large for this: it is on the GPU host.
"$venv/bin/pip" install -q --disable-pip-version-check 'dask[distributed]==2026.8.0' ray==2.60.0 jax==0.10.2 npe2==0.10.0 ||
    skip "the examples with other packages: Dask, Ray, JAX or npe2 cannot be installed"
"$venv/bin/pip" install -q --disable-pip-version-check --no-index "$wheels"/gpuimg-*.whl
python=$venv/bin/python

"$python" python/generate.py --check
"$venv/bin/mypy" --strict --python-version 3.11 python/package/gpuimg
# Away from the sources, so that the installed module is the one that is imported.
tests=$PWD/python/tests
if [[ -n ${PYTHON_VALGRIND:-} ]]; then
    need valgrind valgrind || { skip "the Python module under valgrind: it cannot be installed"; exit 0; }
    exec python/valgrind.py "$python" "$@"
fi
cd "$CARGO_TARGET_DIR/python"
"$python" -m pytest -q -rs -p no:cacheprovider "$@" "$tests"
