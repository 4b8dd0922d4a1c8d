//! Processes one image from file to file: opens it, measures the statistics that its pages share, if
//! an operation asks for one, and runs each page through the page processor (`page.rs`).

mod destination;
mod diagnostics;
mod done;
mod errors;
mod made;
mod many;
mod page;
mod split;
mod stack;

use crate::codec::{Reader, Reading, Writer};
use crate::device::{Devices, Failed};
use crate::exec::Executor;
use crate::files::{Identity, InputRecord, Passes, Source};
use crate::image::Shape;
use crate::limits;
use crate::memory_budget::MemoryBudget;
use crate::metadata::Diagnostics;
use crate::ops::{Operation, chain};
use crate::timing::Timeline;
use anyhow::{Context, Result};
use diagnostics::FileDiagnostics;
use errors::{Sentences, unwritten};
use page::PageProcessor;
use stack::StackStatistics;
use std::path::Path;
use std::time::Instant;

pub use destination::Destination;
pub use done::{Done, Found, FoundPage};
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
        done.warnings
            .push(format!("done on the CPU, since the GPU failed: {cause}"));
        return Ok(done);
    }
    result.map_err(|error| match failed {
        true => devices.unusable_if_lost(error),
        false => error,
    })
}

/// The operation for a file, where its metadata decide of what type its result is.
///
/// # Errors
/// Metadata that do not say it.
pub fn of_file(ops: &[&dyn Operation], reader: &Reader) -> Result<Option<Box<dyn Operation>>> {
    match ops {
        [op] => op.of_file(&|| reader.metadata(&mut Diagnostics::default())),
        _ => Ok(None),
    }
}

/// One attempt: opens the input, prepares the shared statistics, and processes each page.
fn attempt(
    ops: &[&dyn Operation],
    (input, known, shared): (&Path, Option<&Source>, Option<&StackStatistics>),
    output: Option<&Destination>,
    resources: &Resources,
    account: Account,
) -> Result<Done> {
    let (since, mut timeline) = (Instant::now(), Timeline::default());
    timeline.gpu_times = resources.gpu_times;
    let sentences = Sentences {
        verb: chain::verb(ops),
        input,
    };
    let unread = || sentences.unread();
    let target = output.map(Destination::create).transpose()?;
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
    let reader = Reader::open(source, &resources.reading).with_context(unread)?;
    let own = of_file(ops, &reader).with_context(|| sentences.undone())?;
    let own = own.as_deref().map(|op| [op]);
    let ops = own.as_ref().map_or(ops, |op| &op[..]);
    let surveys = reader.surveys().with_context(unread)?;
    let wanted = output.map_or((None, false), |output| (output.depth, output.auto_orient));
    for (shape, _) in &surveys {
        chain::check(ops, *shape, wanted, |verb| sentences.not(verb))?;
        if let Some(output) = output {
            let made = chain::made(ops, shape.depth);
            let fits = output.check_fit(shape, made);
            fits.with_context(|| sentences.undone())?;
        }
    }
    let largest = surveys.iter().map(memory).max().unwrap_or(0);
    let is_too_large = largest > MANY
        && resources.devices.may_avoid_waiting()
        && largest > (resources.budget).map_or_else(limits::free_memory, MemoryBudget::most);
    let _reservation = resources.budget.map(|budget| budget.reserve(largest));
    let (shape, pages) = (surveys[0].0, surveys.len());
    let writer = output.zip(target.as_ref()).map(|(output, target)| {
        let format = output.format.unwrap_or(reader.format());
        for (shape, _) in &surveys {
            (format.check_name(&output.path, shape)).with_context(|| unwritten(&output.path))?;
        }
        let grown = |shape: Shape| output.grown(shape, chain::made(ops, shape.depth));
        let surveys = surveys.into_iter();
        let pages = surveys.map(|(shape, bytes)| (grown(shape), bytes));
        let pages: Vec<_> = pages.collect();
        Writer::new(format, &output.options, target, &pages)
            .with_context(|| unwritten(&output.path))
    });
    let writer = writer.transpose()?;
    let executor = Executor::new(resources.devices, timeline);

    let record;
    // A scope of its own: at its end nothing borrows the target any more.
    let (length, reader, mut executor, diagnostics, found, since, last) = {
        let mut processor = PageProcessor {
            sentences,
            output: output.map(|output| (output, target.as_ref())),
            source,
            diagnostics: FileDiagnostics::new(reader.left_out(), pages),
            reader,
            writer,
            channel: 0,
            in_bands: output.is_some_and(|output| output.low_memory) || is_too_large,
            note: None,
            joined: None,
            executor,
            found: Found::default(),
            since,
            last: 0,
        };
        let own = match shared {
            Some(_) => StackStatistics::default(),
            None => StackStatistics::measure(ops, &mut processor)?,
        };
        for index in 0..pages {
            processor.page(ops, shared.unwrap_or(&own), index)?;
        }
        record = source.record().with_context(unread)?;
        let unchanged = match account.passes {
            Some(passes) => passes.check(input, source),
            None => source.check_unchanged(),
        };
        unchanged.with_context(unread)?;
        let length = processor.writer.map(|writer| writer.length());
        (
            length,
            processor.reader,
            processor.executor,
            processor.diagnostics,
            processor.found,
            processor.since,
            processor.last,
        )
    };
    if let Some(((output, target), length)) = output.zip(target).zip(length) {
        let announce = |output| {
            (account.announce)(&Finished {
                output,
                input: record,
                damaged: reader.damage().is_some(),
            })
        };
        let traffic = target
            .commit_announced(length, announce)
            .with_context(|| unwritten(&output.path))?;
        executor.timeline.encoded(since, last, &traffic);
    }
    let Diagnostics {
        warnings, notes, ..
    } = diagnostics.finish();
    Ok(Done {
        shape,
        found,
        warnings,
        notes,
        damage: reader.damage(),
        device: executor.device,
        timeline: executor.timeline,
    })
}
