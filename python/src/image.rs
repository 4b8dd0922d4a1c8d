//! `gpuimg.Image`: an image that lends its samples to Python through the buffer protocol.

use crate::array::{Input, cast};
use crate::dlpack;
use crate::errors::{OrRaise, argument};
use crate::metadata::Metadata;
use crate::runtime::OfProcess;
use gpuimg::{GpuImage, Report, SampleType, Shape};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyTuple};
use pyo3::{IntoPyObjectExt, ffi};
use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::{ptr, slice};

/// An image: its samples, and the metadata of its file.
///
/// It has the buffer protocol: ``numpy.asarray(image)`` is an array of shape (height, width) for grey images and
/// (height, width, channels) for others, of dtype uint8, int8, uint16, int16, uint32, int32, float32 or float64. The array is
/// read-only and shares the memory of the image, which it keeps alive; ``numpy.array(image)`` is a copy that can be changed.
///
/// An image in the memory of a GPU (``device="cuda"``) has ``__dlpack__`` and ``__cuda_array_interface__`` instead:
/// ``torch.from_dlpack(image)`` and ``cupy.from_dlpack(image)`` copy nothing. ``image.cpu()`` is the image in host memory.
#[pyclass(frozen, module = "gpuimg")]
pub struct Image {
    pixels: Pixels,
    /// The samples as Python has them, if the library stores them in another form.
    converted: OnceLock<Arc<Vec<u8>>>,
    /// The report of the operations, if the image lost it in a conversion.
    report: Option<Report>,
    /// Height, width and channels, and the bytes from one to the next; views point to them.
    sides: [isize; 3],
    strides: [isize; 3],
}

/// Where the samples of an image are.
pub enum Pixels {
    /// In host memory.
    Host(Arc<gpuimg::Image>),
    /// In the memory of a GPU.
    Gpu(OfProcess<GpuImage>),
}

/// The address of the first sample of an image.
struct Address(*const u8);

// SAFETY: it is only an address.
unsafe impl Send for Address {}

impl Image {
    /// An image of the library.
    pub fn new(image: gpuimg::Image) -> Image {
        let (shape, sample_type) = (image.shape(), image.sample_type());
        Image::of_pixels(Pixels::Host(Arc::new(image)), shape, sample_type)
    }

    /// An image in the memory of a GPU.
    pub fn on_gpu(image: GpuImage) -> Image {
        let (shape, sample_type) = (image.shape(), image.sample_type());
        Image::of_pixels(Pixels::Gpu(OfProcess::new(image)), shape, sample_type)
    }

    fn of_pixels(pixels: Pixels, shape: Shape, sample_type: SampleType) -> Image {
        let item = sample_type.bytes();
        let pixel = shape.channels * item;
        let sides = [shape.height, shape.width, shape.channels];
        let strides = [shape.width * pixel, pixel, item];
        Image {
            pixels,
            converted: OnceLock::new(),
            report: None,
            sides: sides.map(|side| side as isize),
            strides: strides.map(|stride| stride as isize),
        }
    }

    /// An image of the library, converted to the type that was asked for, with samples of its own. Call it where work may take
    /// time.
    pub fn with_type(image: gpuimg::Image, wanted: Option<SampleType>) -> Result<Image, Refused> {
        let report = image.report().clone();
        let image = converted(image, wanted)?.detached()?;
        Ok(Image {
            report: Some(report),
            ..Image::new(image)
        })
    }

    /// Where the samples are.
    pub fn pixels(&self) -> &Pixels {
        &self.pixels
    }

    /// The image of the library.
    ///
    /// # Errors
    /// It is in the memory of a GPU.
    pub fn engine(&self) -> PyResult<&Arc<gpuimg::Image>> {
        match &self.pixels {
            Pixels::Host(image) => Ok(image),
            Pixels::Gpu(_) => Err(PyBufferError::new_err(
                "the image is in the memory of a GPU: image.cpu() copies it to host memory",
            )),
        }
    }

    /// The image of the library, copied if it is in the memory of a GPU.
    fn on_host(&self, py: Python) -> PyResult<Arc<gpuimg::Image>> {
        match &self.pixels {
            Pixels::Host(image) => Ok(image.clone()),
            Pixels::Gpu(image) => {
                let image = crate::runtime::run(py, image.shape().bytes(), || image.download())?;
                image.or_raise().map(Arc::new)
            }
        }
    }

    fn shape_of_pixels(&self) -> Shape {
        match &self.pixels {
            Pixels::Host(image) => image.shape(),
            Pixels::Gpu(image) => image.shape(),
        }
    }

    fn sample_type(&self) -> SampleType {
        match &self.pixels {
            Pixels::Host(image) => image.sample_type(),
            Pixels::Gpu(image) => image.sample_type(),
        }
    }

