#!/usr/bin/env bash
# Says what the corpora of the fuzz targets reach of the code that reads and writes files: tests/fuzz/coverage.sh [SECONDS [TARGET...]]
#
# Builds the targets with coverage and without sanitizers, makes the seeds, runs each corpus once and then mutates it for SECONDS (20 by
# default), blindly, and prints for every file how many regions are reached by all targets together, and the functions of which most is
# not. The corpus is that of run.sh, and stays as it is. Installs the component llvm-tools if it is missing.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-20}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\(.*_.*\)"$/\1/p' Cargo.toml)

tools=$(rustc --print target-libdir)/../bin
[ -x "$tools/llvm-cov" ] || rustup component add llvm-tools
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
# Build scripts leave profiles, too.
LLVM_PROFILE_FILE=$raw/build-%p RUSTFLAGS="-Cinstrument-coverage" cargo build --release --quiet --target-dir target/coverage
rm -f "$raw"/build-*

export RAYON_NUM_THREADS=${RAYON_NUM_THREADS:-2}
objects=()
for target in "${targets[@]}"; do
    binary=target/coverage/release/$target
    objects+=(-object "$binary")
    mkdir -p "corpus/$target" "$raw/new" "$raw/found"
    FUZZ_SEEDS=$raw/new LLVM_PROFILE_FILE=$raw/seeds "$binary"
    export LLVM_PROFILE_FILE=$raw/$target-%p.profraw
    # What is found goes to the first folder.
    "$binary" "$raw/found" "$raw/new" "corpus/$target" -seed="${FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
        -artifact_prefix="$raw/" > "$raw/log" 2>&1 || { tail -n 40 "$raw/log"; exit 1; }
    rm -r "$raw/new" "$raw/found"
done
"$tools/llvm-profdata" merge -o "$raw/all" "$raw"/*.profraw
"$tools/llvm-cov" export -instr-profile "$raw/all" "${objects[@]}" | ./coverage.py ../..
