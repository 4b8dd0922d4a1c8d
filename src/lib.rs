//! gpuimg: 16-bit images from file to file, on an NVIDIA GPU or on the CPU.
//!
//! A pixel's way, and the files in the order it meets them:
//!
//! ```text
//!   file ──► codec ──► Image ──► exec: ops on a device ──► Image ──► codec ──► file
//!  files.rs  codec/   image.rs   exec/, ops/*.rs on cuda.rs (kernels/*.cu) or cpu.rs (rayon)
//! ```
//!
//! `pipeline::one_image` opens a file, and the page processor (`pipeline/page.rs`) names every step of
//! a page in order: read them first. `exec` runs an operation: whole, in bands, and for a PNG deflated on
//! the GPU. `batch` does it to many files at once. Arrows run one way:
//! `main → lib → cli, batch → pipeline → exec → codec, ops → device → stats, image`. Operations never
//! print and never touch files, codecs know no device, operations no codec, devices neither, and only
//! `main` exits, or `interrupt` when asked to.
//! All that is printed goes through `console`; what the process may use of the machine is asked in
//! `limits`.
//! An operation is defined once, by its naive version; the CPU's and the GPU's give the same bytes.

pub mod batch;
pub mod bench;
pub mod buffer;
pub mod cli;
pub mod codec;
pub mod console;
mod deflate;
pub mod device;
pub mod doctor;
pub mod exec;
pub mod files;
pub mod image;
mod interrupt;
mod limits;
pub mod metadata;
pub mod ops;
mod outcome;
pub mod pipeline;
pub mod room;
pub mod stats;
pub mod verify;

use anyhow::{Context, Result, anyhow};
use batch::conversion::Conversion;
use batch::histogram::{self, Set};
use batch::key::Job;
use batch::naming::Naming;
use batch::places;
use clap::CommandFactory;
use cli::{Cli, Common, Files, Images, StatsForm, Verb};
use device::Devices;
use image::Depth;
use ops::Operation;
use ops::of_set::OfSet;
use ops::sum::Sum;
pub use outcome::Outcome;
use outcome::usage;
use pipeline::{Destination, Done, Resources, one_image};
use stats::Report;
use std::path::{Path, PathBuf};

/// Does what was typed.
pub fn run(cli: &Cli) -> Result<Outcome> {
    interrupt::listen()?;
    start_threads()?;
    let common = &cli.common;
    match &cli.verb {
        Verb::Images(images) => make_images(images, common),
        Verb::Sum {
            op,
            json,
            inputs,
            batch,
        } => sum(op, inputs, *json, batch, common),
        Verb::Histogram {
            inputs,
            output,
            batch,
        } => histogram::histogram(inputs, output, batch, common),
        Verb::Merge { inputs, output } => histogram::merge(inputs, output),
        Verb::Verify {
            images,
            devices,
            json,
        } => match (images.as_slice(), devices) {
            ([a, b], false) => verify::files(a, b, *json),
            ([image], true) => verify::devices(image, common.device.ordinal()),
            _ => Err(usage(anyhow!(
                "two images are compared, or one with --devices"
            ))),
        },
        Verb::Bench { options } => bench::run(options, common.device),
        Verb::Doctor => doctor::run(common.device),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "gpuimg", &mut script);
            console::print_lines(&String::from_utf8(script)?)?;
            Ok(Outcome::Done)
        }
        Verb::Man { folder } => {
            clap_mangen::generate_to(Cli::command(), folder)
                .with_context(|| format!("cannot write to {}", folder.display()))?;
            Ok(Outcome::Done)
        }
    }
}

