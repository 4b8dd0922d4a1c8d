//! `--auto-orient`: turns a page as its orientation tag says.

use super::PageProcessor;
use crate::exec::{Form, Pixels, Task};
use crate::metadata::Metadata;
use crate::ops::symmetry::Symmetry;
use crate::ops::{OpResult, Operation};
use anyhow::{Result, bail};

/// Brings the pixels of a page upright, if the output is to be.
pub fn turn(processor: &mut PageProcessor, pixels: Pixels, metadata: &Metadata) -> Result<Pixels> {
    let Some(symmetry) = symmetry(processor, metadata) else {
        return Ok(pixels);
    };
    let task = Task::plain(&symmetry, &pixels.shape());
    let executed = processor.executor.run(&[task], pixels, Form::Samples);
    let executed = executed.map_err(|error| processor.sentences.failed(error))?;
    match executed.result {
        OpResult::Image(pixels) => Ok(pixels),
        _ => bail!("{} gave no image", symmetry.name()),
    }
}

/// The symmetry that `turn` applies to a page with this metadata, if any.
pub fn symmetry(processor: &PageProcessor, metadata: &Metadata) -> Option<Symmetry> {
    processor.output.filter(|(output, _)| output.auto_orient)?;
    metadata.orientation.and_then(Symmetry::upright)
}
