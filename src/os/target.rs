//! Outputs: a file or a Zarr store that gets its name only when it is complete, or a stream.

use super::durable::parent;
use super::fault::{self, Kind};
use super::held::Folder;
use super::identity::Identity;
use super::remote::Upload;
use super::sha256::Sha256;
use super::store::is_store_name;
use super::store_record::{Origin, PageRanges, Record, StoreRun};
use super::system::{self, About, FileKind};
use super::traffic::Traffic;
use super::unfinished::Unfinished;
use super::unfinished_store::{StorePlace, UnfinishedStore};
use super::url::{Url, check_output};
use crate::os::console;
use crate::os::name::Shown;
use crate::os::reason::{exists, plain, reason};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// An output: a file or a store that gets its name by `commit`, or a stream.
#[derive(Debug)]
pub struct Target {
    sink: Sink,
    /// Whether `commit` waits until the bytes are on disk before it gives the file its name, and then
    /// until the name is on disk.
    pub sync: bool,
    /// How a store is written.
    pub store_run: StoreRun,
    /// What tells the content of the input of a store from any other, if there is one input and that is known.
    pub store_input: Option<String>,
    /// Bytes and time of writing so far.
    pub traffic: Traffic,
}

#[derive(Debug)]
enum Sink {
    File {
        unfinished: Unfinished,
        folder: Folder,
        name: OsString,
        /// Only for messages.
        path: PathBuf,
        overwrite: bool,
    },
    /// Standard output, a pipe or a device: written in order, so bytes at later offsets are kept in
    /// memory.
    Stream {
        path: PathBuf,
        /// `None` is standard output.
        stream: Option<File>,
        bytes: Mutex<Vec<u8>>,
    },
    /// A store, and what is written of it, after `begin_store`.
    Store(StorePlace, OnceLock<Box<UnfinishedStore>>),
    /// A store in a bucket.
    Upload(Box<Upload>),
}

impl Target {
    /// Prepares an output that the user names, without touching an existing file. Such a file is refused
    /// unless `overwrite`; `-` is standard output. A FIFO or a device is opened now. A name that ends in `.zarr` is that of
    /// a store, in a folder or in a bucket.
    pub fn create(path: &Path, overwrite: bool) -> Result<Target> {
        if let Some(url) = Url::parse(path) {
            check_output(path)?;
            let upload = Upload::new(&url, overwrite)?;
            return Ok(Target::to(Sink::Upload(Box::new(upload))));
        }
        if path == Path::new("-") {
            console::check_output().map_err(plain)?;
            return Ok(Target::to(stream_to(path, None)));
        }
        // The type of the file now determines how it is opened, and the type of the open file is checked again.
        match fault::metadata(path) {
            Ok(about) if About::from(&about).kind.is_stream() => {
                return Ok(Target::to(stream_to(path, Some(open_stream(path)?))));
            }
            Ok(_) => {}
            Err(error) => absent(error)?,
        }
        let folder = open_folder(parent(path), Folder::open)?;
        let (mut folder, mut name) = (folder, name_of(path)?);
        if is_store_name(path) {
            return Target::to_store(folder, name, overwrite);
        }
        let mut there = folder.look(&name).map_err(plain)?;
        if there.as_ref().is_some_and(is_link) {
            ensure!(overwrite, exists());
            // The link remains and its target is replaced. The target is opened from the root down without
            // following links, because somebody may create one now. A broken link is replaced itself.
            let real = match fault::canonicalize(path) {
                Ok(real) => Some(real),
                Err(error) => absent(error).map(|()| None)?,
            };
            if let Some(real) = real {
                let names = parent(&real).strip_prefix("/")?;
                let below = |root: &Path| Folder::open(root)?.below(names);
                folder = open_folder(Path::new("/"), below)?;
                name = name_of(&real)?;
                there = folder.look(&name).map_err(plain)?;
                ensure!(!there.as_ref().is_some_and(is_link), "{EXCHANGED}");
            } else {
                there = None;
            }
        }
        Target::new(folder, name, path, there, overwrite)
    }

