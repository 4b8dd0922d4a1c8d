//! Processes images from file to file. A job (`job.rs`) reads pages from its inputs and writes them to its output. There are
//! four kinds of jobs: one file to one file (here), many files into one stack (`many.rs`), several grey files into one colour
//! image (`composite.rs`), and each page of a stack to a file of its own (`split.rs`). Statistics that pages share are measured
//! in a separate pass (`stack.rs`). Each page is planned from its header (`plan.rs`), and processed as its plan says (`page.rs`).

mod combined;
mod composite;
mod destination;
mod diagnostics;
mod done;
mod errors;
pub mod executor;
mod image_type;
mod job;
mod many;
mod memory;
pub mod options;
mod page;
mod plan;
mod shared;
mod split;
mod stack;
mod task;

use crate::formats::{Format, PageSurvey, Reader, Reading, Writer};
use crate::gpu::{Devices, Failed};
use crate::image::Shape;
use crate::image::metadata::Diagnostics;
use crate::ops::{Operation, Position, chain};
use crate::os::limits;
use crate::os::memory_budget::{MemoryBudget, Reservation};
use crate::os::name::Shown;
use crate::os::{Identity, InputRecord, Passes, Source, Target};
use crate::timing::{CodecClock, Timeline};
use anyhow::{Context, Result};
use errors::{Messages, cannot_write};
use job::{FinishedJob, Input, Job, Output};
use shared::SharedStatistics;
use std::path::Path;

pub use combined::{CombinedImage, Facts, FirstPage};
pub use composite::{Composite, Mix, Unfit, combine_pages};
pub use destination::Destination;
pub use done::{Digests, Done, Message, PageResult, Results, Warning};
pub use errors::{Failure, is_write_error};
pub use image_type::{ImageType, ImageTypeRecord};
pub use many::{StackInput, process_into_stack};
pub use memory::{DeviceInput, MemoryJob};
pub use split::{OpenStack, open_stack, process_stack_page};

/// What the processing of an image may use: devices and memory.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The devices to choose from.
    pub devices: &'a Devices,
    /// The memory budget that all images in progress share, if memory is limited.
    pub budget: Option<&'a MemoryBudget>,
    /// How inputs are read.
    pub reading: Reading,
    /// Whether the input must still be a regular file, as it was when the batch was planned.
    pub require_regular_file: bool,
    /// The position of the input among all inputs; `None` if it is unknown.
    pub position: Option<Position>,
    /// Whether copies and kernels on a GPU are timed.
    pub gpu_times: bool,
}

impl<'a> Resources<'a> {
    /// The resources of one image at a time: without a memory budget and a position, and GPUs are not timed.
    pub fn new(devices: &'a Devices, reading: Reading) -> Resources<'a> {
        Resources {
            devices,
            budget: None,
            reading,
            require_regular_file: false,
            position: None,
            gpu_times: false,
        }
    }

    fn open(&self, input: &Path) -> Result<Source> {
        if self.require_regular_file {
            Source::open_file(input)
        } else {
            Source::open(input)
        }
    }

    /// Reserves the bytes of memory that a page needs, if memory is limited.
    fn reserve(&self, page_bytes: u64) -> Option<Reservation<'_>> {
        self.budget.map(|budget| budget.reserve(page_bytes))
    }

    /// Whether the page is too large for memory and the CPU may process it, which it can do in bands of rows.
    fn is_too_large(&self, page_bytes: u64) -> bool {
        page_bytes > ALWAYS_AVAILABLE_BYTES
            && self.devices.is_auto()
            && page_bytes
                > self
                    .budget
                    .map_or_else(limits::free_memory, MemoryBudget::most)
    }

    fn timeline(&self) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.gpu_times = self.gpu_times;
        timeline
    }
}

/// Pages that need fewer bytes than this are never split to save memory.
const ALWAYS_AVAILABLE_BYTES: u64 = 64 << 20;

