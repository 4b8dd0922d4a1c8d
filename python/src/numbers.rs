//! Sums and histograms.

use crate::array::Input;
use crate::errors::OrRaise;
use crate::image::lend;
use crate::runtime;
use gpuimg::{ChannelSum, SumValue};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyTuple};
use pyo3::{IntoPyObjectExt, ffi};
use std::ffi::c_int;

/// The sums of all colours and of each channel, as tuples of name, sum, minimum, maximum and mean.
#[pyfunction]
pub fn sum<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    nan: Option<f64>,
    device: &str,
) -> PyResult<(Bound<'py, PyTuple>, Vec<Bound<'py, PyTuple>>)> {
    let sums = if let Some(image) = crate::gpu::image_for(image, device, None)? {
        runtime::run(py, image.shape().bytes(), || image.sum(nan))?
    } else {
        let (input, device) = (Input::new(image)?, runtime::current().device(device)?);
        runtime::run(py, input.bytes(), || match nan {
            Some(nan) => gpuimg::sum_with(input.load()?, nan, &device),
            None => gpuimg::sum(input.load()?, &device),
        })?
    };
    let sums = sums.or_raise()?;
    let fields = |it: &ChannelSum| {
        let sum = match it.sum {
            SumValue::Whole(sum) => whole(py, sum)?,
            SumValue::Real(sum) => sum.into_bound_py_any(py)?,
        };
        (it.name, sum, it.min, it.max, it.mean).into_pyobject(py)
    };
    let channels = sums.channels.iter().map(fields);
    Ok((fields(&sums.total)?, channels.collect::<PyResult<_>>()?))
}

/// A number of Python.
fn whole(py: Python<'_>, sum: i128) -> PyResult<Bound<'_, PyAny>> {
    match i64::try_from(sum) {
        Ok(sum) => sum.into_bound_py_any(py),
        Err(_) => py
            .get_type::<pyo3::types::PyInt>()
            .call1((sum.to_string(),)),
    }
}

/// The first value, and the counts as a view of channels × values.
#[pyfunction]
pub fn histogram<'py>(
    py: Python<'py>,
    image: &Bound<'py, PyAny>,
    device: &str,
) -> PyResult<(i32, Bound<'py, PyMemoryView>)> {
    let histogram = if let Some(image) = crate::gpu::image_for(image, device, None)? {
        runtime::run(py, image.shape().bytes(), || image.histogram())?
    } else {
        let (input, device) = (Input::new(image)?, runtime::current().device(device)?);
        runtime::run(py, input.bytes(), || {
            gpuimg::histogram(input.load()?, &device)
        })?
    };
    let histogram = histogram.or_raise()?;
    let channels = histogram.channels();
    let values = histogram.counts(0).len();
    let counts = (0..channels).flat_map(|channel| histogram.counts(channel));
    let counts = Counts {
        bytes: counts.flat_map(|count| count.to_ne_bytes()).collect(),
        sides: [channels as isize, values as isize],
        strides: [8 * values as isize, 8],
    };
    let counts = Bound::new(py, counts)?.into_any();
    Ok((histogram.first_value(), PyMemoryView::from(&counts)?))
}

/// Counts of channels × values, which views share.
#[pyclass(frozen)]
struct Counts {
    bytes: Vec<u8>,
    sides: [isize; 2],
    strides: [isize; 2],
}

#[pymethods]
impl Counts {
    unsafe fn __getbuffer__(
        slf: Bound<Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let counts = slf.get();
        let owner = slf.clone().into_any();
        // SAFETY: the counts do not move or change while they have owners, and the view is one.
        unsafe {
            lend(
                owner,
                view,
                flags,
                &counts.bytes,
                c"Q",
                &counts.sides,
                &counts.strides,
            )
        }
    }
}
