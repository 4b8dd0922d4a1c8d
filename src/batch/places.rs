//! Where files really lie, whatever links lead there: no two results in one place, none out of the
//! folder asked for, none over another one's input, and no report over any of them.
//!
//! All is decided before anything is written. A link that is made while a run is under way is not seen.

use super::item::Item;
use super::naming::Naming;
use anyhow::{Result, bail, ensure};
use rayon::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Where a file lies or would lie: the nearest folder that exists, by device and number, and the
/// names from there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    folder: (u64, u64),
    name: PathBuf,
}

/// A folder that may not exist yet.
#[derive(Clone, Debug)]
struct Folder {
    /// The nearest one that exists.
    there: (u64, u64),
    /// The names of those that do not, from there.
    missing: PathBuf,
    /// Its path without links, if it can be looked at.
    real: Option<PathBuf>,
}

/// The folders asked about so far: files share them.
#[derive(Default)]
struct Folders(HashMap<PathBuf, Folder>);

impl Folders {
    fn get(&mut self, path: &Path) -> Folder {
        if let Some(folder) = self.0.get(path) {
            return folder.clone();
        }
        let folder = Folder::of(path);
        self.0.insert(path.into(), folder.clone());
        folder
    }

    /// The place of a file whose links have been followed, and its path without links.
    fn place(&mut self, path: &Path) -> (Place, Option<PathBuf>) {
        let folder = self.get(folder_of(path));
        let name = path.file_name().unwrap_or_default();
        let place = Place {
            folder: folder.there,
            name: folder.missing.join(name),
        };
        (place, folder.real.map(|real| real.join(name)))
    }
}

