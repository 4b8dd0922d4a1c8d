//! The pages of a stack, each to a file of its own, with the statistics that they share.

use super::diagnostics::FileDiagnostics;
use super::errors::Sentences;
use super::job::{Input, Job, Output};
use super::stack::StackStatistics;
use super::{Account, Destination, Done, Resources, attempt, with_fallback};
use crate::formats::{Pages, Reader};
use crate::image::metadata::Place;
use crate::ops::{Operation, chain};
use crate::os::{Passes, Source};
use crate::timing::Timeline;
use anyhow::{Context, Result};
use std::path::Path;

/// An opened file whose pages are processed one by one, with the statistics that they share.
#[derive(Debug)]
pub struct OpenStack {
    source: Source,
    statistics: StackStatistics,
    pages: Vec<Place>,
    /// The time of measuring.
    timeline: Timeline,
}

impl OpenStack {
    /// Where the selected pages are.
    pub fn pages(&self) -> &[Place] {
        &self.pages
    }

    /// The time that measuring took.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }
}

/// Opens a file and measures what its pages share; results will be written as `template` says. `passes`
/// has the inputs as an earlier pass saw them.
///
/// # Errors
/// A file that cannot be read or processed.
pub fn open_stack(
    ops: &[&dyn Operation],
    input: &Path,
    template: &Destination,
    resources: &Resources,
    passes: Option<&Passes>,
) -> Result<OpenStack> {
    let sentences = Sentences {
        verb: chain::verb(ops),
        input,
    };
    let unread = || sentences.unread();
    let source = match resources.only_files {
        true => Source::open_file(input),
        false => Source::open(input),
    };
    let source = source.with_context(unread)?;
    // A scope of its own: at its end nothing borrows the source any more.
    let (pages, statistics, timeline) = {
        let reader = Reader::open(&source, &resources.reading).with_context(unread)?;
        let pages = reader.places();
        let mut timeline = Timeline::default();
        timeline.gpu_times = resources.gpu_times;
        let output = Output {
            destination: template,
            file: None,
            first_stretch: None,
        };
        let diagnostics = FileDiagnostics::new(None, pages.len());
        let mut job = Job::new(ops, Some(output), resources, timeline, diagnostics);
        let mut input = Input {
            sentences,
            source: &source,
            reader,
            joined: None,
        };
        let statistics = StackStatistics::measure(&mut job, &mut input)?;
        (pages, statistics, job.executor.timeline)
    };
    if let Some(passes) = passes {
        passes.check(input, &source).with_context(unread)?;
    }
    Ok(OpenStack {
        source,
        statistics,
        pages,
        timeline,
    })
}

/// Runs operations on one page of a stack, counted from 1 in its file, and writes it to a file of its own.
///
/// # Errors
/// As `one_image`'s.
pub fn stack_page(
    ops: &[&dyn Operation],
    (input, stack): (&Path, &OpenStack),
    page: usize,
    output: &Destination,
    resources: &Resources,
) -> Result<Done> {
    let mut reading = resources.reading;
    (reading.axes, reading.pages) = (None, Some(Pages::one(page)));
    let resources = &Resources {
        reading,
        ..*resources
    };
    let known = (input, Some(&stack.source), Some(&stack.statistics));
    let attempt = || attempt(ops, known, Some(output), resources, Account::NONE);
    with_fallback(attempt, Path::new(""), resources.devices)
}
