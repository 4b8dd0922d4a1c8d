//! The state of a file, as reported by the system, and its record in a journal: from both follows whether its content has
//! changed.

use super::digest::Digest;
use super::fault;
use super::identity::Identity;
use super::system::About;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::path::Path;

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
        let system = About::from(about);
        FileState {
            identity: Identity::from(about),
            device: system.id.device,
            status_changed: system.status_changed,
            links: system.links,
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
