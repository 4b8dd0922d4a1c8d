//! Makes a system call fail, or stops the process before it: for tests alone.
//!
//! Every call with which the program opens, inspects, reads or changes a file has a point here.
//! `GPUIMG_FAULT=KIND[:TEXT]:N=ACTION` makes the Nth call of a kind fail, of those whose path contains
//! TEXT if it is given; `N+` means that call and all after it. ACTION is the name of an error, as
//! `EIO`, or `stop`: the process sends itself SIGSTOP, so that a test can exchange a file and send
//! SIGCONT. Several are separated by `;`. `GPUIMG_FAULT_COUNT=FILE` adds a line `KIND PATH` to FILE at
//! each point, so that a test knows how many there are.

use super::system::{self, FileId};
use clap::ValueEnum;
use std::env;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of system call. Its name is the variant's in small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A file that exists, or a folder.
    Open,
    /// What a name or an open file is, and where its links lead.
    Stat,
    /// Bytes of a file or a stream.
    Read,
    /// Bytes of a file or a stream, and its length.
    Write,
    /// A new file.
    Create,
    /// A name for a file without one.
    Link,
    /// Another name.
    Rename,
    /// A name that goes.
    Unlink,
    /// Data or entries of a folder onto the disk.
    Sync,
    /// The end of a file that was written.
    Close,
    /// The entries of a folder.
    Readdir,
    /// A new folder.
    Mkdir,
}

/// What the environment requests; `None` outside tests.
static PLAN: LazyLock<Option<Plan>> = LazyLock::new(Plan::from_environment);

#[derive(Debug)]
struct Plan {
    /// `None` if the text is not understood.
    faults: Option<Vec<Fault>>,
    /// The file to which the calls are added.
    calls: Option<File>,
}

#[derive(Debug)]
struct Fault {
    kind: Kind,
    text: String,
    number: u64,
    and_all_later: bool,
    /// The number of the error; `None` stops the process.
    error: Option<i32>,
    calls: AtomicU64,
}

/// The place of a system call of a `kind` on `path`, immediately before it.
///
/// # Errors
/// The one that a test requests, in place of the call.
pub fn point(kind: Kind, path: &Path) -> io::Result<()> {
    match &*PLAN {
        None => Ok(()),
        Some(plan) => plan.point(kind, path),
    }
}

/// `fs::metadata`, with its point.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    point(Kind::Stat, path)?;
    fs::metadata(path)
}

/// The file to which a path leads, with the point of `metadata`.
pub fn id(path: &Path) -> io::Result<FileId> {
    point(Kind::Stat, path)?;
    system::id_at(path)
}

/// The file or link at a path, with the point of `metadata`.
pub fn id_of_entry(path: &Path) -> io::Result<FileId> {
    point(Kind::Stat, path)?;
    system::id_of_entry(path)
}

/// `fs::symlink_metadata`, with its point.
pub fn symlink_metadata(path: &Path) -> io::Result<Metadata> {
    point(Kind::Stat, path)?;
    fs::symlink_metadata(path)
}

/// `fs::canonicalize`, with its point.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    point(Kind::Stat, path)?;
    fs::canonicalize(path)
}

/// `File::open`, with its point; each of its reads has one too.
pub fn open(path: &Path) -> io::Result<Reads<File>> {
    point(Kind::Open, path)?;
    Ok(Reads::new(File::open(path)?, path))
}

/// A stream whose every read has a point.
#[derive(Debug)]
pub struct Reads<R> {
    stream: R,
    path: PathBuf,
}

impl<R> Reads<R> {
    /// Reads of `stream`, which is the file at `path`.
    pub fn new(stream: R, path: &Path) -> Reads<R> {
        Reads {
            stream,
            path: path.into(),
        }
    }

    /// The stream.
    pub fn into_inner(self) -> R {
        self.stream
    }
}

impl<R: Read> Read for Reads<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        point(Kind::Read, &self.path)?;
        self.stream.read(buffer)
    }
}

