# Sourced by the scripts of this folder.

# Says what is not done here, and why. With GPUIMG_STRICT=1, as for a release, that is an error.
skip() {
    echo "SKIPPED $*" >&2
    [[ -z ${GPUIMG_STRICT:-} ]] || { echo "GPUIMG_STRICT is set: nothing may be skipped" >&2; exit 1; }
}

wrong() { echo "WRONG: $*" >&2; exit 1; }

# Debian's packages for a command that is missing; fails, and says why, where they cannot be had.
need() { # COMMAND PACKAGE…
    ! command -v "$1" > /dev/null || return 0
    [[ $(id -u) == 0 ]] || { echo "$1 is missing, and only root can install ${*:2}" >&2; return 1; }
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${@:2}"; } > /dev/null ||
        { echo "$1 is missing, and apt-get cannot install ${*:2}" >&2; return 1; }
}

# An environment of Python for tools, made of python3.
tools=target/packaging/tools
tools() { # REQUIREMENT…
    if [[ ! -e $tools/bin/pip ]]; then
        python3 -c 'import ensurepip' 2> /dev/null || need a-python-with-ensurepip python3-venv || return 1
        python3 -m venv "$tools" || return 1
    fi
    "$tools/bin/pip" install -q --disable-pip-version-check "$@" || { echo "pip cannot install $*" >&2; return 1; }
}
