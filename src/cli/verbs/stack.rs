//! `--stack`: all inputs into one file.

use super::single::{describe, record, report};
use crate::batch::combined_report::{CombinedOutput, CombinedReport};
use crate::batch::conversion::Conversion;
use crate::batch::options::Options;
use crate::cli::print_error;
use crate::engine::options::Common;
use crate::engine::{Destination, Resources, StackInput, process_into_stack};
use crate::gpu::Devices;
use crate::ops::Operation;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use crate::timing::Report;
use anyhow::Result;

/// Runs operations on every page of all inputs, and writes one stack. Where an input fails, nothing is
/// written.
pub fn stack(
    ops: &[&dyn Operation],
    asked: &Conversion,
    output: Destination,
    common: &Common,
    options: &Options,
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
    let combined = CombinedReport::open(
        options.report.as_ref(),
        &CombinedOutput {
            path: &output.path,
            overwrite: output.overwrite,
            inputs: items,
            reads: &asked.reads,
            command: &common.typed,
            reading: &common.reading,
        },
    )?;
    let devices = Devices::new(common.device.choice);
    let budget = options.budget();
    let resources = Resources {
        budget: budget.as_ref(),
        gpu_times: common.stats.is_some(),
        ..Resources::new(&devices, common.reading)
    };
    let inputs = items.items.iter().map(|item| StackInput {
        path: &item.input,
        position: item.position,
        must_be_regular: !item.may_be_stream,
    });
    let inputs: Vec<_> = inputs.collect();
    let done = process_into_stack(ops, &inputs, &output, &resources)?;
    let name = output.path.shown().into_owned();
    describe(&done, &name, common, options.verbosity.quiet);
    if let Some(form) = &common.stats {
        let mut times = Report {
            title: console::printable(&format!("{} files → {name}: {}", inputs.len(), done.shape))
                .into(),
            plan: done.plan.clone(),
            timeline: Some(done.timeline.clone()),
            wall: done.timeline.wall(),
            ..report(ops, &devices)
        };
        times.files.files = 1;
        record(&mut times, &done, &name, common);
        form.deliver(&times)?;
    }
    let outcome = done.outcome();
    if let Some(report) = combined {
        report.add(done)?;
    }
    Ok(outcome)
}