    /// Prepares an output in the output folder `root`: only a regular file is replaced there, and the target
    /// of a link only if it is also below `root`.
    pub fn create_below(root: &Path, path: &Path, overwrite: bool) -> Result<Target> {
        let top = open_folder(root, Folder::open)?;
        let names = path.strip_prefix(root)?;
        let (mut names, mut name) = (names.to_path_buf(), name_of(path)?);
        let folder_of = |names: &Path| {
            let folder = names.parent().unwrap_or(Path::new(""));
            open_folder(parent(path), |_| top.below(folder))
        };
        let mut folder = folder_of(&names)?;
        if is_store_name(path) {
            return Target::to_store(folder, name, overwrite);
        }
        let mut there = folder.look(&name).map_err(plain)?;
        if there.as_ref().is_some_and(is_link) {
            ensure!(overwrite, exists());
            let leads_to_something = match fault::metadata(path) {
                Ok(_) => true,
                Err(error) => absent(error).map(|()| false)?,
            };
            if leads_to_something {
                names = top.resolved(&names).map_err(plain)?;
                folder = folder_of(&names)?;
                name = name_of(&names)?;
                there = folder.look(&name).map_err(plain)?;
                ensure!(!there.as_ref().is_some_and(is_link), "{EXCHANGED}");
            } else {
                there = None;
            }
        }
        Target::new(folder, name, path, there, overwrite)
    }

    /// Prepares a file that replaces the regular file at `path`, or a link there itself.
    pub fn replace(path: &Path) -> Result<Target> {
        let folder = open_folder(parent(path), Folder::open)?;
        let name = name_of(path)?;
        let there = folder.look(&name).map_err(plain)?;
        ensure!(
            !there.as_ref().is_some_and(is_link),
            "it is a symbolic link"
        );
        Target::new(folder, name, path, there, true)
    }

    /// An output called `name`; `there` has the properties of the existing file with that name.
    fn new(
        folder: Folder,
        name: OsString,
        path: &Path,
        there: Option<About>,
        overwrite: bool,
    ) -> Result<Target> {
        let mode = match &there {
            None => 0o666,
            Some(about) => match about.kind {
                FileKind::Regular if overwrite => about.mode & 0o777,
                FileKind::Regular => bail!(exists()),
                FileKind::Directory => bail!("it is a directory"),
                other => bail!(not_regular(other)),
            },
        };
        let unfinished = open_folder(parent(path), |_| {
            Unfinished::in_folder(folder.clone(), mode)
        })?;
        if let Some(about) = &there {
            let inherited = folder.inherit_access(unfinished.file(), &name, about);
            inherited.map_err(plain)?;
        }
        Ok(Target::to(Sink::File {
            unfinished,
            folder,
            name,
            path: path.into(),
            overwrite,
        }))
    }

    fn to_store(folder: Folder, name: OsString, overwrite: bool) -> Result<Target> {
        let place = StorePlace::new(folder, name, overwrite)?;
        Ok(Target::to(Sink::Store(place, OnceLock::new())))
    }

    fn to(sink: Sink) -> Target {
        Target {
            sink,
            sync: false,
            store_run: StoreRun::default(),
            store_input: None,
            traffic: Traffic::default(),
        }
    }

    /// An output that is never delivered: for a plan of what would be written, and for tests.
    pub fn in_memory() -> Target {
        Target::to(stream_to(Path::new("memory"), None))
    }

    /// The first `len` bytes of an output in memory.
    ///
    /// # Errors
    /// A file, and a thread that failed while it wrote.
    pub fn into_bytes(self, len: u64) -> Result<Vec<u8>> {
        let Sink::Stream { bytes, .. } = self.sink else {
            bail!("it is not in memory")
        };
        let bytes = bytes.into_inner();
        let mut bytes = bytes.map_err(|_| anyhow::anyhow!("another thread failed"))?;
        bytes.resize(usize::try_from(len)?, 0);
        Ok(bytes)
    }

    /// What was written to an output in memory.
    #[cfg(test)]
    pub fn written(&self) -> Vec<u8> {
        match &self.sink {
            Sink::Stream { bytes, .. } => bytes.lock().map(|it| it.clone()).unwrap_or_default(),
            Sink::File { .. } | Sink::Store(..) | Sink::Upload(_) => Vec::new(),
        }
    }

    /// Reserves `len` bytes on the disk: a full disk is noticed before the work, and a later rename
    /// does not wait for delayed allocation (ext4: 19 ms instead of 176 ms for 128 MiB).
    pub fn reserve(&self, len: u64) -> Result<()> {
        match &self.sink {
            Sink::Stream { .. } | Sink::Store(..) | Sink::Upload(_) => Ok(()),
            Sink::File {
                unfinished, path, ..
            } => {
                let reserved = self.traffic.count(0, || {
                    fault::point(Kind::Write, path)?;
                    system::reserve(unfinished.file(), len)
                });
                reserved.map_err(plain)
            }
        }
    }

