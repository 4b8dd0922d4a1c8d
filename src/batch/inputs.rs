//! What a batch works on: files, directories and lists of files, and where each result goes.

use super::shard::Shard;
use crate::codec::{Format, format};
use crate::files::Source;
use anyhow::{Context, Result, bail, ensure};
use globset::{Glob, GlobSet, GlobSetBuilder};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

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

/// How results are named.
#[derive(Clone, Debug)]
pub enum Naming {
    /// As this file, the only one; `-` is standard output.
    File(PathBuf),
    /// By their inputs.
    Folder {
        /// The directory that they go to.
        folder: PathBuf,
        /// The name of a file, with `{stem}` and `{ext}`.
        pattern: String,
        /// The format asked for, whose extension the names then get.
        format: Option<&'static dyn Format>,
    },
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

/// The files of a batch, and how many were passed over because they are no images.
#[derive(Debug, Default)]
pub struct Items {
    /// In the order of their names.
    pub items: Vec<Item>,
    /// Files of directories that are no images.
    pub passed_over: Vec<PathBuf>,
}

/// Collects the inputs that `paths` and `selection` name; results go where `naming` says. Wrong are
/// a missing path, a pattern that is none, and two inputs with one output.
pub fn collect(paths: &[PathBuf], selection: &Selection, naming: Option<&Naming>) -> Result<Items> {
    let filter = Filter::new(selection)?;
    let mut found = Items::default();
    for path in paths {
        if path.is_dir() {
            directory(path, &filter, naming, &mut found)?;
        } else {
            let key = path.file_name().map_or_else(|| path.clone(), PathBuf::from);
            found.items.push(Item::new(path.clone(), key));
        }
    }
    if let Some(list) = &selection.files_from {
        let listed = listed(list).with_context(|| format!("cannot read {}", list.display()))?;
        found.items.extend(listed);
    }
    if let Some(shard) = &selection.shard {
        found.items.retain(|item| shard.has(&item.key));
    }
    if let Some(naming) = naming {
        for item in &mut found.items {
            item.output = Some(naming.output(&item.key));
        }
        one_output_each(&found.items)?;
    }
    Ok(found)
}

impl Item {
    fn new(input: PathBuf, key: PathBuf) -> Item {
        Item {
            input,
            key,
            output: None,
            listed: false,
        }
    }
}

impl Naming {
    /// The directory that results go to.
    pub fn folder(&self) -> &Path {
        match self {
            Naming::File(path) => match path.parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            },
            Naming::Folder { folder, .. } => folder,
        }
    }

    /// The place for the result of the input called `key`.
    fn output(&self, key: &Path) -> PathBuf {
        let (folder, pattern, format) = match self {
            Naming::File(path) => return path.clone(),
            Naming::Folder {
                folder,
                pattern,
                format,
            } => (folder, pattern, format),
        };
        let stem = key.file_stem().unwrap_or_default();
        let extension = match format {
            Some(format) => OsStr::new(format.extensions()[0]),
            None => key.extension().unwrap_or_default(),
        };
        let mut name = filled(pattern, stem, extension).into_vec();
        // A file without an extension stays without.
        while extension.is_empty() && name.last() == Some(&b'.') {
            name.pop();
        }
        let name = OsString::from_vec(name);
        folder
            .join(key.parent().unwrap_or(Path::new("")))
            .join(name)
    }
}

/// A pattern with the stem and the extension of a name, whatever their bytes.
fn filled(pattern: &str, stem: &OsStr, extension: &OsStr) -> OsString {
    let mut name = OsString::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        name.push(&rest[..at]);
        rest = &rest[at..];
        let placeholders = [
            ("{stem}", stem),
            ("{ext}", extension),
            ("{", OsStr::new("{")),
        ];
        for (placeholder, value) in placeholders {
            if let Some(after) = rest.strip_prefix(placeholder) {
                name.push(value);
                rest = after;
                break;
            }
        }
    }
    name.push(rest);
    name
}

