"""Images in the memory of a GPU. Needs one, with CuPy or PyTorch; GPUIMG_REQUIRE_GPU=1 makes a skip a failure."""

import gc
import importlib
import os
import pickle
import threading
import warnings

import gpuimg
import numpy as np
import pytest

REQUIRED = os.environ.get("GPUIMG_REQUIRE_GPU") == "1"


def usable():
    try:
        gpuimg.rotate(np.zeros((2, 2), np.uint16), 90, device="cuda")
    except gpuimg.DeviceError:
        return False
    return True


needs_gpu = pytest.mark.skipif(not REQUIRED and not usable(), reason="no GPU")


def package(name):
    if REQUIRED:
        return importlib.import_module(name)
    return pytest.importorskip(name)


def jax_on_a_gpu():
    """JAX, if it is here with a GPU. Its wheels for GPUs are large, so that it may be missing even where a GPU is required."""
    # JAX takes three quarters of the memory otherwise.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax

        jax.devices("gpu")
    except (ImportError, RuntimeError) as error:
        warnings.warn(f"NOT TESTED: JAX on a GPU: {error}")
        pytest.skip(f"JAX on a GPU: {error}")
    return jax


SPIN = r"""extern "C" __global__ void spin(long long cycles) { long long t = clock64(); while (clock64() - t < cycles); }"""


@pytest.fixture
def cupy():
    return package("cupy")


@pytest.fixture
def torch():
    return package("torch")


def ramp(height, width, channels=1, dtype="uint16", seed=7):
    numbers = np.random.default_rng(seed).integers(0, 120, (height, width, channels))
    numbers = numbers + np.arange(height)[:, None, None] % 7
    return (numbers if channels > 1 else numbers[..., 0]).astype(dtype)


def test_images_on_the_host_are_no_arrays_of_cuda():
    image = gpuimg.Image(ramp(3, 2))
    assert not hasattr(image, "__cuda_array_interface__")
    assert image.cpu() is image
    assert image.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("device", ["cuda:x", "cuda:", "cudax", "cuda:-1"])
def test_names_of_devices_that_do_not_exist(device):
    with pytest.raises(gpuimg.ArgumentError, match="expected auto, cpu, gpu, gpu:N, cuda or cuda:N"):
        gpuimg.rotate(ramp(3, 2), 90, device=device)


@pytest.mark.parametrize("stream", ["default", 1.5, object(), -1])
def test_streams_that_do_not_exist(stream):
    with pytest.raises((gpuimg.ArgumentError, OverflowError), match="stream|negative"):
        gpuimg.rotate(ramp(3, 2), 90, stream=stream)


def test_images_in_host_memory_take_any_stream():
    assert gpuimg.rotate(ramp(3, 2), 90, stream=1).shape == (2, 3)


@pytest.mark.skipif(usable(), reason="there is a GPU")
def test_without_a_gpu_the_error_says_so(tmp_path):
    gpuimg.write(tmp_path / "a.png", ramp(3, 2))
    for call in (
        lambda: gpuimg.read(tmp_path / "a.png", device="cuda"),
        lambda: gpuimg.normalize(ramp(3, 2), device="cuda"),
        lambda: next(gpuimg.stream([tmp_path / "a.png"], device="cuda")),
    ):
        with pytest.raises(gpuimg.DeviceError):
            call()


