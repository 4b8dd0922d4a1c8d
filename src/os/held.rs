//! Folders that are held open. Files in them are opened by name, relative to the folder, so that no path
//! is resolved twice, and nobody who may write to a folder can redirect a run by swapping a name. (On Windows a folder is
//! its path: `system` says why.)
//!
//! These calls have a fallback where a system or a file system lacks them:
//! * `O_PATH`, with which Linux holds a folder that may not be read: macOS opens folders for reading.
//! * `O_TMPFILE`, and `linkat` of an open file through `/proc`: a new file of a random name that nobody
//!   has (`unfinished`).
//! * `renameat2` with `RENAME_NOREPLACE` (macOS: `renameatx_np` with `RENAME_EXCL`): a hard link, which
//!   replaces nothing either; without hard links a new empty file under the name, which fails if the name
//!   is taken, and then a rename over that file.

use super::fault::{self, Kind};
use super::system::{self, About, FileKind, OpenFolder};
use crate::os::name::Shown;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A folder that is held open.
#[derive(Clone, Debug)]
pub struct Folder {
    open: Arc<OpenFolder>,
    /// Only for messages.
    path: PathBuf,
}

impl Folder {
    /// Opens a folder as the user names it, through links.
    pub fn open(path: &Path) -> io::Result<Folder> {
        fault::point(Kind::Open, path)?;
        Ok(Folder {
            open: Arc::new(OpenFolder::open(path)?),
            path: path.into(),
        })
    }

    /// Opens a folder below this one. Links are followed if they lead to a folder below this one, too.
    ///
    /// # Errors
    /// `NotFound` for a folder that is not there, and a link that leads out of this folder.
    pub fn below(&self, names: &Path) -> io::Result<Folder> {
        match self.descend(names, None) {
            Err(error) if system::is_link(&error) => self.descend(&self.resolved(names)?, None),
            other => other,
        }
    }

    /// As `below`, but creates missing folders. With `sync`, their entries are on disk when this
    /// returns.
    pub fn make_below(&self, names: &Path, sync: bool) -> io::Result<Folder> {
        match self.descend(names, Some(sync)) {
            Err(error) if system::is_link(&error) => {
                self.descend(&self.resolved(names)?, Some(sync))
            }
            other => other,
        }
    }

    /// The names below this folder to which `names` resolve, without links. A name may become a link before
    /// it is used, so callers must not follow links.
    pub fn resolved(&self, names: &Path) -> io::Result<PathBuf> {
        let path = self.path.join(names);
        let real = match (
            fault::canonicalize(&path),
            names.parent(),
            names.file_name(),
        ) {
            // The last folders, which are yet to be created.
            (Err(error), Some(parent), Some(name))
                if error.kind() == io::ErrorKind::NotFound && parent != Path::new("") =>
            {
                return Ok(self.resolved(parent)?.join(name));
            }
            (real, ..) => real?,
        };
        let below = real.strip_prefix(fault::canonicalize(&self.path)?);
        below.map(Path::to_path_buf).map_err(|_| {
            io::Error::other(format!(
                "{} is a link to a place outside {}",
                path.shown(),
                self.path.shown()
            ))
        })
    }

    /// Opens folder after folder without following links; creates missing ones if `make` is given.
    fn descend(&self, names: &Path, make: Option<bool>) -> io::Result<Folder> {
        let mut folder = self.clone();
        for part in names.components() {
            let name = match part {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                _ => {
                    return Err(io::Error::other(
                        "its name points outside the output folder",
                    ));
                }
            };
            folder = match (folder.enter(name), make) {
                (Err(error), Some(sync)) if error.kind() == io::ErrorKind::NotFound => {
                    folder.make(name, sync)?;
                    folder.enter(name)?
                }
                (entered, _) => entered?,
            };
        }
        Ok(folder)
    }

    fn enter(&self, name: &OsStr) -> io::Result<Folder> {
        let path = self.path.join(name);
        fault::point(Kind::Open, &path)?;
        let open = Arc::new(self.open.enter(name)?);
        Ok(Folder { open, path })
    }

    fn make(&self, name: &OsStr, sync: bool) -> io::Result<()> {
        fault::point(Kind::Mkdir, &self.path.join(name))?;
        match self.open.make(name) {
            // Another run or thread created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        if sync { self.sync() } else { Ok(()) }
    }

    /// Creates an empty folder.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken, by a link too.
    pub fn make_new(&self, name: &OsStr) -> io::Result<()> {
        fault::point(Kind::Mkdir, &self.path.join(name))?;
        self.open.make(name)
    }

    /// Waits until the entries are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        fault::point(Kind::Open, &self.path)?;
        fault::point(Kind::Sync, &self.path)?;
        self.open.sync()
    }