    /// Writes `bytes` at `offset`; callers may write from many threads and in any order.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        match &self.sink {
            Sink::File {
                unfinished, path, ..
            } => self
                .traffic
                .count(bytes.len(), || {
                    fault::point(Kind::Write, path)?;
                    system::write_all_at(unfinished.file(), bytes, offset)
                })
                .map_err(plain),
            Sink::Stream { bytes: held, .. } => {
                let start = usize::try_from(offset)?;
                let mut held = held
                    .lock()
                    .map_err(|_| anyhow::anyhow!("another thread failed"))?;
                if held.len() < start + bytes.len() {
                    held.resize(start + bytes.len(), 0);
                }
                held[start..start + bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Sink::Store(..) | Sink::Upload(_) => {
                bail!("its name is that of a Zarr store, which is not one file")
            }
        }
    }

    /// Begins a store, or continues it as `store_run` says; nothing of any other output.
    ///
    /// # Errors
    /// Another run that writes the store, a folder in its place that is not an unfinished store, and a bucket that cannot be
    /// written.
    pub fn begin_store(&self) -> Result<()> {
        match &self.sink {
            Sink::Store(place, begun) => {
                let origin = Origin::new(&self.store_run, self.store_input.as_deref());
                let store = UnfinishedStore::begin(place.clone(), &self.store_run, origin.as_ref());
                ensure!(
                    begun.set(Box::new(store?)).is_ok(),
                    "internal error: a store is begun twice"
                );
                Ok(())
            }
            Sink::Upload(upload) => upload.begin(),
            Sink::File { .. } | Sink::Stream { .. } => Ok(()),
        }
    }

    /// What is finished of the store, after `begin_store`.
    ///
    /// # Errors
    /// A target that is not a store.
    pub fn store_record(&self) -> Result<&Record> {
        match &self.sink {
            Sink::Upload(upload) => Ok(upload.record()),
            _ => Ok(self.folder()?.record()),
        }
    }

    /// Called when all pages of this run are finished: returns the ranges of all pages, unless another task completes the store.
    ///
    /// # Errors
    /// A target that is not a store, and files of another task that are damaged.
    pub fn complete_store(&self, pages: usize) -> Result<Option<BTreeMap<usize, PageRanges>>> {
        match &self.sink {
            Sink::Upload(upload) => Ok(Some(upload.record().pages())),
            _ => self.folder()?.complete(pages),
        }
    }

    /// The folder of a store, after `begin_store`.
    fn folder(&self) -> Result<&UnfinishedStore> {
        match &self.sink {
            Sink::Store(_, begun) => {
                let store = begun.get().map(Box::as_ref);
                store.context("internal error: no store is begun")
            }
            _ => bail!("a Zarr store is a folder whose name must end in .zarr"),
        }
    }

