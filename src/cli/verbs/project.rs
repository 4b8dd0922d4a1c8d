//! `project`: one image from many files, or from the pages of a stack.

use super::convert::{calibrates, depth_of_format, has_eight_bits};
use super::single::print_messages;
use crate::batch::combined_report::{CombinedOutput, CombinedReport};
use crate::batch::item::{Item, Items};
use crate::batch::lineage::FilesRead;
use crate::batch::options::Gathered;
use crate::batch::project::{First, Projecting};
use crate::batch::shard::Shard;
use crate::batch::{inputs, output_paths};
use crate::engine::options::Common;
use crate::engine::{CombinedImage, Destination, Done, Warning};
use crate::formats::{Format, format};
use crate::gpu::{Choice, Devices};
use crate::image::Depth;
use crate::image::metadata::Metadata;
use crate::ops::Operation;
use crate::ops::project::Project;
use crate::os::name::{Shown, in_shell};
use crate::os::outcome::{Outcome, usage};
use crate::os::system::ends_with_separator;
use crate::os::url;
use crate::os::{StoreRun, Target, is_folder_of_files, make_folder, parent};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// The extension of partial projections.
pub(super) const PARTIAL: &str = "partial";

/// Combines all pages of all inputs into one image, and applies `ops` to it. If an input is bad, it is reported, the exit status
/// is 1, and nothing is written unless `--keep-going` leaves it out. `reads` are the files that `ops` depend on, for a report.
pub fn run(
    op: &Project,
    ops: &[&dyn Operation],
    files: &Gathered,
    reads: &[FilesRead],
    common: &Common,
) -> Result<Outcome> {
    op.check().map_err(usage)?;
    let (output, paths) = files.paths.split_last().context("no output given")?;
    let mut to = destination(op, files, paths, output).map_err(usage)?;
    let options = files.batch();
    let mut items =
        inputs::collect(paths, &options.selection, &common.reading, None).map_err(usage)?;
    if !options.verbosity.quiet {
        items.warn_about_earlier_results(None);
    }
    let lists: Vec<&Path> = files.files_from.iter().map(PathBuf::as_path).collect();
    output_paths::keep_off("the projection", output, &items.items, &lists).map_err(usage)?;
    let indices = match files.shard {
        Some(shard) => keep_shard(&mut items, shard)?,
        None => (0..items.items.len() as u64).collect(),
    };
    if files.partial {
        make_folder(parent(output), files.sync)
            .with_context(|| format!("cannot write {}", output.shown()))?;
    }
    // `project max *.tif` takes the last image for the output.
    ensure!(
        files.overwrite || !output.exists() || paths.iter().all(|path| is_folder_of_files(path)),
        "cannot write {0}: it already exists, and it is the last name, so it is taken for the output (name a new file last; \
         --overwrite replaces {0})",
        output.shown()
    );
    let report = CombinedReport::open(
        files.report.as_ref(),
        &CombinedOutput {
            path: output,
            overwrite: files.overwrite,
            inputs: &items,
            reads,
            command: &common.typed,
            reading: &common.reading,
        },
    )?;
    // An output that cannot be written is reported before hours of reading.
    let target = to.create()?;
    let projecting = Projecting {
        op,
        items: &items,
        options: &options,
        common,
    };
    if files.partial {
        let (partial, outcome) = projecting.partial(files.shard, |index| indices[index])?;
        let Some(partial) = partial else {
            return Ok(outcome);
        };
        let written = partial.write(target);
        written.with_context(|| format!("cannot write {}", output.shown()))?;
        return Ok(outcome);
    }
    let keeps_depth = || {
        let has_eight =
            |item: &Item| item.is_stream() || has_eight_bits(|| item.source(), &common.reading);
        op.to.is_none() && items.items.first().is_none_or(has_eight)
    };
    if !calibrates(ops) {
        let quiet = options.verbosity.quiet;
        to.depth = depth_of_format(files.depth, to.format, quiet, keeps_depth);
    }
    let mut first = None;
    let check = |candidate: &First| {
        let projected = op.output(candidate.image_type.shape);
        let shape = CombinedImage::written_shape(projected, ops, &to)
            .with_context(|| format!("cannot project {}", candidate.path.shown()))?;
        let metadata = Metadata {
            maxval: None,
            signed: candidate.metadata.signed && !shape.depth.is_float(),
            ..candidate.metadata.clone()
        };
        let format = to.format.unwrap_or(candidate.format);
        first = Some(candidate.clone());
        format::check(format, &shape, &metadata)
            .with_context(|| format!("cannot write {}", output.shown()))
    };
    let (images, outcome) = projecting.along(files.along.axis, check)?;
    let Some(first) = first.filter(|_| !images.is_empty()) else {
        return Ok(outcome);
    };
    let writing = Writing {
        ops,
        to: &to,
        first: &first,
        // Without operations, only the depth and the size change.
        device: match ops {
            [] => Choice::Cpu,
            _ => common.device.choice,
        },
        verbose: common.verbose,
        quiet: options.verbosity.quiet,
    };
    let done = writing.write(images, target)?;
    if let Some(report) = report {
        report.add(done)?;
    }
    Ok(outcome)
}

