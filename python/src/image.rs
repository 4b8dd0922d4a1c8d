//! `gpuimg.Image`: an image that lends its samples to Python through the buffer protocol.

use crate::array::{Input, cast};
use crate::dlpack;
use crate::errors::{OrRaise, argument};
use crate::metadata::Metadata;
use gpuimg::{Report, SampleType};
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyTuple};
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
#[pyclass(frozen, module = "gpuimg")]
pub struct Image {
    image: Arc<gpuimg::Image>,
    /// The samples as Python has them, if the library stores them in another form.
    converted: OnceLock<Arc<Vec<u8>>>,
    /// The report of the operations, if the image lost it in a conversion.
    report: Option<Report>,
    /// Height, width and channels, and the bytes from one to the next; views point to them.
    sides: [isize; 3],
    strides: [isize; 3],
}

/// The address of the first sample of an image.
struct Address(*const u8);

// SAFETY: it is only an address.
unsafe impl Send for Address {}

/// The number of dimensions, which grey images have two of.
fn dimensions(image: &gpuimg::Image) -> usize {
    if image.channels() == 1 { 2 } else { 3 }
}

impl Image {
    /// An image of the library.
    pub fn new(image: gpuimg::Image) -> Image {
        let shape = image.shape();
        let item = image.sample_type().bytes();
        let pixel = shape.channels * item;
        let sides = [shape.height, shape.width, shape.channels];
        let strides = [shape.width * pixel, pixel, item];
        Image {
            image: Arc::new(image),
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

    /// The image of the library.
    pub fn engine(&self) -> Arc<gpuimg::Image> {
        self.image.clone()
    }

    fn report(&self) -> &Report {
        self.report.as_ref().unwrap_or_else(|| self.image.report())
    }

    /// The samples as Python has them.
    fn samples(&self) -> &[u8] {
        if let Some(converted) = self.converted.get() {
            return converted;
        }
        let converted = match self.image.to_bytes() {
            Cow::Borrowed(samples) => return samples,
            Cow::Owned(samples) => samples,
        };
        self.converted.get_or_init(|| Arc::new(converted))
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
        PyTuple::new(py, &self.sides[..dimensions(&self.image)])
    }

    /// 2 for a grey image, otherwise 3.
    #[getter]
    fn ndim(&self) -> usize {
        dimensions(&self.image)
    }

    /// The name of the sample type in NumPy, such as "uint16".
    #[getter]
    fn dtype(&self) -> &'static str {
        type_name(self.image.sample_type())
    }

    /// "yx" for a grey image, "yxc" if pixels have channels.
    #[getter]
    fn axes(&self) -> &'static str {
        &"yxc"[..dimensions(&self.image)]
    }

    /// Pixels in a row.
    #[getter]
    fn width(&self) -> usize {
        self.image.width()
    }

    /// Rows.
    #[getter]
    fn height(&self) -> usize {
        self.image.height()
    }

    /// Samples in a pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    #[getter]
    fn channels(&self) -> usize {
        self.image.channels()
    }

    /// Bytes of all samples.
    #[getter]
    fn nbytes(&self) -> usize {
        self.image.shape().bytes()
    }

    /// The metadata.
    #[getter]
    fn metadata(&self) -> Metadata {
        Metadata {
            fields: self.image.metadata(),
        }
    }

    /// The file that it was read from, also after operations; None for an array.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.image.path().map(PathBuf::from)
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

    fn __eq__(&self, other: &Bound<PyAny>) -> bool {
        let other = other.cast::<Image>();
        other.is_ok_and(|other| *other.get().image == *self.image)
    }

    fn __repr__(&self) -> String {
        let shape = self.image.shape();
        let path = self
            .path()
            .map_or(String::new(), |path| format!(" {path:?}"));
        let dtype = self.dtype();
        format!(
            "<gpuimg.Image{path} {}×{} {} {dtype}>",
            shape.width,
            shape.height,
            shape.kind()
        )
    }

    /// What notebooks show: a small image with adjusted contrast, as the bytes of a PNG; None if it cannot be made, as with NaN.
    fn _repr_png_<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        crate::calls::preview_png(py, &self.image)
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

    /// (1, 0): the image is in host memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    /// The samples for ``from_dlpack`` of NumPy, PyTorch, JAX and others, without a copy and read-only. Receivers before DLPack 1.0
    /// cannot know that, so that they get a copy, as with ``copy=True``.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        dlpack::check_receiver(stream, dl_device)?;
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if !versioned && copy == Some(false) {
            return Err(PyBufferError::new_err(
                "images are read-only, which DLPack can say since version 1.0: pass max_version=(1, 0), or leave copy=False out",
            ));
        }
        let is_copy = copy == Some(true) || !versioned;
        let count = dimensions(&self.image);
        let lend = || {
            // Words, so that samples of any type are aligned.
            let mut words = Vec::new();
            if is_copy {
                words = vec![0u64; self.image.shape().bytes().div_ceil(8)];
                let room = words.as_mut_ptr().cast::<u8>();
                // SAFETY: the words have at least as many bytes, and nothing else refers to them.
                self.image.copy_bytes(unsafe {
                    slice::from_raw_parts_mut(room, self.image.shape().bytes())
                });
            }
            let data = if is_copy {
                words.as_ptr().cast()
            } else {
                self.samples().as_ptr()
            };
            let owner: Arc<dyn Send + Sync> = match self.converted.get() {
                _ if is_copy => Arc::new(words),
                Some(converted) => converted.clone(),
                None => self.image.clone(),
            };
            (Address(data), owner)
        };
        let bytes = if is_copy { self.nbytes() } else { 0 };
        let (Address(data), owner) = crate::runtime::run(py, bytes, lend)?;
        let lent = dlpack::Lent {
            data,
            owner,
            sample_type: self.image.sample_type(),
            shape: self.sides[..count]
                .iter()
                .map(|&side| side as i64)
                .collect(),
            is_copy,
        };
        lent.into_capsule(py, versioned)
    }

    unsafe fn __getbuffer__(
        slf: Bound<Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let image = slf.get();
        let format = letter(image.image.sample_type());
        let count = dimensions(&image.image);
        let sides = &image.sides[..count];
        let strides = &image.strides[..count];
        // SAFETY: the image does not move or change while it has owners, and the view is one.
        unsafe {
            lend(
                slf.clone().into_any(),
                view,
                flags,
                image.samples(),
                format,
                sides,
                strides,
            )
        }
    }

    /// Images are pickled as TIFF files, with the metadata that TIFF has a place for.
    fn __reduce__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let bytes = crate::calls::pickled(py, &slf.get().image)?;
        let decode = py.import("gpuimg._gpuimg")?.getattr("decode")?;
        (decode, (bytes,)).into_bound_py_any(py)
    }
}
