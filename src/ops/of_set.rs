//! An operation bound to the statistic of a whole set of images that was measured before:
//! `--across` and `--range-from`.

use super::histogram::Counts;
use super::{Access, Bound, Operation, SampleTypes, Statistics};
use crate::device::Work;
use crate::image::number::Number;
use crate::image::{Shape, Values};
use crate::metadata::Effect;
use anyhow::{Result, ensure};
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::json;

/// An operation, and the counts of its set. Images of another kind are refused.
#[derive(Debug)]
pub struct OfSet<'a> {
    op: &'a dyn Operation,
    counts: Statistics,
    kind: SetKind,
    /// The ranges that values are stretched from.
    ranges: Vec<(Number, Number)>,
}

/// The kind that all images of the set share.
#[derive(Clone, Copy, Debug)]
struct SetKind {
    channels: usize,
    values: Values,
}

impl<'a> OfSet<'a> {
    /// Binds `op` to the counts of a set. Errors: an operation that needs no statistic.
    pub fn new(op: &'a dyn Operation, counts: Counts) -> Result<OfSet<'a>> {
        let (channels, values) = counts.kind();
        let counts = Statistics::Histogram(counts);
        let types = SampleTypes {
            channels,
            depth: values.depth,
            read: values,
            written: values,
        };
        let ranges = op.bind(types, &counts)?.summary().ranges;
        Ok(OfSet {
            op,
            kind: SetKind { channels, values },
            ranges,
            counts,
        })
    }
}

/// Serializes the operation's own options, and the properties of the set that decide the result:
/// its kind and its ranges.
impl Serialize for OfSet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = self.op.options().map_err(S::Error::custom)?;
        let SetKind { channels, values } = self.kind;
        let key = json!({
            "options": options,
            "channels": channels,
            "depth": values.depth.bits(),
            "signed": values.signed,
            "ranges": self.ranges,
        });
        key.serialize(serializer)
    }
}

impl Operation for OfSet<'_> {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn access(&self) -> Access {
        self.op.access()
    }

    fn effect(&self) -> Effect {
        self.op.effect()
    }

    fn work(&self, shape: &Shape) -> Work {
        self.op.work(shape)
    }

    fn check(&self, shape: &Shape) -> Result<()> {
        let SetKind { channels, values } = self.kind;
        ensure!(
            (shape.channels, shape.depth) == (channels, values.depth),
            "it is {} with {} bits, and the range is that of images of another kind",
            shape.kind(),
            shape.depth.bits()
        );
        self.op.check(shape)
    }

    fn fits(&self, types: &SampleTypes) -> Result<()> {
        ensure!(
            self.kind.values == types.read,
            "it has {}, and the range is that of images of {}",
            types.read,
            self.kind.values
        );
        self.op.fits(types)
    }

    fn bind<'b>(&'b self, types: SampleTypes, _: &'b Statistics) -> Result<Box<dyn Bound + 'b>> {
        self.op.bind(types, &self.counts)
    }
}
