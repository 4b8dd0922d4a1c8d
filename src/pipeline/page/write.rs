//! Encodes a page.

use super::{Page, PageProcessor};
use crate::exec::{Form, Pixels};
use crate::image::{Depth, Shape};
use crate::metadata::{Diagnostics, Effect};
use crate::pipeline::errors::unwritten;
use anyhow::{Context, Result};
use std::time::Instant;

/// Adds a page to the output after an operation of this effect.
pub fn encode(
    processor: &mut PageProcessor,
    page: Page,
    effect: Effect,
    diagnostics: &mut Diagnostics,
) -> Result<()> {
    let Some(((output, _), writer)) = processor.output.zip(processor.writer.as_mut()) else {
        return Ok(());
    };
    let shape = page.pixels.shape();
    processor.last = shape.bytes() as u64;
    let form = match writer.is_for_gpu() && shape.pixels() >= WORTH_COMPRESSING {
        true => Form::Png,
        false => Form::Samples,
    };
    let pixels = processor.executor.delivered(page.pixels, form);
    let written = match pixels.map_err(|error| processor.sentences.failed(error))? {
        Pixels::Deflated(deflated) => {
            processor.since = Instant::now();
            writer.deflated(&deflated, page.metadata, effect, diagnostics)
        }
        pixels => {
            let image = processor.executor.on_host(pixels)?;
            processor.since = Instant::now();
            writer.page(image, page.metadata, effect, diagnostics)
        }
    };
    written.with_context(|| unwritten(&output.path))
}

/// Records the time of writing the previous page, which is not the last.
pub fn tell_written(processor: &mut PageProcessor) {
    if let Some((_, Some(target))) = processor.output {
        let traffic = target.traffic.take();
        let timeline = &mut processor.executor.timeline;
        timeline.encoded(processor.since, processor.last, &traffic);
        processor.since = Instant::now();
    }
}

/// Pixels of an image that a GPU compresses rather than the host, where it has made it smaller.
const WORTH_COMPRESSING: usize = 1 << 20;

/// The form in which a GPU returns the result: it stays there if its samples still need a change, or is
/// deflated if the output is a PNG.
pub fn form(processor: &PageProcessor, shape: Shape) -> Form {
    let output = processor.output.map(|(output, _)| output);
    let depth = output.and_then(|output| output.depth);
    let narrows = depth == Some(Depth::Eight) && shape.depth == Depth::Sixteen;
    let changes = narrows || output.is_some_and(|output| output.fitted(shape) != shape);
    match &processor.writer {
        _ if changes => Form::Device,
        Some(writer) if writer.is_for_gpu() => Form::Png,
        _ => Form::Samples,
    }
}
