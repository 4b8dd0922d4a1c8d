//! The items of a batch: its files, and the skipped or unreadable entries of folders and lists.

use super::by_number::by_number;
use super::shard::WholeSet;
use crate::engine::{Digests, Failure};
use crate::ops::Position;
use crate::os::console;
use crate::os::name::{Shown, in_shell};
use crate::os::system;
use crate::os::url::is_url;
use crate::os::{Digest, Passes, Source, fault, file_of, is_absence, is_same, reason};
use anyhow::{Context, Result, anyhow, ensure};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// One file of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The path of the input.
    pub input: PathBuf,
    /// Its name within the batch, the same on every machine, whatever the path of the directory is
    /// there.
    pub key: PathBuf,
    /// The path of the output, if there is one.
    pub output: Option<PathBuf>,
    /// Whether it was found or listed as a file, and not named on the command line.
    pub listed: bool,
    /// Whether it was a pipe or another stream when the inputs were collected; anything else must be a
    /// regular file when it is opened.
    pub may_be_stream: bool,
    /// The digests of its file, if a first pass computed them.
    pub digests: Digests,
    /// Its position among all inputs, those of other shards included; `None` if it is unknown.
    pub position: Option<Position>,
}

/// A file, folder or list that should have given images but could not be read, with the reason.
#[derive(Debug)]
pub struct Unread {
    /// Its path.
    pub path: PathBuf,
    /// What failed, if it is known apart from the reason.
    failure: Option<Failure>,
    /// The reason, or the whole message.
    reason: String,
}

/// The inputs of a run. They are found once, and every pass over them uses this value: a list or a
/// folder that is read again could be empty (a pipe) or could have changed.
#[derive(Debug, Default)]
pub struct Items {
    /// The files, in the order of their names.
    pub items: Vec<Item>,
    /// Skipped entries of folders.
    pub passed_over: Vec<PassedOver>,
    /// Inputs that failed before the batch began.
    pub unread: Vec<Unread>,
    /// Folders of inputs that hold the journal of an earlier run: its results may be among the inputs.
    pub earlier: Vec<EarlierResults>,
    /// All inputs of the set that these are part of.
    pub set: Option<WholeSet>,
    /// The digest of the names of all inputs in their order, those of other shards included.
    pub order: Option<Digest>,
    /// The inputs as the first pass saw them, if all are read several times.
    pub passes: Option<Passes>,
    /// Whether every pass computes the SHA-256 of the files.
    pub keeps_digests: bool,
}

/// A folder with results of an earlier run, at or below a folder of inputs.
#[derive(Debug)]
pub struct EarlierResults {
    /// The folder of inputs.
    pub root: PathBuf,
    /// The folder with results.
    pub folder: PathBuf,
}

/// A file or folder that is skipped, with the reason.
#[derive(Debug)]
pub struct PassedOver {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub why: Why,
}

/// The reasons to skip an entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Neither its name nor its content is that of an image.
    NoImage,
    /// An unsupported image or archive, recognized by its first bytes.
    Foreign(&'static str),
    /// Its name begins with a dot.
    Hidden,
    /// Excluded by `--include` or `--exclude`.
    LeftOut,
    /// A Zarr store in a watched folder: nothing shows when it is complete.
    Store,
    /// A link to a folder, which could form a cycle.
    FolderLink,
    /// A broken link whose name is not that of an image.
    LeadsNowhere,
    /// A pipe: opening it could wait forever.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl Why {
    /// Whether such a file is always named, rather than only counted.
    pub fn is_odd(self) -> bool {
        use Why::*;
        matches!(self, LeadsNowhere | Fifo | Socket | Device)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Why::Foreign(name) => return write!(f, "{name}, not supported"),
            Why::NoImage => "not an image",
            Why::Hidden => "hidden",
            Why::LeftOut => "excluded by --include or --exclude",
            Why::Store => "a Zarr store, which may be incomplete",
            Why::FolderLink => "a link to a folder",
            Why::LeadsNowhere => "a broken link",
            Why::Fifo => "a FIFO",
            Why::Socket => "a socket",
            Why::Device => "a device",
        })
    }
}

