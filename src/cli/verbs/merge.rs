//! `merge`: joins what the shards of a set gave to that of the whole set: histograms to a histogram,
//! partial projections to an image.

use super::convert::depth_of_format;
use super::project::{PARTIAL, Writing};
use crate::batch::combined_report::{CombinedOutput, CombinedReport};
use crate::batch::histogram::Set;
use crate::batch::item::Items;
use crate::batch::lineage::{FIRST_IMAGE, FilesRead};
use crate::batch::options::{Counted, Merged};
use crate::batch::output_paths;
use crate::batch::project::Partial;
use crate::engine::Destination;
use crate::formats::{Reading, format};
use crate::gpu::Choice;
use crate::image::Depth;
use crate::os::StoreRun;
use crate::os::console;
use crate::os::fault::{self, Kind};
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result, anyhow};
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
        let report = |all: &Partial| open_report(all, &parts, output, merged);
        projections(&parts, output, merged, false, report)
    } else if merged.report.is_some() {
        let why = "--report is for images, but these are histograms: remove --report";
        Err(usage(anyhow!(why)))
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

/// Merges partial projections into an image. `report` opens the report about it, if there is to be one.
pub(super) fn projections(
    parts: &[PathBuf],
    output: &Counted,
    merged: &Merged,
    quiet: bool,
    report: impl FnOnce(&Partial) -> Result<Option<CombinedReport>>,
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
    let (first, others) = parts.split_first().context("there is nothing to merge")?;
    let mut all = Partial::read(first)?;
    for path in others {
        all.join(Partial::read(path)?)
            .with_context(|| format!("cannot merge {}", path.shown()))?;
    }
    let report = report(&all)?;
    let failed = all.failed;
    let (made, first) = all.finish()?;
    let has_eight_bits = made.image.shape().depth == Depth::Eight;
    to.depth = depth_of_format(None, to.format, quiet, || has_eight_bits);
    let writing = Writing {
        ops: &[],
        to: &to,
        first: &first,
        device: Choice::Cpu,
        verbose: false,
        quiet,
    };
    let done = writing.write(vec![made], target)?;
    if let Some(report) = report {
        report.add(done)?;
    }
    if failed > 0 && !quiet {
        console::tell(&format!(
            "gpuimg: {} does not include {failed} image{} that could not be read",
            path.shown(),
            if failed == 1 { "" } else { "s" }
        ));
    }
    Ok(Outcome::Done)
}

/// Opens the report about the projection of all parts, if there is to be one.
fn open_report(
    all: &Partial,
    parts: &[PathBuf],
    output: &Counted,
    merged: &Merged,
) -> Result<Option<CombinedReport>> {
    let Some(to) = &merged.report else {
        return Ok(None);
    };
    CombinedReport::open(
        Some(to),
        &CombinedOutput {
            path: &output.output,
            overwrite: output.overwrite,
            inputs: &Items::named(parts),
            reads: &first_image(all)?,
            command: &merged.typed,
            reading: &Reading::default(),
        },
    )
}

/// The image whose metadata the projection of all parts keeps, for a report.
///
/// # Errors
/// It cannot be read.
pub(super) fn first_image(all: &Partial) -> Result<Vec<FilesRead>> {
    let read = all.first_image().map(|path| {
        let items = Items::named(&[path.into()]);
        FilesRead::new(FIRST_IMAGE, &items, &Reading::default())
    });
    Ok(read.transpose()?.into_iter().collect())
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
