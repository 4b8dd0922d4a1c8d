//! Processes one image from file to file: opens it, measures the statistic that its pages share, if
//! the operation asks for one, and runs each page through the page processor (`page.rs`).

mod diagnostics;
mod page;
mod stack;

use crate::codec::{self, Format, Reader, Reading, Writer};
use crate::device::{Devices, Failed, Unusable, Work};
use crate::exec::Executor;
use crate::files::{Identity, Source, Target};
use crate::image::{Depth, Shape};
use crate::memory_budget::MemoryBudget;
use crate::metadata::Diagnostics;
use crate::ops::Operation;
use crate::ops::histogram::Counts;
use crate::ops::sum::Totals;
use crate::outcome::Outcome;
use crate::timing::Timeline;
use anyhow::{Context, Error, Result};
use diagnostics::FileDiagnostics;
use page::PageProcessor;
use stack::StackStatistics;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where an output goes and how it is written.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The file's path, or `-` for standard output.
    pub path: PathBuf,
    /// The output's format; `None` keeps the input's.
    pub format: Option<&'static dyn Format>,
    /// The compression for each format.
    pub options: codec::Options,
    /// Whether to replace an existing file.
    pub overwrite: bool,
    /// Whether to flush the file to the disk before it gets its name, and the directory afterwards.
    pub sync: bool,
    /// The output's depth; `None` keeps the input's.
    pub depth: Option<Depth>,
    /// Whether to apply the orientation tag first, so that the image is upright.
    pub auto_orient: bool,
}

impl Destination {
    /// The largest shape that this destination can make of an image of the given shape.
    fn grown(&self, shape: Shape) -> Shape {
        Shape {
            depth: self.depth.unwrap_or(shape.depth),
            ..shape
        }
    }
}

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
}

/// Bytes of memory that a page needs while it is processed: its samples, the samples of the result,
/// and at most as many bytes of file; likewise for its metadata, whose size in the file is the
/// second number.
pub fn memory((shape, metadata): &(Shape, u64)) -> u64 {
    (shape.bytes() as u64)
        .saturating_add(*metadata)
        .saturating_mul(3)
}

/// The outcome for one image.
#[derive(Debug)]
pub struct Done {
    /// The shape of the first page.
    pub shape: Shape,
    /// The numbers that the operation gave.
    pub found: Found,
    /// Warnings for the user, always printed.
    pub warnings: Vec<String>,
    /// Notes for the user, printed with `--verbose`.
    pub notes: Vec<String>,
    /// A sentence about the damaged parts, which are 0 in the output, if the error policy was to go
    /// on.
    pub damage: Option<String>,
    /// The device that processed the image, and why it was chosen.
    pub device: String,
    /// The bytes that one page's operation had to move.
    pub work: Work,
    /// The time that each stage took.
    pub timeline: Timeline,
}

/// The numbers that the pages of one image gave.
#[derive(Debug, Default)]
pub struct Found {
    /// The totals of each page, for `sum`.
    pub totals: Vec<Totals>,
    /// The counts of all pages, for `histogram`.
    pub counts: Option<Counts>,
    /// The input ranges that values were stretched from, of every page: one range a page, or one
    /// for each colour channel.
    pub ranges: Vec<(i32, i32)>,
}

impl Found {
    fn count(&mut self, more: Counts) -> Result<()> {
        match &mut self.counts {
            None => self.counts = Some(more),
            Some(counts) => counts.join(&more)?,
        }
        Ok(())
    }
}

impl Done {
    /// All sentences about this image for the user, with `{file}` in place of the file's name.
    pub fn sentences(&self, verbose: bool) -> Vec<String> {
        let warnings = self.warnings.iter();
        let mut sentences: Vec<String> = warnings
            .map(|warning| format!("warning: {{file}}: {warning}"))
            .collect();
        if let Some(damage) = &self.damage {
            sentences.push(format!("{{file}} is damaged, and 0 where it is: {damage}"));
        }
        if verbose {
            sentences.extend(self.notes.iter().map(|note| format!("{{file}}: {note}")));
        }
        sentences
    }

    /// Whether the whole image was processed without damage.
    pub fn outcome(&self) -> Outcome {
        match self.damage {
            Some(_) => Outcome::SomeFailed,
            None => Outcome::Done,
        }
    }
}

/// Called with the identity of the file that is about to be renamed to the output's name, and with
/// whether the input was damaged; an error prevents the renaming.
pub type Announce<'a> = &'a dyn Fn(Identity, bool) -> Result<()>;

