//! A temporary folder, which is removed when it is dropped, or when a signal ends the process.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// The folders that exist. Held while a folder is created and recorded, and from the removal of the recorded ones to the end of
/// the process, so that no folder is created that nobody removes.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// How often the removal of a folder is repeated, while threads still add files to it.
const ATTEMPTS: usize = 100;

/// A folder in the system's folder for temporary files (`TMPDIR`).
#[derive(Debug)]
pub struct TemporaryFolder(Option<TempDir>);

impl TemporaryFolder {
    /// Creates an empty folder, whose name begins with `prefix`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new(prefix: &str) -> io::Result<TemporaryFolder> {
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        folders.insert(folder.path().into());
        Ok(TemporaryFolder(Some(folder)))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let path = self.path().to_path_buf();
        // First removed, then forgotten: a signal in between finds it.
        self.0.take();
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        folders.remove(&path);
    }
}

/// Removes all temporary folders, before a signal ends the process. No thread can create another after this.
pub fn remove_temporary_folders() {
    let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in folders.iter() {
        let mut attempts = (0..ATTEMPTS).map(|_| fs::remove_dir_all(folder));
        attempts.find(|attempt| match attempt {
            Ok(()) => true,
            Err(error) => error.kind() == ErrorKind::NotFound,
        });
    }
    std::mem::forget(folders);
}
