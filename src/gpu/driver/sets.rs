//! The sets of a GPU. The workers of a batch record their copies and launches, and submit them when they must wait. One thread for
//! each GPU takes the submissions of all workers that wait: they are a set. It launches a kernel once for all images of the set
//! whose next command is this kernel, and tells the workers when the whole set is done. Small images were bound by the number of
//! calls: the driver has one lock for all threads, and each of its calls took 2 to 9 µs among sixteen of them.
//!
//! A few sets run at the same time, each on a stream of its own, so that copies in both directions and kernels overlap. The thread
//! never waits for more images while a stream is free.

use super::clock::EventPool;
use super::commands::Submission;
use super::lane::Lane;
use crate::timing::SetCounts;
use anyhow::{Context, Result};
use cudarc::driver::CudaContext;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, mem};

/// Sets that run on one GPU at the same time.
const STREAMS: usize = 4;

/// The most images of a set.
const MOST_IMAGES: usize = 128;

/// How often the thread checks whether a set is done before it sleeps, and how long it sleeps. The driver's own wait wakes a thread
/// 0.1 ms after the end of the work and later.
const POLLS: u32 = 2000;
const SLEEP: Duration = Duration::from_micros(50);

/// The submissions of a GPU, and the thread that carries them out.
pub(super) struct Sets {
    waiting: Arc<Waiting>,
    thread: Option<JoinHandle<()>>,
}

/// The submissions that are in no set yet.
#[derive(Default)]
struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
    counts: Mutex<SetCounts>,
}

#[derive(Default)]
struct State {
    submissions: VecDeque<Submission>,
    has_ended: bool,
}

impl Sets {
    /// Starts the thread.
    ///
    /// # Errors
    /// The driver's, and the system's.
    pub(super) fn start(context: &Arc<CudaContext>) -> Result<Sets> {
        let waiting = Arc::new(Waiting::default());
        let lanes = (0..STREAMS).map(|_| Lane::new(context));
        let mut submitter = Submitter {
            waiting: waiting.clone(),
            lanes: lanes.collect::<Result<_>>()?,
            events: EventPool::new(context),
        };
        let thread = thread::Builder::new().name("sets".into());
        let thread = thread.spawn(move || submitter.run());
        Ok(Sets {
            waiting,
            thread: Some(thread.context("cannot start a thread")?),
        })
    }

    /// The sets so far.
    pub(super) fn counts(&self) -> SetCounts {
        *self.waiting.counts()
    }

    /// Hands over commands. Their outcome goes to their sender, which is dropped if the thread has ended.
    pub(super) fn submit(&self, submission: Submission) {
        let mut state = self.waiting.state();
        if !state.has_ended {
            state.submissions.push_back(submission);
            self.waiting.changed.notify_one();
        }
    }
}

impl Drop for Sets {
    fn drop(&mut self) {
        self.waiting.state().has_ended = true;
        self.waiting.changed.notify_one();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl fmt::Debug for Sets {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Sets")
    }
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> MutexGuard<'_, SetCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The submission that has waited longest, and all others of its kind; none if there is none.
    fn take_set(&self) -> Vec<Submission> {
        let mut state = self.state();
        let Some(first) = state.submissions.front() else {
            return Vec::new();
        };
        let kind = first.kind;
        let mut set = Vec::new();
        for submission in mem::take(&mut state.submissions) {
            if set.len() < MOST_IMAGES && submission.kind == kind {
                set.push(submission);
            } else {
                state.submissions.push_back(submission);
            }
        }
        set
    }

    /// Waits for a submission, at most for `time` if it is given. Returns whether there can be more.
    fn wait(&self, time: Option<Duration>) -> bool {
        let is_idle = |state: &mut State| state.submissions.is_empty() && !state.has_ended;
        let state = self.state();
        let state = match time {
            None => {
                (self.changed.wait_while(state, is_idle)).unwrap_or_else(PoisonError::into_inner)
            }
            Some(time) => {
                let waited = self.changed.wait_timeout_while(state, time, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        !(state.has_ended && state.submissions.is_empty())
    }
}

/// Forms sets, and carries them out.
struct Submitter {
    waiting: Arc<Waiting>,
    lanes: Vec<Lane>,
    events: EventPool,
}

impl Drop for Submitter {
    /// After a panic, too, no worker waits for an answer that never comes.
    fn drop(&mut self) {
        let mut state = self.waiting.state();
        state.has_ended = true;
        state.submissions.clear();
    }
}

impl Submitter {
    /// Works until no more submissions can come.
    fn run(&mut self) {
        let mut polls = 0;
        loop {
            if self.end_sets() | self.begin_set() {
                polls = 0;
                continue;
            }
            polls += 1;
            if self.lanes.iter().all(Lane::is_free) {
                if !self.waiting.wait(None) {
                    return;
                }
            } else if polls < POLLS {
                thread::yield_now();
            } else if self.lanes.iter().any(Lane::is_free) {
                self.waiting.wait(Some(SLEEP));
            } else {
                thread::sleep(SLEEP);
            }
        }
    }

    /// Puts waiting submissions on a free stream. Returns whether there were both.
    fn begin_set(&mut self) -> bool {
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.is_free()) else {
            return false;
        };
        let set = self.waiting.take_set();
        if set.is_empty() {
            return false;
        }
        let images = set.len() as u64;
        let calls = lane.begin(set, &mut self.events);
        let mut counts = self.waiting.counts();
        *counts = *counts
            + SetCounts {
                sets: 1,
                images,
                calls,
            };
        true
    }

    /// Tells the workers of all sets that are done. Returns whether there were any.
    fn end_sets(&mut self) -> bool {
        let mut has_ended = false;
        for lane in &mut self.lanes {
            if let Some(outcome) = lane.outcome() {
                lane.end(outcome, &mut self.events);
                has_ended = true;
            }
        }
        has_ended
    }
}
