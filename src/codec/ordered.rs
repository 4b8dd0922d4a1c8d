//! Work done in parallel whose results take their places in order.

use anyhow::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

/// Items a thread may be ahead of the one that is waited for; bounds the memory.
const AHEAD: usize = 4;

struct State<T, F> {
    /// Items handed out so far.
    taken: usize,
    /// Items placed so far, and so the index of the one that is waited for.
    placed: usize,
    /// Results that wait for it.
    waiting: BTreeMap<usize, T>,
    place: F,
    failure: Option<Error>,
}

/// Makes the results of items `0..count` on all threads, calls `place` for each, in order and one
/// at a time (something quick: where does it go?), and then `write`, on many threads at once.
/// `init` makes one thread's state. Holds a few results a thread at most; ends at the first error.
///
/// `make` must not wait for the thread pool: what it waits for could be waiting for it.
pub fn ordered<S, T: Send, P: Send>(
    count: usize,
    init: impl Fn() -> S + Sync,
    make: impl Fn(&mut S, usize) -> Result<T> + Sync,
    place: impl FnMut(usize, &T) -> P + Send,
    write: impl Fn(P, T) -> Result<()> + Sync,
) -> Result<()> {
    let threads = rayon::current_num_threads().min(count);
    let state = Mutex::new(State {
        taken: 0,
        placed: 0,
        waiting: BTreeMap::new(),
        place,
        failure: None,
    });
    let moved = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let fail = |error| {
        lock().failure.get_or_insert(error);
        moved.notify_all();
    };

    // The thread that makes the item waited for is not among those that wait here.
    let take = || {
        let mut state = lock();
        while state.taken >= state.placed + AHEAD * threads && state.failure.is_none() {
            state = moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let item = state.taken;
        state.taken += 1;
        (item < count && state.failure.is_none()).then_some(item)
    };
    // Places a result, and all that waited for it, and returns them for writing.
    let arrive = |item, result| {
        let mut state = lock();
        let state = &mut *state;
        state.waiting.insert(item, result);
        let mut ready = Vec::new();
        while let Some(result) = state.waiting.remove(&state.placed) {
            ready.push(((state.place)(state.placed, &result), result));
            state.placed += 1;
        }
        moved.notify_all();
        ready
    };
    let work = || -> Result<()> {
        let mut own = init();
        while let Some(item) = take() {
            let result = make(&mut own, item)?;
            for (place, result) in arrive(item, result) {
                write(place, result)?;
            }
        }
        Ok(())
    };
    // One item needs no other thread, and the pool need not even be started.
    if count == 1 {
        return work();
    }
    rayon::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|_| work().unwrap_or_else(fail));
        }
    });
    let failure = lock().failure.take();
    failure.map_or(Ok(()), Err)
}
