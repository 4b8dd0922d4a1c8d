//! Finds the images below a folder. Other files are skipped with a reason; unreadable files that
//! should be images are reported.

use super::item::{Item, Items, PassedOver, Unread, Why, summary};
use crate::codec::format;
use crate::files::{Source, reason};
use anyhow::Result;
use globset::{Glob, GlobSet, GlobSetBuilder};
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// The prefix of the program's own files, journals and unfinished outputs, which are skipped
/// silently.
const OWN: &[u8] = b".gpuimg-";

/// The patterns of `--include` and `--exclude`.
pub struct Filter {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Filter {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// A pattern that is none.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Filter> {
        Ok(Filter {
            include: match include.is_empty() {
                true => None,
                false => Some(globs(include)?),
            },
            exclude: globs(exclude)?,
        })
    }

    fn excludes(&self, below: &Path) -> bool {
        matches(&self.exclude, below)
    }

    /// Whether a file is included, and if so, whether by its name alone.
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

/// What to do with an entry of a folder.
enum Sorted {
    /// Process it.
    Taken,
    /// Descend into it.
    Entered,
    /// Ignore it: it is a file of this program.
    Own,
    PassedOver(Why),
    /// Report it: it should be an image and cannot be read.
    Unread(String),
}

/// Adds all images below `root` to `found`, sorted by name. An unreadable entry and a folder
/// without any image are reported, and the others are processed.
pub fn walk(root: &Path, filter: &Filter, results: Option<&Path>, found: &mut Items) {
    let real = |path: &Path| path.canonicalize().ok();
    // In place, the output folder is the root itself.
    let results = results.and_then(real);
    let results = results.filter(|results| real(root).as_ref() != Some(results));
    let (items, passed, unread) = (
        found.items.len(),
        found.passed_over.len(),
        found.unread.len(),
    );
    let mut entries = WalkDir::new(root).sort_by_file_name().into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) if entry.depth() == 0 => continue,
            Ok(entry) => entry,
            Err(error) => {
                let why = error.io_error().map(reason);
                found.unread.push(Unread {
                    path: error.path().unwrap_or(root).into(),
                    why: why.unwrap_or_else(|| "it leads in a circle".into()),
                });
                continue;
            }
        };
        let path = entry.path();
        let below = path.strip_prefix(root).unwrap_or(path);
        let sorted = sort(&entry, below, filter, results.as_deref());
        if entry.file_type().is_dir() && !matches!(sorted, Sorted::Entered) {
            entries.skip_current_dir();
        }
        let path = path.to_path_buf();
        match sorted {
            Sorted::Entered | Sorted::Own => {}
            Sorted::Taken => found.items.push(Item::found(path.clone(), below.into())),
            Sorted::PassedOver(why) => found.passed_over.push(PassedOver { path, why }),
            Sorted::Unread(why) => found.unread.push(Unread { path, why }),
        }
    }
    if (found.items.len(), found.unread.len()) == (items, unread) {
        let why = match &found.passed_over[passed..] {
            [] => "no image is in it".into(),
            others => format!(
                "no image is in it, and {} passed over ({})",
                others.len(),
                summary(others.iter())
            ),
        };
        let path = root.into();
        found.unread.push(Unread { path, why });
    }
}

fn sort(entry: &DirEntry, below: &Path, filter: &Filter, results: Option<&Path>) -> Sorted {
    let (name, path) = (entry.file_name().as_bytes(), entry.path());
    if name.starts_with(OWN) {
        return Sorted::Own;
    }
    if name.starts_with(b".") {
        return Sorted::PassedOver(Why::Hidden);
    }
    if filter.excludes(below) {
        return Sorted::PassedOver(Why::LeftOut);
    }
    if entry.file_type().is_dir() {
        let own = results.is_some() && path.canonicalize().ok().as_deref() == results;
        return if own { Sorted::Own } else { Sorted::Entered };
    }
    let Some(by_name) = filter.includes(below) else {
        return Sorted::PassedOver(Why::LeftOut);
    };
    // Links to files are followed, links to folders are not, since they could form a cycle.
    let about = match entry.path_is_symlink() {
        false => Ok(entry.file_type()),
        true => fs::metadata(path).map(|about| about.file_type()),
    };
    let kind = match about {
        Ok(kind) => kind,
        // A file with the name of an image has to be readable.
        Err(error) if by_name || format::of_extension(path).is_ok() => {
            return Sorted::Unread(match error.kind() {
                io::ErrorKind::NotFound => Why::LeadsNowhere.to_string(),
                _ => reason(&error),
            });
        }
        Err(_) => return Sorted::PassedOver(Why::LeadsNowhere),
    };
    if let Some(why) = no_file(kind) {
        return Sorted::PassedOver(why);
    }
    match by_name || format::of_extension(path).is_ok() {
        true => Sorted::Taken,
        false => match is_image(path) {
            Ok(true) => Sorted::Taken,
            Ok(false) => Sorted::PassedOver(Why::NoImage),
            Err(error) => Sorted::Unread(reason(&error)),
        },
    }
}

/// The reason to skip a file that is not a regular one.
fn no_file(kind: FileType) -> Option<Why> {
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some(Why::FolderLink)
    } else if kind.is_fifo() {
        Some(Why::Fifo)
    } else if kind.is_socket() {
        Some(Why::Socket)
    } else {
        Some(Why::Device)
    }
}

/// Whether a file is an image by its first bytes.
fn is_image(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    let most = format::HEAD as u64;
    File::open(path)?.take(most).read_to_end(&mut magic)?;
    Ok(format::of_content(&Source::memory(magic)).is_ok())
}
