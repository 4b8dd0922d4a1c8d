//! `merge`: joins the histograms of the shards of a set to that of the whole set.

use crate::batch::histogram::Set;
use crate::batch::options::Counted;
use crate::outcome::{Outcome, usage};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Joins the histograms of the shards of a set: files, or folders of them.
pub fn run(inputs: &[PathBuf], output: &Counted) -> Result<Outcome> {
    let parts = parts(inputs, &output.output)?;
    let (first, others) = parts
        .split_first()
        .context("nothing to merge: no .hist file in the folder")
        .map_err(usage)?;
    let mut all = Set::read(first)?;
    for path in others {
        all.join(&Set::read(path)?)
            .with_context(|| format!("cannot merge {}", path.display()))?;
    }
    let all = all.complete()?;
    all.write(output)?;
    all.mention_failed(&output.output);
    Ok(Outcome::Done)
}

/// The files that `inputs` name; for a folder, its `.hist` files in the order of their names,
/// except the `output` of an earlier merge.
fn parts(inputs: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>> {
    let earlier = fs::canonicalize(output).ok();
    let mut parts = Vec::new();
    for input in inputs {
        if !input.is_dir() {
            parts.push(input.clone());
            continue;
        }
        let list = || -> Result<Vec<PathBuf>> {
            let entries = fs::read_dir(input)?.map(|entry| Ok(entry?.path()));
            entries.collect()
        };
        let mut files = list().with_context(|| format!("cannot read {}", input.display()))?;
        files.retain(|path| {
            let is_part = path
                .extension()
                .is_some_and(|extension| extension == "hist");
            is_part && (earlier.is_none() || fs::canonicalize(path).ok() != earlier)
        });
        files.sort();
        parts.extend(files);
    }
    Ok(parts)
}
