//! gpuimg: 16-bit images from file to file, on an NVIDIA GPU or on the CPU.
//!
//! A pixel's way, and the files in the order it meets them:
//!
//! ```text
//!   file ──► codec ──► Image ──► ops ──► device ──► ops ──► Image ──► codec ──► file
//!  files.rs  codec/   image.rs  ops/*.rs  cuda.rs (kernels/*.cu) or cpu.rs (rayon)
//! ```
//!
//! `pipeline::one_image` names every station in order: read it first. Arrows run one way:
//! `main → lib → cli, pipeline → codec, ops → device → stats, image`. Operations never print and
//! never touch files, codecs know no device, devices know no operation, and only `main` exits.
//! An operation is defined once, by its naive version; the CPU's and the GPU's give the same bytes.

pub mod bench;
pub mod buffer;
pub mod cli;
pub mod codec;
pub mod device;
pub mod doctor;
pub mod files;
pub mod image;
pub mod ops;
pub mod pipeline;
pub mod stats;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use cli::{Cli, Common, Files, StatsForm, Verb};
use codec::Format;
use device::Devices;
use image::Depth;
use ops::Op;
use ops::normalize::{Normalize, Range};
use ops::orient::Orient;
use ops::sum::Sum;
use pipeline::{Destination, Done, one_image};
use stats::Report;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What became of a run that did not stop at an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All was done.
    Done,
    /// Some files failed, and were named on standard error.
    SomeFailed,
}

/// Does what was typed.
pub fn run(cli: &Cli) -> Result<Outcome> {
    let common = &cli.common;
    match &cli.verb {
        Verb::Normalize { op, files } => convert(&to_depth(op, files), files, common),
        Verb::Transpose { files } => convert(&Orient::Transpose, files, common),
        Verb::Rotate { angle, files } => convert(&Orient::from(*angle), files, common),
        Verb::Flip { axis, files } => convert(&Orient::from(*axis), files, common),
        Verb::Sum { op, json, inputs } => sum(op, inputs, *json, common),
        Verb::Bench { options } => bench::run(options, common.device),
        Verb::Doctor => doctor::run(common.device),
    }
}

/// Normalizing to 8 bits scales to 0:255 at once, so that nothing is rounded twice.
fn to_depth(op: &Normalize, files: &Files) -> Normalize {
    let mut op = op.clone();
    if op.to.is_none() && files.depth.map(Depth::from) == Some(Depth::Eight) {
        op.to = Some(Range {
            min: 0,
            max: Depth::Eight.full(),
        });
    }
    op
}

/// An image to an image.
fn convert(op: &dyn Op, files: &Files, common: &Common) -> Result<Outcome> {
    let format = match files.format {
        Some(format) => format,
        None => Format::of_extension(&files.output)
            .map_err(usage)
            .with_context(|| format!("cannot write {}", files.output.display()))?,
    };
    let output = Destination {
        path: files.output.clone(),
        format,
        options: files.options,
        overwrite: files.overwrite,
        depth: files.depth.map(Depth::from),
    };
    let devices = Devices::new(common.device);
    let done = one_image(op, &files.input, Some(&output), &devices)?;
    tell(
        op,
        &files.input,
        Some(&files.output),
        &done,
        &devices,
        common,
    );
    Ok(Outcome::Done)
}

/// Images to numbers, a line each; a bad file is named and the rest goes on.
fn sum(op: &Sum, inputs: &[PathBuf], json: bool, common: &Common) -> Result<Outcome> {
    let devices = Devices::new(common.device);
    let mut outcome = Outcome::Done;
    for input in inputs {
        match one_image(op, input, None, &devices) {
            Ok(done) => {
                if let Some(totals) = &done.totals {
                    let line = if json {
                        totals.json(input).to_string()
                    } else {
                        totals.text(input)
                    };
                    writeln!(io::stdout(), "{line}").context("cannot write to standard output")?;
                }
                tell(op, input, None, &done, &devices, common);
            }
            // Without the GPU that was asked for, no other file can fare better.
            Err(error) if error.is::<device::Unusable>() => return Err(error),
            Err(error) => {
                complain(&error);
                outcome = Outcome::SomeFailed;
            }
        }
    }
    Ok(outcome)
}

/// Tells on standard error what is worth telling: warnings always, the device and the timeline
/// when asked for.
fn tell(
    op: &dyn Op,
    input: &Path,
    output: Option<&PathBuf>,
    done: &Done,
    devices: &Devices,
    common: &Common,
) {
    let wall = done.timeline.wall();
    for warning in &done.warnings {
        eprintln!("gpuimg: warning: {}: {warning}", input.display());
    }
    if common.verbose && common.stats.is_none() {
        eprintln!("gpuimg: {}: {}", input.display(), done.device);
    }
    let Some(form) = common.stats else { return };
    let mut timeline = done.timeline.clone();
    timeline.peaks = devices.peaks();
    let arrow = output
        .map(|output| format!(" → {}", output.display()))
        .unwrap_or_default();
    let title = format!("{} {}{arrow}: {}", op.name(), input.display(), done.shape);
    let report = Report {
        title: &title,
        device: &done.device,
        timeline: &timeline,
        wall,
    };
    match form {
        StatsForm::Text => eprint!("{}", report.text()),
        StatsForm::Json => eprintln!("{}", report.json()),
    }
}

/// Prints an error, once, in one line.
pub fn complain(error: &anyhow::Error) {
    eprintln!("gpuimg: {error:#}");
}

/// Marks an error as wrong usage: exit status 2.
fn usage(error: anyhow::Error) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{error:#}")).into()
}

/// The exit status that an error stands for: 2 wrong usage, 3 the GPU asked for cannot be used, 1
/// anything else.
pub fn status(error: &anyhow::Error) -> u8 {
    if error.is::<device::Unusable>() {
        3
    } else if error.is::<clap::Error>() {
        2
    } else {
        1
    }
}
