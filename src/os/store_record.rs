//! The record of a Zarr store that is being written: which files and pages are finished. With it another run can continue the
//! store, and several tasks can write it together.
//!
//! The record is a folder in the unfinished store, with a file for each task: machines that append to one file of a network file
//! system overwrite each other's lines. It is removed before the store gets its name.
//!
//! A task's file has one JSON object a line: what the store is made of; each file of the store with its length and digest, after
//! it has been written; and each page, after its last file. A file counts only if it still has that digest, and a page only if
//! all its files count. So it does not matter what a crash has left, in the store or in the record.

mod line;

use super::digest::Digest;
use super::fault::{self, Kind};
use super::held::Folder;
use super::reason::plain;
use super::system::FileKind;
use anyhow::{Result, ensure};
use line::{FinishedFile, FinishedPage, Line, Lines};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use line::Origin;

/// The name of the folder.
pub const RECORD: &str = ".gpuimg-record";

/// The smallest and the largest sample of each channel of a page; empty if nobody needs them.
pub type PageRanges = Vec<[u64; 2]>;

/// How a run writes a Zarr store.
#[derive(Clone, Debug, Default)]
pub struct StoreRun {
    /// Every option that the store's bytes depend on. `None` if the store cannot be continued.
    pub options: Option<String>,
    /// Whether to continue what an earlier run has begun, and to keep what this run has finished if it fails: always if there
    /// are several tasks.
    pub resume: bool,
    /// The part of the pages that this run writes.
    pub task: StoreTask,
}

/// Task `index` of `count` that write a store together, counted from 1. Each writes a range of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTask {
    /// From 1 to `count`.
    pub index: u64,
    /// The number of tasks.
    pub count: u64,
}

impl StoreTask {
    /// Whether it writes the page at `index` of `pages`.
    fn has(self, index: usize, pages: usize) -> bool {
        let task = u128::from(self.count) * index as u128 / (pages.max(1) as u128);
        task + 1 == u128::from(self.index)
    }

    fn file_name(self) -> OsString {
        format!("{}-of-{}", self.index, self.count).into()
    }
}

impl Default for StoreTask {
    fn default() -> StoreTask {
        StoreTask { index: 1, count: 1 }
    }
}

impl fmt::Display for StoreTask {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The record of one task.
#[derive(Debug)]
pub struct Record {
    task: StoreTask,
    /// The folder of all tasks' files; `None` if nothing is recorded, because nobody can continue the store.
    folder: Option<Folder>,
    /// The files that an earlier run has finished, of pages that are not finished.
    files: HashSet<String>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The task's file.
    file: Option<File>,
    /// How many files of a page are finished.
    files: HashMap<usize, usize>,
    /// The pages that are finished.
    pages: BTreeMap<usize, PageRanges>,
}

impl Record {
    /// Records nothing.
    pub fn none() -> Record {
        Record {
            task: StoreTask::default(),
            folder: None,
            files: HashSet::new(),
            progress: Mutex::default(),
        }
    }

    /// Whether the unfinished store in this folder has a record.
    pub fn is_in(store: &Folder) -> io::Result<bool> {
        let about = store.look(RECORD.as_ref())?;
        Ok(about.is_some_and(|about| about.kind == FileKind::Directory))
    }

    /// Whether the tasks that have begun to write a store make it of this.
    pub fn is_of(store: &Folder, origin: &Origin) -> io::Result<bool> {
        if !Record::is_in(store)? {
            return Ok(false);
        }
        let folder = store.below(RECORD.as_ref())?;
        let mut tasks = 0;
        for (name, _) in folder.entries()? {
            match line::first(&folder.read(&name)?)? {
                // A task that has just begun.
                None => {}
                Some(Line::Store(known)) if known == *origin => tasks += 1,
                Some(_) => return Ok(false),
            }
        }
        Ok(tasks > 0)
    }

