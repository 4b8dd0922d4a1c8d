//! `gpuimg.stream`: images of many files, in order, read ahead by workers.

use crate::calls::{Reading, Wanted, read_and_run};
use crate::errors::argument;
use crate::image::{Image, Refused, named_type};
use crate::runtime::{self, Place};
use gpuimg::{Operations, ReadOptions, SampleType};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a waiting iterator asks the interpreter for signals.
const SIGNALS: Duration = Duration::from_millis(50);

/// What the workers do.
struct Job {
    options: ReadOptions,
    operations: Operations,
    dtype: Option<SampleType>,
    place: Place,
}

/// Files to read and images that were read, each with its place in the order.
#[derive(Default)]
struct Queue {
    files: VecDeque<(usize, PathBuf)>,
    images: BTreeMap<usize, Result<Image, Refused>>,
    /// Whether nobody wants more images.
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        let waited = self.changed.wait_timeout(queue, SIGNALS);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reads one file after another, until the queue is closed.
    fn work(&self, job: &Job) {
        loop {
            let mut queue = self.lock();
            let (index, path) = loop {
                if queue.closed {
                    return;
                }
                match queue.files.pop_front() {
                    Some(file) => break file,
                    None => queue = self.wait(queue),
                }
            };
            drop(queue);
            let Job {
                options,
                operations,
                dtype,
                place,
            } = job;
            let work = || read_and_run(&path, options, operations, *dtype, place);
            let image = panic::catch_unwind(AssertUnwindSafe(work));
            let image = image.unwrap_or(Err(Refused::Failed(path)));
            self.lock().images.insert(index, image);
            self.changed.notify_all();
        }
    }
}

/// The images of many files, in order.
#[pyclass(module = "gpuimg")]
pub struct Stream {
    shared: Arc<Shared>,
    /// The paths that were not asked for yet; None after the last.
    paths: Option<Py<PyIterator>>,
    /// The most files that are read ahead.
    window: usize,
    batch: Option<usize>,
    returns_errors: bool,
    asked: usize,
    given: usize,
    process: u32,
}

/// Reads many files ahead, in order.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python's arguments")]
pub fn stream(
    paths: &Bound<PyAny>,
    wanted: Wanted,
    reading: Reading,
    dtype: Option<&str>,
    device: &str,
    batch: Option<usize>,
    workers: Option<usize>,
    errors: &str,
) -> PyResult<Stream> {
    let runtime = runtime::current();
    if batch == Some(0) || workers == Some(0) {
        return Err(argument("batch and workers are 1 or more, not 0"));
    }
    let returns_errors = match errors {
        "raise" => false,
        "return" => true,
        _ => {
            return Err(argument(format!(
                "errors is \"raise\" or \"return\", not {errors:?}"
            )));
        }
    };
    let job = Arc::new(Job {
        options: reading.options()?,
        operations: wanted.operations()?,
        dtype: named_type(dtype)?,
        place: runtime.place(device)?,
    });
    let cores = runtime.threads()?.current_num_threads();
    let workers = workers.unwrap_or(cores);
    let shared = Arc::new(Shared::default());
    let stream = Stream {
        shared: shared.clone(),
        paths: Some(paths.try_iter()?.unbind()),
        window: 2 * workers + batch.unwrap_or(0),
        batch,
        returns_errors,
        asked: 0,
        given: 0,
        process: runtime.id(),
    };
    for number in 0..workers {
        let (shared, job) = (shared.clone(), job.clone());
        let work = move || {
            // The threads of each worker: with many workers its own alone.
            let pool = runtime::alone_pool((cores / workers).max(1));
            match pool {
                Some(pool) => pool.install(|| shared.work(&job)),
                None => shared.work(&job),
            }
        };
        let started = thread::Builder::new()
            .name(format!("gpuimg-stream-{number}"))
            .spawn(work);
        started.map_err(|error| argument(format!("cannot start a worker: {error}")))?;
    }
    Ok(stream)
}

impl Stream {
    /// Gives the workers as many files as may be read ahead.
    fn ask(&mut self, py: Python) -> PyResult<()> {
        while self.asked < self.given + self.window {
            let Some(paths) = &self.paths else { break };
            let Some(path) = paths.bind(py).clone().next() else {
                self.paths = None;
                break;
            };
            let file = (self.asked, path?.extract()?);
            self.asked += 1;
            self.shared.lock().files.push_back(file);
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// The next image; None after the last.
    fn next_image<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.ask(py)?;
        if self.given == self.asked {
            return Ok(None);
        }
        let (shared, index) = (&self.shared, self.given);
        let image = loop {
            let image = py.detach(|| {
                let mut queue = shared.lock();
                if !queue.images.contains_key(&index) {
                    queue = shared.wait(queue);
                }
                queue.images.remove(&index)
            });
            if let Some(image) = image {
                break image;
            }
            py.check_signals()?;
        };
        self.given += 1;
        // The workers continue while the caller is busy with this image.
        self.ask(py)?;
        match image.map_err(PyErr::from) {
            Ok(image) => Ok(Some(image.into_bound_py_any(py)?)),
            Err(error) if self.returns_errors => {
                Ok(Some(error.into_value(py).into_bound(py).into_any()))
            }
            Err(error) => Err(error),
        }
    }
}

#[pymethods]
impl Stream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.process != runtime::current().id() {
            return Err(PyRuntimeError::new_err(
                "this stream belongs to the process that was forked: make another one after the fork",
            ));
        }
        let Some(batch) = self.batch else {
            return self.next_image(py);
        };
        let mut images = Vec::new();
        while images.len() < batch {
            match self.next_image(py)? {
                Some(image) => images.push(image),
                None => break,
            }
        }
        if images.is_empty() {
            return Ok(None);
        }
        Ok(Some(PyList::new(py, images)?.into_any()))
    }
}

/// The workers finish the files that they have begun.
impl Drop for Stream {
    fn drop(&mut self) {
        if self.process == runtime::current().id() {
            self.shared.lock().closed = true;
            self.shared.changed.notify_all();
        }
    }
}
