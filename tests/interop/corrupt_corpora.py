"""Every image in the test data of five image libraries, the damaged ones too, through gpuimg.

Needs numpy, tifffile, imagecodecs, and apt-get on Debian. Usage:
    python tests/interop/corrupt_corpora.py path/to/gpuimg [folder to keep the sources in]
Fetches the Debian sources of libspng, libpng, Pillow, libtiff and libgd and PyPI's Pillow by their
package names; transposes and normalizes every PNG, TIFF and PNM in them (told by name or content)
with 4 GiB of memory and 30 s each; and judges: crash, hang, partial output (a file left behind by a
failure), wrong (accepted with other pixels than libpng or tifffile read), silent (refused without
a sentence), alone (accepted where the other reader refuses), refused, right, unjudged. Fails if any
of the first five is not 0.
"""
import collections
import pathlib
import re
import resource
import subprocess
import sys
import tarfile
import tempfile

import imagecodecs
import numpy as np
import tifffile

DEBIAN = ("libspng", "libpng1.6", "pillow", "tiff", "libgd2")
gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()).resolve()
results = folder / "results"


def fetch():
    """Sources by package name, unpacked; apt's own lists are left alone."""
    apt = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (apt / part).mkdir(parents=True, exist_ok=True)
    # The places that the system has its packages from, asked for sources.
    (apt / "parts").mkdir(exist_ok=True)
    places = pathlib.Path("/etc/apt")
    for known in [places / "sources.list", *places.glob("sources.list.d/*")]:
        if known.suffix in (".list", ".sources") and known.exists():
            text = re.sub(r"^Types: .*$|^deb(?= )", lambda m: "Types: deb-src" if ":" in m[0] else "deb-src",
                          known.read_text(), flags=re.M)
            (apt / "parts" / known.name).write_text(text)
    options = ["-oDir::Etc::sourcelist=-", f"-oDir::Etc::sourceparts={apt}/parts",
               f"-oDir::State::lists={apt}/lists", f"-oDir::Cache={apt}/cache"]
    quiet = dict(cwd=folder, check=True, capture_output=True)
    subprocess.run(["apt-get", *options, "update"], **quiet)
    # A mirror may lack Debian's newest patches, whose absence apt calls a failure; only the originals are wanted.
    got = subprocess.run(["apt-get", *options, "source", "--download-only", *DEBIAN], cwd=folder, capture_output=True, text=True)
    if absent := [name for name in DEBIAN if not list(folder.glob(f"{name}_*.orig.tar.*"))]:
        sys.exit(f"no sources of {', '.join(absent)}: {got.stderr.strip()}")
    # Pillow's metadata want its build tools.
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "install", "-q", "setuptools>=77", "pybind11"], **quiet)
    subprocess.run([*pip, "download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "pillow"], **quiet)
    for archive in sorted(folder.glob("*.tar.*")):
        if ".debian." not in archive.name:
            with tarfile.open(archive) as tar:
                tar.extractall(folder / "sources" / archive.name, filter="data")


def kind(path):
    with open(path, "rb") as file:
        head = file.read(8)
    if head[:4] == b"\x89PNG" or path.suffix.lower() == ".png":
        return "png"
    if head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+") or path.suffix.lower() in (".tif", ".tiff"):
        return "tiff"
    if head[:2] in (b"P5", b"P6") or path.suffix.lower() in (".pgm", ".ppm", ".pnm"):
        return "pnm"
    return None


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def plain(path):
    """The pages of an uncompressed TIFF that we wrote, or of another, as tifffile reads them."""
    with tifffile.TiffFile(path) as file:
        pages = []
        for page in file.pages:
            if page.subfiletype & 5 and len(file.pages) > 1:
                continue
            array = page.asarray()
            if page.bitspersample < 8:
                array = array.astype(np.uint8) * (255 // ((1 << page.bitspersample) - 1))
            if page.planarconfig == 2 and page.samplesperpixel > 1:
                array = np.moveaxis(array, 0, -1)
            pages.append(array)
        return pages


def pnm(path):
    data = path.read_bytes()
    fields, at = [], 2
    while len(fields) < 3:
        while data[at : at + 1].isspace() or data[at : at + 1] == b"#":
            at = data.index(b"\n", at) + 1 if data[at : at + 1] == b"#" else at + 1
        end = at
        while data[end : end + 1].isdigit():
            end += 1
        fields.append(int(data[at:end]))
        at = end
    width, height, maxval = fields
    dtype, channels = (">u2" if maxval > 255 else "u1"), 3 if data[:2] == b"P6" else 1
    array = np.frombuffer(data, dtype, width * height * channels, at + 1).reshape(height, width, channels)
    return [array.astype(array.dtype.newbyteorder("="))]


def other(path, kind):
    if kind == "png":
        return [imagecodecs.png_decode(path.read_bytes())]
    return pnm(path) if kind == "pnm" else plain(path)


def same(ours, theirs):
    flat = lambda page: page.reshape(*page.shape[:2], -1)
    return len(ours) == len(theirs) and all(
        a.dtype == b.dtype and np.array_equal(flat(a), flat(b).swapaxes(0, 1)) for a, b in zip(ours, theirs)
    )


def judge(path, kind, verb):
    out = results / "out.tif"
    out.unlink(missing_ok=True)
    command = [gpuimg, verb, "--device", "cpu", path, out]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "hang", ""
    said = done.stderr.strip()
    left = [file for file in results.iterdir() if file != out]
    if done.returncode not in (0, 1):
        return "crash", said
    if left or (done.returncode and out.exists()):
        return "partial", said
    if done.returncode:
        return ("refused", said) if said.startswith("gpuimg: ") else ("silent", said)
    try:
        theirs = other(path, kind)
    except Exception as error:
        return "alone", f"{type(error).__name__}: {error}"
    if verb == "normalize":
        return "right", ""
    try:
        return ("right", "") if same(plain(out), theirs) else ("wrong", str([page.shape for page in theirs]))
    except Exception as error:
        return "unjudged", str(error)


if not (folder / "sources").exists():
    fetch()
results.mkdir(exist_ok=True)
verdicts = collections.defaultdict(collections.Counter)
for path in sorted((folder / "sources").rglob("*")):
    if not path.is_file() or path.is_symlink() or not (what := kind(path)):
        continue
    package = path.relative_to(folder / "sources").parts[0].split(".orig")[0].removesuffix(".tar.gz")
    for verb in ("transpose", "normalize"):
        verdict, why = judge(path, what, verb)
        verdicts[package, verb][verdict] += 1
        if verdict in ("crash", "hang", "partial", "wrong", "silent", "unjudged") or verdict == "alone" and verb == "transpose":
            print(f"{verdict:8} {verb:9} {path.relative_to(folder / 'sources')}: {why[:150]}", flush=True)
        if verdict == "refused" and verb == "transpose":
            print(f"{verdict:8} {verb:9} {path.relative_to(folder / 'sources')}: {why.split(': ', 2)[-1][:120]}", flush=True)
names = ("right", "refused", "alone", "unjudged", "silent", "wrong", "partial", "hang", "crash")
print(f"\n{'':38}" + "".join(f"{name:>9}" for name in names))
total = collections.Counter()
for (package, verb), found in sorted(verdicts.items()):
    total.update(found)
    print(f"{package[:27]:27} {verb:10}" + "".join(f"{found[name]:9}" for name in names))
print(f"{'all':38}" + "".join(f"{total[name]:9}" for name in names))
sys.exit(any(total[name] for name in ("crash", "hang", "partial", "wrong", "silent")))
