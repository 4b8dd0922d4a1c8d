//! Locks, channels, atomics and threads of the code whose schedules are explored: the standard
//! library's. In unit tests with the feature `schedules` they are those of the crate `shuttle`, which
//! runs one thread at a time and chooses at every step which one (`tests/schedules.py`).

#[cfg(all(test, feature = "schedules"))]
pub mod explore;

#[cfg(not(all(test, feature = "schedules")))]
pub use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc};

#[cfg(all(test, feature = "schedules"))]
pub use shuttle::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc};

/// Threads that end before their scope does.
pub mod thread {
    #[cfg(not(all(test, feature = "schedules")))]
    pub use std::thread::{Scope, ScopedJoinHandle, scope};

    #[cfg(all(test, feature = "schedules"))]
    pub use shuttle::thread::{Scope, ScopedJoinHandle, scope};

    /// Starts a thread in `scope`.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn spawn_scoped<'scope, R: Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        work: impl FnOnce() -> R + Send + 'scope,
    ) -> std::io::Result<ScopedJoinHandle<'scope, R>> {
        #[cfg(not(all(test, feature = "schedules")))]
        return std::thread::Builder::new().spawn_scoped(scope, work);
        #[cfg(all(test, feature = "schedules"))]
        return Ok(scope.spawn(work));
    }
}
