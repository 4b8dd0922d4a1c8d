//! `--stack`: all inputs into one file.

use super::single::{describe, record, report};
use crate::batch::conversion::Conversion;
use crate::engine::options::Common;
use crate::engine::{Destination, Resources, many_images};
use crate::gpu::Devices;
use crate::ops::Operation;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::print_error;
use crate::timing::Report;
use anyhow::Result;

/// Runs operations on every page of all inputs, and writes one stack. Where an input fails, nothing is
/// written.
pub fn stack(
    ops: &[&dyn Operation],
    asked: &Conversion,
    output: Destination,
    common: &Common,
    quiet: bool,
) -> Result<Outcome> {
    let items = &asked.items;
    for unread in &items.unread {
        print_error(&unread.error());
    }
    if !items.unread.is_empty() {
        return Ok(Outcome::SomeFailed);
    }
    let output = Destination {
        path: asked.naming.path().into(),
        ..output
    };
    let devices = Devices::new(common.device.choice);
    let resources = Resources {
        devices: &devices,
        budget: None,
        reading: common.reading,
        only_files: false,
        gpu_times: common.stats.is_some(),
    };
    let inputs = items
        .items
        .iter()
        .map(|item| (&*item.input, !item.may_be_stream));
    let inputs: Vec<_> = inputs.collect();
    let done = many_images(ops, &inputs, &output, &resources)?;
    let name = output.path.shown().into_owned();
    describe(&done, &name, common, quiet);
    if let Some(form) = &common.stats {
        let mut times = Report {
            title: console::printable(&format!("{} files → {name}: {}", inputs.len(), done.shape))
                .into(),
            timeline: Some(done.timeline.clone()),
            wall: done.timeline.wall(),
            ..report(ops, &devices)
        };
        times.files.files = 1;
        record(&mut times, &done, &name, common);
        form.deliver(&times)?;
    }
    Ok(done.outcome())
}
