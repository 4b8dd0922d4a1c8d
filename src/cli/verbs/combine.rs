//! `combine`: an RGB image of grey images, or of the channels of a stack.

use super::convert::{depth_of_format, has_eight_bits};
use super::project::named_format;
use super::single::report_image;
use crate::batch::combined_report::{CombinedOutput, CombinedReport};
use crate::batch::item::Items;
use crate::batch::options::ChannelFiles;
use crate::batch::output_paths;
use crate::batch::plan::{DryRun, can_be_written};
use crate::engine::options::Common;
use crate::engine::{Composite, Destination, Mix, Resources, Unfit};
use crate::formats::{Reader, Reading};
use crate::gpu::Devices;
use crate::image::metadata::Axis;
use crate::ops::combine::Combine;
use crate::os::name::{Shown, in_shell};
use crate::os::outcome::{Outcome, usage};
use crate::os::system::ends_with_separator;
use crate::os::url;
use crate::os::{Source, StoreRun, console, is_folder_of_files};
use anyhow::{Context, Error, Result, anyhow, ensure};
use std::path::{Path, PathBuf};

/// Combines the pages of all inputs, one from each. Where an input fails, nothing is written.
pub fn run(files: &ChannelFiles, common: &Common) -> Result<Outcome> {
    common.check()?;
    let (output, inputs) = match &files.output {
        Some(output) => (output, files.paths.as_slice()),
        None => files.paths.split_last().context("no output given")?,
    };
    check(files, inputs, output, &common.reading).map_err(usage)?;
    let mix = match &files.colours {
        Some(colours) => Mix::Colours(colours.clone()),
        None => Mix::Channels,
    };
    let composite = Composite { inputs, mix: &mix };
    let destination = destination(files, inputs, output, common).map_err(usage)?;
    if files.dry_run {
        return dry_run(&composite, &destination, files.quiet, common);
    }
    let report = CombinedReport::open(
        files.report.as_ref(),
        &CombinedOutput {
            path: output,
            overwrite: files.overwrite,
            inputs: &Items::named(inputs),
            reads: &[],
            command: &common.typed,
            reading: &common.reading,
        },
    )?;
    let devices = Devices::new(common.device.choice);
    let done = composite.process(&destination, &resources(&devices, common));
    let done = done.map_err(with_advice)?;
    report_image(
        &[&Combine {}],
        &composite.name(),
        Some(&destination),
        &done,
        &devices,
        common,
        files.quiet,
    )?;
    let outcome = done.outcome();
    if let Some(report) = report {
        report.add(done)?;
    }
    Ok(outcome)
}

/// Refuses inputs that cannot be combined, whatever they contain.
fn check(files: &ChannelFiles, inputs: &[PathBuf], output: &Path, reading: &Reading) -> Result<()> {
    let count = inputs.len();
    if files.colours.is_some() {
        ensure!(
            count > 0,
            "expected an input and an output, got only {0}: the output comes last, e.g. gpuimg combine {1} out.tif --colours C1=red,C2=green",
            output.shown(),
            in_shell(output)
        );
    } else {
        ensure!(
            matches!(count, 3 | 4),
            "combine takes a file for each of red, green and blue, and maybe one for alpha, then the output; got {count} before {} ({})",
            output.shown(),
            instead(inputs, output, reading)
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
    url::check_output(output)?;
    let read: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    output_paths::keep_off("the combined image", output, &[], &read)
}

/// Adds the command that makes images fit.
fn with_advice(error: Error) -> Error {
    match error.downcast_ref::<Unfit>() {
        Some(Unfit { advice, .. }) if !advice.is_empty() => anyhow!("{error:#} ({advice})"),
        _ => error,
    }
}

/// What to type instead, for a wrong number of inputs.
fn instead(inputs: &[PathBuf], output: &Path, reading: &Reading) -> String {
    let command = |words: &[&Path], colours: usize| {
        let words: Vec<String> = words.iter().map(|word| in_shell(word)).collect();
        let colours = match colours {
            0 => String::new(),
            count => format!(" --colours {}", example_colours(count)),
        };
        format!("gpuimg combine {}{colours}", words.join(" "))
    };
    let named: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    match named[..] {
        [] if output.exists() => one_input(output, Path::new("out.tif"), reading),
        [] => "gpuimg combine RED GREEN BLUE OUTPUT".into(),
        [only] => one_input(only, output, reading),
        // `gpuimg combine *.tif` takes the last file for the output.
        [_, _] if output.is_file() => {
            let words = [&named[..], &[output, Path::new("out.tif")]].concat();
            format!("the output comes last: {}", command(&words, 0))
        }
        _ => {
            let words = [&named[..], &[output]].concat();
            format!("a colour for each: {}", command(&words, named.len()))
        }
    }
}

/// What to type instead, if `combine` was given one input.
fn one_input(input: &Path, output: &Path, reading: &Reading) -> String {
    let [from, to] = [input, output].map(in_shell);
    if is_folder_of_files(input) {
        return format!("name the files in {from}, not the folder");
    }
    let open = || -> Result<_> {
        let source = Source::open(input)?;
        let reader = Reader::open(&source, reading)?;
        let channels = reader.axes().map_or(1, |axes| axes.size(Axis::C));
        Ok((reader.shape(), reader.pages().len(), channels))
    };
    match open() {
        Ok((shape, ..)) if shape.channels > 2 => {
            format!(
                "{from} is {} already: gpuimg convert {from} {to}",
                shape.kind()
            )
        }
        Ok((_, _, channels)) if channels > 1 => format!(
            "a colour for each channel: gpuimg combine {from} {to} --colours {}",
            example_colours(channels)
        ),
        Ok((_, pages, _)) if pages > 1 => format!(
            "to use pages of {from}, write a file for each: gpuimg convert --split {from} pages/"
        ),
        _ => format!("gpuimg combine {from} GREEN BLUE {to}"),
    }
}

/// Colours for this many channels, as `--colours` takes them.
fn example_colours(channels: usize) -> String {
    const NAMES: [&str; 7] = ["red", "green", "blue", "cyan", "magenta", "yellow", "white"];
    let colours = (1..=channels.min(NAMES.len())).zip(NAMES);
    let colours: Vec<String> = colours
        .map(|(number, name)| format!("C{number}={name}"))
        .collect();
    colours.join(",")
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
        gpu_times: common.stats.is_some(),
        ..Resources::new(devices, common.reading)
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
        let plans = composite.plan(destination, &resources(&devices, common));
        let plans = plans.map_err(with_advice)?;
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
