//! The state of the queue of a watch: the sets of paths that wait for something.

use crate::batch::item::Item;
use crate::os::Identity;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// A file for a worker.
#[derive(Debug)]
pub struct Arrival {
    /// The file.
    pub item: Item,
    /// When it was whole; `None` of a file that was there before the watch.
    pub came: Option<SystemTime>,
    /// Its state before the work on it.
    pub identity: Option<Identity>,
    /// Why it cannot be processed, if that is known already.
    pub refusal: Option<String>,
    pub retried: bool,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What waits is done first.
    Drained,
    /// What waits is left for the next run.
    AtOnce,
}

#[derive(Debug)]
pub struct State {
    pub settling: HashMap<PathBuf, Settling>,
    /// Paths in `active` in the order in which they came, and some that are gone again.
    pub waiting: VecDeque<PathBuf>,
    pub active: HashMap<PathBuf, Active>,
    pub refusals: VecDeque<(Item, String)>,
    pub known: Known,
    /// Active files and refusals that workers have.
    pub in_progress: usize,
    /// Active files that workers have.
    pub working: usize,
    /// Whether the worker with all cores has nothing to do.
    pub first_is_idle: bool,
    /// When a file last came or was finished.
    pub last: Instant,
    pub most: usize,
    pub end: Option<End>,
}

/// A file that may still grow.
#[derive(Debug)]
pub struct Settling {
    pub due: Instant,
    pub identity: Option<Identity>,
    pub came: Option<SystemTime>,
    pub retried: bool,
    /// Whether it was not there before, and nobody has written to it since.
    pub appeared: bool,
    /// Whether it could not be inspected.
    pub unseen: bool,
}

/// A file that waits or is in progress.
#[derive(Debug)]
pub struct Active {
    pub item: Item,
    pub came: Option<SystemTime>,
    pub retried: bool,
    pub working: bool,
    /// When it was closed again while it was in progress.
    pub again: Option<Option<SystemTime>>,
}

/// The files that are done or have failed, and have not changed since: a hash of each path with one
/// of its state. Two paths with the same hash and the same state at once are not to be expected.
#[derive(Debug, Default)]
pub struct Known(pub HashMap<u64, u64>, pub RandomState);

impl Known {
    pub fn add(&mut self, path: &Path, state: impl std::hash::Hash) {
        let pair = (self.1.hash_one(path), self.1.hash_one(state));
        self.0.insert(pair.0, pair.1);
    }

    pub fn has(&self, path: &Path, state: impl std::hash::Hash) -> bool {
        self.0.get(&self.1.hash_one(path)) == Some(&self.1.hash_one(state))
    }
}

pub fn state_of(identity: &Identity) -> (u64, (i64, i64), u64) {
    (identity.size, identity.changed, identity.inode)
}

impl State {
    pub fn settle(
        &mut self,
        path: &Path,
        due: Instant,
        identity: Option<Identity>,
        came: Option<SystemTime>,
    ) {
        self.last = Instant::now();
        let settling = Settling {
            due,
            identity,
            came,
            retried: false,
            appeared: false,
            unseen: false,
        };
        self.settling.insert(path.into(), settling);
    }

    pub fn push(&mut self, item: Item, came: Option<SystemTime>) {
        self.last = Instant::now();
        let settled = self.settling.remove(&item.input);
        let same = |it: &Settling| it.retried && it.identity == Identity::at(&item.input);
        let retried = settled.as_ref().is_some_and(same);
        match self.active.get_mut(&item.input) {
            Some(active) if active.working => active.again = Some(came),
            Some(active) => active.came = came,
            None => {
                self.waiting.push_back(item.input.clone());
                let active = Active {
                    came,
                    retried,
                    working: false,
                    again: None,
                    item,
                };
                self.active.insert(active.item.input.clone(), active);
            }
        }
        self.most = self.most.max(self.todo());
    }

    /// The files that wait: those in progress are active too.
    pub fn todo(&self) -> usize {
        self.active.len() - self.working + self.refusals.len()
    }

    pub fn next_arrival(&mut self) -> Option<Arrival> {
        if let Some((item, why)) = self.refusals.pop_front() {
            self.in_progress += 1;
            return Some(Arrival {
                item,
                came: None,
                identity: None,
                refusal: Some(why),
                retried: false,
            });
        }
        while let Some(path) = self.waiting.pop_front() {
            // One that was gone and came again is twice in the queue.
            let Some(active) = self.active.get_mut(&path).filter(|it| !it.working) else {
                continue;
            };
            active.working = true;
            self.working += 1;
            self.in_progress += 1;
            return Some(Arrival {
                item: active.item.clone(),
                came: active.came,
                identity: Identity::at(&path),
                refusal: None,
                retried: active.retried,
            });
        }
        None
    }

    pub fn ended(&self) -> bool {
        match self.end {
            None => false,
            Some(End::AtOnce) => true,
            // What is in progress may be tried again.
            Some(End::Drained) => {
                self.todo() == 0 && self.in_progress == 0 && self.settling.is_empty()
            }
        }
    }
}
