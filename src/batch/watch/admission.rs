//! Which files of watched folders are taken, and where their results go: the same rules as for the
//! folders of a batch, for one file at a time.

use super::check::resolved;
use crate::batch::folder::{self, Filter, Sorted, is_below};
use crate::batch::inputs::Selection;
use crate::batch::item::Item;
use crate::batch::naming::Naming;
use crate::batch::output_paths;
use crate::batch::shard::Shard;
use crate::formats::Reading;
use crate::os::name::Shown;
use crate::os::{is_absence, parent, reason};
use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf, absolute};

/// A watched folder.
#[derive(Clone, Debug)]
pub struct Root {
    /// As it was typed.
    pub path: PathBuf,
    /// As events name it.
    pub absolute: PathBuf,
}

/// What to do with a path.
#[derive(Debug)]
pub enum Admitted {
    /// Process the file.
    File(Item),
    /// Watch the folder.
    Folder,
    /// Nothing: it is gone, no image, or left out.
    Nothing,
    /// Report it, for this reason.
    Refused(Item, String),
    /// Report that it cannot be read, for this reason; that may pass.
    Unread(Item, String),
}

/// A file or folder that cannot be read.
pub fn unread(path: &Path, why: &str) -> Admitted {
    Admitted::Unread(
        Item::listed(path.into(), path.into()),
        cannot_read(path, why),
    )
}

/// The report of a file or folder that cannot be read.
pub fn cannot_read(path: &Path, why: &str) -> String {
    format!("cannot read {}: {why}", path.shown())
}

/// Whether a file exists or may exist: an error other than "not found" does not rule it out.
fn may_exist(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

/// The rules that decide which files are processed.
pub struct Admission<'a> {
    /// The watched folders.
    pub roots: Vec<Root>,
    filter: Filter,
    shard: Option<Shard>,
    naming: Option<&'a Naming>,
    /// The folder of the results, without links.
    results: Option<PathBuf>,
    /// Which input has which output, where two inputs could have the same.
    claims: HashMap<PathBuf, PathBuf>,
    /// The number of claims after those of missing inputs were last dropped.
    kept: usize,
}

