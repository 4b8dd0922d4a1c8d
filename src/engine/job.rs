//! The state that a job keeps from page to page and from file to file: the operations, the output, the executor with its
//! timeline, and the results so far. `page.rs` processes the pages.

use super::destination::Destination;
use super::diagnostics::FileDiagnostics;
use super::done::{Digests, Done, Results};
use super::errors::{Messages, cannot_write};
use super::plan::{DecoderCapabilities, FilePlan, PageHeader, Plan, RegionParts, plan_page};
use super::shared::SharedStatistics;
use super::{Announce, CompleteOutput, Resources};
use crate::engine::executor::Executor;
use crate::formats::format::Field;
use crate::formats::{Reader, Writer};
use crate::image::metadata::{Diagnostics, Stretch};
use crate::image::{Region, Shape};
use crate::ops::{Operation, Position, chain};
use crate::os::{InputRecord, Source, Target};
use crate::timing::CodecClock;
use anyhow::{Context, Result, ensure};

/// A job: operations on the pages of one or several inputs.
pub struct Job<'a> {
    /// The operations, in order.
    pub ops: &'a [&'a dyn Operation],
    /// Where the result goes; `None` for numbers.
    pub output: Option<Output<'a>>,
    /// Whether pages are processed in bands of rows, where that is possible.
    pub row_bands: bool,
    /// The position of the current input among all inputs; `None` if it is unknown.
    pub position: Option<Position>,
    /// Runs the operations, and keeps the times.
    pub executor: Executor<'a>,
    /// The diagnostics of all pages so far.
    pub diagnostics: FileDiagnostics,
    /// The numbers that the pages gave so far.
    pub results: Results,
    /// The plan of the first page, as text; `None` before that page has been processed.
    pub first_plan: Option<String>,
}

/// The output of a job.
pub struct Output<'a> {
    /// Where it goes, and how it is written.
    pub destination: &'a Destination,
    /// Its file; `None` where pages are only measured.
    pub file: Option<OutputFile<'a>>,
    /// The scaling that the first page records.
    first_scaling: FirstScaling,
}

/// The file that a job writes.
pub struct OutputFile<'a> {
    /// Its bytes.
    pub target: &'a Target,
    /// Its encoder.
    pub writer: Writer<'a>,
    /// The page that was encoded last. Its time is recorded later, because writing may continue until the file is complete.
    pub last_page: Option<EncodedPage>,
}

/// A page that has been encoded.
#[derive(Clone, Copy, Debug)]
pub struct EncodedPage {
    /// The encoder's time.
    pub clock: CodecClock,
    /// Bytes of its samples.
    pub bytes: u64,
}

/// How the values of the first page were scaled, as its metadata record.
#[derive(Debug)]
enum FirstScaling {
    /// No page has been encoded.
    NoPage,
    /// The scaling of the first page, if it records one.
    Page(Option<Stretch>),
}

/// A job whose pages have all been processed.
pub struct FinishedJob {
    /// The results and the times.
    pub done: Done,
    /// The complete file, if there is one.
    file: Option<FinishedFile>,
}

struct FinishedFile {
    length: u64,
    last_page: Option<EncodedPage>,
}

/// An input whose pages are processed.
pub struct Input<'a> {
    /// The messages about its errors.
    pub messages: Messages<'a>,
    /// Its bytes.
    pub source: &'a Source,
    /// Its decoder.
    pub reader: Reader<'a>,
    /// The time that the decoder took to open the file. It is added to the time of the first page.
    pub opening: CodecClock,
    /// The position of its pages in the output, if the output has the pages of several inputs.
    pub position: Option<OutputPosition>,
}

/// The position of one file's pages in an output that is made of several files.
#[derive(Clone, Copy, Debug)]
pub struct OutputPosition {
    /// Pages of the files before it.
    pub pages_before: usize,
    /// Pages of the file.
    pub pages: usize,
    /// Pages of all files.
    pub pages_of_all: usize,
}

