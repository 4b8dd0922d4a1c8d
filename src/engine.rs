//! Processes images from file to file. A job (`job.rs`) has a source of pages and a sink: one file (here), many files into one
//! stack (`many.rs`), or the pages of a stack to a file each (`split.rs`). Statistics that pages share are measured in a pass of
//! their own (`stack.rs`). Each page is planned from its header (`plan.rs`), and processed as its plan says (`page.rs`).

mod destination;
mod diagnostics;
mod done;
mod errors;
pub mod executor;
mod job;
mod made;
mod many;
pub mod options;
mod page;
mod plan;
mod split;
mod stack;

use crate::formats::{Format, Reader, Reading, Writer};
use crate::gpu::{Devices, Failed};
use crate::image::Shape;
use crate::image::metadata::Diagnostics;
use crate::ops::{Operation, chain};
use crate::os::limits;
use crate::os::memory_budget::MemoryBudget;
use crate::os::{Identity, InputRecord, Passes, Source, Target};
use crate::timing::Timeline;
use anyhow::{Context, Result};
use diagnostics::FileDiagnostics;
use errors::{Sentences, unwritten};
use job::{Input, Job, Output};
use stack::StackStatistics;
use std::path::Path;

pub use destination::Destination;
pub use done::{Done, Found, FoundPage, Sentence, Warning};
pub use errors::is_unwritten;
pub use made::Made;
pub use many::many_images;
pub use split::{OpenStack, open_stack, stack_page};

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
    pub only_files: bool,
    /// Whether copies and kernels on a GPU are timed.
    pub gpu_times: bool,
}

/// Bytes of memory for a page that any machine has.
const MANY: u64 = 64 << 20;

/// Bytes of memory that a page needs while it is processed: its samples, the samples of the result,
/// and at most as many bytes of file; likewise for its metadata, whose size in the file is the
/// second number.
pub fn memory((shape, metadata): &(Shape, u64)) -> u64 {
    (shape.bytes() as u64)
        .saturating_add(*metadata)
        .saturating_mul(3)
}

/// A file that is about to get an output's name.
#[derive(Debug)]
pub struct Finished {
    /// Its identity.
    pub output: Identity,
    /// The input, if its digest was kept.
    pub input: Option<InputRecord>,
    /// Whether the input was damaged.
    pub damaged: bool,
}

/// Called before an output gets its name; an error prevents that.
pub type Announce<'a> = &'a dyn Fn(&Finished) -> Result<()>;

/// What a run keeps of its images.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// The inputs as its first pass saw them, if it has several.
    pub passes: Option<&'a Passes>,
    /// Whether the digests of inputs are kept.
    pub digests: bool,
    /// What is done before an output gets its name.
    pub announce: Announce<'a>,
}

impl Account<'_> {
    /// Nothing is kept.
    pub const NONE: Account<'static> = Account {
        passes: None,
        digests: false,
        announce: &|_| Ok(()),
    };
}

/// Runs `ops`, one after the other, on the image file `input` and writes an image to `output`, or
/// returns numbers. If `auto` chose a GPU and it fails, starts again on the CPU.
pub fn one_image(
    ops: &[&dyn Operation],
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    one_image_of(ops, input, output, resources, Account::NONE)
}

/// As `one_image`, for a run that keeps an account of its images.
pub fn one_image_of(
    ops: &[&dyn Operation],
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
    account: Account,
) -> Result<Done> {
    let input_only = (input, None, None);
    let attempt = || attempt(ops, input_only, output, resources, account);
    with_fallback(attempt, input, resources.devices)
}

/// As `one_image`, for an input that was read before, and is called `input` in sentences.
pub fn one_source(
    ops: &[&dyn Operation],
    (input, source): (&Path, &Source),
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    let input = (input, Some(source), None);
    let attempt = || attempt(ops, input, output, resources, Account::NONE);
    // Wherever it is from, it is in memory and can be taken twice.
    with_fallback(attempt, Path::new(""), resources.devices)
}