/// Counts the skipped entries by reason, with one example each: `2 × not an image (in/a.txt, …)`.
pub fn summary<'a>(passed_over: impl Iterator<Item = &'a PassedOver>) -> String {
    let mut reasons: BTreeMap<Why, (usize, &Path)> = BTreeMap::new();
    for PassedOver { path, why } in passed_over {
        reasons.entry(*why).or_insert((0, path)).0 += 1;
    }
    let reasons = reasons.into_iter().map(|(why, (count, path))| {
        let more = if count > 1 { ", …" } else { "" };
        format!("{count} × {why} ({}{more})", path.shown())
    });
    reasons.collect::<Vec<String>>().join(", ")
}

impl Items {
    /// These files.
    pub fn named(paths: &[PathBuf]) -> Items {
        let item = |path: &PathBuf| Item::listed(path.clone(), path.clone());
        Items {
            items: paths.iter().map(item).collect(),
            ..Items::default()
        }
    }

    /// Whether there can be results: no folder is created if all inputs are missing. A shard may be
    /// empty.
    pub fn has_any(&self) -> bool {
        let there = |item: &Item| {
            item.input == Path::new("-") || is_url(&item.input) || item.file().exists()
        };
        match self.items.as_slice() {
            [] => self.unread.is_empty(),
            items => items.iter().any(there),
        }
    }

    /// Moves files that failed to the inputs that cannot be read, so that no later pass reads them.
    pub fn leave_out(&mut self, failures: Vec<(usize, anyhow::Error)>) {
        for (index, error) in &failures {
            let path = self.items[*index].input.clone();
            self.unread.push(Unread::failed(path, error));
        }
        let failed: HashSet<usize> = failures.iter().map(|(index, _)| *index).collect();
        let mut index = 0..;
        self.items
            .retain(|_| !index.next().is_some_and(|index| failed.contains(&index)));
    }

    /// Records the order of the items, before only a part of them is kept.
    pub fn record_order(&mut self) {
        let count = self.items.len() as u64;
        let mut names = Vec::new();
        for (item, index) in self.items.iter_mut().zip(0..) {
            item.position = Some(Position { index, count });
            names.extend_from_slice(system::bytes_of(item.key.as_os_str()));
            names.push(0);
        }
        self.order = Some(Digest::from_bytes(&names));
    }

    /// Records all files of the set, before only a part of them is kept.
    ///
    /// # Errors
    /// The length of a file cannot be determined.
    pub fn record_set(&mut self) -> Result<()> {
        let items = self.items.par_iter();
        let files = items.map(|item| Ok((system::bytes_of(item.key.as_os_str()), item.length()?)));
        self.set = Some(WholeSet::new(files.collect::<Result<_>>()?));
        Ok(())
    }

    /// Warns about results of an earlier run among the inputs, unless all inputs are such results, or the results are written to
    /// another folder. `results` is the output folder.
    pub fn warn_about_earlier_results(&self, results: Option<&Path>) {
        let (own, others): (Vec<_>, Vec<_>) =
            (self.earlier.iter()).partition(|earlier| earlier.folder == earlier.root);
        let is_result = |item: &Item| {
            let mut folders = others.iter().map(|earlier| &earlier.folder);
            folders.any(|folder| item.input.starts_with(folder))
        };
        let is_in_place = |earlier: &&EarlierResults| {
            results.is_some_and(|folder| is_same(folder, &earlier.root))
        };
        let (earlier, advice) = match (own.into_iter().find(is_in_place), &others[..]) {
            (Some(earlier), _) => (earlier, "write results to another folder".into()),
            (None, [first, ..]) if !self.items.iter().all(is_result) => {
                let below = first.folder.strip_prefix(&first.root);
                let name = in_shell(below.unwrap_or(&first.folder));
                (*first, format!("--exclude {name} leaves them out"))
            }
            _ => return,
        };
        console::tell(&format!(
            "gpuimg: warning: {} has results of an earlier run, which are inputs, too ({advice})",
            earlier.folder.shown()
        ));
    }

