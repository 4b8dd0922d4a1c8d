//! The page processor: takes a page from the decoder to the encoder. `PageProcessor::page` has the
//! steps in their order; each is a file below.

mod bands;
mod depth;
mod fit;
mod metadata;
mod note;
mod operate;
mod outliers;
mod pieces;
mod read;
mod upright;
mod write;

use super::destination::Destination;
use super::diagnostics::FileDiagnostics;
use super::done::{Found, FoundPage};
use super::errors::Sentences;
use super::many::Joined;
use super::stack::StackStatistics;
use crate::codec::{Reader, Writer};
use crate::exec::{Executor, Pixels, Task};
use crate::files::{Source, Target};
use crate::image::Shape;
use crate::metadata::{Diagnostics, Effect, Metadata, Stretch};
use crate::ops::sum::Totals;
use crate::ops::{Executed, OpResult, Operation, SampleTypes, Statistics};
use anyhow::{Context, Result};
use outliers::Spread;
use std::time::Instant;

/// A page between decoder and encoder.
#[derive(Debug)]
pub struct Page {
    /// The pixels, in host memory, in GPU memory, or deflated.
    pub pixels: Pixels,
    /// The page's metadata.
    pub metadata: Metadata,
    /// The page's index in the file, counted from 0.
    pub index: usize,
}

/// What was made of a page.
struct Made {
    /// Its shape as it was read, and turned upright and widened.
    read: Shape,
    prepared: Shape,
    /// The shape of what the last operation was given, and that of the result, before `--fit`.
    from: Shape,
    to: Shape,
    stretch: Option<Stretch>,
    /// Whether its file named a largest value.
    had_maxval: bool,
}

/// The state that all pages of one file share while they are processed in order.
pub struct PageProcessor<'a, 't> {
    /// The sentences about its errors.
    pub sentences: Sentences<'a>,
    /// The output, unless the last operation gives numbers; without its file where nothing is written.
    pub output: Option<(&'t Destination, Option<&'t Target>)>,
    /// The input's bytes.
    pub source: &'a Source,
    /// The input's decoder.
    pub reader: Reader<'a>,
    /// The output's encoder.
    pub writer: Option<Writer<'t>>,
    /// The place of the current page on the axis of channels, from 0.
    pub channel: usize,
    /// Whether pages are processed in bands of rows, where that is possible.
    pub in_bands: bool,
    /// What the first page says of how its values were stretched; `None` before it.
    pub note: Option<Option<Stretch>>,
    /// Where the pages come in the output, if it has those of other files too.
    pub joined: Option<Joined>,
    /// The executor that runs operations.
    pub executor: Executor<'a>,
    /// The diagnostics of all pages so far.
    pub diagnostics: FileDiagnostics,
    /// The numbers that the pages gave so far.
    pub found: Found,
    /// When the current codec step began.
    pub since: Instant,
    /// Bytes of the last page's samples; the time of writing them is recorded when the file is
    /// complete.
    pub last: u64,
}

impl PageProcessor<'_, '_> {
    /// Records the time of writing the last page of a file that others follow.
    pub fn tell_last_written(&mut self) {
        write::tell_written(self);
    }

    /// The number of pages of the output.
    fn pages(&self) -> usize {
        let own = self.reader.pages().len();
        self.joined.map_or(own, |joined| joined.pages)
    }

    /// Processes the page at `index` among the selected pages, from decoding to encoding.
    ///
    /// # Errors
    /// A page that cannot be read, processed or written; the sentence names the file.
    pub fn page(
        &mut self,
        ops: &[&dyn Operation],
        stack: &StackStatistics,
        index: usize,
    ) -> Result<()> {
        let before = self.joined.map_or(0, |joined| joined.before);
        if index > 0 {
            write::tell_written(self);
        }
        self.executor.timeline.page = Some(self.reader.pages()[index] + 1);
        self.channel = self.reader.channel(index);
        let mut diagnostics = Diagnostics::default();
        if let Some((done, metadata)) = pieces::run(self, ops, stack, index, &mut diagnostics) {
            let (shape, index) = (self.reader.shape(), self.reader.pages()[index]);
            diagnostics.warnings.extend(done.summary.warnings);
            self.keep(done.result, index, metadata.signed)?;
            let page = FoundPage {
                page: before + index + 1,
                shape,
                signed: metadata.signed,
                ranges: done.summary.ranges,
            };
            self.finish(page, diagnostics);
            return Ok(());
        }
        if let Some(page) = bands::run(self, ops, stack, index, &mut diagnostics)? {
            self.finish(page, diagnostics);
            return Ok(());
        }
        let page = read::page(self, ops, index, &mut diagnostics)?;
        let read = page.pixels.shape();
        let Page {
            mut metadata,
            index,
            ..
        } = page;
        let pixels = upright::turn(self, page.pixels, &metadata)?;
        let pixels = depth::widen(self, pixels, &metadata, ops)?;
        let warning = operate::warning(ops, &metadata, &read);
        let warning = warning.with_context(|| self.sentences.undone())?;
        diagnostics.warnings.extend(warning);
        let prepared = pixels.shape();
        let tasks = operate::tasks(self, ops, stack, &metadata, (read, prepared));
        let (signed, had_maxval) = (metadata.signed, metadata.maxval.is_some());
        // The last operation may get other samples than the file has.
        let counted_signed = (tasks.last()).map_or(signed, |task| task.types.read.signed);
        diagnostics
            .warnings
            .extend(operate::unsuited(&tasks, &pixels));
        let spread = Spread::measure(&tasks, &pixels);
        let Executed { result, summary } = operate::run(self, &tasks, pixels)?;
        diagnostics.warnings.extend(summary.warnings);
        let outliers = spread.and_then(|spread| spread.warning(&summary.ranges));
        diagnostics.warnings.extend(outliers);
        self.since = Instant::now();
        if let Some(pixels) = self.keep(result, index, counted_signed)? {
            let from = metadata::pass(
                self,
                &mut metadata,
                &tasks,
                (read, prepared),
                &mut diagnostics,
            );
            let last = operate::last(&tasks);
            // Ranges of an earlier operation are none of the samples that are narrowed.
            let ranges = match last {
                Effect::Values => &summary.ranges[..],
                _ => &[],
            };
            let pixels = depth::narrow(self, pixels, &metadata, ranges)?;
            let made = Made {
                read,
                prepared,
                from,
                to: pixels.shape(),
                stretch: summary.stretch,
                had_maxval,
            };
            self.follow(&mut metadata, &tasks, &made, &mut diagnostics)?;
            let pixels = fit::reduce(self, pixels, &mut metadata, &mut diagnostics)?;
            let page = Page {
                pixels,
                metadata,
                index,
            };
            write::encode(self, page, last, &mut diagnostics)?;
        }
        let page = FoundPage {
            page: before + index + 1,
            shape: read,
            signed,
            ranges: summary.ranges,
        };
        self.finish(page, diagnostics);
        Ok(())
    }