@needs_gpu
@pytest.mark.parametrize("name", ["grey.png", "rgb.png", "deflate.tif", "lzw.tif", "none.tif", "signed.npy", "float.npy", "small.png"])
def test_files_are_read_into_the_memory_of_a_gpu(tmp_path, cupy, torch, name):
    arrays = {
        "rgb.png": ramp(1024, 1040, 3),
        "signed.npy": ramp(50, 60, 1, "int16") - np.int16(60),
        "float.npy": ramp(50, 60, 1, "float32") / np.float32(3),
        "small.png": ramp(31, 17),
    }
    array = arrays.get(name, ramp(1030, 1024))
    stem, extension = name.split(".")
    gpuimg.write(tmp_path / name, array, **({"tiff": stem} if extension == "tif" else {}))
    for _ in range(3):
        image = gpuimg.read(tmp_path / name, device="cuda")
        assert image.shape == array.shape and image.dtype == array.dtype
        assert repr(image).endswith(" on cuda:0>")
        # No copy: both see the address of the image.
        address = image.__cuda_array_interface__["data"][0]
        on_cupy, on_torch = cupy.from_dlpack(image), torch.from_dlpack(image)
        assert on_cupy.data.ptr == address and on_torch.data_ptr() == address
        assert cupy.asarray(image).data.ptr == address
        np.testing.assert_array_equal(cupy.asnumpy(on_cupy), array)
        np.testing.assert_array_equal(on_torch.cpu().numpy(), array)
        on_host = image.cpu()
        np.testing.assert_array_equal(np.asarray(on_host), array)
        assert on_host == gpuimg.read(tmp_path / name) == image
        np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(image))), array)


DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]

CALLS = {
    "normalize": lambda x, **k: gpuimg.normalize(x, **k),
    "clip": lambda x, **k: gpuimg.normalize(x, clip=(1, 99), **k),
    "per channel": lambda x, **k: gpuimg.normalize(x, per_channel=True, **k),
    "rotate": lambda x, **k: gpuimg.rotate(x, 90, **k),
    "transpose": lambda x, **k: gpuimg.transpose(x, **k),
    "run": lambda x, **k: gpuimg.run(x, "normalize + rotate 270 + crop 1,2,9x8", **k),
    "depth": lambda x, **k: gpuimg.normalize(x, depth=8, **k),
    "fit": lambda x, **k: gpuimg.convert(x, fit=10, **k),
    "calibrate": lambda x, **k: gpuimg.calibrate(x, offset=5, dark=np.ones(x.shape, "uint16"), **k),
}


@needs_gpu
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shape", [(40, 30), (41, 33, 3), (20, 37, 4)])
def test_verbs_give_what_the_cpu_gives(cupy, torch, call, shape):
    array = ramp(*shape)
    wanted = CALLS[call](array, device="cpu")
    inputs = [
        cupy.asarray(array),
        torch.from_numpy(array).cuda(),
        gpuimg.convert(array, device="cuda"),
    ]
    for given in inputs:
        for device in ("auto", "cuda", "gpu:0"):
            result = CALLS[call](given, device=device)
            assert result.__dlpack_device__() == (2, 0)
            assert result.cpu() == wanted
    result = CALLS[call](array, device="cuda")
    assert result == wanted and result.ranges == wanted.ranges
    # What was given has not changed.
    np.testing.assert_array_equal(cupy.asnumpy(inputs[0]), array)
    np.testing.assert_array_equal(np.asarray(inputs[2].cpu()), array)


@needs_gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_to_a_gpu_and_back(cupy, dtype):
    array = ramp(20, 30, 3, dtype)
    given = cupy.asarray(array)
    image = gpuimg.convert(given)
    assert image.dtype == dtype
    np.testing.assert_array_equal(cupy.asnumpy(cupy.from_dlpack(image)), array)
    if dtype == "float64":
        with pytest.raises(gpuimg.Error, match="64-bit samples"):
            gpuimg.sum(given)
        return
    assert gpuimg.sum(given) == gpuimg.sum(array)
    grey = ramp(20, 30, 1, dtype)
    turned = cupy.asnumpy(cupy.from_dlpack(gpuimg.rotate(cupy.asarray(grey), 90)))
    np.testing.assert_array_equal(turned, np.rot90(grey, -1))


