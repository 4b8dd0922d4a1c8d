//! One image through all stations: `one_image` names every one of them, in order.

use crate::codec::{self, Format};
use crate::device::Devices;
use crate::files::{Source, Target};
use crate::image::{Depth, Image, Shape};
use crate::ops::sum::Totals;
use crate::ops::{Op, Output, Product, depth};
use crate::stats::Timeline;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where an output goes and how it is written.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The file, or `-` for standard output.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// How that format is written.
    pub options: codec::Options,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// The depth asked for, where it is not the input's.
    pub depth: Option<Depth>,
}

/// What was done with an image.
#[derive(Debug)]
pub struct Done {
    /// The input's shape.
    pub shape: Shape,
    /// The totals, for operations that give numbers.
    pub totals: Option<Totals>,
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
    devices: &Devices,
) -> Result<Done> {
    let mut timeline = Timeline::default();
    let target = output.map(create).transpose()?;

    let image =
        decode(input, &mut timeline).with_context(|| format!("cannot read {}", name(input)))?;
    let shape = image.shape();
    op.check(&shape)
        .with_context(|| format!("cannot {} {}", op.name(), name(input)))?;
    let image = widened(image, output, &mut timeline);
    let (gpu, device) = devices.choose(&op.work(&shape), &mut timeline)?;
    let result = match gpu {
        Some(gpu) => op.cuda(image, gpu, &mut timeline),
        None => op.cpu(image, &mut timeline),
    };
    let Output { product, warnings } =
        result.with_context(|| format!("cannot {} {}", op.name(), name(input)))?;

    let totals = match product {
        Product::Totals(totals) => Some(totals),
        Product::Image(image) => {
            if let Some((output, target)) = output.zip(target) {
                let image = narrowed(image, op, output, &mut timeline);
                encode(&image, output, target, &mut timeline)
                    .with_context(|| format!("cannot write {}", name(&output.path)))?;
            }
            None
        }
    };
    Ok(Done {
        shape,
        totals,
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
    Target::create(&output.path, output.overwrite)
        .with_context(|| format!("cannot write {}", name(&output.path)))
}

fn decode(input: &Path, timeline: &mut Timeline) -> Result<Image> {
    let start = Instant::now();
    let source = Source::open(input)?;
    let image = codec::decode(&source)?;
    timeline.decoded(start, image.shape().bytes() as u64, &source.traffic);
    Ok(image)
}

fn encode(
    image: &Image,
    output: &Destination,
    target: Target,
    timeline: &mut Timeline,
) -> Result<()> {
    let start = Instant::now();
    let length = codec::encode(image, output.format, &output.options, &target)?;
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
