//! Runs the subcommands, a file each; `doctor` and `bench` have modules of their own.

mod calibrate;
mod combine;
mod completions;
mod convert;
mod formats;
mod frames;
mod histogram;
mod info;
mod man;
mod merge;
mod project;
mod prove;
mod run;
mod single;
mod split;
mod stack;
mod sum;
mod verify;

use crate::cli::{Cli, Verb};
use crate::os::outcome::Outcome;
use crate::{bench, doctor};
use anyhow::Result;

/// Runs the command that was typed.
///
/// # Errors
/// The cause that stopped the whole command; a single bad file among many is printed and counted in
/// the outcome.
pub fn run(cli: &Cli) -> Result<Outcome> {
    match &cli.verb {
        Verb::Images(images) => convert::run(images),
        Verb::Calibrate {
            frames,
            files,
            common,
        } => calibrate::run(frames, files, common),
        Verb::Run {
            verbs,
            files,
            common,
        } => run::run(verbs, files, common),
        Verb::Project { op, files, common } => project::run(op, &[], files, &[], common),
        Verb::Combine { files, common } => combine::run(files, common),
        Verb::Sum {
            op,
            json,
            inputs,
            batch,
            common,
        } => sum::run(op, inputs, *json, batch, common),
        Verb::Histogram {
            inputs,
            output,
            batch,
            common,
        } => histogram::run(inputs, output, batch, common),
        Verb::Info {
            inputs,
            selection,
            json,
            range,
            html,
            common,
        } => info::run(inputs, selection, *json, *range, html.as_deref(), common),
        Verb::Merge {
            inputs,
            output,
            image,
        } => merge::run(inputs, output, image),
        Verb::Prove { reports, options } => prove::run(reports, options),
        Verb::Verify {
            images,
            devices,
            json,
            device,
        } => verify::run(images, *devices, *json, device.choice),
        Verb::Formats { json } => formats::run(*json),
        Verb::Bench { options, device } => bench::run(options, device.choice),
        Verb::Doctor { json, device } => doctor::run(device.choice, *json),
        Verb::Completions { shell } => completions::run(*shell),
        Verb::Man { folder } => man::run(folder),
    }
}
