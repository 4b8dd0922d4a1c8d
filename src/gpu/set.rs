//! The GPUs of a run: started in the background, at once where they are asked for, or by `auto` when they would save time.

use super::driver::Gpu;
use super::estimate::{WORKERS_OF_GPU, Work, saved_in_batch, worth_starting};
use super::{Choice, Unusable, visible};
use crate::os::panics::catch_panic;
use crate::timing::{self, Limit, Peaks, SetCounts, Timeline};
use anyhow::{Result, anyhow};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that opens the first GPU. Its outer error is the message of a panic.
type Starting = JoinHandle<Result<Result<Opened>, String>>;

/// The GPUs of this machine that a run may use, started once, in the background. The first is used while the others start.
#[derive(Debug)]
pub struct GpuSet {
    choice: Choice,
    /// The number that the driver gives to the first of them.
    first: usize,
    /// The most GPUs that are opened.
    max_gpus: usize,
    /// Prepares each GPU when it has been opened, before others use it.
    prepare: fn(&Gpu),
    /// The images that are still to come in a batch; 0 outside one.
    images: AtomicUsize,
    /// The workers of the batch, without helpers.
    workers: AtomicUsize,
    /// The bytes of samples per second that one core of the host decodes; 0 if not known. As the bits of an f64.
    rate: AtomicU64,
    starting: Mutex<Option<Starting>>,
    gpus: OnceLock<Result<Opened>>,
}

/// Whether this process has begun to start a GPU.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Whether this process, or one that it was forked from, has begun to start a GPU.
pub fn was_started() -> bool {
    STARTED.load(Ordering::Relaxed)
}

impl GpuSet {
    /// At most `max_gpus` GPUs for `choice`, each made ready by `prepare`; requested ones start at once.
    pub fn new(choice: Choice, max_gpus: usize, prepare: fn(&Gpu)) -> GpuSet {
        let gpus = GpuSet {
            first: visible::first(choice),
            max_gpus,
            prepare,
            ..GpuSet::idle(choice)
        };
        if let Choice::Gpu(_) = choice {
            gpus.start();
        }
        gpus
    }

    /// The GPUs for `choice`, none of which is started: for a plan.
    pub fn idle(choice: Choice) -> GpuSet {
        GpuSet {
            choice,
            first: choice.ordinal(),
            max_gpus: 1,
            prepare: |_| (),
            images: AtomicUsize::new(0),
            workers: AtomicUsize::new(1),
            rate: AtomicU64::default(),
            starting: Mutex::default(),
            gpus: OnceLock::new(),
        }
    }

    /// The same GPUs, not started yet, and no images expected.
    pub fn again(&self) -> GpuSet {
        GpuSet {
            first: self.first,
            max_gpus: self.max_gpus,
            prepare: self.prepare,
            ..GpuSet::idle(self.choice)
        }
    }

    /// Starts the GPUs in the background, unless they have been started.
    pub fn start(&self) {
        let Ok(mut starting) = self.starting.lock() else {
            return;
        };
        if starting.is_none() && self.gpus.get().is_none() {
            let GpuSet {
                choice,
                first,
                max_gpus,
                prepare,
                ..
            } = *self;
            let open = move || {
                let gpu = Gpu::open(first)?;
                prepare(&gpu);
                let count = match choice {
                    Choice::Gpu(Some(_)) => 1,
                    _ => Gpu::count().min(max_gpus),
                };
                Ok(Opened {
                    others: Others::start(count, prepare),
                    first: gpu,
                })
            };
            STARTED.store(true, Ordering::Relaxed);
            // The binding panics where a driver's library lacks functions.
            let thread = thread::Builder::new().name("gpu".into());
            *starting = thread.spawn(move || catch_panic(open)).ok();
        }
    }

    /// Announces that `images` are still to come for `workers`. With `auto` the GPUs start once they would save enough time on
    /// all of them.
    pub fn expect(&self, images: usize, workers: usize) {
        self.images.store(images, Ordering::Relaxed);
        self.workers.store(workers, Ordering::Relaxed);
    }

    /// Starts the GPUs if they would save enough time on the images to come, each with as much work as this one.
    pub(super) fn consider(&self, work: &Work) {
        let images = self.images.load(Ordering::Relaxed);
        let workers = self.workers.load(Ordering::Relaxed);
        if saved_in_batch(work, workers) * images as f64 > worth_starting(workers) {
            self.start();
        }
    }

    /// The bytes of samples per second that one core decoded; 0 before the first image.
    pub(super) fn rate(&self) -> f64 {
        f64::from_bits(self.rate.load(Ordering::Relaxed))
    }

    /// Learns the time in which the host decoded an image.
    pub(super) fn learn(&self, bytes: usize, time: Duration) {
        let rate =
            bytes as f64 / time.as_secs_f64().max(1e-6) / rayon::current_num_threads() as f64;
        let before = self.rate();
        let mean = if before > 0.0 {
            (before + rate) / 2.0
        } else {
            rate
        };
        self.rate.store(mean.to_bits(), Ordering::Relaxed);
    }

    /// Whether the GPU of a worker of a batch can be used without waiting. That of worker 0 is the first.
    pub fn is_ready_for(&self, worker: usize) -> bool {
        if self.gpus.get().is_none() {
            let done = |starting: &Option<JoinHandle<_>>| {
                starting.as_ref().is_some_and(JoinHandle::is_finished)
            };
            if !self.starting.lock().is_ok_and(|starting| done(&starting)) {
                return false;
            }
        }
        self.wait().is_ok_and(|gpus| gpus.is_ready_for(worker))
    }

