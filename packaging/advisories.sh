#!/bin/bash
# Writes packaging/advisories.toml anew from RustSec's database, a Git repository at GitHub, and fails at a crate of Cargo.lock with
# a known vulnerability, and where the database cannot be had. ADVISORY_DB names a clone of it, for a machine that reaches none.
#
#   packaging/advisories.sh
set -euo pipefail
cd "$(dirname "$0")/.."
database=${ADVISORY_DB:-target/packaging/advisory-db}
if [[ -z ${ADVISORY_DB:-} ]]; then
    rm -rf "$database"
    GIT_TERMINAL_PROMPT=0 git clone --quiet --depth 1 https://github.com/rustsec/advisory-db "$database" ||
        { echo "NOT KNOWN whether a crate has a vulnerability: RustSec's database cannot be fetched; ADVISORY_DB may name a clone" >&2; exit 1; }
fi
packaging/crates.py advisories "$database"
packaging/crates.py check
git diff --quiet packaging/advisories.toml || echo "packaging/advisories.toml is newer than what is committed: commit it" >&2
