//! Runs the operation on a page that has been brought to its orientation and depth.

use super::{PageProcessor, read, write};
use crate::codec::Writer;
use crate::device::NoMemory;
use crate::exec::{Pixels, Task};
use crate::image::{Depth, Shape, Values};
use crate::metadata::{Alpha, Effect, Metadata};
use crate::ops::{Executed, Operation, SampleTypes};
use anyhow::{Result, ensure};
use std::time::Instant;

/// Runs the operation on the pixels of a page.
pub fn run(processor: &mut PageProcessor, task: &Task, pixels: Pixels) -> Result<Executed<Pixels>> {
    let shape = pixels.shape();
    let form = write::form(processor, shape);
    let resident = matches!(pixels, Pixels::Device(_));
    let mut executed = processor.executor.run(task, pixels, form);
    if resident && executed.as_ref().is_err_and(|error| error.is::<NoMemory>()) {
        // Device memory holds the decoded image, but not the operation's result as well: the
        // host decodes the image again, and the operation runs in bands.
        processor.since = Instant::now();
        let image = read::decode_on_host(processor)?;
        read::tell_decoded(processor, shape);
        executed = processor.executor.run(task, Pixels::Host(image), form);
    }
    executed.map_err(|error| processor.sentences.failed(error))
}

/// The sample types of a page: in memory, where its depth is `depth`, in the input, where its shape
/// is `shape`, and in the output.
pub fn sample_types(
    processor: &PageProcessor,
    op: &dyn Operation,
    metadata: &Metadata,
    shape: Shape,
    depth: Depth,
) -> SampleTypes {
    let made = op.made(shape.depth);
    let read = metadata.values(shape.depth);
    let wanted = processor.output.and_then(|(output, _)| output.depth);
    let has_sign = |writer: &Writer| writer.format().capabilities().signed;
    let written = Values {
        depth: wanted.unwrap_or(made),
        // 32 bits become fewer without sign.
        signed: read.signed
            && made == shape.depth
            && processor.writer.as_ref().is_none_or(has_sign),
    };
    SampleTypes {
        channels: shape.channels,
        depth,
        read,
        written,
    }
}

/// A warning about an operation whose result may surprise on samples with this metadata, of an image
/// of this shape.
///
/// # Errors
/// A channel that the operation can neither keep nor change.
pub fn warning(op: &dyn Operation, metadata: &Metadata, shape: &Shape) -> Result<Option<String>> {
    let keeps = op.made(shape.depth) == shape.depth;
    ensure!(
        keeps || metadata.alpha != Alpha::Unspecified,
        "its last channel, of no stated meaning, has {}, which nothing says how to make 16",
        shape.depth
    );
    let warning = match metadata.alpha {
        Alpha::Associated => {
            "colours are multiplied by alpha (associated), and are stretched as they are"
        }
        Alpha::Unspecified => "its last channel, of no stated meaning, is left as it is",
        Alpha::Independent => return Ok(None),
    };
    Ok((op.effect() == Effect::Values).then(|| warning.into()))
}
