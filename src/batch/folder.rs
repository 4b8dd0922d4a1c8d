//! Finds the images below a folder. Other files are skipped with a reason; unreadable files that
//! should be images are reported.

use super::by_number::by_number;
use super::item::{EarlierResults, Item, Items, PassedOver, Unread, Why, summary};
use super::naming::JOURNAL;
use crate::formats::{Reading, foreign, format};
use crate::os::fault::{self, Kind};
use crate::os::system::{self, FileKind};
use crate::os::{Source, is_absence, is_same, is_store_name, parent, reason};
use anyhow::Result;
use globset::{Glob, GlobSet, GlobSetBuilder};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// The prefix of the program's own files, journals and unfinished outputs, which are skipped
/// silently.
const OWN: &[u8] = b".gpuimg-";

/// The patterns of `--include` and `--exclude`.
pub struct Filter {
    include: Option<GlobSet>,
    exclude: GlobSet,
    /// Whether a file is also selected by its first bytes, whatever its name is.
    by_content: bool,
    /// Whether every file is an input: raw samples (`--raw`) have no typical names or first bytes.
    is_raw: bool,
}

impl Filter {
    /// Compiles the patterns of files that are read as `reading` says.
    ///
    /// # Errors
    /// An invalid pattern.
    pub fn new(include: &[String], exclude: &[String], reading: &Reading) -> Result<Filter> {
        Ok(Filter {
            include: if include.is_empty() {
                None
            } else {
                Some(globs(include)?)
            },
            exclude: globs(exclude)?,
            by_content: true,
            is_raw: reading.raw.is_some(),
        })
    }

    /// The same, but without files that are images only by content: in a watched folder such a name
    /// (`scan.tif.part`) is often temporary.
    pub fn by_name(self) -> Filter {
        Filter {
            by_content: false,
            ..self
        }
    }

    fn excludes(&self, below: &Path) -> bool {
        matches(&self.exclude, below)
    }

    /// Whether a file is included, and if so, whether without inspecting its content.
    fn includes(&self, below: &Path) -> Option<bool> {
        match &self.include {
            Some(globs) => matches(globs, below).then_some(true),
            None => Some(self.is_raw),
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
pub enum Sorted {
    /// Process it.
    Taken,
    /// Descend into it.
    Entered,
    /// Ignore it: it is a file of this program.
    Own,
    /// Skip it, for this reason.
    PassedOver(Why),
    /// Report it: it should be an image and cannot be read.
    Unread(String),
}

/// Adds all images below `root` to `found`, sorted by name and number. An unreadable entry and a folder
/// without any image are reported, and the others are processed.
pub fn walk(root: &Path, filter: &Filter, results: Option<&Path>, found: &mut Items) {
    let results = apart(results, root);
    let (items, passed, unread) = (
        found.items.len(),
        found.passed_over.len(),
        found.unread.len(),
    );
    visit(root, root, filter, results, |path, below, sorted| {
        let path = path.to_path_buf();
        match sorted {
            Sorted::Own if path.ends_with(JOURNAL) => found.earlier.push(EarlierResults {
                root: root.into(),
                folder: parent(&path).into(),
            }),
            Sorted::Entered | Sorted::Own => {}
            Sorted::Taken => found.items.push(Item::listed(path, below.into())),
            Sorted::PassedOver(why) => found.passed_over.push(PassedOver { path, why }),
            Sorted::Unread(why) => found.unread.push(Unread::new(path, &why)),
        }
    });
    if (found.items.len(), found.unread.len()) == (items, unread) {
        let why = match &found.passed_over[passed..] {
            [] => "it contains no image".into(),
            others => format!("it contains no image; skipped {}", summary(others.iter())),
        };
        let path = root.into();
        found.unread.push(Unread::new(path, &why));
    }
}

/// A folder and all folders below it, as far as they can be read.
pub fn all_below(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = WalkDir::new(folder).into_iter().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_dir());
    folders.map(DirEntry::into_path).collect()
}

/// The output folder, unless it is `root` itself: in place, nothing is skipped.
fn apart<'a>(results: Option<&'a Path>, root: &Path) -> Option<&'a Path> {
    results.filter(|results| !is_same(results, root))
}

/// Whether `path`, which is absolute and without links, is `folder` or leads through it.
pub fn is_below(path: &Path, folder: &Path) -> bool {
    let is_folder = |id| {
        path.ancestors()
            .any(|above| fault::id(above).is_ok_and(|above| above == id))
    };
    fault::id(folder).is_ok_and(is_folder)
}