fn one_output_each(items: &[Item]) -> Result<()> {
    let mut taken: HashMap<&Path, &Path> = HashMap::with_capacity(items.len());
    for item in items {
        let Some(output) = &item.output else { continue };
        if let Some(other) = taken.insert(output, &item.input) {
            bail!(
                "{} and {} would both become {} (--name tells them apart)",
                other.display(),
                item.input.display(),
                output.display()
            );
        }
    }
    Ok(())
}

/// The patterns of `--include` and `--exclude`.
struct Filter {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Filter {
    fn new(selection: &Selection) -> Result<Filter> {
        Ok(Filter {
            include: match selection.include.is_empty() {
                true => None,
                false => Some(globs(&selection.include)?),
            },
            exclude: globs(&selection.exclude)?,
        })
    }

    fn excludes(&self, below: &Path) -> bool {
        matches(&self.exclude, below)
    }

    /// Whether a file is taken, and if so, whether by its name alone.
    fn includes(&self, below: &Path) -> Option<bool> {
        match &self.include {
            Some(globs) => matches(globs, below).then_some(true),
            None => Some(false),
        }
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = Glob::new(pattern)
            .map_err(|error| anyhow::anyhow!("the pattern '{pattern}': {}", error.kind()))?;
        set.add(glob);
    }
    Ok(set.build()?)
}

fn matches(globs: &GlobSet, below: &Path) -> bool {
    globs.is_match(below) || below.file_name().is_some_and(|name| globs.is_match(name))
}

/// All files below `root`, sorted; hidden ones, and the folder of the results, are left out.
fn directory(
    root: &Path,
    filter: &Filter,
    naming: Option<&Naming>,
    found: &mut Items,
) -> Result<()> {
    let own = naming.and_then(|naming| naming.folder().canonicalize().ok());
    let same = root.canonicalize().ok() == own;
    let enters = |entry: &DirEntry| {
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let hidden = entry.file_name().as_bytes().starts_with(b".");
        let results = own.is_some()
            && !same
            && entry.file_type().is_dir()
            && entry.path().canonicalize().ok() == own;
        entry.depth() == 0 || !(hidden || results || filter.excludes(below))
    };
    for entry in WalkDir::new(root)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(enters)
    {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(root).display().to_string();
            let cause = error.io_error().map(ToString::to_string);
            anyhow::anyhow!("cannot read {path}: {}", cause.unwrap_or_default())
        })?;
        // Through links to files, not through links to directories, which may lead in circles.
        if entry.file_type().is_dir() || !entry.path().is_file() {
            continue;
        }
        let below = entry.path().strip_prefix(root)?;
        match filter.includes(below) {
            None => {}
            Some(false) if !looks_like_an_image(entry.path()) => {
                found.passed_over.push(entry.path().into());
            }
            Some(_) => found.items.push(Item {
                listed: true,
                ..Item::new(entry.path().into(), below.into())
            }),
        }
    }
    Ok(())
}

/// Whether a file is an image by its content, or is called one and so has to answer for it.
fn looks_like_an_image(path: &Path) -> bool {
    format::of_extension(path).is_ok()
        || Source::open_file(path).is_ok_and(|source| format::of_content(&source).is_ok())
}

/// The files of a list, separated by NUL if there is one in it, by line ends if not.
fn listed(list: &Path) -> Result<Vec<Item>> {
    let mut bytes = Vec::new();
    if list == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        File::open(list)?.read_to_end(&mut bytes)?;
    }
    let separator = if bytes.contains(&0) { 0 } else { b'\n' };
    let names = bytes.split(|&byte| byte == separator);
    let item = |name: &[u8]| {
        let name = match separator {
            b'\n' => name.strip_suffix(b"\r").unwrap_or(name),
            _ => name,
        };
        let path = PathBuf::from(OsString::from_vec(name.to_vec()));
        ensure!(
            !path.is_dir(),
            "it lists {}, which is a directory",
            path.display()
        );
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
        Ok(Item {
            listed: true,
            ..Item::new(path, key)
        })
    };
    names.filter(|name| !name.is_empty()).map(item).collect()
}