    /// Opens or begins the record of a task. Everything that it says is checked.
    ///
    /// # Errors
    /// Another run writes the part of this task.
    pub fn open(store: &Folder, origin: &Origin, task: StoreTask) -> Result<Record> {
        let folder = store.make_below(RECORD.as_ref(), false).map_err(plain)?;
        let name = task.file_name();
        let file = match folder.create_new(&name, 0o666) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                folder.open_to_lock(&name)
            }
            other => other,
        };
        let mut file = file.map_err(plain)?;
        // File systems without locks do without.
        let is_held = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        ensure!(!is_held, "another run is writing part {task} of it");
        let lines = folder.read(&name).and_then(|file| Lines::read(&file));
        let mut lines = lines.map_err(plain)?;
        lines.keep_what_is_in(store);
        file.seek(SeekFrom::End(0)).map_err(plain)?;
        let files = lines.files_of_pages();
        lines
            .files
            .retain(|_, file| !lines.pages.contains_key(&file.page));
        let pages = lines.pages.into_iter();
        let record = Record {
            task,
            folder: Some(folder),
            files: lines.files.into_keys().collect(),
            progress: Mutex::new(Progress {
                file: Some(file),
                files,
                pages: pages.map(|(page, line)| (page, line.ranges)).collect(),
            }),
        };
        // A line that a crash has cut ends here.
        let added = record.progress().add(&Line::Store(origin.clone()));
        added.map_err(plain)?;
        Ok(record)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is finished.
    pub fn is_empty(&self) -> bool {
        self.progress().files.is_empty()
    }

    /// Whether a file of the store is finished.
    pub fn has_file(&self, name: &str) -> bool {
        self.files.contains(name)
    }

    /// Records a file of a page that has been written.
    pub fn add_file(&self, page: usize, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut progress = self.progress();
        *progress.files.entry(page).or_insert(0) += 1;
        if progress.file.is_none() {
            return Ok(());
        }
        progress.add(&Line::File(FinishedFile {
            name: name.into(),
            page,
            length: bytes.len() as u64,
            digest: Digest::of_content(bytes),
        }))
    }

    /// Records a page whose files have all been written.
    pub fn add_page(&self, page: usize, ranges: PageRanges) -> io::Result<()> {
        let mut progress = self.progress();
        let files = progress.files.get(&page).copied().unwrap_or(0);
        progress.add(&Line::Page(FinishedPage {
            page,
            files,
            ranges: ranges.clone(),
        }))?;
        progress.pages.insert(page, ranges);
        Ok(())
    }

    /// Whether this task does not write the page at `index` of `pages`: it is finished, or that of another task.
    pub fn skips(&self, index: usize, pages: usize) -> bool {
        !self.task.has(index, pages) || self.progress().pages.contains_key(&index)
    }

    /// The ranges of the pages that this task has finished.
    pub fn pages(&self) -> BTreeMap<usize, PageRanges> {
        self.progress().pages.clone()
    }

    /// The ranges of the pages that any task has finished. What this task has recorded is on the disk before, so that of tasks
    /// that end at the same time at least one sees everything.
    pub fn pages_of_all(&self) -> io::Result<BTreeMap<usize, PageRanges>> {
        let mut pages = self.pages();
        if let Some(file) = &self.progress().file {
            fault::point(Kind::Sync, Path::new(RECORD))?;
            file.sync_all()?;
        }
        for (_, lines) in self.others()? {
            let ranges = lines.pages.into_iter();
            pages.extend(ranges.map(|(page, line)| (page, line.ranges)));
        }
        Ok(pages)
    }

    /// Checks the files of all other tasks.
    ///
    /// # Errors
    /// A task whose files are damaged.
    pub fn check_others(&self, store: &Folder) -> Result<()> {
        for (name, mut lines) in self.others().map_err(plain)? {
            let pages = lines.pages.len();
            lines.keep_what_is_in(store);
            let task = name.to_string_lossy().replace("-of-", "/");
            ensure!(
                lines.pages.len() == pages,
                "files of part {task} are damaged: run that part again"
            );
        }
        Ok(())
    }