@needs_gpu
def test_views_of_arrays(cupy):
    array = ramp(40, 30, 3)
    on_gpu = cupy.asarray(array)
    parts = [np.s_[3:20], np.s_[3:20, 4:9], np.s_[5:6, 2:3], np.s_[:, :, :3], np.s_[:, ::2], np.s_[::3, 1::7], np.s_[:, :, ::-1]]
    parts += [np.s_[::-1], np.s_[::-1, ::-2], np.s_[:, :, 1], np.s_[7], np.s_[:, 5, :]]
    for dtype in DTYPES:
        for part in parts:
            found = cupy.asnumpy(cupy.from_dlpack(gpuimg.convert(on_gpu.astype(dtype)[part])))
            np.testing.assert_array_equal(found, array.astype(dtype)[part], strict=True)
    # Channels first, as PyTorch has them, and columns first.
    planes = cupy.ascontiguousarray(on_gpu.transpose(2, 0, 1))
    np.testing.assert_array_equal(np.asarray(gpuimg.convert(planes.transpose(1, 2, 0)).cpu()), array)
    np.testing.assert_array_equal(np.asarray(gpuimg.convert(on_gpu[:, :, 0].T).cpu()), array[:, :, 0].T)
    large = ramp(70_000, 3)
    np.testing.assert_array_equal(np.asarray(gpuimg.convert(cupy.asarray(large)[:, ::2]).cpu()), large[:, ::2])


@needs_gpu
def test_views_of_tensors(torch):
    array = ramp(40, 30, 3)
    planes = torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1))).cuda()
    assert gpuimg.normalize(planes.permute(1, 2, 0)[::2, 3:]) == gpuimg.normalize(array[::2, 3:], device="cpu")


@needs_gpu
def test_views_that_are_no_images(cupy):
    on_gpu = cupy.asarray(ramp(40, 30, 3))
    with pytest.raises(gpuimg.ArgumentError, match="not of 1 dimensions"):
        gpuimg.convert(on_gpu.ravel())
    with pytest.raises(gpuimg.ArgumentError, match="not supported: convert"):
        gpuimg.convert(on_gpu.astype("float16"))


