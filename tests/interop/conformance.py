"""The test files of other projects through gpuimg, compared with an independent reader and with what was known.

    tests/interop/conformance.py GPUIMG [--folder KEPT] [--accept]

Fetches the sources of the packages in PACKAGES by name and version from PyPI, sends every image in them through
`transpose` and `normalize`, and gives each file a status:

    right     gpuimg's samples are those of the independent reader
    refused   gpuimg refuses it, in a sentence, which is a part of the status
    alone     gpuimg reads it, and the other reader does not
    lossy     JPEG or WebP, whose decoders differ: shapes agree, and samples by at most 4
    differs   shape, depth or samples are others; or crash, hang, partial (a file left by a failure), silent (no sentence)

The statuses are compared with conformance.tsv beside this script: a file whose status is another fails, and so does a new
one that differs. Where gpuimg has become better, `--accept` writes the table anew. For once a week, not for every commit:
needs the packages of requirements.txt, the network, and some minutes.
"""
import argparse
import collections
import pathlib
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import imagecodecs
import numpy as np
import tifffile
from PIL import Image

PACKAGES = ("pillow==11.3.0",)
KINDS = {".png": "png", ".tif": "tiff", ".tiff": "tiff", ".pgm": "pnm", ".ppm": "pnm", ".pnm": "pnm", ".pbm": "pnm", ".pam": "pam",
         ".gif": "gif", ".bmp": "bmp", ".tga": "tga", ".qoi": "qoi", ".webp": "webp", ".jpg": "jpeg", ".jpeg": "jpeg",
         ".fits": "fits", ".npy": "npy", ".nrrd": "nrrd", ".nhdr": "nrrd", ".pfm": "pfm"}
LOSSY = {"jpeg", "webp"}
WORST = ("differs", "crash", "hang", "partial", "silent")
TABLE = pathlib.Path(__file__).with_name("conformance.tsv")


def fetch(folder):
    """The packages' sources, unpacked below `folder`, one folder each."""
    for package in PACKAGES:
        place = folder / package.replace("==", "-")
        if place.exists():
            continue
        got = folder / "archives"
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", got, package], check=True)
        name = re.sub(r"[-_.]+", "[-_.]", package.split("==")[0])
        archive = next(path for path in got.iterdir() if re.match(name, path.name, re.I))
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(place)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(place, filter="data")


def others(path, kind):
    """The pages that an independent reader sees: arrays of (height, width) or (height, width, channels)."""
    if kind == "png":
        return [imagecodecs.png_decode(path.read_bytes())]
    if kind == "tiff":
        with tifffile.TiffFile(path) as file:
            pages = [page for page in file.pages if not (page.subfiletype & 5 and len(file.pages) > 1)]
            return [tiff_page(page) for page in pages]
    if kind == "npy":
        return [np.load(path, allow_pickle=False)]
    if kind == "fits":
        from astropy.io import fits
        return [fits.getdata(path)]
    if kind == "nrrd":
        import SimpleITK
        array = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))
        return list(array) if array.ndim == 3 else [array]
    with Image.open(path) as image:
        image.load()
        if image.mode in ("P", "PA"):
            return [np.asarray(image.convert("RGBA" if "transparency" in image.info else "RGB"))]
        if image.mode == "1":
            return [np.asarray(image).astype(np.uint8) * 255]
        return [np.asarray(image)]


