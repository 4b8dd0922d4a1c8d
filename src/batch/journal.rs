//! The journal of a batch, in the output folder: it lists finished outputs, so that a run that was
//! stopped at any moment can be resumed (`--resume`), and distinguishes its own outputs from other
//! files.
//!
//! A journal has one JSON object a line for each output, written when the output's file is complete
//! and before it gets its name: the identity of that file (length, time, inode), the identity of
//! the input, and the options. So the file with that name shows by itself whether it is the
//! finished one, whenever a run was killed. A run without `--resume` begins with a marker line.
//! Each line is appended with one write.
//!
//! The file is named `.gpuimg-journal`; shard I of N writes `.gpuimg-journal.I-of-N`, since
//! machines that append to one file of a network file system overwrite each other's lines. All of
//! them are read.

mod compact;
mod history;
mod line;
mod lock;
#[cfg(all(test, feature = "schedules"))]
mod schedules;

use super::item::Item;
use super::key::Job;
use super::naming::JOURNAL;
use super::shard::Shard;
use crate::engine::CompleteOutput;
use crate::os::fault::{self, Kind};
use crate::os::name::Shown;
use crate::os::reason::plain;
use crate::os::sync::{Mutex, PoisonError};
use crate::os::system;
use crate::os::{Digest, FileState, Identity, InputRecord, Source, same_file, sync_folder};
use anyhow::{Context, Result, bail, ensure};
use compact::{is_at, open_to_append};
use history::History;
use line::{Line, Marker};
pub(super) use line::{escaped, unescaped};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// What a run must do about an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is done, and neither file has changed since.
    Done,
    /// Process it.
    Make(Replace),
    /// Refuse it, for this reason.
    Refused(&'static str),
}

/// The existing file that an output may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// No file.
    Nothing,
    /// The file with this identity.
    Only(Identity),
    /// Any file.
    Anything,
}

impl Replace {
    /// Whether any existing file may be replaced.
    pub fn something(self) -> bool {
        self != Replace::Nothing
    }

    /// Checks that the file now at `path` may still be replaced.
    ///
    /// # Errors
    /// The file has been replaced since the work began.
    pub fn check(self, path: &Path) -> Result<()> {
        if let Replace::Only(known) = self {
            ensure!(
                Identity::at(path) == Some(known),
                "another program changed it in the meantime, so it was not replaced"
            );
        }
        Ok(())
    }
}

/// The state of an item's files when its processing began.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// The state of the input, if it can be read.
    pub input: Option<FileState>,
    /// The identity of the file with the output's name.
    pub output: Option<Identity>,
    /// Whether both are the same file.
    pub in_place: bool,
}

impl Sight {
    /// Looks up the files of an item.
    pub fn inspect(item: &Item) -> Sight {
        let input = FileState::at(item.file());
        let Some(path) = item.output.as_deref() else {
            return Sight {
                input,
                output: None,
                in_place: false,
            };
        };
        let output = Identity::at(path);
        // Most outputs do not exist, and so are not the input.
        let in_place = output.is_some() && same_file(item.file(), path);
        // One file is looked up once: between two look-ups another run could replace it.
        let output = if in_place {
            input.map(|input| input.identity)
        } else {
            output
        };
        Sight {
            input,
            output,
            in_place,
        }
    }

    /// The verdict without knowledge of earlier runs.
    pub fn verdict(&self, overwrite: bool) -> Verdict {
        Verdict::Make(match self.output {
            Some(there) if overwrite && self.in_place => Replace::Only(there),
            // Also a file that appears during the work.
            _ if overwrite => Replace::Anything,
            _ => Replace::Nothing,
        })
    }
}

/// The known contents of files, for verdicts that depend on them.
#[derive(Debug, Default)]
struct Contents {
    /// Digests by path; `None` for a file that cannot be read.
    known: HashMap<PathBuf, Option<Digest>>,
    /// The files whose digests are missing.
    missing: Vec<PathBuf>,
    /// An output that is done, although its input is another file: its identity, and that input.
    done: Option<(Identity, InputRecord)>,
}

impl Contents {
    /// The digest of the file at `path`, if it is already known.
    fn digest(&mut self, path: &Path) -> Option<Digest> {
        match self.known.get(path) {
            Some(digest) => *digest,
            None => {
                // Several records of an output may ask for the same file.
                if !self.missing.iter().any(|other| other == path) {
                    self.missing.push(path.into());
                }
                None
            }
        }
    }

