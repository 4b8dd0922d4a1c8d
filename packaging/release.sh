#!/bin/bash
# A release of the commit that is checked out: builds every artefact (packaging/build.sh), installs, runs and removes
# each on a bare system (packaging/check.sh), and prints their sizes and checksums. Refused where something is not
# committed. aarch64 is built too, where its program can be run under qemu.
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
rm -f "$dist"/gpuimg[-_]* "$dist/SHA256SUMS"
packaging/build.sh "$dist"
packaging/check.sh "$dist"
if [[ $(uname -m) != aarch64 ]]; then
    rustup target add aarch64-unknown-linux-gnu 2> /dev/null || true
    status=0
    packaging/build.sh "$dist" aarch64-unknown-linux-gnu || status=$?
    case $status in
        0) packaging/emulated.sh "$dist" ;;
        77) ;;
        *) exit "$status" ;;
    esac
fi
tests/container.sh

cd "$dist"
sha256sum gpuimg[-_]"$version"* > SHA256SUMS
echo
echo "gpuimg $version, commit $GPUIMG_COMMIT"
while read -r sum file; do
    printf '%12d  %s  %s\n' "$(stat -c %s "$file")" "$sum" "$file"
done < SHA256SUMS
