//! A Zarr store that is being written: the folder `NAME.partial` beside the place of the store, which is renamed to `NAME` when
//! it is complete. An error, and a signal, remove it. A run that is killed leaves it, without its lock; the next run that
//! writes the same store removes it, or with `--resume` continues it (`store_record`).
//!
//! Several tasks share the folder and its lock. The task that finishes last holds the lock alone, and gives the store its name.

mod partial;

use super::durable::parent;
use super::fault::{self, Kind};
use super::held::Folder;
use super::identity::Identity;
use super::reason::{exists, is_absence, plain};
use super::remote::Upload;
use super::store::DESCRIPTIONS;
use super::store_record::{Origin, PageRanges, Record, StoreRun, StoreTask};
use super::system::FileKind;
use super::unfinished::{close, not_ending};
use super::url::Url;
use anyhow::{Result, bail, ensure};
use partial::{Partial, join};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::TryLockError;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where a store will be.
#[derive(Clone, Debug)]
pub struct StorePlace {
    /// The folder that it will be in.
    parent: Folder,
    /// Its name there.
    name: OsString,
    /// Whether it may replace another store.
    overwrite: bool,
}

/// A store that has no final name yet.
#[derive(Debug)]
pub struct UnfinishedStore {
    place: StorePlace,
    partial: Partial,
    /// What is finished.
    record: Record,
    task: StoreTask,
    /// Whether the store is complete, and this run the only one that writes it.
    is_complete: AtomicBool,
}

impl StorePlace {
    /// A place for a store called `name` in the folder `parent`.
    ///
    /// # Errors
    /// A store that exists, unless `overwrite`, and anything else of that name.
    pub fn new(parent: Folder, name: OsString, overwrite: bool) -> Result<StorePlace> {
        check_replaceable(&parent, &name, overwrite)?;
        Ok(StorePlace {
            parent,
            name,
            overwrite,
        })
    }

    fn partial_name(&self) -> OsString {
        let mut name = self.name.clone();
        name.push(".partial");
        name
    }
}

impl UnfinishedStore {
    /// Begins a store, or continues what another run has begun, without touching a complete one. `origin` is what the store is
    /// made of, if that is known.
    ///
    /// # Errors
    /// Another run that writes this store, and a folder that is not an unfinished store.
    pub fn begin(
        place: StorePlace,
        run: &StoreRun,
        origin: Option<&Origin>,
    ) -> Result<UnfinishedStore> {
        let (partial, record) = match origin {
            Some(origin) if run.resume => join(&place, origin, run.task)?,
            _ => {
                ensure!(
                    run.task.count == 1,
                    "several tasks cannot write it, because its input is a stream or a Zarr store: remove --shard"
                );
                let partial = Partial::create(&place)?;
                let record = match origin {
                    Some(origin) => Record::open(&partial.folder, origin, run.task)?,
                    None => Record::none(),
                };
                (partial, record)
            }
        };
        Ok(UnfinishedStore {
            place,
            partial,
            record,
            task: run.task,
            is_complete: AtomicBool::new(false),
        })
    }

    /// What is finished.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Writes a file of the store, which replaces one of that name; with `sync`, its bytes are on the disk when this returns.
    /// Many threads may write different files.
    pub fn write(&self, member: &Path, bytes: &[u8], sync: bool) -> io::Result<()> {
        let Partial { folder, .. } = &self.partial;
        let mut file = {
            let _not_ending = not_ending();
            let names = member.parent().unwrap_or(Path::new(""));
            let folder = folder.make_below(names, false)?;
            folder.create(member.file_name().unwrap_or_default())?
        };
        let path = folder.path().join(member);
        fault::point(Kind::Write, &path)?;
        file.write_all(bytes)?;
        if sync {
            fault::point(Kind::Sync, &path)?;
            file.sync_all()?;
        }
        close(file, &path)
    }

    /// Called when all pages of this run are finished. If the other tasks have finished theirs, nobody else writes the store from
    /// now on, and this returns the ranges of all pages; otherwise another task completes the store.
    ///
    /// # Errors
    /// Files of another task that are damaged.
    pub fn complete(&self, pages: usize) -> Result<Option<BTreeMap<usize, PageRanges>>> {
        let ranges = match self.task.count {
            1 => Some(self.record.pages()),
            _ => self.complete_for_all(pages)?,
        };
        self.is_complete.store(ranges.is_some(), Ordering::Relaxed);
        Ok(ranges)
    }