    /// Reads the files whose digests are missing. Returns whether there were any.
    fn read(&mut self) -> bool {
        let missing = std::mem::take(&mut self.missing);
        for path in &missing {
            let digest = Source::open_file(path).and_then(|source| source.digest());
            self.known.insert(path.clone(), digest.ok());
        }
        !missing.is_empty()
    }
}

/// The journals of earlier runs in one output folder, compared with the current `job`. Read-only.
#[derive(Debug)]
pub struct Past {
    folder: PathBuf,
    job: Job,
    /// `None` unless earlier runs are resumed.
    history: Option<Mutex<History>>,
    /// Whether outputs of this run may be created again.
    refreshes: bool,
}

/// The journal of one output folder, open for the outputs of one run.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    pen: Mutex<Pen>,
    past: Past,
    sync: bool,
}

#[derive(Debug)]
struct Pen {
    file: File,
    /// Whether the last line may be incomplete.
    torn: bool,
    /// Whether the file is locked, so that nobody replaces it.
    locked: bool,
    /// Lines added since superfluous ones were last dropped, and lines kept then.
    added: u64,
    kept: u64,
}

impl Past {
    /// Reads all journals of `folder`, which need not exist, if earlier runs are resumed.
    ///
    /// # Errors
    /// A journal that cannot be read, or that is no regular file.
    pub fn read(folder: &Path, job: Job, resume: bool) -> Result<Past> {
        let history = if resume && folder.is_dir() {
            Some(Mutex::new(History::read(folder, &job)?))
        } else {
            None
        };
        Ok(Past {
            folder: folder.into(),
            job,
            history,
            refreshes: false,
        })
    }

    /// Forgets what was read, after the journals have been replaced.
    fn forget(&self) {
        if let Some(history) = &self.history {
            let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
            history.forget();
        }
    }

    /// The verdict on an item, from earlier and concurrent runs.
    pub fn verdict(&self, item: &Item, sight: &Sight, overwrite: bool) -> Result<Verdict> {
        self.verdict_with(item, sight, overwrite, &mut Contents::default())
    }

    fn verdict_with(
        &self,
        item: &Item,
        sight: &Sight,
        overwrite: bool,
        contents: &mut Contents,
    ) -> Result<Verdict> {
        let known = self.history.as_ref().zip(self.inside(item));
        let Some((history, name)) = known else {
            return Ok(sight.verdict(overwrite));
        };
        if sight.in_place || self.refreshes && sight.output.is_some() {
            // A run that replaces an input writes its journal line first, and a watch makes outputs
            // again.
            let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
            history.refresh(&self.job)?;
        }
        loop {
            let input = &item.input;
            let history = history.lock().unwrap_or_else(PoisonError::into_inner);
            let verdict = history.verdict(&name, input, sight, overwrite, contents);
            // Other workers need the history while files are read.
            drop(history);
            if verdict == Verdict::Done || !contents.read() {
                return Ok(verdict);
            }
        }
    }

    /// Whether another run has finished an item since this run began.
    pub fn was_done_meanwhile(&self, item: &Item) -> bool {
        let Some(history) = &self.history else {
            return false;
        };
        let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
        let refreshed = history.refresh(&self.job);
        drop(history);
        let done = || self.verdict(item, &Sight::inspect(item), false);
        // An output that is not in this folder is in no journal.
        refreshed.is_ok() && self.inside(item).is_some() && matches!(done(), Ok(Verdict::Done))
    }

    /// An output's path relative to the folder, whose own path may change between runs; `None` for
    /// a path elsewhere.
    fn inside(&self, item: &Item) -> Option<PathBuf> {
        let output = item.output.as_deref()?;
        let name = output.strip_prefix(&self.folder).unwrap_or(output);
        is_below(name).then(|| name.to_path_buf())
    }
}

