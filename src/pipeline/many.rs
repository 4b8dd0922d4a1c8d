//! Many files into one stack: their pages one behind the other, with the range of all of them.

use super::Resources;
use super::destination::Destination;
use super::diagnostics::FileDiagnostics;
use super::done::{Done, Found};
use super::errors::{Sentences, unwritten};
use super::page::PageProcessor;
use super::stack::StackStatistics;
use crate::codec::{Reader, Writer};
use crate::exec::Executor;
use crate::files::{CHANGED, Passes, Source, Target};
use crate::metadata::Diagnostics;
use crate::ops::{Operation, chain};
use crate::timing::Timeline;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::Instant;

/// Where a file's pages come in the stack that many files become.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// Pages of the files before it.
    pub before: usize,
    /// Pages of all files.
    pub pages: usize,
}

/// An input: its path, and whether it must be a regular file.
pub type Input<'a> = (&'a Path, bool);

/// What goes from one file to the next.
struct Passed<'t> {
    writer: Option<Writer<'t>>,
    timeline: Timeline,
    device: String,
    diagnostics: FileDiagnostics,
    found: Found,
    damage: Option<String>,
}

/// The files, and what is done with their pages.
struct Many<'a> {
    ops: &'a [&'a dyn Operation],
    output: &'a Destination,
    target: &'a Target,
    resources: &'a Resources<'a>,
    passes: Passes,
}

/// Runs `ops` on every page of all inputs and writes them to `output`, one behind the other. Files are
/// opened one at a time, three times.
///
/// # Errors
/// The first file that cannot be read or processed, and an output that cannot be written; then there is
/// no output.
pub fn many_images(
    ops: &[&dyn Operation],
    inputs: &[Input],
    output: &Destination,
    resources: &Resources,
) -> Result<Done> {
    let target = output.create()?;
    let many = Many {
        ops,
        output,
        target: &target,
        resources,
        passes: Passes::default(),
    };
    let (length, mut done) = many.written(inputs)?;
    let since = Instant::now();
    let traffic = target.commit(length);
    let traffic = traffic.with_context(|| unwritten(&output.path))?;
    done.timeline.encoded(since, 0, &traffic);
    Ok(done)
}

impl<'a> Many<'a> {
    /// Writes all pages; the length of the file, and what was found.
    fn written(&self, inputs: &[Input]) -> Result<(u64, Done)> {
        let Many {
            ops,
            output,
            target,
            resources,
            ..
        } = *self;
        let mut pages = Vec::new();
        let mut counts = Vec::with_capacity(inputs.len());
        let mut format = output.format;
        for input in inputs {
            let sentences = self.sentences(input);
            let source = self.open(input)?;
            let reader = Reader::open(&source, &resources.reading);
            let reader = reader.with_context(|| sentences.unread())?;
            let surveys = reader.surveys().with_context(|| sentences.unread())?;
            let format = *format.get_or_insert(reader.format());
            for (shape, bytes) in &surveys {
                let wanted = (output.depth, output.auto_orient);
                chain::check(ops, *shape, wanted, |verb| sentences.not(verb))?;
                let made = chain::made(ops, shape.depth);
                let fits = output.check_fit(shape, made);
                fits.with_context(|| sentences.undone())?;
                (format.check_name(&output.path, shape))
                    .with_context(|| unwritten(&output.path))?;
                pages.push((output.grown(*shape, made), *bytes));
            }
            counts.push(surveys.len());
            self.check_unchanged(input, &source)?;
        }
        let unwritten = || unwritten(&output.path);
        let format = format
            .context("there is no input")
            .with_context(unwritten)?;
        let writer =
            Writer::new(format, &output.options, target, &pages).with_context(unwritten)?;
        let mut timeline = Timeline::default();
        timeline.gpu_times = resources.gpu_times;
        let mut passed = Passed {
            writer: Some(writer),
            timeline,
            device: String::new(),
            diagnostics: FileDiagnostics::new(None, pages.len()),
            found: Found::default(),
            damage: None,
        };
        let places: Vec<(&Input, Joined)> = inputs
            .iter()
            .zip(counts.iter().scan(0, |before, count| {
                let joined = Joined {
                    before: *before,
                    pages: pages.len(),
                };
                *before += count;
                Some(joined)
            }))
            .collect();
        let mut stack = StackStatistics::default();
        for step in StackStatistics::steps(ops) {
            for place in &places {
                passed = self.with(place, passed, |processor| stack.add(step, ops, processor))?;
            }
        }
        for (place, count) in places.iter().zip(&counts) {
            passed = self.with(place, passed, |processor| {
                let pages = processor.reader.pages().len();
                ensure!(
                    pages == *count,
                    "{}: {CHANGED}",
                    processor.sentences.unread()
                );
                (0..*count).try_for_each(|index| processor.page(ops, &stack, index))?;
                processor.tell_last_written();
                Ok(())
            })?;
        }
        let length = passed.writer.as_ref().map_or(0, Writer::length);
        let Diagnostics {
            warnings, notes, ..
        } = passed.diagnostics.finish();
        let done = Done {
            shape: pages[0].0,
            found: passed.found,
            warnings,
            notes,
            damage: passed.damage,
            device: passed.device,
            timeline: passed.timeline,
        };
        Ok((length, done))
    }

    fn sentences<'b>(&self, input: &Input<'b>) -> Sentences<'b> {
        Sentences {
            verb: chain::verb(self.ops),
            input: input.0,
        }
    }

    fn open(&self, input: &Input) -> Result<Source> {
        let source = match input.1 {
            true => Source::open_file(input.0),
            false => Source::open(input.0),
        };
        source.with_context(|| self.sentences(input).unread())
    }

    /// Ends a pass over an input.
    fn check_unchanged(&self, input: &Input, source: &Source) -> Result<()> {
        let unchanged = self.passes.check(input.0, source);
        unchanged.with_context(|| self.sentences(input).unread())
    }

    /// Calls `work` with the processor of a file.
    fn with(
        &self,
        (input, joined): &(&Input, Joined),
        passed: Passed<'a>,
        work: impl FnOnce(&mut PageProcessor) -> Result<()>,
    ) -> Result<Passed<'a>> {
        let sentences = self.sentences(input);
        let source = self.open(input)?;
        let reader = Reader::open(&source, &self.resources.reading);
        let mut executor = Executor::new(self.resources.devices, passed.timeline);
        executor.device = passed.device;
        let mut processor = PageProcessor {
            sentences,
            output: Some((self.output, Some(self.target))),
            source: &source,
            reader: reader.with_context(|| sentences.unread())?,
            writer: passed.writer,
            channel: 0,
            in_bands: self.output.low_memory,
            note: None,
            joined: Some(*joined),
            executor,
            diagnostics: passed.diagnostics,
            found: passed.found,
            since: Instant::now(),
            last: 0,
        };
        work(&mut processor)?;
        self.check_unchanged(input, &source)?;
        Ok(Passed {
            damage: passed.damage.or(processor.reader.damage()),
            writer: processor.writer,
            timeline: processor.executor.timeline,
            device: processor.executor.device,
            diagnostics: processor.diagnostics,
            found: processor.found,
        })
    }
}