/// Keeps only the items of a shard; returns their indices in the whole set.
fn keep_shard(items: &mut Items, shard: Shard) -> Result<Vec<u64>> {
    items.record_set()?;
    let all = std::mem::take(&mut items.items).into_iter().zip(0..);
    let (own, indices) = all.filter(|(item, _)| shard.has(&item.key)).unzip();
    items.items = own;
    Ok(indices)
}

/// How combined images are written and reported.
pub(super) struct Writing<'a> {
    /// The operations that are applied to them.
    pub ops: &'a [&'a dyn Operation],
    /// Where the result goes.
    pub to: &'a Destination,
    /// The image whose metadata they have.
    pub first: &'a First,
    /// The device of the operations.
    pub device: Choice,
    /// Whether to report metadata that are not kept.
    pub verbose: bool,
    /// Whether to report errors only.
    pub quiet: bool,
}

impl Writing<'_> {
    /// Writes the results for the images to `target`, and reports the metadata that they do not keep.
    pub fn write(&self, images: Vec<CombinedImage>, target: Target) -> Result<Done> {
        let devices = Devices::new(self.device);
        let written = CombinedImage::write(images, self.ops, self.to, target, &devices);
        let (mut written, mut done) = written?;
        // Each page may say the same.
        written.warnings.dedup();
        written.notes.dedup();
        let first = &self.first.diagnostics;
        let warnings = first.warnings.iter().chain(&written.warnings);
        let warnings = warnings.map(|text| Warning {
            text: text.clone(),
            hint: None,
        });
        done.warnings.splice(0..0, warnings);
        let notes = first.notes.iter().chain(&written.notes);
        done.notes.splice(0..0, notes.cloned());
        if !self.quiet {
            print_messages(&done, &self.to.path.shown(), self.verbose);
        }
        Ok(done)
    }
}

/// The format of an output, if an option or its name states one: a stream has no name, and gets the format of the first image.
///
/// # Errors
/// A name without the extension of a format.
pub(super) fn named_format(
    output: &Path,
    asked: Option<&'static Format>,
) -> Result<Option<&'static Format>> {
    if asked.is_some() || output == Path::new("-") {
        return Ok(asked);
    }
    let format = format::of_extension(output);
    Ok(Some(format.with_context(|| {
        format!("cannot write {}", output.shown())
    })?))
}

/// The destination of the result.
///
/// # Errors
/// Wrong usage.
fn destination(
    op: &Project,
    files: &Gathered,
    inputs: &[PathBuf],
    output: &Path,
) -> Result<Destination> {
    ensure!(
        !inputs.is_empty() || files.files_from.is_some(),
        "expected an input and an output, got only {}: the output comes last, e.g. gpuimg project {} {} out.tif",
        output.shown(),
        op.how.name(),
        in_shell(output)
    );
    url::check_output(output)?;
    if is_folder_of_files(output) || ends_with_separator(output) {
        bail!(
            "a projection is a single image, but {} is a folder: name a file",
            output.shown()
        );
    }
    let is_partial = output
        .extension()
        .is_some_and(|extension| extension == PARTIAL);
    if files.partial {
        ensure!(
            is_partial,
            "--partial does not write an image: use a name such as {}",
            output.with_extension(PARTIAL).shown()
        );
        ensure!(
            files.format.is_none(),
            "--partial does not write an image: remove --format"
        );
        if let Some(reason) = op.needs_all_images(Depth::Sixteen) {
            bail!("{reason} and cannot be computed in parts");
        }
    }
    let format = if files.partial {
        None
    } else {
        named_format(output, files.format)?
    };
    Ok(Destination {
        path: output.into(),
        folder: None,
        format,
        options: files.options,
        overwrite: files.overwrite,
        sync: files.sync,
        depth: files.depth.map(Depth::from),
        auto_orient: false,
        fit: files.fit,
        low_memory: false,
        store: StoreRun::default(),
    })
}
