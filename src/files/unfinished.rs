//! A file that has no name yet, in the folder where it is to get one. Linux keeps such files
//! (`O_TMPFILE`) and removes them itself, however the process ends; on file systems that cannot,
//! the file has a temporary name until then, which `leftovers` knows again.
//!
//! `GPUIMG_NO_TMPFILE=1` makes every file system one of those that cannot, for tests.

use super::leftovers;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The temporary names in use, to be removed should the process be asked to end.
static NAMES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Whether files without a name may be had.
static NAMELESS: LazyLock<bool> = LazyLock::new(|| {
    Path::new("/proc/self/fd").is_dir() && env::var_os("GPUIMG_NO_TMPFILE").is_none()
});

/// Removes files that have a temporary name only. For a process about to end.
pub fn forget_unfinished() {
    for path in NAMES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = fs::remove_file(path);
    }
}

/// A file on its way to its name.
#[derive(Debug)]
pub enum Unfinished {
    /// It has none.
    Nameless(File, PathBuf),
    /// It has a temporary one.
    Named(tempfile::NamedTempFile),
}

impl Unfinished {
    /// A new empty file in `folder`.
    pub fn in_folder(folder: &Path, permissions: Permissions) -> io::Result<Unfinished> {
        let mode = Mode::from_raw_mode(permissions.mode());
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if *NAMELESS && let Ok(file) = rustix::fs::open(folder, flags, mode) {
            return Ok(Unfinished::Nameless(file.into(), folder.into()));
        }
        loop {
            let named = tempfile::Builder::new()
                .prefix(&leftovers::prefix())
                .permissions(permissions.clone())
                .tempfile_in(folder)?;
            hold(named.as_file());
            // Between its creation and the lock, another run may have taken it for a leftover.
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

    /// Gives the file its name; what had it before stays unless `overwrite`.
    pub fn name(self, path: &Path, overwrite: bool) -> io::Result<()> {
        match self {
            Unfinished::Nameless(file, folder) => {
                let link = |path: &Path| {
                    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
                    rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)
                };
                match link(path) {
                    // A link cannot replace a file, only a name can: so a temporary one, at once renamed.
                    Err(rustix::io::Errno::EXIST) if overwrite => {
                        hold(&file);
                        let temporary = tempfile::Builder::new()
                            .prefix(&leftovers::prefix())
                            .make_in(&folder, |path| Ok(link(path)?))?;
                        temporary.into_temp_path().persist(path)?;
                        Ok(())
                    }
                    other => Ok(other?),
                }
            }
            Unfinished::Named(named) => {
                let own = named.path().to_path_buf();
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

/// Locks a file that has a temporary name, for as long as it is open: it is no leftover. Where files
/// cannot be locked, none is ever taken for one.
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
