//! Images in the memory of a GPU: those of this module, and arrays of others (`__dlpack__`, `__cuda_array_interface__`), which are
//! copied.

use crate::array::type_of_interface;
use crate::dlpack;
use crate::errors::{OrRaise, argument};
use crate::image::{Image, Pixels, Refused};
use crate::runtime::{self, Place};
use gpuimg::{Device, GpuArray, GpuImage, Operations, SampleType};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The legacy default stream of CUDA, in DLPack and in `__cuda_array_interface__`.
const DEFAULT_STREAM: usize = 1;

/// A stream of the caller: its address, or an object of CUDA's Python packages, PyTorch or CuPy that has it.
///
/// # Errors
/// Anything else.
pub fn stream_address(stream: &Bound<PyAny>) -> PyResult<Option<usize>> {
    if stream.is_none() {
        return Ok(None);
    }
    let address: Option<usize> = if let Ok(address) = stream.extract() {
        Some(address)
    } else if stream.hasattr("__cuda_stream__")? {
        let (_version, address): (usize, usize) =
            stream.call_method0("__cuda_stream__")?.extract()?;
        Some(address)
    } else {
        let attribute = |name| stream.getattr(name).ok()?.extract().ok();
        attribute("cuda_stream").or_else(|| attribute("ptr"))
    };
    match address {
        // CUDA has both numbers for it.
        Some(0) => Ok(Some(DEFAULT_STREAM)),
        Some(address) => Ok(Some(address)),
        None => Err(argument(
            "stream is the address of a CUDA stream, or an object with __cuda_stream__, such as torch.cuda.current_stream()",
        )),
    }
}

/// An image that is in the memory of a GPU; `None` for anything else. The copy of an array waits for the work that is queued on `stream`,
/// or on the stream that the array names.
pub fn image(object: &Bound<PyAny>, stream: Option<usize>) -> PyResult<Option<GpuImage>> {
    if let Ok(image) = object.cast::<Image>() {
        return Ok(match image.get().pixels() {
            Pixels::Gpu(image) => Some(GpuImage::clone(image)),
            Pixels::Host(_) => None,
        });
    }
    if object.hasattr("__dlpack_device__")? {
        let device = object.call_method0("__dlpack_device__")?.extract()?;
        if dlpack::gpu_of(device).is_none() {
            return Ok(None);
        }
        let (array, gpu, _lent) = Foreign::of_dlpack(object, stream)?;
        return array.copy(object.py(), gpu).map(Some);
    }
    // Objects whose attribute fails are in host memory, such as tensors of PyTorch.
    match object.getattr("__cuda_array_interface__") {
        Ok(interface) => Foreign::of_interface(interface.cast::<PyDict>()?, stream)?
            .copy(object.py(), 0)
            .map(Some),
        Err(_) => Ok(None),
    }
}

/// The image, if it is in the memory of a GPU or is to be processed there, and the result to stay there.
///
/// # Errors
/// `device="cpu"` for an image on a GPU, and an array that cannot be one.
pub fn image_for(
    object: &Bound<PyAny>,
    device: &str,
    stream: Option<usize>,
) -> PyResult<Option<GpuImage>> {
    if let Some(image) = image(object, stream)? {
        if device == "cpu" {
            return Err(argument(
                "the image is in the memory of a GPU, and device=\"cpu\" needs it in host memory: image.cpu(), tensor.cpu() or \
                 array.get() copies it",
            ));
        }
        return Ok(Some(image));
    }
    let Place::Gpu(gpu) = runtime::current().place(device)? else {
        return Ok(None);
    };
    let input = crate::array::Input::new(object)?;
    let uploaded = runtime::run(object.py(), input.bytes(), || {
        GpuImage::upload(input.copy()?, &gpu)
    })?;
    uploaded
        .map(Some)
        .map_err(|error| crate::errors::exception(&error))
}

/// Runs operations on an image in the memory of a GPU, which has the result, too: in `out`, if it is given.
pub fn run<'py>(
    py: Python<'py>,
    image: &GpuImage,
    operations: &Operations,
    dtype: Option<SampleType>,
    stream: Option<usize>,
    out: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    // Refused before the work is done.
    let target = out.as_ref().map(|out| Foreign::of_out(out, stream));
    let target = target.transpose()?;
    let work = || -> Result<GpuImage, Refused> { converted(operations.run_on_gpu(image)?, dtype) };
    let result = runtime::run(py, image.shape().bytes(), work)??;
    match (out, target) {
        (Some(out), Some((array, _lent))) => {
            array.store(py, &result)?;
            Ok(out)
        }
        _ => Image::on_gpu(result).into_bound_py_any(py),
    }
}