    /// Warns if the names are in the order of their letters, as a shell gives them, but not of their numbers.
    pub fn warn_about_order(&self) {
        let names: Vec<&OsStr> = self
            .items
            .iter()
            .map(|item| item.input.as_os_str())
            .collect();
        let goes_back = |pair: &&[&OsStr]| by_number(pair[0], pair[1]).is_gt();
        if names.is_sorted()
            && let Some(pair) = names.windows(2).find(goes_back)
        {
            let [first, second] = [pair[0], pair[1]].map(|name| Path::new(name).shown());
            console::tell(&format!(
                "gpuimg: warning: {first} comes before {second}: the names are in the order of their letters, not of their numbers \
                 (give the folder to have the order of the numbers)"
            ));
        }
    }

    /// Refuses inputs that can be read only once, if all must be read twice.
    ///
    /// # Errors
    /// A pipe or another stream among them.
    pub fn can_be_read_twice(&self, option: &str) -> Result<()> {
        for item in &self.items {
            ensure!(
                !item.is_stream(),
                "{option} reads every image twice, but {} can be read only once",
                item.input.shown()
            );
        }
        Ok(())
    }
}

impl Item {
    /// A file with its name within the batch.
    pub fn new(input: PathBuf, key: PathBuf) -> Item {
        Item {
            input,
            key,
            output: None,
            listed: false,
            may_be_stream: false,
            digests: Digests::default(),
            position: None,
        }
    }

    /// A file that was found in a folder or named in a list, and must be a regular file.
    pub fn listed(input: PathBuf, key: PathBuf) -> Item {
        Item {
            listed: true,
            ..Item::new(input, key)
        }
    }

    /// The path of its file: the input without the address of an image in the file.
    pub fn file(&self) -> &Path {
        file_of(&self.input)
    }

    /// Opens it, as a regular file unless it was a stream from the start.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub fn source(&self) -> Result<Source> {
        if self.may_be_stream {
            Source::open(&self.input)
        } else {
            Source::open_file(&self.input)
        }
    }

    /// Bytes of its file; 0 if there is none.
    ///
    /// # Errors
    /// The length cannot be determined.
    pub(super) fn length(&self) -> Result<u64> {
        match fault::metadata(self.file()) {
            Ok(about) => Ok(about.len()),
            Err(error) if is_absence(&error) => Ok(0),
            Err(error) => Err(anyhow!(reason(&error)))
                .with_context(|| format!("cannot read {}", self.input.shown())),
        }
    }

    /// Whether it can be read only once: standard input, a pipe or a device.
    pub fn is_stream(&self) -> bool {
        let stream = |about: fs::Metadata| !about.is_file() && !about.is_dir();
        self.input == Path::new("-") || fault::metadata(self.file()).is_ok_and(stream)
    }
}

impl Unread {
    /// An input that cannot be read, for this reason.
    pub fn new(path: PathBuf, why: &str) -> Unread {
        Unread {
            failure: Some(Failure::new("read", &path)),
            reason: why.into(),
            path,
        }
    }

    /// An input with which this error happened.
    pub fn failed(path: PathBuf, error: &anyhow::Error) -> Unread {
        let (failure, reason) = match Failure::find_in(error) {
            Some((failure, reason)) => (Some(failure.clone()), reason),
            None => (None, format!("{error:#}")),
        };
        Unread {
            path,
            failure,
            reason,
        }
    }

    /// The reason as an error.
    pub fn error(&self) -> anyhow::Error {
        let reason = anyhow!("{}", self.reason);
        match &self.failure {
            Some(failure) => reason.context(failure.clone()),
            None => reason,
        }
    }
}
