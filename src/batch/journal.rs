//! What a batch has done, kept in the folder of its results: so that a run that was stopped at any
//! moment can go on (`--resume`), and knows its own outputs from others'.
//!
//! A journal has one JSON object a line for each output, written when the output's file is whole and
//! before it gets its name: which file that is (length, time, inode), what it was made of and how. So
//! the file that bears the name tells by itself whether it is the one, whenever a run was killed. A
//! run without `--resume` begins with a line that says so. Lines are appended with one write each.
//!
//! It is called `.gpuimg-journal`; part I of N writes `.gpuimg-journal.I-of-N`, since machines that
//! append to one file of a network file system overwrite each other's lines. All are read.

mod history;
mod line;

use super::item::Item;
use super::key::Job;
use super::naming::JOURNAL;
use super::shard::Shard;
use crate::files::{Identity, same_file, sync_folder};
use anyhow::{Context, Result, bail, ensure};
use history::History;
use line::{Line, Marker};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What is to become of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done, and nothing has changed since.
    Done,
    /// It is to be made.
    Make(Replace),
    /// It must not be made, for this reason.
    Refused(&'static str),
}

/// What an output may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// No file.
    Nothing,
    /// This very file.
    Only(Identity),
    /// Whatever is there.
    Anything,
}

impl Replace {
    /// Whether a file may be there.
    pub fn something(self) -> bool {
        self != Replace::Nothing
    }

    /// Whether what is at `path` now may still be replaced.
    ///
    /// # Errors
    /// Another file is there by now than when the work began.
    pub fn check(self, path: &Path) -> Result<()> {
        if let Replace::Only(known) = self {
            ensure!(
                Identity::of(path) == Some(known),
                "it was changed by another program meanwhile, and is left as it is now"
            );
        }
        Ok(())
    }
}

/// What an item's files were when it was its turn.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// The input, if it can be looked at.
    pub input: Option<Identity>,
    /// What bears the output's name.
    pub output: Option<Identity>,
    /// Whether both are one file.
    pub in_place: bool,
}

impl Sight {
    /// Looks at the files of an item.
    pub fn of(item: &Item) -> Sight {
        let input = Identity::of(&item.input);
        let Some(path) = item.output.as_deref() else {
            return Sight {
                input,
                output: None,
                in_place: false,
            };
        };
        let in_place = same_file(&item.input, path);
        // One file is looked at once: a second look might find that another run has replaced it.
        let output = match in_place {
            true => input,
            false => Identity::of(path),
        };
        Sight {
            input,
            output,
            in_place,
        }
    }

    /// The verdict where nothing is known of earlier runs.
    pub fn verdict(&self, overwrite: bool) -> Verdict {
        Verdict::Make(match self.output {
            Some(there) if overwrite && self.in_place => Replace::Only(there),
            Some(_) if overwrite => Replace::Anything,
            _ => Replace::Nothing,
        })
    }
}

/// What earlier runs did in one folder of results, for a run that does `job` there. It is only read.
#[derive(Debug)]
pub struct Past {
    folder: PathBuf,
    job: Job,
    /// Nothing unless earlier runs are gone on with.
    history: Option<Mutex<History>>,
}

/// The journal of one folder of results, open for the outputs of one run.
#[derive(Debug)]
pub struct Journal {
    pen: Mutex<Pen>,
    past: Past,
    sync: bool,
}

#[derive(Debug)]
struct Pen {
    file: File,
    /// Whether the last line may have been cut off.
    torn: bool,
}

impl Past {
    /// Reads all journals of `folder`, which need not exist, if earlier runs are gone on with.
    ///
    /// # Errors
    /// A journal that cannot be read, or that is no regular file.
    pub fn read(folder: &Path, job: Job, resume: bool) -> Result<Past> {
        let history = match resume && folder.is_dir() {
            true => Some(Mutex::new(History::read(folder, &job)?)),
            false => None,
        };
        Ok(Past {
            folder: folder.into(),
            job,
            history,
        })
    }

    /// What earlier runs, and others at work now, make of an item.
    pub fn verdict(&self, item: &Item, sight: &Sight, overwrite: bool) -> Result<Verdict> {
        let known = self.history.as_ref().zip(self.inside(item));
        let Some((history, name)) = known else {
            return Ok(sight.verdict(overwrite));
        };
        let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
        if sight.in_place {
            // Whoever has replaced the input had journalled it before.
            history.refresh(&self.job)?;
        }
        Ok(history.verdict(&name, sight, overwrite))
    }

