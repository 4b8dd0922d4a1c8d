//! The cost of reading and writing: bytes, and the time in system calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes moved by system calls, and the time during which at least one call was in progress.
#[derive(Debug, Default)]
pub struct Traffic {
    pub(super) bytes: AtomicU64,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    under_way: usize,
    since: Option<Instant>,
    busy: Duration,
}

impl Traffic {
    /// Counts a system call or a request that moves `bytes`.
    pub(super) fn count<T, E>(
        &self,
        bytes: usize,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note(|calls| {
            calls.under_way += 1;
            calls.since.get_or_insert_with(Instant::now);
        });
        let result = call();
        self.note(|calls| {
            calls.under_way -= 1;
            if calls.under_way == 0 {
                calls.busy += calls
                    .since
                    .take()
                    .map_or(Duration::ZERO, |since| since.elapsed());
            }
        });
        result
    }

    /// The counters so far; they restart at 0.
    pub fn take(&self) -> Traffic {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        Traffic {
            bytes: AtomicU64::new(self.bytes.swap(0, Ordering::Relaxed)),
            calls: Mutex::new(std::mem::take(&mut calls)),
        }
    }

    /// Adds the counters of another file, which was read at other times.
    pub fn add(&self, other: &Traffic) {
        self.bytes.fetch_add(other.bytes(), Ordering::Relaxed);
        self.note(|calls| calls.busy += other.time());
    }

    fn note(&self, change: impl FnOnce(&mut Calls)) {
        // Poisoned only if a clock panicked; the counters are still valid.
        change(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Wall-clock time in system calls; calls of several threads at once count once.
    pub fn time(&self) -> Duration {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .busy
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