    /// What the other tasks have recorded, with the names of their files.
    fn others(&self) -> io::Result<Vec<(OsString, Lines)>> {
        let Some(folder) = &self.folder else {
            return Ok(Vec::new());
        };
        let own = self.task.file_name();
        let names = folder.entries()?.map(|(name, _)| name);
        let others = names.filter(|name| *name != own);
        let lines = others.map(|name| {
            let lines = Lines::read(&folder.read(&name)?)?;
            Ok((name, lines))
        });
        lines.collect()
    }

    /// Removes the records of all tasks from the complete store.
    pub fn remove(&self, store: &Folder) -> io::Result<()> {
        match self.folder {
            Some(_) => store.remove_folder(OsStr::new(RECORD)),
            None => Ok(()),
        }
    }
}

impl Progress {
    /// Adds a line with one write. It begins with the end of the line before, which a crash may have cut.
    fn add(&mut self, line: &Line) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let text = serde_json::to_string(line)?;
        fault::point(Kind::Write, Path::new(RECORD))?;
        file.write_all(format!("\n{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn origin(input: &str) -> Origin {
        let run = StoreRun {
            options: Some("normalize".into()),
            ..StoreRun::default()
        };
        Origin::new(&run, Some(input)).expect("known")
    }

    #[test]
    fn every_page_belongs_to_one_task() {
        for pages in 1..12 {
            for count in 1..9 {
                for page in 0..pages {
                    let tasks = (1..=count).filter(|&index| {
                        let task = StoreTask { index, count };
                        task.has(page, pages)
                    });
                    assert_eq!(tasks.count(), 1, "page {page} of {pages}, {count} tasks");
                }
            }
        }
    }

    /// Whatever happens to a file or to the record, what is not whole is not finished.
    #[test]
    fn only_what_is_whole_is_finished() {
        let place = tempfile::tempdir().expect("folder");
        let store = Folder::open(place.path()).expect("folder");
        let task = StoreTask::default();
        let open = || Record::open(&store, &origin("a"), task).expect("record");
        let record = open();
        for (page, name) in [(0, "a"), (0, "b"), (1, "c")] {
            fs::write(place.path().join(name), name).expect("file");
            record.add_file(page, name, name.as_bytes()).expect("line");
        }
        record.add_page(0, vec![[3, 4]]).expect("line");
        let found = |record: Record| {
            let files: Vec<bool> = ["a", "b", "c"].map(|name| record.has_file(name)).into();
            (files, record.pages().into_values().collect::<Vec<_>>())
        };
        drop(record);
        let whole = (vec![false, false, true], vec![vec![[3, 4]]]);
        assert_eq!(found(open()), whole);
        for damaged in [&b"x"[..], b"", b"aa"] {
            fs::write(place.path().join("a"), damaged).expect("file");
            assert_eq!(found(open()), (vec![false, true, true], vec![]));
        }
        fs::write(place.path().join("a"), "a").expect("file");
        assert_eq!(found(open()), whole);
        // A record that was cut anywhere, and then continued.
        let path = place.path().join(RECORD).join("1-of-1");
        let record = fs::read(&path).expect("record");
        for length in 0..record.len() {
            fs::write(&path, &record[..length]).expect("record");
            let (files, pages) = found(open());
            assert!(pages.is_empty() || !files[0] && !files[1], "{length}");
            let (again, _) = found(open());
            assert_eq!(again, files, "{length}");
        }
        assert!(Record::is_of(&store, &origin("a")).expect("record"));
        assert!(!Record::is_of(&store, &origin("b")).expect("record"));
        fs::write(&path, "").expect("record");
        assert!(!Record::is_of(&store, &origin("a")).expect("record"));
    }

    #[test]
    fn a_part_has_one_run() {
        let place = tempfile::tempdir().expect("folder");
        let store = Folder::open(place.path()).expect("folder");
        let task = |index| StoreTask { index, count: 2 };
        let first = Record::open(&store, &origin("a"), task(1)).expect("record");
        assert!(Record::open(&store, &origin("a"), task(2)).is_ok());
        let again = Record::open(&store, &origin("a"), task(1)).expect_err("it is written");
        assert!(again.to_string().contains("part 1/2"), "{again}");
        drop(first);
        assert!(Record::open(&store, &origin("a"), task(1)).is_ok());
    }
}
