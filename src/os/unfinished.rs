//! A file without a name, in the folder where it will get one. Linux supports such files
//! (`O_TMPFILE`) and removes them itself, however the process ends; on file systems without this
//! support the file has a temporary name, which `leftovers` recognises. Folders have temporary names
//! everywhere (`unfinished_store`).
//!
//! `GPUIMG_NO_TMPFILE=1` turns off that support, for tests.

use super::fault::{self, Kind};
use super::held::Folder;
use super::leftovers;
use super::system::{self, About};
use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// The temporary names in use by their paths, removed when a signal ends the process.
static NAMES: Mutex<BTreeMap<PathBuf, Name>> = Mutex::new(BTreeMap::new());

/// Held for reading while a temporary name is created and recorded, or a file in a folder with such a name, and for writing
/// from the removal of the recorded names to the end of the process, so that nothing is created that nobody removes.
static ENDING: RwLock<()> = RwLock::new(());

/// Whether files without a name are supported.
static NAMELESS: LazyLock<bool> = LazyLock::new(|| {
    Path::new("/proc/self/fd").is_dir() && env::var_os("GPUIMG_NO_TMPFILE").is_none()
});

/// Removes files and folders with temporary names, before a signal ends the process. No thread can make
/// another after this.
pub fn forget_unfinished() {
    std::mem::forget(ENDING.write().unwrap_or_else(PoisonError::into_inner));
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    for name in names.values() {
        name.remove();
    }
}

/// While this is held, `forget_unfinished` waits; once that has begun, this waits for the end of the process.
pub fn not_ending() -> RwLockReadGuard<'static, ()> {
    ENDING.read().unwrap_or_else(PoisonError::into_inner)
}

/// A file that has no final name yet.
#[derive(Debug)]
pub struct Unfinished {
    file: File,
    folder: Folder,
    /// `None` of a file without a name.
    temporary: Option<Temporary>,
}

/// A name in a folder.
#[derive(Clone, Debug)]
struct Name {
    folder: Folder,
    name: OsString,
    /// Whether it is that of a folder, not of a file.
    is_folder: bool,
}

impl Name {
    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Removes the file, or the folder with everything in it. What cannot be removed remains.
    fn remove(&self) {
        let _ = if self.is_folder {
            self.folder.remove_folder(&self.name)
        } else {
            self.folder.unlink(&self.name)
        };
    }
}

/// A temporary name, which is removed when this is dropped.
#[derive(Debug)]
pub struct Temporary {
    name: Name,
    /// Whether it still exists: the file may have been renamed.
    exists: bool,
}

impl Unfinished {
    /// A new empty file in `folder`.
    pub fn in_folder(folder: Folder, mode: u32) -> io::Result<Unfinished> {
        if *NAMELESS && let Some(file) = folder.nameless(mode) {
            return Ok(Unfinished {
                file,
                folder,
                temporary: None,
            });
        }
        loop {
            let create = |name: &OsStr| folder.create_new(name, mode);
            let (file, temporary) = Temporary::random(&folder, create)?;
            hold(&file);
            // Between creation and lock another run may have removed it as a leftover.
            fault::point(Kind::Stat, &temporary.name.path())?;
            if About::from(&file.metadata()?).links > 0 {
                return Ok(Unfinished {
                    file,
                    folder,
                    temporary: Some(temporary),
                });
            }
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Closes the file as `close` does, which is when NFS and quotas report that it does not fit; the
    /// file itself stays open, because one without a name would be gone.
    pub fn close(&self) -> io::Result<()> {
        close(self.file.try_clone()?, self.folder.path())
    }

    /// Gives the file its name; an existing file of that name remains unless `overwrite`.
    pub fn name(self, name: &OsStr, overwrite: bool) -> io::Result<()> {
        let Unfinished {
            file,
            folder,
            temporary,
        } = self;
        let temporary = match temporary {
            Some(temporary) => temporary,
            None => match folder.link(&file, name) {
                // A link cannot replace an existing file, but a rename can: so the file gets a
                // temporary name first.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && overwrite => {
                    hold(&file);
                    Temporary::random(&folder, |name| folder.link(&file, name))?.1
                }
                other => return other,
            },
        };
        if overwrite {
            folder.rename(temporary.name(), name)?;
        } else {
            folder.rename_new(temporary.name(), name)?;
        }
        temporary.forget();
        Ok(())
    }
}

impl Temporary {
    /// Calls `make` with random names until one is free.
    fn random<T>(
        folder: &Folder,
        make: impl Fn(&OsStr) -> io::Result<T>,
    ) -> io::Result<(T, Temporary)> {
        let _not_ending = not_ending();
        loop {
            let name = random_name();
            match make(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let (folder, is_folder) = (folder.clone(), false);
                    let name = Name {
                        folder,
                        name,
                        is_folder,
                    };
                    return Ok((file, Temporary::record(name)));
                }
            }
        }
    }

    /// A new empty folder with this name.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken.
    pub fn folder(folder: &Folder, name: &OsStr) -> io::Result<Temporary> {
        let _not_ending = not_ending();
        folder.make_new(name)?;
        Ok(Temporary::record(Name {
            folder: folder.clone(),
            name: name.into(),
            is_folder: true,
        }))
    }

    fn record(name: Name) -> Temporary {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.path(), name.clone());
        Temporary { name, exists: true }
    }

    /// The name.
    pub fn name(&self) -> &OsStr {
        &self.name.name
    }

    /// The name no longer exists: the file or folder has been renamed.
    pub fn forget(mut self) {
        self.exists = false;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.exists {
            self.name.remove();
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&self.name.path());
    }
}

/// Closes a file, and returns the error that dropping it would ignore. `path` is for tests.
pub fn close(file: File, path: &Path) -> io::Result<()> {
    fault::point(Kind::Close, path)?;
    system::close(file)
}

/// A temporary name with random letters and digits at its end.
fn random_name() -> OsString {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // The keys of the standard library's hash tables are random.
    let mut random = RandomState::new().hash_one(0_u8);
    let mut name = leftovers::prefix();
    for _ in 0..leftovers::RANDOM {
        name.push(char::from(LETTERS[(random % 62) as usize]));
        random /= 62;
    }
    name.into()
}

/// Locks a file that has a temporary name, as long as it is open, so that it is not removed as a
/// leftover. On file systems without locks no file is ever removed.
fn hold(file: &File) {
    let _ = file.lock();
}