impl<'a> Job<'a> {
    /// A new job on inputs with this number of pages.
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
            position: resources.position,
            executor: Executor::new(resources.devices, resources.timeline()),
            diagnostics: FileDiagnostics::new(pages, resources.reading.preview),
            results: Results::default(),
            first_plan: None,
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
        // The GPU that had the page before will probably have this one.
        let uses_gpu = self.executor.devices().opened().is_some();
        let header = input
            .header(index, chain::first_region(self.ops), uses_gpu)
            .with_context(|| input.messages.cannot_read())?;
        let header = PageHeader {
            position: self
                .position
                .and_then(|file| input.series_position(index, file)),
            ..header
        };
        self.plan_header(header, input, shared)
    }

    /// The plan for a page with this header.
    ///
    /// # Errors
    /// A page that the operations can neither keep nor change.
    pub fn plan_header<'p>(
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
            describes_all_pages: input.position.is_none() && input.reader.is_whole(),
            row_bands: self.row_bands,
        };
        let plan = plan_page(header, &file, self.writer(), self.executor.devices());
        plan.with_context(|| input.messages.cannot_process())
    }

    /// The encoder of the output.
    pub fn writer(&self) -> Option<&Writer<'a>> {
        let file = self.output.as_ref()?.file.as_ref()?;
        Some(&file.writer)
    }

    /// Runs `work`, which only measures pages. The timeline marks its stages as measuring.
    pub fn measuring<R>(&mut self, work: impl FnOnce(&mut Job<'a>) -> R) -> R {
        let outer = std::mem::replace(&mut self.executor.timeline.measuring, true);
        let result = work(self);
        self.executor.timeline.measuring = outer;
        result
    }

    /// Records the time of encoding and writing the previous page, if there is one.
    pub fn record_previous_page(&mut self) {
        let file = self.output.as_mut().and_then(|output| output.file.as_mut());
        let Some(file) = file else { return };
        if let Some(EncodedPage { clock, bytes }) = file.last_page.take() {
            let traffic = file.target.traffic.take();
            self.executor.timeline.encoded(clock, bytes, &traffic);
        }
    }

    /// Ends the job. `first_shape` is the shape of the first page.
    pub fn finish(self, first_shape: Shape, damage: Option<String>) -> FinishedJob {
        let file = self.output.and_then(|output| output.file);
        let (warnings, notes) = self.diagnostics.finish();
        FinishedJob {
            done: Done {
                shape: first_shape,
                results: self.results,
                warnings,
                notes,
                damage,
                device: self.executor.device_line,
                plan: self.first_plan.unwrap_or_default(),
                timeline: self.executor.timeline,
                digests: Digests::default(),
            },
            file: file.map(|file| FinishedFile {
                length: file.writer.length(),
                last_page: file.last_page,
            }),
        }
    }
}

impl FinishedJob {
    /// Bytes of the complete file; 0 if there is none.
    pub fn length(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.length)
    }

    /// Adds the SHA-256 of the input, and of the output.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn add_digests(&mut self, input: &Source, output: Option<&Target>) -> Result<()> {
        let length = self.length();
        self.done.digests = Digests {
            input: input.sha256()?,
            samples: input.samples_sha256()?,
            output: match output {
                Some(target) => target.sha256(length)?,
                None => None,
            },
        };
        Ok(())
    }

    /// Gives the output its name, after `announce` has recorded it.
    ///
    /// # Errors
    /// A file that cannot be completed, and those of `announce`.
    pub fn commit(
        mut self,
        destination: &Destination,
        target: Target,
        input: Option<InputRecord>,
        announce: Announce,
    ) -> Result<Done> {
        let cannot_write = || cannot_write(&destination.path);
        let file = self
            .file
            .context("internal error: the output has no encoder");
        let FinishedFile { length, last_page } = file.with_context(cannot_write)?;
        let EncodedPage { mut clock, bytes } =
            last_page.context("internal error: no page has been encoded")?;
        let damaged = self.done.damage.is_some();
        let announce = |output| {
            announce(&CompleteOutput {
                output,
                input,
                damaged,
            })
        };
        let committed = clock.run(|| target.commit_announced(length, announce));
        let traffic = committed.with_context(cannot_write)?;
        self.done.timeline.encoded(clock, bytes, &traffic);
        Ok(self.done)
    }
}

