//! What this process keeps between calls: threads, devices, and operations that were parsed.
//!
//! Threads do not survive a fork, and a lock that another thread held is held for ever. So everything belongs to a process id, and a
//! child makes its own at its first call. What the parent had is left as it is.

use crate::errors::{argument, device};
use gpuimg::{Device, Operations};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{process, ptr};

/// Images with at most so many bytes are processed on the thread of the caller: to wake another one takes longer.
const SMALL: usize = 128 << 10;

/// The most operations that are kept after parsing.
const PARSED: usize = 256;

/// What a process keeps.
#[derive(Default)]
pub struct Runtime {
    id: u32,
    /// Whether it was forked from a process that had started a GPU, so that CUDA does not work in it.
    has_no_gpu: bool,
    threads: Mutex<Option<Arc<ThreadPool>>>,
    devices: Mutex<HashMap<String, Device>>,
    operations: Mutex<HashMap<String, Operations>>,
}

static CURRENT: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// A pool whose only thread is this one.
    static ALONE: OnceCell<Option<ThreadPool>> = const { OnceCell::new() };
}

/// What this process keeps.
pub fn current() -> &'static Runtime {
    let id = process::id();
    let found = CURRENT.load(Ordering::Acquire);
    // SAFETY: the pointer is null or comes from `Box::into_raw` below, and what it points to is never freed once it is stored.
    if let Some(kept) = unsafe { found.as_ref() }.filter(|kept| kept.id == id) {
        return kept;
    }
    let fresh = Box::into_raw(Box::new(Runtime {
        id,
        has_no_gpu: !found.is_null() && Device::gpu_was_started(),
        ..Runtime::default()
    }));
    match CURRENT.compare_exchange(found, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above.
        Ok(_) => unsafe { &*fresh },
        Err(_) => {
            // SAFETY: another thread was first, so that nobody else has this pointer.
            drop(unsafe { Box::from_raw(fresh) });
            current()
        }
    }
}

impl Runtime {
    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The threads for large images.
    pub fn threads(&self) -> PyResult<Arc<ThreadPool>> {
        let mut threads = lock(&self.threads);
        if let Some(pool) = &*threads {
            return Ok(pool.clone());
        }
        let pool = start(0)?;
        *threads = Some(pool.clone());
        Ok(pool)
    }

    /// The device with this name.
    pub fn device(&self, name: &str) -> PyResult<Device> {
        let mut devices = lock(&self.devices);
        if let Some(device) = devices.get(name) {
            return Ok(device.clone());
        }
        if name.starts_with("cuda") {
            return Err(argument(
                "device=\"cuda\" is not supported here: the result is in host memory. Use \"gpu\" or \"gpu:N\" to process images on a GPU",
            ));
        }
        let device: gpuimg::Result<Device> = name.parse();
        let mut device = device.map_err(|error| argument(format!("device={name:?}: {error}")))?;
        if self.has_no_gpu {
            match name {
                "cpu" => {}
                "auto" => device = Device::cpu(),
                _ => return Err(forked()),
            }
        }
        devices.insert(name.into(), device.clone());
        Ok(device)
    }

    /// Where images are processed, and whether they stay there.
    pub fn place(&self, name: &str) -> PyResult<Place> {
        let number = match name.strip_prefix("cuda") {
            None => return self.device(name).map(Place::Host),
            Some("") => Some(0),
            Some(number) => number.strip_prefix(':').and_then(|it| it.parse().ok()),
        };
        let number = number.ok_or_else(|| {
            argument(format!(
                "device={name:?}: expected auto, cpu, gpu, gpu:N, cuda or cuda:N"
            ))
        })?;
        self.gpu(number).map(Place::Gpu)
    }

    /// The GPU with this number, which keeps images in its memory.
    pub fn gpu(&self, number: usize) -> PyResult<Device> {
        self.device(&format!("gpu:{number}"))
    }

    /// The operations with this key, which `parse` makes if they are not kept yet.
    pub fn operations(
        &self,
        key: &str,
        parse: impl FnOnce() -> PyResult<Operations>,
    ) -> PyResult<Operations> {
        if let Some(operations) = lock(&self.operations).get(key) {
            return Ok(operations.clone());
        }
        let operations = parse()?;
        let mut kept = lock(&self.operations);
        if kept.len() >= PARSED {
            kept.clear();
        }
        kept.insert(key.into(), operations.clone());
        Ok(operations)
    }
}

/// Where images are processed.
pub enum Place {
    /// On a device, with the result in host memory.
    Host(Device),
    /// On a GPU, with the result in its memory.
    Gpu(Device),
}

/// A value that only the process that made it drops: CUDA does not work in one that was forked from it.
pub struct OfProcess<T> {
    value: ManuallyDrop<T>,
    process: u32,
}

impl<T> OfProcess<T> {
    /// A value of this process.
    pub fn new(value: T) -> OfProcess<T> {
        OfProcess {
            value: ManuallyDrop::new(value),
            process: process::id(),
        }
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process == process::id() {
            // SAFETY: it is dropped only here.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

fn forked() -> PyErr {
    device(
        "this process was forked after a GPU had been started, and CUDA does not work in it: start processes with \
         multiprocessing.get_context(\"spawn\") (DataLoader: multiprocessing_context=\"spawn\"), or use device=\"cpu\"",
    )
}

/// Runs work on an image of so many bytes without the interpreter's lock, on the threads of this process.
pub fn run<R: Send>(py: Python, bytes: usize, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    if bytes > SMALL {
        let threads = current().threads()?;
        return Ok(py.detach(|| threads.install(work)));
    }
    ALONE.with(|alone| {
        let pool = alone.get_or_init(|| alone_pool(1));
        match pool {
            Some(pool) => Ok(py.detach(|| pool.install(work))),
            None => {
                let threads = current().threads()?;
                Ok(py.detach(|| threads.install(work)))
            }
        }
    })
}

/// A pool of this thread and others, so many in all; `None` if this thread belongs to a pool already.
pub fn alone_pool(threads: usize) -> Option<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads);
    pool.use_current_thread().build().ok()
}

fn start(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let pool = ThreadPoolBuilder::new().num_threads(threads);
    let pool = pool.thread_name(|index| format!("gpuimg-{index}")).build();
    pool.map(Arc::new)
        .map_err(|error| argument(format!("cannot start threads: {error}")))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Set how many threads process images, from now on; by default as many as this process has cores.
///
/// Small images (up to 128 KiB) are always processed on the calling thread.
#[pyfunction]
#[pyo3(text_signature = "(n)")]
pub fn set_threads(py: Python, n: usize) -> PyResult<()> {
    let threads = NonZeroUsize::new(n);
    let threads = threads.ok_or_else(|| argument("the number of threads is 1 or more, not 0"))?;
    let pool = py.detach(|| start(threads.get()))?;
    *lock(&current().threads) = Some(pool);
    Ok(())
}
