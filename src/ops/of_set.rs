//! An operation whose statistic is that of a whole set of images, measured before: `--across` and
//! `--range-from`.

use super::histogram::Counts;
use super::{Access, Bound, Operation, SampleTypes, Statistics};
use crate::device::Work;
use crate::image::Shape;
use crate::metadata::Effect;
use anyhow::{Result, ensure};

/// The operation, and what its set was counted to be. Images of another kind are refused.
#[derive(Debug)]
pub struct OfSet<'a> {
    op: &'a dyn Operation,
    counts: Statistics,
    kind: SetKind,
}

/// What the images of a set have in common.
#[derive(Clone, Copy, Debug)]
struct SetKind {
    channels: usize,
    values: crate::image::Values,
}

impl<'a> OfSet<'a> {
    /// `op` with the counts of a set.
    pub fn new(op: &'a dyn Operation, counts: Counts) -> OfSet<'a> {
        let (channels, values) = counts.kind();
        OfSet {
            op,
            counts: Statistics::Histogram(counts),
            kind: SetKind { channels, values },
        }
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

    fn bind<'b>(&'b self, types: SampleTypes, _: &'b Statistics) -> Result<Box<dyn Bound + 'b>> {
        ensure!(
            self.kind.values == types.read,
            "it has {}, and the range is that of images of {}",
            types.read,
            self.kind.values
        );
        self.op.bind(types, &self.counts)
    }
}
