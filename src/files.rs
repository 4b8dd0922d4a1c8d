//! Files as the codecs use them: a `Source` is read at any offset; a `Target` becomes the output
//! only when it is complete. Both can be used from many threads, and measure the time of their
//! system calls, so that `--stats` can separate reading from decoding.

mod durable;
mod identity;
mod leftovers;
mod replaced;
mod unfinished;

use crate::console;
use crate::limits;
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use durable::{make_folder, parent, sync_folder};
pub use identity::{Identity, same_file};
pub use leftovers::remove_leftovers;
use unfinished::Unfinished;
pub use unfinished::forget_unfinished;

/// Bytes moved by system calls, and the time during which at least one call was in progress.
#[derive(Debug, Default)]
pub struct Traffic {
    bytes: AtomicU64,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    under_way: usize,
    since: Option<Instant>,
    busy: Duration,
}

impl Traffic {
    fn count<T>(&self, bytes: usize, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note(|calls| {
            calls.under_way += 1;
            calls.since.get_or_insert_with(Instant::now);
        });
        let result = call();
        self.note(|calls| {
            calls.under_way -= 1;
            if calls.under_way == 0 {
                calls.busy += calls
                    .since
                    .take()
                    .map_or(Duration::ZERO, |since| since.elapsed());
            }
        });
        result
    }

    /// The counters so far; they restart at 0.
    pub fn take(&self) -> Traffic {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        Traffic {
            bytes: AtomicU64::new(self.bytes.swap(0, Ordering::Relaxed)),
            calls: Mutex::new(std::mem::take(&mut calls)),
        }
    }

