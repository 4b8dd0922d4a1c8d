//! `--split`: each page of a stack to a file of its own.

use super::single::{describe, record, report};
use crate::batch::conversion::Conversion;
use crate::batch::naming::Numbers;
use crate::batch::options::Options;
use crate::batch::{format_of, item::Item};
use crate::cli::{print_error, status};
use crate::engine::options::Common;
use crate::engine::{Destination, Done, OpenStack, Resources, open_stack, process_stack_page};
use crate::gpu::Devices;
use crate::ops::Operation;
use crate::os;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::Outcome;
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::time::Instant;

/// Runs operations on each page of each input; pages share their range as in a stack. A bad file or page
/// is named, and the others are done.
pub fn split(
    ops: &[&dyn Operation],
    asked: &Conversion,
    template: &Destination,
    common: &Common,
    options: &Options,
) -> Result<Outcome> {
    let (budget, quiet) = (options.budget(), options.verbosity.quiet);
    let devices = Devices::new(common.device.choice);
    let begun = Instant::now();
    let mut times = report(ops, &devices);
    for unread in &asked.items.unread {
        print_error(&unread.error());
        times.files.failed += 1;
    }
    for item in &asked.items.items {
        let resources = Resources {
            devices: &devices,
            budget: budget.as_ref(),
            reading: common.reading,
            require_regular_file: !item.may_be_stream,
            position: item.position,
            gpu_times: common.stats.is_some(),
        };
        let passes = asked.items.passes.as_ref();
        let each = open_stack(ops, &item.input, template, &resources, passes).and_then(|stack| {
            times.totals.add(stack.timeline());
            for warning in stack.warnings().iter().filter(|_| !quiet) {
                let name = item.input.shown();
                console::tell(&format!("gpuimg: warning: {name}: {}", warning.text));
            }
            let mut tell = |done: Result<Done>, name: String| match done {
                Ok(done) => {
                    describe(&done, &name, common, quiet);
                    record(&mut times, &done, &name, common);
                    Ok(())
                }
                // What would fail for all others too.
                Err(error) if is_fatal(&error) => Err(error),
                Err(error) => {
                    print_error(&error);
                    times.files.failed += 1;
                    Ok(())
                }
            };
            pages(ops, item, &stack, asked, template, &resources, &mut tell)
        });
        match each {
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                print_error(&error);
                times.files.failed += 1;
            }
            Ok(()) => {}
        }
    }
    let failed = times.files.failed;
    if let Some(form) = &common.stats {
        times.files.files = times.files.done + failed;
        times.peaks = devices.peaks();
        times.wall = begun.elapsed();
        form.deliver(&times)?;
    }
    Ok(match failed {
        0 => Outcome::Done,
        _ => Outcome::SomeFailed,
    })
}

fn is_fatal(error: &anyhow::Error) -> bool {
    error.is::<console::ReaderGone>() || status(error) != 1
}

/// The pages of one input, one after the other.
fn pages(
    ops: &[&dyn Operation],
    item: &Item,
    stack: &OpenStack,
    asked: &Conversion,
    template: &Destination,
    resources: &Resources,
    tell: &mut dyn FnMut(Result<Done>, String) -> Result<()>,
) -> Result<()> {
    let mut known: HashMap<_, usize> = HashMap::new();
    let mut paths = Vec::with_capacity(stack.pages().len());
    for place in stack.pages() {
        let numbers = Numbers {
            frame: 1,
            place: *place,
        };
        let path = asked.naming.numbered(item, &numbers)?;
        if let Some(other) = known.insert(path.clone(), place.page) {
            bail!(
                "cannot split {}: pages {other} and {} would both be named {} (use {{page}} in --name to distinguish them)",
                item.input.shown(),
                place.page,
                path.shown()
            );
        }
        paths.push(path);
    }
    for (place, path) in stack.pages().iter().zip(paths) {
        let destination = Destination {
            format: format_of(template, &path),
            path,
            ..template.clone()
        };
        destination.make_folder().with_context(|| {
            let folder = os::parent(&destination.path);
            format!("cannot create the folder {}", folder.shown())
        })?;
        let done = process_stack_page(ops, &item.input, stack, place.page, &destination, resources);
        tell(done, format!("{}, page {}", item.input.shown(), place.page))?;
    }
    Ok(())
}
