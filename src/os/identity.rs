//! Identifies the state of a file.

use super::durable::parent;
use super::fault;
use super::system::About;
use serde::{Deserialize, Serialize};
use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file's length, modification time and inode. Renaming a file changes none of them, so an
/// output's identity is known before the output appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Bytes in the file.
    pub size: u64,
    /// When its content was last changed: seconds since 1970, and nanoseconds.
    pub changed: (i64, i64),
    /// The inode number in its file system.
    pub inode: u64,
}

impl Identity {
    /// The identity of the file at `path`, through links, if there is one.
    pub fn at(path: &Path) -> Option<Identity> {
        fault::metadata(path).ok().as_ref().map(Identity::from)
    }

    /// When its content was last changed.
    pub fn changed(&self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        let since = Duration::new(seconds.max(0) as u64, nanos.clamp(0, 999_999_999) as u32);
        SystemTime::UNIX_EPOCH + since
    }

    /// Whether length and time are equal: they remain when a folder is copied with its times, or
    /// lies on a file system that assigns new inodes at every mount.
    pub fn resembles(&self, other: &Identity) -> bool {
        (self.size, self.changed) == (other.size, other.changed)
    }
}

impl From<&Metadata> for Identity {
    fn from(about: &Metadata) -> Identity {
        let about = About::from(about);
        Identity {
            size: about.size,
            changed: about.modified,
            inode: about.id.inode,
        }
    }
}

/// Whether two paths lead to the same file or folder that is there, through any links and mounts: one
/// folder may be mounted at several places.
pub fn is_same(one: &Path, other: &Path) -> bool {
    fault::id(one).is_ok_and(|one| fault::id(other).is_ok_and(|other| other == one))
}

/// Whether two paths lead to the same file, through any links. Another run may replace the file
/// between two look-ups, so inodes are not sufficient: the resolved paths decide.
pub fn same_file(a: &Path, b: &Path) -> bool {
    if a == b || is_same(a, b) {
        return true;
    }
    let is_link = |path| fault::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    if is_link(a) || is_link(b) {
        let resolved = |path| fault::canonicalize(path);
        return matches!((resolved(a), resolved(b)), (Ok(a), Ok(b)) if a == b);
    }
    a.file_name() == b.file_name() && is_same(parent(a), parent(b))
}
