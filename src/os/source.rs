//! Inputs: a file that is read at any offset, all of a pipe, or a Zarr store. The bytes of a store are those of the file that
//! describes it; its other files are read as members, from a folder or from a server.

use super::address;
use super::digest::{Blocks, Digest};
use super::durable::parent;
use super::fault::{self, Kind, Reads};
use super::held::Folder;
use super::remote::{self, Remote};
use super::sha256::Sha256;
use super::state::{CHANGED, FileRecord, FileState, InputRecord, Samples};
use super::store::{DESCRIPTIONS, Part, Span, is_store_name};
use super::system::{self, About, FileKind};
use super::traffic::Traffic;
use super::url::Url;
use crate::os::limits;
use crate::os::reason::{is_absence, plain, reason};
use crate::os::sync::{Mutex, PoisonError};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use walkdir::WalkDir;

/// An input file, all of standard input, or a Zarr store.
#[derive(Debug)]
pub struct Source {
    data: Data,
    len: u64,
    /// The first read that failed, of this file and of its separate sample files.
    failure: Arc<Mutex<Option<String>>>,
    /// The separate sample files that were opened, each once.
    beside: Mutex<Vec<(String, Arc<Opened>)>>,
    /// The files of a store.
    store: Option<Store>,
    /// The address of an image in the file, as `/entry/data`, if the path has one.
    address: Option<String>,
    /// Bytes and time of reading so far.
    pub traffic: Arc<Traffic>,
}

#[derive(Debug)]
enum Data {
    File(Arc<Opened>),
    Memory(Arc<Vec<u8>>),
}

/// Where the files of a store are.
#[derive(Debug)]
enum Store {
    Folder(Folder),
    Remote(Box<Remote>),
    /// The files by their names below the folder.
    Memory(BTreeMap<String, Vec<u8>>),
}

/// An open file, and its state when it was opened.
#[derive(Debug)]
struct Opened {
    path: PathBuf,
    file: File,
    state: FileState,
    /// The digests of what was read, if they are kept.
    digest: Option<Blocks>,
}

impl Opened {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        fault::point(Kind::Read, &self.path)?;
        match &self.digest {
            Some(digest) => digest.read(&self.file, buffer, offset),
            None => system::read_exact_at(&self.file, buffer, offset),
        }
    }

    /// Its record, with the digest of the whole content; `None` unless the digest is computed.
    fn record(&self) -> Result<Option<FileRecord>> {
        let Some(digest) = &self.digest else {
            return Ok(None);
        };
        let digest = digest.finish(&self.file, &self.path)?;
        Ok(Some(FileRecord::new(&self.state, digest)))
    }

    fn sha256(&self) -> Result<Sha256> {
        Sha256::of_file(&self.file, self.state.identity.size, &self.path)
    }

    /// # Errors
    /// It was written to in the meantime.
    fn check_unchanged(&self) -> Result<()> {
        fault::point(Kind::Stat, &self.path).map_err(plain)?;
        let now = FileState::from(&self.file.metadata().map_err(plain)?);
        ensure!(now.is_still(&self.state), CHANGED);
        Ok(())
    }
}

impl Source {
    /// Opens a file, or reads a pipe to its end; `-` is standard input. A device is refused, since
    /// it may have no end.
    pub fn open(path: &Path) -> Result<Source> {
        if path == Path::new("-") {
            check_stdin()?;
            return Source::drain(Reads::new(io::stdin().lock(), path));
        }
        Source::open_regular(path, true)
    }

    /// Opens a regular file, and nothing else: if it has become a pipe since it was listed, reading
    /// would block.
    pub fn open_file(path: &Path) -> Result<Source> {
        Source::open_regular(path, false)
    }