    /// Whether another run has done an item since this one began.
    pub fn was_done_meanwhile(&self, item: &Item) -> bool {
        let Some((history, name)) = self.history.as_ref().zip(self.inside(item)) else {
            return false;
        };
        let sight = Sight::of(item);
        let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
        history.refresh(&self.job).is_ok() && history.verdict(&name, &sight, false) == Verdict::Done
    }

    /// An output's name below the folder, which may be called otherwise the next time; none for one
    /// that is elsewhere.
    fn inside(&self, item: &Item) -> Option<PathBuf> {
        let output = item.output.as_deref()?;
        let name = output.strip_prefix(&self.folder).unwrap_or(output);
        is_below(name).then(|| name.to_path_buf())
    }
}

impl Journal {
    /// Opens the journal of `folder`, or that of a part of the batch. With `sync`, its lines are on
    /// the disk before the outputs that they speak of have names.
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
            Some(Shard { index, of }) => format!("{JOURNAL}.{index}-of-{of}"),
            None => JOURNAL.into(),
        };
        let path = folder.join(name);
        let failed = || format!("cannot write {}", path.display());
        let flags = OFlags::CREATE | OFlags::APPEND | OFlags::RDWR;
        let file = open(&path, flags).with_context(failed)?;
        if sync {
            sync_folder(folder).with_context(failed)?;
        }
        let torn = file.metadata().with_context(failed)?.len() > 0;
        let journal = Journal {
            pen: Mutex::new(Pen { file, torn }),
            past: Past::read(folder, job, resume)?,
            sync,
        };
        if !resume {
            journal.write(&serde_json::to_string(&Marker::ANEW)?)?;
        }
        Ok(journal)
    }

    /// What earlier runs, and others at work now, make of an item.
    pub fn verdict(&self, item: &Item, sight: &Sight, overwrite: bool) -> Result<Verdict> {
        self.past.verdict(item, sight, overwrite)
    }

    /// Whether another run has done an item since this one began.
    pub fn was_done_meanwhile(&self, item: &Item) -> bool {
        self.past.was_done_meanwhile(item)
    }

    /// Notes that the output of `item` is whole, is the file `made`, and will get its name now.
    ///
    /// # Errors
    /// The line cannot be written: the output must not appear then.
    pub fn announce(
        &self,
        item: &Item,
        input: Option<Identity>,
        made: Identity,
        damaged: bool,
    ) -> Result<()> {
        let Some(name) = self.past.inside(item) else {
            return Ok(());
        };
        let line = Line::new(&name, input, made, damaged, &self.past.job);
        self.write(&serde_json::to_string(&line)?)
    }

    fn write(&self, line: &str) -> Result<()> {
        let mut pen = self.pen.lock().unwrap_or_else(PoisonError::into_inner);
        let start = if pen.torn { "\n" } else { "" };
        let line = format!("{start}{line}\n");
        pen.torn = true;
        let written = pen.file.write_all(line.as_bytes());
        let written = written.and_then(|()| match self.sync {
            true => pen.file.sync_data(),
            false => Ok(()),
        });
        pen.torn = written.is_err();
        written.context("cannot write the journal of the results")
    }
}

/// Whether a name leads nowhere but below the folder that it is in.
fn is_below(name: &Path) -> bool {
    let mut parts = name.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Opens a journal that is a file and nothing else: no link, which would lead to another's file, and
/// no pipe, which would never answer.
fn open(path: &Path, flags: OFlags) -> Result<File> {
    let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let advice = "a journal is a regular file: remove it, or write to another folder";
    let file = match rustix::fs::open(path, flags | safe, Mode::from_raw_mode(0o666)) {
        Err(Errno::LOOP) => bail!("it is a symbolic link ({advice})"),
        Err(Errno::ISDIR | Errno::NXIO) => bail!("it is no regular file ({advice})"),
        other => File::from(other.map_err(std::io::Error::from)?),
    };
    ensure!(
        file.metadata()?.is_file(),
        "it is no regular file ({advice})"
    );
    Ok(file)
}
