#!/usr/bin/env python3
"""The crates that gpuimg and its Python module are made of: their licences, and the bill of materials.

  packaging/crates.py licenses           write packaging/licenses.txt, which `gpuimg --licenses` prints, and python/licenses.txt,
                                         which is in the wheel of the Python module
  packaging/crates.py licenses --check   fail if they are not what Cargo.lock and python/Cargo.lock ask for
  packaging/crates.py check              fail at a licence or source that deny.toml does not allow, at a crate that needs a newer
                                         Rust, and at a vulnerability that packaging/advisories.toml knows
  packaging/crates.py advisories FOLDER  write packaging/advisories.toml, of a clone of RustSec's database
  packaging/crates.py yanked             fail at a crate of Cargo.lock that its author has withdrawn; 77 without a registry
  packaging/crates.py sbom FILE          write a bill of materials (CycloneDX 1.5, JSON)

Python 3.11 and cargo; nothing is fetched but what cargo itself needs.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The workspaces, by the folder of their Cargo.toml, and the licence texts of each.
TEXTS = {"": ROOT / "packaging/licenses.txt", "python": ROOT / "python/licenses.txt"}
# The project's own crates.
OWN = ("gpuimg", "gpuimg-python")
ADVISORIES = ROOT / "packaging/advisories.toml"
DENY = tomllib.loads((ROOT / "deny.toml").read_text())
CARGO = os.environ.get("CARGO", "cargo")
ALLOWED = DENY["licenses"]["allow"]
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]

# How the files of a licence are called when a crate has several, and words by which its text is known.
LICENSES = {
    "MIT": ("LICENSE-MIT", "Permission is hereby granted, free of charge"),
    "ISC": ("LICENSE-ISC", "Permission to use, copy, modify"),
    "Zlib": ("LICENSE-ZLIB", "This software is provided 'as-is'"),
    "BSD-2-Clause": ("LICENSE-BSD", "Redistribution and use in source and binary forms"),
    "BSD-3-Clause": ("LICENSE-BSD", "Neither the name"),
    "0BSD": ("LICENSE-0BSD", "Permission to use, copy, modify"),
    "Unicode-3.0": ("LICENSE-UNICODE", "UNICODE LICENSE V3"),
    "Apache-2.0": ("LICENSE-APACHE", "Apache License"),
    "Unlicense": ("UNLICENSE", "released into the public domain"),
    "CC0-1.0": ("LICENSE-CC0", "Creative Commons CC0 1.0 Universal"),
    "IJG": ("LICENSE-IJG", "The authors make NO WARRANTY"),
}
# What is compiled in from a folder of its own inside a crate.
WITHIN = {
    "dicom-toolkit-jpeg2000": ["assets/LICENSE.txt"],
    "libdeflate-sys": ["libdeflate/COPYING"],
    "regex-syntax": ["src/unicode_tables/LICENSE-UNICODE"],
    "zstd-sys": ["zstd/LICENSE"],
}
# Crates without a text of their own, and the crate of the same project and licence that has it.
OF_PROJECT = {"alloc-stdlib": "alloc-no-stdlib", "pulp-wasm-simd-flag": "pulp", "zune-inflate": "zune-core"}
# Crates without a text of the licence that would be chosen: another of theirs, and the crate that has its text. That of the
# Apache licence names no holder, so it is the same for all.
INSTEAD = {
    "brotli-decompressor": ("BSD-3-Clause", "brotli-decompressor"),
    "hdf5-core": ("Apache-2.0", "anyhow"),
    "hdf5-reader": ("Apache-2.0", "anyhow"),
}
# The other of two licences to choose from, for a folder named above.
NOT_CHOSEN = {"zstd-sys": ["zstd/COPYING"]}
# What is not compiled in: a Python package in the crate's repository, and locks for programs without the standard library.
NOT_COMPILED = {
    "pyo3": ["pyo3-runtime/LICENSE-APACHE", "pyo3-runtime/LICENSE-MIT"],
    "tracing-core": ["src/spin/LICENSE"],
}


def stop(sentence):
    sys.exit(f"packaging/crates.py: {sentence}")


def cargo(*args):
    run = subprocess.run([CARGO, *args], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        stop(f"cargo {args[0]} failed: {run.stderr.strip()}")
    return run.stdout


def manifest(workspace):
    return str(ROOT / workspace / "Cargo.toml")


def packages(workspace=""):
    """Every crate of a Cargo.lock, by (name, version)."""
    metadata = json.loads(cargo("metadata", "--locked", "--format-version=1", "--all-features", "--manifest-path", manifest(workspace)))
    return {(package["name"], package["version"]): package for package in metadata["packages"]}


def linked(workspace=""):
    """What is linked into the program or the module for any of TARGETS, sorted: (name, version), without gpuimg itself."""
    found = set()
    for target in TARGETS:
        lines = cargo(
            "tree", "--locked", "--edges=normal,no-proc-macro", "--target", target, "--prefix=none", "--format={p}",
            "--manifest-path", manifest(workspace),
        )
        for line in lines.split("\n"):
            if line:
                name, version = line.split()[:2]
                found.add((name, version.removeprefix("v")))
    return sorted(crate for crate in found if crate[0] not in OWN)


def chosen(expression):
    """The licences under which something is taken, of an SPDX expression; None if one is not allowed."""
    # Cargo still takes `/` for OR.
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def peek():
        return tokens[position] if position < len(tokens) else None

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def one():
        if peek() == "(":
            take()
            inner = either()
            take()
            return inner
        name = take()
        if peek() == "WITH":
            take()
            name += " WITH " + take()
        return [name] if name in ALLOWED else None

    def all_of():
        parts = [one()]
        while peek() == "AND":
            take()
            parts.append(one())
        return None if None in parts else sorted({name for part in parts for name in part})

    def either():
        choices = [all_of()]
        while peek() == "OR":
            take()
            choices.append(all_of())
        choices = [choice for choice in choices if choice]
        return min(choices, key=lambda names: max(ALLOWED.index(name) for name in names), default=None)

    result = either()
    return None if position != len(tokens) else result


def text_of(package, license):
    """The text of one licence in a crate."""
    folder = Path(package["manifest_path"]).parent
    prefix, known_by = LICENSES[license]
    files = sorted(path for path in folder.iterdir() if path.name.upper().startswith(prefix))
    if not files:
        files = sorted(path for path in folder.iterdir() if path.name.upper().split(".")[0] in ("LICENSE", "LICENCE", "COPYING"))
    matching = [text for text in map(read, files) if known_by in " ".join(text.split())]
    if not matching:
        stop(f"{package['name']} {package['version']} has no text of its licence {license}: add where it is to this script")
    return matching[0]


def texts_of(package):
    """The licence texts of a crate, of the licences chosen and of what it holds in folders."""
    name, folder = package["name"], Path(package["manifest_path"]).parent
    who = f"{name} {package['version']}"
    licenses = chosen(package["license"] or "") or stop(f"{who} is under {package['license']!r}, which deny.toml does not allow")
    for license in licenses:
        yield text_of(package, license)
    expected = WITHIN.get(name, []) + NOT_CHOSEN.get(name, []) + NOT_COMPILED.get(name, [])
    for path in sorted(folder.rglob("*")):
        inner = str(path.relative_to(folder))
        if "/" in inner and re.match(r"(licen[cs]e|copying|notice)", path.name, re.I) and path.is_file() and inner not in expected:
            stop(f"{who} has a licence in a folder, {inner}: say in this script whether it is compiled in")
    for inner in WITHIN.get(name, []):
        yield read(folder / inner)


def read(path):
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def licenses_text(workspace):
    known = packages(workspace)
    sharing = {}
    for crate in linked(workspace):
        license, other = INSTEAD.get(crate[0], (None, OF_PROJECT.get(crate[0])))
        holder = known[next((package for package in known if package[0] == other), crate)]
        for text in [text_of(holder, license)] if license else texts_of(holder):
            # Copies that differ in their line breaks only are one text.
            sharing.setdefault(" ".join(text.split()), (text, []))[1].append(" ".join(crate))
    own = (ROOT / "LICENSE").read_text().strip()
    parts = [
        "gpuimg, and the Rust libraries that are compiled into it with the C libraries libdeflate and zstd, each under\n"
        "the licence given here; where a library offers several, under one of them. The Rust standard library, by the\n"
        "Rust project's contributors, is compiled in too, under the MIT licence.\n",
        section(["gpuimg"], own),
    ]
    for text, crates in sorted(sharing.values(), key=lambda entry: entry[1]):
        parts.append(section(crates, text))
    return "\n".join(parts)


def section(names, text):
    line, lines = "", []
    for name in dict.fromkeys(names):
        if line and len(line) + len(name) > 100:
            lines.append(line + ",")
            line = ""
        line = f"{line}, {name}" if line else name
    lines.append(line)
    return "=" * 80 + "\n" + "\n".join(lines) + "\n" + "-" * 80 + f"\n{text}\n"


def write_licenses(check):
    for workspace, path in TEXTS.items():
        text = licenses_text(workspace)
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stop(f"{path.relative_to(ROOT)} is not that of {Path(workspace, 'Cargo.lock')}: run packaging/crates.py licenses")


def check():
    known = {}
    for workspace in TEXTS:
        known |= packages(workspace)
    wrong = []
    (oldest,) = (rust(package) for (name, _), package in known.items() if name == "gpuimg")
    for (name, version), package in sorted(known.items()):
        if name in OWN:
            continue
        if not chosen(package["license"] or ""):
            wrong.append(f"{name} {version}: licence {package['license']}")
        if not (package["source"] or "").startswith("registry+"):
            wrong.append(f"{name} {version}: source {package['source']}")
        if rust(package) > oldest:
            wrong.append(f"{name} {version}: Rust {package['rust_version']}, later than rust-version in Cargo.toml")
    advisories = tomllib.loads(ADVISORIES.read_text())
    for advisory in advisories["advisory"]:
        for name, version in known:
            if name == advisory["crate"] and advisory["id"] not in DENY["advisories"].get("ignore", []):
                if not any(satisfies(version, requirement) for requirement in advisory["safe"]):
                    wrong.append(f"{name} {version}: {advisory['id']}, safe are {advisory['safe'] or 'no versions'}")
    if wrong:
        stop("not allowed by deny.toml or Cargo.toml:\n  " + "\n  ".join(wrong))
    print(f"{len(known) - len(OWN)} crates, all features and targets: every licence, source and minimum Rust is allowed")
    print(f"none is of a version of which one of {len(advisories['advisory'])} advisories up to {advisories['newest']} warns")


def rust(package):
    """The oldest Rust that a crate compiles with, as far as it says: (1, 89, 0)."""
    numbers = [int(number) for number in (package["rust_version"] or "0").split(".")]
    return (*numbers, 0, 0)[:3]


def satisfies(version, requirement):
    """Whether a version meets a requirement such as `>= 0.7.4, < 0.8.0`, or `^1.2`, by its three numbers."""

    def numbers(text):
        return [int(number) for number in re.split(r"[-+]", text)[0].split(".")]

    this = numbers(version)
    for part in requirement.split(","):
        comparison, bound = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~|)\s*([0-9][^\s]*)\s*", part).groups()
        given = numbers(bound)
        least = (given + [0, 0])[:3]
        if comparison in ("^", "~", ""):
            # What may not change: up to the first number that is not 0, or all but the last.
            leading = next((i for i, number in enumerate(given) if number), len(given) - 1) + 1
            keep = leading if comparison != "~" else min(len(given), 2)
            meets = this >= least and this[:keep] == least[:keep]
        else:
            meets = {">=": this >= least, "<=": this <= least, ">": this > least, "<": this < least, "=": this == least}[comparison]
        if not meets:
            return False
    return True


def write_advisories(folder):
    """Every advisory about a crate of Cargo.lock or python/Cargo.lock, but for those that are withdrawn, or warn of no fault."""
    found, newest = [], ""
    names = {name for workspace in TEXTS for name, _ in packages(workspace)}
    for path in sorted(Path(folder).glob("crates/*/RUSTSEC-*.md")):
        advisory = tomllib.loads(re.search(r"```toml\n(.*?)```", path.read_text(encoding="utf-8"), re.S)[1])
        about, versions = advisory["advisory"], advisory.get("versions", {})
        newest = max(newest, str(about["date"]))
        if about["package"] in names and "withdrawn" not in about and about.get("informational") not in ("notice", "unmaintained"):
            found.append((about["id"], about["package"], versions.get("patched", []) + versions.get("unaffected", [])))
    if not newest:
        stop(f"{folder} is no clone of RustSec's database")
    lines = [
        "# What RustSec's database (https://rustsec.org) has about crates of Cargo.lock: versions that are mended, or never had the fault.",
        "# `packaging/advisories.sh` writes it anew; `packaging/crates.py check` compares it with Cargo.lock, without a network.",
        "",
        "# The day of the newest advisory that was seen: later ones are not known here.",
        f'newest = "{newest}"',
    ]
    for identity, name, safe in sorted(found):
        lines += ["", "[[advisory]]", f'id = "{identity}"', f'crate = "{name}"', f"safe = {json.dumps(safe)}"]
    ADVISORIES.write_text("\n".join(lines) + "\n")
    print(f"{len(found)} advisories about crates of Cargo.lock; the newest seen is of {newest}")


def yanked():
    """Cargo says it itself, when it makes a package of the source."""
    with tempfile.TemporaryDirectory() as folder:
        command = [CARGO, "package", "--locked", "--no-verify", "--allow-dirty", "--target-dir", folder]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r"^warning: package `(.*?)` in Cargo.lock is yanked", run.stderr, re.M)
    if run.returncode or "Updating" not in run.stderr:
        print(run.stderr.strip(), file=sys.stderr)
        sys.exit(77)
    if found:
        stop("these are yanked: " + ", ".join(found))
    print("no crate of Cargo.lock is yanked")


def sbom(path):
    known = packages()
    checksums = {}
    for entry in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
        checksums[entry["name"], entry["version"]] = entry.get("checksum")
    (own,) = (package for (name, _), package in known.items() if name == "gpuimg")

    def component(package, kind):
        url = f"pkg:cargo/{package['name']}@{package['version']}"
        entry = {"type": kind, "bom-ref": url, "name": package["name"], "version": package["version"], "purl": url}
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return entry

    crates = linked()
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(own, "application")},
        "components": [component(known[crate], "library") for crate in crates],
    }
    Path(path).write_text(json.dumps(bill, indent=1) + "\n")
    print(f"{path}: {len(crates)} crates linked into gpuimg {own['version']}")


def main():
    match sys.argv[1:]:
        case ["licenses"]:
            write_licenses(check=False)
        case ["licenses", "--check"]:
            write_licenses(check=True)
        case ["check"]:
            check()
        case ["advisories", folder]:
            write_advisories(folder)
        case ["yanked"]:
            yanked()
        case ["sbom", path]:
            sbom(path)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