/// The image, converted to the type that was asked for.
pub fn converted(image: GpuImage, wanted: Option<SampleType>) -> Result<GpuImage, Refused> {
    let given = image.sample_type();
    match wanted {
        Some(wanted) if !wanted.holds(given) => Err(Refused::Type(given, wanted)),
        Some(wanted) => Ok(image.with_sample_type(wanted)?),
        None => Ok(image),
    }
}

/// The capsule of an image in the memory of a GPU, and what keeps it.
pub fn lend<'py>(
    py: Python<'py>,
    image: &GpuImage,
    shape: Vec<i64>,
    stream: Option<&Bound<'py, PyAny>>,
    dl_device: Option<(i32, i32)>,
    (is_versioned, is_copy): (bool, bool),
) -> PyResult<Bound<'py, PyAny>> {
    let own = dlpack::gpu(image.gpu_number());
    if let Some((kind, number)) = dl_device.filter(|&device| device != own) {
        return Err(PyBufferError::new_err(format!(
            "the image is in the memory of GPU {}, not on the device ({kind}, {number}): image.cpu() copies it to host memory",
            own.1
        )));
    }
    // DLPack: no number is the legacy default stream, 1 is it, too, and -1 is none that is known.
    let stream: Option<isize> = stream.map(|stream| stream.extract()).transpose()?;
    let reader = match stream {
        None | Some(1) => gpuimg::GpuReader::DefaultStream,
        Some(_) => gpuimg::GpuReader::AnyStream,
    };
    let lent = runtime::run(py, if is_copy { usize::MAX } else { 0 }, || {
        let image = if is_copy {
            Operations::new().run_on_gpu(image)?
        } else {
            image.clone()
        };
        Ok((image.address(reader)?, image))
    })?;
    let (address, owner) = lent.map_err(|error| crate::errors::exception(&error))?;
    let lent = dlpack::Lent {
        data: std::ptr::without_provenance(address as usize),
        sample_type: owner.sample_type(),
        owner: std::sync::Arc::new(runtime::OfProcess::new(owner)),
        shape,
        device: own,
        is_copy,
        is_writable: true,
    };
    lent.into_capsule(py, is_versioned)
}

/// An array of another library, with bytes for strides.
struct Foreign {
    address: u64,
    sides: Vec<usize>,
    strides: Vec<i64>,
    sample_type: Option<SampleType>,
    stream: Option<usize>,
}

