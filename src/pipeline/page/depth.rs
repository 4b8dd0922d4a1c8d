//! `--depth`: widens samples before the operation, and narrows them after it.

use super::PageProcessor;
use crate::exec::Pixels;
use crate::image::number::Number;
use crate::image::{Depth, Image};
use crate::metadata::{Alpha, Effect, Metadata};
use crate::ops::{Operation, depth};
use crate::pipeline::Destination;
use crate::timing::Timeline;
use anyhow::Result;

/// What is done to samples before the first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widening {
    /// Nothing.
    None,
    /// Samples of 8 bits up to this one become samples of 16.
    Samples(u16),
    /// Alpha up to this sample is scaled to the full depth.
    Alpha(u16),
}

impl Widening {
    /// Widens 8-bit samples to 16 bits where the output has 16, so that the result uses all 16 bits. Where values are
    /// stretched, alpha is scaled to the full depth as well.
    pub fn of(
        output: Option<&Destination>,
        metadata: &Metadata,
        from: Depth,
        ops: &[&dyn Operation],
    ) -> Widening {
        let Some(output) = output else {
            return Widening::None;
        };
        let stretches = |op: &&dyn Operation| op.effect() == Effect::Values;
        match (output.depth, metadata.maxval) {
            (Some(Depth::Sixteen), maxval) if from == Depth::Eight => {
                // If values will be stretched, whole steps of 257 are kept, in which the range is
                // reported.
                let most = maxval.filter(|_| !ops.first().is_some_and(stretches));
                Widening::Samples(most.unwrap_or(Depth::Eight.full()))
            }
            (depth, Some(most))
                if fills_alpha(ops, depth) && metadata.alpha != Alpha::Unspecified =>
            {
                Widening::Alpha(most)
            }
            _ => Widening::None,
        }
    }

    /// The samples of an image, or of rows of one, after it.
    pub fn apply(self, image: Image, timeline: &mut Timeline) -> Image {
        let bytes = 3 * image.shape().bytes() as u64;
        match self {
            Widening::None => image,
            Widening::Samples(most) => timeline.host("widen", bytes, || depth::widen(image, most)),
            Widening::Alpha(most) => depth::with_full_alpha(image, most),
        }
    }

    /// The depth of such samples.
    pub fn made(self, from: Depth) -> Depth {
        match self {
            Widening::Samples(_) => Depth::Sixteen,
            Widening::None | Widening::Alpha(_) => from,
        }
    }
}

/// Prepares the pixels of a page for the first operation.
pub fn widen(
    processor: &mut PageProcessor,
    pixels: Pixels,
    metadata: &Metadata,
    ops: &[&dyn Operation],
) -> Result<Pixels> {
    let output = processor.output.map(|(output, _)| output);
    let widening = Widening::of(output, metadata, pixels.shape().depth, ops);
    if widening == Widening::None {
        return Ok(pixels);
    }
    let image = processor.executor.on_host(pixels)?;
    let timeline = &mut processor.executor.timeline;
    Ok(Pixels::Host(widening.apply(image, timeline)))
}

/// Whether alpha is to reach the full depth because values are stretched to it, and the largest value
/// that the file names still holds when they are: moving pixels keeps it. Samples that are narrowed
/// right after they were stretched have their alpha scaled together with the colours.
fn fills_alpha(ops: &[&dyn Operation], depth: Option<Depth>) -> bool {
    let moves = |op: &&dyn Operation| matches!(op.effect(), Effect::Moves(_));
    match ops.iter().position(|op| !moves(op)) {
        Some(index) => {
            let narrowed = depth == Some(Depth::Eight) && index + 1 == ops.len();
            ops[index].effect() == Effect::Values && !narrowed
        }
        None => false,
    }
}

/// The largest sample of those that are narrowed to 8 bits, if they are.
pub fn narrowed(output: Option<&Destination>, metadata: &Metadata, from: Depth) -> Option<u16> {
    let wanted = output.and_then(|output| output.depth);
    let narrows = wanted == Some(Depth::Eight) && from == Depth::Sixteen;
    narrows.then_some(metadata.maxval.unwrap_or(Depth::Sixteen.full()))
}

/// Narrows 16-bit samples to 8 bits where the output has 8, after the last operation, which
/// stretched values from `ranges`.
pub fn narrow(
    processor: &mut PageProcessor,
    pixels: Pixels,
    metadata: &Metadata,
    ranges: &[(Number, Number)],
) -> Result<Pixels> {
    let output = processor.output.map(|(output, _)| output);
    let Some(most) = narrowed(output, metadata, pixels.shape().depth) else {
        return Ok(pixels);
    };
    let narrowed = processor.executor.narrow(pixels, ranges, most);
    narrowed.map_err(|error| processor.sentences.failed(error))
}