def numbers(dtype):
    """The least and the largest value of a type, and some between them."""
    if dtype.startswith("float"):
        finite = np.finfo(dtype)
        values = [finite.min, -1.5, -0.0, 0.0, finite.smallest_subnormal, 1 / 3, finite.max, np.inf, -np.inf, np.nan]
    else:
        whole = np.iinfo(dtype)
        values = [whole.min, whole.min + 1, 0, 1, whole.max // 2, whole.max]
    return np.array([values] * 3, dtype)


@needs_gpu
@pytest.mark.parametrize("given", DTYPES)
def test_dtypes_hold_every_value(cupy, given):
    samples = numbers(given)
    on_gpu = cupy.asarray(samples)
    for wanted in DTYPES:
        if not np.can_cast(given, wanted, "safe"):
            with pytest.raises(gpuimg.ArgumentError, match="hold every value"):
                gpuimg.convert(on_gpu, dtype=wanted)
            continue
        image = gpuimg.convert(on_gpu, dtype=wanted)
        assert image.dtype == wanted and image == gpuimg.convert(samples, dtype=wanted, device="cpu")
        found = cupy.asnumpy(cupy.from_dlpack(image))
        assert found.tobytes() == np.asarray(image.cpu()).tobytes() == samples.astype(wanted).tobytes(), wanted


@needs_gpu
def test_files_and_streams_give_the_dtype(tmp_path, torch):
    array = ramp(1030, 1024)
    gpuimg.write(tmp_path / "a.png", array)
    image = gpuimg.read(tmp_path / "a.png", dtype="float32", device="cuda")
    assert torch.from_dlpack(image).dtype == torch.float32
    assert image == gpuimg.read(tmp_path / "a.png", dtype="float32")
    assert str(image.path) == str(tmp_path / "a.png")
    for image in gpuimg.stream([tmp_path / "a.png"] * 3, "normalize", dtype="float32", device="cuda"):
        wanted = gpuimg.normalize(array, dtype="float32", device="cpu")
        np.testing.assert_array_equal(torch.from_dlpack(image).cpu().numpy(), np.asarray(wanted))
        assert image.ranges == wanted.ranges


@needs_gpu
@pytest.mark.parametrize("call", CALLS)
def test_out_on_the_gpu_has_the_result(cupy, torch, call):
    array = ramp(41, 33, 3)
    wanted = np.asarray(CALLS[call](array, device="cpu"))
    # Two arrays side by side: nothing is written beyond the first.
    both = cupy.full((2, *wanted.shape), 7, wanted.dtype)
    for given in (cupy.asarray(array), torch.from_numpy(array).cuda(), gpuimg.convert(array, device="cuda")):
        out = both[0]
        out[:] = 7
        assert CALLS[call](given, out=out) is out
        np.testing.assert_array_equal(cupy.asnumpy(out), wanted)
        assert (both[1] == 7).all()
    tensor = torch.empty(wanted.shape, dtype=torch.from_numpy(wanted.copy()).dtype, device="cuda")
    assert CALLS[call](array, device="cuda", out=tensor) is tensor
    np.testing.assert_array_equal(tensor.cpu().numpy(), wanted)
    # With a dtype, and into a view with gaps.
    wide = cupy.zeros((wanted.shape[0] * 2, *wanted.shape[1:]), "float32")
    CALLS[call](array, device="cuda", dtype="float32", out=wide[::-2])
    np.testing.assert_array_equal(cupy.asnumpy(wide[::-2]), wanted.astype("float32"))
    assert not wide[::2].any()


@needs_gpu
def test_out_may_be_the_input_and_the_memory_of_an_image(cupy):
    array = ramp(40, 40)
    on_gpu = cupy.asarray(array)
    gpuimg.rotate(on_gpu, 90, out=on_gpu)
    np.testing.assert_array_equal(cupy.asnumpy(on_gpu), np.rot90(array, -1))
    image = gpuimg.convert(array, device="cuda")
    gpuimg.flip(image, "h", out=cupy.from_dlpack(image))
    np.testing.assert_array_equal(np.asarray(image.cpu()), array[:, ::-1])


@needs_gpu
def test_out_is_written_after_the_queued_work_that_uses_it(cupy):
    """A slow kernel keeps the caller's stream busy, which then copies the old values of out: they must still be there."""
    spin = cupy.RawKernel(SPIN, "spin")
    array = ramp(600, 500)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            out = cupy.full(array.shape, 9, "uint16")
            given = cupy.asarray(array)
            stream.synchronize()
            spin((1,), (1,), (40_000_000,))
            before = out.copy()
            gpuimg.flip(given, "h", out=out)
            after = out.copy()
            stream.synchronize()
        assert (before == 9).all()
        np.testing.assert_array_equal(cupy.asnumpy(after), array[:, ::-1])


@needs_gpu
def test_out_that_is_read_only_is_left_alone(cupy):
    on_gpu = cupy.asarray(ramp(12, 9))

    class ReadOnly:
        interface = on_gpu.__cuda_array_interface__
        __cuda_array_interface__ = {**interface, "data": (interface["data"][0], True)}

    with pytest.raises(gpuimg.ArgumentError, match="out is read-only"):
        gpuimg.flip(on_gpu, "h", out=ReadOnly())
    np.testing.assert_array_equal(cupy.asnumpy(on_gpu), ramp(12, 9))


@needs_gpu
def test_jax_takes_images_and_gives_arrays():
    jax = jax_on_a_gpu()
    array = ramp(300, 200)
    image = gpuimg.convert(array, device="cuda")
    lent = jax.dlpack.from_dlpack(image)
    assert lent.unsafe_buffer_pointer() == image.__cuda_array_interface__["data"][0]
    np.testing.assert_array_equal(np.asarray(lent), array)
    for first in ("image", "array"):
        image = gpuimg.convert(array, device="cuda")
        lent = jax.dlpack.from_dlpack(image)
        if first == "image":
            del image
        else:
            del lent
        gc.collect()
        others = [gpuimg.convert(np.full_like(array, 9), device="cuda") for _ in range(20)]
        np.testing.assert_array_equal(np.asarray(lent if first == "image" else image.cpu()), array)
        del others
    for dtype in ("uint8", "int16", "uint16", "float32"):
        numbers = ramp(41, 33, 3, dtype)
        # Results of a computation that may still be queued.
        given = jax.numpy.asarray(numbers - numbers.dtype.type(1)) + numbers.dtype.type(1)
        result = gpuimg.rotate(given[:, ::2, 0], 90)
        assert result.__dlpack_device__() == (2, 0)
        np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(result)), np.rot90(numbers[:, ::2, 0], -1))
        assert gpuimg.sum(given) == gpuimg.sum(numbers)
    # The arrays of JAX never change.
    with pytest.raises(gpuimg.ArgumentError, match="out is read-only"):
        gpuimg.flip(given, "h", out=given)


