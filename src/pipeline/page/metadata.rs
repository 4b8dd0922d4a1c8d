//! Keeps a page's metadata true after all that was done to its pixels.

use super::{PageProcessor, upright};
use crate::codec;
use crate::image::Shape;
use crate::metadata::{Diagnostics, Effect, Metadata, Transform};
use crate::ops::Operation;

/// Updates the metadata of a page after `upright::turn`, a change of depth, and an operation of this
/// effect. `from` is the page's shape as it was read, `to` that of the result.
pub fn update(
    processor: &PageProcessor,
    metadata: &mut Metadata,
    effect: Effect,
    (mut from, to): (Shape, Shape),
    diagnostics: &mut Diagnostics,
) {
    let transform = Transform {
        effect,
        from,
        to,
        pages: processor.reader.pages().len(),
        whole: processor.reader.is_whole(),
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
        metadata.follow_depth(from.depth, to.depth);
    }
    codec::metadata::follow(metadata, &Transform { from, ..transform }, diagnostics);
}
