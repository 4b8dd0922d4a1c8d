//! Writes pieces of a file in order while many threads make them in any order.

#[cfg(all(test, feature = "schedules"))]
mod schedules;

use crate::os::Target;
use crate::os::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use anyhow::{Error, Result};
use std::collections::BTreeMap;

/// Pieces for each thread that may be started after the one that is waited for: enough that threads
/// may differ in speed, few enough that memory is bounded.
const AHEAD: usize = 3;

/// Makes the pieces `0..count` on all threads and writes them to `target`, one after the other,
/// from byte `start` on. Returns the byte at which they end.
///
/// `make` fills a piece with a given number, in new memory or in that of a piece already written.
/// `pass` sees each piece in order, with its offset in the file; it may still change the piece, and
/// so decides its length. Pieces are written while others are made. Stops at the first error.
///
/// `make` must not wait for the thread pool: the task that it waits for could be waiting for
/// `make`.
pub fn ordered<P: AsRef<[u8]> + Send>(
    count: usize,
    target: &Target,
    start: u64,
    new: impl Fn() -> P + Sync,
    make: impl Fn(usize, &mut P) -> Result<()> + Sync,
    pass: impl FnMut(&mut P, u64) + Send,
) -> Result<u64> {
    // One piece needs no other thread; then the pool is not even started.
    let threads = if count == 1 {
        1
    } else {
        rayon::current_num_threads().min(count)
    };
    let writer = OrderedWriter::new(count, start, AHEAD * threads, pass);
    let write = |piece: &[u8], offset: u64| target.write_at(piece, offset);
    let work = || writer.work(&new, &make, &write);
    if threads == 1 {
        work()?;
    } else {
        let failure: Mutex<Option<Error>> = Mutex::new(None);
        rayon::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|_| {
                    if let Err(error) = work() {
                        let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                        failure.get_or_insert(error);
                    }
                });
            }
        });
        let failure = failure.into_inner();
        failure
            .unwrap_or_else(PoisonError::into_inner)
            .map_or(Ok(()), Err)?;
    }
    Ok(writer.lock().end)
}

struct OrderedWriter<P, F> {
    /// The number of pieces.
    count: usize,
    state: Mutex<State<P, F>>,
    /// Notified when a piece has passed or a thread has ended.
    moved: Condvar,
    /// The largest allowed `taken - passed`.
    ahead: usize,
}

struct State<P, F> {
    /// Pieces handed out so far.
    taken: usize,
    /// Pieces passed so far, and so the number of the next piece in order.
    passed: usize,
    /// Whether a thread has ended: all pieces are taken, or one failed, so that no more are needed.
    over: bool,
    /// Where the next piece begins in the file.
    end: u64,
    /// Finished pieces that wait for an earlier one.
    waiting: BTreeMap<usize, P>,
    /// Pieces that have been written, for reuse of their memory.
    spare: Vec<P>,
    pass: F,
}

impl<P: AsRef<[u8]>, F: FnMut(&mut P, u64)> OrderedWriter<P, F> {
    /// No piece of `count` is made yet; the first begins at byte `start` of the file.
    fn new(count: usize, start: u64, ahead: usize, pass: F) -> OrderedWriter<P, F> {
        OrderedWriter {
            count,
            state: Mutex::new(State {
                taken: 0,
                passed: 0,
                over: false,
                end: start,
                waiting: BTreeMap::new(),
                spare: Vec::new(),
                pass,
            }),
            moved: Condvar::new(),
            ahead,
        }
    }