    fn open_regular(path: &Path, pipe: bool) -> Result<Source> {
        if let Some(url) = Url::parse(path) {
            return Source::open_remote(&url);
        }
        if let Some((file, address)) = address::split(path) {
            let address = address.to_str().context("its address is not UTF-8")?;
            return Ok(Source {
                address: Some(address.into()),
                ..Source::open_regular(file, false)?
            });
        }
        let check = |about: &fs::Metadata| {
            let kind = About::from(about).kind;
            ensure!(kind != FileKind::Directory, "it is a directory");
            ensure!(
                !matches!(kind, FileKind::CharacterDevice | FileKind::BlockDevice),
                "{DEVICE}"
            );
            let is_file = kind == FileKind::Regular;
            ensure!(is_file || pipe, "it is no longer a file");
            Ok(is_file)
        };
        let about = fault::metadata(path).map_err(plain)?;
        if about.is_dir() && is_store_name(path) {
            return Source::open_store(path);
        }
        if !check(&about)? {
            return Source::drain(fault::open(path).map_err(plain)?);
        }
        // Non-blocking: by now the name may belong to a pipe, and opening it would wait for a writer.
        let mut options = OpenOptions::new();
        system::without_waiting(options.read(true));
        fault::point(Kind::Open, path).map_err(plain)?;
        let file = options.open(path).map_err(plain)?;
        fault::point(Kind::Stat, path).map_err(plain)?;
        let about = file.metadata().map_err(plain)?;
        ensure!(check(&about)?, "it is no longer a file");
        Ok(Source::file(file, &about, path))
    }

    /// Opens a Zarr store by the first file that describes it.
    fn open_store(path: &Path) -> Result<Source> {
        let folder = Folder::open(path).map_err(plain)?;
        for name in DESCRIPTIONS {
            let file = match folder.read(name.as_ref()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(plain).context(name)?,
            };
            let path = path.join(name);
            fault::point(Kind::Stat, &path).map_err(plain)?;
            let about = file.metadata().map_err(plain)?;
            return Ok(Source {
                store: Some(Store::Folder(folder)),
                ..Source::file(file, &about, &path)
            });
        }
        bail!(
            "it is a folder without {}, so it is not a Zarr store",
            DESCRIPTIONS.join(", ")
        )
    }

    /// Opens a Zarr store on a server.
    fn open_remote(url: &Url) -> Result<Source> {
        let traffic = Traffic::default();
        let (remote, description) = traffic.count(0, || Remote::open(url))?;
        Ok(Source {
            store: Some(Store::Remote(Box::new(remote))),
            ..Source::drained(description, traffic)
        })
    }

    /// A Zarr store in memory: its files by their names below the folder.
    ///
    /// # Errors
    /// No file describes the store.
    pub fn store_in_memory(files: BTreeMap<String, Vec<u8>>) -> Result<Source> {
        let description = DESCRIPTIONS.iter().find_map(|name| files.get(*name));
        let description = description.context("it has no description of a Zarr store")?;
        Ok(Source {
            store: Some(Store::Memory(files.clone())),
            ..Source::memory(description.clone())
        })
    }

    /// Whether it is a Zarr store.
    pub fn is_store(&self) -> bool {
        self.store.is_some()
    }

    /// Reads a part of a file of a store by its name below the folder, as `0/c/0/1`, of `most` bytes at most; `None` if the file
    /// does not exist. Links that lead out of the store are not followed.
    ///
    /// # Errors
    /// A name that leads out of the store, anything but a regular file, a longer part, and one that cannot be read.
    pub fn member(&self, name: &str, span: Span, most: u64) -> Result<Option<Part>> {
        let path = Path::new(name);
        let is_normal = |part| matches!(part, Component::Normal(_));
        ensure!(
            path.components().all(is_normal) && !path.as_os_str().is_empty(),
            "the name {name:?} leads out of the store"
        );
        match self.store.as_ref().context("it is not a Zarr store")? {
            Store::Memory(files) => {
                let Some(file) = files.get(name) else {
                    return Ok(None);
                };
                let length = file.len() as u64;
                let range = span.within(name, length, most)?;
                let bytes = file[range.start as usize..range.end as usize].to_vec();
                Ok(Some(Part { bytes, length }))
            }
            Store::Folder(folder) => {
                let (file, length) = match open_member(folder, path) {
                    Ok(opened) => opened,
                    Err(error) if is_absence(&error) => return Ok(None),
                    Err(error) => return Err(self.failed(format!("{name}: {}", reason(&error)))),
                };
                let range = span.within(name, length, most)?;
                let mut bytes = vec![0; (range.end - range.start) as usize];
                let read = || {
                    fault::point(Kind::Read, &folder.path().join(path))?;
                    system::read_exact_at(&file, &mut bytes, range.start)
                };
                let read = self.traffic.count((range.end - range.start) as usize, read);
                read.map_err(|error| {
                    self.failed(format!("{name}: reading stopped: {}", reason(&error)))
                })?;
                Ok(Some(Part { bytes, length }))
            }
            Store::Remote(remote) => {
                // Not the patience for each of thousands of chunks.
                if let Some(first) = self.failure() {
                    bail!(first);
                }
                let read = self.traffic.count(0, || remote.read(name, span, most));
                let part = read.map_err(|error| self.failed(format!("{name}: {error:#}")))?;
                let bytes = part.as_ref().map_or(0, |part| part.bytes.len());
                self.traffic
                    .bytes
                    .fetch_add(bytes as u64, Ordering::Relaxed);
                Ok(part)
            }
        }
    }