impl<'a> Admission<'a> {
    /// The rules for these folders.
    ///
    /// # Errors
    /// A pattern that is none, or a folder that is gone.
    pub fn new(
        roots: &[PathBuf],
        selection: &Selection,
        reading: &Reading,
        naming: Option<&'a Naming>,
    ) -> Result<Admission<'a>> {
        let root = |path: &PathBuf| -> Result<Root> {
            let unread = || format!("cannot read {}", path.shown());
            Ok(Root {
                path: path.clone(),
                absolute: absolute(path).with_context(unread)?,
            })
        };
        Ok(Admission {
            roots: roots.iter().map(root).collect::<Result<_>>()?,
            filter: Filter::new(&selection.include, &selection.exclude, reading)?.by_name(),
            shard: selection.shard,
            naming,
            results: naming.and_then(|naming| resolved(naming.folder())),
            claims: HashMap::new(),
            kept: 0,
        })
    }

    /// A path as it was typed, for one that an event names.
    pub fn typed(&self, path: &Path) -> Option<PathBuf> {
        self.roots.iter().find_map(|root| {
            let below = path.strip_prefix(&root.absolute).ok()?;
            // With an empty path a slash would be added.
            Some(if below == Path::new("") {
                root.path.clone()
            } else {
                root.path.join(below)
            })
        })
    }

    /// What to do with a path in a watched folder.
    pub fn admit(&mut self, path: &Path) -> Admitted {
        let below_root = self.roots.iter().find_map(|root| {
            let below = path.strip_prefix(&root.path).ok()?;
            Some((root.path.clone(), below.to_path_buf()))
        });
        let Some((root, below)) = below_root else {
            return Admitted::Nothing;
        };
        if below == Path::new("") {
            return Admitted::Folder;
        }
        match folder::look_at(&root, &below, &self.filter, self.results.as_deref()) {
            Some(sorted) => match self.sorted(path, &below, sorted) {
                Admitted::File(item) => self.named(item),
                other => other,
            },
            None => Admitted::Nothing,
        }
    }

    /// Calls `see` with every file and folder at or below `start` that is not left out; files have no
    /// results yet, since most are known when everything is read again.
    pub fn visit(&mut self, start: &Path, mut see: impl FnMut(&Path, Admitted)) {
        match fs::metadata(start) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => return,
            Err(error) if is_absence(&error) => return,
            Err(error) => return see(start, unread(start, &reason(&error))),
        }
        match self.admit(start) {
            Admitted::Folder => see(start, Admitted::Folder),
            other @ Admitted::Unread(..) => return see(start, other),
            _ => return,
        }
        let Some(root) = self.roots.iter().find(|root| start.starts_with(&root.path)) else {
            return;
        };
        let (root, mut found) = (root.path.clone(), Vec::new());
        let results = self.results.as_deref();
        folder::visit(
            &root,
            start,
            &self.filter,
            results,
            |path, below, sorted| {
                if !matches!(sorted, Sorted::Own | Sorted::PassedOver(_)) {
                    found.push((path.to_path_buf(), below.to_path_buf(), sorted));
                }
            },
        );
        for (path, below, sorted) in found {
            let admitted = self.sorted(&path, &below, sorted);
            see(&path, admitted);
        }
    }

    fn sorted(&self, path: &Path, below: &Path, sorted: Sorted) -> Admitted {
        let item = Item::listed(path.into(), below.into());
        let part = self.shard.as_ref();
        match sorted {
            Sorted::Entered => Admitted::Folder,
            Sorted::Own | Sorted::PassedOver(_) => Admitted::Nothing,
            _ if part.is_some_and(|shard| !shard.has(below)) => Admitted::Nothing,
            // Gone since its folder was read; a link that leads nowhere is still there.
            Sorted::Unread(_) if path.symlink_metadata().is_err_and(|it| is_absence(&it)) => {
                Admitted::Nothing
            }
            Sorted::Unread(why) => Admitted::Unread(item, cannot_read(path, &why)),
            Sorted::Taken => Admitted::File(item),
        }
    }

    /// A file with the path of its result, or the reason why it has none.
    pub fn named(&mut self, mut item: Item) -> Admitted {
        match self.name(&mut item) {
            Ok(()) => Admitted::File(item),
            Err(error) => Admitted::Refused(item, format!("{error:#}")),
        }
    }

    /// Gives a file the path of its result, and checks it as a batch does before it begins.
    fn name(&mut self, item: &mut Item) -> Result<()> {
        let Some(naming) = self.naming else {
            return Ok(());
        };
        naming.name(std::slice::from_mut(item))?;
        output_paths::check(std::slice::from_ref(item), naming, true)?;
        let output = item.output.clone().unwrap_or_default();
        let real = resolved(parent(&output)).unwrap_or_default();
        let inside = |root: &&Root| is_below(&real, &root.path);
        let results = self.results.as_deref();
        let left_out = results.is_some_and(|results| {
            is_below(&real, results) && self.roots.iter().any(|it| is_below(results, &it.path))
        });
        if let Some(root) = self.roots.iter().find(inside).filter(|_| !left_out) {
            bail!(
                "the result {1} of {0} would become a new input in {2}",
                item.input.shown(),
                output.shown(),
                root.path.shown()
            );
        }
        if self.roots.len() == 1 && naming.keeps_names() {
            return Ok(());
        }
        if self.claims.len() > 2 * self.kept + 1024 {
            self.claims.retain(|_, input| may_exist(input));
            self.kept = self.claims.len();
        }
        if let Some(other) = self.claims.get(&output) {
            ensure!(
                *other == item.input || !may_exist(other),
                "{} and {} would both be written to {} (use --name to distinguish them)",
                other.shown(),
                item.input.shown(),
                output.shown()
            );
        }
        self.claims.insert(output, item.input.clone());
        Ok(())
    }
}
