//! Many files into one stack: their pages one after the other, with one range for all of them.

use super::destination::Destination;
use super::done::Done;
use super::errors::{Messages, cannot_write};
use super::job::{self, Job, Output, OutputPosition};
use super::stack::SharedStatistics;
use super::{Resources, check_page, with_fallback};
use crate::formats::{PageSurvey, Reader, Writer};
use crate::ops::{Operation, chain};
use crate::os::name::Shown;
use crate::os::{CHANGED, Passes, Source};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// An input of a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackInput<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Whether it must be a regular file.
    pub must_be_regular: bool,
}

/// Runs `ops` on every page of all inputs and writes them to `output`, one after the other. Files are opened one at a time:
/// to survey them, for each statistic that pages share, and to process them. If `auto` chose a GPU and it fails, all of it is
/// done again on the CPU.
///
/// # Errors
/// The first file that cannot be read or processed, and an output that cannot be written; then there is
/// no output.
pub fn process_into_stack(
    ops: &[&dyn Operation],
    inputs: &[StackInput],
    output: &Destination,
    resources: &Resources,
) -> Result<Done> {
    let attempt = || process_once(ops, inputs, output, resources);
    let can_repeat = inputs.iter().all(|input| input.must_be_regular);
    with_fallback(attempt, can_repeat, resources.devices)
}

fn process_once(
    ops: &[&dyn Operation],
    inputs: &[StackInput],
    output: &Destination,
    resources: &Resources,
) -> Result<Done> {
    let target = output.create()?;
    let files = Files {
        verb: chain::verb(ops),
        resources,
        passes: Passes::default(),
    };
    let cannot_write = || cannot_write(&output.path);
    let mut pages = Vec::new();
    let mut counts = Vec::with_capacity(inputs.len());
    let mut skipped = Vec::new();
    let mut format = output.format;
    for input in inputs {
        files.visit(input, None, |file| {
            let messages = file.messages;
            let surveys = file.reader.surveys();
            let surveys = surveys.with_context(|| messages.cannot_read())?;
            let left_out = file.reader.left_out();
            skipped.extend(left_out.map(|text| format!("{}: {text}", input.path.shown())));
            let format = *format.get_or_insert(file.reader.format());
            for page in &surveys {
                check_page(ops, page.shape, Some(output), messages)?;
                ((format.check_name)(&output.path, &page.shape)).with_context(cannot_write)?;
                let output_depth = chain::output_depth(ops, page.shape.depth);
                pages.push(PageSurvey {
                    shape: output.largest_output(page.shape, output_depth),
                    ..*page
                });
            }
            counts.push(surveys.len());
            Ok(())
        })?;
    }
    let format = format
        .context("there is no input")
        .with_context(cannot_write)?;
    let writer =
        Writer::new(format, &output.options, &target, &pages).with_context(cannot_write)?;
    let written = Output {
        destination: output,
        file: Some((&target, writer)),
        first_stretch: None,
    };
    let mut job = Job::new(ops, Some(written), resources, pages.len());
    for warning in skipped {
        job.diagnostics.add_about_file(Some(warning));
    }
    let before = counts.iter().scan(0, |before, count| {
        let position = OutputPosition {
            before: *before,
            pages: pages.len(),
        };
        *before += count;
        Some(position)
    });
    let position: Vec<OutputPosition> = before.collect();
    let mut shared = SharedStatistics::default();
    for step in SharedStatistics::steps(ops) {
        for (input, position) in inputs.iter().zip(&position) {
            files.visit(input, Some(*position), |file| {
                shared.add(step, &mut job, file)
            })?;
        }
    }
    let mut damage = None;
    for ((input, position), count) in inputs.iter().zip(&position).zip(&counts) {
        files.visit(input, Some(*position), |file| {
            let pages = file.reader.pages().len();
            ensure!(
                pages == *count,
                "{}: {CHANGED}",
                file.messages.cannot_read()
            );
            for index in 0..pages {
                job.run_page(file, &shared, index)?;
            }
            damage = damage.take().or(file.reader.damage());
            Ok(())
        })?;
    }
    job.record_writing();
    let (mut done, length) = job.finish(pages[0].shape, damage);
    let traffic = target
        .commit(length.unwrap_or(0))
        .with_context(cannot_write)?;
    done.timeline.encoded(&traffic);
    Ok(done)
}

/// The inputs, which are opened several times and must not change meanwhile.
struct Files<'a> {
    verb: &'static str,
    resources: &'a Resources<'a>,
    passes: Passes,
}

impl Files<'_> {
    /// Opens a file, calls `work` with it, and checks that it is the one that an earlier pass saw.
    fn visit(
        &self,
        input: &StackInput,
        position: Option<OutputPosition>,
        work: impl FnOnce(&mut job::Input) -> Result<()>,
    ) -> Result<()> {
        let messages = Messages {
            verb: self.verb,
            input: input.path,
        };
        let cannot_read = || messages.cannot_read();
        let source = if input.must_be_regular {
            Source::open_file(input.path)
        } else {
            Source::open(input.path)
        };
        let source = source.with_context(cannot_read)?;
        let reader = Reader::open(&source, &self.resources.reading).with_context(cannot_read)?;
        let mut file = job::Input {
            messages,
            source: &source,
            reader,
            position,
        };
        work(&mut file)?;
        drop(file);
        self.passes
            .check(input.path, &source)
            .with_context(cannot_read)
    }
}
