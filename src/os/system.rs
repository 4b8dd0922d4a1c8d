//! What differs between operating systems: one module each, with the same functions. Everything else is written with these
//! and with the standard library.
//!
//! Unix gives the guarantees that `held` and `unfinished` describe. Windows has no call that opens a file relative to an
//! open folder, no file without a name, and no modes: its module says what takes their place.

use std::ffi::OsStr;
use std::path::Path;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Regular,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
    Unknown,
}

impl FileKind {
    /// The type of a file that is not a regular file, with its article.
    pub fn named(self) -> &'static str {
        match self {
            FileKind::Directory => "a directory",
            FileKind::Symlink => "a symbolic link",
            FileKind::Fifo => "a FIFO",
            FileKind::Socket => "a socket",
            _ => "a device",
        }
    }

    /// Whether it is read and written in order, and has no length.
    pub fn is_stream(self) -> bool {
        matches!(
            self,
            FileKind::Fifo | FileKind::Socket | FileKind::CharacterDevice
        )
    }
}

/// The properties of a file.
#[derive(Clone, Copy, Debug)]
pub struct About {
    pub kind: FileKind,
    /// Permission bits of Unix, with those for set-user-ID and set-group-ID.
    pub mode: u32,
    pub owner: u32,
    pub group: u32,
    /// Which file it is. On Windows the properties of a file do not say it; its device is 0, and its inode is when it was
    /// created.
    pub id: FileId,
    /// Names of the file.
    pub links: u64,
    /// Bytes.
    pub size: u64,
    /// When the content was last changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
    /// When the content or a property was last changed, likewise.
    pub status_changed: (i64, i64),
}

/// Tells a file from all others of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// Whether a path is written with a separator at its end, so that it can only be a folder.
pub fn ends_with_separator(path: &Path) -> bool {
    let last = path.as_os_str().as_encoded_bytes().last();
    last.is_some_and(|&byte| std::path::is_separator(byte.into()))
}

/// The bytes of a name: on Unix those of the file system, on Windows UTF-8, where each half of a surrogate pair that is
/// alone has three bytes.
pub fn bytes_of(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}