/// Processes the file `input` by an `attempt`, which is made once more, on the CPU, if a GPU that
/// `auto` chose failed in the first; a warning then says so.
///
/// # Errors
/// Those of the last attempt.
pub fn with_fallback(
    attempt: impl Fn() -> Result<Done>,
    input: &Path,
    devices: &Devices,
) -> Result<Done> {
    let result = attempt();
    let failed = result.as_ref().is_err_and(|error| error.is::<Failed>());
    // Standard input cannot be read twice.
    if failed && input != Path::new("-") && devices.falls_back() {
        let cause = result.err().map(|error| error.root_cause().to_string());
        let cause = cause.unwrap_or_default();
        let mut done = attempt()?;
        done.warnings.push(Warning {
            text: format!("processed on the CPU because the GPU failed: {cause}"),
            hint: None,
        });
        return Ok(done);
    }
    result.map_err(|error| match failed {
        true => devices.unusable_if_lost(error),
        false => error,
    })
}

/// A file whose header has been read, and that the operations and the output fit.
struct OpenFile<'a> {
    reader: Reader<'a>,
    /// The operation for this file, where its metadata decide the type of the result.
    own_op: Option<Box<dyn Operation>>,
    /// The shape of each selected page, and the bytes of its metadata.
    surveys: Vec<(Shape, u64)>,
}

impl<'a> OpenFile<'a> {
    fn open(
        ops: &[&dyn Operation],
        source: &'a Source,
        output: Option<&Destination>,
        reading: &Reading,
        sentences: Sentences,
    ) -> Result<OpenFile<'a>> {
        let unread = || sentences.unread();
        let reader = Reader::open(source, reading).with_context(unread)?;
        let own_op = match ops {
            [op] => op.of_file(&|| reader.metadata(&mut Diagnostics::default())),
            _ => Ok(None),
        };
        let file = OpenFile {
            own_op: own_op.with_context(|| sentences.undone())?,
            surveys: reader.surveys().with_context(unread)?,
            reader,
        };
        let own = file.own_op.as_deref().map(|op| [op]);
        let ops = own.as_ref().map_or(ops, |op| &op[..]);
        for (shape, _) in &file.surveys {
            check_page(ops, *shape, output, sentences)?;
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
        let unwritten = || unwritten(&destination.path);
        let format = destination.format.unwrap_or(self.reader.format());
        let pages = self.surveys.iter().map(|(shape, bytes)| {
            format.check_name(&destination.path, shape)?;
            let largest = destination.grown(*shape, chain::output_depth(ops, shape.depth));
            Ok((largest, *bytes))
        });
        let pages: Result<Vec<_>> = pages.collect();
        let pages = pages.with_context(unwritten)?;
        let writer = Writer::new(format, &destination.options, target, &pages);
        Ok(Output {
            destination,
            file: Some((target, writer.with_context(unwritten)?)),
            first_stretch: None,
        })
    }
}

/// What a run would do with a file, from its header alone.
#[derive(Debug)]
pub struct Foreseen {
    /// The shape of each page, and the bytes of its metadata.
    pub pages: Vec<(Shape, u64)>,
    /// The format of the file, and that of the output, if there is one.
    pub formats: (&'static dyn Format, Option<&'static dyn Format>),
    /// The plans of the pages, as text.
    pub plans: Vec<String>,
}

/// Plans what `one_image` would do with the file `input`, whose bytes are `source`. Nothing is written.
///
/// # Errors
/// What `one_image` would refuse before it decodes a page.
pub fn foresee(
    ops: &[&dyn Operation],
    (input, source): (&Path, &Source),
    destination: Option<&Destination>,
    resources: &Resources,
) -> Result<Foreseen> {
    let sentences = Sentences {
        verb: chain::verb(ops),
        input,
    };
    let file = OpenFile::open(ops, source, destination, &resources.reading, sentences)?;
    let own = file.own_op.as_deref().map(|op| [op]);
    let ops = own.as_ref().map_or(ops, |op| &op[..]);
    let target = Target::in_memory();
    let output = destination.map(|destination| file.encoder(ops, destination, &target));
    let output = output.transpose()?;
    let written = destination.map(|to| to.format.unwrap_or(file.reader.format()));
    let (formats, pages) = ((file.reader.format(), written), file.surveys);
    let diagnostics = FileDiagnostics::new(None, pages.len());
    let job = Job::new(ops, output, resources, Timeline::default(), diagnostics);
    let mut input = Input {
        sentences,
        source,
        reader: file.reader,
        joined: None,
    };
    let shared = StackStatistics::default();
    let plans = (0..pages.len()).map(|index| Ok(job.plan(&mut input, &shared, index)?.to_string()));
    Ok(Foreseen {
        plans: plans.collect::<Result<_>>()?,
        formats,
        pages,
    })
}