/// Runs `op` on the image file `input` and writes an image to `output`, or returns numbers. If
/// `auto` chose a GPU and it fails, starts again on the CPU.
pub fn one_image(
    op: &dyn Operation,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    one_image_announced(op, input, output, resources, &|_, _| Ok(()))
}

/// As `one_image`, and calls `announce` before the output gets its name.
pub fn one_image_announced(
    op: &dyn Operation,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
    announce: Announce,
) -> Result<Done> {
    let result = attempt(op, input, output, resources, announce);
    let failed = result.as_ref().is_err_and(|error| error.is::<Failed>());
    // Standard input cannot be read twice.
    if !failed || input == Path::new("-") || !resources.devices.falls_back() {
        return result;
    }
    let cause = result.err().map(|error| error.root_cause().to_string());
    let mut done = attempt(op, input, output, resources, announce)?;
    let cause = cause.unwrap_or_default();
    done.warnings
        .push(format!("done on the CPU, since the GPU failed: {cause}"));
    Ok(done)
}

/// One attempt: opens the input, prepares the shared statistic, and processes each page.
fn attempt(
    op: &dyn Operation,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
    announce: Announce,
) -> Result<Done> {
    let (since, timeline) = (Instant::now(), Timeline::default());
    let target = output.map(create).transpose()?;
    let source = match resources.only_files {
        true => Source::open_file(input),
        false => Source::open(input),
    };
    let source = source.with_context(|| unread(input))?;
    let mut reader = Reader::open(&source, &resources.reading).with_context(|| unread(input))?;
    let surveys = reader.surveys().with_context(|| unread(input))?;
    for (shape, _) in &surveys {
        op.check(shape).with_context(|| undone(op, input))?;
    }
    let largest = surveys.iter().map(memory).max();
    let _reservation = resources
        .budget
        .map(|budget| budget.reserve(largest.unwrap_or(0)));
    let (shape, pages) = (surveys[0].0, surveys.len());
    let writer = output.zip(target.as_ref()).map(|(output, target)| {
        let format = output.format.unwrap_or(reader.format());
        let surveys = surveys.into_iter();
        let pages = surveys.map(|(shape, bytes)| (output.grown(shape), bytes));
        let pages: Vec<_> = pages.collect();
        Writer::new(format, &output.options, target, &pages).with_context(|| unwritten(output))
    });
    let writer = writer.transpose()?;
    let mut executor = Executor::new(resources.devices, timeline);
    let stack = StackStatistics::measure(op, input, &mut reader, &mut executor)?;

    // A scope of its own: at its end nothing borrows the target any more.
    let (length, reader, mut executor, diagnostics, found, since, last) = {
        let mut processor = PageProcessor {
            input,
            output: output.zip(target.as_ref()),
            source: &source,
            diagnostics: FileDiagnostics::new(reader.left_out(), pages),
            reader,
            writer,
            executor,
            found: Found::default(),
            since,
            last: 0,
        };
        for index in 0..pages {
            processor.page(op, &stack, index)?;
        }
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
        let damaged = reader.damage().is_some();
        let traffic = target
            .commit_announced(length, |made| announce(made, damaged))
            .with_context(|| unwritten(output))?;
        executor.timeline.encoded(since, last, &traffic);
    }
    let Diagnostics { warnings, notes } = diagnostics.finish();
    Ok(Done {
        shape,
        found,
        warnings,
        notes,
        damage: reader.damage(),
        device: executor.device,
        work: executor.work,
        timeline: executor.timeline,
    })
}

/// A file's name for people: `-` is standard input or output.
fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "the standard stream".into()
    } else {
        path.display().to_string()
    }
}

fn unread(input: &Path) -> String {
    format!("cannot read {}", name(input))
}

fn undone(op: &dyn Operation, input: &Path) -> String {
    format!("cannot {} {}", op.name(), name(input))
}

/// Adds to an error the operation and the file that it concerns, unless the GPU cannot be used at
/// all.
fn failed(error: Error, op: &dyn Operation, input: &Path) -> Error {
    match error.is::<Unusable>() {
        true => error,
        false => error.context(undone(op, input)),
    }
}

fn unwritten(output: &Destination) -> String {
    format!("cannot write {}", name(&output.path))
}

fn create(output: &Destination) -> Result<Target> {
    let mut target =
        Target::create(&output.path, output.overwrite).with_context(|| unwritten(output))?;
    target.sync = output.sync;
    Ok(target)
}