@needs_gpu
def test_an_array_with_only_the_interface_of_cuda(cupy):
    array = ramp(12, 9)
    on_gpu = cupy.asarray(array)

    class Numba:
        __cuda_array_interface__ = on_gpu.__cuda_array_interface__

    np.testing.assert_array_equal(np.asarray(gpuimg.rotate(Numba(), 90).cpu()), np.rot90(array, -1))


@needs_gpu
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("how, options", [(how, {}) for how in ("mean", "min", "max", "median")] + [
    ("sum", {"to": 32}), ("sum", {"saturate": True}), ("sum", {"scale": True}), ("mean", {"to": "f32"}), ("mean", {"dtype": "float64"}),
])
def test_projections_give_what_the_cpu_gives(cupy, torch, dtype, how, options):
    arrays = [ramp(70, 33, 3, dtype, seed) for seed in range(5)]
    for count in (1, 4, 5):
        wanted = gpuimg.project(arrays[:count], how, device="cpu", **options)
        on_gpu = [cupy.asarray(array) for array in arrays[:count]]
        for given in (on_gpu, cupy.stack(on_gpu), [gpuimg.convert(array) for array in on_gpu], map(torch.from_dlpack, on_gpu)):
            result = gpuimg.project(given, how, **options)
            assert result.__dlpack_device__() == (2, 0) and result.dtype == wanted.dtype
            assert result.cpu() == wanted
        assert gpuimg.project(arrays[:count], how, device="cuda", **options) == wanted
        np.testing.assert_array_equal(cupy.asnumpy(on_gpu[0]), arrays[0])


@needs_gpu
def test_numbers_and_files(cupy, tmp_path):
    array = ramp(1100, 1024)
    on_gpu = cupy.asarray(array)
    assert gpuimg.sum(on_gpu) == gpuimg.sum(array)
    assert gpuimg.histogram(on_gpu).counts == gpuimg.histogram(array).counts
    for name in ("a.png", "a.tif", "a.fits"):
        gpuimg.write(tmp_path / name, on_gpu)
        np.testing.assert_array_equal(np.asarray(gpuimg.read(tmp_path / name)), array)
    np.testing.assert_array_equal(np.asarray(gpuimg.decode(gpuimg.encode(on_gpu, "png"))), array)
    with pytest.raises(gpuimg.ExistsError):
        gpuimg.write(tmp_path / "a.png", on_gpu)


@needs_gpu
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize(
    "call",
    [
        lambda it: gpuimg.lut(it, "viridis"),
        lambda it: gpuimg.debayer(it, "RGGB"),
        lambda it: gpuimg.debayer(it, "GBRG", method="malvar"),
        lambda it: gpuimg.normalize(it, curve="asinh"),
        lambda it: gpuimg.normalize(it, range="zscale"),
        lambda it: gpuimg.normalize(it, range="stf"),
    ],
)
def test_colours_and_curves(cupy, call, dtype):
    image = ramp(65, 43, dtype=dtype)
    on_gpu = call(cupy.asarray(image))
    assert on_gpu.__dlpack_device__()[0] == 2
    np.testing.assert_array_equal(np.asarray(on_gpu.cpu()), np.asarray(call(image)))


