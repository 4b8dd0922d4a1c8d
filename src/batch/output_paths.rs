//! Resolves paths through links and checks them: no two results at the same place, none outside the
//! output folder, none over another item's input, and no report over any of them.
//!
//! Everything is checked before anything is written. A link that appears later is not followed out of the
//! output folder (`Target::create_below`).

use super::item::Item;
use super::naming::Naming;
use super::options::Files;
use crate::os::fault::{self, Kind};
use crate::os::name::Shown;
use crate::os::parent;
use crate::os::system::FileId;
use crate::os::url::{is_url, overlap};
use anyhow::{Result, bail, ensure};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The resolved place of a file that may not exist: the nearest existing folder, by device and
/// inode, and the names below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    folder: FileId,
    name: PathBuf,
}

/// A folder that may not exist yet.
#[derive(Clone, Debug)]
struct Folder {
    /// Device and inode of the nearest existing folder.
    there: FileId,
    /// The names of the missing folders below it.
    missing: PathBuf,
    /// Its path without links, if it can be resolved.
    real: Option<PathBuf>,
}

/// A cache of resolved folders, which many files share.
#[derive(Default)]
struct Folders(HashMap<PathBuf, Folder>);

impl Folders {
    fn get(&mut self, path: &Path) -> Folder {
        if let Some(folder) = self.0.get(path) {
            return folder.clone();
        }
        let folder = Folder::resolve(path);
        self.0.insert(path.into(), folder.clone());
        folder
    }

    /// The place of a file whose links have been resolved, and its path without links.
    fn resolve(&mut self, path: &Path) -> (Place, Option<PathBuf>) {
        let folder = self.get(parent(path));
        let name = path.file_name().unwrap_or_default();
        let place = Place {
            folder: folder.there,
            name: folder.missing.join(name),
        };
        (place, folder.real.map(|real| real.join(name)))
    }
}

impl Folder {
    fn resolve(path: &Path) -> Folder {
        let mut missing = Vec::new();
        let mut there = path;
        let (id, real) = loop {
            let found = fault::id(there).and_then(|id| Ok((id, fault::canonicalize(there)?)));
            match (found, there.components().next_back()) {
                (Ok(found), _) => break found,
                (Err(error), Some(Component::Normal(name)))
                    if error.kind() == io::ErrorKind::NotFound =>
                {
                    missing.push(name);
                    there = parent(there);
                }
                // An unreadable path is taken literally: the error appears when it is used.
                _ => {
                    return Folder {
                        there: FileId::default(),
                        missing: path.into(),
                        real: None,
                    };
                }
            }
        };
        let missing: PathBuf = missing.into_iter().rev().collect();
        Folder {
            there: id,
            real: Some(real.join(&missing)),
            missing,
        }
    }
}

/// The target of a link; the path itself if it is not a link.
fn followed(path: &Path) -> PathBuf {
    match fault::point(Kind::Stat, path).and_then(|()| fs::read_link(path)) {
        Ok(target) => fault::canonicalize(path).unwrap_or_else(|_| parent(path).join(target)),
        Err(_) => path.into(),
    }
}

/// Inspects every item, on all cores if there are many. For a single one, as in a watch, waiting for another
/// thread would take longer than the work.
fn each<T: Send>(items: &[Item], look: impl Fn(&Item) -> T + Sync + Send) -> Vec<T> {
    match items.len() {
        ..100 => items.iter().map(look).collect(),
        _ => items.par_iter().map(look).collect(),
    }
}

