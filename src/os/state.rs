//! Detects inputs that change during a run: their state, as reported by the system, is compared at the end
//! of every pass with that of the first opening.

use super::digest::Digest;
use super::fault;
use super::identity::Identity;
use super::source::Source;
use crate::os::sync::{Mutex, PoisonError};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The cause for an input that has changed.
pub const CHANGED: &str =
    "it changed while it was being read (run again when no program is writing to it)";

/// The state of a file as reported by the system. If two states are equal, the content is unchanged.
#[derive(Clone, Copy, Debug)]
pub struct FileState {
    /// Length, modification time and inode.
    pub identity: Identity,
    /// The device of its file system.
    pub device: u64,
    /// When its content or its properties were last changed: seconds since 1970, and nanoseconds.
    pub status_changed: (i64, i64),
    links: u64,
}

impl FileState {
    /// Whether a file with this state has the content that it had in an `earlier` one. A program can set
    /// the modification time back, but not the time of the last change of the status.
    pub fn is_still(&self, earlier: &FileState) -> bool {
        // Adding or removing a hard link changes that time too: other files of the same run are replaced, and
        // backups create hard links.
        let status = self.status_changed == earlier.status_changed || self.links != earlier.links;
        status && (self.identity, self.device) == (earlier.identity, earlier.device)
    }
}

impl From<&Metadata> for FileState {
    fn from(about: &Metadata) -> FileState {
        FileState {
            identity: Identity::from(about),
            device: about.dev(),
            status_changed: (about.ctime(), about.ctime_nsec()),
            links: about.nlink(),
        }
    }
}

impl FileState {
    /// The state of the file at `path`, through links, if there is one.
    pub fn at(path: &Path) -> Option<FileState> {
        fault::metadata(path).ok().as_ref().map(FileState::from)
    }
}

/// The record of a file that was read, for a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    size: u64,
    changed: (i64, i64),
    inode: u64,
    /// Version 0.2 has written none of these three.
    #[serde(default)]
    device: Option<u64>,
    #[serde(default)]
    status_changed: Option<(i64, i64)>,
    #[serde(default)]
    digest: Option<Digest>,
}

/// The conclusion about the content of a file from its state, compared with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// It has not changed.
    Same,
    /// It has changed.
    Changed,
    /// The file was replaced, or its properties have changed: it is unchanged if its content has this
    /// digest.
    IfItHas(Digest),
}

impl FileRecord {
    /// The record of a file with this state and content.
    pub fn new(state: &FileState, digest: Digest) -> FileRecord {
        let Identity {
            size,
            changed,
            inode,
        } = state.identity;
        FileRecord {
            size,
            changed,
            inode,
            device: Some(state.device),
            status_changed: Some(state.status_changed),
            digest: Some(digest),
        }
    }

    /// The digest of its content.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Its length, modification time and inode.
    pub fn identity(&self) -> Identity {
        Identity {
            size: self.size,
            changed: self.changed,
            inode: self.inode,
        }
    }

    /// Compares the record with the state `now`.
    pub fn compare(&self, now: &FileState) -> Compared {
        let device = self.device.is_none_or(|then| then == now.device);
        let status = (self.status_changed).is_none_or(|then| then == now.status_changed);
        if !self.identity().resembles(&now.identity) {
            Compared::Changed
        } else if self.inode == now.identity.inode && device && status {
            Compared::Same
        } else {
            self.digest.map_or(Compared::Changed, Compared::IfItHas)
        }
    }
}

/// The records of the files of an input that was read, for a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRecord {
    /// The file itself.
    pub file: FileRecord,
    /// The file of its samples, if it is only a header.
    pub samples: Option<Samples>,
}

/// The record of the separate file with the samples of a header, for a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// Its name in the header's folder.
    pub name: String,
    /// The file.
    pub file: FileRecord,
}

/// The inputs of a run that reads them several times, as its first pass saw them.
#[derive(Debug, Default)]
pub struct Passes(Mutex<HashMap<PathBuf, Vec<FileState>>>);

impl Passes {
    /// Checks at the end of a pass that an input has not changed since it was opened, nor since the first
    /// pass.
    ///
    /// # Errors
    /// It has changed.
    pub fn check(&self, path: &Path, source: &Source) -> Result<()> {
        source.check_unchanged()?;
        let states = source.states();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.entry(path.into()) {
            Entry::Vacant(entry) => {
                entry.insert(states);
            }
            Entry::Occupied(first) => {
                let first = first.get();
                let mut pairs = states.iter().zip(first);
                let same = pairs.all(|(now, first)| now.is_still(first));
                ensure!(same && states.len() == first.len(), CHANGED);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_file_is_what_it_was_until_its_content_may_have_changed() {
        let folder = tempfile::tempdir().expect("folder");
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, b"one").expect("file");
        let check = |passes: &Passes| passes.check(&path, &Source::open(&path).expect("opens"));
        let linked = Passes::default();
        check(&linked).expect("the first pass");
        check(&linked).expect("the same file");
        fs::hard_link(&path, &other).expect("link");
        check(&linked).expect("another name changes no content");
        let passes = Passes::default();
        check(&passes).expect("the first pass");
        let about = fs::metadata(&path).expect("file");
        let source = Source::open(&path).expect("opens");
        // So that the system's clock continues.
        thread::sleep(Duration::from_millis(20));
        fs::write(&path, b"two").expect("file");
        fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(about.modified()?))
            .expect("time");
        assert!(
            source.check_unchanged().is_err(),
            "its old time does not hide it"
        );
        assert!(check(&passes).is_err());
    }
}
