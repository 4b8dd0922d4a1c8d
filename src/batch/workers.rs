//! The worker threads of a batch or a watch: each processes one image after another from file to file,
//! so that reading, decoding, GPU work, encoding and writing of different images overlap.

#[cfg(all(test, feature = "schedules"))]
mod schedules;

use crate::engine::Resources;
use crate::engine::executor;
use crate::formats::Reading;
use crate::gpu::{Choice, Devices, GpuSet};
use crate::image::buffer;
use crate::os::interrupt::NO_THREAD;
use crate::os::memory_budget::MemoryBudget;
use crate::os::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::os::sync::{Mutex, PoisonError, mpsc, thread};
use anyhow::{Result, bail};
use rayon::ThreadPoolBuilder;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The worker threads of a batch and the resources that they share.
#[derive(Debug)]
pub struct Workers {
    choice: Choice,
    /// The number of workers.
    pub jobs: usize,
    /// Additional workers, which work only with a GPU that is ready. While an image is on a GPU, its worker waits: with more workers
    /// than cores, both the cores and the GPU stay busy.
    pub helpers: usize,
    /// The GPUs, started when they save time.
    gpus: Mutex<Arc<GpuSet>>,
    budget: MemoryBudget,
    memory: u64,
    reading: Reading,
    gpu_times: bool,
    stopped: AtomicBool,
}

/// The number of workers from which one more makes little difference.
const MANY: usize = 7;

/// How often a helper checks whether its GPU is ready.
const HELPER_POLL: Duration = Duration::from_millis(5);

/// Tells waiting helpers that no items are left. The types are those of the standard library, because those of `os::sync` cannot
/// wait for a limited time; the explored schedules have no helpers.
#[derive(Default)]
struct Ending {
    has_come: std::sync::Mutex<bool>,
    changed: std::sync::Condvar,
}

impl Ending {
    /// Wakes the helpers.
    fn announce(&self) {
        *self.has_come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for the end, at most for `time`; returns whether it has come.
    fn wait(&self, time: Duration) -> bool {
        let has_come = self.has_come.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(has_come, time, |has_come| !*has_come);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Announces the end when it is dropped: its worker has found no more items, or has panicked.
struct AnnounceOnExit<'a>(&'a Ending);

impl Drop for AnnounceOnExit<'_> {
    fn drop(&mut self) {
        self.0.announce();
    }
}

/// A worker, and those with which it shares the cores and the memory.
struct Share {
    worker: usize,
    /// The workers without the helpers.
    threads: usize,
    all: usize,
    cores: Cores,
}

/// The next task of a worker.
#[derive(Debug)]
pub enum Next<I> {
    /// This item.
    Item(I),
    /// Ask again: there is nothing yet.
    Idle,
    /// Nothing: there will be no more.
    End,
}

/// How the cores are shared among the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Every worker has the same share: for at least as many files as workers.
    Even,
    /// The first worker has all of them, and the others one each: for single files and for several at
    /// once.
    AllForFirst,
}

/// The numbers below `count`, each of them once, whichever workers ask.
pub fn numbers(count: usize) -> impl Fn() -> Next<usize> + Sync {
    let taken = AtomicUsize::new(0);
    move || match taken.fetch_add(1, Ordering::Relaxed) {
        number if number < count => Next::Item(number),
        _ => Next::End,
    }
}

impl Workers {
    /// `jobs` workers, whose images take at most `memory` bytes together, on at most `gpus` GPUs.
    /// `gpu_times`: copies and kernels there are timed.
    pub fn new(
        choice: Choice,
        jobs: usize,
        memory: u64,
        reading: Reading,
        (gpus, gpu_times): (usize, bool),
    ) -> Workers {
        Workers {
            choice,
            jobs,
            helpers: 0,
            gpus: Mutex::new(Arc::new(GpuSet::new(choice, gpus, executor::prepare))),
            budget: MemoryBudget::new(memory),
            memory,
            reading,
            gpu_times,
            stopped: AtomicBool::new(false),
        }
    }

    /// Stops taking items; those in progress are finished.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The number of workers for `count` images.
    pub fn threads(&self, count: usize) -> usize {
        self.jobs.min(count).max(1)
    }

    /// The GPUs that are used now.
    pub fn gpus(&self) -> Arc<GpuSet> {
        let gpus = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        gpus.clone()
    }

    /// Gives up the GPUs after a failure: every worker leaves them before its next item, with all
    /// that it holds on them, so that they can be opened anew.
    pub fn leave_gpus(&self) {
        let mut gpus = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        *gpus = Arc::new(gpus.again());
    }

