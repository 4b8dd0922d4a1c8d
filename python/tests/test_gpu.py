"""Images in the memory of a GPU. Needs one, with CuPy or PyTorch; GPUIMG_REQUIRE_GPU=1 makes a skip a failure."""

import gc
import importlib
import os
import pickle
import threading

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
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"])
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
    for part in (np.s_[3:20], np.s_[3:20, 4:9], np.s_[5:6, 2:3], np.s_[:, :, :3]):
        found = cupy.asnumpy(cupy.from_dlpack(gpuimg.convert(on_gpu[part])))
        np.testing.assert_array_equal(found, array[part])
    for part in (np.s_[:, ::2], np.s_[:, :, ::-1], np.s_[::-1]):
        with pytest.raises(gpuimg.ArgumentError, match="ascontiguousarray"):
            gpuimg.convert(on_gpu[part])
    with pytest.raises(gpuimg.ArgumentError, match="not of 1 dimensions"):
        gpuimg.convert(on_gpu.ravel())
    with pytest.raises(gpuimg.ArgumentError, match="not supported: convert"):
        gpuimg.convert(on_gpu.astype("float16"))


@needs_gpu
def test_an_array_with_only_the_interface_of_cuda(cupy):
    array = ramp(12, 9)
    on_gpu = cupy.asarray(array)

    class Numba:
        __cuda_array_interface__ = on_gpu.__cuda_array_interface__

    np.testing.assert_array_equal(np.asarray(gpuimg.rotate(Numba(), 90).cpu()), np.rot90(array, -1))


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
def test_what_is_refused(cupy):
    on_gpu = cupy.asarray(ramp(12, 9))
    refused = [
        (lambda: gpuimg.rotate(on_gpu, 90, device="cpu"), "the image is in the memory of a GPU"),
        (lambda: gpuimg.rotate(on_gpu, 90, out=np.zeros((9, 12), "uint16")), "out is for arrays in host memory"),
        (lambda: gpuimg.rotate(on_gpu, 90, dtype="float32"), "dtype converts images in host memory only"),
        (lambda: gpuimg.normalize(on_gpu, curve="log"), "GPU"),
        (lambda: gpuimg.project([on_gpu, on_gpu], "mean"), "in the memory of a GPU"),
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
    spin = cupy.RawKernel(
        r"""extern "C" __global__ void spin(long long cycles) { long long t = clock64(); while (clock64() - t < cycles); }""", "spin"
    )
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
def test_queued_work_that_writes_an_array_is_waited_for(cupy):
    spin = cupy.RawKernel(
        r"""extern "C" __global__ void spin(long long cycles) { long long t = clock64(); while (clock64() - t < cycles); }""", "spin"
    )
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
