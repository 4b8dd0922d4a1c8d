//! `gpuimg.process`: folders, with a result for each file.

use crate::calls::{Reading, Wanted, Writing};
use crate::errors::{OrRaise, argument, exception};
use crate::runtime;
use gpuimg::batch::{self, BatchOptions, FileResult, FileStatus};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Which files are processed, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Selection {
    include: Vec<String>,
    exclude: Vec<String>,
    name: Option<String>,
    jobs: Option<usize>,
    memory: Option<String>,
    resume: bool,
}

/// Processes files from `inputs` to `output`; calls `on_file` with the fields of each result.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn process(
    py: Python,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    wanted: Wanted,
    reading: Reading,
    writing: Writing,
    selection: Selection,
    device: &str,
    on_file: Py<PyAny>,
) -> PyResult<()> {
    let operations = wanted.operations()?;
    let mut options = BatchOptions::new()
        .device(runtime::current().device(device)?)
        .reading(reading.options()?)
        .writing(writing.options()?);
    for glob in &selection.include {
        options = options.include(glob);
    }
    for glob in &selection.exclude {
        options = options.exclude(glob);
    }
    if let Some(pattern) = &selection.name {
        options = options.name(pattern).or_raise()?;
    }
    if let Some(jobs) = selection.jobs {
        let jobs = NonZeroUsize::new(jobs);
        options = options.jobs(jobs.ok_or_else(|| argument("jobs is 1 or more, not 0"))?);
    }
    if let Some(memory) = &selection.memory {
        options = options.memory(memory).or_raise()?;
    }
    if selection.resume {
        options = options.resume();
    }
    let mut raised = None;
    // On this thread, so that the interpreter's signals arrive; the batch has threads of its own.
    let done = py.detach(|| {
        batch::process(&inputs, &output, &operations, &options, |file| {
            let called = Python::attach(|py| {
                on_file.call1(py, (fields(py, file)?,))?;
                py.check_signals()
            });
            match called {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    match raised {
        Some(error) => Err(error),
        None => done.or_raise().map(drop),
    }
}

/// The fields of a result.
fn fields<'py>(py: Python<'py>, file: &FileResult) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let set = |name: &str, value: Bound<'py, PyAny>| fields.set_item(name, value);
    let text = |value: &str| pyo3::types::PyString::new(py, value).into_any();
    set("input", file.input.as_path().into_pyobject(py)?.into_any())?;
    fields.set_item("output", file.output.as_deref())?;
    fields.set_item("finished", file.finished)?;
    fields.set_item("files", file.files)?;
    match &file.status {
        FileStatus::Done(report) => {
            set("status", text("done"))?;
            fields.set_item("warnings", &report.warnings)?;
            fields.set_item("notes", &report.notes)?;
            fields.set_item("damage", &report.damage)?;
            fields.set_item("ranges", &report.ranges)?;
        }
        FileStatus::Failed(error) => {
            set("status", text("failed"))?;
            fields.set_item("error", exception(error).into_value(py))?;
        }
        _ => set("status", text("skipped"))?,
    }
    Ok(fields)
}
