//! One image through all stations, page by page: `one_image` names every one of them, in order.

mod stack;
mod station;

use crate::codec::{self, Format, Reader, Reading, Writer};
use crate::device::{Devices, Failed, Work};
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape, Values};
use crate::metadata::{Alpha, Effect, Metadata, Remarks, Story};
use crate::ops::histogram::Counts;
use crate::ops::normalize::Meaning;
use crate::ops::sum::Totals;
use crate::ops::{Op, Product};
use crate::outcome::Outcome;
use crate::room::Room;
use crate::stats::Timeline;
use anyhow::{Context, Result};
use stack::{Shared, Told};
use station::Station;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where an output goes and how it is written.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The file, or `-` for standard output.
    pub path: PathBuf,
    /// Its format, where it is not the input's.
    pub format: Option<Format>,
    /// How that format is written.
    pub options: codec::Options,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Whether the file must be on the disk itself before it gets its name.
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

/// What an image needs on its way: a device, and room in memory.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The devices to choose from.
    pub devices: &'a Devices,
    /// The memory that images on their way at the same time share, if it is limited.
    pub room: Option<&'a Room>,
    /// How inputs are read.
    pub reading: Reading,
}

/// Bytes of memory that an image takes on its way: its samples, those of the result, and at most as
/// much again of file.
pub fn memory(shape: &Shape) -> u64 {
    3 * shape.bytes() as u64
}