/// Checks that every result has its own place, below the output folder if `naming` has one, and, if results replace existing files, that none replaces the input of another item.
///
/// # Errors
/// Names both files, or the file and its resolved place.
pub fn check(items: &[Item], naming: &Naming, replaces: bool) -> Result<()> {
    // A link at the end of a path matters only if its target is replaced.
    let follow = |path: &PathBuf| {
        if replaces {
            followed(path)
        } else {
            path.clone()
        }
    };
    let output = |item: &Item| item.output.as_ref().map(follow);
    let outputs = each(items, output);
    let mut folders = Folders::default();
    let root = match naming {
        Naming::File(_) => None,
        Naming::Folder { folder, .. } => Some((folder, folders.get(folder).real)),
    };
    let mut taken: HashMap<Place, &Item> = HashMap::with_capacity(items.len());
    // Places by lower-case name, and a cache of folders that ignore case: examined only if two
    // names differ by case alone.
    let mut lower: HashMap<(FileId, String), &Item> = HashMap::with_capacity(items.len());
    let mut caseless: HashMap<FileId, bool> = HashMap::new();
    for (item, path) in items.iter().zip(&outputs) {
        let (Some(output), Some(path)) = (&item.output, path) else {
            continue;
        };
        let (place, real) = folders.resolve(path);
        if let (Some((folder, Some(root))), Some(real)) = (&root, real) {
            ensure!(
                real.starts_with(root),
                "{} is a link out of {}: the result would be written to {} (if that is intended, give that folder as the output)",
                output.shown(),
                folder.shown(),
                real.shown()
            );
        }
        if let Some(other) = taken.insert(place.clone(), item) {
            return Err(twice(other, item));
        }
        let name = place.name.to_string_lossy().to_lowercase();
        if let Some(other) = lower.insert((place.folder, name), item)
            && *caseless
                .entry(place.folder)
                .or_insert_with(|| ignores_case(parent(path)))
        {
            return Err(twice(other, item));
        }
    }
    if replaces {
        let inputs = each(items, |item| followed(item.file()));
        for (item, path) in items.iter().zip(&inputs) {
            match taken.get(&folders.resolve(path).0) {
                Some(other) if !std::ptr::eq(*other, item) => bail!(
                    "the result of {1} would replace the input {0}",
                    item.input.shown(),
                    other.input.shown()
                ),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The error for two items with the same result.
fn twice(one: &Item, other: &Item) -> anyhow::Error {
    let output = |item: &Item| item.output.clone().unwrap_or_default();
    let (first, second) = (output(one), output(other));
    let same = if first == second {
        String::new()
    } else {
        format!(", which is also {}", second.shown())
    };
    anyhow::anyhow!(
        "{} and {} would both be written to {}{same} (use --name to distinguish them; a folder or a list preserves the folders of its files)",
        one.input.shown(),
        other.input.shown(),
        first.shown()
    )
}

/// Whether a folder, or its nearest existing parent, treats names that differ only in case as
/// equal: tested with a temporary file.
fn ignores_case(folder: &Path) -> bool {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    let there = there.unwrap_or(Path::new("."));
    let probe = tempfile::Builder::new()
        .prefix(".gpuimg-case")
        .tempfile_in(there);
    probe.is_ok_and(|probe| {
        let name = probe.path().file_name().unwrap_or_default();
        let upper = name.to_string_lossy().to_uppercase();
        fault::symlink_metadata(&there.join(upper)).is_ok()
    })
}

/// The one rule of what no output may replace: finds one of `outputs` that is the same file as one of
/// `reads`, the files that a run reads, also under another name, or the same place if there is no file yet.
/// Streams are not replaced. The two may change roles: many of one kind are compared with a few of the other.
fn clash<'o, 'r>(
    outputs: &[&'o Path],
    reads: impl ParallelIterator<Item = &'r Path>,
) -> Option<(&'o Path, &'r Path)> {
    let id = |path: &Path| fault::id(path).ok();
    let stores = outputs.iter().filter(|path| is_url(path));
    let stores: Vec<&Path> = stores.copied().collect();
    let mut files = HashMap::new();
    let mut places: HashMap<OsString, Vec<(Place, &Path)>> = HashMap::new();
    let mut folders = Folders::default();
    for &output in outputs {
        if output == Path::new("-") || fault::metadata(output).is_ok_and(|about| !about.is_file()) {
            continue;
        }
        if let Some(id) = id(output) {
            files.insert(id, output);
        }
        let leads = followed(output);
        let name = leads.file_name().unwrap_or_default().to_owned();
        let place = folders.resolve(&leads).0;
        places.entry(name).or_default().push((place, output));
    }
    reads.find_map_first(|path| {
        let same_file = id(path).and_then(|id| files.get(&id).copied());
        let same_store = stores.iter().find(|store| overlap(store, path));
        let output = same_file.or(same_store.copied()).or_else(|| {
            let named = places.get(path.file_name().unwrap_or_default())?;
            let place = Folders::default().resolve(path).0;
            let mut named = named.iter();
            named.find_map(|(other, output)| (*other == place).then_some(*output))
        });
        output.map(|output| (output, path))
    })
}

/// Refuses to write `what` (a report, a histogram) to `path` if an input or output of the batch, or
/// another file of the run, is there.
///
/// # Errors
/// Names the file.
pub fn keep_off(what: &str, path: &Path, items: &[Item], others: &[&Path]) -> Result<()> {
    let inputs = items.par_iter().map(Item::file);
    let outputs = items.par_iter().filter_map(|item| item.output.as_deref());
    let others = others.par_iter().copied();
    let (role, (_, other)) = if let Some(pair) = clash(&[path], inputs) {
        ("an input", pair)
    } else if let Some(pair) = clash(&[path], outputs) {
        ("an output", pair)
    } else if let Some(pair) = clash(&[path], others) {
        ("which the run itself uses", pair)
    } else {
        return Ok(());
    };
    bail!("{what} would overwrite {}, {role}", other.shown())
}

/// Refuses results that would replace one of `reads`, which the run reads beside its images: `what` each is. A
/// watch does not know its results yet, so with `--overwrite` none may be in their folder at all.
///
/// # Errors
/// Names both files.
pub fn keep_results_off(
    what: &str,
    reads: &[&Path],
    items: &[Item],
    naming: &Naming,
    files: &Files,
) -> Result<()> {
    let outputs = items.par_iter();
    let outputs = outputs.filter_map(|item| item.output.as_deref());
    let found = if files.stack {
        clash(reads, [naming.path()].into_par_iter())
    } else {
        clash(reads, outputs)
    };
    if let Some((read, output)) = found {
        bail!(
            "the result {1} would replace {0}, which is {what}",
            read.shown(),
            output.shown()
        );
    }
    if files.batch.watching.watch && files.overwrite {
        let real = |path: &Path| fault::canonicalize(path).ok();
        let folder = real(naming.folder());
        for read in reads {
            let inside = real(read).zip(folder.as_ref());
            ensure!(
                !inside.is_some_and(|(read, folder)| read.starts_with(folder)),
                "{} is {what} and in the folder of the results, of which one may replace it with \
                 --overwrite: put it into another folder",
                read.shown()
            );
        }
    }
    Ok(())
}

/// As `keep_off`, for a `--report`.
///
/// # Errors
/// Names the file.
pub fn keep_report_off(path: &Path, items: &[Item], others: &[&Path]) -> Result<()> {
    keep_off("the report", path, items, others)
}