impl Plan {
    fn from_environment() -> Option<Plan> {
        let faults = env::var("GPUIMG_FAULT").ok();
        let calls = env::var_os("GPUIMG_FAULT_COUNT");
        if faults.is_none() && calls.is_none() {
            return None;
        }
        let calls = calls.map(|path| File::options().append(true).create(true).open(path));
        let usable = !matches!(calls, Some(Err(_)));
        let faults = faults.as_deref().unwrap_or_default().split(';');
        let faults = faults.filter(|text| !text.is_empty()).map(Fault::parse);
        Some(Plan {
            faults: faults.collect::<Option<_>>().filter(|_| usable),
            calls: calls.and_then(Result::ok),
        })
    }

    fn point(&self, kind: Kind, path: &Path) -> io::Result<()> {
        if let Some(mut file) = self.calls.as_ref() {
            let name = format!("{kind:?}").to_lowercase();
            let line = [
                name.as_bytes(),
                b" ",
                system::bytes_of(path.as_os_str()),
                b"\n",
            ];
            file.write_all(&line.concat())?;
        }
        // A test must not pass because its fault was misspelt.
        let Some(faults) = &self.faults else {
            return Err(io::Error::other(
                "GPUIMG_FAULT must be KIND[:TEXT]:N=ACTION, and GPUIMG_FAULT_COUNT a file",
            ));
        };
        for fault in faults {
            fault.point(kind, path)?;
        }
        Ok(())
    }
}

impl Fault {
    fn parse(text: &str) -> Option<Fault> {
        let (call, action) = text.rsplit_once('=')?;
        let (kind, rest) = call.split_once(':')?;
        let (text, number) = rest.rsplit_once(':').unwrap_or(("", rest));
        let later = number.strip_suffix('+');
        Some(Fault {
            kind: Kind::from_str(kind, false).ok()?,
            text: text.into(),
            number: later.unwrap_or(number).parse().ok()?,
            and_all_later: later.is_some(),
            error: match action {
                "stop" => None,
                _ => Some(system::error_number(action)?),
            },
            calls: AtomicU64::new(0),
        })
    }

    fn point(&self, kind: Kind, path: &Path) -> io::Result<()> {
        let path = system::bytes_of(path.as_os_str());
        let text = self.text.as_bytes();
        let has_text = text.is_empty() || path.windows(text.len()).any(|part| part == text);
        if kind != self.kind || !has_text {
            return Ok(());
        }
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if number != self.number && !(self.and_all_later && number > self.number) {
            return Ok(());
        }
        match self.error {
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => system::stop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_parsed() {
        let fault = Fault::parse("read:a=b:c.tif:3+=EIO").expect("a fault");
        assert_eq!(
            (fault.kind, &*fault.text, fault.number),
            (Kind::Read, "a=b:c.tif", 3)
        );
        assert!(fault.and_all_later && fault.error == system::error_number("EIO"));
        let stop = Fault::parse("rename:1=stop").expect("a fault");
        assert!(stop.text.is_empty() && !stop.and_all_later && stop.error.is_none());
        for text in [
            "read",
            "read:3",
            "read=EIO",
            "raed:3=EIO",
            "read:x=EIO",
            "read:3=EI",
        ] {
            assert!(Fault::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn only_the_call_that_is_named_fails() {
        let fails = |text: &str, paths: &[&str]| -> Vec<bool> {
            let fault = Fault::parse(text).expect("a fault");
            let fails = |path: &&str| fault.point(Kind::Read, Path::new(*path)).is_err();
            paths.iter().map(fails).collect()
        };
        assert_eq!(fails("read:2=EIO", &["a", "a", "a"]), [false, true, false]);
        assert_eq!(fails("read:2+=EIO", &["a", "a", "a"]), [false, true, true]);
        assert_eq!(
            fails("read:b:1=EIO", &["a", "cbc", "b"]),
            [false, true, false]
        );
        assert_eq!(fails("open:1=EIO", &["a"]), [false]);
    }
}