    /// The number of dimensions, which grey images have two of.
    fn dimensions(&self) -> usize {
        if self.shape_of_pixels().channels == 1 {
            2
        } else {
            3
        }
    }

    fn report(&self) -> &Report {
        self.report.as_ref().unwrap_or_else(|| match &self.pixels {
            Pixels::Host(image) => image.report(),
            Pixels::Gpu(image) => image.report(),
        })
    }

    /// The samples as Python has them.
    fn samples(&self) -> PyResult<&[u8]> {
        let image = self.engine()?;
        if let Some(converted) = self.converted.get() {
            return Ok(converted);
        }
        let converted = match image.to_bytes() {
            Cow::Borrowed(samples) => return Ok(samples),
            Cow::Owned(samples) => samples,
        };
        Ok(self.converted.get_or_init(|| Arc::new(converted)))
    }
}

/// An image of the library, converted to the type that was asked for.
pub fn converted(
    image: gpuimg::Image,
    wanted: Option<SampleType>,
) -> Result<gpuimg::Image, Refused> {
    let given = image.sample_type();
    match wanted.filter(|&wanted| wanted != given) {
        Some(wanted) => cast(image, wanted)?.ok_or(Refused::Type(given, wanted)),
        None => Ok(image),
    }
}

/// Why an image does not have the type that was asked for.
pub enum Refused {
    /// An error of the library.
    Error(gpuimg::Error),
    /// Not every value of the first type is one of the second.
    Type(SampleType, SampleType),
    /// The library failed on this file, which is a fault of its own.
    Failed(PathBuf),
}

impl From<gpuimg::Error> for Refused {
    fn from(error: gpuimg::Error) -> Refused {
        Refused::Error(error)
    }
}

impl From<Refused> for PyErr {
    fn from(refused: Refused) -> PyErr {
        match refused {
            Refused::Error(error) => crate::errors::exception(&error),
            Refused::Type(given, wanted) => argument(format!(
                "samples of {} are not converted to {}: dtype converts to types that hold every value. Use \
                 depth=8 or depth=16 to change the depth, and normalize to change the range",
                type_name(given),
                type_name(wanted)
            )),
            Refused::Failed(path) => {
                let why = format!("internal error: the worker that read {path:?} failed");
                PyRuntimeError::new_err(why)
            }
        }
    }
}

/// The names of the types in NumPy, and their letters in the buffer protocol.
const TYPES: [(SampleType, &str, &CStr); 8] = [
    (SampleType::U8, "uint8", c"B"),
    (SampleType::I8, "int8", c"b"),
    (SampleType::U16, "uint16", c"H"),
    (SampleType::I16, "int16", c"h"),
    (SampleType::U32, "uint32", c"I"),
    (SampleType::I32, "int32", c"i"),
    (SampleType::F32, "float32", c"f"),
    (SampleType::F64, "float64", c"d"),
];

fn type_name(wanted: SampleType) -> &'static str {
    let row = TYPES.iter().find(|row| row.0 == wanted);
    row.map_or("", |row| row.1)
}

fn letter(wanted: SampleType) -> &'static CStr {
    let row = TYPES.iter().find(|row| row.0 == wanted);
    row.map_or(c"B", |row| row.2)
}

/// The sample type with this name.
pub fn named_type(name: Option<&str>) -> PyResult<Option<SampleType>> {
    let Some(name) = name else { return Ok(None) };
    let row = TYPES.iter().find(|row| row.1 == name);
    let found = row.map(|row| Some(row.0));
    found.ok_or_else(|| {
        let names = TYPES.map(|row| row.1).join(", ");
        argument(format!(
            "there is no dtype '{name}': expected one of {names}"
        ))
    })
}

/// A view of contiguous memory that belongs to `owner`. The last stride is the size of a sample.
///
/// # Safety
/// `view` is what the interpreter passes to `__getbuffer__`. `sides`, `strides` and `samples` belong to `owner`, do not move, and do
/// not change.
pub unsafe fn lend(
    owner: Bound<PyAny>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
    samples: &[u8],
    format: &'static CStr,
    sides: &[isize],
    strides: &[isize],
) -> PyResult<()> {
    if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return Err(PyBufferError::new_err(
            "images are read-only: numpy.array(image) makes a copy that can be changed",
        ));
    }
    if flags & ffi::PyBUF_F_CONTIGUOUS == ffi::PyBUF_F_CONTIGUOUS {
        return Err(PyBufferError::new_err("images are stored row by row"));
    }
    let asked = |flag: c_int, array: &[isize]| {
        if flags & flag == flag {
            array.as_ptr().cast_mut()
        } else {
            ptr::null_mut()
        }
    };
    let filled = ffi::Py_buffer {
        obj: owner.into_ptr(),
        buf: samples.as_ptr().cast_mut().cast(),
        len: samples.len() as isize,
        itemsize: strides.last().copied().unwrap_or(1),
        readonly: 1,
        ndim: sides.len() as c_int,
        format: if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
            format.as_ptr().cast_mut()
        } else {
            ptr::null_mut()
        },
        shape: asked(ffi::PyBUF_ND, sides),
        strides: asked(ffi::PyBUF_STRIDES, strides),
        suboffsets: ptr::null_mut(),
        internal: ptr::null_mut(),
    };
    // SAFETY: the interpreter passes memory for a view.
    unsafe { view.write(filled) };
    Ok(())
}

