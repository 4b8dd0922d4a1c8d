#!/bin/bash
# Builds what users install, for TARGET, into FOLDER: a wheel, a Debian package, a tarball and a bill of materials.
# The package and the tarball hold the program, and the wheel the Python module, which contains the same program (pyproject.toml). Both
# run on every Linux with glibc 2.17 (2012) or later: zig links them with that version's symbols, and packaging/floor.sh checks the
# result. Needs Rust with the target, Python 3.11, and PyPI for maturin, cargo-zigbuild and zig; dpkg-deb for the Debian package;
# for aarch64 on another machine also qemu-user-static and libc6-arm64-cross. What is missing it installs where it can; status 77
# where something cannot be had. `here` instead of a target takes the release build of this machine, which runs where glibc is as new as
# it is here: for tests, in a fraction of the time.
#
#   packaging/build.sh [FOLDER [TARGET|here]]      target/dist, and x86_64-unknown-linux-gnu or aarch64-unknown-linux-gnu
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
dist=$(realpath -m "${1:-target/dist}")
target=${2:-x86_64-unknown-linux-gnu} here=""
if [[ $target == here ]]; then target=$(uname -m)-unknown-linux-gnu here=yes; fi
case $target in
    x86_64-unknown-linux-gnu) architecture=amd64 emulator=() ;;
    aarch64-unknown-linux-gnu) architecture=arm64 emulator=(qemu-aarch64-static -L /usr/aarch64-linux-gnu) ;;
    *) echo "packaging/build.sh: no artefacts are made for $target" >&2; exit 2 ;;
esac
[[ $(uname -m)-unknown-linux-gnu != "$target" ]] || emulator=()
cannot() { echo "$target cannot be built: $*" >&2; exit 77; }
if [[ -n ${emulator[*]} ]]; then
    need "${emulator[0]}" qemu-user-static libc6-arm64-cross && [[ -d ${emulator[2]} ]] ||
        cannot "its man pages and completions are written by the program itself, under qemu-user-static with libc6-arm64-cross"
fi
[[ -d $(rustc --print target-libdir --target "$target") ]] || rustup target add "$target" ||
    cannot "Rust's standard library for it is missing (rustup target add $target)"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p;T;q' Cargo.toml)
# The commit's time, so that what is built twice of one commit is the same.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || date +%s)}
# For `gpuimg --version --verbose`. With it, all of the program is compiled anew.
if [[ -z $here && -z ${GPUIMG_COMMIT:-} ]] && GPUIMG_COMMIT=$(git rev-parse HEAD 2> /dev/null); then
    git diff --quiet HEAD || GPUIMG_COMMIT+=" (with changes)"
fi
[[ -n $here ]] || export GPUIMG_COMMIT
umask 022

need readelf binutils && tools maturin==1.16.0 cargo-zigbuild==0.24.0 ziglang==0.17.1 ||
    cannot "maturin, cargo-zigbuild and zig, from PyPI, or readelf is missing"
export PATH=$PWD/$tools/bin:$PATH

work=target/packaging/$target
# maturin puts what it finds in this folder below the environment's prefix.
data=gpuimg._gpuimg.data
rm -rf "$work" "$data"
trap 'rm -rf "$data"' EXIT
mkdir -p "$work" "$dist"
rm -f "$dist"/gpuimg-*_"${target%%-*}".whl "$dist"/gpuimg-*-"$target".tar.gz "$dist"/gpuimg_*_"$architecture".deb
if [[ -n $here ]]; then
    cargo build --quiet --release --locked --bin gpuimg
    program=$work/gpuimg
    strip -o "$program" target/release/gpuimg
else
    cargo-zigbuild rustc --quiet --release --locked --bin gpuimg --target "$target.2.17" -- -C strip=symbols
    program=target/$target/release/gpuimg
    packaging/floor.sh "$program"
fi
run() { "${emulator[@]}" "$program" "$@"; }

# What lies below a prefix such as /usr.
tree=$work/gpuimg-$version-$target
share=$tree/share
mkdir -p "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,doc/gpuimg}
install -D "$program" "$tree/bin/gpuimg"
run man "$share/man/man1"
run completions bash > "$share/bash-completion/completions/gpuimg"
run completions zsh > "$share/zsh/site-functions/_gpuimg"
run completions fish > "$share/fish/vendor_completions.d/gpuimg.fish"
install -m 644 LICENSE CHANGELOG.md docs/INSTALL.md docs/VERSIONS.md packaging/licenses.txt "$share/doc/gpuimg/"

mkdir -p "$data/data"
cp -r "$share" "$data/data/share"
rm -r "$data/data/share/doc"
if [[ -n $here ]]; then
    CARGO_TARGET_DIR=$PWD/target maturin build --quiet --release --locked --compatibility linux --out "$work"
    wheel=$(ls "$work"/gpuimg-*.whl)
else
    # A folder of its own: maturin names another linker than cargo-zigbuild, for which cargo compiles every crate again.
    CARGO_TARGET_DIR=$PWD/target/wheel maturin build --quiet --release --locked --zig --compatibility manylinux2014 --target "$target" \
        --out "$work"
    wheel=$(ls "$work"/gpuimg-*.whl)
    python3 -m zipfile --extract "$wheel" "$work/wheel"
    packaging/floor.sh "$work/wheel/gpuimg/_gpuimg.abi3.so"
fi
# PyPI's users download it for every environment.
[[ $(stat -c %s "$wheel") -le 20000000 ]] || wrong "$wheel is larger than 20 MB"
mv "$wheel" "$dist/"

tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    "$(basename "$tree")" | gzip -9n > "$dist/$(basename "$tree").tar.gz"

if command -v dpkg-deb > /dev/null; then
    packaging/deb.sh "$tree" "$version" "$architecture" "$dist"
else
    skip "the Debian package: dpkg-deb is not installed"
fi
packaging/crates.py sbom "$dist/gpuimg-$version.cdx.json"