    /// Runs work that writes files of a store in parallel, on as many threads as are best.
    pub fn in_parallel<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.sink {
            Sink::Upload(upload) => upload.in_parallel(work),
            _ => work(),
        }
    }

    /// Whether another run completes the output and gives it its name: that of another task.
    pub fn is_completed_by_another(&self) -> bool {
        match &self.sink {
            Sink::Store(_, begun) => begun.get().is_some_and(|store| !store.is_complete()),
            _ => false,
        }
    }

    /// An empty file for parts of this output whose places are not known yet. It is beside the output, or in memory with a
    /// stream, and is gone when this is dropped; it must not be committed.
    ///
    /// # Errors
    /// A file that cannot be created, and a store.
    pub fn scratch(&self) -> Result<Target> {
        let scratch = match &self.sink {
            Sink::File { folder, path, .. } => Sink::File {
                unfinished: Unfinished::in_folder(folder.clone(), 0o600).map_err(plain)?,
                folder: folder.clone(),
                name: OsString::new(),
                path: path.clone(),
                overwrite: false,
            },
            Sink::Stream { path, .. } => stream_to(path, None),
            Sink::Store(..) | Sink::Upload(_) => bail!("a Zarr store is not one file"),
        };
        Ok(Target::to(scratch))
    }

    /// Copies these bytes of `other`, which have been written, to `offset`.
    ///
    /// # Errors
    /// `other` cannot be read, and this output cannot be written.
    pub fn copy_from(&self, other: &Target, bytes: Range<u64>, offset: u64) -> Result<()> {
        let mut piece = vec![0; (bytes.end - bytes.start).min(COPY) as usize];
        let mut at = bytes.start;
        while at < bytes.end {
            let length = (bytes.end - at).min(COPY);
            let piece = &mut piece[..length as usize];
            other.read_at(piece, at)?;
            self.write_at(piece, offset + (at - bytes.start))?;
            at += length;
        }
        Ok(())
    }

    /// Reads bytes that have been written.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        match &self.sink {
            Sink::File {
                unfinished, path, ..
            } => {
                fault::point(Kind::Read, path).map_err(plain)?;
                system::read_exact_at(unfinished.file(), buffer, offset).map_err(plain)
            }
            Sink::Stream { bytes, .. } => {
                let held = bytes
                    .lock()
                    .map_err(|_| anyhow::anyhow!("another thread failed"))?;
                let start = usize::try_from(offset)?;
                let written = held.get(start..start + buffer.len());
                buffer.copy_from_slice(written.context("internal error: not written yet")?);
                Ok(())
            }
            Sink::Store(..) | Sink::Upload(_) => bail!("a Zarr store is not one file"),
        }
    }

    /// Writes a file of a store by its name below the folder, as `0/c/0/1`. It replaces one of that name. Callers may write
    /// different files from many threads.
    ///
    /// # Errors
    /// A target that is not a store, and a file that cannot be written.
    pub fn write_member(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let write = || match &self.sink {
            Sink::Upload(upload) => upload.write(name, bytes),
            _ => {
                let written = self.folder()?.write(Path::new(name), bytes, self.sync);
                written.map_err(plain)
            }
        };
        let written = self.traffic.count(bytes.len(), write);
        written.with_context(|| name.to_owned())
    }

    /// As `write_member`, for a file of a page, which is recorded as finished.
    ///
    /// # Errors
    /// As `write_member`.
    pub fn write_page_member(&self, page: usize, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_member(name, bytes)?;
        let added = self.store_record()?.add_file(page, name, bytes);
        added.map_err(plain).context("cannot record it")
    }

    /// Writes parts one after the other from `offset` on, as `write_at` does.
    pub fn write_all_at(&self, parts: Vec<&[u8]>, offset: u64) -> Result<()> {
        let mut at = offset;
        let Sink::File {
            unfinished, path, ..
        } = &self.sink
        else {
            for part in parts {
                self.write_at(part, at)?;
                at += part.len() as u64;
            }
            return Ok(());
        };
        let mut slices: Vec<IoSlice> = parts.into_iter().map(IoSlice::new).collect();
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let together = &rest[..rest.len().min(system::MOST_PARTS)];
            let len = together.iter().map(|part| part.len()).sum();
            let write = || {
                fault::point(Kind::Write, path)?;
                system::write_parts_at(unfinished.file(), together, at)
            };
            let written = match self.traffic.count(len, write) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                other => other,
            };
            let written = written.map_err(plain)?;
            at += written as u64;
            IoSlice::advance_slices(&mut rest, written);
        }
        Ok(())
    }

    /// The SHA-256 of the first `len` bytes of the output, all of which have been written; `None` for a store, which has many
    /// files.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn sha256(&self, len: u64) -> Result<Option<Sha256>> {
        let digest = match &self.sink {
            Sink::File {
                unfinished, path, ..
            } => {
                // As `commit` does: what was reserved may be longer, and the end may be a hole.
                fault::point(Kind::Write, path).map_err(plain)?;
                unfinished.file().set_len(len).map_err(plain)?;
                Sha256::of_file(unfinished.file(), len, path)?
            }
            Sink::Stream { bytes, .. } => {
                let bytes = bytes
                    .lock()
                    .map_err(|_| anyhow::anyhow!("another thread failed"))?;
                Sha256::of_bytes(&bytes)
            }
            Sink::Store(..) | Sink::Upload(_) => return Ok(None),
        };
        Ok(Some(digest))
    }

    /// Completes the output with a length of `len` bytes and gives it its name. Until this returns,
    /// the target is unchanged.
    pub fn commit(self, len: u64) -> Result<Traffic> {
        self.commit_announced(len, |_| Ok(()))
    }

    /// As `commit`, but first calls `announce` with the identity of the file or store that is about to get its name,
    /// and stops if it returns an error. Streams are not announced, because they cannot be recognised
    /// later, and neither is a store that another task completes, or one in a bucket.
    pub fn commit_announced(
        self,
        len: u64,
        announce: impl FnOnce(Identity) -> Result<()>,
    ) -> Result<Traffic> {
        let Target {
            sink,
            sync,
            traffic,
            ..
        } = self;
        match sink {
            Sink::File {
                unfinished,
                folder,
                name,
                path,
                overwrite,
            } => {
                traffic
                    .count(0, || {
                        fault::point(Kind::Write, &path)?;
                        unfinished.file().set_len(len)?;
                        if sync {
                            fault::point(Kind::Sync, &path)?;
                            unfinished.file().sync_all()?;
                        }
                        unfinished.close()
                    })
                    .map_err(plain)?;
                fault::point(Kind::Stat, &path).map_err(plain)?;
                let about = unfinished.file().metadata().map_err(plain)?;
                announce(Identity::from(&about))?;
                traffic
                    .count(0, || {
                        unfinished.name(&name, overwrite)?;
                        if sync { folder.sync() } else { Ok(()) }
                    })
                    .map_err(plain)?;
            }
            Sink::Stream {
                path,
                stream,
                bytes,
            } => {
                let bytes = bytes
                    .into_inner()
                    .map_err(|_| anyhow::anyhow!("another thread failed"))?;
                traffic
                    .count(bytes.len(), || {
                        fault::point(Kind::Write, &path)?;
                        match stream {
                            None => console::output_bytes(&bytes),
                            Some(mut stream) => stream.write_all(&bytes),
                        }
                    })
                    .map_err(plain)?;
            }
            Sink::Store(_, begun) => {
                let store = begun
                    .into_inner()
                    .context("internal error: no store is begun")?;
                if store.is_complete() {
                    announce(store.close_record().map_err(plain)?)?;
                    store.name(sync)?;
                }
            }
            Sink::Upload(upload) => traffic.count(0, || upload.finish())?,
        }
        Ok(traffic)
    }
}