def tiff_page(page):
    array = page.asarray()
    if page.photometric == tifffile.PHOTOMETRIC.PALETTE:
        indices, alpha = (array[..., 0], array[..., 1:]) if array.ndim == 3 else (array, array[..., None][..., :0])
        colours = np.moveaxis(page.colormap, 0, -1)[indices.astype(np.uint16)]
        # Colours of 8 bits are stored as 256 times themselves, or 257 times.
        steps = [step for step in (256, 257) if not (page.colormap % step).any()]
        colours = (colours // steps[0]).astype(np.uint8) if steps else colours
        return np.concatenate([colours, alpha * (1 if steps else 257)], -1)
    if page.bitspersample < 8:
        array = array.astype(np.uint8) * (255 // ((1 << page.bitspersample) - 1))
    return np.moveaxis(array, 0, -1) if page.planarconfig == 2 and page.samplesperpixel > 1 else array


def own(path):
    with tifffile.TiffFile(path) as file:
        return [page.asarray() for page in file.pages]


def compared(ours, theirs, kind):
    """How our transposed pages agree with theirs: None where they do."""
    if len(ours) > 1 and len(theirs) == 1 and theirs[0].ndim == 3:
        theirs = list(theirs[0])
    if len(ours) != len(theirs):
        return f"{len(ours)} pages, not {len(theirs)}"
    for a, b in zip(ours, theirs):
        a, b = (page.reshape(*page.shape[:2], -1) for page in (a, b))
        b = b.swapaxes(0, 1)
        # Grey that a reader gives as RGB, or RGB that it gives as grey, says the same.
        if a.shape[2] != b.shape[2] and 3 in (a.shape[2], b.shape[2]) and 1 in (a.shape[2], b.shape[2]):
            a, b = (np.repeat(page, 3, 2) if page.shape[2] == 1 else page for page in (a, b))
        # An alpha that is opaque everywhere, and is no alpha to us.
        if a.shape[2] == 3 and b.shape[2] == 4 and (b[..., 3] == np.iinfo(b.dtype).max).all():
            b = b[..., :3]
        if a.shape != b.shape:
            return f"{a.shape}, not {b.shape}"
        if kind == "gif" and a.shape[2] == 4:
            # What nobody sees has no colour.
            a, b = (page * (page[..., 3:] > 0) for page in (a, b))
        apart = np.abs(a.astype(np.int64) - b.astype(np.int64)).max(initial=0) if a.dtype.kind != "f" else float(not np.array_equal(a, b, equal_nan=True))
        if apart > (4 if kind in LOSSY else 0):
            return f"samples differ by up to {apart}"
    return None


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def status(gpuimg, path, kind, results):
    for verb in ("normalize", "transpose"):
        out = results / "out.tif"
        out.unlink(missing_ok=True)
        command = [gpuimg, verb, "--device", "cpu", path.name, out]
        try:
            done = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=60, preexec_fn=limited)
        except subprocess.TimeoutExpired:
            return "hang"
        left = [file for file in results.iterdir() if file != out]
        if done.returncode not in (0, 1):
            return f"crash: {done.returncode}"
        if left or (done.returncode and out.exists()):
            return "partial"
        if done.returncode and not done.stderr.startswith("gpuimg: "):
            return "silent"
    if done.returncode:
        sentence = done.stderr.strip().splitlines()[0].removeprefix("gpuimg: ").replace(path.name, "FILE")
        return f"refused: {sentence}"
    try:
        theirs = others(path, kind)
    except Exception:
        return "alone"
    try:
        apart = compared(own(out), theirs, kind)
    except Exception as error:
        apart = f"{type(error).__name__}: {error}"
    if apart:
        return f"differs: {apart}"
    return "lossy" if kind in LOSSY else "right"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpuimg", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--accept", action="store_true")
    asked = parser.parse_args()
    gpuimg = asked.gpuimg.resolve()
    folder = (asked.folder or pathlib.Path(tempfile.mkdtemp())).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    fetch(folder)
    results = pathlib.Path(tempfile.mkdtemp())
    found = {}
    for package in PACKAGES:
        place = folder / package.replace("==", "-")
        for path in sorted(place.rglob("*")):
            kind = KINDS.get(path.suffix.lower())
            if kind and path.is_file() and not path.is_symlink():
                # Without the archive's own folder.
                name = "/".join(path.relative_to(place).parts[1:])
                found[package, name] = status(gpuimg, path, kind, results)
    known = {}
    if TABLE.exists():
        for line in TABLE.read_text().splitlines()[1:]:
            package, name, what = line.split("\t")
            known[package, name] = what
    counts = collections.Counter((package, what.split(":")[0]) for (package, _), what in found.items())
    for (package, what), count in sorted(counts.items()):
        print(f"{package:24} {what:8} {count:5}")
    new = [(file, what) for file, what in found.items() if known.get(file) != what and (file in known or what.startswith(WORST))]
    gone = sorted(known.keys() - found.keys())
    for (package, name), what in new:
        print(f"{package} {name}: {what}; was: {known.get((package, name), 'not known')}")
    for package, name in gone:
        print(f"{package} {name}: is not there any more")
    if asked.accept:
        lines = ["package\tfile\tstatus", *("\t".join([*file, what]) for file, what in sorted(found.items()))]
        TABLE.write_text("\n".join(lines) + "\n")
        return 0
    assert len(found) > 500, f"only {len(found)} files: are the packages what they were?"
    return 1 if new or gone else 0


if __name__ == "__main__":
    sys.exit(main())