    /// The properties of the file with a name, without following links; `None` if there is none.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<About>> {
        fault::point(Kind::Stat, &self.path.join(name))?;
        match self.open.look(name) {
            Ok(about) => Ok(Some(about)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names in it but `.` and `..`, and what each is, a link being a link; those that cannot be read are left out.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = (OsString, FileKind)>> {
        fault::point(Kind::Readdir, &self.path)?;
        Ok(self.open.entries()?.map(|(name, kind)| {
            let kind = match kind {
                // Some file systems do not say it here.
                FileKind::Unknown => self.look(&name).ok().flatten().map(|about| about.kind),
                known => Some(known),
            };
            (name, kind.unwrap_or(FileKind::Unknown))
        }))
    }

    /// Opens a regular file for reading, without following a link and without waiting for the writer of
    /// a FIFO.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        self.open_regular(name, false)
    }

    /// As `read`, so that the file can be locked: network file systems want it to be open for writing.
    pub fn open_to_lock(&self, name: &OsStr) -> io::Result<File> {
        self.open_regular(name, true)
    }

    fn open_regular(&self, name: &OsStr, to_write: bool) -> io::Result<File> {
        let path = self.path.join(name);
        fault::point(Kind::Open, &path)?;
        let opened = self.open.open_file(name, to_write);
        let file = opened.map_err(|error| match system::is_link(&error) {
            true => io::Error::other("it is a symbolic link"),
            false => error,
        })?;
        fault::point(Kind::Stat, &path)?;
        match About::from(&file.metadata()?).kind {
            FileKind::Regular => Ok(file),
            other => Err(io::Error::other(format!("it is {}", other.named()))),
        }
    }

    /// A new empty file.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken, by a link too.
    pub fn create_new(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        fault::point(Kind::Create, &self.path.join(name))?;
        self.open.create_new(name, mode)
    }

    /// An empty file, which replaces the content of one that has the name.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        fault::point(Kind::Create, &self.path.join(name))?;
        self.open.create(name)
    }

    /// A new empty file without a name, if this file system supports that.
    pub fn nameless(&self, mode: u32) -> Option<File> {
        fault::point(Kind::Create, &self.path).ok()?;
        self.open.nameless(mode)
    }

    /// Gives a file without a name this name, which must be free.
    pub fn link(&self, file: &File, name: &OsStr) -> io::Result<()> {
        fault::point(Kind::Link, &self.path.join(name))?;
        self.open.link_nameless(file, name)
    }

    /// Renames a file, over one that has the name, or over a link.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fault::point(Kind::Rename, &self.path.join(to))?;
        self.open.rename(from, to)
    }

    /// Renames a file to a name that must be free.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let path = self.path.join(to);
        let renamed =
            fault::point(Kind::Rename, &path).and_then(|()| self.open.rename_new(from, to));
        if !renamed.as_ref().is_err_and(system::is_lacking) {
            return renamed;
        }
        let linked = fault::point(Kind::Link, &path).and_then(|()| self.open.link(from, to));
        match linked {
            Ok(()) => return self.unlink(from),
            Err(error) if system::lacks_links(&error) => {}
            Err(error) => return Err(error),
        }
        drop(self.create_new(to, 0o600)?);
        let renamed = self.rename(from, to);
        if renamed.is_err() {
            let _ = self.unlink(to);
        }
        renamed
    }

    /// Removes a name.
    pub fn unlink(&self, name: &OsStr) -> io::Result<()> {
        fault::point(Kind::Unlink, &self.path.join(name))?;
        self.open.unlink(name)
    }

    /// Makes `file` as accessible as the file `name`, about which `about` is known, and not more.
    pub fn inherit_access(&self, file: &File, name: &OsStr, about: &About) -> io::Result<()> {
        fault::point(Kind::Stat, &self.path.join(name))?;
        self.open.inherit_access(file, name, about)
    }

    /// Removes a folder with everything in it. Links in it are removed, not followed.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        self.enter(name)?.remove_entries()?;
        fault::point(Kind::Unlink, &self.path.join(name))?;
        self.open.remove_folder(name)
    }

    /// Removes everything in the folder. Links are removed, not followed.
    pub fn remove_entries(&self) -> io::Result<()> {
        // Removed while they are listed, entries could be missed.
        let entries: Vec<(OsString, FileKind)> = self.entries()?.collect();
        for (name, kind) in entries {
            let removed = match kind {
                FileKind::Directory => self.remove_folder(&name),
                _ => self.unlink(&name),
            };
            match removed {
                // Another thread or run removes it too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Renames a folder to a name that must be free.
    pub fn rename_folder_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let path = self.path.join(to);
        let renamed =
            fault::point(Kind::Rename, &path).and_then(|()| self.open.rename_new(from, to));
        match renamed {
            // A folder has no hard links. If the name is taken in the meantime, only an empty folder is replaced.
            Err(error) if system::is_lacking(&error) => match self.look(to)? {
                Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
                None => self.rename(from, to),
            },
            renamed => renamed,
        }
    }

    /// Exchanges two names, if the file system can do that in one step; returns whether it could.
    pub fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<bool> {
        let path = self.path.join(other);
        let renamed =
            fault::point(Kind::Rename, &path).and_then(|()| self.open.exchange(one, other));
        match renamed {
            Err(error) if system::is_lacking(&error) => Ok(false),
            renamed => renamed.map(|()| true),
        }
    }

    /// The folder opened for reading, so that it can be locked.
    pub fn open_itself(&self) -> io::Result<File> {
        fault::point(Kind::Open, &self.path)?;
        self.open.open_itself()
    }

    /// The path that it was opened with, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn the_mode_is_that_of_the_replaced_file_without_its_privileges() -> io::Result<()> {
        for (mode, expected) in [
            (0o640, 0o640),
            (0o777, 0o777),
            (0o6755, 0o755),
            (0o1607, 0o607),
        ] {
            let place = tempfile::tempdir()?;
            let folder = Folder::open(place.path())?;
            let old = File::create(place.path().join("old"))?;
            let new = File::create(place.path().join("new"))?;
            old.set_permissions(Permissions::from_mode(mode))?;
            let name = OsStr::new("old");
            let about = folder.look(name)?.ok_or(io::ErrorKind::NotFound)?;
            folder.inherit_access(&new, name, &about)?;
            assert_eq!(new.metadata()?.mode() & 0o7777, expected, "{mode:o}");
        }
        Ok(())
    }
}
