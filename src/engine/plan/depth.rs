//! `--depth`: the change of depth before the first step, and the one after the last.

use crate::engine::Destination;
use crate::image::metadata::{Alpha, Effect, Metadata};
use crate::image::{Depth, Image};
use crate::ops::{Operation, depth};
use crate::timing::Timeline;

/// What happens to samples before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputDepth {
    /// Nothing.
    Kept,
    /// Samples of 8 bits up to this one become samples of 16.
    ToSixteen(u16),
    /// Alpha up to this sample is scaled to the full depth.
    FullAlpha(u16),
}

impl InputDepth {
    /// Converts 8-bit samples to 16 bits where the output has 16, so that the result uses all 16 bits. Where values are
    /// scaled, alpha is scaled to the full depth as well.
    pub(super) fn choose(
        output: Option<&Destination>,
        metadata: &Metadata,
        from: Depth,
        ops: &[&dyn Operation],
    ) -> InputDepth {
        let Some(output) = output else {
            return InputDepth::Kept;
        };
        let scales = |op: &&dyn Operation| op.properties().effect == Effect::Values;
        match (output.depth, metadata.maxval) {
            (Some(Depth::Sixteen), maxval) if from == Depth::Eight => {
                // If values will be scaled, steps of 257 are kept whole: the range is reported in them.
                let most = maxval.filter(|_| !ops.first().is_some_and(scales));
                InputDepth::ToSixteen(most.unwrap_or(Depth::Eight.full()))
            }
            (depth, Some(most))
                if fills_alpha(ops, depth) && metadata.alpha != Alpha::Unspecified =>
            {
                InputDepth::FullAlpha(most)
            }
            _ => InputDepth::Kept,
        }
    }

    /// Changes an image, or rows of one.
    pub fn apply(self, image: Image, timeline: &mut Timeline) -> Image {
        let bytes = 3 * image.shape().bytes() as u64;
        match self {
            InputDepth::Kept => image,
            InputDepth::ToSixteen(most) => {
                timeline.host("widen", bytes, || depth::convert_to_sixteen(image, most))
            }
            InputDepth::FullAlpha(most) => depth::with_full_alpha(image, most),
        }
    }

    /// The depth of samples that had the depth `from`.
    pub fn output(self, from: Depth) -> Depth {
        match self {
            InputDepth::ToSixteen(_) => Depth::Sixteen,
            InputDepth::Kept | InputDepth::FullAlpha(_) => from,
        }
    }
}

/// Whether alpha must reach the full depth because values are scaled to it, and the largest value that the file names still
/// holds then: moving pixels keeps it. Where samples become 8 bits right after they were scaled, alpha is scaled together
/// with the colours.
fn fills_alpha(ops: &[&dyn Operation], depth: Option<Depth>) -> bool {
    match ops
        .iter()
        .position(|op| !op.properties().effect.keeps_values())
    {
        Some(index) => {
            let loses_bits = depth == Some(Depth::Eight) && index + 1 == ops.len();
            ops[index].properties().effect == Effect::Values && !loses_bits
        }
        None => false,
    }
}

/// The largest of the samples that become 8 bits after the last step, if they do.
pub fn to_eight_bits(
    output: Option<&Destination>,
    metadata: &Metadata,
    from: Depth,
) -> Option<u16> {
    let wanted = output.and_then(|output| output.depth);
    let loses_bits = wanted == Some(Depth::Eight) && from == Depth::Sixteen;
    loses_bits.then_some(metadata.maxval.unwrap_or(Depth::Sixteen.full()))
}