/// Bytes of memory that a page needs while it is processed. Its samples count three times: for the input, for the result, and
/// for the bytes of a file, which are at most as many. Its metadata count three times for the same reason.
pub fn page_memory(shape: &Shape, metadata_bytes: u64) -> u64 {
    (shape.bytes() as u64)
        .saturating_add(metadata_bytes)
        .saturating_mul(3)
}

/// Bytes of memory that the largest of a file's pages needs. If the first operation takes a region of the page and the decoder
/// can decode only that region, this is the memory for the region.
///
/// # Errors
/// A damaged page.
pub fn page_bytes(
    reader: &Reader,
    ops: &[&dyn Operation],
    output: Option<&Destination>,
) -> Result<u64> {
    let may_orient = output.is_some_and(|output| output.auto_orient);
    let region = chain::first_region(ops).filter(|_| reader.gives_regions() && !may_orient);
    let surveys = match region {
        Some(region) => reader.region_surveys(&region),
        None => reader.surveys(),
    };
    Ok(largest_page(ops, &surveys?))
}

/// Bytes of memory that the largest of these pages needs while `ops` process it.
pub fn largest_page(ops: &[&dyn Operation], surveys: &[PageSurvey]) -> u64 {
    let bytes = surveys
        .iter()
        .map(|page| page_memory(&chain::largest(ops, page.shape), page.metadata_bytes));
    bytes.max().unwrap_or(0)
}

/// A complete file that is about to get an output's name.
#[derive(Debug)]
pub struct CompleteOutput {
    /// Its identity.
    pub output: Identity,
    /// The input, if its digest was computed.
    pub input: Option<InputRecord>,
    /// Whether the input was damaged.
    pub damaged: bool,
}

/// Called before an output gets its name; an error prevents that.
pub type Announce<'a> = &'a dyn Fn(&CompleteOutput) -> Result<()>;

/// What a run records of the files that it reads and writes.
#[derive(Clone, Copy)]
pub struct RunRecord<'a> {
    /// The identities of the inputs in the first pass, if the run has several passes: they must not change between passes.
    pub passes: Option<&'a Passes>,
    /// Whether the digest of each input is computed, for a journal.
    pub digests: bool,
    /// Whether the SHA-256 of each input and output is computed, for a report.
    pub sha256: bool,
    /// Called before an output gets its name.
    pub announce: Announce<'a>,
}

impl RunRecord<'_> {
    /// Records nothing.
    pub const NONE: RunRecord<'static> = RunRecord {
        passes: None,
        digests: false,
        sha256: false,
        announce: &|_| Ok(()),
    };
}

/// An input that has been opened, and the path that messages name.
#[derive(Clone, Copy, Debug)]
pub struct NamedSource<'a> {
    /// The path.
    pub path: &'a Path,
    /// The bytes.
    pub source: &'a Source,
}

/// Runs `ops`, one after the other, on the image file `input` and writes an image to `output`, or
/// returns numbers. If `auto` chose a GPU and it fails, the file is processed again on the CPU.
///
/// # Errors
/// A file that cannot be read, processed or written; the message names it.
pub fn process_file(
    ops: &[&dyn Operation],
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
    record: RunRecord,
) -> Result<Done> {
    let attempt = || process_opened(ops, input, output, resources, record);
    // Standard input cannot be read twice.
    with_fallback(attempt, input != Path::new("-"), resources.devices)
}

/// Processes a source that has been opened, as `process_file` does.
///
/// # Errors
/// As `process_file`.
pub fn process_source(
    ops: &[&dyn Operation],
    input: NamedSource,
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    let attempt = || process_once(ops, input, None, output, resources);
    with_fallback(attempt, true, resources.devices)
}

/// A result to which warnings can be added.
pub trait HasWarnings {
    /// Adds a warning about the whole file.
    fn add_warning(&mut self, text: String);
}

impl HasWarnings for Done {
    fn add_warning(&mut self, text: String) {
        self.warnings.push(Warning { text, hint: None });
    }
}

