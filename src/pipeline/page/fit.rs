//! `--fit`: makes a page smaller, when all else has been done to it.

use super::PageProcessor;
use crate::codec;
use crate::exec::Pixels;
use crate::metadata::{Diagnostics, Effect, Metadata, Transform};
use anyhow::Result;

/// Makes a page smaller, if the output is to be, and its metadata true of it.
pub fn reduce(
    processor: &mut PageProcessor,
    pixels: Pixels,
    metadata: &mut Metadata,
    diagnostics: &mut Diagnostics,
) -> Result<Pixels> {
    let from = pixels.shape();
    let Some(fit) = processor.output.and_then(|(output, _)| output.fit) else {
        return Ok(pixels);
    };
    let to = fit.output(from);
    if to == from {
        return Ok(pixels);
    }
    let reduced = processor.executor.reduce(fit, pixels);
    let reduced = reduced.map_err(|error| processor.sentences.failed(error))?;
    let transform = Transform {
        effect: Effect::Reduced,
        from,
        to,
        pages: processor.pages(),
        whole: true,
    };
    codec::metadata::follow(metadata, &transform, diagnostics);
    Ok(reduced)
}
