//! A job whose input is in memory. Its result stays in memory, is encoded to bytes, or is written to a file.

use super::errors::{Messages, cannot_write};
use super::job::{Input, Job, Output};
use super::shared::SharedStatistics;
use super::{Destination, Done, OpenFile, Resources, with_fallback, with_own};
use crate::formats::memory::{DeviceEncoder, MemoryEncoder, Page, Pages};
use crate::formats::{Reader, Writer};
use crate::image::Shape;
use crate::ops::{DeviceImage, Operation, chain};
use crate::os::{Source, Target};
use crate::timing::CodecClock;
use anyhow::{Context, Result};
use std::cell::{Cell, RefCell};
use std::path::Path;

/// Operations on pages in memory.
#[derive(Clone, Copy)]
pub struct MemoryJob<'a> {
    /// The operations, in order.
    pub ops: &'a [&'a dyn Operation],
    /// The file that the pages are from, for messages; empty if there is none.
    pub name: &'a Path,
    /// How the result is made and written; `None` for numbers.
    pub destination: Option<&'a Destination>,
    /// The devices and the memory.
    pub resources: &'a Resources<'a>,
}

impl MemoryJob<'_> {
    /// The pages of the result; none for numbers.
    ///
    /// # Errors
    /// Pages that the operations do not support, and those of the device.
    pub fn to_pages(&self, pages: impl Into<Pages>) -> Result<(Vec<Page>, Done)> {
        let results: RefCell<Vec<Page>> = RefCell::default();
        let attempt = |pages: &Pages| {
            results.borrow_mut().clear();
            let target = Target::in_memory();
            let writer = |file: &OpenFile| {
                let expected = &file.surveys;
                Ok(Writer::in_memory(MemoryEncoder::new(&results, expected)))
            };
            Ok(self.attempt(pages, &target, writer)?.0)
        };
        let done = self.with_fallback(pages, attempt)?;
        Ok((results.into_inner(), done))
    }

    /// The first page of the result, in the memory of the GPU that made it.
    ///
    /// # Errors
    /// As `to_pages`.
    pub fn to_device(&self, input: DeviceInput) -> Result<(Page<DeviceImage>, Done)> {
        let results: RefCell<Vec<Page<DeviceImage>>> = RefCell::default();
        let target = Target::in_memory();
        let writer = |file: &OpenFile| {
            let expected = &file.surveys;
            Ok(Writer::in_memory(DeviceEncoder::new(&results, expected)))
        };
        let (done, _) = match input {
            DeviceInput::Memory(pages) => self.attempt(&pages, &target, writer)?,
            DeviceInput::File(source) => {
                let cannot_read = || self.messages().cannot_read();
                let mut opening = CodecClock::default();
                let reading = &self.resources.reading;
                let reader = opening.run(|| Reader::open(source, reading));
                let reader = reader.with_context(cannot_read)?;
                let ran = self.attempt_input(source, reader, opening, &target, writer)?;
                source.check_unchanged().with_context(cannot_read)?;
                ran
            }
        };
        let first = results.into_inner().into_iter().next();
        Ok((first.context("internal error: there is no result")?, done))
    }

    /// The result as the bytes of a file of the destination's format.
    ///
    /// # Errors
    /// As `to_pages`, and a result that the format cannot store.
    pub fn to_bytes(&self, pages: impl Into<Pages>) -> Result<(Vec<u8>, Done)> {
        let bytes: Cell<Vec<u8>> = Cell::default();
        let attempt = |pages: &Pages| {
            let target = Target::in_memory();
            let (done, length) =
                self.attempt(pages, &target, |file| self.encoder(file, &target))?;
            bytes.set(target.into_bytes(length)?);
            Ok(done)
        };
        let done = self.with_fallback(pages, attempt)?;
        Ok((bytes.into_inner(), done))
    }

    /// Writes the result to the destination, which gets its name when it is complete.
    ///
    /// # Errors
    /// As `to_bytes`, and a file that cannot be written.
    pub fn to_file(&self, pages: impl Into<Pages>) -> Result<Done> {
        let target = self.destination.context(NO_DESTINATION)?.create()?;
        self.to_target(pages, target)
    }

    /// As `to_file`, with a target that the destination has created.
    ///
    /// # Errors
    /// As `to_file`.
    pub fn to_target(&self, pages: impl Into<Pages>, target: Target) -> Result<Done> {
        // An attempt that fails uses its target up.
        let created = Cell::new(Some(target));
        let attempt = |pages: &Pages| {
            let destination = self.destination.context(NO_DESTINATION)?;
            let target = match created.take() {
                Some(target) => target,
                None => destination.create()?,
            };
            let (done, length) =
                self.attempt(pages, &target, |file| self.encoder(file, &target))?;
            let committed = target.commit(length);
            committed.with_context(|| cannot_write(&destination.path))?;
            Ok(done)
        };
        self.with_fallback(pages, attempt)
    }

    /// The shape of the result of each page, and its plan as text. Nothing is computed.
    ///
    /// # Errors
    /// Pages that the operations do not support.
    pub fn plans(&self, pages: &[&Page]) -> Result<Vec<(Shape, String)>> {
        let pages = Pages::headers(pages);
        let source = Source::memory(Vec::new());
        let file = self.open(&source, &pages)?;
        let ops = with_own(self.ops, file.own_op.as_deref());
        let (target, results) = (Target::in_memory(), RefCell::default());
        let output = self.destination.map(|destination| {
            let encoder = MemoryEncoder::new(&results, &file.surveys);
            Output::to_file(destination, &target, Writer::in_memory(encoder))
        });
        let count = file.surveys.len();
        let job = Job::new(&ops, output, self.resources, count);
        let mut input = self.input(&source, file.reader);
        let shared = SharedStatistics::default();
        let plans = (0..count).map(|index| {
            let plan = job.plan(&mut input, &shared, index)?;
            Ok((plan.output_shape(), plan.to_string()))
        });
        plans.collect()
    }

    /// Calls `attempt`, and calls it again on the CPU if a GPU that `auto` chose fails.
    fn with_fallback(
        &self,
        pages: impl Into<Pages>,
        attempt: impl Fn(&Pages) -> Result<Done>,
    ) -> Result<Done> {
        let mut pages = pages.into();
        // A second attempt needs the pixels again. If none is possible, the first may take them without a copy.
        pages.again |= self.resources.devices.may_use_gpu();
        with_fallback(|| attempt(&pages), true, self.resources.devices)
    }

    /// The pages as a file whose header has been read.
    fn open<'p>(&self, source: &'p Source, pages: &'p Pages) -> Result<OpenFile<'p>> {
        let reader = Reader::in_memory(source, pages);
        let reader = reader.with_context(|| self.messages().cannot_read())?;
        OpenFile::from_reader(self.ops, reader, self.destination, self.messages())
    }

    fn input<'i>(&'i self, source: &'i Source, reader: Reader<'i>) -> Input<'i> {
        Input {
            messages: self.messages(),
            source,
            reader,
            opening: CodecClock::default(),
            position: None,
        }
    }

    fn messages(&self) -> Messages<'_> {
        Messages {
            verb: chain::verb(self.ops),
            input: self.name,
        }
    }

    /// An encoder of the destination's format.
    fn encoder<'t>(&'t self, file: &OpenFile, target: &'t Target) -> Result<Writer<'t>> {
        let ops = with_own(self.ops, file.own_op.as_deref());
        let destination = self.destination.context(NO_DESTINATION)?;
        let output = file.encoder(&ops, destination, target)?;
        Ok(output.file.context(NO_DESTINATION)?.writer)
    }

    /// Runs the operations on all pages. Returns the outcome, and the number of bytes that the writer has written.
    fn attempt<'t>(
        &'t self,
        pages: &Pages,
        target: &'t Target,
        writer: impl FnOnce(&OpenFile) -> Result<Writer<'t>>,
    ) -> Result<(Done, u64)> {
        let source = Source::memory(Vec::new());
        let reader = Reader::in_memory(&source, pages);
        let reader = reader.with_context(|| self.messages().cannot_read())?;
        self.attempt_input(&source, reader, CodecClock::default(), target, writer)
    }

    /// As `attempt`, on the selected pages of a reader, which took the time `opening` to open.
    fn attempt_input<'t>(
        &'t self,
        source: &Source,
        reader: Reader,
        opening: CodecClock,
        target: &'t Target,
        writer: impl FnOnce(&OpenFile) -> Result<Writer<'t>>,
    ) -> Result<(Done, u64)> {
        let file = OpenFile::from_reader(self.ops, reader, self.destination, self.messages())?;
        let ops = with_own(self.ops, file.own_op.as_deref());
        let (shape, count) = (file.surveys[0].shape, file.surveys.len());
        let output = self.destination.map(|destination| {
            let writer = writer(&file)?;
            Ok::<_, anyhow::Error>(Output::to_file(destination, target, writer))
        });
        let mut job = Job::new(&ops, output.transpose()?, self.resources, count);
        job.diagnostics.add_about_file(file.reader.left_out());
        let mut input = Input {
            opening,
            ..self.input(source, file.reader)
        };
        let shared = job.measure_stack(&mut input)?;
        for index in 0..count {
            job.run_page(&mut input, &shared, index)?;
        }
        let finished = job.finish(shape, input.reader.damage());
        let length = finished.length();
        Ok((finished.done, length))
    }
}

/// A page that is processed into the memory of a GPU.
pub enum DeviceInput<'a> {
    /// The only page of these.
    Memory(Pages),
    /// The only page that is selected of a file.
    File(&'a Source),
}

const NO_DESTINATION: &str = "internal error: there is no destination";