    /// Makes the metadata of a page true of what the last operation made of it.
    ///
    /// # Errors
    /// What `note` refuses.
    fn follow(
        &mut self,
        metadata: &mut Metadata,
        tasks: &[Task],
        made: &Made,
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        let last = operate::last(tasks);
        let (effect, shapes) = ((last, tasks.len() == 1), (made.from, made.to));
        metadata::update(self, metadata, effect, shapes, diagnostics);
        if let Some(task) = tasks.last()
            && (last == Effect::Values || task.op.sign().is_some())
        {
            metadata.signed = task.types.written.signed;
        }
        let depths = (made.read.depth, made.prepared.depth);
        let stretch = (tasks, made.stretch);
        let note = note::of(self, stretch, (depths, made.had_maxval), made.to)?;
        if let Some(note) = note {
            metadata.stretch = Some(Ok(note));
        }
        let stretch = metadata.stretch.as_ref().and_then(|it| it.as_ref().ok());
        note::agrees(self, stretch.copied())
    }

    /// Keeps the numbers that an operation gave for the page at `index` of the file; or returns its image.
    ///
    /// # Errors
    /// Bins that do not fit to those of the pages before.
    fn keep(
        &mut self,
        result: OpResult<Pixels>,
        index: usize,
        signed: bool,
    ) -> Result<Option<Pixels>> {
        match result {
            OpResult::Totals(found) => self.found.totals.push(Totals {
                page: index + 1,
                one_of_several: self.reader.pages().len() > 1,
                signed,
                ..found
            }),
            OpResult::Counts(mut found) => {
                found.signed = signed;
                let joined = self.found.count(found);
                joined.with_context(|| self.sentences.undone())?;
            }
            OpResult::Image(pixels) => return Ok(Some(pixels)),
        }
        Ok(None)
    }

    /// Keeps what there is to say of a page that is done.
    fn finish(&mut self, page: FoundPage, mut diagnostics: Diagnostics) {
        let ranges = page.ranges.iter();
        let ranges: Vec<String> = ranges.map(|(min, max)| format!("{min}:{max}")).collect();
        if !ranges.is_empty() {
            let note = format!("scaled from the range {}", ranges.join(", "));
            diagnostics.notes.push(note);
        }
        self.diagnostics.add(page.page, diagnostics);
        self.found.pages.push(page);
    }

    /// Measures the statistic of operation `step` in what the operations before it make of the page at
    /// `index` among the selected pages; with the types of those samples.
    ///
    /// # Errors
    /// A page that cannot be read or processed; the sentence names the file.
    pub fn measure(
        &mut self,
        ops: &[&dyn Operation],
        stack: &StackStatistics,
        (step, index): (usize, usize),
    ) -> Result<(SampleTypes, Statistics)> {
        self.channel = self.reader.channel(index);
        if let Some(measured) = bands::measure(self, ops, stack, index) {
            return Ok(measured);
        }
        let page = read::page(self, ops, index, &mut Diagnostics::default())?;
        let (read, mut pixels) = (page.pixels.shape(), page.pixels);
        // Neither turning an image nor widening all of its samples alters what the first one measures.
        if step > 0 {
            pixels = upright::turn(self, pixels, &page.metadata)?;
            pixels = depth::widen(self, pixels, &page.metadata, ops)?;
        }
        let shapes = (read, pixels.shape());
        let tasks = operate::tasks(self, ops, stack, &page.metadata, shapes);
        let measured = (self.executor).measure(&tasks[..step], ops[step].statistic(), pixels);
        let statistics = measured.map_err(|error| self.sentences.failed(error))?;
        Ok((tasks[step].types, statistics))
    }
}
