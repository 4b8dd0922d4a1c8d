#!/bin/bash
# Installs what packaging/build.sh has built, as users do, and removes it again: the wheel in clean environments of
# other Pythons, with its module's tests; the Debian package, the tarball and the wheel on a bare Debian 12, without
# network, each with the README's first command. Nothing may be left behind. What cannot be had here is skipped loudly;
# the bare Debian needs root and Debian's mmdebstrap.
#
#   packaging/check.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath "${1:-target/dist}")
skip() { echo "SKIPPED $*" >&2; }
wrong() { echo "WRONG: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p target/packaging

machine=$(uname -m)
wheel=$(ls "$dist"/gpuimg-*-py3-none-manylinux*_"$machine".whl)
tarball=$(ls "$dist"/gpuimg-*-"$machine"-unknown-linux-gnu.tar.gz)
version=$(basename "$wheel" | cut -d- -f2)

# The first command of the README, with the program that is installed.
first=$(grep -m1 -E '^(cargo run --release -- |gpuimg )normalize ' README.md | sed 's/^cargo run --release -- /gpuimg /')
[[ $first == "gpuimg normalize samples/"* ]] || wrong "the README has no first command: $first"
read -ra first <<< "$first"
input=${first[2]} output=${first[3]}

# The oldest and the newest Python here that can make environments, but for the one that is used for tools.
pythons() {
    local python
    for python in python3.{8..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
        "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 8)); ' 2> /dev/null &&
            echo "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') $(command -v "$python")"
    done | sort -V | sort -Vu -k1,1 | { grep -v "^$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') " || true; }
}
found=$(pythons)
if [[ -z $found ]]; then
    skip "another Python: there is only $(python3 --version)"
    found="$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') $(command -v python3)"
fi
while read -r number python; do
    venv=$work/venv-$number
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check pytest
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-index "$wheel"
    mkdir -p "$work/$number/samples"
    cp "$input" "$work/$number/$input"
    (cd "$work/$number" && PATH=$venv/bin:$PATH "${first[@]}" && test -s "$output")
    "$venv/bin/python" -m pytest -q -p no:cacheprovider packaging/python/tests
    "$venv/bin/python" -m pip uninstall -qy gpuimg
    left=$(find "$venv" -iname '*gpuimg*' -not -name '*.pyc')
    [[ -z $left ]] || wrong "pip uninstall leaves $left"
    echo "wheel: installed, tested and removed by Python $number"
done < <(sed -n '1p;$p' <<< "$found" | uniq)

# The bare Debians, kept between runs.
debian() { # NAME PACKAGE…
    local system=target/$1.tar
    if [[ ! -s $system ]]; then
        command -v mmdebstrap > /dev/null || { apt-get update -qq && apt-get install -qq mmdebstrap; } > /dev/null 2>&1 || true
        mmdebstrap --quiet --format=tar --variant=minbase "${@:2}" bookworm "$system.part" 2> /dev/null || return 1
        mv "$system.part" "$system"
    fi
    rm -rf "$work/root"
    mkdir "$work/root"
    tar -xf "$system" -C "$work/root"
    mkdir -p "$work/root/data/samples"
    cp "$input" "$work/root/data/$input"
}
# Runs a script in it, with neither network nor this machine's environment.
inside() {
    unshare --mount --pid --fork --net chroot "$work/root" /usr/bin/env -i -C /data \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash -euc "$@"
}
files() { (cd "$work/root" && find . -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -print | sort); }
same_bytes() { cmp "$work/root/data/$output" "$work/expected" || wrong "$1: other bytes than from here"; rm "$work/root/data/$output"; }
unchanged() { diff "$work/before" <(files) || wrong "$1: removing it leaves the system changed"; }

tar -xzf "$tarball" -C "$work"
"$work/$(basename "$tarball" .tar.gz)/bin/gpuimg" normalize "$input" "$work/expected" --format "${output##*.}"

if [[ $(id -u) != 0 ]]; then
    skip "the bare Debian: it needs root"
    exit 0
fi
if debian bookworm; then
    files > "$work/before"
    deb=$(ls "$dist"/gpuimg_"$version"_*.deb 2> /dev/null | grep "_$(dpkg --print-architecture)\.deb$") || true
    if [[ -n $deb ]]; then
        cp "$deb" "$work/root/data/gpuimg.deb"
        inside 'dpkg -i /data/gpuimg.deb > /dev/null
            "$@"
            gzip -t /usr/share/man/man1/gpuimg.1.gz /usr/share/man/man1/gpuimg-normalize.1.gz
            grep -q "Eric Biggers" /usr/share/doc/gpuimg/copyright
            bash -n /usr/share/bash-completion/completions/gpuimg
            dpkg --verify gpuimg
            [[ $(gpuimg --version) == "gpuimg $(dpkg-query -f "\${Version}" -W gpuimg)" ]]' bash "${first[@]}"
        same_bytes "$deb"
        inside 'dpkg --purge gpuimg > /dev/null'
        rm "$work/root/data/gpuimg.deb"
        unchanged "$deb"
        echo "deb: installed, run and removed on a bare Debian 12"
    else
        skip "the Debian package: there is none for this machine"
    fi

    cp "$tarball" "$work/root/data/gpuimg.tar.gz"
    inside 'tar -C /usr/local -xzf /data/gpuimg.tar.gz --strip-components=1
        "$@"
        gpuimg --version --verbose
        tar -tzf /data/gpuimg.tar.gz | grep -v "/$" | cut -d/ -f2- | sed "s#^#/usr/local/#" | xargs rm
        rm /data/gpuimg.tar.gz' bash "${first[@]}"
    same_bytes "$tarball"
    # Folders of a tarball stay.
    [[ -z $(find "$work/root/usr/local" -type f) ]] || wrong "$tarball: files are left in /usr/local"
    diff <(grep -v '^\./usr/local' "$work/before") <(files | grep -v '^\./usr/local') || wrong "$tarball: it writes outside its prefix"
    echo "tarball: unpacked, run and removed on a bare Debian 12"
else
    skip "the Debian package and the tarball on a bare Debian: none can be had"
fi
if debian bookworm-python --include=python3-venv; then
    files > "$work/before"
    cp "$wheel" "$work/root/data/"
    inside 'python3 -m venv /opt/v
        PATH=/opt/v/bin:$PATH
        pip install -q --no-index /data/*.whl
        "$@"
        python -c "import gpuimg, sys; assert gpuimg.sum(sys.argv[1])[0][\"sum\"] > 0" "$3"
        pip uninstall -qy gpuimg
        [[ ! -e /opt/v/bin/gpuimg ]]
        rm -r /opt/v /data/*.whl' bash "${first[@]}"
    same_bytes "$wheel"
    unchanged "$wheel"
    echo "wheel: installed, run and removed on a bare Debian 12 with its Python"
else
    skip "the wheel on a bare Debian: none can be had"
fi