/// What was done with an image.
#[derive(Debug)]
pub struct Done {
    /// The shape of the first page.
    pub shape: Shape,
    /// Each page's totals, for operations that give numbers.
    pub totals: Vec<Totals>,
    /// The counts of all pages, for `histogram`.
    pub counts: Option<Counts>,
    /// The ranges that values were stretched from: one, or one for each colour channel; of every
    /// page.
    pub ranges: Vec<(i32, i32)>,
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

/// Carries one image from `input` to `output` (or to numbers) through `op`. Where `auto` chose a GPU
/// and it fails, all is done again on the CPU.
pub fn one_image(
    op: &dyn Op,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    let found = attempt(op, input, output, resources);
    let failed = found.as_ref().is_err_and(|error| error.is::<Failed>());
    // Standard input cannot be read twice.
    if !failed || input == Path::new("-") || !resources.devices.falls_back() {
        return found;
    }
    let cause = found.err().map(|error| error.root_cause().to_string());
    let mut done = attempt(op, input, output, resources)?;
    let cause = cause.unwrap_or_default();
    done.warnings
        .push(format!("done on the CPU, since the GPU failed: {cause}"));
    Ok(done)
}

/// The way itself, page by page.
fn attempt(
    op: &dyn Op,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    let mut timeline = Timeline::default();
    let target = output.map(create).transpose()?;
    let unread = || format!("cannot read {}", name(input));
    let undone = || format!("cannot {} {}", op.name(), name(input));
    let unwritten = || {
        format!(
            "cannot write {}",
            output.map_or(String::new(), |to| name(&to.path))
        )
    };

    let mut start = Instant::now();
    let source = Source::open(input).with_context(unread)?;
    let mut reader = Reader::open(&source, &resources.reading).with_context(unread)?;
    let surveys = reader.surveys().with_context(unread)?;
    for (shape, _) in &surveys {
        op.check(shape).with_context(undone)?;
    }
    let largest = surveys.iter().map(|(shape, _)| memory(shape)).max();
    let _place = resources.room.map(|room| room.take(largest.unwrap_or(0)));
    let (shape, pages) = (surveys[0].0, surveys.len());
    let writer = output.zip(target.as_ref()).map(|(output, target)| {
        let format = output.format.unwrap_or(reader.format());
        let room = surveys
            .into_iter()
            .map(|(shape, told)| (output.grown(shape), told));
        Writer::new(format, &output.options, target, room.collect())
    });
    let mut writer = writer.transpose().with_context(unwritten)?;
    let shared = Shared::measure(op, input, &mut reader, resources, &mut timeline)?;

    let mut told = Told::new(reader.left_out(), pages);
    let mut station = Station::new(input, resources, timeline);
    let (mut totals, mut counts) = (Vec::new(), None::<Counts>);
    let (mut ranges, mut last) = (Vec::new(), 0);
    for index in 0..pages {
        let mut remarks = Remarks::default();
        reader.turn_to(index).with_context(unread)?;
        let image = reader.decode().with_context(unread)?;
        let mut metadata = reader.metadata(&mut remarks).with_context(unread)?;
        let bytes = image.shape().bytes() as u64;
        let traffic = source.traffic.take();
        station.timeline.decoded(start, bytes, &traffic);

        let op = shared.of(op, &image.shape(), &metadata);
        let meaning = meaning(&metadata, image.shape().depth, output, writer.as_ref());
        let fitting = op.with_meaning(meaning).with_context(undone)?;
        let op = fitting.as_deref().unwrap_or(op);
        remarks.warnings.extend(warning(op, &metadata));
        let story = Story {
            effect: op.effect(),
            from: image.shape(),
            to: image.shape(),
            pages,
            whole: reader.is_whole(),
        };
        let image = match output {
            Some(output) => station.prepared(image, output, &mut metadata, story, &mut remarks),
            None => Ok(image),
        };
        let from = image.as_ref().map_or(story.from, Image::shape);
        // What is to be narrowed after the operation comes back for it.
        let narrows = output.and_then(|output| output.depth) == Some(Depth::Eight)
            && from.depth == Depth::Sixteen;
        let png = !narrows && writer.as_ref().is_some_and(Writer::is_for_gpu);
        let (result, compressed) = image.and_then(|image| station.carry(op, image, png))?;
        remarks.warnings.extend(result.warnings);
        start = Instant::now();
        match result.product {
            Product::Totals(found) => totals.push(Totals {
                page: (pages > 1).then_some(reader.pages()[index] + 1),
                zero: metadata.zero(found.shape.depth),
                ..found
            }),
            Product::Counts(found) => {
                let found = Counts {
                    signed: metadata.signed,
                    ..found
                };
                match &mut counts {
                    None => counts = Some(found),
                    Some(counts) => counts.join(&found).with_context(undone)?,
                }
            }
            Product::Image(image) => {
                if let Some((output, writer)) = output.zip(writer.as_mut()) {
                    let image = station.narrowed(image, &result.ranges, output, &mut metadata);
                    let story = Story {
                        from,
                        to: image.shape(),
                        ..story
                    };
                    codec::metadata::follow(&mut metadata, &story, &mut remarks);
                    start = Instant::now();
                    let bytes = image.shape().bytes() as u64;
                    writer
                        .page(image, compressed, metadata, op.effect(), &mut remarks)
                        .with_context(unwritten)?;
                    // What the last page took is told when the file is whole.
                    if let Some(target) = target.as_ref().filter(|_| index + 1 < pages) {
                        let traffic = target.traffic.take();
                        station.timeline.encoded(start, bytes, &traffic);
                        start = Instant::now();
                    } else {
                        last = bytes;
                    }
                }
            }
        }
        ranges.extend(result.ranges);
        told.add(reader.pages()[index] + 1, remarks);
    }
    let length = writer.map(|writer| writer.length());
    if let Some((target, length)) = target.zip(length) {
        let traffic = target.commit(length).with_context(unwritten)?;
        station.timeline.encoded(start, last, &traffic);
    }
    let Remarks { warnings, notes } = told.sentences();
    Ok(Done {
        shape,
        totals,
        counts,
        ranges,
        warnings,
        notes,
        damage: reader.damage(),
        device: station.device,
        work: station.work,
        timeline: station.timeline,
    })
}

/// What samples stand for in the input and in the output.
fn meaning(
    metadata: &Metadata,
    depth: Depth,
    output: Option<&Destination>,
    writer: Option<&Writer>,
) -> Meaning {
    let read = metadata.values(depth);
    let written = Values {
        depth: output.and_then(|output| output.depth).unwrap_or(depth),
        signed: read.signed && writer.is_none_or(|writer| writer.format().has_sign()),
    };
    Meaning { read, written }
}

/// What the user of an operation might not think of, where samples mean this.
fn warning(op: &dyn Op, metadata: &Metadata) -> Option<String> {
    let warns = op.effect() == Effect::Values && metadata.alpha == Alpha::Associated;
    let warning = "colours are multiplied by alpha (associated), and are stretched as they are";
    warns.then(|| warning.into())
}

/// A file's name for people: `-` is standard input or output.
fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "the standard stream".into()
    } else {
        path.display().to_string()
    }
}

fn create(output: &Destination) -> Result<Target> {
    let mut target = Target::create(&output.path, output.overwrite)
        .with_context(|| format!("cannot write {}", name(&output.path)))?;
    target.sync = output.sync;
    Ok(target)
}