    /// How many parts of a store are best read at the same time, beside what threads do with them: 1 unless each read waits for
    /// a server.
    pub fn reads_at_once(&self) -> usize {
        match &self.store {
            Some(Store::Remote(_)) => remote::READS,
            _ => 1,
        }
    }

    /// Runs work that reads in parallel, on as many threads as `reads_at_once` needs.
    pub fn in_parallel<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.store {
            Some(Store::Remote(remote)) => remote.in_parallel(work),
            _ => work(),
        }
    }

    /// Records that a read failed, and returns the error.
    fn failed(&self, failure: String) -> anyhow::Error {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| failure.clone());
        anyhow!(failure)
    }

    /// Bytes on the disk: those of the file, or of all files of a store; `None` for a store on a server, which would have to be
    /// asked for each.
    pub fn stored_bytes(&self) -> Option<u64> {
        let folder = match &self.store {
            Some(Store::Folder(folder)) => folder,
            Some(Store::Remote(_)) => return None,
            _ => return Some(self.len),
        };
        let entries = WalkDir::new(folder.path()).into_iter().flatten();
        let files = entries.filter(|entry| entry.file_type().is_file());
        let lengths = files
            .filter_map(|file| file.metadata().ok())
            .map(|about| about.len());
        Some(lengths.sum())
    }

    /// The source of an open file.
    fn file(file: File, about: &fs::Metadata, path: &Path) -> Source {
        Source {
            data: Data::File(Arc::new(Opened {
                path: path.into(),
                file,
                state: FileState::from(about),
                digest: None,
            })),
            len: about.len(),
            failure: Arc::default(),
            beside: Mutex::default(),
            store: None,
            address: None,
            traffic: Arc::default(),
        }
    }

    /// Enables the digest of the content; must be called before anything is read.
    pub fn keep_digest(&mut self) {
        // The description says nothing about the samples of a store.
        if !self.is_store()
            && let Data::File(opened) = &mut self.data
            && let Some(opened) = Arc::get_mut(opened)
        {
            opened.digest = Some(Blocks::new(opened.state.identity.size));
        }
    }

    /// What the file, and the one beside it, are for a journal; `None` for a stream, or where no digest
    /// is kept.
    ///
    /// # Errors
    /// The rest of the file cannot be read.
    pub fn record(&self) -> Result<Option<InputRecord>> {
        let Data::File(opened) = &self.data else {
            return Ok(None);
        };
        let Some(file) = opened.record()? else {
            return Ok(None);
        };
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = beside.iter().find_map(|(name, opened)| {
            let file = opened.record().with_context(|| name.clone());
            Some(file.transpose()?.map(|file| Samples {
                name: name.clone(),
                file,
            }))
        });
        let samples = samples.transpose()?;
        Ok(Some(InputRecord { file, samples }))
    }

    /// The digest of the whole file, which is read to compute it.
    ///
    /// # Errors
    /// It cannot be read, or is a stream.
    pub fn digest(mut self) -> Result<Digest> {
        self.keep_digest();
        let record = self.record()?;
        record
            .and_then(|record| record.file.digest())
            .context("it is not a file")
    }

    /// The SHA-256 of the file or stream; `None` for a store, whose samples are in many files.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn sha256(&self) -> Result<Option<Sha256>> {
        if self.is_store() {
            return Ok(None);
        }
        let digest = match &self.data {
            Data::Memory(bytes) => Sha256::of_bytes(bytes),
            Data::File(opened) => opened.sha256()?,
        };
        Ok(Some(digest))
    }

    /// The SHA-256 of the separate file with the samples, if one was opened.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn samples_sha256(&self) -> Result<Option<Sha256>> {
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = beside.first().map(|(name, opened)| {
            let digest = opened.sha256();
            digest.with_context(|| name.clone())
        });
        digest.transpose()
    }

    /// A source of bytes already in memory.
    pub fn memory(bytes: Vec<u8>) -> Source {
        Source {
            len: bytes.len() as u64,
            data: Data::Memory(Arc::new(bytes)),
            failure: Arc::default(),
            beside: Mutex::default(),
            store: None,
            address: None,
            traffic: Arc::default(),
        }
    }

    /// The address of an image in the file, as `/entry/data`; `None` stands for the only or the default image.
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// The same file, with the address of an image in it.
    pub fn at(&self, address: &str) -> Source {
        Source {
            address: Some(address.into()),
            ..self.share()
        }
    }

    /// The same file for a library that keeps it: reads are counted, and failures are recorded, as those of this source.
    pub fn share(&self) -> Source {
        Source {
            data: match &self.data {
                Data::File(opened) => Data::File(opened.clone()),
                Data::Memory(bytes) => Data::Memory(bytes.clone()),
            },
            len: self.len,
            failure: self.failure.clone(),
            beside: Mutex::default(),
            store: None,
            address: self.address.clone(),
            traffic: self.traffic.clone(),
        }
    }

    /// Opens another file in the same folder, which this file names.
    ///
    /// # Errors
    /// A source without a path, a name outside the folder, a link, which may point outside, and anything
    /// but a regular file.
    pub fn beside(&self, name: &str) -> Result<Source> {
        let Data::File(header) = &self.data else {
            bail!(
                "its samples are in the separate file {name}, which cannot be found from a stream"
            );
        };
        let mut parts = Path::new(name).components();
        ensure!(
            matches!(
                (parts.next(), parts.next()),
                (Some(Component::Normal(_)), None)
            ),
            "its samples are in the separate file {name}, which is not in the same folder"
        );
        let open = || -> io::Result<Source> {
            let file = Folder::open(parent(&header.path))?.read(name.as_ref())?;
            let path = header.path.with_file_name(name);
            fault::point(Kind::Stat, &path)?;
            let about = file.metadata()?;
            Ok(Source::file(file, &about, &path))
        };
        let mut source = open().map_err(plain).with_context(|| name.to_owned())?;
        source.failure = self.failure.clone();
        if header.digest.is_some() {
            source.keep_digest();
        }
        if let Data::File(opened) = &source.data {
            let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
            match beside.iter().find(|(other, _)| other == name) {
                Some((_, first)) => {
                    let same = opened.state.is_still(&first.state);
                    ensure!(same, "its samples in {name}: {CHANGED}");
                }
                None => beside.push((name.into(), opened.clone())),
            }
        }
        Ok(source)
    }

    /// Checks that the file, and the one beside it that has its samples, are what they were when they
    /// were opened.
    ///
    /// # Errors
    /// One of them was written to in the meantime.
    pub fn check_unchanged(&self) -> Result<()> {
        if let Data::File(opened) = &self.data {
            opened.check_unchanged()?;
        }
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        beside.iter().try_for_each(|(name, opened)| {
            let unchanged = opened.check_unchanged();
            unchanged.with_context(|| format!("its samples in {name}"))
        })
    }

    /// What the file, and the one beside it, were when they were opened; nothing of a stream.
    pub(super) fn states(&self) -> Vec<FileState> {
        let own = match &self.data {
            Data::File(opened) => Some(opened.state),
            Data::Memory(_) => None,
        };
        let beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let beside = beside.iter().map(|(_, opened)| opened.state);
        own.into_iter().chain(beside).collect()
    }

    /// What tells the content from any other, for a run that continues another one: the address of the image, and length, times
    /// and inode of the file and of the one beside it. Devices have other numbers on other machines. `None` of a stream, and of
    /// a store, whose description says nothing about its samples.
    pub fn content_key(&self) -> Option<String> {
        if self.is_store() || matches!(self.data, Data::Memory(_)) {
            return None;
        }
        let states = self.states();
        let states = states.iter().map(|it| (it.identity, it.status_changed));
        let states: Vec<_> = states.collect();
        serde_json::to_string(&(&self.address, states)).ok()
    }

    fn drain(stream: impl Read) -> Result<Source> {
        let traffic = Traffic::default();
        let mut bytes = Vec::new();
        let most = limits::free_memory();
        traffic
            .count(0, || stream.take(most + 1).read_to_end(&mut bytes))
            .map_err(plain)?;
        ensure!(
            bytes.len() as u64 <= most,
            "it is longer than {most} bytes, half of the free memory"
        );
        traffic.bytes.store(bytes.len() as u64, Ordering::Relaxed);
        Ok(Source::drained(bytes, traffic))
    }

    /// A source of bytes that were read before.
    pub(super) fn drained(bytes: Vec<u8>, traffic: Traffic) -> Source {
        Source {
            traffic: Arc::new(traffic),
            ..Source::memory(bytes)
        }
    }

    /// Bytes in the source.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `buffer` from `offset` on; if the source ends earlier, the error gives its length.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            bail!(
                "truncated at byte {} of {}",
                self.len,
                end.unwrap_or(u64::MAX)
            );
        }
        match &self.data {
            Data::Memory(bytes) => {
                let start = offset as usize;
                buffer.copy_from_slice(&bytes[start..start + buffer.len()]);
                Ok(())
            }
            Data::File(opened) => self
                .traffic
                .count(buffer.len(), || opened.read_at(buffer, offset))
                .map_err(|error| {
                    self.failed(format!(
                        "reading stopped at byte {offset}: {}",
                        reason(&error)
                    ))
                }),
        }
    }

    /// The first read that failed, if any. A decoder may treat data that it could not read as absent, so the
    /// user of its result must check this.
    pub fn failure(&self) -> Option<String> {
        let first = self.failure.lock();
        first.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads up to `buffer.len()` bytes from `offset` on; fewer only at the end.
    pub fn read_up_to(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let size = (buffer.len() as u64).min(self.len.saturating_sub(offset)) as usize;
        self.read_at(&mut buffer[..size], offset)?;
        Ok(size)
    }

    /// All bytes, in one buffer.
    pub fn read_all(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.len)?];
        self.read_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

