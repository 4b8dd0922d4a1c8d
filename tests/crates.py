#!/usr/bin/env python3
"""packaging/crates.py finds what it is to find: versions against requirements, and an advisory about a crate of Cargo.lock."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("crates", ROOT / "packaging/crates.py")
crates = importlib.util.module_from_spec(spec)
spec.loader.exec_module(crates)

for version, requirement, expected in [
    ("1.2.3", ">= 1.2.3", True),
    ("1.2.3", "> 1.2.3", False),
    ("1.10.0", ">= 1.9", True),
    ("1.10.0", "< 1.9.9", False),
    ("0.7.5", ">= 0.7.4, < 0.8.0", True),
    ("0.8.0", ">= 0.7.4, < 0.8.0", False),
    ("1.9.0", "^1.2", True),
    ("2.0.0", "^1.2", False),
    ("0.3.9", "^0.3.1", True),
    ("0.4.0", "^0.3.1", False),
    ("1.2.9", "~1.2.3", True),
    ("1.3.0", "~1.2.3", False),
    ("1.5.0", "1.2", True),
    ("2.1.2+zstd.1.5.7", "<= 2.1.2", True),
    ("1.2.3", "=1.2.3", True),
]:
    assert crates.satisfies(version, requirement) == expected, (version, requirement)


def checked(*advisories):
    """What the check says of a database with these: crate, what is said of it, and its versions."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (crate, about, versions) in enumerate(advisories):
            path = pathlib.Path(folder, "crates", crate, f"RUSTSEC-2099-{number:04}.md")
            path.parent.mkdir(parents=True, exist_ok=True)
            fields = f'id = "{path.stem}"\npackage = "{crate}"\ndate = "2099-01-01"\n{about}'
            path.write_text(f"```toml\n[advisory]\n{fields}\n[versions]\n{versions}\n```\n\n# A trial\n")
        crates.ADVISORIES = pathlib.Path(folder, "advisories.toml")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            crates.write_advisories(folder)
            try:
                crates.check()
            except SystemExit as stopped:
                return str(stopped)
        return said.getvalue()


found = checked(("zstd", "", 'patched = [">= 99"]'), ("anyhow", "", "patched = []"), ("no-such-crate", "", "patched = []"))
assert "zstd" in found and "RUSTSEC-2099-0000" in found and "anyhow" in found and "no-such" not in found, found
fine = checked(
    ("zstd", "", 'patched = [">= 0.0.1"]'),
    ("png", "", 'patched = []\nunaffected = ["< 99"]'),
    ("image", 'withdrawn = "2099-02-01"', "patched = []"),
    ("rayon", 'informational = "unmaintained"', "patched = []"),
)
assert "2 advisories up to 2099-01-01" in fine, fine
print("crates: 15 requirements, and of 7 advisories the 2 that apply")
