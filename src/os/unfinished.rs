//! A file without a name, in the folder where it will get one. Linux supports such files
//! (`O_TMPFILE`) and removes them itself, however the process ends; on file systems without this
//! support the file has a temporary name, which `leftovers` recognises.
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
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError, RwLock};

/// The temporary names in use and their folders, removed when a signal ends the process.
static NAMES: Mutex<BTreeMap<OsString, Folder>> = Mutex::new(BTreeMap::new());

/// Held for reading while a temporary name is created and recorded, and for writing from the removal of the
/// recorded names to the end of the process, so that no name is created that nobody removes.
static ENDING: RwLock<()> = RwLock::new(());

/// Whether files without a name are supported.
static NAMELESS: LazyLock<bool> = LazyLock::new(|| {
    Path::new("/proc/self/fd").is_dir() && env::var_os("GPUIMG_NO_TMPFILE").is_none()
});

/// Removes files with temporary names, before a signal ends the process. No thread can make another
/// after this.
pub fn forget_unfinished() {
    std::mem::forget(ENDING.write().unwrap_or_else(PoisonError::into_inner));
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, folder) in names.iter() {
        let _ = folder.unlink(name);
    }
}

/// A file that has no final name yet.
#[derive(Debug)]
pub struct Unfinished {
    file: File,
    folder: Folder,
    /// `None` of a file without a name.
    temporary: Option<Temporary>,
}

/// A temporary name, which is removed when this is dropped.
#[derive(Debug)]
struct Temporary {
    folder: Folder,
    name: OsString,
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
            let (file, temporary) = Temporary::add(&folder, |name| folder.create_new(name, mode))?;
            hold(&file);
            // Between creation and lock another run may have removed it as a leftover.
            fault::point(Kind::Stat, &folder.path().join(&temporary.name))?;
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
        fault::point(Kind::Close, self.folder.path())?;
        system::close_copy(&self.file)
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
                    Temporary::add(&folder, |name| folder.link(&file, name))?.1
                }
                other => return other,
            },
        };
        if overwrite {
            folder.rename(&temporary.name, name)?;
        } else {
            folder.rename_new(&temporary.name, name)?;
        }
        temporary.forget();
        Ok(())
    }
}

impl Temporary {
    /// Calls `make` with random names until one is free.
    fn add<T>(
        folder: &Folder,
        make: impl Fn(&OsStr) -> io::Result<T>,
    ) -> io::Result<(T, Temporary)> {
        let _not_ending = ENDING.read().unwrap_or_else(PoisonError::into_inner);
        loop {
            let name = random_name();
            match make(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
                    names.insert(name.clone(), folder.clone());
                    let folder = folder.clone();
                    return Ok((file, Temporary { folder, name }));
                }
            }
        }
    }

    /// The name no longer exists: the file has been renamed.
    fn forget(mut self) {
        self.leave();
        self.name.clear();
    }

    fn leave(&self) {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&self.name);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = self.folder.unlink(&self.name);
            self.leave();
        }
    }
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