/// Runs `attempt`. If a GPU that `auto` chose fails, runs it again on the CPU and adds a warning. An input that cannot be
/// read again (`can_repeat`) is attempted once.
///
/// # Errors
/// Those of the last attempt.
pub fn with_fallback<T: HasWarnings>(
    attempt: impl Fn() -> Result<T>,
    can_repeat: bool,
    devices: &Devices,
) -> Result<T> {
    let error = match attempt() {
        Ok(done) => return Ok(done),
        Err(error) => error,
    };
    if !error.is::<Failed>() {
        return Err(error);
    }
    if !can_repeat || !devices.fall_back_to_cpu() {
        return Err(devices.unusable_if_lost(error));
    }
    let mut done = attempt()?;
    let cause = error.root_cause();
    done.add_warning(format!(
        "processed on the CPU because the GPU failed: {cause}"
    ));
    Ok(done)
}

/// A file whose header has been read, checked against the operations and the output.
struct OpenFile<'a> {
    reader: Reader<'a>,
    /// The operation that replaces the requested one for this file, if the file's metadata determine the type of the result, as
    /// for `restore`.
    own_op: Option<Box<dyn Operation>>,
    /// The shape of each selected page, and the bytes of its metadata.
    surveys: Vec<PageSurvey>,
}

impl<'a> OpenFile<'a> {
    fn open(
        ops: &[&dyn Operation],
        source: &'a Source,
        output: Option<&Destination>,
        reading: &Reading,
        messages: Messages,
    ) -> Result<OpenFile<'a>> {
        let reader = Reader::open(source, reading);
        OpenFile::from_reader(
            ops,
            reader.with_context(|| messages.cannot_read())?,
            output,
            messages,
        )
    }

    /// A file that a reader has opened.
    fn from_reader(
        ops: &[&dyn Operation],
        reader: Reader<'a>,
        output: Option<&Destination>,
        messages: Messages,
    ) -> Result<OpenFile<'a>> {
        let own_op = match ops {
            [op] => op.for_file(&|| reader.metadata(&mut Diagnostics::default())),
            _ => Ok(None),
        };
        let file = OpenFile {
            own_op: own_op.with_context(|| messages.cannot_process())?,
            surveys: reader.surveys().with_context(|| messages.cannot_read())?,
            reader,
        };
        let ops = with_own(ops, file.own_op.as_deref());
        for page in &file.surveys {
            check_page(&ops, page.shape, output, messages)?;
        }
        Ok(file)
    }

    /// The output of `ops`, and an encoder for its pages.
    fn encoder<'t>(
        &self,
        ops: &[&dyn Operation],
        destination: &'t Destination,
        target: &'t Target,
    ) -> Result<Output<'t>> {
        let cannot_write = || cannot_write(&destination.path);
        let format = destination.format_for(self.reader.format());
        let format = format.with_context(cannot_write)?;
        let pages = self.surveys.iter().map(|page| {
            let result = chain::result(ops, page.shape);
            format.check_path(&destination.path, &result)?;
            Ok(PageSurvey {
                shape: destination.largest_output(result),
                ..*page
            })
        });
        let pages: Result<Vec<_>> = pages.collect();
        let pages = pages.with_context(cannot_write)?;
        let writer = Writer::new(format, &destination.options, target, &pages);
        let writer = writer.with_context(cannot_write)?;
        Ok(Output::to_file(destination, target, writer))
    }
}

/// The operations for a file: `own`, which the file's metadata determine, or else those that were requested.
fn with_own<'o>(
    ops: &[&'o dyn Operation],
    own: Option<&'o dyn Operation>,
) -> Vec<&'o dyn Operation> {
    own.map_or_else(|| ops.to_vec(), |op| vec![op])
}

/// What a run would do with a file, from its header alone.
#[derive(Debug)]
pub struct FilePlans {
    /// The shape of each page, and the bytes of its metadata.
    pub pages: Vec<PageSurvey>,
    /// The format of the file.
    pub format: &'static Format,
    /// The format of the output, if there is one.
    pub output_format: Option<&'static Format>,
    /// The plans of the pages, as text.
    pub plans: Vec<String>,
}