impl<'a> Output<'a> {
    /// An output that `writer` encodes into `target`.
    pub fn to_file(
        destination: &'a Destination,
        target: &'a Target,
        writer: Writer<'a>,
    ) -> Output<'a> {
        Output {
            file: Some(OutputFile {
                target,
                writer,
                last_page: None,
            }),
            ..Output::measuring(destination)
        }
    }

    /// An output that nothing is written to, because pages are only measured.
    pub fn measuring(destination: &'a Destination) -> Output<'a> {
        Output {
            destination,
            file: None,
            first_scaling: FirstScaling::NoPage,
        }
    }

    /// Refuses an output format that cannot record how values were scaled.
    ///
    /// # Errors
    /// A message with the formats that can.
    pub fn check_stretch_field(&self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let format = file.writer.format();
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

    /// Refuses pages that record another scaling than the first one, if the format stores one scaling for all pages. Such a
    /// format cannot record a scaling for pages of several files.
    ///
    /// # Errors
    /// A page that records another scaling than the first.
    pub fn check_same_stretch(
        &mut self,
        stretch: Option<Stretch>,
        position: Option<OutputPosition>,
    ) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let format = file.writer.format();
        let fields = format.capabilities.fields;
        if !fields.contains(&Field::Records) || !fields.contains(&Field::Stretch) {
            return Ok(());
        }
        let first = match self.first_scaling {
            FirstScaling::Page(first) => first,
            FirstScaling::NoPage => stretch,
        };
        self.first_scaling = FirstScaling::Page(first);
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
        self.position.map_or(own, |position| position.pages_of_all)
    }

    /// The number of a page, counted from 1: in its file, or in the output if the output has the pages of several inputs.
    pub fn page_number(&self, header: &PageHeader) -> usize {
        self.position.map_or(0, |position| position.pages_before) + header.page + 1
    }

    /// The position of the page at `index` among the selected pages in the series of all images: that of its `file`, or in the
    /// only file that of the page. `None` if several files have several pages.
    fn series_position(&self, index: usize, file: Position) -> Option<Position> {
        let is_only_page = self.reader.pages().len() == 1;
        if file.count > 1 {
            return is_only_page.then_some(file);
        }
        Some(Position {
            index: self.reader.pages()[index] as u64,
            count: self.reader.pages_of_file() as u64,
        })
    }

    /// The header of the page at `index` among the selected pages, which becomes the decoder's current page.
    /// `region` is the part of the page that the first operation takes. With `read_ahead`, a GPU will probably decode the page.
    fn header(
        &mut self,
        index: usize,
        region: Option<Region>,
        read_ahead: bool,
    ) -> Result<PageHeader> {
        self.reader.turn_to(index)?;
        let shape = self.reader.shape();
        let is_part = |region: &Region| region.is_in(&shape) && region.output(shape) != shape;
        let region = region.filter(|region| self.reader.gives_regions() && is_part(region));
        if read_ahead && region.is_none() {
            self.reader.read_ahead();
        }
        let mut diagnostics = Diagnostics::default();
        let metadata = self.reader.metadata(&mut diagnostics)?;
        Ok(PageHeader {
            page: self.reader.pages()[index],
            channel: self.reader.channel(index),
            position: None,
            shape,
            format: self.reader.format(),
            is_bottom_up: self.reader.is_bottom_up(),
            metadata,
            diagnostics,
            decoder: DecoderCapabilities {
                packed: self.reader.gives_packed(),
                blocks: self.reader.gives_blocks(),
                rows: self.reader.gives_rows(),
            },
            decoding: self.reader.decoding(),
            region: region.map(|region| RegionParts {
                parts: self.reader.region_parts(&region),
                region,
            }),
            file_bytes: (!self.source.is_store()).then(|| self.source.len()),
        })
    }
}