/// Bytes that `copy_from` copies at a time.
const COPY: u64 = 1 << 20;

const EXCHANGED: &str = "another program replaced it with a link in the meantime";

/// How long to wait for a reader of a FIFO.
const READER: Duration = Duration::from_secs(5);

fn stream_to(path: &Path, stream: Option<File>) -> Sink {
    Sink::Stream {
        path: path.into(),
        stream,
        bytes: Mutex::default(),
    }
}

/// Opens a FIFO or a device that the user named as an output.
///
/// # Errors
/// Anything else, and a FIFO without a reader. The reader may start a moment later, so this waits for a
/// while, but not forever.
pub fn open_stream(path: &Path) -> Result<File> {
    let begun = Instant::now();
    let file = loop {
        fault::point(Kind::Open, path).map_err(plain)?;
        if let Some(file) = system::open_to_stream(path).map_err(plain)? {
            break file;
        }
        ensure!(
            begun.elapsed() < READER,
            "it is a FIFO without a reader (start the reader first)"
        );
        thread::sleep(Duration::from_millis(10));
    };
    fault::point(Kind::Stat, path).map_err(plain)?;
    let about = About::from(&file.metadata().map_err(plain)?);
    ensure!(
        matches!(about.kind, FileKind::Fifo | FileKind::CharacterDevice),
        "it was a FIFO or a device, but another program replaced it in the meantime"
    );
    system::wait_for_reader(&file).map_err(plain)?;
    Ok(file)
}

/// Opens the folder at `path`; the error names the folder.
fn open_folder<T>(path: &Path, open: impl FnOnce(&Path) -> io::Result<T>) -> Result<T> {
    open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!("folder {} does not exist", path.shown()),
        _ => anyhow::anyhow!("folder {}: {}", path.shown(), reason(&error)),
    })
}

fn name_of(path: &Path) -> Result<OsString> {
    let name = path.file_name().context("it is a directory")?;
    Ok(name.into())
}

/// Checks whether `create_below` would refuse the existing file with the name of a result.
///
/// # Errors
/// A FIFO, a socket or a device.
pub fn check_regular(path: &Path) -> Result<()> {
    let Ok(about) = fault::metadata(path) else {
        return Ok(());
    };
    let kind = About::from(&about).kind;
    ensure!(
        matches!(kind, FileKind::Regular | FileKind::Directory),
        not_regular(kind)
    );
    Ok(())
}

fn not_regular(kind: FileKind) -> String {
    let kind = kind.named();
    format!("it is {kind}, not a regular file: remove it")
}

/// `None` if the file does not exist; other errors are passed on.
fn absent(error: io::Error) -> Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(()),
        _ => Err(plain(error)),
    }
}

fn is_link(about: &About) -> bool {
    about.kind == FileKind::Symlink
}