impl Span {
    /// The bytes of a file of this length, `most` at most.
    ///
    /// # Errors
    /// More bytes, and those that the file does not have.
    fn within(self, name: &str, length: u64, most: u64) -> Result<Range<u64>> {
        let range = match self {
            Span::All => 0..length,
            Span::Bytes(range) => range,
            Span::Last(bytes) => length.saturating_sub(bytes)..length,
        };
        ensure!(
            range.end <= length,
            "{name} is truncated at byte {length} of {}",
            range.end
        );
        let bytes = range.end.saturating_sub(range.start);
        ensure!(bytes <= most, "{name} has {bytes} bytes, more than {most}");
        Ok(range)
    }
}

/// Opens a file below the folder of a store, and returns its length.
fn open_member(folder: &Folder, path: &Path) -> io::Result<(File, u64)> {
    let name = path.file_name().unwrap_or_default();
    let file = match path.parent() {
        Some(names) if names != Path::new("") => folder.below(names)?.read(name)?,
        _ => folder.read(name)?,
    };
    fault::point(Kind::Stat, &folder.path().join(path))?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// Refuses a terminal or another device as standard input, which may have no end.
///
/// # Errors
/// Such a device.
pub(super) fn check_stdin() -> Result<()> {
    fault::point(Kind::Stat, Path::new("-")).map_err(plain)?;
    ensure!(!system::stdin_is_device().map_err(plain)?, "{DEVICE}");
    Ok(())
}

/// The error for an input that is a device.
const DEVICE: &str = "it is a terminal or another device, not a file or pipe";
