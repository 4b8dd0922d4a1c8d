"""HDF5 and NeXus files of h5py, read by gpuimg.

Needs h5py, hdf5plugin and numpy. Usage: python tests/interop/hdf5_files.py path/to/gpuimg
Datasets of every type and byte order, of 2 to 4 axes, in every layout and every index of chunks, with each filter, written
for the oldest and for the newest library: compared sample by sample, a region too. Damaged files: an error or an image, and
never a panic.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile

import h5py
import hdf5plugin
import numpy as np

gpuimg = pathlib.Path(sys.argv[1]).resolve()
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(38)
counts = {}


def start(*arguments):
    return subprocess.run([gpuimg, *map(str, arguments)], capture_output=True, text=True)


def run(*arguments):
    done = start(*arguments)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def check(name, good, what):
    counts[name] = counts.get(name, 0) + 1
    if not good:
        sys.exit(f"{name} differs: {what}")


def samples(shape, dtype):
    """Noise in the upper rows, and equal values below, so that chunks of each kind compress differently."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        image = rng.normal(0, 1e3, shape)
    else:
        limits = np.iinfo(dtype)
        image = rng.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), endpoint=True)
    image[..., shape[-2] // 2 :, :] = 3
    return image.astype(dtype)


def read(path, *verb):
    target = folder / "out.npy"
    run(*(verb or ["convert"]), path, target, "--overwrite", "--format", "npy")
    return np.load(target)


def compare(name, path, expected, what):
    planes = expected.reshape(-1, *expected.shape[-2:])
    planes = planes[0] if len(planes) == 1 else planes
    is_float = planes.dtype.kind == "f"
    result = read(path)
    check(name, result.dtype.newbyteorder("=") == planes.dtype.newbyteorder("="), (what, result.dtype))
    check(name, np.array_equal(result, planes, equal_nan=is_float), what)
    height, width = planes.shape[-2:]
    if height > 4 and width > 6:
        part = read(path, "crop", f"3,2,{width - 4}x{height - 3}")
        check(name, np.array_equal(part, planes[..., 2:-1, 3:-1], equal_nan=is_float), what)


def layouts(shape):
    """The options of datasets of a shape, by name: their layouts, indexes of chunks and filters."""
    chunk = tuple(max(1, length // 3) for length in shape)
    plane = (1,) * (len(shape) - 2) + shape[-2:]
    unlimited = (None,) + shape[1:]
    yield "contiguous", {}
    yield "chunks", {"chunks": chunk}
    yield "one chunk", {"chunks": shape}
    yield "gzip", {"chunks": chunk, "compression": "gzip"}
    yield "gzip of planes", {"chunks": plane, "compression": "gzip", "compression_opts": 1}
    yield "gzip and shuffle", {"chunks": chunk, "compression": "gzip", "shuffle": True}
    yield "all filters", {"chunks": chunk, "compression": "gzip", "shuffle": True, "fletcher32": True}
    yield "one unlimited axis", {"chunks": chunk, "maxshape": unlimited, "compression": "gzip"}
    yield "unlimited axes", {"chunks": chunk, "maxshape": (None,) * len(shape), "shuffle": True}


def compact(file, name, image):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(image.shape)
    kind = h5py.h5t.py_create(image.dtype)
    dataset = h5py.h5d.create(file.id, name.encode(), kind, space, properties)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, image)


def types():
    for kind, endian, version in itertools.product("u1 i1 u2 i2 u4 i4 f4 f8".split(), "<>", ["earliest", "latest"]):
        for shape in [(37, 53), (3, 20, 31), (2, 3, 9, 11), (1, 1)]:
            image = samples(shape, endian + kind)
            path = folder / "a.h5"
            with h5py.File(path, "w", libver=version) as file:
                for name, options in layouts(shape):
                    file.create_dataset(f"{name}/image", data=image, **options)
                compact(file, "compact", image)
            # Every layout for one type, and some for each.
            names = [name for name, _ in layouts(shape)] if kind == "u2" else ["contiguous", "all filters"]
            for name in names:
                compare(name, f"{path}:/{name}/image", image, (kind, endian, version, shape))
            compare("compact", f"{path}:/compact", image, (kind, endian, version, shape))


def plugins():
    """The filters of hdf5plugin, with which detectors write."""
    compressions = {
        "bitshuffle": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle, zstd": hdf5plugin.Bitshuffle(cname="zstd"),
        "bitshuffle, small blocks": hdf5plugin.Bitshuffle(nelems=64, cname="lz4"),
        "LZ4": hdf5plugin.LZ4(),
        "LZ4, small blocks": hdf5plugin.LZ4(nbytes=512),
        "Blosc": hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE),
        "Blosc, bits": hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
        "Zstandard": hdf5plugin.Zstd(),
    }
    for (name, compression), kind, shape in itertools.product(compressions.items(), ["u1", "u2", "<i4", ">u4", "f8"], [(37, 53), (3, 64, 80)]):
        image = samples(shape, kind)
        path = folder / "plugin.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("image", data=image, chunks=(1,) * (len(shape) - 2) + shape[-2:], **compression)
        compare(name, path, image, (kind, shape))
        whole = bytearray(path.read_bytes())
        for at in rng.integers(len(whole) - len(whole) // 2, len(whole), 4):
            whole[at] ^= 255
            path.write_bytes(whole)
            done = start("sum", path, "--quiet")
            check("damage", done.returncode in (0, 1) and "panic" not in done.stderr, (name, done.stderr))


def many_chunks():
    """Indexes of more than one level."""
    image = samples((3, 200, 300), "u2")
    for version, options in itertools.product(["earliest", "latest"], [{}, {"maxshape": (None, 200, 300)}, {"maxshape": (None,) * 3}]):
        path = folder / "many.h5"
        with h5py.File(path, "w", libver=version) as file:
            file.create_dataset("image", data=image, chunks=(1, 7, 9), compression="gzip", **options)
        compare("many chunks", path, image, (version, options))


def missing_chunks():
    for version, fill in itertools.product(["earliest", "latest"], [0, 77]):
        path = folder / "holes.h5"
        with h5py.File(path, "w", libver=version) as file:
            data = file.create_dataset("image", (4, 30, 40), "i2", chunks=(2, 10, 10), fillvalue=fill)
            data[0, :10, :20] = 5
            data[3, 25, 35] = -5
            image = data[:]
        compare("missing chunks", path, image, (version, fill))


def nexus():
    """`default` and `signal` lead to the image; a file with one image needs no address, one with several does."""
    image = samples((6, 20, 30), "u2")
    path = folder / "scan.nxs"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.attrs["default"] = "entry"
        entry = file.create_group("entry")
        entry.attrs["default"] = "detector"
        detector = entry.create_group("detector")
        detector.attrs["signal"] = "counts"
        detector["counts"] = image
        detector["mask"] = np.ones((20, 30), "u1")
        entry["title"] = "a text"
        entry["itself"] = h5py.SoftLink("/entry/detector/counts")
        entry["loop"] = entry
        file["entry/angles"] = np.arange(6.0)
    compare("NeXus", path, image, "default")
    compare("NeXus", f"{path}:/entry", image, "group")
    compare("NeXus", f"{path}:/entry/itself", image, "soft link")
    compare("NeXus", f"{path}:/entry/detector/mask", np.ones((20, 30), "u1"), "address")
    listed = run("info", path).splitlines()
    names = sorted(line.split(": ")[0].split("nxs:")[1] for line in listed)
    check("NeXus", names == ["/entry/detector/counts", "/entry/detector/mask", "/entry/itself"], listed)
    with h5py.File(path, "a") as file:
        del file.attrs["default"]
    done = start("convert", path, folder / "none.npy")
    check("NeXus", done.returncode == 1 and "/entry/detector/counts" in done.stderr, done.stderr)
    done = start("convert", f"{path}:/entry/angles", folder / "none.npy")
    check("NeXus", done.returncode == 1 and "1 axes" in done.stderr, done.stderr)
    done = start("convert", f"{path}:/entry/none", folder / "none.npy")
    check("NeXus", done.returncode == 1 and "no dataset" in done.stderr, done.stderr)


def damaged():
    """Truncated files are errors; files with changed bytes are errors or images, and no panic or crash."""
    image = samples((2, 12, 15), "i2")
    for version in ["earliest", "latest"]:
        path = folder / "whole.h5"
        with h5py.File(path, "w", libver=version) as file:
            file.create_dataset("image", data=image, chunks=(1, 5, 6), compression="gzip", shuffle=True, fletcher32=True)
        whole = path.read_bytes()
        broken = folder / "broken.h5"

        def outcome(content):
            broken.write_bytes(content)
            done = start("sum", broken, "--quiet")
            check("damage", done.returncode in (0, 1) and "panic" not in done.stderr, (version, done.stderr))
            return done.returncode

        for size in range(0, len(whole), 61):
            check("truncated", outcome(whole[:size]) == 1, (version, size))
        for at in [*range(min(len(whole), 1500)), *range(1500, len(whole), 23)]:
            changed = bytearray(whole)
            changed[at] ^= int(rng.integers(1, 256))
            outcome(bytes(changed))


types()
plugins()
many_chunks()
missing_chunks()
nexus()
damaged()
print(", ".join(f"{name}: {count}" for name, count in counts.items()))
