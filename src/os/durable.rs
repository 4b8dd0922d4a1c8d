//! Creates folders and names that survive a power cut.
//!
//! A file survives once its data, its entry in its folder, and that folder's own entry are on the
//! disk: each needs a call of its own, which `--sync` requests.

use super::fault::{self, Kind};
use super::held::Folder;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Waits until the entries of `folder` are on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    fault::point(Kind::Open, folder)?;
    let opened = File::open(folder)?;
    fault::point(Kind::Sync, folder)?;
    match opened.sync_all() {
        // Some file systems do not support this call for folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// The folder that a path is in.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Held while folders are created with `sync`: otherwise another thread could rely on a folder that is not
/// on disk yet.
static MAKING: Mutex<()> = Mutex::new(());

/// Creates a folder and its missing parents; with `sync`, their entries are on the disk when this
/// returns, whichever thread created them.
pub fn make_folder(folder: &Path, sync: bool) -> io::Result<()> {
    if !sync {
        if !fault::metadata(folder).is_ok_and(|about| about.is_dir()) {
            fault::point(Kind::Mkdir, folder)?;
        }
        return fs::create_dir_all(folder);
    }
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    make_and_sync(folder)
}

/// As `make_folder`, for a folder below `root`: no link out of `root` is followed, even one that somebody
/// creates at this moment.
pub fn make_folder_below(root: &Path, folder: &Path, sync: bool) -> io::Result<()> {
    let names = folder.strip_prefix(root).map_err(io::Error::other)?;
    let top = match Folder::open(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_folder(root, sync)?;
            Folder::open(root)?
        }
        other => other?,
    };
    let _making = sync.then(|| MAKING.lock().unwrap_or_else(PoisonError::into_inner));
    top.make_below(names, sync).map(drop)
}

fn make_and_sync(folder: &Path) -> io::Result<()> {
    if fault::metadata(folder).is_ok_and(|about| about.is_dir()) {
        return Ok(());
    }
    make_and_sync(parent(folder))?;
    fault::point(Kind::Mkdir, folder)?;
    match fs::create_dir(folder) {
        // Another process created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        other => other?,
    }
    sync_folder(parent(folder))
}
