//! One image from file to file: opened, measured if its pages share a statistic, and sent page by page
//! through the page processor (`page.rs`), which names every step in order.

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
    /// The file, or `-` for standard output.
    pub path: PathBuf,
    /// Its format, where it is not the input's.
    pub format: Option<&'static dyn Format>,
    /// How that format is written.
    pub options: codec::Options,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Whether the file must be on the disk itself before it gets its name, and the name after.
    pub sync: bool,
    /// The depth asked for, where it is not the input's.
    pub depth: Option<Depth>,
    /// Whether the image is brought upright first, as its orientation tag says.
    pub auto_orient: bool,
}

impl Destination {
    /// At most so large is what an image of a shape becomes.
    fn grown(&self, shape: Shape) -> Shape {
        Shape {
            depth: self.depth.unwrap_or(shape.depth),
            ..shape
        }
    }
}

/// What an image needs: a device, and room in memory.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The devices to choose from.
    pub devices: &'a Devices,
    /// The memory that images on their way at the same time share, if it is limited.
    pub budget: Option<&'a MemoryBudget>,
    /// How inputs are read.
    pub reading: Reading,
    /// Whether an input must be a regular file: it was one when it was listed.
    pub only_files: bool,
}

/// Bytes of memory that a page takes on its way: its samples, those of the result, and at most as
/// much again of file; and the same of its `metadata`, which have so many bytes in the file.
pub fn memory((shape, metadata): &(Shape, u64)) -> u64 {
    (shape.bytes() as u64)
        .saturating_add(*metadata)
        .saturating_mul(3)
}

/// What was done with an image.
#[derive(Debug)]
pub struct Done {
    /// The shape of the first page.
    pub shape: Shape,
    /// The numbers that were found.
    pub found: Found,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// Sentences for the user who wants to know all.
    pub notes: Vec<String>,
    /// What was damaged and is 0 in the output, where that was to be survived.
    pub damage: Option<String>,
    /// Which device did it, and why.
    pub device: String,
    /// What that had to do, for a page.
    pub work: Work,
    /// Where the time went.
    pub timeline: Timeline,
}

/// The numbers that an image's way gave.
#[derive(Debug, Default)]
pub struct Found {
    /// Each page's totals, for operations that give numbers.
    pub totals: Vec<Totals>,
    /// The counts of all pages, for `histogram`.
    pub counts: Option<Counts>,
    /// The ranges that values were stretched from: one, or one for each colour channel; of every
    /// page.
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
    /// What is to be told of it, each sentence with `{file}` where the file's name belongs.
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

    /// Whether all of it was done.
    pub fn outcome(&self) -> Outcome {
        match self.damage {
            Some(_) => Outcome::SomeFailed,
            None => Outcome::Done,
        }
    }
}

/// Is told which file is about to get the output's name, and whether what was read was damaged; an
/// error keeps the file from its name.
pub type Announce<'a> = &'a dyn Fn(Identity, bool) -> Result<()>;

/// Runs `op` on the image file `input`, to `output` or to numbers. Where `auto` chose a GPU and it
/// fails, all is done again on the CPU.
pub fn one_image(
    op: &dyn Operation,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    one_image_announced(op, input, output, resources, &|_, _| Ok(()))
}

/// The same, and `announce` is told before the output appears.
pub fn one_image_announced(
    op: &dyn Operation,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
    announce: Announce,
) -> Result<Done> {
    let found = attempt(op, input, output, resources, announce);
    let failed = found.as_ref().is_err_and(|error| error.is::<Failed>());
    // Standard input cannot be read twice.
    if !failed || input == Path::new("-") || !resources.devices.falls_back() {
        return found;
    }
    let cause = found.err().map(|error| error.root_cause().to_string());
    let mut done = attempt(op, input, output, resources, announce)?;
    let cause = cause.unwrap_or_default();
    done.warnings
        .push(format!("done on the CPU, since the GPU failed: {cause}"));
    Ok(done)
}

/// What all pages need is prepared, and each is processed.
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

    // In a scope of its own, at whose end nothing borrows the target any more.
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

/// Says which operation failed on which file; that a GPU cannot be used is no fault of theirs.
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
