//! A Zarr store that is being written: the folder `NAME.partial` beside the place of the store, which is renamed to `NAME` when
//! it is complete. An error, and a signal, remove it. A run that is killed leaves it, without its lock; the next run that
//! writes the same store removes it.

use super::durable::parent;
use super::fault::{self, Kind};
use super::held::Folder;
use super::identity::Identity;
use super::reason::{exists, is_absence, plain};
use super::store::DESCRIPTIONS;
use super::system::FileKind;
use super::unfinished::{Temporary, close, not_ending};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// How long a run may take from the creation of its folder to the lock.
const START: Duration = Duration::from_secs(10);

/// A store that has no final name yet.
#[derive(Debug)]
pub struct UnfinishedStore {
    /// The folder that the store will be in, and its name there.
    parent: Folder,
    name: OsString,
    partial: Temporary,
    /// The folder with the name `partial`.
    folder: Folder,
    overwrite: bool,
    /// The same, opened for reading; it holds the lock.
    opened: File,
}

impl UnfinishedStore {
    /// Prepares a store called `name` in the folder `parent`, without touching an existing one.
    ///
    /// # Errors
    /// A store that exists, unless `overwrite`; anything else of that name; and another run that writes this store.
    pub fn create(parent: Folder, name: OsString, overwrite: bool) -> Result<UnfinishedStore> {
        check_replaceable(&parent, &name, overwrite)?;
        let mut partial_name = name.clone();
        partial_name.push(".partial");
        let partial = match Temporary::folder(&parent, &partial_name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_leftover(&parent, &partial_name)?;
                Temporary::folder(&parent, &partial_name)
            }
            other => other,
        };
        let partial = partial.map_err(plain)?;
        let folder = parent.below(Path::new(&partial_name)).map_err(plain)?;
        let opened = folder.open_itself().map_err(plain)?;
        // File systems without locks do without.
        let _ = opened.try_lock();
        Ok(UnfinishedStore {
            parent,
            name,
            partial,
            folder,
            overwrite,
            opened,
        })
    }

    /// Writes a file of the store, which replaces one of that name; with `sync`, its bytes are on the disk when this returns.
    /// Many threads may write different files.
    pub fn write(&self, member: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
        let mut file = {
            let _not_ending = not_ending();
            let names = member.parent().unwrap_or(Path::new(""));
            let folder = self.folder.make_below(names, false)?;
            folder.create(member.file_name().unwrap_or_default())?
        };
        let path = self.folder.path().join(member);
        fault::point(Kind::Write, &path)?;
        file.write_all(bytes)?;
        if sync {
            fault::point(Kind::Sync, &path)?;
            file.sync_all()?;
        }
        close(file, &path)
    }

    /// The identity of the complete store's folder, which changes when a file is added to it or removed from it.
    pub fn identity(&self) -> io::Result<Identity> {
        fault::point(Kind::Stat, self.folder.path())?;
        Ok(Identity::from(&self.opened.metadata()?))
    }

    /// Gives the complete store its name. With `sync`, all names are on the disk when this returns.
    ///
    /// # Errors
    /// Something else that has the name by now.
    pub fn name(self, sync: bool) -> Result<()> {
        if sync {
            sync_folders(&self.folder).map_err(plain)?;
        }
        let replaces = check_replaceable(&self.parent, &self.name, self.overwrite)?;
        let parent = self.parent.clone();
        if replaces {
            self.replace().map_err(plain)?;
        } else {
            let renamed = parent.rename_folder_new(self.partial.name(), &self.name);
            renamed.map_err(plain)?;
            self.partial.forget();
        }
        if sync {
            parent.sync().map_err(plain)?;
        }
        Ok(())
    }

    /// Takes the place of the old store, which is then removed. What cannot be removed remains: the new store is complete.
    fn replace(self) -> io::Result<()> {
        let (parent, partial, name) = (&self.parent, self.partial.name(), &self.name);
        if parent.exchange(partial, name)? {
            // The old store has the temporary name now, and is removed with it.
            return Ok(());
        }
        let mut aside = self.name.clone();
        aside.push(".replaced");
        parent.rename_folder_new(name, &aside)?;
        if let Err(error) = parent.rename_folder_new(partial, name) {
            parent.rename_folder_new(&aside, name)?;
            return Err(error);
        }
        let _ = parent.remove_folder(&aside);
        self.partial.forget();
        Ok(())
    }
}

/// Whether a store at `path` would replace another one.
///
/// # Errors
/// A store, unless `overwrite`, anything that is not a store, and a folder that cannot be read.
pub fn replaces_store(path: &Path, overwrite: bool) -> Result<bool> {
    match (Folder::open(parent(path)), path.file_name()) {
        (Ok(folder), Some(name)) => check_replaceable(&folder, name, overwrite),
        // A folder that does not exist yet.
        (Err(error), Some(_)) if is_absence(&error) => Ok(false),
        (Err(error), _) => Err(plain(error)),
        (_, None) => bail!("it is a directory"),
    }
}

/// Whether a store called `name` would replace another one.
///
/// # Errors
/// A store, unless `overwrite`, and anything that is not a store.
fn check_replaceable(parent: &Folder, name: &OsStr, overwrite: bool) -> Result<bool> {
    let Some(about) = parent.look(name).map_err(plain)? else {
        return Ok(false);
    };
    if about.kind != FileKind::Directory {
        let kind = match about.kind {
            FileKind::Regular => "a file",
            other => other.named(),
        };
        bail!("it is {kind}, not a Zarr store: remove it, or give another name");
    }
    let folder = parent.below(Path::new(name)).map_err(plain)?;
    ensure!(
        is_store(&folder).map_err(plain)?,
        "it is a folder without {}, so it is not a Zarr store and is not replaced: remove it, or give another name",
        DESCRIPTIONS.join(", ")
    );
    ensure!(overwrite, exists());
    Ok(true)
}

fn is_store(folder: &Folder) -> io::Result<bool> {
    for name in DESCRIPTIONS {
        let about = folder.look(name.as_ref())?;
        if about.is_some_and(|about| about.kind == FileKind::Regular) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the unfinished store that a killed run left.
///
/// # Errors
/// An unfinished store that a run is writing, and anything else of that name.
fn remove_leftover(parent: &Folder, name: &OsStr) -> Result<()> {
    let check = || -> Result<()> {
        let folder = parent.below(Path::new(name)).map_err(plain)?;
        let itself = folder.open_itself().map_err(plain)?;
        itself
            .try_lock()
            .ok()
            .context("another run is writing it")?;
        let is_empty = folder.entries().map_err(plain)?.next().is_none();
        if is_empty {
            let changed = itself.metadata().and_then(|about| about.modified());
            let age = changed.map_err(plain)?.elapsed().unwrap_or_default();
            ensure!(age > START, "another run has just begun to write it");
        } else {
            ensure!(
                is_store(&folder).map_err(plain)?,
                "it is not an unfinished Zarr store: remove it, or give another name"
            );
        }
        parent.remove_folder(name).map_err(plain)
    };
    check().with_context(|| name.to_string_lossy().into_owned())
}

/// Waits until the names in a folder, and in all folders in it, are on the disk.
fn sync_folders(folder: &Folder) -> io::Result<()> {
    for (name, kind) in folder.entries()? {
        if kind == FileKind::Directory {
            sync_folders(&folder.below(Path::new(&name))?)?;
        }
    }
    folder.sync()
}
