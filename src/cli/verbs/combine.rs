//! `combine`: an RGB image of grey images, or of the channels of a stack.

use super::convert::{depth_of_format, has_eight_bits};
use super::project::named_format;
use super::single::report_image;
use crate::batch::options::ChannelFiles;
use crate::batch::output_paths;
use crate::batch::plan::{DryRun, can_be_written};
use crate::engine::options::Common;
use crate::engine::{Composite, Destination, Mix, Resources};
use crate::gpu::Devices;
use crate::ops::combine::Combine;
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use crate::os::system::ends_with_separator;
use crate::os::{Source, StoreRun, console, is_folder_of_files};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Combines the pages of all inputs, one from each. Where an input fails, nothing is written.
pub fn run(files: &ChannelFiles, common: &Common) -> Result<Outcome> {
    common.check()?;
    let (output, inputs) = match &files.output {
        Some(output) => (output, files.paths.as_slice()),
        None => files.paths.split_last().context("no output given")?,
    };
    check(files, inputs, output).map_err(usage)?;
    let mix = match &files.colours {
        Some(colours) => Mix::Colours(colours.clone()),
        None => Mix::Channels,
    };
    let composite = Composite { inputs, mix: &mix };
    let destination = destination(files, inputs, output, common).map_err(usage)?;
    if files.dry_run {
        return dry_run(&composite, &destination, files.quiet, common);
    }
    let devices = Devices::new(common.device.choice);
    let done = composite.process(&destination, &resources(&devices, common))?;
    report_image(
        &[&Combine {}],
        &composite.name(),
        Some(&destination),
        &done,
        &devices,
        common,
        files.quiet,
    )?;
    Ok(done.outcome())
}

/// Refuses inputs that cannot be combined, whatever they contain.
fn check(files: &ChannelFiles, inputs: &[PathBuf], output: &Path) -> Result<()> {
    let count = inputs.len();
    if files.colours.is_some() {
        ensure!(
            count > 0,
            "expected an input and an output, got only {}: the output comes last",
            output.shown()
        );
    } else {
        ensure!(
            matches!(count, 3 | 4),
            "combine takes a file for each of red, green and blue, and maybe one for alpha, then the output; got {count} before {} (use --colours for the channels of a stack)",
            output.shown()
        );
    }
    let streams = inputs.iter().filter(|path| *path == Path::new("-"));
    ensure!(
        streams.count() < 2,
        "- is standard input, which can be only one of the inputs"
    );
    ensure!(
        !is_folder_of_files(output) && !ends_with_separator(output),
        "combine makes a single file, but {} is a folder: name a file",
        output.shown()
    );
    let read: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    output_paths::keep_off("the combined image", output, &[], &read)
}

/// Where the result goes, and how it is written.
fn destination(
    files: &ChannelFiles,
    inputs: &[PathBuf],
    output: &Path,
    common: &Common,
) -> Result<Destination> {
    let format = named_format(output, files.format)?;
    let keeps_depth = || {
        let first = &inputs[0];
        first == Path::new("-") || has_eight_bits(|| Source::open(first), &common.reading)
    };
    Ok(Destination {
        path: output.into(),
        folder: None,
        format,
        options: files.options,
        overwrite: files.overwrite,
        sync: files.sync,
        depth: depth_of_format(files.depth, format, files.quiet, keeps_depth),
        auto_orient: files.auto_orient,
        fit: files.fit,
        low_memory: false,
        store: StoreRun::default(),
    })
}

fn resources<'a>(devices: &'a Devices, common: &Common) -> Resources<'a> {
    Resources {
        devices,
        budget: None,
        reading: common.reading,
        require_regular_file: false,
        position: None,
        gpu_times: common.stats.is_some(),
    }
}

/// Prints what would be done. Nothing is written.
fn dry_run(
    composite: &Composite,
    destination: &Destination,
    quiet: bool,
    common: &Common,
) -> Result<Outcome> {
    let output = destination.path.shown();
    let replaces = can_be_written(&destination.path, destination.overwrite, false);
    let replaces = replaces.with_context(|| format!("cannot write {output}"))?;
    let is_stream = composite.inputs.iter().any(|path| path == Path::new("-"));
    let (pages, plans) = if is_stream {
        (Vec::new(), Vec::new())
    } else {
        let devices = Devices::idle(common.device.choice);
        let plans = composite.plan(destination, &resources(&devices, common))?;
        (plans.pages, plans.plans)
    };
    let planned = DryRun::Done {
        pages,
        plans,
        replaces,
        has_rate: false,
    };
    if !quiet {
        let name = composite.name();
        console::print(&format!("{} → {output}: {planned}", name.shown()))?;
        if common.verbose {
            planned.print_plans()?;
        }
    }
    Ok(Outcome::Done)
}
