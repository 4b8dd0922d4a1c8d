//! What a job carries from page to page, and from file to file: the operations, the output, the executor and its clock, and
//! the results so far. `page.rs` processes a page of an input for a job.

use super::Resources;
use super::destination::Destination;
use super::diagnostics::FileDiagnostics;
use super::done::{Done, Results};
use super::errors::{Messages, cannot_write};
use super::plan::{DecoderWays, FilePlan, PageHeader, Plan, plan};
use super::stack::SharedStatistics;
use crate::engine::executor::Executor;
use crate::formats::format::Field;
use crate::formats::{Reader, Writer};
use crate::image::Shape;
use crate::image::metadata::{Diagnostics, Stretch};
use crate::ops::Operation;
use crate::os::{Source, Target};
use anyhow::{Context, Result, ensure};

/// A job: operations on the pages of one or several inputs.
pub struct Job<'a> {
    /// The operations, in order.
    pub ops: &'a [&'a dyn Operation],
    /// Where the result goes; `None` for numbers.
    pub output: Option<Output<'a>>,
    /// Whether pages are processed in bands of rows, where that is possible.
    pub row_bands: bool,
    /// Runs the operations, and keeps the times.
    pub executor: Executor<'a>,
    /// The diagnostics of all pages so far.
    pub diagnostics: FileDiagnostics,
    /// The numbers that the pages gave so far.
    pub results: Results,
    /// The plan of the first page, as text.
    pub first_plan: String,
}

/// The output of a job.
pub struct Output<'a> {
    /// Where it goes, and how it is written.
    pub destination: &'a Destination,
    /// Its file, and the encoder; `None` where pages are only measured.
    pub file: Option<(&'a Target, Writer<'a>)>,
    /// How the values of the first page were scaled, as its metadata record; `None` before the first page.
    pub first_stretch: Option<Option<Stretch>>,
}

/// An input whose pages are processed.
pub struct Input<'a> {
    /// The messages about its errors.
    pub messages: Messages<'a>,
    /// Its bytes.
    pub source: &'a Source,
    /// Its decoder.
    pub reader: Reader<'a>,
    /// The position of its pages in the output, if that has the pages of several inputs.
    pub position: Option<OutputPosition>,
}

/// The position of a file's pages in the output that several files become.
#[derive(Clone, Copy, Debug)]
pub struct OutputPosition {
    /// Pages of the files before it.
    pub before: usize,
    /// Pages of all files.
    pub pages: usize,
}

impl<'a> Job<'a> {
    /// A job on inputs with this number of pages, none of which has been processed yet.
    pub fn new(
        ops: &'a [&'a dyn Operation],
        output: Option<Output<'a>>,
        resources: &Resources<'a>,
        pages: usize,
    ) -> Job<'a> {
        let low_memory = |output: &Output| output.destination.low_memory;
        Job {
            ops,
            row_bands: output.as_ref().is_some_and(low_memory),
            output,
            executor: Executor::new(resources.devices, resources.timeline()),
            diagnostics: FileDiagnostics::new(pages),
            results: Results::default(),
            first_plan: String::new(),
        }
    }

    /// The plan for the page at `index` among the selected pages of an input, which becomes the decoder's current page.
    ///
    /// # Errors
    /// A page whose header cannot be read, or that the operations can neither keep nor change.
    pub fn plan<'p>(
        &self,
        input: &mut Input,
        shared: &'p SharedStatistics,
        index: usize,
    ) -> Result<Plan<'p>>
    where
        'a: 'p,
    {
        let header = input
            .header(index)
            .with_context(|| input.messages.cannot_read())?;
        self.plan_of(header, input, shared)
    }

    /// The plan for a page with this header.
    ///
    /// # Errors
    /// A page that the operations can neither keep nor change.
    pub fn plan_of<'p>(
        &self,
        header: PageHeader,
        input: &Input,
        shared: &'p SharedStatistics,
    ) -> Result<Plan<'p>>
    where
        'a: 'p,
    {
        let file = FilePlan {
            ops: self.ops,
            shared,
            output: self.output.as_ref().map(|output| output.destination),
            pages: input.output_pages(),
            whole: input.position.is_none() && input.reader.is_whole(),
            row_bands: self.row_bands,
        };
        let plan = plan(header, &file, self.writer(), self.executor.devices());
        plan.with_context(|| input.messages.cannot_process())
    }

    /// The encoder of the output.
    pub fn writer(&self) -> Option<&Writer<'a>> {
        let (_, writer) = self.output.as_ref()?.file.as_ref()?;
        Some(writer)
    }

    /// Records the time of writing the page before, if there is one.
    pub fn record_writing(&mut self) {
        if self.executor.timeline.unwritten == 0 {
            return;
        }
        let file = self.output.as_ref().and_then(|output| output.file.as_ref());
        if let Some((target, _)) = file {
            self.executor.timeline.encoded(&target.traffic.take());
        }
    }

    /// What was done, and the length of the output.
    pub fn finish(self, first: Shape, damage: Option<String>) -> (Done, Option<u64>) {
        let length = self.writer().map(Writer::length);
        let (warnings, notes) = self.diagnostics.finish();
        let done = Done {
            shape: first,
            results: self.results,
            warnings,
            notes,
            damage,
            device: self.executor.device_line,
            plan: self.first_plan,
            timeline: self.executor.timeline,
        };
        (done, length)
    }
}