impl Journal {
    /// Opens the journal of `folder`, or that of a shard. With `sync`, each line is on the disk
    /// before its output gets its name.
    ///
    /// # Errors
    /// A journal that cannot be opened, or that is no regular file.
    pub fn open(
        folder: &Path,
        shard: Option<Shard>,
        job: Job,
        resume: bool,
        sync: bool,
    ) -> Result<Journal> {
        let name = match shard {
            Some(Shard { index, count }) => format!("{JOURNAL}.{index}-of-{count}"),
            None => JOURNAL.into(),
        };
        let path = folder.join(name);
        let failed = || format!("cannot write {}", path.shown());
        let file = open_to_append(&path).with_context(failed)?;
        if sync {
            sync_folder(folder).with_context(failed)?;
        }
        let torn = file.metadata().with_context(failed)?.len() > 0;
        let journal = Journal {
            pen: Mutex::new(Pen {
                file,
                torn,
                locked: true,
                added: 0,
                kept: 0,
            }),
            past: Past::read(folder, job, resume)?,
            sync,
            path,
        };
        if !resume {
            journal.write(&serde_json::to_string(&Marker::ANEW)?)?;
        }
        Ok(journal)
    }

    /// The verdict on an item, from earlier and concurrent runs.
    pub fn verdict(&self, item: &Item, sight: &Sight, overwrite: bool) -> Result<Verdict> {
        let mut contents = Contents::default();
        let verdict = self
            .past
            .verdict_with(item, sight, overwrite, &mut contents)?;
        if let Some((output, input)) = contents.done {
            // So that the next run need not read the input for the same verdict.
            let input = Some(input);
            self.announce(
                item,
                &CompleteOutput {
                    output,
                    input,
                    damaged: false,
                },
            )?;
        }
        Ok(verdict)
    }

    /// Whether another run has finished an item since this run began.
    pub fn was_done_meanwhile(&self, item: &Item) -> bool {
        self.past.was_done_meanwhile(item)
    }

    /// Records that the output of `item` is complete and is about to get its name.
    ///
    /// # Errors
    /// The line cannot be written; then the output must not appear.
    pub fn announce(&self, item: &Item, finished: &CompleteOutput) -> Result<()> {
        let Some(name) = self.past.inside(item) else {
            return Ok(());
        };
        let line = Line::new(&name, finished, &self.past.job);
        self.write(&serde_json::to_string(&line)?)
    }

    /// Makes the pen write to the file that has the journal's name now. If the folder was removed during
    /// the run, a line in the old file would be lost, and the next run would not know its results.
    fn keep_in_place(&self, pen: &mut Pen) -> Result<()> {
        if !pen.locked {
            lock::share(&pen.file, &self.path)?;
            pen.locked = true;
        }
        if !is_at(&pen.file, &self.path).map_err(plain)? {
            pen.file = open_to_append(&self.path)?;
            if self.sync {
                sync_folder(&self.past.folder)?;
            }
            pen.torn = pen.file.metadata()?.len() > 0;
            (pen.added, pen.kept) = (0, 0);
            self.past.forget();
        }
        Ok(())
    }

    fn write(&self, line: &str) -> Result<()> {
        let mut pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep_in_place(&mut pen)
            .with_context(|| format!("cannot write {}", self.path.shown()))?;
        let start = if pen.torn { "\n" } else { "" };
        let line = format!("{start}{line}\n");
        pen.torn = true;
        let mut write = || -> std::io::Result<()> {
            fault::point(Kind::Write, &self.path)?;
            pen.file.write_all(line.as_bytes())?;
            if self.sync {
                fault::point(Kind::Sync, &self.path)?;
                pen.file.sync_data()?;
            }
            Ok(())
        };
        let written = write();
        pen.torn = written.is_err();
        pen.added += 1;
        written.map_err(plain).context("cannot write the journal")
    }
}

/// Whether a name stays below the folder that it is relative to.
fn is_below(name: &Path) -> bool {
    let mut parts = name.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Opens a journal as a regular file only: not through a link, which would lead to another file,
/// and not a pipe, which would block.
fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let advice = "the journal must be a regular file: remove it, or write to another folder";
    fault::point(Kind::Open, path)?;
    system::only_itself(options);
    let file = match options.open(path) {
        Err(error) if system::is_link(&error) => bail!("it is a symbolic link ({advice})"),
        Err(error) if system::is_no_file(&error) => bail!("it is not a regular file ({advice})"),
        opened => opened?,
    };
    fault::point(Kind::Stat, path)?;
    ensure!(
        file.metadata()?.is_file(),
        "it is not a regular file ({advice})"
    );
    Ok(file)
}
