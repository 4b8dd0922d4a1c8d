//! One image through all stations: `one_image` names every one of them, in order.

use crate::codec::{self, Format, Reader};
use crate::device::Devices;
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape};
use crate::ops::histogram::Counts;
use crate::ops::sum::Totals;
use crate::ops::{self, Op, Output, Product, depth};
use crate::room::Room;
use crate::stats::Timeline;
use anyhow::{Context, Result};
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
}

/// What an image needs on its way: a device, and room in memory.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The devices to choose from.
    pub devices: &'a Devices,
    /// The memory that images on their way at the same time share, if it is limited.
    pub room: Option<&'a Room>,
}

/// Bytes of memory that an image takes on its way: its samples, those of the result, and at most as
/// much again of file.
pub fn memory(shape: &Shape) -> u64 {
    3 * shape.bytes() as u64
}

/// What was done with an image.
#[derive(Debug)]
pub struct Done {
    /// The input's shape.
    pub shape: Shape,
    /// The totals, for operations that give numbers.
    pub totals: Option<Totals>,
    /// The counts, for `histogram`.
    pub counts: Option<Counts>,
    /// The ranges that values were stretched from: one, or one for each colour channel.
    pub ranges: Vec<(u16, u16)>,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// Which device did it, and why.
    pub device: String,
    /// Where the time went.
    pub timeline: Timeline,
}

/// Carries one image from `input` to `output` (or to numbers) through `op`.
pub fn one_image(
    op: &dyn Op,
    input: &Path,
    output: Option<&Destination>,
    resources: &Resources,
) -> Result<Done> {
    let mut timeline = Timeline::default();
    let target = output.map(create).transpose()?;

    let start = Instant::now();
    let unread = || format!("cannot read {}", name(input));
    let source = Source::open(input).with_context(unread)?;
    let reader = Reader::open(&source).with_context(unread)?;
    let (shape, format) = (reader.shape(), reader.format());
    op.check(&shape)
        .with_context(|| format!("cannot {} {}", op.name(), name(input)))?;
    let _place = resources.room.map(|room| room.take(memory(&shape)));
    let image = reader.decode().with_context(unread)?;
    timeline.decoded(start, shape.bytes() as u64, &source.traffic);

    let image = widened(image, output, &mut timeline);
    let (gpu, device) = resources.devices.choose(&op.work(&shape), &mut timeline)?;
    let result = match gpu {
        Some(gpu) => ops::on_gpu(op, image, gpu, &mut timeline),
        None => op.cpu(image, &mut timeline),
    };
    let Output {
        product,
        ranges,
        warnings,
    } = result.with_context(|| format!("cannot {} {}", op.name(), name(input)))?;

    let (mut totals, mut counts) = (None, None);
    match product {
        Product::Totals(found) => totals = Some(found),
        Product::Counts(found) => counts = Some(found),
        Product::Image(image) => {
            if let Some((output, target)) = output.zip(target) {
                let image = narrowed(image, op, output, &mut timeline);
                encode(&image, output, format, target, &mut timeline)
                    .with_context(|| format!("cannot write {}", name(&output.path)))?;
            }
        }
    }
    Ok(Done {
        shape,
        totals,
        counts,
        ranges,
        warnings,
        device,
        timeline,
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

fn create(output: &Destination) -> Result<Target> {
    let mut target = Target::create(&output.path, output.overwrite)
        .with_context(|| format!("cannot write {}", name(&output.path)))?;
    target.sync = output.sync;
    Ok(target)
}

fn encode(
    image: &Image,
    output: &Destination,
    inputs: Format,
    target: Target,
    timeline: &mut Timeline,
) -> Result<()> {
    let start = Instant::now();
    let format = output.format.unwrap_or(inputs);
    let length = codec::encode(image, format, &output.options, &target)?;
    let traffic = target.commit(length)?;
    timeline.encoded(start, image.shape().bytes() as u64, &traffic);
    Ok(())
}

/// 8 bits become 16 before the operation, so that its result has all 16.
fn widened(image: Image, output: Option<&Destination>, timeline: &mut Timeline) -> Image {
    match output.and_then(|output| output.depth) {
        Some(Depth::Sixteen) if image.shape().depth == Depth::Eight => {
            timeline.host("widen", 3 * image.shape().bytes() as u64, || {
                depth::widen(image)
            })
        }
        _ => image,
    }
}

/// 16 bits become 8 after it; an operation that scales has scaled to 8 bits already, so that
/// nothing is rounded twice.
fn narrowed(image: Image, op: &dyn Op, output: &Destination, timeline: &mut Timeline) -> Image {
    match output.depth {
        Some(Depth::Eight) if image.shape().depth == Depth::Sixteen => {
            let bytes = 3 * image.shape().samples() as u64;
            timeline.host("narrow", bytes, || depth::narrow(image, op.scales()))
        }
        _ => image,
    }
}