@needs_gpu
def test_what_is_refused(cupy):
    on_gpu = cupy.asarray(ramp(12, 9))
    refused = [
        (lambda: gpuimg.rotate(on_gpu, 90, device="cpu"), "the image is in the memory of a GPU"),
        (lambda: gpuimg.rotate(on_gpu, 90, out=np.zeros((9, 12), "uint16")), "and so must be out"),
        (lambda: gpuimg.rotate(on_gpu, 90, out=on_gpu), "out has 12 × 9 × 1 samples of u16, but the result has 9 × 12 × 1 of u16"),
        (lambda: gpuimg.flip(on_gpu, "h", out=on_gpu, dtype="int32"), "but the result has 12 × 9 × 1 of i32"),
        (lambda: gpuimg.flip(on_gpu, "h", out=gpuimg.convert(on_gpu)), "out is read-only"),
        (lambda: gpuimg.flip(on_gpu, "h", out=on_gpu.ravel()), "not of 1 dimensions"),
        (lambda: gpuimg.flip(ramp(12, 9), "h", device="cpu", out=on_gpu), "in the memory of a GPU"),
        (lambda: gpuimg.rotate(on_gpu, 90, dtype="int16"), "dtype converts to types that hold every value"),
        (lambda: gpuimg.normalize(on_gpu.astype("float32"), range="zscale"), "the GPU does not support --range zscale for 32-bit samples"),
        (lambda: gpuimg.project([on_gpu, ramp(12, 9)], "mean"), "1 of 2 images are in the memory of a GPU"),
        (lambda: gpuimg.project([on_gpu, on_gpu[:5]], "mean"), "image 2 is"),
        (lambda: gpuimg.project([on_gpu, on_gpu], "mean", sigma=3), "the GPU does not support sigma-clipped means"),
        (lambda: gpuimg.project([on_gpu.astype("float32")] * 2, "max"), "the GPU does not project floating-point images"),
    ]
    for call, message in refused:
        with pytest.raises(gpuimg.Error, match=message):
            call()
    image = gpuimg.convert(on_gpu)
    with pytest.raises(BufferError, match=r"image\.cpu\(\)"):
        memoryview(image)
    with pytest.raises(BufferError):
        image.__dlpack__(dl_device=(1, 0))


@needs_gpu
def test_memory_outlives_the_image_and_the_array(cupy):
    array = ramp(512, 512)
    for first in ("image", "array"):
        image = gpuimg.convert(array, device="cuda")
        on_cupy = cupy.from_dlpack(image)
        if first == "image":
            del image
        else:
            del on_cupy
        gc.collect()
        # These would take the memory if it were free.
        others = [gpuimg.convert(np.full_like(array, 9), device="cuda") for _ in range(20)]
        kept = cupy.asnumpy(on_cupy) if first == "image" else np.asarray(image.cpu())
        np.testing.assert_array_equal(kept, array)
        del others


@needs_gpu
def test_queued_work_of_a_freed_tensor_still_reads_its_memory(cupy):
    """A slow kernel keeps a stream busy; the tensor that it reads next is freed at once, and other images take the memory."""
    spin = cupy.RawKernel(SPIN, "spin")
    array = ramp(600, 500)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            for _ in range(5):
                image = gpuimg.convert(array, device="cuda")
                tensor = cupy.from_dlpack(image)
                spin((1,), (1,), (40_000_000,))
                copy = tensor.copy()
                del tensor, image
                gc.collect()
                others = [gpuimg.convert(np.zeros_like(array), device="cuda") for _ in range(6)]
                np.testing.assert_array_equal(cupy.asnumpy(copy), array)
                del others


