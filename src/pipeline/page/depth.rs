//! `--depth`: widens samples before the operation, and narrows them after it.

use super::PageProcessor;
use crate::exec::Pixels;
use crate::image::Depth;
use crate::image::number::Number;
use crate::metadata::{Alpha, Effect, Metadata};
use crate::ops::{Operation, depth};
use anyhow::Result;

/// Widens 8-bit samples to 16 bits where the output has 16, before the first operation, so that the
/// result uses all 16 bits. Where values are stretched, alpha is scaled to the full depth as well.
pub fn widen(
    processor: &mut PageProcessor,
    pixels: Pixels,
    metadata: &Metadata,
    ops: &[&dyn Operation],
) -> Result<Pixels> {
    let Some((output, _)) = processor.output else {
        return Ok(pixels);
    };
    let from = pixels.shape();
    let stretches = |op: &&dyn Operation| op.effect() == Effect::Values;
    match (output.depth, metadata.maxval) {
        (Some(Depth::Sixteen), maxval) if from.depth == Depth::Eight => {
            let image = processor.executor.on_host(pixels)?;
            // If values will be stretched, whole steps of 257 are kept, in which the range is
            // reported.
            let most = maxval.filter(|_| !ops.first().is_some_and(stretches));
            let most = most.unwrap_or(Depth::Eight.full());
            let bytes = 3 * from.bytes() as u64;
            let timeline = &mut processor.executor.timeline;
            let widened = timeline.host("widen", bytes, || depth::widen(image, most));
            Ok(Pixels::Host(widened))
        }
        (depth, Some(most)) if fills_alpha(ops, depth) && metadata.alpha != Alpha::Unspecified => {
            let image = processor.executor.on_host(pixels)?;
            Ok(Pixels::Host(depth::with_full_alpha(image, most)))
        }
        _ => Ok(pixels),
    }
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

/// Narrows 16-bit samples to 8 bits where the output has 8, after the last operation, which
/// stretched values from `ranges`.
pub fn narrow(
    processor: &mut PageProcessor,
    pixels: Pixels,
    metadata: &Metadata,
    ranges: &[(Number, Number)],
) -> Result<Pixels> {
    let from = pixels.shape();
    let wanted = processor.output.and_then(|(output, _)| output.depth);
    if wanted != Some(Depth::Eight) || from.depth != Depth::Sixteen {
        return Ok(pixels);
    }
    let most = metadata.maxval.unwrap_or(Depth::Sixteen.full());
    let narrowed = processor.executor.narrow(pixels, ranges, most);
    narrowed.map_err(|error| processor.sentences.failed(error))
}
