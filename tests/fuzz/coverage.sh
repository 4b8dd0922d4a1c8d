#!/usr/bin/env bash
# Says what the corpora of the fuzz targets reach of the code that reads and writes files: tests/fuzz/coverage.sh [SECONDS [TARGET...]]
#
# Builds the targets with coverage and without sanitizers, makes the seeds, runs each corpus once and then mutates it for SECONDS (20 by
# default), blindly, since nothing guides a build without sanitizers. Prints how many regions each target reaches, and all together of
# each file, and the functions of which most is not reached. The corpus is that of run.sh, and stays as it is. Installs the component
# llvm-tools if it is missing.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-20}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's|^path = "targets/\(.*\)\.rs"$|\1|p' Cargo.toml)

host=$(rustc -vV | sed -n 's/^host: //p')
tools=$(rustc --print target-libdir)/../bin
[ -x "$tools/llvm-cov" ] || rustup component add llvm-tools
# With a target named, build scripts are not instrumented, which would leave their profiles here.
RUSTFLAGS="-Cinstrument-coverage" cargo build --release --quiet --target "$host" --target-dir target/coverage

raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
export RAYON_NUM_THREADS=${RAYON_NUM_THREADS:-2}
for target in "${targets[@]}"; do
    binary=target/coverage/$host/release/$target
    mkdir -p "corpus/$target" "$raw/new" "$raw/found"
    export LLVM_PROFILE_FILE=$raw/seeds
    FUZZ_SEEDS=$raw/new "$binary" 2> "$raw/log"
    export LLVM_PROFILE_FILE=$raw/$target.profraw
    # What is found goes to the first folder.
    "$binary" "$raw/found" "$raw/new" "corpus/$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
        -artifact_prefix="$raw/" > "$raw/log" 2>&1 || { tail -n 40 "$raw/log"; exit 1; }
    rm -r "$raw/new" "$raw/found"
    "$tools/llvm-profdata" merge -o "$raw/profile" "$raw/$target.profraw"
    "$tools/llvm-cov" export -instr-profile "$raw/profile" "$binary" > "$raw/$target.json"
done
./coverage.py ../.. "${targets[@]/#/$raw/}"
