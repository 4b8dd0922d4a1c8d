//! Outputs: a file that gets its name only when everything is in it, or a stream.

use super::durable::{parent, sync_folder};
use super::fault::{self, Kind};
use super::identity::Identity;
use super::replaced;
use super::traffic::Traffic;
use super::unfinished::Unfinished;
use crate::console;
use crate::reason::{plain, reason};
use anyhow::{Result, bail};
use std::fs;
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Parts that a system call writes, at most: IOV_MAX of Linux.
const MOST_PARTS: usize = 1024;

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
            match fault::metadata(path) {
                Ok(about) if about.is_dir() => bail!("it is a directory"),
                Ok(about) if is_stream(&about) => stream(path),
                Ok(_) if !overwrite => bail!("it exists already (--overwrite replaces it)"),
                // Links are followed, so that the link remains and its target is replaced.
                Ok(about) => {
                    let path = fault::canonicalize(path)?;
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

    /// An output that is never delivered, for tests.
    #[cfg(test)]
    pub fn in_memory() -> Target {
        Target {
            sink: Sink::Stream {
                path: Path::new("memory").into(),
                bytes: Mutex::default(),
            },
            sync: false,
            traffic: Traffic::default(),
        }
    }

    /// What was written to an output in memory.
    #[cfg(test)]
    pub fn written(&self) -> Vec<u8> {
        match &self.sink {
            Sink::Stream { bytes, .. } => bytes.lock().map(|it| it.clone()).unwrap_or_default(),
            Sink::File { .. } => Vec::new(),
        }
    }

    /// Reserves `len` bytes on the disk: a full disk is noticed before the work, and a later rename
    /// does not wait for delayed allocation (ext4: 19 ms instead of 176 ms for 128 MiB).
    pub fn reserve(&self, len: u64) -> Result<()> {
        match &self.sink {
            Sink::Stream { .. } => Ok(()),
            Sink::File {
                unfinished, path, ..
            } => {
                use rustix::{fs::FallocateFlags, io::Errno};
                let reserved = self.traffic.count(0, || {
                    fault::point(Kind::Write, path)?;
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
            Sink::File {
                unfinished, path, ..
            } => self
                .traffic
                .count(bytes.len(), || {
                    fault::point(Kind::Write, path)?;
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

    /// Writes parts one behind the other from `offset` on, as `write_at` does.
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
            let together = &rest[..rest.len().min(MOST_PARTS)];
            let len = together.iter().map(|part| part.len()).sum();
            let write = || {
                fault::point(Kind::Write, path)?;
                Ok(rustix::io::pwritev(unfinished.file(), together, at)?)
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
                        fault::point(Kind::Write, &path)?;
                        unfinished.file().set_len(len)?;
                        if sync {
                            fault::point(Kind::Sync, &path)?;
                            unfinished.file().sync_all()?;
                        }
                        Ok(())
                    })
                    .map_err(plain)?;
                fault::point(Kind::Stat, &path).map_err(plain)?;
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
                            fault::point(Kind::Write, &path)?;
                            console::output_bytes(&bytes)
                        } else {
                            fault::point(Kind::Open, &path)?;
                            let mut stream = fs::OpenOptions::new().write(true).open(&path)?;
                            fault::point(Kind::Write, &path)?;
                            stream.write_all(&bytes)
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
