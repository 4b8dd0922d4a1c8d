//! One image by itself, for every verb that takes one.

use crate::batch::options::Options;
use crate::engine::options::Common;
use crate::engine::{Destination, Done, Resources, RunRecord, process_file};
use crate::gpu::Devices;
use crate::image::buffer;
use crate::ops::{Operation, Position, chain};
use crate::os::Passes;
use crate::os::console;
use crate::os::name::Shown;
use crate::timing::{Report, Track};
use anyhow::Result;
use std::path::Path;
use std::rc::Rc;

/// The most bytes of memory that a page leaves to the next one: its samples and its compressed data, of a page of 8192² samples
/// of 16 bits.
const KEPT: usize = 256 << 20;

/// Runs operations on one image, one after the other, and tells on standard error what its user should know of it and, where
/// `--stats` asks for it, where the time went. `passes` has the inputs as an earlier pass saw them.
///
/// # Errors
/// As `process_file`.
pub fn single(
    ops: &[&dyn Operation],
    input: &Path,
    output: Option<&Destination>,
    common: &Common,
    options: &Options,
    passes: Option<&Passes>,
) -> Result<Done> {
    let devices = Rc::new(Devices::new(common.device.choice));
    let budget = options.budget();
    let resources = Resources {
        budget: budget.as_ref(),
        position: Some(Position::ONLY),
        gpu_times: common.stats.is_some(),
        ..Resources::new(&devices, common.reading)
    };
    let record_of_run = RunRecord {
        passes,
        ..RunRecord::NONE
    };
    let pooled = devices.clone();
    let done = buffer::with_pool(
        KEPT,
        move |bytes| pooled.pool_block(bytes),
        || process_file(ops, input, output, &resources, record_of_run),
    )?;
    let quiet = options.verbosity.quiet;
    report_image(ops, input, output, &done, &devices, common, quiet)?;
    Ok(done)
}

/// Tells on standard error what the user of an image should know of it and, where `--stats` asks for it, where the time went.
///
/// # Errors
/// Times that cannot be written.
pub fn report_image(
    ops: &[&dyn Operation],
    input: &Path,
    output: Option<&Destination>,
    done: &Done,
    devices: &Devices,
    common: &Common,
    quiet: bool,
) -> Result<()> {
    describe(done, &input.shown(), common, quiet);
    let Some(form) = &common.stats else {
        return Ok(());
    };
    let arrow = output
        .map(|output| format!(" → {}", output.path.shown()))
        .unwrap_or_default();
    let title = format!(
        "{} {}{arrow}: {}",
        chain::title(ops),
        input.shown(),
        done.shape
    );
    let mut times = Report {
        title: console::printable(&title).into(),
        plan: done.plan.clone(),
        timeline: Some(done.timeline.clone()),
        wall: done.timeline.wall(),
        ..report(ops, devices)
    };
    times.files.files = 1;
    record(&mut times, done, &input.shown(), common);
    times.peaks = devices.peaks();
    form.deliver(&times)
}

/// Prints the messages about an image, and the ranges that values were scaled from if an option asks for them.
pub(super) fn print_messages(done: &Done, file: &str, verbose: bool) {
    for message in done.messages(verbose) {
        console::tell(&format!("gpuimg: {}", message.text.replace("{file}", file)));
    }
    // With --verbose a note has them.
    let pages = done.results.pages.iter();
    let mut last = String::new();
    for page in pages.filter(|page| page.print_ranges && !verbose) {
        let ranges = page.range_message();
        if ranges != last {
            console::tell(&format!("gpuimg: {file}: {ranges}"));
        }
        last = ranges;
    }
}

/// Prints on standard error what the user of an image should know of it.
pub fn describe(done: &Done, file: &str, common: &Common, quiet: bool) {
    if quiet {
        return;
    }
    print_messages(done, file, common.verbose);
    if common.verbose && common.stats.is_none() {
        for (index, line) in done.plan.lines().enumerate() {
            match index {
                0 => console::tell(&format!("gpuimg: {file}, {line}")),
                _ => console::tell(line),
            }
        }
    }
}

/// The report of operations on images of one thread, of which none is done yet.
pub fn report(ops: &[&dyn Operation], devices: &Devices) -> Report {
    Report {
        verb: chain::name(ops),
        title: format!("{} - → -", chain::title(ops)),
        threads: 1,
        peaks: devices.peaks(),
        ..Report::default()
    }
}

/// Adds an image to a report.
pub fn record(times: &mut Report, done: &Done, file: &str, common: &Common) {
    times.files.done += 1;
    times.files.failed += usize::from(done.damage.is_some());
    times.add(&done.timeline, &done.device, done.results.pages.len());
    times.add_clamped(done.results.clamped());
    if common.draws() {
        times.tracks.push(Track {
            name: file.into(),
            timeline: done.timeline.clone(),
        });
    }
}
