//! The lines of a task's file.

use super::{PageRanges, RECORD, StoreRun};
use crate::os::digest::Digest;
use crate::os::fault::{self, Kind};
use crate::os::held::Folder;
use anyhow::{Context, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line in bytes; longer lines are not from this program.
const LONGEST: u64 = 1 << 20;

/// The version of the program; another version may write other bytes.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// What a store is made of, and by how many tasks. A run continues only what has the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    by: String,
    options: String,
    input: String,
    tasks: u64,
}

impl Origin {
    /// A store that `run` makes of an input, if both are known.
    pub fn new(run: &StoreRun, input: Option<&str>) -> Option<Origin> {
        Some(Origin {
            by: PROGRAM.into(),
            options: run.options.clone()?,
            input: input?.into(),
            tasks: run.task.count,
        })
    }
}

/// A line of a task's file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The first line.
    Store(Origin),
    /// A file that has been written.
    File(FinishedFile),
    /// A page that is finished.
    Page(FinishedPage),
}

/// A file of the store that has been written.
#[derive(Serialize, Deserialize)]
pub struct FinishedFile {
    /// Its name below the folder of the store.
    pub name: String,
    /// The page that it is of.
    pub page: usize,
    /// Bytes.
    pub length: u64,
    /// The digest of its bytes.
    pub digest: Digest,
}

impl FinishedFile {
    /// Whether the store has the file with these bytes.
    fn is_in(&self, store: &Folder) -> bool {
        let path = Path::new(&self.name);
        let check = || -> Result<bool> {
            let folder = store.below(path.parent().unwrap_or(Path::new("")))?;
            let file = folder.read(path.file_name().context("no name")?)?;
            let path = store.path().join(path);
            fault::point(Kind::Stat, &path)?;
            let length = file.metadata()?.len();
            Ok(length == self.length && Digest::of_file(&file, length, &path)? == self.digest)
        };
        check().unwrap_or(false)
    }
}

/// A page that is finished.
#[derive(Serialize, Deserialize)]
pub struct FinishedPage {
    /// Its number, from 0.
    pub page: usize,
    /// The number of its files.
    pub files: usize,
    /// The ranges of its samples.
    pub ranges: PageRanges,
}

/// What a task's file says.
#[derive(Default)]
pub struct Lines {
    /// Files by their names.
    pub files: HashMap<String, FinishedFile>,
    /// Pages by their numbers.
    pub pages: BTreeMap<usize, FinishedPage>,
}

impl Lines {
    /// Reads a task's file; lines that are not whole are skipped.
    pub fn read(file: &File) -> io::Result<Lines> {
        let mut lines = Lines::default();
        each_line(file, |line| match line {
            Line::Store(_) => {}
            Line::File(file) => {
                lines.files.insert(file.name.clone(), file);
            }
            Line::Page(page) => {
                lines.pages.insert(page.page, page);
            }
        })?;
        Ok(lines)
    }

    /// Keeps the files that the store has, and the pages that have all their files.
    pub fn keep_what_is_in(&mut self, store: &Folder) {
        let files = std::mem::take(&mut self.files);
        let files = files.into_par_iter();
        self.files = files.filter(|(_, file)| file.is_in(store)).collect();
        let counts = self.files_of_pages();
        self.pages
            .retain(|page, line| counts.get(page).copied().unwrap_or(0) == line.files);
    }

    /// How many files each page has.
    pub fn files_of_pages(&self) -> HashMap<usize, usize> {
        let mut counts = HashMap::new();
        for file in self.files.values() {
            *counts.entry(file.page).or_insert(0) += 1;
        }
        counts
    }
}

/// The first line of a task's file that is whole.
pub fn first(file: &File) -> io::Result<Option<Line>> {
    let mut first = None;
    each_line(file, |line| {
        first.get_or_insert(line);
    })?;
    Ok(first)
}

/// Calls `take` with each line of a task's file that is whole.
fn each_line(file: &File, mut take: impl FnMut(Line)) -> io::Result<()> {
    fault::point(Kind::Read, Path::new(RECORD))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Ok(line) = serde_json::from_slice(&line) {
            take(line);
        }
    }
}
