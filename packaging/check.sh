#!/bin/bash
# Installs what packaging/build.sh has built, as users and administrators do, and removes it again: the wheel in clean
# environments of the oldest and the newest Python, with its tests; the Debian package, the tarball and the wheel on a bare
# Debian 12, and the wheel on a bare Debian 13 with its Python 3.13, without network, each with the README's first command.
# Nothing may be left behind. What cannot be had here is skipped loudly; the bare Debians need root and Debian's mmdebstrap.
#
#   packaging/check.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/common.sh
dist=$(realpath "${1:-target/dist}")
export PIP_ROOT_USER_ACTION=ignore
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p target/packaging

machine=$(uname -m)
wheel=$(ls "$dist"/gpuimg-*-cp311-abi3-*linux*_"$machine".whl)
tarball=$(ls "$dist"/gpuimg-*-"$machine"-unknown-linux-gnu.tar.gz)
version=$(basename "$wheel" | cut -d- -f2)

# The first command of the README, with the program that is installed.
first=$(grep -m1 -E '^(cargo run --release -- |gpuimg )normalize ' README.md | sed 's/^cargo run --release -- /gpuimg /')
[[ $first == "gpuimg normalize samples/"* ]] || wrong "the README has no first command: $first"
read -ra first <<< "$first"
input=${first[2]} output=${first[3]}

[[ -e $tools/bin/pip ]] || tools pip || wrong "no environment for tools can be made"
python3 -m pip --version > /dev/null 2>&1 || need a-python-with-pip python3-pip || wrong "python3 has no pip"

# The oldest and the newest Python here that can make environments, but for the one that is used for tools.
pythons() {
    local python
    for python in python3.{11..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python; do
        if "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
            echo "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') $(command -v "$python")"
        fi
    done | sort -V | sort -Vu -k1,1 | { grep -v "^$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') " || true; }
}
found=$(pythons)
# Where there is no other, this one; Debian 13 has another, below.
[[ -n $found ]] || found="$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') $(command -v python3)"
while read -r number python; do
    # As a user may call it.
    venv="$work/vénv of $number"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check pytest numpy
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-index "$wheel"
    for file in man/man1/gpuimg{,-normalize}.1 bash-completion/completions/gpuimg zsh/site-functions/_gpuimg fish/vendor_completions.d/gpuimg.fish; do
        grep -q normalize "$venv/share/$file" || wrong "Python $number: share/$file is not installed"
    done
    [[ $("$venv/bin/gpuimg" --licenses) == *"Eric Biggers"* ]] || wrong "Python $number: --licenses lacks those of libraries"
    mkdir -p "$work/$number/samples"
    cp "$input" "$work/$number/$input"
    (cd "$work/$number" && PATH=$venv/bin:$PATH "${first[@]}" && test -s "$output")
    "$venv/bin/python" -m pytest -q -p no:cacheprovider python/tests
    # Over itself; seen from outside of its environment; for one user; in a folder of its own.
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-index --force-reinstall "$wheel"
    modules=$("$venv/bin/python" -c 'import os, gpuimg; print(os.path.dirname(os.path.dirname(gpuimg.__file__)))')
    for how in "" "--target=$work/$number/a folder" "--user"; do
        export PYTHONUSERBASE="$work/$number/üser"
        case $how in
            "") path=$modules program=$venv/bin/gpuimg ;;
            --target*) path=${how#--target=} program=$path/bin/gpuimg ;;
            --user) path="" program=$PYTHONUSERBASE/bin/gpuimg ;;
        esac
        [[ -z $how ]] || PIP_BREAK_SYSTEM_PACKAGES=1 "$python" -m pip install -q --disable-pip-version-check --no-warn-script-location \
            --no-index "$how" "$wheel"
        printed=$(export PYTHONPATH=$path; "$program" --version; "$python" -m gpuimg --version)
        [[ $printed == "gpuimg $version"$'\n'"gpuimg $version" ]] || wrong "Python $number ${how:-PYTHONPATH}: --version prints '$printed'"
        unset PYTHONUSERBASE
    done
    "$venv/bin/python" -m pip uninstall -qy gpuimg
    left=$(find "$venv" -iname '*gpuimg*' -not -name '*.pyc')
    [[ -z $left ]] || wrong "pip uninstall leaves $left"
    echo "wheel: installed, tested and removed by Python $number"
done < <(sed -n '1p;$p' <<< "$found" | uniq)

