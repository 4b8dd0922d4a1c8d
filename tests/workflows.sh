#!/bin/bash
# The Snakefile of samples/workflows by Snakemake, the tasks of its main.nf without Nextflow, and the module file of
# samples/modules by Environment Modules or Lmod; and the workflow that publishes a release, by its schema and by the steps that need
# no other host. Each tool is installed where it can be, or skipped loudly.
#
#   tests/workflows.sh [GPUIMG]
set -euo pipefail
cd "$(dirname "$0")/.."
gpuimg=$(realpath "${1:-target/release/gpuimg}")
skip() { echo "SKIPPED $*" >&2; }
wrong() { echo "WRONG: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

release=.github/workflows/release.yml
for script in $(grep -oE '(packaging|tests)/[a-z_]+\.sh' "$release"); do
    [[ -x $script ]] || wrong "$release: there is no $script"
done
same_version=$(grep -o 'grep -qx .* Cargo.toml' "$release")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p;T;q' Cargo.toml)
GITHUB_REF_NAME=v$version bash -c "$same_version" || wrong "$release: the tag v$version is refused"
! GITHUB_REF_NAME=v$version.1 bash -c "$same_version" || wrong "$release: a tag of another version is accepted"

venv=target/snakemake-venv
if { [[ -e $venv/bin/python ]] || python3 -m venv "$venv"; } &&
    "$venv/bin/python" -m pip install -q snakemake==9.27.1 check-jsonschema==0.39.0; then
    "$venv/bin/check-jsonschema" --builtin-schema vendor.github-workflows "$release" > /dev/null || wrong "$release: not a workflow"
    mkdir "$work/in put"
    for i in $(seq 20); do
        { printf 'P5\n8 6\n65535\n'; head -c 96 /dev/urandom | tr '\000-\377' "\\000-\\$(printf %o $((100 + 5 * i)))"; } \
            > "$work/in put/$i.pgm"
    done
    snake() { # STATUS OPTION…
        local status=0
        "$venv/bin/snakemake" -s samples/workflows/Snakefile --directory "$work" --cores 2 --keep-going --quiet all \
            --config gpuimg="$gpuimg" input="$work/in put" output="$work/out" "${@:2}" > "$work/log" 2>&1 || status=$?
        [[ $status == "$1" ]] || { cat "$work/log"; wrong "Snakemake ends with $status instead of $1"; }
    }
    same() { diff -r -x '.*' "$work/one" "$work/out" || wrong "Snakemake: other results than one machine's"; }

    snake 0 parts=3 --dry-run
    [[ ! -e $work/out/.range ]] || wrong "a dry run writes"
    "$gpuimg" normalize -q --across "$work/in put" "$work/one"
    snake 0 parts=3
    same
    # A smaller set with a bad image, and in other parts: all the rest is done, and the status tells.
    printf 'P5\n8 6\n65535\nshort' > "$work/in put/bad.pgm"
    rm -r "$work"/{"in put",out}/20.pgm "$work/one"
    "$gpuimg" normalize -q --across --exclude bad.pgm "$work/in put" "$work/one"
    snake 1 parts=2
    same
    # Another cause of failure is not passed over.
    rm "$work/in put/bad.pgm"
    rm -r "$work/out"
    printf 'P5\n1 1\n255\nx' > "$work/in put/bytes.pgm"
    snake 1 parts=1
    [[ ! -e $work/out/.range/of-1/all.hist ]] || wrong "images of two kinds have a range"
    echo "Snakemake: 3 parts, 2 parts with a bad image, the same bytes as one machine's"
else
    skip "the Snakefile: snakemake cannot be installed"
fi

tests/nextflow.py "$gpuimg"

# The program where the module file says it is, under a root of its own.
lmod=/usr/share/lmod/lmod/libexec/lmod
installed() { compgen -G '/usr/lib/*/modulecmd.tcl' || ls /usr/share/modules/libexec/modulecmd.tcl "$lmod"; } 2> /dev/null
# Debian has both, but not on one machine.
if [[ -z $(installed) && $(id -u) == 0 ]]; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq environment-modules; } > /dev/null 2>&1 || true
fi
[[ -n $(installed) ]] || { skip "the module file: neither Environment Modules nor Lmod can be installed"; exit 0; }
version=$("$gpuimg" --version | cut -d' ' -f2)
mkdir -p "$work/modules" "$work/opt/gpuimg/$version/bin"
cp "$gpuimg" "$work/opt/gpuimg/$version/bin/gpuimg"
cp -r samples/modules/gpuimg "$work/modules/"
[[ -e $work/modules/gpuimg/$version ]] || wrong "no module file for $version"
sed -i "s#^set root /opt#set root $work/opt#" "$work/modules/gpuimg/$version"
for command in $(installed); do
    found=$(MODULEPATH=$work/modules bash -c 'eval "$("$1" bash load gpuimg)"; echo "$GPUIMG"; gpuimg --version' bash "$command")
    [[ $found == "$work/opt/gpuimg/$version/bin/gpuimg"$'\n'"gpuimg $version" ]] || wrong "$command: $found"
    echo "module load gpuimg/$version by $command"
done
