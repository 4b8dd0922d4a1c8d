//! Runs the subcommands, a file each; `doctor` and `bench` have modules of their own.

mod completions;
mod convert;
mod histogram;
mod man;
mod merge;
mod sum;
mod verify;

use crate::cli::{Cli, Verb};
use crate::console;
use crate::device::Devices;
use crate::ops::Operation;
use crate::options::{Common, StatsForm};
use crate::outcome::Outcome;
use crate::pipeline::{Destination, Done, Resources, one_image};
use crate::timing::Report;
use crate::{bench, doctor};
use anyhow::Result;
use std::path::Path;

/// Runs the command that was typed.
///
/// # Errors
/// The cause that stopped the whole command; a single bad file among many is printed and counted in
/// the outcome.
pub fn run(cli: &Cli) -> Result<Outcome> {
    let common = &cli.common;
    match &cli.verb {
        Verb::Images(images) => convert::run(images, common),
        Verb::Sum {
            op,
            json,
            inputs,
            batch,
        } => sum::run(op, inputs, *json, batch, common),
        Verb::Histogram {
            inputs,
            output,
            batch,
        } => histogram::run(inputs, output, batch, common),
        Verb::Merge { inputs, output } => merge::run(inputs, output),
        Verb::Verify {
            images,
            devices,
            json,
        } => verify::run(images, *devices, *json, common),
        Verb::Bench { options } => bench::run(options, common.device),
        Verb::Doctor => doctor::run(common.device),
        Verb::Completions { shell } => completions::run(*shell),
        Verb::Man { folder } => man::run(folder),
    }
}

/// Runs one image and prints its warnings on standard error.
fn single(
    op: &dyn Operation,
    input: &Path,
    output: Option<&Destination>,
    common: &Common,
    quiet: bool,
) -> Result<Done> {
    let devices = Devices::new(common.device);
    let resources = Resources {
        devices: &devices,
        budget: None,
        reading: common.reading,
        only_files: false,
    };
    let done = one_image(op, input, output, &resources)?;
    if !quiet {
        mention(input, &done, common);
    }
    let output = output.map(|output| output.path.as_path());
    tell_times(op, input, output, &done, &devices, common);
    Ok(done)
}

/// Prints an image's warnings, and with `-v` its notes, on standard error.
fn mention(input: &Path, done: &Done, common: &Common) {
    let file = input.display().to_string();
    for sentence in done.sentences(common.verbose) {
        console::tell(&format!("gpuimg: {}", sentence.replace("{file}", &file)));
    }
    if common.verbose && common.stats.is_none() {
        console::tell(&format!("gpuimg: {file}: {}", done.device));
    }
}

/// Prints the timeline on standard error if `--stats` was given.
fn tell_times(
    op: &dyn Operation,
    input: &Path,
    output: Option<&Path>,
    done: &Done,
    devices: &Devices,
    common: &Common,
) {
    let wall = done.timeline.wall();
    let Some(form) = common.stats else { return };
    let mut timeline = done.timeline.clone();
    timeline.peaks = devices.peaks();
    let arrow = output
        .map(|output| format!(" → {}", output.display()))
        .unwrap_or_default();
    let title = format!("{} {}{arrow}: {}", op.name(), input.display(), done.shape);
    let report = Report {
        title: &console::printable(&title),
        device: &done.device,
        timeline: &timeline,
        wall,
    };
    match form {
        StatsForm::Text => console::tell_lines(&report.text()),
        StatsForm::Json => console::tell(&report.json().to_string()),
    }
}
