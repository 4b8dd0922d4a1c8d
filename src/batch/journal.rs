//! What a batch has begun and done, kept in the folder of its results: so that a run that was
//! stopped at any moment can go on (`--resume`), and knows its own outputs from others'.
//!
//! `.gpuimg-journal` holds one JSON object a line: `began` before an output may appear, `done`
//! after it has. Lines are appended with one write each; one cut off by a crash is passed over.

use super::inputs::Item;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

/// Its name in the folder of the results.
pub const NAME: &str = ".gpuimg-journal";

/// What a file was when it was looked at: bytes, and nanoseconds of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes in the file.
    pub size: u64,
    /// When it was changed, in nanoseconds since 1970.
    pub changed: u64,
}

impl Stamp {
    /// The stamp of the file at `path`, if there is one.
    pub fn of(path: &Path) -> Option<Stamp> {
        let about = fs::metadata(path).ok()?;
        let changed = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Stamp {
            size: about.len(),
            changed: changed.as_nanos() as u64,
        })
    }

    fn json(&self) -> Value {
        json!([self.size, self.changed])
    }

    fn parse(value: &Value) -> Option<Stamp> {
        Some(Stamp {
            size: value[0].as_u64()?,
            changed: value[1].as_u64()?,
        })
    }
}

/// What earlier runs say of an output.
#[derive(Clone, Debug)]
struct Record {
    /// What was to be done: the operation with its options, and the input's stamp.
    job: String,
    input: Option<Stamp>,
    /// The output's stamp when it was done.
    done: Option<Stamp>,
}

/// What is to become of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is done, and nothing has changed since.
    Done,
    /// It is a batch's own, unfinished or outdated: it may be replaced.
    Ours,
    /// Nothing is known of it.
    Unknown,
}

/// The journal of one folder of results.
#[derive(Debug)]
pub struct Journal {
    file: Mutex<File>,
    folder: PathBuf,
    job: String,
    earlier: HashMap<PathBuf, Record>,
}

impl Journal {
    /// Opens the journal of `folder` for outputs of `job`; what stands there counts if `resume`.
    pub fn open(folder: &Path, job: String, resume: bool) -> Result<Journal> {
        let path = folder.join(NAME);
        let failed = || format!("cannot write {}", path.display());
        let earlier = match resume {
            true => read(&path),
            false => HashMap::new(),
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(failed)?;
        let journal = Journal {
            file: Mutex::new(file),
            folder: folder.into(),
            job,
            earlier,
        };
        // Ends a line that a crash may have cut off.
        journal.write(String::new())?;
        Ok(journal)
    }

    /// What earlier runs left in `folder`, for a plan: nothing is written.
    pub fn planned(folder: &Path, job: String) -> Result<Journal> {
        let nowhere = OpenOptions::new().write(true).open("/dev/null");
        Ok(Journal {
            file: Mutex::new(nowhere.context("cannot open /dev/null")?),
            folder: folder.into(),
            job,
            earlier: read(&folder.join(NAME)),
        })
    }

    /// What earlier runs make of an item whose input has `stamp` now.
    pub fn verdict(&self, item: &Item, stamp: Option<Stamp>) -> Verdict {
        let Some(output) = &item.output else {
            return Verdict::Unknown;
        };
        match self.earlier.get(self.inside(output)) {
            None => Verdict::Unknown,
            Some(record) => {
                let there = Stamp::of(output);
                let unchanged = record.done.is_some()
                    && record.done == there
                    && stamp.is_some()
                    && record.input == stamp
                    && record.job == self.job;
                match unchanged {
                    true => Verdict::Done,
                    false => Verdict::Ours,
                }
            }
        }
    }

    /// Notes that the output of `item` may appear from now on.
    pub fn began(&self, item: &Item, stamp: Option<Stamp>) -> Result<()> {
        self.note("began", item, stamp, None)
    }

    /// Notes that the output of `item` is there.
    pub fn done(&self, item: &Item, stamp: Option<Stamp>) -> Result<()> {
        let output = item.output.as_deref().and_then(Stamp::of);
        self.note("done", item, stamp, output)
    }

    fn note(
        &self,
        what: &str,
        item: &Item,
        stamp: Option<Stamp>,
        output: Option<Stamp>,
    ) -> Result<()> {
        let Some(path) = &item.output else {
            return Ok(());
        };
        let line = json!({
            "v": 1,
            "at": what,
            "output": self.inside(path).to_string_lossy(),
            "input": stamp.map(|stamp| stamp.json()),
            "job": self.job,
            "done": output.map(|stamp| stamp.json()),
        });
        self.write(line.to_string())
    }

    /// An output's name below the folder, which may be called otherwise the next time.
    fn inside<'a>(&self, output: &'a Path) -> &'a Path {
        output.strip_prefix(&self.folder).unwrap_or(output)
    }

    fn write(&self, mut line: String) -> Result<()> {
        line.push('\n');
        let mut file = self
            .file
            .lock()
            .map_err(|_| anyhow::anyhow!("another thread failed"))?;
        file.write_all(line.as_bytes())
            .context("cannot write the journal of the results")
    }
}

/// The last word on every output.
fn read(path: &Path) -> HashMap<PathBuf, Record> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let record = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        (line["v"] == 1).then_some(())?;
        let record = Record {
            job: line["job"].as_str()?.into(),
            input: Stamp::parse(&line["input"]),
            done: Stamp::parse(&line["done"]),
        };
        Some((PathBuf::from(line["output"].as_str()?), record))
    };
    text.lines().filter_map(record).collect()
}
