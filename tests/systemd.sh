#!/bin/bash
# Checks samples/systemd with systemd's own checker: tests/systemd.sh [GPUIMG]. Without systemd it says loudly
# that it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${1:-target/release/gpuimg}")
if ! command -v systemd-analyze > /dev/null; then
    echo "SKIPPED the systemd unit: no systemd-analyze here" >&2
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The program lies elsewhere here.
sed "s#^ExecStart=/usr/local/bin/gpuimg#ExecStart=$program#" samples/systemd/gpuimg-watch@.service > "$folder/gpuimg-watch@.service"
told=$(systemd-analyze verify "$folder/gpuimg-watch@.service" 2>&1) || { echo "$told" >&2; exit 1; }
# A misspelt field is only warned of.
[[ -z $told ]] || { echo "$told" >&2; exit 1; }
sed -i 's/^UMask/Umask/' "$folder/gpuimg-watch@.service"
wrong=$(systemd-analyze verify "$folder/gpuimg-watch@.service" 2>&1 || true)
[[ $wrong == *Umask* ]] || { echo "a misspelt field is taken" >&2; exit 1; }
# Its options are the program's.
read -ra options <<< "$(sed -n 's/^ExecStart=[^ ]* normalize [^ ]* [^ ]*//p' samples/systemd/gpuimg-watch@.service)"
mkdir "$folder/in"
"$program" normalize -q "$folder/in" "$folder/out" "${options[@]}" --idle 0
echo "systemd: the unit is valid, and its command is taken"
