//! The inputs of a batch: files, folders and lists of files, found once.

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
    /// The path of the input.
    pub input: PathBuf,
    /// Its name within the batch, the same on every machine, whatever the path of the directory is
    /// there.
    pub key: PathBuf,
    /// The path of the output, if there is one.
    pub output: Option<PathBuf>,
    /// Whether it was found or listed as a file, and so must be a regular file; an input named on
    /// the command line may be a pipe.
    pub listed: bool,
}

/// A file, folder or list that should have given images but could not be read, with the reason.
#[derive(Debug)]
pub struct Unread {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
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
}

/// Collects the inputs that `paths` and `selection` name; the folder `results`, if it lies within
/// one of them, is skipped.
///
/// # Errors
/// An invalid pattern, a list that cannot be read, standard input named twice.
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
    /// Whether there can be results: no folder is made for inputs that are all missing. A shard may
    /// be empty.
    pub fn has_any(&self) -> bool {
        let there = |item: &Item| item.input == Path::new("-") || item.input.exists();
        match self.items.as_slice() {
            [] => self.unread.is_empty(),
            items => items.iter().any(there),
        }
    }

    /// Refuses inputs that can be read only once, if all must be read twice.
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
    /// A file with its name within the batch.
    pub fn new(input: PathBuf, key: PathBuf) -> Item {
        Item {
            input,
            key,
            output: None,
            listed: false,
        }
    }

    /// Whether it can be read only once: standard input, a pipe or a device.
    pub fn is_stream(&self) -> bool {
        let stream = |about: fs::Metadata| !about.is_file() && !about.is_dir();
        self.input == Path::new("-") || fs::metadata(&self.input).is_ok_and(stream)
    }
}

impl Unread {
    /// The reason as an error.
    pub fn error(&self) -> anyhow::Error {
        anyhow!("cannot read {}: {}", self.path.display(), self.why)
    }
}

/// The files of a list, separated by NUL if it contains one, otherwise by line ends.
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

/// The file for a `name` in a list.
fn of_list(name: Vec<u8>) -> Item {
    let path = match name.as_slice() {
        // In a list `-` is a file name, not standard input.
        b"-" => PathBuf::from("./-"),
        _ => PathBuf::from(OsString::from_vec(name)),
    };
    // A relative name keeps its folders in the output; for a name that leads elsewhere only the
    // last part is kept.
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
    Item {
        listed: true,
        ..Item::new(path, key)
    }
}