    fn note(&self, change: impl FnOnce(&mut Calls)) {
        // Poisoned only if a clock panicked; the counters are still valid.
        change(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Wall-clock time in system calls; calls of several threads at once count once.
    pub fn time(&self) -> Duration {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .busy
    }

    /// Bytes moved.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// An input file, or all of standard input.
#[derive(Debug)]
pub struct Source {
    data: Data,
    len: u64,
    /// Bytes and time of reading so far.
    pub traffic: Traffic,
}

#[derive(Debug)]
enum Data {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file, or reads a pipe to its end; `-` is standard input. A device is refused, since
    /// it may have no end.
    pub fn open(path: &Path) -> Result<Source> {
        if path == Path::new("-") {
            let about = rustix::fs::fstat(rustix::stdio::stdin()).map_err(io::Error::from);
            let kind = FileType::from_raw_mode(about.map_err(plain)?.st_mode);
            ensure!(!kind.is_char_device(), "{DEVICE}");
            return Source::drain(io::stdin().lock());
        }
        Source::found(path, true)
    }

    /// Opens a regular file, and nothing else: if it has become a pipe since it was listed, reading
    /// would block.
    pub fn open_file(path: &Path) -> Result<Source> {
        Source::found(path, false)
    }

    fn found(path: &Path, pipe: bool) -> Result<Source> {
        // The file is examined first, since opening a pipe may block; then the examined file is
        // opened, whatever has its name by now.
        let looked = OFlags::PATH | OFlags::CLOEXEC;
        let held = rustix::fs::open(path, looked, Mode::empty()).map_err(io::Error::from);
        let held = File::from(held.map_err(plain)?);
        let about = held.metadata().map_err(plain)?;
        let kind = about.file_type();
        ensure!(!kind.is_dir(), "it is a directory");
        ensure!(
            !kind.is_char_device() && !kind.is_block_device(),
            "{DEVICE}"
        );
        ensure!(kind.is_file() || pipe, "it is no file any more");
        let own = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let file = File::open(if own.exists() { &own } else { path }).map_err(plain)?;
        if !kind.is_file() {
            return Source::drain(file);
        }
        Ok(Source {
            data: Data::File(file),
            len: about.len(),
            traffic: Traffic::default(),
        })
    }

    /// A source of bytes already in memory.
    pub fn memory(bytes: Vec<u8>) -> Source {
        Source {
            len: bytes.len() as u64,
            data: Data::Memory(bytes),
            traffic: Traffic::default(),
        }
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
            "it goes on after {most} bytes, half of the memory that is free"
        );
        traffic.bytes.store(bytes.len() as u64, Ordering::Relaxed);
        Ok(Source {
            len: bytes.len() as u64,
            data: Data::Memory(bytes),
            traffic,
        })
    }

    /// Bytes in the source.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing in it.
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
            Data::File(file) => self
                .traffic
                .count(buffer.len(), || file.read_exact_at(buffer, offset))
                .map_err(plain)
                .with_context(|| format!("reading stopped at byte {offset}")),
        }
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

/// The error for an input that is a device.
const DEVICE: &str = "it is a terminal or another device, no file and no pipe";

/// An output: a file that gets its name by `commit`, or a stream.
#[derive(Debug)]
pub struct Target {
    sink: Sink,
    /// Whether `commit` waits until the bytes are on the disk before it gives the file its name,
    /// and then until the name is.
    pub sync: bool,
    /// Bytes and time of writing so far.
    pub traffic: Traffic,
}

#[derive(Debug)]
enum Sink {
    File {
        unfinished: Unfinished,
        path: PathBuf,
        overwrite: bool,
    },
    /// Standard output, a pipe or a device: written in order, so bytes at later offsets are kept in
    /// memory.
    Stream {
        path: PathBuf,
        bytes: Mutex<Vec<u8>>,
    },
}

impl Target {
    /// Prepares an output at `path` without touching an existing file. Such a file is refused
    /// unless `overwrite`; `-` is standard output.
    pub fn create(path: &Path, overwrite: bool) -> Result<Target> {
        let stream = |path: &Path| Sink::Stream {
            path: path.into(),
            bytes: Mutex::default(),
        };
        let sink = if path == Path::new("-") {
            console::check_output().map_err(plain)?;
            stream(path)
        } else {
            match fs::metadata(path) {
                Ok(about) if about.is_dir() => bail!("it is a directory"),
                Ok(about) if is_stream(&about) => stream(path),
                Ok(_) if !overwrite => bail!("it exists already (--overwrite replaces it)"),
                // Links are followed, so that the link remains and its target is replaced.
                Ok(about) => {
                    let path = fs::canonicalize(path)?;
                    let mode = about.permissions().mode() & 0o777;
                    let unfinished = unfinished_beside(&path, mode)?;
                    replaced::inherit(unfinished.file(), &path, &about).map_err(plain)?;
                    Sink::File {
                        unfinished,
                        path,
                        overwrite,
                    }
                }
                Err(_) => Sink::File {
                    unfinished: unfinished_beside(path, 0o666)?,
                    path: path.into(),
                    overwrite,
                },
            }
        };
        Ok(Target {
            sink,
            sync: false,
            traffic: Traffic::default(),
        })
    }

    /// Reserves `len` bytes on the disk: a full disk is noticed before the work, and a later rename
    /// does not wait for delayed allocation (ext4: 19 ms instead of 176 ms for 128 MiB).
    pub fn reserve(&self, len: u64) -> Result<()> {
        match &self.sink {
            Sink::Stream { .. } => Ok(()),
            Sink::File { unfinished, .. } => {
                use rustix::{fs::FallocateFlags, io::Errno};
                let reserved = self.traffic.count(0, || {
                    match rustix::fs::fallocate(unfinished.file(), FallocateFlags::empty(), 0, len)
                    {
                        // A file system that cannot reserve space can still write.
                        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
                        other => other.map_err(io::Error::from),
                    }
                });
                reserved.map_err(plain)
            }
        }
    }

    /// Writes `bytes` at `offset`; callers may write from many threads and in any order.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        match &self.sink {
            Sink::File { unfinished, .. } => self
                .traffic
                .count(bytes.len(), || {
                    unfinished.file().write_all_at(bytes, offset)
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
        }
    }

    /// Completes the output with a length of `len` bytes and gives it its name. Until this returns,
    /// the target is unchanged.
    pub fn commit(self, len: u64) -> Result<Traffic> {
        self.commit_announced(len, |_| Ok(()))
    }

    /// As `commit`; calls `announce` with the identity of the file that is about to get its name,
    /// and stops if it returns an error. Streams are not announced, since they cannot be recognised
    /// later.
    pub fn commit_announced(
        self,
        len: u64,
        announce: impl FnOnce(Identity) -> Result<()>,
    ) -> Result<Traffic> {
        let Target {
            sink,
            sync,
            traffic,
        } = self;
        match sink {
            Sink::File {
                unfinished,
                path,
                overwrite,
            } => {
                traffic
                    .count(0, || {
                        unfinished.file().set_len(len)?;
                        match sync {
                            true => unfinished.file().sync_all(),
                            false => Ok(()),
                        }
                    })
                    .map_err(plain)?;
                let about = unfinished.file().metadata().map_err(plain)?;
                announce(Identity::from(&about))?;
                traffic
                    .count(0, || {
                        unfinished.name(&path, overwrite)?;
                        match sync {
                            true => sync_folder(parent(&path)),
                            false => Ok(()),
                        }
                    })
                    .map_err(plain)?;
            }
            Sink::Stream { path, bytes } => {
                let bytes = bytes
                    .into_inner()
                    .map_err(|_| anyhow::anyhow!("another thread failed"))?;
                traffic
                    .count(bytes.len(), || {
                        if path == Path::new("-") {
                            console::output_bytes(&bytes)
                        } else {
                            fs::OpenOptions::new()
                                .write(true)
                                .open(&path)?
                                .write_all(&bytes)
                        }
                    })
                    .map_err(plain)?;
            }
        }
        Ok(traffic)
    }
}

/// A file without a name in the folder of `path`.
fn unfinished_beside(path: &Path, mode: u32) -> Result<Unfinished> {
    let folder = parent(path);
    let permissions = fs::Permissions::from_mode(mode);
    Unfinished::in_folder(folder, permissions).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!("there is no folder {}", folder.display()),
        _ => anyhow::anyhow!("folder {}: {}", folder.display(), reason(&error)),
    })
}

fn is_stream(about: &fs::Metadata) -> bool {
    let kind = about.file_type();
    kind.is_fifo() || kind.is_char_device() || kind.is_socket()
}

/// An operating system's error in plain words, without its number.
fn plain(error: io::Error) -> anyhow::Error {
    anyhow::anyhow!(reason(&error))
}

/// The text of an operating system's error, in plain words.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "no space left on the disk".into(),
        io::ErrorKind::FileTooLarge => {
            "larger than the file system or a limit (ulimit -f) allows".into()
        }
        io::ErrorKind::BrokenPipe => "its reader has gone".into(),
        io::ErrorKind::AlreadyExists => "it exists already (--overwrite replaces it)".into(),
        _ => {
            let text = error.to_string();
            text.split(" (os error")
                .next()
                .unwrap_or(&text)
                .to_lowercase()
        }
    }
}
