//! Folders that are held open. Files in them are opened by name, relative to the folder, so that no path
//! is resolved twice, and nobody who may write to a folder can redirect a run by swapping a name.
//!
//! These calls have a fallback where a system or a file system lacks them:
//! * `O_PATH`, with which Linux holds a folder that may not be read: macOS opens folders for reading.
//! * `O_TMPFILE`, and `linkat` of an open file through `/proc`: a new file of a random name that nobody
//!   has (`unfinished`).
//! * `renameat2` with `RENAME_NOREPLACE` (macOS: `renameatx_np` with `RENAME_EXCL`): a hard link, which
//!   replaces nothing either; without hard links a new empty file under the name, which fails if the name
//!   is taken, and then a rename over that file.

use super::fault::{self, Kind};
use crate::os::name::Shown;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A folder that is held open.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    /// Only for messages.
    path: PathBuf,
}

#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::RDONLY;

impl Folder {
    /// Opens a folder as the user names it, through links.
    pub fn open(path: &Path) -> io::Result<Folder> {
        fault::point(Kind::Open, path)?;
        let fd = rustix::fs::open(
            path,
            HOLD | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Folder {
            fd: Arc::new(fd),
            path: path.into(),
        })
    }

    /// Opens a folder below this one. Links are followed if they lead to a folder below this one, too.
    ///
    /// # Errors
    /// `NotFound` for a folder that is not there, and a link that leads out of this folder.
    pub fn below(&self, names: &Path) -> io::Result<Folder> {
        match self.descend(names, None) {
            Err(error) if is_link(&error) => self.descend(&self.resolved(names)?, None),
            other => other,
        }
    }

    /// As `below`, but creates missing folders. With `sync`, their entries are on disk when this
    /// returns.
    pub fn make_below(&self, names: &Path, sync: bool) -> io::Result<Folder> {
        match self.descend(names, Some(sync)) {
            Err(error) if is_link(&error) => self.descend(&self.resolved(names)?, Some(sync)),
            other => other,
        }
    }

    /// The names below this folder to which `names` resolve, without links. A name may become a link before
    /// it is used, so callers must not follow links.
    pub fn resolved(&self, names: &Path) -> io::Result<PathBuf> {
        let path = self.path.join(names);
        let real = match (
            fault::canonicalize(&path),
            names.parent(),
            names.file_name(),
        ) {
            // The last folders, which are yet to be created.
            (Err(error), Some(parent), Some(name))
                if error.kind() == io::ErrorKind::NotFound && parent != Path::new("") =>
            {
                return Ok(self.resolved(parent)?.join(name));
            }
            (real, ..) => real?,
        };
        let below = real.strip_prefix(fault::canonicalize(&self.path)?);
        below.map(Path::to_path_buf).map_err(|_| {
            io::Error::other(format!(
                "{} is a link to a place outside {}",
                path.shown(),
                self.path.shown()
            ))
        })
    }