/// Plans what `process_file` would do with a file. Nothing is written.
///
/// # Errors
/// What `process_file` would refuse before it decodes a page.
pub fn plan_file(
    ops: &[&dyn Operation],
    input: NamedSource,
    destination: Option<&Destination>,
    resources: &Resources,
) -> Result<FilePlans> {
    let messages = Messages {
        verb: chain::verb(ops),
        input: input.path,
    };
    let file = OpenFile::open(ops, input.source, destination, &resources.reading, messages)?;
    let input = OpenedInput {
        messages,
        source: input.source,
        file,
        opening: CodecClock::default(),
    };
    plan_open_file(ops, input, destination, resources)
}

/// An input whose header has been read.
struct OpenedInput<'a> {
    messages: Messages<'a>,
    source: &'a Source,
    file: OpenFile<'a>,
    /// The time that the decoder took to open the file.
    opening: CodecClock,
}

/// Plans what `process_open_file` would do. Nothing is written.
fn plan_open_file(
    ops: &[&dyn Operation],
    input: OpenedInput,
    destination: Option<&Destination>,
    resources: &Resources,
) -> Result<FilePlans> {
    let file = input.file;
    let ops = with_own(ops, file.own_op.as_deref());
    let target = Target::in_memory();
    let output = destination.map(|destination| file.encoder(&ops, destination, &target));
    let output = output.transpose()?;
    let format = file.reader.format();
    let output_format = destination.map(|to| to.format.unwrap_or(format));
    let mut job = Job::new(&ops, output, resources, file.surveys.len());
    let page_bytes = page_bytes(&file.reader, &ops, destination);
    let page_bytes = page_bytes.with_context(|| input.messages.cannot_read())?;
    job.row_bands |= resources.is_too_large(page_bytes);
    let mut input = Input {
        messages: input.messages,
        source: input.source,
        reader: file.reader,
        opening: input.opening,
        position: None,
    };
    let shared = SharedStatistics::default();
    let plans = (0..file.surveys.len()).map(|index| job.plan(&mut input, &shared, index));
    let plans = plans.map(|plan| Ok(plan?.to_string()));
    Ok(FilePlans {
        plans: plans.collect::<Result<_>>()?,
        format,
        output_format,
        pages: file.surveys,
    })
}

/// An output that has been created, before anything is written to it.
struct CreatedOutput<'a> {
    destination: &'a Destination,
    target: Target,
}

