#!/bin/bash
# A release of the commit that is checked out: asks for known vulnerabilities, builds every artefact, installs, runs and removes
# each on a bare system (packaging/test.sh), carries out the Containerfile, compares the start of the program with that of
# cargo's, and prints sizes and checksums. Refused where something is not committed; fails where something cannot be had,
# unless an option leaves it out.
#
#   packaging/release.sh [--without-advisories] [--allow-skips] [FOLDER]        target/dist
set -euo pipefail
cd "$(dirname "$0")/.."
advisories=yes
export GPUIMG_STRICT=1
while [[ ${1:-} == --* ]]; do
    case $1 in
        --without-advisories) advisories=no ;;
        --allow-skips) unset GPUIMG_STRICT ;;
        *) echo "packaging/release.sh: no option $1" >&2; exit 2 ;;
    esac
    shift
done
dist=$(realpath -m "${1:-target/dist}")
changed=$(git status --porcelain)
[[ -z $changed ]] || { echo "packaging/release.sh: commit these first:" >&2; echo "$changed" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p;T;q' Cargo.toml)
grep -q "^## $version, 20" CHANGELOG.md || { echo "packaging/release.sh: CHANGELOG.md has no date for $version" >&2; exit 1; }
GPUIMG_COMMIT=$(git rev-parse HEAD)
export GPUIMG_COMMIT

if [[ $advisories == yes ]]; then
    packaging/advisories.sh
else
    echo "NOTE: nobody has asked whether a crate has a known vulnerability" >&2
fi
rm -f "$dist"/gpuimg[-_]* "$dist/SHA256SUMS"
packaging/test.sh "$dist"
packaging/emulated.sh "$dist"
tests/container.sh
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar -xzf "$dist/gpuimg-$version-$(uname -m)-unknown-linux-gnu.tar.gz" -C "$unpacked" --strip-components=1
cargo build --release --locked --quiet
packaging/pairs.py 500 target/release/gpuimg "$unpacked/bin/gpuimg" --version

cd "$dist"
sha256sum gpuimg[-_]"$version"* > SHA256SUMS
sha256sum --check --quiet SHA256SUMS
echo
echo "gpuimg $version, commit $GPUIMG_COMMIT"
while read -r sum file; do
    printf '%12d  %s  %s\n' "$(stat -c %s "$file")" "$sum" "$file"
done < SHA256SUMS
