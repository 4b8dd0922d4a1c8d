#!/usr/bin/env bash
# Fuzzes every codec: tests/fuzz/run.sh [SECONDS [TARGET...]]
#
# Builds the targets with the address sanitizer, makes the seeds, and runs each target for SECONDS
# (30 by default). Fails on the first finding, whose input stays in tests/fuzz/artifacts/. What was
# learnt stays in tests/fuzz/corpus/. Installs cargo-fuzz if it is missing; where it cannot, says loudly
# that fuzzing is skipped.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-30}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(decode_png decode_tiff decode_pnm decode_formats decode_raw decode_zarr runs roundtrip_png roundtrip_tiff)

# The sanitizers are behind a nightly flag; the stable compiler has them too.
export RUSTC_BOOTSTRAP=1
skip() {
    echo "SKIPPED fuzzing: $1" >&2
    exit 0
}
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz@0.13.2 ||
    skip "cargo-fuzz is not here, and cannot be installed"
cargo fetch --quiet || skip "what the targets depend on cannot be fetched"
# Under `cfg(fuzzing)` libraries skip the checksums that are compared here.
# With one unit of code, the default, a single core compiles the program for a quarter of an hour.
cargo fuzz build --fuzz-dir . --no-cfg-fuzzing --codegen-units 16
binaries=target/$(rustc -vV | sed -n 's/^host: //p')/release

# libdeflate's header-like C files define one table twice.
export ASAN_OPTIONS=detect_odr_violation=0
# 1 GiB of memory; an input may take a minute, since the largest images take seconds under the
# sanitizer on a busy machine; inputs of at most 16 KiB. Few threads, for small images.
export RAYON_NUM_THREADS=${RAYON_NUM_THREADS:-2}
for target in "${targets[@]}"; do
    corpus=corpus/$target
    mkdir -p "$corpus" "artifacts/$target"
    FUZZ_SEEDS=$corpus "$binaries/$target"
    case $target in
        decode_* | runs) longest=16384 ;;
        *) longest=512 ;;
    esac
    echo "== $target, $seconds s"
    "$binaries/$target" "$corpus" -artifact_prefix="artifacts/$target/" \
        -max_total_time="$seconds" -max_len=$longest -timeout=60 \
        -rss_limit_mb=1024 -malloc_limit_mb=512 -print_final_stats=1 \
        >"artifacts/$target/log" 2>&1 || {
        tail -n 60 "artifacts/$target/log"
        echo "$target: a finding; its input is in tests/fuzz/artifacts/$target/" >&2
        exit 1
    }
    grep -aE '^(#[0-9]+\s+DONE|Done|stat::(number_of|average|peak))' "artifacts/$target/log"
done