impl<'a> CreatedOutput<'a> {
    fn new(destination: &'a Destination) -> Result<CreatedOutput<'a>> {
        Ok(CreatedOutput {
            destination,
            target: destination.create()?,
        })
    }
}

/// Opens a file and processes it.
fn process_opened(
    ops: &[&dyn Operation],
    path: &Path,
    destination: Option<&Destination>,
    resources: &Resources,
    record: RunRecord,
) -> Result<Done> {
    let messages = Messages {
        verb: chain::verb(ops),
        input: path,
    };
    // An output that cannot be created is refused before the input is read.
    let created = destination.map(CreatedOutput::new).transpose()?;
    let source = resources.open(path);
    let mut source = source.with_context(|| messages.cannot_read())?;
    if record.digests {
        source.keep_digest();
    }
    let input = NamedSource {
        path,
        source: &source,
    };
    process_pages(ops, input, None, created, resources, record)
}

/// Creates the output, and processes each page of an opened file. `shared` has the statistics of the stack, if they have been
/// measured already.
fn process_once(
    ops: &[&dyn Operation],
    input: NamedSource,
    shared: Option<&SharedStatistics>,
    destination: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    let created = destination.map(CreatedOutput::new).transpose()?;
    process_pages(ops, input, shared, created, resources, RunRecord::NONE)
}

/// Processes each page of an opened file, and gives the output its name.
fn process_pages(
    ops: &[&dyn Operation],
    NamedSource { path, source }: NamedSource,
    shared: Option<&SharedStatistics>,
    mut created: Option<CreatedOutput>,
    resources: &Resources,
    record: RunRecord,
) -> Result<Done> {
    let messages = Messages {
        verb: chain::verb(ops),
        input: path,
    };
    let cannot_read = || messages.cannot_read();
    let destination = created.as_ref().map(|created| created.destination);
    let mut opening = CodecClock::default();
    let file =
        opening.run(|| OpenFile::open(ops, source, destination, &resources.reading, messages))?;
    if let Some(created) = &mut created {
        created.target.store_input = source.content_key();
    }
    let input = OpenedInput {
        messages,
        source,
        file,
        opening,
    };
    let mut finished = process_open_file(ops, input, shared, created.as_ref(), resources)?;
    if record.sha256 {
        let target = created.as_ref().map(|created| &created.target);
        let added = finished.add_digests(source, target);
        added.with_context(|| format!("cannot compute the SHA-256 for {}", path.shown()))?;
    }
    let target = created.as_ref().map(|created| &created.target);
    let input_record = if target.is_some_and(Target::is_completed_by_another) {
        let note = "its part is written; the task that finishes last completes the output";
        finished.done.notes.push(note.into());
        None
    } else {
        source.record().with_context(cannot_read)?
    };
    let unchanged = match record.passes {
        Some(passes) => passes.check(path, source),
        None => source.check_unchanged(),
    };
    unchanged.with_context(cannot_read)?;
    match created {
        Some(CreatedOutput {
            destination,
            target,
        }) => finished.commit(destination, target, input_record, record.announce),
        None => Ok(finished.done),
    }
}

/// Processes each page of an input. The output is complete afterwards, but has no name yet.
fn process_open_file(
    ops: &[&dyn Operation],
    input: OpenedInput,
    shared: Option<&SharedStatistics>,
    created: Option<&CreatedOutput>,
    resources: &Resources,
) -> Result<FinishedJob> {
    let file = input.file;
    let ops = with_own(ops, file.own_op.as_deref());
    let destination = created.map(|created| created.destination);
    let page_bytes = page_bytes(&file.reader, &ops, destination);
    let page_bytes = page_bytes.with_context(|| input.messages.cannot_read())?;
    // Checked before the reservation, which reduces the free memory.
    let is_too_large = resources.is_too_large(page_bytes);
    let _reservation = resources.reserve(page_bytes);
    let (first_shape, pages) = (file.surveys[0].shape, file.surveys.len());
    let output = created.map(|created| file.encoder(&ops, created.destination, &created.target));
    let mut job = Job::new(&ops, output.transpose()?, resources, pages);
    job.diagnostics.add_about_file(file.reader.left_out());
    job.row_bands |= is_too_large;
    let mut input = Input {
        messages: input.messages,
        source: input.source,
        reader: file.reader,
        opening: input.opening,
        position: None,
    };
    let measured = match shared {
        Some(_) => SharedStatistics::default(),
        None => job.measure_stack(&mut input)?,
    };
    for index in 0..pages {
        job.run_page(&mut input, shared.unwrap_or(&measured), index)?;
    }
    Ok(job.finish(first_shape, input.reader.damage()))
}

/// Refuses operations and an output that do not fit a page of this shape.
fn check_page(
    ops: &[&dyn Operation],
    shape: Shape,
    output: Option<&Destination>,
    messages: Messages,
) -> Result<()> {
    let depth_and_orientation =
        output.map_or((None, false), |output| (output.depth, output.auto_orient));
    chain::check(ops, shape, depth_and_orientation, |verb| {
        messages.cannot(verb)
    })?;
    if let Some(output) = output {
        let result = chain::result(ops, shape);
        let fits = output.check_fit(&result, result.depth);
        fits.with_context(|| messages.cannot_process())?;
    }
    Ok(())
}
