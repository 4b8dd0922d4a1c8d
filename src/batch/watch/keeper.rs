//! Keeps watch: turns events, scans and the passing of time into files for the workers, until the
//! watch ends.

use super::admission::{Admission, Admitted, Root, cannot_read};
use super::events::{Events, Folders, Kind, Notice};
use super::options::Watching;
use super::queue::{Arrivals, End, look};
use super::status::Status;
use crate::batch::item::Item;
use crate::batch::journal::Journal;
use crate::batch::tally::Screen;
use crate::os::name::Shown;
use crate::os::system::{self, FileId};
use crate::os::{Identity, is_absence, reason};
use anyhow::Result;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The longest time between two checks of the clock.
const TICK: Duration = Duration::from_secs(1);

/// How long the watch waits for a process to open a new file. If none does, its name is a link to a complete file (`ln`, or a file
/// that was written without a name).
const LINKED: Duration = Duration::from_millis(100);

/// The longest time until folders that could not be read or watched are tried again.
const MINUTE: Duration = Duration::from_secs(60);

/// Ends the watch if the thread that has it panics: the others would wait forever.
pub struct EndOnPanic<'a> {
    /// Where the workers wait.
    pub arrivals: &'a Arrivals,
    /// What ends the keeper.
    pub stopped: &'a AtomicBool,
}

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.stopped.store(true, Ordering::Relaxed);
            self.arrivals.end(End::AtOnce);
        }
    }
}

/// The thread that keeps watch.
pub struct Keeper<'a> {
    /// Where files for the workers go.
    pub arrivals: &'a Arrivals,
    /// Which files are taken.
    pub admission: Admission<'a>,
    /// The options.
    pub watching: &'a Watching,
    /// What happens in the folders.
    pub events: Events,
    /// Where it is shown.
    pub status: &'a Status,
    /// The journal, which is kept short.
    pub journal: Option<&'a Journal>,
    /// When the watch began.
    pub begun: SystemTime,
    /// The message that the folders are watched.
    pub greeting: String,
    /// Set by a signal.
    pub stopped: &'a AtomicBool,
}

/// What is known of the folders themselves.
struct Sight {
    /// The events of the folders; `None` where they are polled.
    folders: Option<Folders>,
    /// Each root's device and inode, while it is there.
    roots: Vec<Option<FileId>>,
    /// When everything is to be read again.
    scan: Option<Instant>,
    /// Whether some of it could not be read or watched, and how long until it is tried again.
    missed: bool,
    pause: Duration,
    /// When events were last lost.
    lost: Option<Instant>,
    /// Whether everything was read once.
    begun: bool,
    tick: Instant,
}

impl Sight {
    /// Has everything read again after a pause, or sooner.
    fn scan_again(&mut self) {
        let again = Instant::now() + self.pause;
        self.scan = Some(self.scan.map_or(again, |scan| scan.min(again)));
    }
}