impl Foreign {
    /// The array of an object with `__dlpack__`, the number of its GPU, and what lends it.
    fn of_dlpack<'py>(
        object: &Bound<'py, PyAny>,
        stream: Option<usize>,
    ) -> PyResult<(Foreign, usize, Option<dlpack::Borrowed<'py>>)> {
        let stream = stream.unwrap_or(DEFAULT_STREAM);
        let tensor = dlpack::borrow(object, stream)?;
        let item = tensor.sample_type.map_or(1, SampleType::bytes) as i64;
        let strides = tensor.strides.iter().map(|stride| stride * item).collect();
        let array = Foreign {
            address: tensor.address,
            sides: tensor.sides.clone(),
            strides,
            sample_type: tensor.sample_type,
            stream: Some(stream),
        };
        Ok((array, tensor.gpu, Some(tensor)))
    }

    /// The array that receives a result, and what lends it.
    fn of_out<'py>(
        out: &Bound<'py, PyAny>,
        stream: Option<usize>,
    ) -> PyResult<(Foreign, Option<dlpack::Borrowed<'py>>)> {
        let read_only = || argument("out is read-only");
        if out.cast::<Image>().is_ok() {
            return Err(read_only());
        }
        // DLPack says that memory is read-only since version 1.0 alone, and libraries whose arrays never change have this interface, too.
        let interface = out.getattr("__cuda_array_interface__").ok();
        if let Some(interface) = &interface {
            let data = interface.get_item("data")?;
            if data.get_item(1)?.extract()? {
                return Err(read_only());
            }
        }
        if out.hasattr("__dlpack_device__")? {
            let device = out.call_method0("__dlpack_device__")?.extract()?;
            if dlpack::gpu_of(device).is_some() {
                let (array, _, lent) = Foreign::of_dlpack(out, stream)?;
                return Ok((array, lent));
            }
        } else if let Some(interface) = interface {
            let array = Foreign::of_interface(interface.cast::<PyDict>()?, stream)?;
            return Ok((array, None));
        }
        Err(argument(
            "the result is in the memory of a GPU, and so must be out: pass a tensor of PyTorch or an array of CuPy there, or process \
             image.cpu()",
        ))
    }

    /// The array of a `__cuda_array_interface__`, version 2 or 3 (Numba's documentation, "CUDA Array Interface").
    fn of_interface(interface: &Bound<PyDict>, stream: Option<usize>) -> PyResult<Foreign> {
        let item = |name: &str| -> PyResult<Bound<PyAny>> {
            let item = interface.get_item(name)?;
            item.ok_or_else(|| argument(format!("__cuda_array_interface__ has no {name}")))
        };
        let optional = |name: &str| -> PyResult<Option<Bound<PyAny>>> {
            let item = interface.get_item(name)?;
            Ok(item.filter(|item| !item.is_none()))
        };
        let sides: Vec<usize> = item("shape")?.extract()?;
        let (address, _): (u64, bool) = item("data")?.extract()?;
        let type_name: String = item("typestr")?.extract()?;
        let sample_type = type_of_interface(&type_name);
        let strides = match optional("strides")? {
            Some(strides) => strides.extract()?,
            None => {
                let mut stride = sample_type.map_or(1, SampleType::bytes) as i64;
                let mut strides = Vec::new();
                for side in sides.iter().rev() {
                    strides.insert(0, stride);
                    stride *= *side as i64;
                }
                strides
            }
        };
        let stream = match stream {
            None => optional("stream")?
                .map(|stream| stream.extract())
                .transpose()?,
            given => given,
        };
        Ok(Foreign {
            address,
            sides,
            strides,
            sample_type,
            stream,
        })
    }

    /// The array for the library.
    fn array(&self) -> PyResult<GpuArray> {
        let Some(sample_type) = self.sample_type else {
            return Err(argument(
                "samples of this type are not supported: convert them to uint8, int8, uint16, int16, uint32, int32, float32 or float64",
            ));
        };
        let item = sample_type.bytes() as i64;
        let (sides, strides) = match (&self.sides[..], &self.strides[..]) {
            (&[height, width], &[down, across]) => ([height, width, 1], [down, across, item]),
            (&[height, width, channels], &[down, across, deep]) => {
                ([height, width, channels], [down, across, deep])
            }
            _ => return Err(not_an_image(self.sides.len())),
        };
        Ok(GpuArray {
            address: self.address,
            sides,
            strides: strides.map(|stride| stride as isize),
            sample_type,
            stream: self.stream,
        })
    }

    /// A copy on the GPU with this number. The array must live while this runs.
    fn copy(&self, py: Python, gpu: usize) -> PyResult<GpuImage> {
        let array = self.array()?;
        let device: Device = runtime::current().gpu(gpu)?;
        let copied = runtime::run(py, usize::MAX, || {
            // SAFETY: the object that lends the array exists during this call, and so does the stream that it names.
            unsafe { GpuImage::copy_array(&array, &device) }
        })?;
        copied.or_raise()
    }

    /// Writes the samples of an image to the array, which must live while this runs.
    fn store(&self, py: Python, image: &GpuImage) -> PyResult<()> {
        let array = self.array()?;
        let (shape, wanted) = (image.shape(), image.sample_type());
        crate::array::check_out(array.sides, array.sample_type, shape, wanted).map_err(argument)?;
        let stored = runtime::run(py, usize::MAX, || {
            // SAFETY: the object that lends the array exists during this call, and so does the stream that it names. The image is the
            // result of operations, which nobody else has.
            unsafe { image.copy_to(&array) }
        })?;
        stored.or_raise()
    }
}

fn not_an_image(dimensions: usize) -> PyErr {
    argument(format!(
        "an image is an array of height × width or height × width × channels, not of {dimensions} dimensions"
    ))
}

/// The `__cuda_array_interface__` of an image.
pub fn interface<'py>(
    py: Python<'py>,
    image: &GpuImage,
    shape: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyDict>> {
    use SampleType::{F32, F64, I8, I16, I32, U8, U16, U32};
    let type_name = match image.sample_type() {
        U8 => "|u1",
        I8 => "|i1",
        U16 => "<u2",
        I16 => "<i2",
        U32 => "<u4",
        I32 => "<i4",
        F32 => "<f4",
        F64 => "<f8",
        other => return Err(argument(format!("samples of {other} have no array"))),
    };
    // All work on the image has ended, so that there is no stream to wait for.
    let address = runtime::run(py, 0, || image.address(gpuimg::GpuReader::AnyStream))?;
    let address = address.map_err(|error| crate::errors::exception(&error))?;
    let interface = PyDict::new(py);
    interface.set_item("shape", shape)?;
    interface.set_item("typestr", type_name)?;
    interface.set_item("data", (address, false))?;
    interface.set_item("strides", py.None())?;
    interface.set_item("stream", py.None())?;
    interface.set_item("version", 3)?;
    Ok(interface)
}