/// Starts the threads that all work shares: as many as this process may use, or as the user says.
fn start_threads() -> Result<()> {
    // 0 leaves it to rayon, which asks its variable.
    let threads = match std::env::var_os("RAYON_NUM_THREADS") {
        Some(_) => 0,
        None => limits::cores(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .map_err(|_| anyhow!(interrupt::NO_THREAD))
}

/// Runs an operation on each image by itself, or with the statistic of a whole set.
fn make_images(images: &Images, common: &Common) -> Result<Outcome> {
    let Images { op, set, files } = images;
    let asked = Conversion::of(files).map_err(usage)?;
    let batch = &files.batch;
    if let Some((report, range)) = batch.report.as_ref().zip(set.range_from.as_ref()) {
        places::keep_report_off(report, &[], &[range]).map_err(usage)?;
    }
    if set.across {
        asked.items.can_be_read_twice().map_err(usage)?;
    }
    let counted = match (&set.range_from, set.across) {
        (Some(path), _) => {
            let set = Set::read(path)?;
            if !batch.voice.quiet {
                set.mention_failed(path);
            }
            set
        }
        // A plan needs no range, unless it is to tell what was done before by the same one.
        (None, true) if !batch.dry_run || batch.resume => {
            let first = batch::options::Options {
                report: None,
                resume: false,
                dry_run: false,
                ..batch.clone()
            };
            // What cannot be read is named when it is its turn to be normalized.
            let (set, _) = batch::measure_set(&asked.items, &first, common, false)?;
            if set.counts.is_none() {
                // Nothing could be: once more, to say why.
                return Ok(batch::measure_set(&asked.items, &first, common, true)?.1);
            }
            set
        }
        (None, _) => return convert(&**op, set.across, &asked, files, common),
    };
    let of = set.range_from.as_deref().unwrap_or(Path::new("the set"));
    let of_set = counted
        .into_counts()
        .and_then(|counts| OfSet::new(&**op, counts));
    let op = of_set.with_context(|| format!("no range from {}", of.display()))?;
    convert(&op, set.across, &asked, files, common)
}

/// An image to an image, or many to a folder; `across` says that the range in `op` was measured in
/// the inputs.
fn convert(
    op: &dyn Operation,
    across: bool,
    asked: &Conversion,
    files: &Files,
    common: &Common,
) -> Result<Outcome> {
    let job = Job::new(op, across, files, common)?;
    let batch = &files.batch;
    let mut destination = Destination {
        path: PathBuf::new(),
        format: asked.format,
        options: files.options,
        overwrite: files.overwrite,
        sync: files.sync,
        depth: files.depth.map(Depth::from),
        auto_orient: files.auto_orient,
    };
    let (input, output) = match (&asked.naming, asked.items.items.as_slice()) {
        (Naming::File(path), [item]) if !batch.wanted() => (&item.input, path),
        _ => return batch::convert(op, job, asked, &destination, batch, common),
    };
    destination.path = output.clone();
    let devices = Devices::new(common.device);
    let resources = Resources {
        devices: &devices,
        room: None,
        reading: common.reading,
        only_files: false,
    };
    let done = one_image(op, input, Some(&destination), &resources)?;
    if !batch.voice.quiet {
        mention(input, &done, common);
    }
    tell_times(op, input, Some(output), &done, &devices, common);
    Ok(done.outcome())
}

/// Images to numbers, a line each, in order; a bad file is named and the rest goes on.
fn sum(
    op: &Sum,
    inputs: &[PathBuf],
    json: bool,
    options: &batch::options::Options,
    common: &Common,
) -> Result<Outcome> {
    let print = |input: &Path, done: &Done| -> Result<()> {
        for totals in &done.found.totals {
            let line = match json {
                true => totals.json(input).to_string(),
                false => totals.text(input),
            };
            console::print(&line)?;
        }
        Ok(())
    };
    let [input] = inputs else {
        return batch::measure(op, inputs, options, common, print);
    };
    if input.is_dir() || options.wanted() {
        return batch::measure(op, inputs, options, common, print);
    }
    let devices = Devices::new(common.device);
    let resources = Resources {
        devices: &devices,
        room: None,
        reading: common.reading,
        only_files: false,
    };
    let done = one_image(op, input, None, &resources)?;
    print(input, &done)?;
    if !options.voice.quiet {
        mention(input, &done, common);
    }
    tell_times(op, input, None, &done, &devices, common);
    Ok(done.outcome())
}

/// Warnings, and with `-v` what else is known of an image, on standard error.
fn mention(input: &Path, done: &Done, common: &Common) {
    let file = input.display().to_string();
    for sentence in done.sentences(common.verbose) {
        console::tell(&format!("gpuimg: {}", sentence.replace("{file}", &file)));
    }
    if common.verbose && common.stats.is_none() {
        console::tell(&format!("gpuimg: {file}: {}", done.device));
    }
}

/// The timeline on standard error, where `--stats` asks for it.
fn tell_times(
    op: &dyn Operation,
    input: &Path,
    output: Option<&PathBuf>,
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

/// Prints an error, once, in one line.
pub fn complain(error: &anyhow::Error) {
    console::tell(&format!("gpuimg: {error:#}"));
}

/// The exit status that an error stands for: 2 wrong usage, 3 the GPU asked for cannot be used, 1
/// anything else.
pub fn status(error: &anyhow::Error) -> u8 {
    if error.is::<device::Unusable>() {
        3
    } else if error.is::<outcome::WrongUsage>() {
        2
    } else {
        1
    }
}
