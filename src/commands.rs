//! Runs the subcommands, a file each; `doctor` and `bench` have modules of their own.

mod calibrate;
mod completions;
mod convert;
mod histogram;
mod man;
mod merge;
mod project;
mod single;
mod sum;
mod verify;

use crate::cli::{Cli, Verb};
use crate::outcome::Outcome;
use crate::{bench, doctor};
use anyhow::Result;

/// Runs the command that was typed.
///
/// # Errors
/// The cause that stopped the whole command; a single bad file among many is printed and counted in
/// the outcome.
pub fn run(cli: &Cli) -> Result<Outcome> {
    let common = &cli.common;
    match &cli.verb {
        Verb::Images(images) => convert::run(images, common),
        Verb::Calibrate { frames, files } => calibrate::run(frames, files, common),
        Verb::Project { op, files } => project::run(op, files, common),
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