# The bare Debians, kept between runs.
debian() { # NAME OPTION… SUITE
    local system=target/$1.tar
    if [[ ! -s $system ]]; then
        need mmdebstrap mmdebstrap || return 1
        mmdebstrap --quiet --format=tar --variant=minbase "${@:2}" "$system.part" 2> "$work/said" ||
            { tail -n 3 "$work/said" >&2; return 1; }
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
if debian bookworm bookworm; then
    files > "$work/before"
    deb=$(ls "$dist"/gpuimg_"$version"_*.deb 2> /dev/null | grep "_$(dpkg --print-architecture)\.deb$") || true
    if [[ -n $deb ]]; then
        if need lintian lintian; then
            lintian --allow-root --fail-on error,warning "$deb"
        else
            skip "Debian's policy: lintian cannot be installed"
        fi
        cp "$deb" "$work/root/data/gpuimg.deb"
        # An older version, with a file that this one has no more.
        dpkg-deb --raw-extract "$deb" "$work/older"
        sed -i "s/^Version: .*/Version: 0.1.0/" "$work/older/DEBIAN/control"
        touch "$work/older/usr/share/doc/gpuimg/only-then"
        dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/older" "$work/root/data/older.deb" > /dev/null
        inside 'dpkg -i /data/older.deb > /dev/null
            [[ -e /usr/share/doc/gpuimg/only-then ]]
            dpkg -i /data/gpuimg.deb > /dev/null
            [[ ! -e /usr/share/doc/gpuimg/only-then ]]
            rm /data/older.deb
            "$@"
            # By somebody without a name or a folder, with and without the GPU that is not there.
            somebody() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$@"; }
            somebody gpuimg normalize "$3" - --format png | cmp - "$4"
            status=0
            somebody gpuimg normalize --device gpu "$3" - --format png > /dev/null 2> /tmp/said || status=$?
            [[ $status == 3 ]] && grep -q libcuda /tmp/said || { cat /tmp/said; exit 1; }
            rm /tmp/said
            somebody gpuimg doctor > /dev/null
            gzip -t /usr/share/man/man1/gpuimg.1.gz /usr/share/man/man1/gpuimg-normalize.1.gz
            grep -q "Eric Biggers" /usr/share/doc/gpuimg/licenses.txt
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
for system in "bookworm 12 3.11" "trixie 13 3.13"; do
    read -r suite release number <<< "$system"
    if ! debian "$suite-python" --include=python3-venv "$suite"; then
        skip "the wheel on a bare Debian $release: none can be had"
        continue
    fi
    files > "$work/before"
    cp "$wheel" "$work/root/data/"
    mkdir -p "$work"/root/data/source/{python,docs}
    cp -r python/{tests,examples} "$work/root/data/source/python/"
    cp -r docs/guide "$work/root/data/source/docs/"
    cp -r samples "$work/root/data/source/"
    # There is no network inside.
    "$tools/bin/pip" download -q --disable-pip-version-check --dest "$work/root/data/tools" --only-binary=:all: --python-version "$number" \
        pytest numpy ||
        { rm -rf "$work/root/data/tools"; skip "the module's tests on a bare Debian $release: pytest and NumPy cannot be had"; }
    inside 'python3 -m venv /opt/v
        (
            PATH=/opt/v/bin:$PATH
            pip install -q --no-index /data/*.whl
            "$@"
            python -c "import gpuimg, sys; assert gpuimg.sum(gpuimg.read(sys.argv[1])).sum > 0" "$3"
            if [[ -d /data/tools ]]; then
                pip install -q --no-index --find-links /data/tools pytest numpy
                pytest -q -p no:cacheprovider /data/source/python/tests
            fi
            pip uninstall -qy gpuimg
        )
        # By somebody without a name or a folder.
        [[ -e /opt/v/bin/gpuimg ]] && exit 1
        /opt/v/bin/pip install -q --no-index /data/*.whl
        setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent /opt/v/bin/python -m gpuimg normalize "$3" - --format png | cmp - "$4"
        rm -rf /opt/v /data/*.whl /data/source /data/tools /tmp/pytest-of-root' bash "${first[@]}"
    same_bytes "$wheel"
    unchanged "$wheel"
    echo "wheel: installed, tested, run and removed on a bare Debian $release with Python $(inside 'python3 --version' | cut -d' ' -f2)"
done
