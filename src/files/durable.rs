//! Folders and names that a power cut does not undo.
//!
//! A file is on the disk once its data are, and the entry in its folder, and that folder's entry in
//! its own: each is a call of its own, which `--sync` asks for.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Waits until the entries of `folder` are on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems have no such call for folders; they keep entries in other ways, or not.
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

/// Makes a folder and those above it, where they are missing; with `sync`, their entries are on
/// the disk when this returns, whichever thread made them.
pub fn make_folder(folder: &Path, sync: bool) -> io::Result<()> {
    if !sync {
        return fs::create_dir_all(folder);
    }
    // One thread at a time: another must not take a folder for safe that is only just made.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    make_and_sync(folder)
}

fn make_and_sync(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    make_and_sync(parent(folder))?;
    match fs::create_dir(folder) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        other => other?,
    }
    sync_folder(parent(folder))
}