impl Keeper<'_> {
    /// Keeps watch until the end, and then lets the workers end.
    ///
    /// # Errors
    /// The folders cannot be watched.
    pub fn keep(mut self) -> Result<()> {
        let _ends = EndOnPanic {
            arrivals: self.arrivals,
            stopped: self.stopped,
        };
        let result = self.until_the_end();
        if result.is_err() {
            self.arrivals.end(End::AtOnce);
        }
        result
    }

    fn until_the_end(&mut self) -> Result<()> {
        let folders = match self.watching.poll {
            None => Some(Folders::new(self.events.inlet.clone())?),
            Some(_) => None,
        };
        let mut sight = Sight {
            folders,
            roots: self.ids(&[]),
            scan: None,
            missed: false,
            pause: TICK,
            lost: None,
            begun: false,
            tick: Instant::now(),
        };
        self.scan_all(&mut sight)?;
        self.status.mention(&self.greeting);
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                self.arrivals.end(End::AtOnce);
                return Ok(());
            }
            if self.is_asked_to_end() {
                // What came before the end is done.
                self.scan_all(&mut sight)?;
                return self.drain(&mut sight);
            }
            let idle = self.arrivals.idle_for();
            if idle
                .zip(self.watching.idle)
                .is_some_and(|(idle, most)| idle >= most)
            {
                self.arrivals.end(End::Drained);
                return Ok(());
            }
            self.step(&mut sight)?;
        }
    }

    /// Has the workers end when all that has come is done.
    fn drain(&mut self, sight: &mut Sight) -> Result<()> {
        while self.arrivals.idle_for().is_none() && !self.stopped.load(Ordering::Relaxed) {
            self.step(sight)?;
        }
        self.arrivals.end(if self.stopped.load(Ordering::Relaxed) {
            End::AtOnce
        } else {
            End::Drained
        });
        Ok(())
    }

    /// Waits for the next thing to do, and does it.
    fn step(&mut self, sight: &mut Sight) -> Result<()> {
        let now = Instant::now();
        let times = [
            Some(sight.tick),
            sight.scan,
            self.arrivals.next_due(),
            self.idle_end(),
        ];
        let next = times.into_iter().flatten().min().unwrap_or(sight.tick);
        match self
            .events
            .notices
            .recv_timeout(next.saturating_duration_since(now))
        {
            Ok(notice) => {
                self.handle_notice(notice, sight)?;
                while let Ok(notice) = self.events.notices.try_recv() {
                    self.handle_notice(notice, sight)?;
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if self.events.lost() {
            let now = Instant::now();
            // Files may come so fast that it happens again and again: said once.
            if sight.lost.is_none_or(|lost| now - lost > MINUTE) {
                self.status
                    .mention("gpuimg: the system dropped file events; scanning all folders again");
            }
            sight.lost = Some(now);
            sight.scan = Some(now);
            self.arrivals.events_were_lost();
        }
        for (path, came) in self.arrivals.settled() {
            self.admit(&path, came);
        }
        let now = Instant::now();
        if sight.tick <= now {
            sight.tick = now + TICK;
            self.look_at_roots(sight);
            self.status.tick(self.arrivals.waiting());
            if let Some(journal) = self.journal {
                journal.compact_if_long();
            }
        }
        if sight.scan.is_some_and(|scan| scan <= now) {
            self.scan_all(sight)?;
        }
        Ok(())
    }

    /// When the watch may end for want of files.
    fn idle_end(&self) -> Option<Instant> {
        let (idle, most) = self.arrivals.idle_for().zip(self.watching.idle)?;
        Some(Instant::now() + most.saturating_sub(idle))
    }

    fn is_asked_to_end(&self) -> bool {
        let name = self.watching.until_file.as_deref();
        let is_there = |name: &Path| {
            let roots = self.admission.roots.iter();
            roots.into_iter().any(|root| root.path.join(name).exists())
        };
        name.is_some_and(is_there)
    }

    /// Whether a path is that of `--until-file`, which is not an input.
    fn is_end(&self, path: &Path) -> bool {
        let name = self.watching.until_file.as_deref();
        let is_it = |name| {
            let mut roots = self.admission.roots.iter();
            roots.any(|root| path == root.path.join(name))
        };
        name.is_some_and(is_it)
    }

    fn handle_notice(&mut self, notice: Notice, sight: &mut Sight) -> Result<()> {
        let Some(path) = self.admission.typed(&notice.path) else {
            return Ok(());
        };
        match notice.kind {
            Kind::Whole => {
                let about = fs::metadata(&path);
                if about.as_ref().is_ok_and(|about| about.is_dir()) {
                    return self.scan(&path, sight);
                }
                match about.as_ref().map(Identity::from) {
                    Ok(identity) if self.arrivals.knows(&path, &identity) => {}
                    Ok(_) => self.admit(&path, Some(notice.at)),
                    Err(error) => self.unseen(&path, error, Some(notice.at)),
                }
            }
            Kind::Appeared => match fs::metadata(&path) {
                // An empty one was made to be written to.
                Ok(about) if about.is_file() && about.len() > 0 => {
                    let due = Instant::now() + LINKED.min(self.arrivals.settle());
                    self.arrivals.wait_for(&path, due, notice.at);
                }
                Ok(_) => {}
                Err(error) => self.unseen(&path, &error, Some(notice.at)),
            },
            Kind::Opened => self.arrivals.opened(&path),
            Kind::Gone => {
                let folder = sight.folders.as_mut().filter(|it| it.has(&notice.path));
                match folder {
                    None => self.arrivals.gone(&path),
                    // Its files are forgotten when everything is read again.
                    Some(folders) => {
                        folders.remove(&notice.path);
                        sight.scan.get_or_insert(Instant::now() + TICK);
                    }
                }
            }
        }
        Ok(())
    }

    /// Hands a whole file to the workers, if it is one to take.
    fn admit(&mut self, path: &Path, came: Option<SystemTime>) {
        let admitted = self.admission.admit(path);
        self.admitted(path, admitted, came);
    }

    fn admitted(&mut self, path: &Path, admitted: Admitted, came: Option<SystemTime>) {
        match admitted {
            _ if self.is_end(path) => self.arrivals.gone(path),
            Admitted::File(item) => self.arrivals.push(item, came),
            Admitted::Refused(item, why) => self.arrivals.refuse(item, why),
            Admitted::Unread(item, why) => self.arrivals.unread(item, why),
            Admitted::Folder | Admitted::Nothing => self.arrivals.gone(path),
        }
    }

    /// Has a file that cannot be inspected wait, unless it is gone.
    fn unseen(&self, path: &Path, error: &io::Error, came: Option<SystemTime>) {
        if !is_absence(error) {
            let report = cannot_read(path, &reason(error));
            self.arrivals.unseen(path, &report, came);
        }
    }

    /// The devices and inodes of the roots; those of `before` where they cannot be determined.
    fn ids(&self, before: &[Option<FileId>]) -> Vec<Option<FileId>> {
        let id = |(index, root): (usize, &Root)| match system::id_at(&root.path) {
            Ok(id) => Some(id),
            Err(error) if is_absence(&error) => None,
            Err(_) => before.get(index).copied().flatten(),
        };
        self.admission.roots.iter().enumerate().map(id).collect()
    }

    /// Detects watched folders that are gone, or that another folder has replaced: no event reports that.
    fn look_at_roots(&mut self, sight: &mut Sight) {
        let now = self.ids(&sight.roots);
        for (index, root) in self.admission.roots.iter().enumerate() {
            if now[index] == sight.roots[index] {
                continue;
            }
            let path = root.path.shown();
            self.status.mention(&match now[index] {
                Some(_) => format!("gpuimg: {path} is back"),
                None => format!("gpuimg: {path} has disappeared; waiting for it to come back"),
            });
            if let Some(folders) = &mut sight.folders {
                folders.remove(&root.absolute);
            }
            sight.scan = Some(Instant::now());
        }
        sight.roots = now;
    }

    /// Reads all folders, and forgets the files that are gone.
    fn scan_all(&mut self, sight: &mut Sight) -> Result<()> {
        let roots: Vec<PathBuf> = self
            .admission
            .roots
            .iter()
            .map(|it| it.path.clone())
            .collect();
        let mut found = Vec::new();
        sight.missed = false;
        for root in roots {
            found.extend(self.scan_for(&root, sight)?);
        }
        sight.begun = true;
        sight.scan = self.watching.poll.map(|poll| Instant::now() + poll);
        if sight.missed {
            sight.scan_again();
            sight.pause = (2 * sight.pause).min(MINUTE);
        } else {
            self.arrivals.keep_known(&found);
            sight.pause = TICK;
        }
        Ok(())
    }

    fn scan(&mut self, start: &Path, sight: &mut Sight) -> Result<()> {
        self.scan_for(start, sight)?;
        if sight.missed {
            sight.scan_again();
        }
        Ok(())
    }

    /// Watches and reads a folder and all folders in it; returns the files that are there. A folder that
    /// cannot be watched is reported, as one that cannot be read: anybody who may write to a shared
    /// folder can make such a one. At the beginning it is an error.
    fn scan_for(&mut self, start: &Path, sight: &mut Sight) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        loop {
            found.clear();
            let mut folders = Vec::new();
            self.admission
                .visit(start, |path, admitted| match admitted {
                    Admitted::Folder => folders.push(path.to_path_buf()),
                    admitted => found.push((path.to_path_buf(), admitted)),
                });
            let mut is_new = false;
            if let Some(watched) = &mut sight.folders {
                for folder in folders {
                    match watched.add(&std::path::absolute(&folder)?) {
                        Ok(added) => is_new |= added,
                        // Reported by the visit, except for a watched folder itself at the beginning.
                        Err(error) if fs::read_dir(&folder).is_err() => {
                            sight.missed = true;
                            if !sight.begun && folder == start {
                                return Err(error);
                            }
                        }
                        Err(error) if sight.begun => {
                            sight.missed = true;
                            let item = Item::listed(folder.clone(), folder.clone());
                            found.push((folder, Admitted::Unread(item, format!("{error:#}"))));
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            // What came into a folder after it was read and before it was watched would be missed.
            if !is_new {
                break;
            }
        }
        let always = self.watching.poll.is_some() && sight.begun;
        let mut paths = Vec::with_capacity(found.len());
        let now = SystemTime::now();
        for (path, admitted) in found {
            let identity = match look(&path) {
                Ok(identity) => identity,
                Err(error) => {
                    sight.missed = true;
                    if let Admitted::File(_) = admitted {
                        self.unseen(&path, &error, sight.begun.then_some(now));
                    }
                    None
                }
            };
            let came = identity.as_ref().filter(|_| sight.begun).map(|identity| {
                // One that is older has been brought here now.
                let changed = identity.changed();
                if (self.begun..now).contains(&changed) {
                    changed
                } else {
                    now
                }
            });
            match (admitted, identity) {
                (Admitted::File(item), Some(identity))
                    if self.arrivals.is_ready(&path, &identity, came, always) =>
                {
                    let admitted = self.admission.named(item);
                    self.admitted(&path, admitted, came);
                }
                (refused @ Admitted::Refused(..), _) => self.admitted(&path, refused, None),
                (Admitted::Unread(item, why), _) => {
                    // A link that leads nowhere is a file.
                    let about = path.symlink_metadata();
                    sight.missed |= about.map_or(true, |about| about.is_dir());
                    self.arrivals.unread(item, why);
                }
                _ => {}
            }
            paths.push(path);
        }
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::workers::Next;

    #[test]
    fn a_panic_of_one_thread_left_the_others_waiting() {
        let (arrivals, stopped) = (&Arrivals::new(Duration::ZERO), &AtomicBool::new(false));
        let panicked = thread::scope(|scope| {
            let keeper = scope.spawn(|| {
                let _ends = EndOnPanic { arrivals, stopped };
                // Not a panic of the test's own, which would be printed.
                std::panic::resume_unwind(Box::new(()));
            });
            keeper.join().is_err()
        });
        assert!(panicked && stopped.load(Ordering::Relaxed));
        assert!(matches!(arrivals.next(0), Next::End));
    }
}
