//! The worker threads of a batch: each processes one image after another from file to file, so that
//! reading, decoding, GPU work, encoding and writing of different images overlap.

use crate::codec::Reading;
use crate::device::{Choice, Devices, GpuSet};
use crate::image::buffer;
use crate::interrupt::NO_THREAD;
use crate::memory_budget::MemoryBudget;
use crate::pipeline::Resources;
use anyhow::{Result, bail};
use rayon::ThreadPoolBuilder;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The worker threads of a batch and the resources that they share.
#[derive(Debug)]
pub struct Workers {
    choice: Choice,
    /// The number of workers.
    pub jobs: usize,
    /// The GPUs, started when they save time.
    pub gpus: Arc<GpuSet>,
    budget: MemoryBudget,
    memory: u64,
    reading: Reading,
    stopped: AtomicBool,
}

impl Workers {
    /// `jobs` workers, whose images take at most `memory` bytes together.
    pub fn new(choice: Choice, jobs: usize, memory: u64, reading: Reading) -> Workers {
        Workers {
            choice,
            jobs,
            gpus: Arc::new(GpuSet::new(choice)),
            budget: MemoryBudget::new(memory),
            memory,
            reading,
            stopped: AtomicBool::new(false),
        }
    }

    /// Takes no more items; those in progress are finished.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// The number of workers for `count` images.
    pub fn threads(&self, count: usize) -> usize {
        self.jobs.min(count).max(1)
    }

    /// Runs `work` on every item and passes each result with the item's index to `tell` on this
    /// thread, in the order in which they finish.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn each<I: Sync, R: Send>(
        &self,
        items: &[I],
        work: impl Fn(&I, &Resources) -> R + Sync,
        mut tell: impl FnMut(usize, R),
    ) -> Result<()> {
        let threads = self.threads(items.len());
        let next = AtomicUsize::new(0);
        let (results, told) = mpsc::channel();
        thread::scope(|scope| {
            for worker in 0..threads {
                let (results, next, work) = (results.clone(), &next, &work);
                let started = thread::Builder::new().spawn_scoped(scope, move || {
                    self.work_as(worker, threads, |resources| {
                        while !self.stopped.load(Ordering::Relaxed) {
                            let index = next.fetch_add(1, Ordering::Relaxed);
                            let Some(item) = items.get(index) else { break };
                            let result = work(item, resources);
                            // The receiver is gone only after a panic, which ends the scope anyway.
                            let _ = results.send((index, result));
                        }
                    });
                });
                match started {
                    Ok(_) => {}
                    // The remaining threads process all items.
                    Err(_) if worker > 0 => break,
                    Err(_) => bail!(NO_THREAD),
                }
            }
            drop(results);
            for (index, result) in told {
                tell(index, result);
            }
            Ok(())
        })
    }

    /// Gives this worker its share of the cores, a stream on a GPU, and a buffer pool.
    fn work_as(&self, worker: usize, threads: usize, work: impl FnOnce(&Resources)) {
        // One thread for each image wastes nothing; only with fewer images than cores does an image
        // get several threads. If the pool cannot start, rayon's global pool serves all.
        let _pool = ThreadPoolBuilder::new()
            .num_threads((self.jobs / threads).max(1))
            .use_current_thread()
            .build();
        let devices = Rc::new(Devices::of_worker(self.choice, &self.gpus, worker));
        let memory = (self.memory / (2 * threads as u64)) as usize;
        let gpus = devices.clone();
        let block = move |bytes| {
            gpus.page_locked(bytes).or_else(|| {
                let mapped = buffer::mapped(bytes)?;
                Some(Box::new(mapped) as buffer::Block)
            })
        };
        buffer::with_pool(memory, block, || {
            work(&Resources {
                devices: &devices,
                budget: Some(&self.budget),
                reading: self.reading,
                only_files: false,
            });
        });
    }
}
