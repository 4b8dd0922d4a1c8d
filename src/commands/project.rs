//! `project`: one image from many files, or from the pages of a stack.

use crate::batch::options::Gathered;
use crate::batch::project::{First, Projecting};
use crate::batch::{inputs as found, places};
use crate::codec::format;
use crate::console;
use crate::metadata::Metadata;
use crate::ops::project::Project;
use crate::options::Common;
use crate::outcome::{Outcome, usage};
use crate::pipeline::{Destination, Made};
use anyhow::{Context, Result, bail, ensure};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Makes one image of all pages of all inputs. Where an input is bad, nothing is written, unless
/// `--keep-going` leaves it out; it is named, and the status tells.
pub fn run(op: &Project, files: &Gathered, common: &Common) -> Result<Outcome> {
    let common = &common.with_auto_on_cpu();
    op.check().map_err(usage)?;
    let (output, inputs) = files.paths.split_last().context("no output is given")?;
    let to = destination(files, inputs, output).map_err(usage)?;
    let options = files.batch();
    let items = found::collect(inputs, &options.selection, None).map_err(usage)?;
    let others: Vec<&Path> = files.files_from.iter().map(PathBuf::as_path).collect();
    places::keep_off("the projection", output, &items.items, &others).map_err(usage)?;
    // Before hours of reading.
    let target = to.create()?;
    let projecting = Projecting {
        op,
        items: &items,
        options: &options,
        common,
    };
    let mut first = None;
    let check = |of: &First| {
        let metadata = Metadata {
            maxval: None,
            ..of.metadata.clone()
        };
        let shape = op.output(of.kind.shape);
        let format = to.format.unwrap_or(of.format);
        first = Some(of.clone());
        format::check(format, &shape, &metadata)
            .with_context(|| format!("cannot write {}", output.display()))
    };
    let (made, outcome) = projecting.run(check)?;
    let (Some(made), Some(first)) = (made, first) else {
        return Ok(outcome);
    };
    let told = tell(made, &to, target, &first, common, options.verbosity.quiet);
    told.map(|()| outcome)
}

/// Writes the result, and tells what its metadata do not keep.
fn tell(
    made: Made,
    to: &Destination,
    target: crate::files::Target,
    first: &First,
    common: &Common,
    quiet: bool,
) -> Result<()> {
    let written = made.write(to, target)?;
    if quiet {
        return Ok(());
    }
    let file = to.path.display();
    for warning in first.diagnostics.warnings.iter().chain(&written.warnings) {
        console::tell(&format!("gpuimg: warning: {file}: {warning}"));
    }
    if common.verbose {
        for note in first.diagnostics.notes.iter().chain(&written.notes) {
            console::tell(&format!("gpuimg: {file}: {note}"));
        }
    }
    Ok(())
}

/// Where the result goes. Errors: wrong usage.
fn destination(files: &Gathered, inputs: &[PathBuf], output: &Path) -> Result<Destination> {
    ensure!(
        !inputs.is_empty() || files.files_from.is_some(),
        "an input and an output are needed, and only {} is given",
        output.display()
    );
    if output.is_dir() || output.as_os_str().as_bytes().ends_with(b"/") {
        bail!(
            "a projection is one image, and {} is a folder",
            output.display()
        );
    }
    let named = format::of_extension(output);
    let format = match (files.format, named) {
        (Some(format), _) => Some(format),
        // A stream without a name has the format of the first image.
        (None, _) if output == Path::new("-") => None,
        (None, named) => Some(named.with_context(|| format!("cannot write {}", output.display()))?),
    };
    Ok(Destination {
        path: output.into(),
        format,
        options: files.options,
        overwrite: files.overwrite,
        sync: files.sync,
        depth: None,
        auto_orient: false,
    })
}
