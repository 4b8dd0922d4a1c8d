#!/bin/bash
# A release of the commit that is checked out: builds every artefact (packaging/build.sh), installs, runs and removes
# each on a bare system (packaging/check.sh), and prints their sizes and checksums. Refused where something is not
# committed. Other targets are built too where their programs can be run here.
#
#   packaging/release.sh [FOLDER]        target/dist
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath -m "${1:-target/dist}")
changed=$(git status --porcelain)
[[ -z $changed ]] || { echo "packaging/release.sh: commit these first:" >&2; echo "$changed" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p;T;q' Cargo.toml)
grep -q "^## $version, 20" CHANGELOG.md || echo "NOTE: CHANGELOG.md has no date for $version yet" >&2
GPUIMG_COMMIT=$(git rev-parse HEAD)
export GPUIMG_COMMIT

packaging/crates.py licenses --check
packaging/crates.py check
packaging/build.sh "$dist"
packaging/check.sh "$dist"
if command -v qemu-aarch64-static > /dev/null; then
    rustup target add aarch64-unknown-linux-gnu 2> /dev/null
    packaging/build.sh "$dist" aarch64-unknown-linux-gnu
    packaging/emulated.sh "$dist"
else
    echo "SKIPPED aarch64: qemu-aarch64-static is not installed (qemu-user-static)" >&2
fi
tests/container.sh

cd "$dist"
sha256sum gpuimg[-_]"$version"* > SHA256SUMS
echo
echo "gpuimg $version, commit $GPUIMG_COMMIT"
while read -r sum file; do
    printf '%12d  %s  %s\n' "$(stat -c %s "$file")" "$sum" "$file"
done < SHA256SUMS
