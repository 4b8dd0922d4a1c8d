//! The folder `NAME.partial` of a store: created, or shared with other runs that write the same store.

use super::{StorePlace, is_store};
use crate::os::fault::{self, Kind};
use crate::os::held::Folder;
use crate::os::reason::{is_absence, plain};
use crate::os::store_record::{Origin, Record, StoreTask};
use crate::os::system::About;
use crate::os::unfinished::Temporary;
use anyhow::{Context, Result, ensure};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a run may take from the creation of its folder to the lock and the record.
const START: Duration = Duration::from_secs(10);

/// The time between two attempts to begin.
const PAUSE: Duration = Duration::from_millis(20);

/// The folder `NAME.partial`.
#[derive(Debug)]
pub struct Partial {
    /// Its name.
    pub name: OsString,
    /// The folder itself.
    pub folder: Folder,
    /// The same, opened for reading; it holds the lock.
    pub opened: File,
    /// Removes the folder after an error or a signal; `None` if it is kept for a run that continues.
    pub temporary: Option<Temporary>,
}

impl Partial {
    /// Creates the folder; what a killed run has left there is removed first.
    pub fn create(place: &StorePlace) -> Result<Partial> {
        let StorePlace { parent, .. } = place;
        let name = place.partial_name();
        let temporary = match Temporary::folder(parent, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_leftover(parent, &name)?;
                Temporary::folder(parent, &name)
            }
            other => other,
        };
        let temporary = temporary.map_err(plain)?;
        let partial = Partial {
            temporary: Some(temporary),
            ..Partial::open(parent, name).map_err(plain)?
        };
        // File systems without locks do without.
        let _ = partial.opened.try_lock();
        Ok(partial)
    }

    fn open(parent: &Folder, name: OsString) -> io::Result<Partial> {
        let folder = parent.below(Path::new(&name))?;
        Ok(Partial {
            opened: folder.open_itself()?,
            name,
            folder,
            temporary: None,
        })
    }

    /// Whether the name still leads to the folder.
    pub fn has_its_name(&self, parent: &Folder) -> io::Result<bool> {
        fault::point(Kind::Stat, self.folder.path())?;
        let own = About::from(&self.opened.metadata()?).id;
        Ok(parent
            .look(&self.name)?
            .is_some_and(|about| about.id == own))
    }
}

/// Opens the unfinished store that a run continues, or begins one. A leftover that is made of something else is replaced.
///
/// # Errors
/// Another run that writes this store, and a folder that is not an unfinished store.
pub fn join(place: &StorePlace, origin: &Origin, task: StoreTask) -> Result<(Partial, Record)> {
    let (parent, name) = (&place.parent, place.partial_name());
    let begun = Instant::now();
    loop {
        let is_new = match parent.make_new(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            made => made.map(|()| true).map_err(plain)?,
        };
        let joined = match Partial::open(parent, name.clone()) {
            // The task that finished last has renamed it.
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(plain(error)),
            Ok(partial) => try_join(partial, parent, origin, task, is_new),
        };
        let joined = joined.with_context(|| name.to_string_lossy().into_owned())?;
        if let Some(joined) = joined {
            return Ok(joined);
        }
        ensure!(
            begun.elapsed() < 2 * START,
            "{}: another run is writing it, of another input or with other options",
            name.to_string_lossy()
        );
        thread::sleep(PAUSE);
    }
}

/// One attempt to `join`; `None` if another run has changed the state of the folder, or is about to.
fn try_join(
    partial: Partial,
    parent: &Folder,
    origin: &Origin,
    task: StoreTask,
    is_new: bool,
) -> Result<Option<(Partial, Record)>> {
    let Partial { folder, opened, .. } = &partial;
    let is_alone = task.count == 1;
    let locked = match is_alone {
        true => opened.try_lock(),
        false => opened.try_lock_shared(),
    };
    if matches!(locked, Err(TryLockError::WouldBlock)) {
        ensure!(!is_alone, "another run is writing it");
        return Ok(None);
    }
    let is_of_origin = || Record::is_of(folder, origin).map_err(plain);
    if !partial.has_its_name(parent).map_err(plain)? {
        return Ok(None);
    }
    if is_of_origin()? {
        let record = Record::open(folder, origin, task)?;
        return Ok(Some((partial, record)));
    }
    if !is_alone {
        // It is emptied by one task that has it alone. The others see that when they try again.
        let _ = opened.unlock();
        let is_shared = matches!(opened.try_lock(), Err(TryLockError::WouldBlock));
        if is_shared || !partial.has_its_name(parent).map_err(plain)? || is_of_origin()? {
            return Ok(None);
        }
    }
    if !is_new && !is_leftover(folder, opened)? {
        return Ok(None);
    }
    folder.remove_entries().map_err(plain)?;
    let record = Record::open(folder, origin, task)?;
    Ok(is_alone.then_some((partial, record)))
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
        ensure!(
            is_leftover(&folder, &itself)?,
            "another run has just begun to write it"
        );
        parent.remove_folder(name).map_err(plain)
    };
    check().with_context(|| name.to_string_lossy().into_owned())
}

/// Whether a folder that no run holds is a leftover; an empty one may be that of a run that has just begun.
///
/// # Errors
/// A folder with anything else in it.
fn is_leftover(folder: &Folder, opened: &File) -> Result<bool> {
    let is_empty = folder.entries().map_err(plain)?.next().is_none();
    if is_empty {
        let changed = opened.metadata().and_then(|about| about.modified());
        let age = changed.map_err(plain)?.elapsed().unwrap_or_default();
        return Ok(age > START);
    }
    let is_unfinished =
        is_store(folder).and_then(|is_store| Ok(is_store || Record::is_in(folder)?));
    ensure!(
        is_unfinished.map_err(plain)?,
        "it is not an unfinished Zarr store: remove it, or give another name"
    );
    Ok(true)
}
