//! A turnstile: pieces made by many threads in any order go to the file in their order.

use crate::files::Target;
use anyhow::{Result, anyhow};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Where pieces 0.. of an output pass in order. A piece's place in the file is known once all
/// pieces before it have come; then it is written, while others are still being made.
pub struct Ordered<'a, P, F> {
    target: &'a Target,
    /// How many pieces may wait for an earlier one.
    window: usize,
    state: Mutex<State<P, F>>,
    passed: Condvar,
}

struct State<P, F> {
    next: usize,
    offset: u64,
    waiting: BTreeMap<usize, P>,
    /// Pieces written, to be filled again.
    spare: Vec<P>,
    /// Called with each piece in order, before it is written.
    finish: F,
    failed: Option<anyhow::Error>,
    taken: usize,
}

impl<'a, P, F> Ordered<'a, P, F>
where
    P: Default + AsRef<[u8]>,
    F: FnMut(&mut P),
{
    /// Pieces from the beginning of `target` on. `finish` sees each in order, may change it, and
    /// decides by that how long it is.
    pub fn new(target: &'a Target, window: usize, finish: F) -> Self {
        Ordered {
            target,
            window,
            state: Mutex::new(State {
                next: 0,
                offset: 0,
                waiting: BTreeMap::new(),
                spare: Vec::new(),
                finish,
                failed: None,
                taken: 0,
            }),
            passed: Condvar::new(),
        }
    }

    /// Makes pieces until there are `count` or writing failed; any number of threads may call this.
    pub fn work(&self, count: usize, make: &impl Fn(usize, &mut P)) {
        while let Some((index, mut piece)) = self.take(count) {
            make(index, &mut piece);
            if let Err(error) = self.pass(index, piece) {
                if let Ok(mut state) = self.state.lock() {
                    state.failed.get_or_insert(error);
                }
                self.passed.notify_all();
                return;
            }
        }
    }

    /// The length of the file, or the first error.
    pub fn end(self) -> Result<u64> {
        let state = self.state.into_inner().map_err(|_| broken())?;
        match state.failed {
            Some(error) => Err(error),
            None => Ok(state.offset),
        }
    }

    /// The number of the next piece to make, and memory for it.
    fn take(&self, count: usize) -> Option<(usize, P)> {
        let mut state = self.state.lock().ok()?;
        if state.failed.is_some() || state.taken == count {
            return None;
        }
        state.taken += 1;
        Some((state.taken - 1, state.spare.pop().unwrap_or_default()))
    }

    fn pass(&self, index: usize, piece: P) -> Result<()> {
        let mut state = self.lock()?;
        // Pieces are taken in order, so the thread that has the next one is never held here.
        while index >= state.next + self.window && state.failed.is_none() {
            state = self.passed.wait(state).map_err(|_| broken())?;
        }
        state.waiting.insert(index, piece);
        let mut ready = Vec::new();
        loop {
            let next = state.next;
            let Some(mut piece) = state.waiting.remove(&next) else {
                break;
            };
            (state.finish)(&mut piece);
            let offset = state.offset;
            state.offset += piece.as_ref().len() as u64;
            state.next += 1;
            ready.push((offset, piece));
        }
        drop(state);
        self.passed.notify_all();
        for (offset, piece) in ready {
            self.target.write_at(piece.as_ref(), offset)?;
            self.lock()?.spare.push(piece);
        }
        Ok(())
    }

    fn lock(&self) -> Result<MutexGuard<'_, State<P, F>>> {
        self.state.lock().map_err(|_| broken())
    }
}

fn broken() -> anyhow::Error {
    anyhow!("another thread failed")
}