    /// As `complete`, for one of several tasks.
    fn complete_for_all(&self, pages: usize) -> Result<Option<BTreeMap<usize, PageRanges>>> {
        let ranges = self.record.pages_of_all().map_err(plain)?;
        if ranges.len() < pages {
            return Ok(None);
        }
        // Each task gives its share of the lock back before it asks for all of it, so one of those that end at the same time
        // gets it.
        let Partial { opened, folder, .. } = &self.partial;
        let _ = opened.unlock();
        let is_shared = matches!(opened.try_lock(), Err(TryLockError::WouldBlock));
        let parent = &self.place.parent;
        if is_shared || !self.partial.has_its_name(parent).map_err(plain)? {
            return Ok(None);
        }
        self.record.check_others(folder)?;
        Ok(Some(ranges))
    }

    /// Whether the store is complete, and this run gives it its name.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Relaxed)
    }

    /// Removes the record, and returns the identity of the complete store's folder, which changes when a file is added to it or
    /// removed from it. What a run leaves that is killed between this and `name` is written again.
    pub fn close_record(&self) -> io::Result<Identity> {
        let Partial { folder, opened, .. } = &self.partial;
        self.record.remove(folder)?;
        fault::point(Kind::Stat, folder.path())?;
        Ok(Identity::from(&opened.metadata()?))
    }

    /// Gives the complete store its name. With `sync`, all names are on the disk when this returns.
    ///
    /// # Errors
    /// Something else that has the name by now.
    pub fn name(mut self, sync: bool) -> Result<()> {
        if sync {
            sync_folders(&self.partial.folder).map_err(plain)?;
        }
        let StorePlace {
            parent,
            name,
            overwrite,
        } = self.place.clone();
        if check_replaceable(&parent, &name, overwrite)? {
            self.replace().map_err(plain)?;
        } else {
            let renamed = parent.rename_folder_new(&self.partial.name, &name);
            renamed.map_err(plain)?;
        }
        if let Some(temporary) = self.partial.temporary.take() {
            temporary.forget();
        }
        if sync {
            parent.sync().map_err(plain)?;
        }
        Ok(())
    }

    /// Takes the place of the old store, which is then removed. What cannot be removed remains: the new store is complete.
    fn replace(&self) -> io::Result<()> {
        let StorePlace { parent, name, .. } = &self.place;
        let partial = &self.partial.name;
        if parent.exchange(partial, name)? {
            // The old store has the temporary name now.
            let _ = parent.remove_folder(partial);
            return Ok(());
        }
        let mut aside = name.clone();
        aside.push(".replaced");
        parent.rename_folder_new(name, &aside)?;
        if let Err(error) = parent.rename_folder_new(partial, name) {
            parent.rename_folder_new(&aside, name)?;
            return Err(error);
        }
        let _ = parent.remove_folder(&aside);
        Ok(())
    }
}

impl Drop for UnfinishedStore {
    /// A folder that is kept is removed if nothing in it is finished.
    fn drop(&mut self) {
        let Partial {
            name, temporary, ..
        } = &self.partial;
        let is_kept = temporary.is_none() && self.task.count == 1;
        if is_kept && !self.is_complete() && self.record.is_empty() {
            let _ = self.place.parent.remove_folder(name);
        }
    }
}

/// Whether a store at `path` would replace another one.
///
/// # Errors
/// A store, unless `overwrite`, anything that is not a store, and a folder or a bucket that cannot be read.
pub fn replaces_store(path: &Path, overwrite: bool) -> Result<bool> {
    if let Some(url) = Url::parse(path) {
        return Upload::new(&url, overwrite)?.replaces();
    }
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

/// Waits until the names in a folder, and in all folders in it, are on the disk.
fn sync_folders(folder: &Folder) -> io::Result<()> {
    for (name, kind) in folder.entries()? {
        if kind == FileKind::Directory {
            sync_folders(&folder.below(Path::new(&name))?)?;
        }
    }
    folder.sync()
}
