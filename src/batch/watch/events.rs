//! What happens in watched folders, as the system reports it: each folder is watched by itself, before
//! it is read, so that nothing is missed in between.

use crate::os::interrupt::NO_THREAD;
use crate::os::name::Shown;
use anyhow::{Context, Result, anyhow, ensure};
use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::HashSet;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::SystemTime;

/// Events that may wait here. When there are more, the folders are read again.
const MOST: usize = 1 << 14;

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was closed by somebody who could write to it, or renamed to this name.
    Whole,
    /// It appeared.
    Appeared,
    /// Somebody opened it.
    Opened,
    /// It is gone, or has another name.
    Gone,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What it happened to.
    pub path: PathBuf,
    /// What happened.
    pub kind: Kind,
    /// When it was reported.
    pub at: SystemTime,
}

/// The events, in their order.
#[derive(Debug)]
pub struct Events {
    /// Events; an empty path only wakes.
    pub notices: Receiver<Notice>,
    /// Where they come from.
    pub inlet: Inlet,
}

/// The end where events go in.
#[derive(Clone, Debug)]
pub struct Inlet {
    sender: SyncSender<Notice>,
    lost: Arc<AtomicBool>,
}

impl Events {
    /// No events yet.
    pub fn new() -> Events {
        let (sender, notices) = mpsc::sync_channel(MOST);
        let lost = Arc::default();
        Events {
            notices,
            inlet: Inlet { sender, lost },
        }
    }

    /// Whether events were lost since this was last asked.
    pub fn lost(&self) -> bool {
        self.inlet.lost.swap(false, Ordering::Relaxed)
    }
}

impl Inlet {
    /// Wakes the receiver.
    pub fn wake(&self) {
        let _ = self.sender.try_send(Notice {
            path: PathBuf::new(),
            kind: Kind::Opened,
            at: SystemTime::now(),
        });
    }

    /// Takes an event of the system. This never waits: the receiver may be waiting for the caller.
    fn handle_event(&self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) if event.need_rescan() => return self.lost.store(true, Ordering::Relaxed),
            Ok(event) => event,
            Err(_) => return self.lost.store(true, Ordering::Relaxed),
        };
        let kind = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Kind::Whole,
            EventKind::Create(CreateKind::Folder) => Kind::Whole,
            EventKind::Create(_) => Kind::Appeared,
            EventKind::Access(AccessKind::Open(_)) => Kind::Opened,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
                Kind::Gone
            }
            _ => return,
        };
        let at = SystemTime::now();
        for path in event.paths {
            if self.sender.try_send(Notice { path, kind, at }).is_err() {
                self.lost.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// The folders whose events are reported.
#[derive(Debug)]
pub struct Folders {
    watcher: Option<RecommendedWatcher>,
    /// Shared with the thread that reports events, while it runs.
    alive: Arc<()>,
    watched: HashSet<PathBuf>,
}

impl Folders {
    /// None yet; their events will go to `inlet`.
    ///
    /// # Errors
    /// The system has no events to give.
    pub fn new(inlet: Inlet) -> Result<Folders> {
        let config = Config::default().with_follow_symlinks(false);
        let alive = Arc::new(());
        let held = alive.clone();
        let handle = move |event| {
            let _held = &held;
            inlet.handle_event(event);
        };
        let watcher = RecommendedWatcher::new(handle, config);
        let folders = Folders {
            watcher: Some(watcher.map_err(|error| unwatched(None, &error))?),
            alive,
            watched: HashSet::new(),
        };
        ensure!(folders.are_reported(), NO_THREAD);
        Ok(folders)
    }

    /// Whether the thread that reports events runs. Without it every call of the library panics, and
    /// the library does not report that it could not be started.
    fn are_reported(&self) -> bool {
        Arc::strong_count(&self.alive) > 1
    }

    /// The library's part, while its thread runs.
    fn watcher(&mut self) -> Result<&mut RecommendedWatcher> {
        let watcher = self.watcher.as_mut();
        let running = watcher.filter(|_| Arc::strong_count(&self.alive) > 1);
        running.context("events are no longer reported")
    }

    /// Watches a folder, without the folders in it; whether it was not watched before. One that is
    /// gone is not watched.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn add(&mut self, folder: &Path) -> Result<bool> {
        if self.watched.contains(folder) {
            return Ok(false);
        }
        match self.watcher()?.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.watched.insert(folder.into());
                Ok(true)
            }
            Err(_) if !folder.is_dir() => Ok(false),
            Err(error) => Err(unwatched(Some(folder), &error)),
        }
    }

    /// Whether a folder is watched.
    pub fn has(&self, folder: &Path) -> bool {
        self.watched.contains(folder)
    }

    /// Watches a folder and those in it no longer.
    pub fn remove(&mut self, folder: &Path) {
        let gone = |path: &PathBuf| path.starts_with(folder);
        let gone: Vec<PathBuf> = self.watched.extract_if(gone).collect();
        for path in gone {
            if let Ok(watcher) = self.watcher() {
                // The system may have ended it already.
                let _ = watcher.unwatch(&path);
            }
        }
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        if !self.are_reported() {
            // To drop it calls the library too.
            mem::forget(self.watcher.take());
        }
    }
}

fn unwatched(folder: Option<&Path>, error: &notify::Error) -> anyhow::Error {
    let limit = "the limit is fs.inotify.max_user_watches (sysctl)";
    let why = match &error.kind {
        ErrorKind::MaxFilesWatch => format!("too many folders: {limit}"),
        ErrorKind::Io(error) => crate::os::reason(error),
        _ => error.to_string(),
    };
    let what = folder.map_or("the folders".into(), |path| path.shown().into_owned());
    anyhow!("cannot watch {what}: {why}; use --poll SECONDS to scan without events")
}
