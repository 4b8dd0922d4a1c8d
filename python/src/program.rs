//! The program itself, for the command `gpuimg` of the wheel.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Run the program with these arguments, the name of the program first; returns the exit status.
///
/// It sets environment variables and handles signals, so call it first in a process, and end the process after it.
#[pyfunction]
pub fn main(py: Python, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        // SAFETY: the script of the wheel calls this before anything has started a thread.
        unsafe { gpuimg::cli::main_with(&arguments) }
    })
}