impl Output<'_> {
    /// Refuses an output that cannot record how its values were scaled.
    ///
    /// # Errors
    /// The formats that can.
    pub fn check_stretch_field(&self) -> Result<()> {
        let Some((_, writer)) = &self.file else {
            return Ok(());
        };
        let format = writer.format();
        let check = || {
            ensure!(
                format.capabilities.fields.contains(&Field::Stretch),
                "{} cannot store the range of --undo: use PNG, TIFF or FITS",
                format.name
            );
            Ok(())
        };
        check().with_context(|| cannot_write(&self.destination.path))
    }

    /// Refuses pages that record another scaling than the first one, if the format has one place for all of them.
    ///
    /// # Errors
    /// A page that records another scaling than the first.
    pub fn check_same_stretch(
        &mut self,
        stretch: Option<Stretch>,
        position: Option<OutputPosition>,
    ) -> Result<()> {
        let Some((_, writer)) = &self.file else {
            return Ok(());
        };
        let format = writer.format();
        let fields = format.capabilities.fields;
        if !fields.contains(&Field::Records) || !fields.contains(&Field::Stretch) {
            return Ok(());
        }
        let first = *self.first_stretch.get_or_insert(stretch);
        let check = || {
            ensure!(
                first == stretch && (stretch.is_none() || position.is_none()),
                "{} can store only one range for --undo, but each page may have its own: write TIFF",
                format.name
            );
            Ok(())
        };
        check().with_context(|| cannot_write(&self.destination.path))
    }
}

impl Input<'_> {
    /// Pages of the output.
    fn output_pages(&self) -> usize {
        let own = self.reader.pages().len();
        self.position.map_or(own, |position| position.pages)
    }

    /// The number of a page in the output or, if that has the pages of this input alone, in the file; counted from 1.
    pub fn page_number(&self, header: &PageHeader) -> usize {
        self.position.map_or(0, |position| position.before) + header.page + 1
    }

    /// The header of the page at `index` among the selected pages, which becomes the decoder's current page.
    fn header(&mut self, index: usize) -> Result<PageHeader> {
        self.reader.turn_to(index)?;
        let mut diagnostics = Diagnostics::default();
        let metadata = self.reader.metadata(&mut diagnostics)?;
        Ok(PageHeader {
            page: self.reader.pages()[index],
            channel: self.reader.channel(index),
            shape: self.reader.shape(),
            format: self.reader.format(),
            metadata,
            diagnostics,
            decoder: DecoderWays {
                packed: self.reader.gives_packed(),
                blocks: self.reader.gives_blocks(),
                rows: self.reader.gives_rows(),
                file_bytes: self.source.len(),
            },
        })
    }
}
