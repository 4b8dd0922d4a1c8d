//! One image by itself, for every verb that takes one.

use crate::console;
use crate::device::Devices;
use crate::ops::{Operation, chain};
use crate::options::Common;
use crate::pipeline::{Destination, Done, Resources, one_image};
use crate::timing::page::Track;
use crate::timing::{FileCounts, Report};
use anyhow::Result;
use std::path::Path;

/// Runs operations on one image, one after the other, and tells on standard error what its user should know of it and, where
/// `--stats` asks for it, where the time went.
///
/// # Errors
/// Those of `one_image`.
pub fn single(
    ops: &[&dyn Operation],
    input: &Path,
    output: Option<&Destination>,
    common: &Common,
    quiet: bool,
) -> Result<Done> {
    let devices = Devices::new(common.device.choice);
    let resources = Resources {
        devices: &devices,
        budget: None,
        reading: common.reading,
        only_files: false,
        gpu_times: common.stats.is_some(),
    };
    let done = one_image(ops, input, output, &resources)?;
    if !quiet {
        let file = input.display().to_string();
        for sentence in done.sentences(common.verbose) {
            console::tell(&format!("gpuimg: {}", sentence.replace("{file}", &file)));
        }
        if common.verbose && common.stats.is_none() {
            console::tell(&format!("gpuimg: {file}: {}", done.device));
        }
    }
    let Some(form) = &common.stats else {
        return Ok(done);
    };
    let arrow = output
        .map(|output| format!(" → {}", output.path.display()))
        .unwrap_or_default();
    let title = format!(
        "{} {}{arrow}: {}",
        chain::title(ops),
        input.display(),
        done.shape
    );
    let mut report = Report {
        verb: chain::name(ops),
        title: console::printable(&title).into(),
        files: FileCounts {
            files: 1,
            done: 1,
            failed: done.damage.is_some().into(),
            ..FileCounts::default()
        },
        threads: 1,
        timeline: Some(done.timeline.clone()),
        peaks: devices.peaks(),
        wall: done.timeline.wall(),
        ..Report::default()
    };
    report.add(&done.timeline, &done.device, done.found.pages.len());
    if common.draws() {
        report.tracks.push(Track {
            name: input.display().to_string(),
            timeline: done.timeline.clone(),
        });
    }
    form.deliver(&report)?;
    Ok(done)
}
