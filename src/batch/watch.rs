//! `--watch`: a batch whose files come while it runs. One thread keeps watch over the folders, and the
//! workers of a batch, which keep their memory and their GPU, process what it finds.

mod admission;
pub mod check;
mod events;
mod keeper;
pub mod options;
mod queue;
pub mod range_file;
mod status;

use super::Batch;
use super::item::Item;
use super::journal::Journal;
use super::options::seconds_from;
use super::report::{FileOutcome, FileTime};
use super::tally::{Screen, Tally};
use super::workers::{Cores, Workers};
use crate::engine::Resources;
use crate::gpu::Choice;
use crate::os::count;
use crate::os::interrupt::{self, NO_THREAD};
use crate::os::outcome::Outcome;
use crate::timing::Watched;
use admission::Admission;
use anyhow::{Result, anyhow};
use events::Events;
use keeper::{EndOnPanic, Keeper};
use queue::{Arrival, Arrivals, End};
use status::Status;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long GPUs that have failed are left alone at first; twice as long after every further failure,
/// up to an hour.
const REST: Duration = Duration::from_secs(60);

/// `REST`, or the seconds of `GPUIMG_GPU_REST`, for tests that cannot wait so long.
fn first_rest() -> Duration {
    seconds_from("GPUIMG_GPU_REST").unwrap_or(REST)
}

/// The GPUs of a watch after a failure: when they may be started again.
#[derive(Debug)]
struct Rest {
    until: Instant,
    next: Duration,
}

/// What a worker reports of a file.
struct CompleteOutput {
    item: Item,
    outcome: FileOutcome,
    time: FileTime,
    /// Whether the outcome counts: not that of a file that is tried again.
    is_final: bool,
    news: Vec<String>,
}

impl Batch<'_, '_> {
    /// Processes the files of the folders `roots`, and those that come, until the watch ends; calls
    /// `take` on this thread with each result.
    ///
    /// # Errors
    /// The folders cannot be watched, the requested GPU cannot be used, or an error of `take`.
    pub(super) fn watch(
        &self,
        roots: &[PathBuf],
        journal: Option<&Journal>,
        mut take: impl FnMut(&Item, FileOutcome) -> Result<()>,
    ) -> Result<Outcome> {
        let watching = &self.options.watching;
        let admission = Admission::new(
            roots,
            &self.options.selection,
            &self.common.reading,
            self.naming,
        )?;
        let report = self.open_report(true)?;
        let (status, arrivals) = (
            &Status::new(self.options.verbosity),
            &Arrivals::new(watching.settle()),
        );
        let events = Events::new();
        let stopped = &Arc::new(AtomicBool::new(false));
        let (inlet, signalled) = (events.inlet.clone(), stopped.clone());
        interrupt::end_in_order(move || {
            signalled.store(true, Ordering::Relaxed);
            inlet.wake();
        });
        let workers = self.workers();
        if let Choice::Gpu(_) = self.common.device.choice {
            // Known now, and not when the first file comes, in the night.
            workers.gpus().started()?;
        }
        let greeting = format!(
            "gpuimg: watching {}, {}, up to {} of memory",
            count::plural(roots.len(), "folder"),
            count::plural(workers.jobs, "thread"),
            count::size(self.options.memory())
        );
        let rest = Mutex::new(Rest {
            until: Instant::now(),
            next: first_rest(),
        });

        let begun = Instant::now();
        let mut screen = status;
        let mut tally = Tally::new(
            &mut screen,
            report,
            true,
            self.common.verbose,
            self.common.draws(),
        );
        let mut fatal = None;
        thread::scope(|scope| {
            let keeper = Keeper {
                arrivals,
                admission,
                watching,
                events,
                status,
                journal,
                begun: SystemTime::now(),
                greeting,
                stopped,
            };
            let keeping = thread::Builder::new()
                .name("watch".into())
                .spawn_scoped(scope, || keeper.keep())
                .map_err(|_| anyhow!(NO_THREAD))?;
            let worked = workers.each(
                workers.jobs,
                Cores::AllForFirst,
                |worker| arrivals.next(worker),
                |arrival, resources| {
                    let _ends = EndOnPanic { arrivals, stopped };
                    self.process(arrival, resources, journal, arrivals, &workers, &rest)
                },
                |finished| {
                    if let Err(error) =
                        self.record(finished, &mut tally, &workers, &rest, status, &mut take)
                    {
                        workers.stop();
                        arrivals.end(End::AtOnce);
                        stopped.store(true, Ordering::Relaxed);
                        fatal.get_or_insert(error);
                    }
                },
            );
            if worked.is_err() {
                stopped.store(true, Ordering::Relaxed);
            }
            let kept = keeping.join().map_err(|_| anyhow!("the watch failed"))?;
            worked.and(kept)
        })?;
        if let Some(error) = fatal {
            return Err(error);
        }
        tally.finish_report(&self.common.reading)?;
        let (outcome, times) = (tally.outcome(), tally.times);
        let watched = Watched {
            latencies: status.latencies(),
            most_waiting: arrivals.most(),
            left: arrivals.waiting(),
        };
        status.finish(times.files.skipped, watched.left);
        let files = times.files.done + times.files.skipped + times.files.failed;
        self.tell_times(
            times,
            files,
            &workers,
            workers.jobs,
            begun.elapsed(),
            Some(watched),
        )?;
        Ok(outcome)
    }

