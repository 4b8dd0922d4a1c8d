//! Runs the operations on a page that has been brought to its orientation and depth.

use super::{PageProcessor, read, write};
use crate::codec::Writer;
use crate::device::NoMemory;
use crate::exec::{Pixels, Task};
use crate::image::{Shape, Values};
use crate::metadata::{Alpha, Effect, Metadata};
use crate::ops::{Executed, Operation, SampleTypes, chain};
use crate::pipeline::stack::StackStatistics;
use anyhow::{Result, ensure};
use std::time::Instant;

/// Runs operations on the pixels of a page.
pub fn run(
    processor: &mut PageProcessor,
    tasks: &[Task],
    pixels: Pixels,
) -> Result<Executed<Pixels>> {
    let shape = pixels.shape();
    let form = write::form(processor, shape);
    let resident = matches!(pixels, Pixels::Device(_));
    let mut executed = processor.executor.run(tasks, pixels, form);
    if resident && executed.as_ref().is_err_and(|error| error.is::<NoMemory>()) {
        // Device memory holds the decoded image, but not an operation's result as well: the
        // host decodes the image again, and the operations run in bands.
        processor.since = Instant::now();
        let image = read::decode_on_host(processor)?;
        read::tell_decoded(processor, shape);
        executed = processor.executor.run(tasks, Pixels::Host(image), form);
    }
    executed.map_err(|error| processor.sentences.failed(error))
}

/// The operations on a page that was `read` in one shape and `prepared` in another, turned upright and
/// widened; each with the types of the samples that it is given and gives, and with the statistic of
/// its stack.
pub fn tasks<'a>(
    processor: &PageProcessor,
    ops: &[&'a dyn Operation],
    stack: &'a StackStatistics,
    metadata: &Metadata,
    (read, prepared): (Shape, Shape),
) -> Vec<Task<'a>> {
    let wanted = processor.output.and_then(|(output, _)| output.depth);
    let has_sign = |writer: &Writer| writer.format().capabilities().signed;
    let has_sign = processor.writer.as_ref().is_none_or(has_sign);
    let (channels, mut depth) = (read.channels, prepared.depth);
    let mut values = metadata.values(read.depth);
    let mut window = metadata.window;
    let stretch = metadata
        .stretch
        .as_ref()
        .and_then(|known| known.clone().ok());
    let task = |(step, op): (usize, &&'a dyn Operation)| {
        let is_last = step + 1 == ops.len();
        let made = op.made(depth);
        let types = SampleTypes {
            channels,
            depth,
            read: values,
            written: Values {
                depth: wanted.filter(|_| is_last).unwrap_or(made),
                // 32 bits become fewer without sign. Only the last step sees the output's format:
                // those before it give what a file between two steps would hold.
                signed: op.sign().unwrap_or(
                    values.signed && made == depth && op.keeps_sign() && (has_sign || !is_last),
                ),
            },
            window,
            stretch: stretch.filter(|_| step == 0),
        };
        if !matches!(op.effect(), Effect::Moves(_)) {
            window = None;
        }
        if made != depth {
            depth = types.written.depth;
        }
        values = Values {
            depth,
            // As in a file between the two: the sign is meaningless once values are stretched.
            signed: match op.effect() {
                Effect::Values => types.written.signed,
                _ => values.signed,
            },
        };
        Task {
            op: *op,
            types,
            statistics: stack.of((step, *op), &types, processor.channel),
        }
    };
    ops.iter().enumerate().map(task).collect()
}

/// A warning about a page that the options of the first operation do not suit. Of pixels that a GPU has
/// decoded nothing is known.
pub fn unsuited(tasks: &[Task], pixels: &Pixels) -> Option<String> {
    match (tasks.first()?, pixels) {
        (task, Pixels::Host(image)) => task.op.warning(image, &task.types),
        (_, Pixels::Device(_) | Pixels::Deflated(_)) => None,
    }
}

/// The effect of the last operation.
pub fn last(tasks: &[Task]) -> Effect {
    tasks
        .last()
        .map_or(Effect::Numbers, |task| task.op.effect())
}

/// A warning about operations whose result may surprise on samples with this metadata, of an image of
/// this shape.
///
/// # Errors
/// A channel that the operations can neither keep nor change.
pub fn warning(
    ops: &[&dyn Operation],
    metadata: &Metadata,
    shape: &Shape,
) -> Result<Option<String>> {
    ensure!(
        chain::made(ops, shape.depth) == shape.depth || metadata.alpha != Alpha::Unspecified,
        "its last channel, of no stated meaning, has {}, which nothing says how to make 16",
        shape.depth
    );
    let moves = |op: &&dyn Operation| matches!(op.effect(), Effect::Moves(_));
    ensure!(
        metadata.alpha != Alpha::Black || ops.iter().all(moves),
        "its colours are CMYK, inks, which are only turned and flipped: convert them to RGB first"
    );
    let warning = match metadata.alpha {
        Alpha::Associated => {
            "colours are multiplied by alpha (associated), and are stretched as they are"
        }
        Alpha::Unspecified => "its last channel, of no stated meaning, is left as it is",
        Alpha::Independent | Alpha::Black => return Ok(None),
    };
    let stretches = ops.iter().any(|op| op.effect() == Effect::Values);
    Ok(stretches.then(|| warning.into()))
}
