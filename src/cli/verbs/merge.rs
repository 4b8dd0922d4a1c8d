//! `merge`: joins what the shards of a set gave to that of the whole set: histograms to a histogram,
//! partial projections to an image.

use super::convert::depth_of_format;
use super::project::{PARTIAL, Writing};
use crate::batch::histogram::Set;
use crate::batch::options::{Counted, Merged};
use crate::batch::output_paths;
use crate::batch::project::Partial;
use crate::engine::Destination;
use crate::formats::format;
use crate::gpu::Choice;
use crate::image::Depth;
use crate::os::StoreRun;
use crate::os::console;
use crate::os::fault::{self, Kind};
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Joins the files of the shards of a set: files, or folders of them.
pub fn run(inputs: &[PathBuf], output: &Counted, merged: &Merged) -> Result<Outcome> {
    let parts = parts(inputs, &output.output)?;
    let (first, others) = parts
        .split_first()
        .context("nothing to merge: the folder contains no .hist or .partial file")
        .map_err(usage)?;
    let read: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
    output_paths::keep_off("the result", &output.output, &[], &read).map_err(usage)?;
    if Partial::is_partial(first) {
        projections(first, others, output, merged)
    } else {
        histograms(first, others, output)
    }
}

fn histograms(first: &Path, others: &[PathBuf], output: &Counted) -> Result<Outcome> {
    let mut all = Set::read(first)?;
    for path in others {
        all.join(&Set::read(path)?)
            .with_context(|| format!("cannot merge {}", path.shown()))?;
    }
    let all = all.complete()?;
    all.write(output)?;
    all.mention_failed(&output.output);
    Ok(Outcome::Done)
}

fn projections(
    first: &Path,
    others: &[PathBuf],
    output: &Counted,
    merged: &Merged,
) -> Result<Outcome> {
    let path = &output.output;
    let unwritten = || format!("cannot write {}", path.shown());
    let format = format::of_extension(path).with_context(unwritten);
    let mut to = Destination {
        path: path.clone(),
        folder: None,
        format: Some(format.map_err(usage)?),
        options: merged.options,
        overwrite: output.overwrite,
        sync: output.sync,
        depth: None,
        auto_orient: false,
        fit: None,
        low_memory: false,
        store: StoreRun::default(),
    };
    let target = to.create()?;
    let mut all = Partial::read(first)?;
    for path in others {
        all.join(Partial::read(path)?)
            .with_context(|| format!("cannot merge {}", path.shown()))?;
    }
    let failed = all.failed;
    let (made, first) = all.finish()?;
    let has_eight_bits = made.image.shape().depth == Depth::Eight;
    to.depth = depth_of_format(None, to.format, false, || has_eight_bits);
    let writing = Writing {
        ops: &[],
        to: &to,
        first: &first,
        device: Choice::Cpu,
        verbose: false,
        quiet: false,
    };
    writing.write(vec![made], target)?;
    if failed > 0 {
        console::tell(&format!(
            "gpuimg: {} does not include {failed} image{} that could not be read",
            path.shown(),
            if failed == 1 { "" } else { "s" }
        ));
    }
    Ok(Outcome::Done)
}

/// The files that `inputs` name; for a folder, its files of shards in the order of their names, except
/// the `output` of an earlier merge.
fn parts(inputs: &[PathBuf], output: &Path) -> Result<Vec<PathBuf>> {
    let earlier = fault::canonicalize(output).ok();
    let mut parts = Vec::new();
    for input in inputs {
        if !input.is_dir() {
            parts.push(input.clone());
            continue;
        }
        let list = || -> Result<Vec<PathBuf>> {
            fault::point(Kind::Readdir, input)?;
            let entries = fs::read_dir(input)?.map(|entry| Ok(entry?.path()));
            entries.collect()
        };
        let mut files = list().with_context(|| format!("cannot read {}", input.shown()))?;
        files.retain(|path| {
            let is_part = path
                .extension()
                .is_some_and(|extension| extension == "hist" || extension == PARTIAL);
            is_part && (earlier.is_none() || fault::canonicalize(path).ok() != earlier)
        });
        files.sort();
        parts.extend(files);
    }
    Ok(parts)
}