    /// Processes one file, on a worker's thread.
    fn process(
        &self,
        arrival: Arrival,
        resources: &Resources,
        journal: Option<&Journal>,
        arrivals: &Arrivals,
        workers: &Workers,
        rest: &Mutex<Rest>,
    ) -> CompleteOutput {
        let start = Instant::now();
        let mut news = Vec::new();
        let outcome = match &arrival.refusal {
            Some(why) => FileOutcome::Failed(anyhow!("{why}")),
            None => {
                let set_range = self.range_file.map(|file| {
                    let (set_range, replaced) = file.current();
                    news.extend(replaced);
                    set_range
                });
                let set_range = set_range.as_deref().map(|op| [op]);
                let ops = set_range.as_ref().map_or(self.ops, |op| &op[..]);
                self.one(ops, &arrival.item, resources, journal)
            }
        };
        let latency = arrival.came.and_then(|came| came.elapsed().ok());
        if resources.devices.has_failed() {
            news.push(leave_gpus(workers, rest));
        }
        let fine = match &outcome {
            FileOutcome::Done(done) => done.damage.is_none(),
            FileOutcome::Skipped => true,
            FileOutcome::Failed(_) => false,
        };
        let is_final = arrivals.finished(&arrival, fine);
        CompleteOutput {
            time: FileTime {
                work: start.elapsed(),
                latency,
            },
            item: arrival.item,
            outcome,
            is_final,
            news,
        }
    }

    /// Records what became of one file.
    fn record(
        &self,
        finished: CompleteOutput,
        tally: &mut Tally<&Status>,
        workers: &Workers,
        rest: &Mutex<Rest>,
        status: &Status,
        mut take: impl FnMut(&Item, FileOutcome) -> Result<()>,
    ) -> Result<()> {
        for line in &finished.news {
            status.mention(line);
        }
        let outcome = finished.outcome;
        let lost = |outcome: &FileOutcome| matches!(outcome, FileOutcome::Failed(error) if error.is::<crate::gpu::Unusable>());
        if !finished.is_final && !lost(&outcome) {
            return Ok(());
        }
        if let FileOutcome::Done(_) = &outcome {
            if let Some(latency) = finished.time.latency {
                status.took(latency);
            }
            let rested = rest.lock().unwrap_or_else(PoisonError::into_inner).until;
            if rested <= Instant::now() {
                // A start is paid once, and there is no end to the files.
                workers.gpus().expect(usize::MAX, workers.jobs);
            }
        }
        let outcome = tally.enter(&finished.item, outcome, finished.time)?;
        take(&finished.item, outcome)
    }
}

/// Gives up the GPUs for a while; returns a message about it.
fn leave_gpus(workers: &Workers, rest: &Mutex<Rest>) -> String {
    let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    // Several workers may find the same failure.
    if rest.until <= now {
        rest.until = now + rest.next;
        rest.next = (2 * rest.next).min(60 * REST);
        workers.leave_gpus();
    }
    let seconds = rest.until.saturating_duration_since(now).as_secs();
    format!(
        "gpuimg: the GPU failed; continuing on the CPU, and trying the GPU again in {seconds} s"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Reading;

    #[test]
    fn gpus_rest_longer_after_every_failure() {
        let workers = Workers::new(Choice::Auto, 1, 1, Reading::default(), (1, false));
        let rest = Mutex::new(Rest {
            until: Instant::now(),
            next: REST,
        });
        let first = workers.gpus();
        leave_gpus(&workers, &rest);
        let second = workers.gpus();
        assert!(!Arc::ptr_eq(&first, &second));
        // The same failure, found by another worker.
        leave_gpus(&workers, &rest);
        assert!(Arc::ptr_eq(&second, &workers.gpus()));
        for minutes in [2, 4, 8, 16, 32, 60, 60] {
            let mut state = rest.lock().expect("lock");
            assert_eq!(state.next, minutes * REST);
            state.until = Instant::now();
            drop(state);
            leave_gpus(&workers, &rest);
        }
        assert!(!Arc::ptr_eq(&second, &workers.gpus()));
    }
}