    /// Starts `threads` workers, which ask `next` for items, giving their worker index, until there
    /// are no more, and run `work` on each; passes each result to `take` on this thread, in the order
    /// in which they finish.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn each<I, R: Send>(
        &self,
        threads: usize,
        cores: Cores,
        next: impl Fn(usize) -> Next<I> + Sync,
        work: impl Fn(I, &Resources) -> R + Sync,
        mut take: impl FnMut(R),
    ) -> Result<()> {
        let all = threads + self.helpers;
        let end = Ending::default();
        // When outcomes cannot be written, as to a log that nobody reads, the workers wait.
        let (results, finished) = mpsc::sync_channel(16 * all);
        thread::scope(|scope| {
            for worker in 0..all {
                let (results, next, work) = (results.clone(), &next, &work);
                let end = &end;
                let started = thread::spawn_scoped(scope, move || {
                    let _announced = (worker < threads).then(|| AnnounceOnExit(end));
                    let mut ended = false;
                    // Once for each set of GPUs.
                    while !ended {
                        let gpus = self.gpus();
                        if worker >= threads && !self.wait_for_gpu(worker, &gpus, end) {
                            break;
                        }
                        let share = Share {
                            worker,
                            threads,
                            all,
                            cores,
                        };
                        self.work_as(share, &gpus, |resources| {
                            while !ended && Arc::ptr_eq(&gpus, &self.gpus()) {
                                // The last of many leaves its core to the driver, which takes twice as long to start beside
                                // as many busy threads as there are cores.
                                if worker >= MANY && worker + 1 == threads {
                                    gpus.wait_for_start();
                                }
                                match next(worker) {
                                    _ if self.stopped.load(Ordering::Relaxed) => ended = true,
                                    Next::End => ended = true,
                                    Next::Idle => {}
                                    // The receiver is gone only after a panic, which ends the
                                    // scope anyway.
                                    Next::Item(item) => {
                                        let _ = results.send(work(item, resources));
                                    }
                                }
                            }
                        });
                    }
                });
                match started {
                    Ok(_) => {}
                    // The remaining threads process all items.
                    Err(_) if worker > 0 => break,
                    Err(_) => bail!(NO_THREAD),
                }
            }
            drop(results);
            for result in finished {
                take(result);
            }
            Ok(())
        })
    }

    /// Waits until the GPU of a helper is ready. Returns false if there are no more items.
    fn wait_for_gpu(&self, worker: usize, gpus: &GpuSet, end: &Ending) -> bool {
        while !gpus.is_ready_for(worker) {
            if end.wait(HELPER_POLL) || self.stopped.load(Ordering::Relaxed) {
                return false;
            }
        }
        true
    }

    /// Gives this worker its share of the cores, a stream on a GPU, and a buffer pool.
    fn work_as(&self, share: Share, gpus: &Arc<GpuSet>, work: impl FnOnce(&Resources)) {
        let Share {
            worker,
            threads,
            all,
            cores,
        } = share;
        // One thread for each image wastes nothing; only with fewer images than cores does an image
        // get several threads. If the pool cannot start, rayon's global pool serves all.
        let own = match cores {
            _ if worker >= threads => Some(1),
            Cores::Even => Some((self.jobs / threads).max(1)),
            Cores::AllForFirst => (worker > 0).then_some(1),
        };
        let _pool = own.map(|count| {
            let pool = ThreadPoolBuilder::new().num_threads(count);
            pool.use_current_thread().build()
        });
        let devices = Rc::new(Devices::of_worker(self.choice, gpus, worker));
        let memory = (self.memory / (2 * all as u64)) as usize;
        let gpus = devices.clone();
        buffer::with_pool(
            memory,
            move |bytes| gpus.pool_block(bytes),
            || {
                work(&Resources {
                    devices: &devices,
                    budget: Some(&self.budget),
                    reading: self.reading,
                    require_regular_file: false,
                    position: None,
                    gpu_times: self.gpu_times,
                });
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_leave_gpus_that_have_failed() {
        let workers = Workers::new(Choice::Auto, 1, 1 << 20, Reading::default(), (1, false));
        let taken = AtomicUsize::new(0);
        let next = |_| match taken.fetch_add(1, Ordering::Relaxed) {
            4.. => Next::End,
            2 => Next::Idle,
            item => Next::Item(item),
        };
        let work = |item, resources: &Resources| {
            let failed_before = resources.devices.has_failed();
            if item == 0 {
                assert!(resources.devices.fall_back_to_cpu());
            }
            if item == 1 {
                workers.leave_gpus();
            }
            failed_before
        };
        let mut failed = Vec::new();
        let done = workers.each(1, Cores::AllForFirst, next, work, |it| failed.push(it));
        done.expect("threads");
        assert_eq!(failed, [false, true, false]);
    }
}
