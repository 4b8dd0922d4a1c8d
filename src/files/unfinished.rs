//! A file without a name, in the folder where it will get one. Linux supports such files
//! (`O_TMPFILE`) and removes them itself, however the process ends; on file systems without this
//! support the file has a temporary name, which `leftovers` recognises.
//!
//! `GPUIMG_NO_TMPFILE=1` turns off that support, for tests.

use super::fault::{self, Kind};
use super::leftovers;
use rustix::fs::{AtFlags, CWD, FlockOperation};
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The temporary names in use, removed when a signal ends the process.
static NAMES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether files without a name are supported.
static NAMELESS: LazyLock<bool> = LazyLock::new(|| {
    Path::new("/proc/self/fd").is_dir() && env::var_os("GPUIMG_NO_TMPFILE").is_none()
});

/// Removes files with temporary names, before a signal ends the process.
pub fn forget_unfinished() {
    for path in NAMES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = fs::remove_file(path);
    }
}

/// A file that has no final name yet.
#[derive(Debug)]
pub enum Unfinished {
    /// A file without a name, and its folder.
    Nameless(File, PathBuf),
    /// A file with a temporary name.
    Named(tempfile::NamedTempFile),
}

impl Unfinished {
    /// A new empty file in `folder`.
    pub fn in_folder(folder: &Path, permissions: Permissions) -> io::Result<Unfinished> {
        if *NAMELESS && let Some(file) = nameless(folder, &permissions) {
            return Ok(Unfinished::Nameless(file, folder.into()));
        }
        loop {
            fault::point(Kind::Create, folder)?;
            let named = tempfile::Builder::new()
                .prefix(&leftovers::prefix())
                .permissions(permissions.clone())
                .tempfile_in(folder)?;
            hold(named.as_file());
            // Between creation and lock another run may have removed it as a leftover.
            fault::point(Kind::Stat, named.path())?;
            if named.as_file().metadata()?.nlink() > 0 {
                note(named.path(), true);
                return Ok(Unfinished::Named(named));
            }
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        match self {
            Unfinished::Nameless(file, _) => file,
            Unfinished::Named(named) => named.as_file(),
        }
    }

    /// Gives the file its name; an existing file of that name remains unless `overwrite`.
    pub fn name(self, path: &Path, overwrite: bool) -> io::Result<()> {
        match self {
            Unfinished::Nameless(file, folder) => {
                let link = |path: &Path| -> io::Result<()> {
                    fault::point(Kind::Link, path)?;
                    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
                    Ok(rustix::fs::linkat(
                        CWD,
                        own,
                        CWD,
                        path,
                        AtFlags::SYMLINK_FOLLOW,
                    )?)
                };
                match link(path) {
                    // A link cannot replace an existing file, but a rename can: so the file gets a
                    // temporary name first.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && overwrite => {
                        hold(&file);
                        let temporary = tempfile::Builder::new()
                            .prefix(&leftovers::prefix())
                            .make_in(&folder, |path| link(path))?;
                        fault::point(Kind::Rename, path)?;
                        Ok(temporary.into_temp_path().persist(path)?)
                    }
                    other => other,
                }
            }
            Unfinished::Named(named) => {
                let own = named.path().to_path_buf();
                if let Err(error) = fault::point(Kind::Rename, path) {
                    note(&own, false);
                    return Err(error);
                }
                let named = match overwrite {
                    true => named.persist(path).map(drop),
                    false => named.persist_noclobber(path).map(drop),
                };
                note(&own, false);
                Ok(named.map_err(|failed| failed.error)?)
            }
        }
    }
}

/// A new file without a name in `folder`, if its file system supports that.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path, permissions: &Permissions) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::PermissionsExt;
    let mode = Mode::from_raw_mode(permissions.mode());
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    fault::point(Kind::Create, folder).ok()?;
    let opened = rustix::fs::open(folder, flags, mode).ok()?;
    Some(opened.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path, _: &Permissions) -> Option<File> {
    None
}

/// Locks a file that has a temporary name, as long as it is open, so that it is not removed as a
/// leftover. On file systems without locks no file is ever removed.
fn hold(file: &File) {
    let _ = rustix::fs::flock(file, FlockOperation::LockExclusive);
}

fn note(path: &Path, in_use: bool) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match in_use {
        true => names.insert(path.into()),
        false => names.remove(path),
    };
}