#[pymethods]
impl Image {
    /// An image of an array (height × width, or height × width × 1 to 4 channels), with a copy of its samples.
    #[new]
    #[pyo3(signature = (array, *, metadata=None))]
    fn of_array(py: Python, array: &Bound<PyAny>, metadata: Option<&Metadata>) -> PyResult<Image> {
        let input = Input::new(array)?;
        let metadata = metadata.map(|metadata| metadata.fields.clone());
        let load = || {
            let mut image = input.copy()?;
            if let Some(metadata) = metadata {
                image.set_metadata(metadata);
            }
            Ok(image)
        };
        let image = crate::runtime::run(py, input.bytes(), load)?;
        image.or_raise().map(Image::new)
    }

    /// (height, width), or (height, width, channels).
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.sides[..self.dimensions()])
    }

    /// 2 for a grey image, otherwise 3.
    #[getter]
    fn ndim(&self) -> usize {
        self.dimensions()
    }

    /// The name of the sample type in NumPy, such as "uint16".
    #[getter]
    fn dtype(&self) -> &'static str {
        type_name(self.sample_type())
    }

    /// "yx" for a grey image, "yxc" if pixels have channels.
    #[getter]
    fn axes(&self) -> &'static str {
        &"yxc"[..self.dimensions()]
    }

    /// Pixels in a row.
    #[getter]
    fn width(&self) -> usize {
        self.shape_of_pixels().width
    }

    /// Rows.
    #[getter]
    fn height(&self) -> usize {
        self.shape_of_pixels().height
    }

    /// Samples in a pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    #[getter]
    fn channels(&self) -> usize {
        self.shape_of_pixels().channels
    }

    /// Bytes of all samples.
    #[getter]
    fn nbytes(&self) -> usize {
        self.shape_of_pixels().bytes()
    }

    /// The metadata.
    #[getter]
    fn metadata(&self) -> Metadata {
        let fields = match &self.pixels {
            Pixels::Host(image) => image.metadata(),
            Pixels::Gpu(image) => image.metadata(),
        };
        Metadata { fields }
    }

    /// The file that it was read from, also after operations; None for an array.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        let path = match &self.pixels {
            Pixels::Host(image) => image.path(),
            Pixels::Gpu(image) => image.path(),
        };
        path.map(PathBuf::from)
    }

    /// Sentences that change the meaning of the result; the program prints them.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.report().warnings.clone()
    }

    /// Metadata that were not kept, and faster ways that were not possible; the program prints them with --verbose.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.report().notes.clone()
    }

    /// Where the file is damaged, if it was read with keep_going=True; the samples there are 0.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.report().damage.clone()
    }

    /// The ranges that normalize scaled the values from: for each page one for all colours, or one for each channel.
    #[getter]
    fn ranges(&self) -> Vec<Vec<(f64, f64)>> {
        self.report().ranges.clone()
    }

    /// The device that ran the operations, and why it was chosen; "" if none ran.
    #[getter]
    fn device(&self) -> String {
        self.report().device.clone()
    }

    fn __eq__(&self, other: &Bound<PyAny>) -> PyResult<bool> {
        let py = other.py();
        match other.cast::<Image>() {
            Ok(other) => Ok(*other.get().on_host(py)? == *self.on_host(py)?),
            Err(_) => Ok(false),
        }
    }

    /// The image in host memory: a copy of one in the memory of a GPU.
    fn cpu(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let py = slf.py();
        match &slf.get().pixels {
            Pixels::Host(_) => Ok(slf),
            Pixels::Gpu(_) => {
                let image = gpuimg::Image::clone(&*slf.get().on_host(py)?);
                Bound::new(py, Image::new(image))
            }
        }
    }

    /// What arrays of CUDA have (CuPy, Numba, PyTorch); only images in the memory of a GPU have it.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.pixels {
            Pixels::Gpu(image) => crate::gpu::interface(py, image, self.shape(py)?),
            Pixels::Host(_) => Err(PyAttributeError::new_err("the image is in host memory")),
        }
    }

    fn __repr__(&self) -> String {
        let shape = self.shape_of_pixels();
        let path = self
            .path()
            .map_or(String::new(), |path| format!(" {path:?}"));
        let dtype = self.dtype();
        let place = match &self.pixels {
            Pixels::Host(_) => String::new(),
            Pixels::Gpu(image) => format!(" on cuda:{}", image.gpu_number()),
        };
        format!(
            "<gpuimg.Image{path} {}×{} {} {dtype}{place}>",
            shape.width,
            shape.height,
            shape.kind()
        )
    }

    /// What notebooks show: a small image with adjusted contrast, as the bytes of a PNG; None if it cannot be made, as with NaN.
    fn _repr_png_<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        crate::calls::preview_png(py, &*self.on_host(py)?)
    }

    /// A numpy array that shares the memory.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let view = PyMemoryView::from(&slf.into_any())?;
        let shared = py.import("numpy")?.call_method1("asarray", (view,))?;
        let same = match &dtype {
            Some(dtype) => shared.getattr("dtype")?.eq(dtype)?,
            None => true,
        };
        match (dtype, copy) {
            (Some(_), Some(false)) if !same => Err(argument("another dtype needs a copy")),
            (Some(dtype), _) if !same => shared.call_method1("astype", (dtype,)),
            (_, Some(true)) => shared.call_method0("copy"),
            _ => Ok(shared),
        }
    }

    /// (1, 0) for an image in host memory, (2, N) for one in the memory of GPU N.
    fn __dlpack_device__(&self) -> (i32, i32) {
        match &self.pixels {
            Pixels::Host(_) => dlpack::CPU,
            Pixels::Gpu(image) => dlpack::gpu(image.gpu_number()),
        }
    }

    /// The samples for ``from_dlpack`` of NumPy, PyTorch, JAX and others, without a copy and read-only. Receivers before DLPack 1.0
    /// cannot know that, so that they get a copy, as with ``copy=True``. Those of an image in the memory of a GPU are not copied, and
    /// can be changed. The memory stays in use until the work that is queued on ``stream`` when the tensor is freed has ended.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        let count = self.dimensions();
        let shape = self.sides[..count].iter().map(|&side| side as i64);
        let image = match &self.pixels {
            Pixels::Host(image) => image,
            Pixels::Gpu(image) => {
                let forms = (versioned, copy == Some(true));
                return crate::gpu::lend(py, image, shape.collect(), stream, dl_device, forms);
            }
        };
        dlpack::check_receiver(stream, dl_device)?;
        if !versioned && copy == Some(false) {
            return Err(PyBufferError::new_err(
                "images are read-only, which DLPack can say since version 1.0: pass max_version=(1, 0), or leave copy=False out",
            ));
        }
        let is_copy = copy == Some(true) || !versioned;
        let lend = || {
            // Words, so that samples of any type are aligned.
            let mut words = Vec::new();
            if is_copy {
                words = vec![0u64; image.shape().bytes().div_ceil(8)];
                let room = words.as_mut_ptr().cast::<u8>();
                // SAFETY: the words have at least as many bytes, and nothing else refers to them.
                image.copy_bytes(unsafe { slice::from_raw_parts_mut(room, image.shape().bytes()) });
            }
            let data = if is_copy {
                words.as_ptr().cast()
            } else {
                self.samples()?.as_ptr()
            };
            let owner: Arc<dyn Send + Sync> = match self.converted.get() {
                _ if is_copy => Arc::new(words),
                Some(converted) => converted.clone(),
                None => image.clone(),
            };
            Ok::<_, PyErr>((Address(data), owner))
        };
        let bytes = if is_copy { self.nbytes() } else { 0 };
        let (Address(data), owner) = crate::runtime::run(py, bytes, lend)??;
        let lent = dlpack::Lent {
            data,
            owner,
            sample_type: self.sample_type(),
            shape: shape.collect(),
            device: dlpack::CPU,
            is_copy,
            is_writable: is_copy,
        };
        lent.into_capsule(py, versioned)
    }

    unsafe fn __getbuffer__(
        slf: Bound<Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let image = slf.get();
        let samples = image.samples()?;
        let format = letter(image.sample_type());
        let count = image.dimensions();
        let sides = &image.sides[..count];
        let strides = &image.strides[..count];
        // SAFETY: the image does not move or change while it has owners, and the view is one.
        unsafe {
            lend(
                slf.clone().into_any(),
                view,
                flags,
                samples,
                format,
                sides,
                strides,
            )
        }
    }

    /// Images are pickled as TIFF files, with the metadata that TIFF has a place for.
    fn __reduce__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let bytes = crate::calls::pickled(py, &*slf.get().on_host(py)?)?;
        let decode = py.import("gpuimg._gpuimg")?.getattr("decode")?;
        (decode, (bytes,)).into_bound_py_any(py)
    }
}
