//! Several operations on one image, as in `gpuimg run`, and their combined properties. The result equals
//! that of the single verbs with lossless files between them.

use super::{Access, Operation};
use crate::image::metadata::Effect;
use crate::image::{Depth, Region, Shape, Values};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fmt;

/// The subcommand's name: that of a single operation or of one that gives numbers, or `run`.
pub fn name(ops: &[&dyn Operation]) -> &'static str {
    let last = ops.last().map(|op| op.properties());
    match last {
        Some(last) if ops.len() == 1 || last.effect == Effect::Numbers => last.name,
        _ => "run",
    }
}

/// The verb for messages: `normalize`, or `process` for several operations.
pub fn verb(ops: &[&dyn Operation]) -> &'static str {
    match ops {
        [op] => op.properties().name,
        _ => "process",
    }
}

/// The names of all operations, in order: `calibrate + normalize`.
pub fn title(ops: &[&dyn Operation]) -> String {
    let names = ops.iter().map(|op| op.properties().name);
    names.collect::<Vec<_>>().join(" + ")
}

/// The options as JSON: those of a single operation, or a list of all operations with their verbs.
///
/// # Errors
/// None in practice: options are plain numbers and words.
pub fn options(ops: &[&dyn Operation]) -> Result<Value> {
    if let [op] = ops {
        return op.options();
    }
    let each = ops
        .iter()
        .map(|op| Ok(json!({"verb": op.properties().name, "options": op.options()?})));
    Ok(Value::Array(each.collect::<Result<_>>()?))
}

/// The shape of the result for an image of this shape.
pub fn output<O: Operation + ?Sized>(op: &O, shape: Shape) -> Shape {
    let input = Values {
        depth: shape.depth,
        signed: false,
    };
    let shape = Shape {
        depth: op.output_type(input).depth,
        channels: op.output_channels(shape.channels),
        ..shape
    };
    match op.properties().access {
        Access::Permutation(map) => map.of(shape),
        Access::Region(region) => region.output(shape),
        Access::Pointwise | Access::Reduction | Access::WholeImage => shape,
    }
}

/// The region of the image that the first operation takes, if it takes one.
pub fn first_region(ops: &[&dyn Operation]) -> Option<Region> {
    match ops.first()?.properties().access {
        Access::Region(region) => Some(region),
        _ => None,
    }
}

/// The depth of the result for samples of this depth, unless the user chooses another.
pub fn output_depth(ops: &[&dyn Operation], depth: Depth) -> Depth {
    let signed = false;
    ops.iter().fold(depth, |depth, op| {
        op.output_type(Values { depth, signed }).depth
    })
}

/// This shape with the most channels and the most bits that an image of it has before, between and after the operations.
pub fn largest(ops: &[&dyn Operation], shape: Shape) -> Shape {
    let (mut largest, mut values) = (
        shape,
        Values {
            depth: shape.depth,
            signed: false,
        },
    );
    let mut channels = shape.channels;
    for op in ops {
        channels = op.output_channels(channels);
        values = op.output_type(values);
        largest.channels = largest.channels.max(channels);
        if values.depth.bytes() > largest.depth.bytes() {
            largest.depth = values.depth;
        }
    }
    largest
}

/// The shape of the result of all operations for an image of this shape, unless the user chooses another depth.
pub fn result(ops: &[&dyn Operation], shape: Shape) -> Shape {
    ops.iter().fold(shape, |shape, op| output(*op, shape))
}

/// The channels of the result for images with this number of channels.
pub fn output_channels(ops: &[&dyn Operation], channels: usize) -> usize {
    ops.iter()
        .fold(channels, |channels, op| op.output_channels(channels))
}

/// Refuses operations whose options do not support an image of this shape; each receives the result of the
/// ones before it. `wanted` is the output depth, if it differs from that of the input. If the image
/// `may_turn`, it may be rotated upright first. `undone` creates the context of an error for a verb.
///
/// # Errors
/// The reason, for the first operation that does not fit.
pub fn check<C: fmt::Display + Send + Sync + 'static>(
    ops: &[&dyn Operation],
    shape: Shape,
    (wanted, may_turn): (Option<Depth>, bool),
    undone: impl Fn(&str) -> C,
) -> Result<()> {
    let mut shape = shape;
    for op in ops {
        let turned = Shape {
            width: shape.height,
            height: shape.width,
            ..shape
        };
        let fits = match super::check(*op, &shape) {
            Err(_) if may_turn && super::check(*op, &turned).is_ok() => Ok(()),
            fits => fits,
        };
        fits.with_context(|| undone(op.properties().name))?;
        shape = output(*op, shape);
        if wanted == Some(Depth::Sixteen) && !shape.depth.is_wide() {
            // The first step converts samples to 16 bits; only the last converts them to 8.
            shape.depth = Depth::Sixteen;
        }
    }
    let kept = || {
        ensure!(
            wanted.is_none() || !shape.depth.is_wide(),
            "--depth cannot convert samples of {}: use normalize to scale them to 8 or 16 bits",
            shape.depth
        );
        Ok(())
    };
    kept().with_context(|| undone(verb(ops)))
}