/// Calls `see` with every entry below `start`, a folder at or below `root`, in the order of `by_number`:
/// its path, its path below `root`, and what to do with it. The folder `results` is left out.
pub fn visit(
    root: &Path,
    start: &Path,
    filter: &Filter,
    results: Option<&Path>,
    mut see: impl FnMut(&Path, &Path, Sorted),
) {
    if let Err(error) = fault::point(Kind::Readdir, start) {
        let below = start.strip_prefix(root).unwrap_or(start);
        return see(start, below, Sorted::Unread(reason(&error)));
    }
    let mut entries = WalkDir::new(start)
        .sort_by(|a, b| by_number(a.file_name(), b.file_name()))
        .into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) if entry.depth() == 0 => continue,
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(start);
                let below = path.strip_prefix(root).unwrap_or(path);
                see(path, below, Sorted::Unread(why_not(&error)));
                continue;
            }
        };
        let path = entry.path();
        let below = path.strip_prefix(root).unwrap_or(path);
        let mut sorted = sort(&entry, below, filter, results);
        if matches!(sorted, Sorted::Entered)
            && let Err(error) = fault::point(Kind::Readdir, path)
        {
            sorted = Sorted::Unread(reason(&error));
        }
        if entry.file_type().is_dir() && !matches!(sorted, Sorted::Entered) {
            entries.skip_current_dir();
        }
        see(path, below, sorted);
    }
}

/// What to do with one file or folder `below` `root`, as in a scan of the whole folder; `None` if it no longer
/// exists, or is in a skipped folder.
pub fn look_at(
    root: &Path,
    below: &Path,
    filter: &Filter,
    results: Option<&Path>,
) -> Option<Sorted> {
    let mut path = root.to_path_buf();
    let mut sorted = None;
    for part in below.components() {
        if !matches!(sorted, None | Some(Sorted::Entered)) {
            return None;
        }
        path.push(part);
        let entry = WalkDir::new(&path).follow_root_links(false).max_depth(0);
        let entry = match entry.into_iter().next()? {
            Ok(entry) => entry,
            Err(error) if error.io_error().is_some_and(is_absence) => return None,
            Err(error) => return Some(Sorted::Unread(why_not(&error))),
        };
        let here = path.strip_prefix(root).ok()?;
        sorted = Some(sort(&entry, here, filter, results));
    }
    sorted
}

/// Why an entry of a folder, or the folder itself, cannot be read.
fn why_not(error: &walkdir::Error) -> String {
    let why = error.io_error().map(reason);
    why.unwrap_or_else(|| "it is a symbolic link loop".into())
}

fn sort(entry: &DirEntry, below: &Path, filter: &Filter, results: Option<&Path>) -> Sorted {
    let (name, path) = (system::bytes_of(entry.file_name()), entry.path());
    if name.starts_with(OWN) {
        return Sorted::Own;
    }
    if name.starts_with(b".") {
        return Sorted::PassedOver(Why::Hidden);
    }
    if filter.excludes(below) {
        return Sorted::PassedOver(Why::LeftOut);
    }
    let is_store = entry.file_type().is_dir() && is_store_name(path);
    if is_store && !filter.by_content {
        return Sorted::PassedOver(Why::Store);
    }
    if entry.file_type().is_dir() && !is_store {
        let is_own = results.is_some_and(|results| is_same(path, results));
        return if is_own { Sorted::Own } else { Sorted::Entered };
    }
    let Some(by_name) = filter.includes(below) else {
        return Sorted::PassedOver(Why::LeftOut);
    };
    if is_store {
        return Sorted::Taken;
    }
    // Links to files are followed, links to folders are not, since they could form a cycle.
    let about = if entry.path_is_symlink() {
        fault::metadata(path).map(|about| system::kind_of(about.file_type()))
    } else {
        Ok(system::kind_of(entry.file_type()))
    };
    let kind = match about {
        Ok(kind) => kind,
        // A file with the name of an image must be readable.
        Err(error) if by_name || format::names_an_image(path) => {
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
    if by_name || format::names_an_image(path) {
        return Sorted::Taken;
    }
    if !filter.by_content {
        return Sorted::PassedOver(Why::NoImage);
    }
    match no_image(path) {
        Ok(None) => Sorted::Taken,
        Ok(Some(why)) => Sorted::PassedOver(why),
        Err(error) => Sorted::Unread(reason(&error)),
    }
}

/// The reason to skip a file that is not a regular one.
fn no_file(kind: FileKind) -> Option<Why> {
    match kind {
        FileKind::Regular => None,
        FileKind::Directory => Some(Why::FolderLink),
        FileKind::Fifo => Some(Why::Fifo),
        FileKind::Socket => Some(Why::Socket),
        _ => Some(Why::Device),
    }
}

/// Why a file is not an image that is read, by its first bytes; `None` for an image.
fn no_image(path: &Path) -> io::Result<Option<Why>> {
    let mut head = Vec::new();
    let most = foreign::HEAD.max(format::HEAD) as u64;
    fault::open(path)?.take(most).read_to_end(&mut head)?;
    let foreign = foreign::identify_head(&head);
    Ok(match format::of_content(&Source::memory(head)) {
        Ok(_) => None,
        Err(_) => Some(foreign.map_or(Why::NoImage, |foreign| Why::Foreign(foreign.name))),
    })
}
