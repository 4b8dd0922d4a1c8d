//! The files of watched folders: those that may still grow, those that wait for a worker, those in progress, and those that are
//! known to be done or to have failed.
//!
//! Every state is a set of paths, so what is held is bounded by the files in the folders: about 200
//! bytes for each that waits, and 16 for each that is known.

#[cfg(all(test, feature = "schedules"))]
mod schedules;
mod state;

use crate::batch::item::Item;
use crate::batch::workers::Next;
use crate::os::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use crate::os::{Identity, is_absence};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub use state::{Arrival, End};
use state::{Known, State, state_of};

/// How long a file that somebody has opened is left alone, if it is not closed after writing.
const OPENED: Duration = Duration::from_secs(60);

/// How long a worker without work waits before it asks again.
const PAUSE: Duration = Duration::from_secs(1);

/// All that is known of the files of a watch.
#[derive(Debug)]
pub struct Arrivals {
    settle: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

/// The identity of the file at `path`, or `None` if it is not there; an error decides neither.
pub fn look(path: &Path) -> io::Result<Option<Identity>> {
    match fs::metadata(path) {
        Ok(about) => Ok(Some(Identity::from(&about))),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file was changed within `settle` before now. One from the future is not known to be at
/// rest.
fn is_young(identity: &Identity, settle: Duration) -> bool {
    let changed = identity.changed();
    changed.elapsed().map_or(true, |age| age < settle)
}

impl Arrivals {
    /// Nothing has come.
    pub fn new(settle: Duration) -> Arrivals {
        Arrivals {
            settle,
            state: Mutex::new(State {
                settling: HashMap::new(),
                waiting: VecDeque::new(),
                active: HashMap::new(),
                refusals: VecDeque::new(),
                known: Known::default(),
                in_progress: 0,
                working: 0,
                first_is_idle: false,
                last: Instant::now(),
                most: 0,
                end: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// How long a file must be unchanged if no event reports that it is complete.
    pub fn settle(&self) -> Duration {
        self.settle
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a file that a scan has found can be taken now. One that is known, waits or is in
    /// progress cannot; one that changed lately, and with `always` every other, settles first.
    pub fn is_ready(
        &self,
        path: &Path,
        identity: &Identity,
        came: Option<SystemTime>,
        always: bool,
    ) -> bool {
        let mut state = self.state();
        if state.active.contains_key(path)
            || state.settling.contains_key(path)
            || state.known.has(path, state_of(identity))
        {
            return false;
        }
        let settles = always || is_young(identity, self.settle);
        if settles {
            let due = Instant::now() + self.settle;
            state.settle(path, due, Some(*identity), came);
        }
        !settles
    }

    /// Whether a file is known in this state: done or failed.
    pub fn knows(&self, path: &Path, identity: &Identity) -> bool {
        self.state().known.has(path, state_of(identity))
    }

    /// Lets a file that could not be inspected wait, because that may be possible soon. If it is not, `report` is printed. A file
    /// for which that was printed does not wait again.
    pub fn unseen(&self, path: &Path, report: &str, came: Option<SystemTime>) {
        let mut state = self.state();
        let is_active = state.active.contains_key(path);
        if !is_active && !state.settling.contains_key(path) && !state.known.has(path, report) {
            let due = Instant::now() + self.settle;
            state.settle(path, due, None, came);
        }
    }

    /// Has no file wait to be closed any more, after events were lost: that event may be among them.
    pub fn events_were_lost(&self) {
        let due = Instant::now() + self.settle;
        for settling in self.state().settling.values_mut() {
            settling.appeared = false;
            settling.due = settling.due.min(due);
        }
    }

    /// Has a file wait until `due`, and from then on until it does not change.
    pub fn wait_for(&self, path: &Path, due: Instant, came: SystemTime) {
        let mut state = self.state();
        if !state.active.contains_key(path) {
            state.settle(path, due, Identity::at(path), Some(came));
            if let Some(settling) = state.settling.get_mut(path) {
                settling.appeared = true;
            }
        }
    }

    /// Waits longer for a file that has appeared and that somebody has opened: one who writes to it
    /// will close it.
    pub fn opened(&self, path: &Path) {
        let mut state = self.state();
        let due = Instant::now() + OPENED;
        if let Some(settling) = state.settling.get_mut(path).filter(|it| it.appeared) {
            settling.due = due;
        }
    }

    /// The files that have settled, each with the time when it came; files that have changed since
    /// they were last inspected continue settling.
    pub fn settled(&self) -> Vec<(PathBuf, Option<SystemTime>)> {
        let now = Instant::now();
        let mut state = self.state();
        let due = state.settling.iter().filter(|(_, it)| it.due <= now);
        let mut due: Vec<PathBuf> = due.map(|(path, _)| path.clone()).collect();
        due.sort_unstable();
        let mut settled = Vec::new();
        for path in due {
            let identity = look(&path);
            let Some(settling) = state.settling.get_mut(&path) else {
                continue;
            };
            match identity {
                Ok(None) => {
                    state.settling.remove(&path);
                }
                Ok(identity) if settling.identity != identity => {
                    settling.identity = identity;
                    settling.retried = false;
                    settling.appeared = false;
                    settling.due = now + self.settle;
                }
                // Once more; what is wrong after that is found when it is taken.
                Err(_) if !settling.unseen => {
                    settling.unseen = true;
                    settling.due = now + self.settle;
                }
                _ => settled.push((path, settling.came)),
            }
        }
        settled
    }

    /// When the next file may have settled.
    pub fn next_due(&self) -> Option<Instant> {
        self.state().settling.values().map(|it| it.due).min()
    }

    /// Hands a whole file to the workers.
    pub fn push(&self, item: Item, came: Option<SystemTime>) {
        self.state().push(item, came);
        self.changed.notify_all();
    }

    /// Records a file that cannot be processed, unless that is known.
    pub fn refuse(&self, item: Item, why: String) {
        match Identity::at(&item.input) {
            Some(identity) => self.report(item, why, state_of(&identity)),
            None => self.unread(item, why),
        }
    }

    /// Records a file or folder that cannot be read, unless that is known. It is taken when it can be.
    pub fn unread(&self, item: Item, why: String) {
        let known_by = why.clone();
        self.report(item, why, known_by);
    }

    fn report(&self, item: Item, why: String, known_by: impl std::hash::Hash) {
        let mut state = self.state();
        state.settling.remove(&item.input);
        let known = state.known.has(&item.input, &known_by);
        state.known.add(&item.input, &known_by);
        if !known {
            state.refusals.push_back((item, why));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Forgets a file that is gone.
    pub fn gone(&self, path: &Path) {
        let mut state = self.state();
        state.settling.remove(path);
        if state.active.get(path).is_some_and(|it| !it.working) {
            state.active.remove(path);
        }
        let hash = state.known.1.hash_one(path);
        state.known.0.remove(&hash);
    }

    /// Forgets all known files but those that a scan of everything has found.
    pub fn keep_known(&self, found: &[PathBuf]) {
        let mut state = self.state();
        let Known(known, hasher) = &mut state.known;
        let found: HashSet<u64> = found.iter().map(|path| hasher.hash_one(path)).collect();
        known.retain(|hash, _| found.contains(hash));
        known.shrink_to(2 * found.len());
    }

    /// The next file for this worker. A file that comes alone goes to the first worker, which has all
    /// cores, if it has nothing to do.
    pub fn next(&self, worker: usize) -> Next<Arrival> {
        let mut state = self.state();
        if worker == 0 {
            state.first_is_idle = true;
        }
        let kept = |state: &State| usize::from(worker > 0 && state.first_is_idle);
        let nothing = |state: &mut State| state.todo() <= kept(state) && !state.ended();
        if nothing(&mut state) {
            let waited = self.changed.wait_timeout_while(state, PAUSE, nothing);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let next = match state.end {
            Some(End::AtOnce) => None,
            _ if state.todo() <= kept(&state) => None,
            _ => state.next_arrival(),
        };
        match next {
            Some(arrival) => {
                if worker == 0 {
                    state.first_is_idle = false;
                }
                Next::Item(arrival)
            }
            None if state.ended() => Next::End,
            None => Next::Idle,
        }
    }

    /// Records the end of the work on a file, and returns whether its outcome is final: a failure of a
    /// file that is gone is none, and one that may still grow is tried again.
    pub fn finished(&self, arrival: &Arrival, fine: bool) -> bool {
        let path = &arrival.item.input;
        let now = look(path);
        let mut state = self.state();
        state.in_progress -= 1;
        state.last = Instant::now();
        if arrival.refusal.is_some() {
            drop(state);
            self.changed.notify_all();
            return true;
        }
        state.working -= 1;
        let again = state.active.remove(path).and_then(|it| it.again);
        let due = Instant::now() + self.settle;
        let gone = matches!(now, Ok(None));
        // Where nobody can look, nothing is known to have changed.
        let now = now.unwrap_or(arrival.identity);
        let is_final = match (now, again) {
            (None, _) if gone => fine,
            (None, _) => true,
            (Some(_), Some(came)) if now != arrival.identity => {
                state.push(arrival.item.clone(), came);
                fine
            }
            (Some(_), None) if now != arrival.identity => {
                state.settle(path, due, now, None);
                fine
            }
            (Some(there), _) if !fine && !arrival.retried && is_young(&there, self.settle) => {
                state.settle(path, due, now, arrival.came);
                if let Some(settling) = state.settling.get_mut(path) {
                    settling.retried = true;
                }
                false
            }
            (Some(there), _) => {
                state.known.add(path, state_of(&there));
                true
            }
        };
        drop(state);
        self.changed.notify_all();
        is_final
    }

    /// Takes no more files.
    pub fn end(&self, how: End) {
        self.state().end = Some(how);
        self.changed.notify_all();
    }

    /// How many files wait for a worker.
    pub fn waiting(&self) -> usize {
        self.state().todo()
    }

    /// The most files that ever waited.
    pub fn most(&self) -> usize {
        self.state().most
    }

    /// How long nothing has come and nothing has been left to do.
    pub fn idle_for(&self) -> Option<Duration> {
        let state = self.state();
        let idle = state.settling.is_empty() && state.todo() == 0 && state.in_progress == 0;
        idle.then(|| state.last.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn item(folder: &Path, name: &str) -> Item {
        let path = folder.join(name);
        fs::write(&path, b"x").expect("file");
        Item::listed(path, name.into())
    }

    fn taken(arrivals: &Arrivals, worker: usize) -> Option<Arrival> {
        match arrivals.next(worker) {
            Next::Item(arrival) => Some(arrival),
            Next::Idle | Next::End => None,
        }
    }

    #[test]
    fn a_file_that_comes_alone_goes_to_the_first_worker() {
        let folder = tempfile::tempdir().expect("folder");
        let arrivals = Arrivals::new(Duration::ZERO);
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                loop {
                    if let Some(arrival) = taken(&arrivals, 0) {
                        return arrival;
                    }
                }
            });
            while !arrivals.state().first_is_idle {
                thread::yield_now();
            }
            arrivals.push(item(folder.path(), "a"), None);
            let a = first.join().expect("worker");
            assert_eq!(a.item.key, Path::new("a"));
            // While it is busy, the others take all, in the order in which they came.
            arrivals.push(item(folder.path(), "b"), None);
            arrivals.push(item(folder.path(), "c"), None);
            for name in ["b", "c"] {
                let arrival = taken(&arrivals, 1).expect("a file");
                assert_eq!(arrival.item.key, Path::new(name));
                assert!(arrivals.finished(&arrival, true));
            }
            assert!(arrivals.finished(&a, true));
        });
        assert_eq!((arrivals.waiting(), arrivals.most()), (0, 2));
        assert!(arrivals.idle_for().is_some());
    }

    #[test]
    fn a_file_waited_a_minute_for_an_event_that_was_lost() {
        let folder = tempfile::tempdir().expect("folder");
        let arrivals = Arrivals::new(Duration::ZERO);
        let a = item(folder.path(), "a").input;
        arrivals.wait_for(&a, Instant::now(), SystemTime::now());
        arrivals.opened(&a);
        assert!(arrivals.settled().is_empty());
        arrivals.events_were_lost();
        // Somebody opens it again.
        arrivals.opened(&a);
        assert_eq!(arrivals.settled().len(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_looked_at_waits_and_is_reported_once() {
        let folder = tempfile::tempdir().expect("folder");
        let arrivals = Arrivals::new(Duration::ZERO);
        let a = item(folder.path(), "a");
        arrivals.unseen(&a.input, "why", None);
        // Now it can: seen for the first time, and then unchanged.
        assert!(arrivals.settled().is_empty());
        assert_eq!(arrivals.settled().len(), 1);
        for _ in 0..2 {
            arrivals.unread(a.clone(), "why".into());
        }
        assert_eq!(arrivals.waiting(), 1);
        arrivals.unseen(&a.input, "why", None);
        assert!(arrivals.settled().is_empty());
        // It is taken when it can be read.
        let identity = Identity::at(&a.input).expect("file");
        assert!(!arrivals.knows(&a.input, &identity));
    }

    #[test]
    fn a_file_that_changes_while_it_is_processed_comes_again() {
        let folder = tempfile::tempdir().expect("folder");
        let arrivals = Arrivals::new(Duration::from_secs(1000));
        let a = item(folder.path(), "a");
        arrivals.push(a.clone(), None);
        let arrival = taken(&arrivals, 0).expect("a file");
        // Closed again, and it is not what it was: queued at once, however the first attempt ends.
        fs::write(&a.input, b"more").expect("file");
        arrivals.push(a.clone(), Some(SystemTime::now()));
        assert_eq!(arrivals.waiting(), 0);
        assert!(!arrivals.finished(&arrival, false));
        assert_eq!(arrivals.waiting(), 1);
        let arrival = taken(&arrivals, 0).expect("a file");
        // It has failed, and is young: once more, and then for good.
        assert!(!arrivals.finished(&arrival, false));
        arrivals.push(a.clone(), None);
        let arrival = taken(&arrivals, 0).expect("a file");
        assert!(arrivals.finished(&arrival, false));
        let identity = Identity::at(&a.input).expect("file");
        assert!(arrivals.knows(&a.input, &identity));
        assert!(!arrivals.is_ready(&a.input, &identity, None, false));
        arrivals.keep_known(&[]);
        assert!(!arrivals.knows(&a.input, &identity));
        // Gone while it waits, it is not taken.
        arrivals.push(a.clone(), None);
        arrivals.gone(&a.input);
        arrivals.end(End::Drained);
        assert!(matches!(arrivals.next(0), Next::End));
    }
}