    /// A thread's part: makes and writes pieces until all are taken, or one has failed.
    fn work(
        &self,
        new: impl Fn() -> P,
        make: impl Fn(usize, &mut P) -> Result<()>,
        write: impl Fn(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let _guard = WorkerGuard(self);
        while let Some((index, piece)) = self.next_piece() {
            let mut piece = piece.unwrap_or_else(&new);
            make(index, &mut piece)?;
            for (offset, piece) in self.pass(index, piece) {
                write(piece.as_ref(), offset)?;
                self.lock().spare.push(piece);
            }
        }
        Ok(())
    }

    /// The number of the next piece to make, and memory to reuse if there is some.
    fn next_piece(&self) -> Option<(usize, Option<P>)> {
        let mut state = self.lock();
        // Pieces are taken in order, so the next piece in order belongs to a thread that is not
        // waiting here.
        while state.taken >= state.passed + self.ahead && !state.over {
            state = self
                .moved
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.taken == self.count || state.over {
            return None;
        }
        state.taken += 1;
        Some((state.taken - 1, state.spare.pop()))
    }

    /// Passes a piece and all later ones that waited for it; returns the pieces to write, with
    /// their offsets.
    fn pass(&self, index: usize, piece: P) -> Vec<(u64, P)> {
        let mut state = self.lock();
        let state = &mut *state;
        state.waiting.insert(index, piece);
        let mut ready = Vec::new();
        while let Some(mut piece) = state.waiting.remove(&state.passed) {
            (state.pass)(&mut piece, state.end);
            let offset = state.end;
            state.end += piece.as_ref().len() as u64;
            state.passed += 1;
            ready.push((offset, piece));
        }
        self.moved.notify_all();
        ready
    }
}

impl<P, F> OrderedWriter<P, F> {
    fn lock(&self) -> MutexGuard<'_, State<P, F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by a thread while it works. However the thread ends, by a panic too, no other thread waits
/// for it.
struct WorkerGuard<'a, P, F>(&'a OrderedWriter<P, F>);

impl<P, F> Drop for WorkerGuard<'_, P, F> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::sleep;
    use std::time::Duration;

    /// 200 pieces on 4 threads, of `index` bytes each; `fate` can make one fail.
    fn run(path: &Path, fate: impl Fn(usize) -> Result<()> + Sync) -> Result<(u64, usize)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build()?;
        let target = Target::create(path, true)?;
        let made = AtomicUsize::new(0);
        let mut next = 0;
        let end = pool.install(|| {
            ordered(
                200,
                &target,
                3,
                Vec::new,
                |index, piece: &mut Vec<u8>| {
                    // Every seventh piece takes long, so that later ones finish before it.
                    sleep(Duration::from_micros(if index % 7 == 0 { 500 } else { 0 }));
                    fate(index)?;
                    made.fetch_add(1, Ordering::Relaxed);
                    piece.clear();
                    piece.resize(index, index as u8);
                    Ok(())
                },
                |piece, offset| {
                    assert_eq!(offset, 3 + next * (next + 1) / 2);
                    piece.push(0xa5);
                    next += 1;
                },
            )
        })?;
        target.write_at(b"any", 0)?;
        target.commit(end)?;
        Ok((end, made.into_inner()))
    }

    #[test]
    fn pieces_lie_in_order() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a");
        let (end, made) = run(&path, |_| Ok(()))?;
        let mut expected = b"any".to_vec();
        for index in 0..200 {
            expected.resize(expected.len() + index, index as u8);
            expected.push(0xa5);
        }
        assert_eq!((end, made), (expected.len() as u64, 200));
        assert!(std::fs::read(&path)? == expected);
        Ok(())
    }

    #[test]
    fn an_error_ends_it() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let made = AtomicUsize::new(0);
        let result = run(&folder.path().join("a"), |index| {
            made.fetch_add(1, Ordering::Relaxed);
            ensure!(index != 20, "piece 20");
            Ok(())
        });
        assert_eq!(
            result.map_err(|error| error.to_string()),
            Err("piece 20".into())
        );
        assert!(made.into_inner() <= 20 + AHEAD * 4);
        Ok(())
    }

    #[test]
    fn a_panic_leaves_nobody_waiting() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a");
        let result = catch_unwind(AssertUnwindSafe(|| {
            run(&path, |index| {
                // By now the other threads have made all the pieces that they may, and wait.
                sleep(Duration::from_millis(if index == 14 { 50 } else { 0 }));
                assert!(index != 14, "as is wanted");
                Ok(())
            })
        }));
        assert!(result.is_err());
        assert!(!path.exists());
        Ok(())
    }
}
