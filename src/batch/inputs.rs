//! The inputs of a batch: files, folders and lists of files, found once.

use super::folder::{self, Filter};
use super::item::{Item, Items, Unread};
use super::shard::Shard;
use crate::formats::Reading;
use crate::os::fault::{self, Reads};
use crate::os::name::Shown;
use crate::os::system;
use crate::os::url::Url;
use crate::os::{as_file_name, is_store_name, reason};
use anyhow::{Context, Result, anyhow, ensure};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Which files are taken.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Selection {
    /// In folders, process only files that match GLOB (the path below the folder, or the name)
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub include: Vec<String>,

    /// In folders, skip files and folders that match GLOB
    #[arg(long, value_name = "GLOB", help_heading = "Many files")]
    pub exclude: Vec<String>,

    /// Also read input names from FILE, one per line or NUL-separated; - is standard input. Results keep the folders of relative names in the list, unlike those of files named on the command line
    #[arg(long, value_name = "FILE", help_heading = "Many files")]
    pub files_from: Option<PathBuf>,

    /// Process only part I of N of the inputs (counted from 1, split by name), or of the pages if the output is one Zarr store; auto reads the variables of Slurm or Kubernetes
    #[arg(long, value_name = "I/N|auto", help_heading = "Many files")]
    pub shard: Option<Shard>,
}

/// Collects the inputs that `paths` and `selection` name; the folder `results`, if it lies within
/// one of them, is skipped. The files will be read as `reading` says.
///
/// # Errors
/// An invalid pattern, a list that cannot be read, standard input named twice.
pub fn collect(
    paths: &[PathBuf],
    selection: &Selection,
    reading: &Reading,
    results: Option<&Path>,
) -> Result<Items> {
    let filter = Filter::new(&selection.include, &selection.exclude, reading)?;
    let streams = paths.iter().chain(&selection.files_from);
    ensure!(
        streams.filter(|path| *path == Path::new("-")).count() < 2,
        "standard input (-) is given twice, but can be read only once"
    );
    let mut found = Items::default();
    for path in paths {
        if fault::metadata(path).is_ok_and(|about| about.is_dir()) && !is_store_name(path) {
            folder::walk(path, &filter, results, &mut found);
        } else {
            let key = match (Url::parse(path), as_file_name(path).file_name()) {
                (Some(url), _) => url.name().into(),
                (None, Some(name)) if name != "-" => name.into(),
                _ => PathBuf::from("stdin"),
            };
            let item = Item::new(path.clone(), key);
            // One that is a stream now: what becomes a FIFO later has no writer that anybody knows of.
            let may_be_stream = item.is_stream();
            found.items.push(Item {
                may_be_stream,
                ..item
            });
        }
    }
    if let Some(list) = &selection.files_from {
        let listed = listed(list)
            .map_err(|error| anyhow!(reason(&error)))
            .with_context(|| format!("cannot read {}", list.shown()))?;
        if listed.is_empty() {
            let empty = Unread::new(list.clone(), "the list is empty");
            found.unread.push(empty);
        }
        found.items.extend(listed);
    }
    found.record_order();
    if let Some(shard) = &selection.shard {
        found.record_set()?;
        found.items.retain(|item| shard.has(&item.key));
    }
    Ok(found)
}

/// The files of a list, separated by NUL if it contains one, otherwise by line ends.
fn listed(list: &Path) -> io::Result<Vec<Item>> {
    let mut bytes = Vec::new();
    if list == Path::new("-") {
        Reads::new(io::stdin().lock(), list).read_to_end(&mut bytes)?;
    } else {
        fault::open(list)?.read_to_end(&mut bytes)?;
    }
    let separator = if bytes.contains(&0) { 0 } else { b'\n' };
    let names = bytes.split(|&byte| byte == separator);
    let names = names.map(|name| match separator {
        b'\n' => name.strip_suffix(b"\r").unwrap_or(name),
        _ => name,
    });
    let named = names.filter(|name| !name.is_empty());
    named.map(|name| listed_item(name.to_vec())).collect()
}

/// The file for a `name` in a list.
///
/// # Errors
/// On Windows, a name that is not UTF-8.
fn listed_item(name: Vec<u8>) -> io::Result<Item> {
    let path = match name.as_slice() {
        // In a list `-` is a file name, not standard input.
        b"-" => PathBuf::from("./-"),
        _ => system::name_of_bytes(&name)?.into(),
    };
    if let Some(url) = Url::parse(&path) {
        let key = url.name().into();
        return Ok(Item::listed(path, key));
    }
    // A relative name keeps its folders in the output; for a name that leads elsewhere only the
    // last part is kept.
    let named = as_file_name(&path);
    let inside = named
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let key = if inside {
        named
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect()
    } else {
        named
            .file_name()
            .map_or_else(|| named.to_path_buf(), PathBuf::from)
    };
    Ok(Item::listed(path, key))
}
