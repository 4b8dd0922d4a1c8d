//! What a batch works on: files, folders and lists of files, found once.

use super::folder::{self, Filter, PassedOver};
use super::shard::Shard;
use crate::files::reason;
use anyhow::{Context, Result, anyhow, ensure};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// Which files are taken.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Selection {
    /// Of directories, take only files that match GLOB (path below the directory, or name alone)
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub include: Vec<String>,

    /// Of directories, leave out files and folders that match GLOB
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub exclude: Vec<String>,

    /// Take inputs from a list too, one a line or NUL-separated; - is standard input
    #[arg(long, value_name = "FILE", help_heading = "Many files")]
    pub files_from: Option<PathBuf>,

    /// Do only the Ith of N parts of the inputs (from 1), split by their names; auto asks Slurm's or Kubernetes' variables
    #[arg(long, value_name = "I/N|auto", help_heading = "Many files")]
    pub shard: Option<Shard>,
}

/// One file of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What is read.
    pub input: PathBuf,
    /// Its name within the batch: the same on every machine, whatever the directory is called there.
    pub key: PathBuf,
    /// What is written, if anything.
    pub output: Option<PathBuf>,
    /// Whether it was found or listed as a file, and so may be nothing else; an input that is named
    /// may be a pipe.
    pub listed: bool,
}

/// A file, folder or list that should have given images, and why it could not.
#[derive(Debug)]
pub struct Unread {
    /// What could not be read.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// The inputs of a run. They are found once and every pass over them uses this value: a list or a
/// folder read again could be empty (a pipe) or another.
#[derive(Debug, Default)]
pub struct Items {
    /// In the order of their names.
    pub items: Vec<Item>,
    /// What was found in folders and is not done.
    pub passed_over: Vec<PassedOver>,
    /// What counts as failed before anything begins.
    pub unread: Vec<Unread>,
}

/// Collects the inputs that `paths` and `selection` name; of folders among them, the one that the
/// `results` go to is left out.
///
/// # Errors
/// A pattern that is none, a list that cannot be read, standard input named twice.
pub fn collect(paths: &[PathBuf], selection: &Selection, results: Option<&Path>) -> Result<Items> {
    let filter = Filter::new(selection)?;
    let streams = paths.iter().chain(&selection.files_from);
    ensure!(
        streams.filter(|path| *path == Path::new("-")).count() < 2,
        "standard input (-) is named twice, and it can be read only once"
    );
    let mut found = Items::default();
    for path in paths {
        if path.is_dir() {
            folder::walk(path, &filter, results, &mut found);
        } else {
            let key = match path.file_name() {
                Some(name) if name != "-" => name.into(),
                _ => PathBuf::from("stdin"),
            };
            found.items.push(Item::new(path.clone(), key));
        }
    }
    if let Some(list) = &selection.files_from {
        let listed = listed(list)
            .map_err(|error| anyhow!(reason(&error)))
            .with_context(|| format!("cannot read {}", list.display()))?;
        if listed.is_empty() {
            found.unread.push(Unread {
                path: list.clone(),
                why: "the list names no file".into(),
            });
        }
        found.items.extend(listed);
    }
    if let Some(shard) = &selection.shard {
        found.items.retain(|item| shard.has(&item.key));
    }
    Ok(found)
}

impl Items {
    /// Whether anything may come of them: no folder is made for inputs that are all missing. A part of a
    /// set may be empty.
    pub fn has_any(&self) -> bool {
        let there = |item: &Item| item.input == Path::new("-") || item.input.exists();
        match self.items.as_slice() {
            [] => self.unread.is_empty(),
            items => items.iter().any(there),
        }
    }

    /// Refuses inputs that can be read only once, where all are to be read twice.
    ///
    /// # Errors
    /// A pipe or another stream among them.
    pub fn can_be_read_twice(&self) -> Result<()> {
        for item in &self.items {
            ensure!(
                !item.is_stream(),
                "--across reads every image twice, and {} can be read only once",
                item.input.display()
            );
        }
        Ok(())
    }
}

impl Item {
    /// A file, and what it is called within the batch.
    pub fn new(input: PathBuf, key: PathBuf) -> Item {
        Item {
            input,
            key,
            output: None,
            listed: false,
        }
    }

    /// What a folder or a list says is a file.
    pub fn found(input: PathBuf, key: PathBuf) -> Item {
        Item {
            listed: true,
            ..Item::new(input, key)
        }
    }

    /// Whether it can be read only once: standard input, a pipe or a device.
    pub fn is_stream(&self) -> bool {
        let stream = |about: fs::Metadata| !about.is_file() && !about.is_dir();
        self.input == Path::new("-") || fs::metadata(&self.input).is_ok_and(stream)
    }
}

impl Unread {
    /// As an error.
    pub fn error(&self) -> anyhow::Error {
        anyhow!("cannot read {}: {}", self.path.display(), self.why)
    }
}

/// The files of a list, separated by NUL if there is one in it, by line ends if not.
fn listed(list: &Path) -> io::Result<Vec<Item>> {
    let mut bytes = Vec::new();
    if list == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        File::open(list)?.read_to_end(&mut bytes)?;
    }
    let separator = if bytes.contains(&0) { 0 } else { b'\n' };
    let names = bytes.split(|&byte| byte == separator);
    let names = names.map(|name| match separator {
        b'\n' => name.strip_suffix(b"\r").unwrap_or(name),
        _ => name,
    });
    let named = names.filter(|name| !name.is_empty());
    Ok(named.map(|name| of_list(name.to_vec())).collect())
}

/// The file that a list calls `name`.
fn of_list(name: Vec<u8>) -> Item {
    let path = match name.as_slice() {
        // In a list a file's name, and no stream.
        b"-" => PathBuf::from("./-"),
        _ => PathBuf::from(OsString::from_vec(name)),
    };
    // A relative name keeps its folders in the results; one that leads elsewhere only its last part.
    let inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let key = match inside {
        true => path
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect(),
        false => path.file_name().map_or_else(|| path.clone(), PathBuf::from),
    };
    Item::found(path, key)
}