@needs_gpu
def test_the_named_stream_is_waited_for(cupy, torch):
    spin = cupy.RawKernel(SPIN, "spin")
    array = ramp(600, 500)
    source = cupy.asarray(array)

    class Silent:
        """An array that names no stream."""

        def __init__(self, array):
            self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": None}

    stream = cupy.cuda.Stream(non_blocking=True)
    streams = [stream.ptr, stream, torch.cuda.ExternalStream(stream.ptr)]
    calls = [
        lambda image, named: gpuimg.convert(image, stream=named),
        lambda image, named: gpuimg.run(image, "rotate 90 + rotate 270", stream=named),
        lambda image, named: gpuimg.calibrate(image, dark=np.zeros(array.shape, "uint16"), stream=named),
        lambda image, named: gpuimg.project([image], "max", stream=named),
    ]
    for named in streams:
        for call in calls:
            on_gpu = cupy.zeros_like(source)
            cupy.cuda.Device().synchronize()
            with stream:
                spin((1,), (1,), (40_000_000,))
                cupy.copyto(on_gpu, source)
            image = call(Silent(on_gpu), named)
            np.testing.assert_array_equal(np.asarray(image.cpu()), array)
    # out, which the queued work still reads.
    copied, out = cupy.zeros_like(source), source.copy()
    cupy.cuda.Device().synchronize()
    with stream:
        spin((1,), (1,), (40_000_000,))
        cupy.copyto(copied, out)
    gpuimg.flip(source, "horizontal", stream=stream, out=out)
    stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(copied), array)
    np.testing.assert_array_equal(cupy.asnumpy(out), array[:, ::-1])
    # The default stream, by both of its numbers.
    for default in (0, 1, torch.cuda.default_stream()):
        np.testing.assert_array_equal(np.asarray(gpuimg.convert(source, stream=default).cpu()), array)


@needs_gpu
def test_queued_work_that_writes_an_array_is_waited_for(cupy):
    spin = cupy.RawKernel(SPIN, "spin")
    array = ramp(600, 500)

    class Interface:
        def __init__(self, array):
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        for kind in (lambda array: array, Interface):
            with stream:
                on_gpu = cupy.zeros_like(cupy.asarray(array))
                source = cupy.asarray(array)
                stream.synchronize()
                spin((1,), (1,), (40_000_000,))
                cupy.copyto(on_gpu, source)
                image = gpuimg.convert(kind(on_gpu))
            np.testing.assert_array_equal(np.asarray(image.cpu()), array)


@needs_gpu
def test_streams_of_files(tmp_path, torch):
    arrays = [ramp(1024 + 3 * i, 1030, seed=i) for i in range(9)]
    paths = [tmp_path / f"{i}.png" for i in range(9)]
    for path, array in zip(paths, arrays):
        gpuimg.write(path, array)
    paths.insert(4, tmp_path / "missing.png")
    results = list(gpuimg.stream(paths, "normalize", device="cuda", errors="return"))
    assert isinstance(results.pop(4), gpuimg.NotFoundError)
    for result, array in zip(results, arrays, strict=True):
        assert result == gpuimg.normalize(array, device="cpu")
        assert torch.from_dlpack(result).is_cuda
    batches = [len(batch) for batch in gpuimg.stream(paths[:4], device="cuda", batch=3)]
    assert batches == [3, 1]


@needs_gpu
def test_threads_use_a_gpu_at_the_same_time(cupy):
    arrays = [ramp(300 + i, 200, seed=i) for i in range(8)]
    failures = []

    def work(i):
        try:
            with cupy.cuda.Stream(non_blocking=True):
                given = cupy.asarray(arrays[i])
                for _ in range(25):
                    turned = cupy.from_dlpack(gpuimg.rotate(given, 90))
                    np.testing.assert_array_equal(cupy.asnumpy(turned), np.rot90(arrays[i], -1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


@needs_gpu
def test_memory_of_the_gpu_stays_flat(cupy):
    array = ramp(512, 512)
    given = cupy.asarray(array)

    def calls(count):
        for _ in range(count):
            tensor = cupy.from_dlpack(gpuimg.rotate(given, 90))
            del tensor
        return cupy.cuda.runtime.memGetInfo()[0]

    before = calls(50)
    assert before - calls(2000) < 16 << 20


@needs_gpu
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_leaves_the_gpu_alone():
    image = gpuimg.convert(ramp(64, 64), device="cuda")
    child = os.fork()
    if child == 0:
        try:
            gpuimg.convert(ramp(4, 4), device="cuda")
            os._exit(1)
        except gpuimg.DeviceError as error:
            del image
            gc.collect()
            os._exit(0 if "spawn" in str(error) else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert image.cpu() == gpuimg.Image(ramp(64, 64))
