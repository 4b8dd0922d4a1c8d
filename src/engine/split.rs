//! Writes each page of a stack to a file of its own. The pages share statistics, which are measured first.

use super::done::Warning;
use super::errors::Messages;
use super::job::{Input, Job, Output};
use super::shared::SharedStatistics;
use super::{
    Destination, Done, HasWarnings, NamedSource, Resources, page_bytes, process_once, with_fallback,
};
use crate::formats::{Pages, Reader};
use crate::image::metadata::Place;
use crate::ops::{Operation, Position, chain};
use crate::os::{Passes, Source};
use crate::timing::{CodecClock, Timeline};
use anyhow::{Context, Result};
use std::path::Path;

/// An opened file whose pages are processed one by one, and the statistics that the pages share.
#[derive(Debug)]
pub struct OpenStack {
    source: Source,
    statistics: SharedStatistics,
    pages: Vec<Place>,
    /// Warnings about the file.
    warnings: Vec<Warning>,
    /// The time that measuring took.
    timeline: Timeline,
}

impl HasWarnings for OpenStack {
    fn add_warning(&mut self, text: String) {
        self.warnings.push(Warning { text, hint: None });
    }
}

impl OpenStack {
    /// The selected pages: the number of each in the file, and its position on the axes.
    pub fn pages(&self) -> &[Place] {
        &self.pages
    }

    /// Warnings about the file; those about a page come with the page.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The time that measuring took.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }
}

/// Opens a file and measures the statistics that its pages share. `template` says how results will be written. `passes` has
/// the identities of the inputs in an earlier pass.
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
    let measure = || measure_stack(ops, input, template, resources, passes);
    with_fallback(measure, input != Path::new("-"), resources.devices)
}

fn measure_stack(
    ops: &[&dyn Operation],
    input: &Path,
    template: &Destination,
    resources: &Resources,
    passes: Option<&Passes>,
) -> Result<OpenStack> {
    let messages = Messages {
        verb: chain::verb(ops),
        input,
    };
    let cannot_read = || messages.cannot_read();
    let source = resources.open(input).with_context(cannot_read)?;
    let file = NamedSource {
        path: input,
        source: &source,
    };
    let MeasuredPages {
        pages,
        statistics,
        warnings,
        timeline,
    } = measure_pages(ops, file, template, resources)?;
    if let Some(passes) = passes {
        passes.check(input, &source).with_context(cannot_read)?;
    }
    Ok(OpenStack {
        source,
        statistics,
        pages,
        warnings,
        timeline,
    })
}

/// The pages of a file, and the statistics that they share.
struct MeasuredPages {
    pages: Vec<Place>,
    statistics: SharedStatistics,
    warnings: Vec<Warning>,
    timeline: Timeline,
}

fn measure_pages(
    ops: &[&dyn Operation],
    NamedSource { path, source }: NamedSource,
    template: &Destination,
    resources: &Resources,
) -> Result<MeasuredPages> {
    let messages = Messages {
        verb: chain::verb(ops),
        input: path,
    };
    let cannot_read = || messages.cannot_read();
    let mut opening = CodecClock::default();
    let reader = opening.run(|| Reader::open(source, &resources.reading));
    let reader = reader.with_context(cannot_read)?;
    let pages = reader.places();
    let page_bytes = page_bytes(&reader, ops, Some(template)).with_context(cannot_read)?;
    // Checked before the reservation, which reduces the free memory.
    let is_too_large = resources.is_too_large(page_bytes);
    let _reservation = resources.reserve(page_bytes);
    let output = Output::measuring(template);
    let mut job = Job::new(ops, Some(output), resources, pages.len());
    job.row_bands |= is_too_large;
    job.diagnostics.add_about_file(reader.left_out());
    let mut input = Input {
        messages,
        source,
        reader,
        opening,
        position: None,
    };
    let statistics = job.measure_stack(&mut input)?;
    let (warnings, _) = job.diagnostics.finish();
    Ok(MeasuredPages {
        pages,
        statistics,
        warnings,
        timeline: job.executor.timeline,
    })
}

/// Runs operations on one page of a stack and writes the result to a file of its own. `page` is its number in the stack's file,
/// counted from 1.
///
/// # Errors
/// As `process_file`.
pub fn process_stack_page(
    ops: &[&dyn Operation],
    input: &Path,
    stack: &OpenStack,
    page: usize,
    output: &Destination,
    resources: &Resources,
) -> Result<Done> {
    let mut reading = resources.reading;
    (reading.axes, reading.pages) = (None, Some(Pages::one(page)));
    let is_only_input = |position: &Position| position.count == 1;
    let resources = &Resources {
        reading,
        // A page of one of several stacks has no position among all images.
        position: resources
            .position
            .filter(|position| is_only_input(position) || stack.pages.len() == 1),
        ..*resources
    };
    let input = NamedSource {
        path: input,
        source: &stack.source,
    };
    let shared = Some(&stack.statistics);
    let attempt = || process_once(ops, input, shared, Some(output), resources);
    with_fallback(attempt, true, resources.devices)
}