/// One attempt: opens the input, prepares the shared statistics, and processes each page.
fn attempt(
    ops: &[&dyn Operation],
    (input, known, shared): (&Path, Option<&Source>, Option<&StackStatistics>),
    destination: Option<&Destination>,
    resources: &Resources,
    account: Account,
) -> Result<Done> {
    let mut timeline = Timeline::default();
    timeline.gpu_times = resources.gpu_times;
    let sentences = Sentences {
        verb: chain::verb(ops),
        input,
    };
    let unread = || sentences.unread();
    let target = destination.map(Destination::create).transpose()?;
    let opened = match (known, resources.only_files) {
        (Some(_), _) => None,
        (None, true) => Some(Source::open_file(input)),
        (None, false) => Some(Source::open(input)),
    };
    let mut opened = opened.transpose().with_context(unread)?;
    if account.digests {
        opened.iter_mut().for_each(Source::keep_digest);
    }
    let source = known.or(opened.as_ref()).with_context(unread)?;
    let file = OpenFile::open(ops, source, destination, &resources.reading, sentences)?;
    let own = file.own_op.as_deref().map(|op| [op]);
    let ops = own.as_ref().map_or(ops, |op| &op[..]);
    let largest = file.surveys.iter().map(memory).max().unwrap_or(0);
    let is_too_large = largest > MANY
        && resources.devices.may_avoid_waiting()
        && largest > (resources.budget).map_or_else(limits::free_memory, MemoryBudget::most);
    let _reservation = resources.budget.map(|budget| budget.reserve(largest));
    let (shape, pages) = (file.surveys[0].0, file.surveys.len());
    let output = destination.zip(target.as_ref());
    let output = output.map(|(destination, target)| file.encoder(ops, destination, target));
    let diagnostics = FileDiagnostics::new(file.reader.left_out(), pages);
    let mut job = Job::new(ops, output.transpose()?, resources, timeline, diagnostics);
    job.row_bands |= is_too_large;
    let mut input = Input {
        sentences,
        source,
        reader: file.reader,
        joined: None,
    };
    let own = match shared {
        Some(_) => StackStatistics::default(),
        None => StackStatistics::measure(&mut job, &mut input)?,
    };
    for index in 0..pages {
        job.run_page(&mut input, shared.unwrap_or(&own), index)?;
    }
    let record = source.record().with_context(unread)?;
    let unchanged = match account.passes {
        Some(passes) => passes.check(sentences.input, source),
        None => source.check_unchanged(),
    };
    unchanged.with_context(unread)?;
    let damage = input.reader.damage();
    let (mut done, length) = job.finish(shape, damage);
    if let Some(((destination, target), length)) = destination.zip(target).zip(length) {
        let announce = |output| {
            (account.announce)(&Finished {
                output,
                input: record,
                damaged: done.damage.is_some(),
            })
        };
        let traffic = target
            .commit_announced(length, announce)
            .with_context(|| unwritten(&destination.path))?;
        done.timeline.encoded(&traffic);
    }
    Ok(done)
}

/// Refuses operations and an output that do not fit a page of this shape.
fn check_page(
    ops: &[&dyn Operation],
    shape: Shape,
    output: Option<&Destination>,
    sentences: Sentences,
) -> Result<()> {
    let wanted = output.map_or((None, false), |output| (output.depth, output.auto_orient));
    chain::check(ops, shape, wanted, |verb| sentences.not(verb))?;
    if let Some(output) = output {
        let fits = output.check_fit(&shape, chain::output_depth(ops, shape.depth));
        fits.with_context(|| sentences.undone())?;
    }
    Ok(())
}