    /// Whether a worker of a batch is one of those that use the GPUs with `auto`, once they are ready: a few of those on the cores,
    /// and all helpers.
    pub(super) fn serves(&self, worker: usize) -> bool {
        let workers = self.workers.load(Ordering::Relaxed);
        // It is 1 until a batch announces its images.
        let is_helper = workers > 1 && worker >= workers;
        self.wait()
            .is_ok_and(|gpus| is_helper || worker < WORKERS_OF_GPU * gpus.count())
    }

    /// Waits until the first GPU is ready or has failed, if it is being started.
    pub fn wait_for_start(&self) {
        let busy = |thread: &JoinHandle<_>| !thread.is_finished();
        let is_busy = |starting: &Option<JoinHandle<_>>| starting.as_ref().is_some_and(busy);
        while self
            .starting
            .lock()
            .is_ok_and(|starting| is_busy(&starting))
        {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The peaks of the first GPU, if it has been started.
    pub fn peaks(&self) -> Peaks {
        let opened = self.gpus.get().and_then(|gpus| gpus.as_ref().ok());
        opened.map(|gpus| gpus.first.peaks()).unwrap_or_default()
    }

    /// The sets of images of all GPUs so far.
    pub fn set_counts(&self) -> SetCounts {
        let opened = self.gpus.get().and_then(|gpus| gpus.as_ref().ok());
        let all = opened.into_iter().flat_map(Opened::all);
        all.map(Gpu::set_counts)
            .fold(SetCounts::default(), |sum, counts| sum + counts)
    }

    fn wait(&self) -> Result<&Opened, &anyhow::Error> {
        let gpus = self.gpus.get_or_init(|| {
            self.start();
            let starting = self.starting.lock().ok().and_then(|mut s| s.take());
            let failed =
                |why: &str| Err(anyhow!("the NVIDIA driver is broken: {why}").context(Unusable));
            match starting.map(JoinHandle::join) {
                None => failed("cannot start a thread for it"),
                Some(Ok(Ok(opened))) => opened,
                Some(Ok(Err(panic))) => failed(&panic),
                Some(Err(_)) => unreachable!("panics are caught on the thread"),
            }
        });
        gpus.as_ref()
    }

    /// Waits until the first GPU is started.
    ///
    /// # Errors
    /// It cannot be used: an `Unusable`.
    pub fn started(&self) -> Result<&Gpu> {
        Ok(&self.opened()?.first)
    }

    fn opened(&self) -> Result<&Opened> {
        self.wait()
            .map_err(|error| anyhow!("{:#}", error.root_cause()).context(Unusable))
    }

    /// A stream on a GPU: on the first one, or for a worker of a batch on its own, for whose start it waits.
    pub(super) fn stream(&self, worker: Option<usize>, timeline: &mut Timeline) -> Result<Gpu> {
        let gpu = self.opened()?.of_worker(worker.unwrap_or(0));
        if worker.is_none_or(|worker| worker == 0) {
            let (start, time) = gpu.opened;
            timeline.push(timing::START, start, time, 0, Limit::Host);
        }
        match worker {
            Some(_) => gpu.for_worker(),
            None => gpu.with_stream(false),
        }
        .map_err(|error| error.context(Unusable))
    }
}

/// The GPUs of a set. The first is ready; the others follow.
#[derive(Debug)]
struct Opened {
    first: Gpu,
    others: Others,
}

impl Opened {
    /// The GPUs, those that cannot be opened included.
    fn count(&self) -> usize {
        1 + self.others.gpus.len()
    }

    /// The GPUs that are ready.
    fn all(&self) -> impl Iterator<Item = &Gpu> {
        let others = self.others.gpus.iter();
        let ready = others.filter_map(|gpu| gpu.get().and_then(Option::as_ref));
        [&self.first].into_iter().chain(ready)
    }

    /// The GPU of a worker if it is not the first: the GPUs share the workers evenly.
    fn other(&self, worker: usize) -> Option<&OnceLock<Option<Gpu>>> {
        let index = (worker % self.count()).checked_sub(1)?;
        self.others.gpus.get(index)
    }

    fn is_ready_for(&self, worker: usize) -> bool {
        self.other(worker).is_none_or(|gpu| gpu.get().is_some())
    }

    /// The GPU of a worker, once it is ready; the first in place of one that cannot be opened.
    fn of_worker(&self, worker: usize) -> &Gpu {
        let other = self.other(worker).and_then(|gpu| gpu.wait().as_ref());
        other.unwrap_or(&self.first)
    }
}

/// All GPUs of a set but the first. A thread opens one after the other, while the first works: together two H200 took 0.46 s longer
/// than one.
#[derive(Debug)]
struct Others {
    /// `None` for one that cannot be opened: it is not used.
    gpus: Arc<[OnceLock<Option<Gpu>>]>,
    thread: Option<JoinHandle<()>>,
}

impl Others {
    /// The GPUs from 1 to `count`, each made ready by `prepare`.
    fn start(count: usize, prepare: fn(&Gpu)) -> Others {
        let gpus: Arc<[_]> = (1..count).map(|_| OnceLock::new()).collect();
        if gpus.is_empty() {
            return Others { gpus, thread: None };
        }
        let opened = gpus.clone();
        let open = move || {
            for (ordinal, slot) in (1..).zip(opened.iter()) {
                let gpu = catch_panic(|| Gpu::open(ordinal).inspect(prepare).ok());
                slot.get_or_init(|| gpu.ok().flatten());
            }
        };
        let thread = thread::Builder::new().name("gpus".into()).spawn(open);
        if thread.is_err() {
            gpus.iter().for_each(|slot| _ = slot.set(None));
        }
        Others {
            gpus,
            thread: thread.ok(),
        }
    }
}

impl Drop for Others {
    /// A process must not end, nor open the GPUs anew, while the driver starts one.
    fn drop(&mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