impl Folder {
    fn of(path: &Path) -> Folder {
        let mut missing = Vec::new();
        let mut there = path;
        let (id, real) = loop {
            let found = fs::metadata(there)
                .and_then(|about| Ok(((about.dev(), about.ino()), there.canonicalize()?)));
            match (found, there.components().next_back()) {
                (Ok(found), _) => break found,
                (Err(error), Some(Component::Normal(name)))
                    if error.kind() == io::ErrorKind::NotFound =>
                {
                    missing.push(name);
                    there = folder_of(there);
                }
                // What cannot be looked at is taken as it is written: using it tells what is wrong.
                _ => {
                    return Folder {
                        there: (0, 0),
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

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Where a link leads; what is none is itself.
fn followed(path: &Path) -> PathBuf {
    match fs::read_link(path) {
        Ok(target) => path
            .canonicalize()
            .unwrap_or_else(|_| folder_of(path).join(target)),
        Err(_) => path.into(),
    }
}

/// Checks that every result has a place of its own, below the folder where `naming` has one, and,
/// if results replace what is there, that none replaces the input of another.
///
/// # Errors
/// Names both files, or the file and where it would lie.
pub fn check(items: &[Item], naming: &Naming, replaces: bool) -> Result<()> {
    // Links at the end of a name matter only to what replaces their target.
    let follow = |path: &PathBuf| match replaces {
        true => followed(path),
        false => path.clone(),
    };
    let output = |item: &Item| item.output.as_ref().map(follow);
    let outputs: Vec<Option<PathBuf>> = items.par_iter().map(output).collect();
    let mut folders = Folders::default();
    let root = match naming {
        Naming::File(_) => None,
        Naming::Folder { folder, .. } => Some((folder, folders.get(folder).real)),
    };
    let mut taken: HashMap<Place, &Item> = HashMap::with_capacity(items.len());
    // The same without case, and which folders ignore it: asked only where names differ by nothing else.
    let mut lower: HashMap<((u64, u64), String), &Item> = HashMap::with_capacity(items.len());
    let mut caseless: HashMap<(u64, u64), bool> = HashMap::new();
    for (item, path) in items.iter().zip(&outputs) {
        let (Some(output), Some(path)) = (&item.output, path) else {
            continue;
        };
        let (place, real) = folders.place(path);
        if let (Some((folder, Some(root))), Some(real)) = (&root, real) {
            ensure!(
                real.starts_with(root),
                "{} is a link out of {}: what is written there would become {} (to have it there, \
                 give its folder as the output)",
                output.display(),
                folder.display(),
                real.display()
            );
        }
        if let Some(other) = taken.insert(place.clone(), item) {
            return Err(twice(other, item));
        }
        let name = place.name.to_string_lossy().to_lowercase();
        if let Some(other) = lower.insert((place.folder, name), item)
            && *caseless
                .entry(place.folder)
                .or_insert_with(|| ignores_case(folder_of(path)))
        {
            return Err(twice(other, item));
        }
    }
    if replaces {
        let inputs: Vec<PathBuf> = items.par_iter().map(|item| followed(&item.input)).collect();
        for (item, path) in items.iter().zip(&inputs) {
            match taken.get(&folders.place(path).0) {
                Some(other) if !std::ptr::eq(*other, item) => bail!(
                    "{} is an input, and the result of {} would replace it",
                    item.input.display(),
                    other.input.display()
                ),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Two items with one result.
fn twice(one: &Item, other: &Item) -> anyhow::Error {
    let output = |item: &Item| item.output.clone().unwrap_or_default();
    let (first, second) = (output(one), output(other));
    let same = match first == second {
        true => String::new(),
        false => format!(", which is {} too", second.display()),
    };
    anyhow::anyhow!(
        "{} and {} would both become {}{same} (--name tells them apart)",
        one.input.display(),
        other.input.display(),
        first.display()
    )
}

/// Whether a folder, or the nearest one that exists, takes names that differ by their case alone for
/// one: tried with a temporary file.
fn ignores_case(folder: &Path) -> bool {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    let there = there.unwrap_or(Path::new("."));
    let probe = tempfile::Builder::new()
        .prefix(".gpuimg-case")
        .tempfile_in(there);
    probe.is_ok_and(|probe| {
        let name = probe.path().file_name().unwrap_or_default();
        let upper = name.to_string_lossy().to_uppercase();
        fs::symlink_metadata(there.join(upper)).is_ok()
    })
}

/// Refuses to write `what` (a report, a histogram) at `path` where an input or an output of the batch
/// is, or another file that the run reads or writes.
///
/// # Errors
/// Names the file.
pub fn keep_off(what: &str, path: &Path, items: &[Item], others: &[&Path]) -> Result<()> {
    let id = |path: &Path| {
        fs::metadata(path)
            .ok()
            .map(|about| (about.dev(), about.ino()))
    };
    if path == Path::new("-") || fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Ok(());
    }
    let own = id(path);
    let place = |path: &Path| Folders::default().place(path).0;
    let leads = followed(path);
    let own_place = place(&leads);
    // One file, also by another name; or what would be one as soon as it is there.
    let same = |other: &Path| {
        (own.is_some() && id(other) == own)
            || (other.file_name() == leads.file_name() && place(other) == own_place)
    };
    let refuse = |role: &str, other: &Path| {
        anyhow::anyhow!("{what} would destroy {}, {role}", other.display())
    };
    let found = items.par_iter().find_map_first(|item| {
        if same(&item.input) {
            return Some(refuse("an input", &item.input));
        }
        let output = item.output.as_deref().filter(|output| same(output))?;
        Some(refuse("an output", output))
    });
    match found {
        Some(error) => Err(error),
        None => match others.iter().find(|other| same(other)) {
            Some(other) => Err(refuse("which the run itself uses", other)),
            None => Ok(()),
        },
    }
}

/// The same for a `--report`, which needs a name.
///
/// # Errors
/// Names the file.
pub fn keep_report_off(path: &Path, items: &[Item], others: &[&Path]) -> Result<()> {
    ensure!(
        path != Path::new("-"),
        "the report needs the name of a file, and - is a stream"
    );
    keep_off("the report", path, items, others)
}
