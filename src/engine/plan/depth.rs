//! `--depth`: the conversion of samples before the first step, and the one after the last.

use crate::engine::Destination;
use crate::image::metadata::{Alpha, Effect, Metadata};
use crate::image::{Depth, Image};
use crate::ops::{Operation, chain, depth};
use crate::timing::Timeline;
use anyhow::Result;

/// The conversion of samples before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputConversion {
    /// No conversion.
    None,
    /// 8-bit samples from 0 to this value are scaled to the full range of 16 bits.
    ToSixteen(u16),
    /// Alpha from 0 to this value is scaled to the full range of its depth.
    FullAlpha(u16),
}

impl InputConversion {
    /// Converts 8-bit samples to 16 bits where the output has 16, so that the result uses all 16 bits. Where values are
    /// scaled, alpha is scaled to the full depth as well.
    pub(super) fn choose(
        output: Option<&Destination>,
        metadata: &Metadata,
        from: Depth,
        ops: &[&dyn Operation],
    ) -> InputConversion {
        let Some(output) = output else {
            return InputConversion::None;
        };
        let scales = |op: &&dyn Operation| op.properties().effect == Effect::Values;
        if output.depth == Some(Depth::Sixteen) && from == Depth::Eight {
            // If the first operation scales values, 8-bit values are multiplied by exactly 257. The operation divides its range
            // by 257 again, to report it in values of the file (`Depth::steps`).
            let max_value = metadata.maxval.filter(|_| !ops.first().is_some_and(scales));
            return InputConversion::ToSixteen(max_value.unwrap_or(Depth::Eight.full()));
        }
        match metadata.maxval {
            Some(max_value)
                if fills_alpha(ops, output.depth) && metadata.alpha != Alpha::Unspecified =>
            {
                InputConversion::FullAlpha(max_value)
            }
            _ => InputConversion::None,
        }
    }

    /// Converts an image, or rows of one.
    ///
    /// # Errors
    /// Too little memory.
    pub fn apply(self, image: Image, timeline: &mut Timeline) -> Result<Image> {
        let bytes = 3 * image.shape().bytes() as u64;
        match self {
            InputConversion::None => Ok(image),
            InputConversion::ToSixteen(max_value) => timeline.host("widen", bytes, || {
                depth::convert_to_sixteen(image, max_value)
            }),
            InputConversion::FullAlpha(max_value) => Ok(depth::with_full_alpha(image, max_value)),
        }
    }

    /// The depth of the converted samples.
    pub fn output(self, from: Depth) -> Depth {
        match self {
            InputConversion::ToSixteen(_) => Depth::Sixteen,
            InputConversion::None | InputConversion::FullAlpha(_) => from,
        }
    }
}

/// Whether alpha must be scaled to the full depth before the first step. This is so if the first operation that changes values
/// scales them or makes them floating-point numbers: the operations before it only move pixels. If samples are converted to
/// 8 bits right after they are scaled, that conversion scales alpha instead.
fn fills_alpha(ops: &[&dyn Operation], depth: Option<Depth>) -> bool {
    match ops
        .iter()
        .position(|op| !op.properties().effect.keeps_values())
    {
        Some(index) => {
            let loses_bits = depth == Some(Depth::Eight) && index + 1 == ops.len();
            let op = ops[index];
            let to_real = chain::output_depth(&[op], Depth::Sixteen).is_float();
            (op.properties().effect == Effect::Values && !loses_bits) || to_real
        }
        None => false,
    }
}

/// If 16-bit samples are converted to 8 bits after the last step, the largest value that they can have.
pub fn to_eight_bits(
    output: Option<&Destination>,
    metadata: &Metadata,
    from: Depth,
) -> Option<u16> {
    let wanted = output.and_then(|output| output.depth);
    let loses_bits = wanted == Some(Depth::Eight) && from == Depth::Sixteen;
    loses_bits.then_some(metadata.maxval.unwrap_or(Depth::Sixteen.full()))
}
