//! Many files into one stack: their pages one after the other, with one range for all of them.

use super::destination::Destination;
use super::diagnostics::FileDiagnostics;
use super::done::Done;
use super::errors::{Sentences, unwritten};
use super::job::{self, Job, Joined, Output};
use super::stack::StackStatistics;
use super::{Resources, check_page};
use crate::formats::{Reader, Writer};
use crate::ops::{Operation, chain};
use crate::os::{CHANGED, Passes, Source};
use crate::timing::Timeline;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// An input: its path, and whether it must be a regular file.
pub type Input<'a> = (&'a Path, bool);

/// Runs `ops` on every page of all inputs and writes them to `output`, one after the other. Files are opened one at a time:
/// to survey them, for each statistic that pages share, and to process them.
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
    let files = Files {
        verb: chain::verb(ops),
        resources,
        passes: Passes::default(),
    };
    let unwritten = || unwritten(&output.path);
    let mut pages = Vec::new();
    let mut counts = Vec::with_capacity(inputs.len());
    let mut format = output.format;
    for input in inputs {
        files.visit(input, None, |file| {
            let sentences = file.sentences;
            let surveys = file.reader.surveys().with_context(|| sentences.unread())?;
            let format = *format.get_or_insert(file.reader.format());
            for (shape, bytes) in &surveys {
                check_page(ops, *shape, Some(output), sentences)?;
                (format.check_name(&output.path, shape)).with_context(unwritten)?;
                pages.push((
                    output.grown(*shape, chain::output_depth(ops, shape.depth)),
                    *bytes,
                ));
            }
            counts.push(surveys.len());
            Ok(())
        })?;
    }
    let format = format
        .context("there is no input")
        .with_context(unwritten)?;
    let writer = Writer::new(format, &output.options, &target, &pages).with_context(unwritten)?;
    let written = Output {
        destination: output,
        file: Some((&target, writer)),
        first_stretch: None,
    };
    let mut timeline = Timeline::default();
    timeline.gpu_times = resources.gpu_times;
    let diagnostics = FileDiagnostics::new(None, pages.len());
    let mut job = Job::new(ops, Some(written), resources, timeline, diagnostics);
    let before = counts.iter().scan(0, |before, count| {
        let joined = Joined {
            before: *before,
            pages: pages.len(),
        };
        *before += count;
        Some(joined)
    });
    let joined: Vec<Joined> = before.collect();
    let mut shared = StackStatistics::default();
    for step in StackStatistics::steps(ops) {
        for (input, joined) in inputs.iter().zip(&joined) {
            files.visit(input, Some(*joined), |file| {
                shared.add(step, &mut job, file)
            })?;
        }
    }
    let mut damage = None;
    for ((input, joined), count) in inputs.iter().zip(&joined).zip(&counts) {
        files.visit(input, Some(*joined), |file| {
            let pages = file.reader.pages().len();
            ensure!(pages == *count, "{}: {CHANGED}", file.sentences.unread());
            for index in 0..pages {
                job.run_page(file, &shared, index)?;
            }
            damage = damage.take().or(file.reader.damage());
            Ok(())
        })?;
    }
    job.record_writing();
    let (mut done, length) = job.finish(pages[0].0, damage);
    let traffic = target.commit(length.unwrap_or(0)).with_context(unwritten)?;
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
        input: &Input,
        joined: Option<Joined>,
        work: impl FnOnce(&mut job::Input) -> Result<()>,
    ) -> Result<()> {
        let sentences = Sentences {
            verb: self.verb,
            input: input.0,
        };
        let unread = || sentences.unread();
        let source = match input.1 {
            true => Source::open_file(input.0),
            false => Source::open(input.0),
        };
        let source = source.with_context(unread)?;
        let reader = Reader::open(&source, &self.resources.reading).with_context(unread)?;
        let mut file = job::Input {
            sentences,
            source: &source,
            reader,
            joined,
        };
        work(&mut file)?;
        drop(file);
        self.passes.check(input.0, &source).with_context(unread)
    }
}
