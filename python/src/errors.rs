//! The library's errors as the exceptions of `package/gpuimg/_errors.py`.

use pyo3::prelude::*;
use std::io::ErrorKind;

/// An exception of the module's own classes.
pub fn exception(error: &gpuimg::Error) -> PyErr {
    Python::attach(|py| {
        let kind = match error.io_kind() {
            Some(ErrorKind::NotFound) => "not found",
            Some(ErrorKind::AlreadyExists) => "exists",
            Some(ErrorKind::PermissionDenied) => "permission",
            Some(ErrorKind::OutOfMemory) => "memory",
            Some(_) => "other",
            None if error.is_gpu() => "device",
            None if error.path().is_none() => "argument",
            None => "other",
        };
        let fields = (
            kind,
            error.to_string(),
            error.path(),
            error.operation(),
            error.reason(),
        );
        make(py, fields).map_or_else(|failed| failed, PyErr::from_value)
    })
}

/// An exception for an argument that cannot be used.
pub fn argument(why: impl ToString) -> PyErr {
    Python::attach(|py| {
        let why = why.to_string();
        let none: Option<&str> = None;
        let fields = ("argument", &why, none, none, &why);
        make(py, fields).map_or_else(|failed| failed, PyErr::from_value)
    })
}

/// An exception for a device that cannot be used.
pub fn device(why: &str) -> PyErr {
    Python::attach(|py| {
        let none: Option<&str> = None;
        let fields = ("device", why, none, none, why);
        make(py, fields).map_or_else(|failed| failed, PyErr::from_value)
    })
}

fn make<'py>(
    py: Python<'py>,
    fields: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("gpuimg._errors")?.getattr("make")?.call1(fields)
}

/// The result of the library with exceptions for errors.
pub trait OrRaise<T> {
    /// Turns an error into an exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for gpuimg::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
