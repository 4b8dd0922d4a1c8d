//! Keeps a page's metadata true after all that was done to its pixels.

use super::{PageProcessor, upright};
use crate::codec;
use crate::exec::Task;
use crate::image::Shape;
use crate::metadata::{Diagnostics, Effect, Metadata, Transform};
use crate::ops::{Operation, chain};

/// Updates the metadata of a page after all operations but the last, as if a file lay between any
/// two. The page was `read` in one shape and `prepared` in another, turned upright and widened.
/// Returns the shape that the last operation was given.
pub fn pass(
    processor: &PageProcessor,
    metadata: &mut Metadata,
    tasks: &[Task],
    (read, prepared): (Shape, Shape),
    diagnostics: &mut Diagnostics,
) -> Shape {
    let (mut from, mut shape) = (read, prepared);
    for (step, pair) in tasks.windows(2).enumerate() {
        let [task, next] = pair else { continue };
        shape = chain::output(task.op, shape);
        let effect = (task.op.effect(), step == 0);
        update(processor, metadata, effect, (from, shape), diagnostics);
        metadata.signed = next.types.read.signed;
        from = shape;
    }
    from
}

/// Updates the metadata of a page after `upright::turn`, a change of depth, and an operation of this
/// effect; `first` if it is the first one. `from` is the page's shape as it was read, or after the
/// operation before, `to` that of the result.
pub fn update(
    processor: &PageProcessor,
    metadata: &mut Metadata,
    (effect, first): (Effect, bool),
    (mut from, to): (Shape, Shape),
    diagnostics: &mut Diagnostics,
) {
    let transform = Transform {
        effect,
        from,
        to,
        pages: processor.pages(),
        // Of a stack of several files no description is that of all pages.
        whole: !first || (processor.joined.is_none() && processor.reader.is_whole()),
    };
    if let Some(symmetry) = upright::symmetry(processor, metadata) {
        let turned = Transform {
            effect: symmetry.effect(),
            to: symmetry.shape(from),
            ..transform
        };
        from = turned.to;
        codec::metadata::follow(metadata, &turned, diagnostics);
        metadata.orientation = Some(1);
    }
    if from.depth != to.depth {
        metadata.follow_depth(from.depth, to.depth, from.channels);
    }
    codec::metadata::follow(metadata, &Transform { from, ..transform }, diagnostics);
}
