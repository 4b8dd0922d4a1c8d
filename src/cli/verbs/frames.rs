//! Frames of standard input, each a separate image: to standard output one after the other, or to numbered files.

use super::single::{describe, record, report};
use crate::batch::conversion::Conversion;
use crate::batch::format_of;
use crate::batch::naming::Naming;
use crate::batch::options::Options;
use crate::cli::{print_error, status};
use crate::engine::options::Common;
use crate::engine::{Destination, NamedSource, Resources, is_write_error, process_source};
use crate::formats::Headerless;
use crate::gpu::Devices;
use crate::ops::Operation;
use crate::os;
use crate::os::console;
use crate::os::name::Shown;
use crate::os::outcome::{Outcome, usage};
use anyhow::{Context, Result, anyhow, ensure};
use std::path::Path;
use std::time::Instant;

/// Whether standard input is processed frame by frame: if the results are numbered, or if the format of standard output has
/// single images.
///
/// # Errors
/// `{n}` in a name, for inputs other than standard input.
pub fn has_frames(
    asked: &Conversion,
    template: &Destination,
    raw: Option<&Headerless>,
    batch: bool,
) -> Result<bool> {
    let stdin = matches!(asked.items.items.as_slice(), [item] if item.input == Path::new("-"));
    match &asked.naming {
        Naming::Folder { pattern, .. } if pattern.has_number() => {
            ensure!(
                stdin && !batch,
                "{{n}} in --name numbers the frames of standard input and cannot be combined with batch options"
            );
            Ok(true)
        }
        Naming::File(path) if path == Path::new("-") && stdin && !batch => {
            let is_single = template
                .format
                .is_some_and(|format| !format.capabilities.pages);
            Ok(is_single && raw.is_none_or(|raw| raw.page_bytes().is_ok()))
        }
        Naming::Folder { .. } | Naming::File(_) => Ok(false),
    }
}

/// Runs operations on each frame as it arrives. A bad frame is reported, and the rest are still processed.
pub fn frames(
    ops: &[&dyn Operation],
    asked: &Conversion,
    template: &Destination,
    common: &Common,
    options: &Options,
) -> Result<Outcome> {
    let input = Path::new("-");
    let item = asked.items.items.first().context("empty input")?;
    let fixed = common.reading.raw.as_ref().map(Headerless::page_bytes);
    let mut frames = os::frames_from_stdin(fixed.transpose().map_err(usage)?)?;
    if let Naming::Folder { folder, .. } = &asked.naming {
        os::make_folder(folder, template.sync)
            .map_err(|error| anyhow!("cannot create the folder {}: {error}", folder.shown()))?;
    }
    let devices = Devices::new(common.device.choice);
    let budget = options.budget();
    let resources = Resources {
        budget: budget.as_ref(),
        gpu_times: common.stats.is_some(),
        ..Resources::new(&devices, common.reading)
    };
    let begun = Instant::now();
    let mut times = report(ops, &devices);
    let mut outcome = Outcome::Done;
    for number in 1.. {
        let name = match number {
            1 => "-".into(),
            _ => format!("frame {number} of standard input"),
        };
        let source = frames.next_frame().context("cannot read standard input");
        let done = match source {
            Ok(None) => break,
            Ok(Some(source)) => {
                let path = asked.naming.frame(item, number)?;
                let destination = Destination {
                    format: format_of(template, &path),
                    path,
                    ..template.clone()
                };
                let input = NamedSource {
                    path: input,
                    source: &source,
                };
                process_source(ops, input, Some(&destination), &resources)
            }
            // The start of the next frame is unknown.
            Err(error) => {
                print_error(&with_frame_number(error, number));
                times.files.failed += 1;
                outcome = Outcome::SomeFailed;
                break;
            }
        };
        times.files.files += 1;
        match done {
            Ok(done) => {
                describe(&done, &name, common, options.verbosity.quiet);
                record(&mut times, &done, &name, common);
                if times.files.files == 1 {
                    times.title = format!("{}: {}", times.title, done.shape);
                    times.timeline = Some(done.timeline.clone());
                }
                if done.damage.is_some() {
                    outcome = Outcome::SomeFailed;
                }
            }
            // The other frames would fail in the same way.
            Err(error) if error.is::<console::ReaderGone>() || status(&error) != 1 => {
                return Err(error);
            }
            Err(error) => {
                // If the reader of the pipe is gone, later frames cannot be written either.
                let reader_is_gone = asked.naming.path() == input && is_write_error(&error, input);
                print_error(&with_frame_number(error, number));
                times.files.failed += 1;
                outcome = Outcome::SomeFailed;
                if reader_is_gone {
                    break;
                }
            }
        }
    }
    if let Some(form) = &common.stats {
        if times.files.files != 1 {
            times.timeline = None;
        }
        times.stream = true;
        times.peaks = devices.peaks();
        times.wall = begun.elapsed();
        form.deliver(&times)?;
    }
    Ok(outcome)
}

/// The error of a frame; the only image of a stream has no number.
fn with_frame_number(error: anyhow::Error, number: usize) -> anyhow::Error {
    match number {
        1 => error,
        _ => error.context(format!("frame {number}")),
    }
}