    /// Opens folder after folder without following links; creates missing ones if `make` is given.
    fn descend(&self, names: &Path, make: Option<bool>) -> io::Result<Folder> {
        let mut folder = self.clone();
        for part in names.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                _ => {
                    return Err(io::Error::other(
                        "its name points outside the output folder",
                    ));
                }
            };
            folder = match (folder.enter(name), make) {
                (Err(error), Some(sync)) if error.kind() == io::ErrorKind::NotFound => {
                    folder.make(name, sync)?;
                    folder.enter(name)?
                }
                (entered, _) => entered?,
            };
        }
        Ok(folder)
    }

    fn enter(&self, name: &OsStr) -> io::Result<Folder> {
        let path = self.path.join(name);
        fault::point(Kind::Open, &path)?;
        let flags = HOLD | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&*self.fd, name, flags, Mode::empty())?;
        Ok(Folder {
            fd: Arc::new(fd),
            path,
        })
    }

    fn make(&self, name: &OsStr, sync: bool) -> io::Result<()> {
        fault::point(Kind::Mkdir, &self.path.join(name))?;
        match rustix::fs::mkdirat(&*self.fd, name, Mode::from_raw_mode(0o777)) {
            // Another run or thread created it first.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        if sync { self.sync() } else { Ok(()) }
    }

    /// Waits until the entries are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        fault::point(Kind::Open, &self.path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&*self.fd, ".", flags, Mode::empty())?;
        fault::point(Kind::Sync, &self.path)?;
        match rustix::fs::fsync(folder) {
            // Some file systems do not support this call for folders.
            Err(Errno::INVAL) => Ok(()),
            other => Ok(other?),
        }
    }

    /// The properties of the file with a name, without following links; `None` if there is none.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        fault::point(Kind::Stat, &self.path.join(name))?;
        match rustix::fs::statat(&*self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Ok(Some(about)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in it and what each is, a link being a link; those that cannot be read are left out.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = (OsString, FileType)>> {
        fault::point(Kind::Readdir, &self.path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&*self.fd, ".", flags, Mode::empty())?;
        let entries = Dir::new(folder)?.flatten();
        Ok(entries.map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            let kind = match entry.file_type() {
                // Some file systems do not say it here.
                FileType::Unknown => self.look(&name).ok().flatten().as_ref().map(file_type),
                known => Some(known),
            };
            (name, kind.unwrap_or(FileType::Unknown))
        }))
    }

    /// Opens a regular file for reading, without following a link and without waiting for the writer of
    /// a FIFO.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        self.open_regular(name, OFlags::RDONLY)
    }

    /// As `read`, so that the file can be locked: network file systems want it to be open for writing.
    pub fn open_to_lock(&self, name: &OsStr) -> io::Result<File> {
        self.open_regular(name, OFlags::RDWR)
    }

    fn open_regular(&self, name: &OsStr, access: OFlags) -> io::Result<File> {
        let path = self.path.join(name);
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        fault::point(Kind::Open, &path)?;
        let opened = rustix::fs::openat(&*self.fd, name, flags, Mode::empty());
        let opened = opened.map_err(|error| match error {
            Errno::LOOP => io::Error::other("it is a symbolic link"),
            error => error.into(),
        })?;
        fault::point(Kind::Stat, &path)?;
        match file_type(&rustix::fs::fstat(&opened)?) {
            FileType::RegularFile => Ok(opened.into()),
            other => Err(io::Error::other(format!("it is {}", named(other)))),
        }
    }

    /// A new empty file.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken, by a link too.
    pub fn create_new(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        fault::point(Kind::Create, &self.path.join(name))?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&*self.fd, name, flags, mode)?.into())
    }

    /// A new empty file without a name, if this file system supports that.
    #[cfg(target_os = "linux")]
    pub fn nameless(&self, mode: Mode) -> Option<File> {
        fault::point(Kind::Create, &self.path).ok()?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&*self.fd, ".", flags, mode).ok()?;
        Some(opened.into())
    }

    /// Only Linux has files without a name.
    #[cfg(not(target_os = "linux"))]
    pub fn nameless(&self, _: Mode) -> Option<File> {
        None
    }

    /// Gives a file without a name this name, which must be free.
    pub fn link(&self, file: &File, name: &OsStr) -> io::Result<()> {
        fault::point(Kind::Link, &self.path.join(name))?;
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let follow = AtFlags::SYMLINK_FOLLOW;
        Ok(rustix::fs::linkat(CWD, own, &*self.fd, name, follow)?)
    }

    /// Renames a file, over one that has the name, or over a link.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fault::point(Kind::Rename, &self.path.join(to))?;
        Ok(rustix::fs::renameat(&*self.fd, from, &*self.fd, to)?)
    }

    /// Renames a file to a name that must be free.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let fd = &*self.fd;
        let path = self.path.join(to);
        let renamed = fault::point(Kind::Rename, &path).and_then(|()| {
            Ok(rustix::fs::renameat_with(
                fd,
                from,
                fd,
                to,
                RenameFlags::NOREPLACE,
            )?)
        });
        if !renamed.as_ref().is_err_and(is_lacking) {
            return renamed;
        }
        let linked = fault::point(Kind::Link, &path)
            .and_then(|()| Ok(rustix::fs::linkat(fd, from, fd, to, AtFlags::empty())?));
        match linked {
            Ok(()) => return self.unlink(from),
            // Some object stores' file systems say EPERM or EMLINK.
            Err(error) if is_lacking(&error) || is_one_of(&error, &[Errno::PERM, Errno::MLINK]) => {
            }
            Err(error) => return Err(error),
        }
        drop(self.create_new(to, Mode::from_raw_mode(0o600))?);
        let renamed = self.rename(from, to);
        if renamed.is_err() {
            let _ = self.unlink(to);
        }
        renamed
    }

    /// Removes a name.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        fault::point(Kind::Unlink, &self.path.join(name))?;
        Ok(rustix::fs::unlinkat(&*self.fd, name, AtFlags::empty())?)
    }

    /// The path that it was opened with, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to `name` through the open folder, for calls that need a path; without `/proc`, the path does
    /// not exist.
    pub fn own_path(&self, name: &OsStr) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", self.fd.as_raw_fd())).join(name)
    }
}

/// Whether a call failed because of a link where a folder was wanted.
fn is_link(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::NOTDIR, Errno::LOOP])
}

/// Whether a system or file system lacks a call or its flags.
fn is_lacking(error: &io::Error) -> bool {
    is_one_of(
        error,
        &[Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP],
    )
}

fn is_one_of(error: &io::Error, errors: &[Errno]) -> bool {
    Errno::from_io_error(error).is_some_and(|error| errors.contains(&error))
}

/// The file type in the properties of a file.
pub fn file_type(about: &Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

/// The type of a file that is not a regular file, with its article.
pub fn named(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}
