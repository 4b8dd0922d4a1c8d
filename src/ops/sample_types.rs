//! What an operation knows of the samples that it works on.

use super::Operation;
use crate::image::{Depth, Shape, Values};
use crate::metadata::Stretch;

/// The types of the samples that an operation works on: in memory, in the input file, and in the
/// output file.
///
/// In memory, samples have the greater of the two depths: 8 bits have been widened to 16 (times
/// 257), and 16 bits are narrowed to 8 after the operation. 32 bits become 16 or 8 in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTypes {
    /// Samples a pixel: 1 to 4; with 2 or 4, the last is alpha.
    pub channels: usize,
    /// Bits a sample in memory.
    pub depth: Depth,
    /// The type of the samples in the input file.
    pub read: Values,
    /// The type of the samples in the output file.
    pub written: Values,
    /// The smallest and the largest value that the input file says are to be shown.
    pub window: Option<(i64, i64)>,
    /// How the input file says that its values were stretched.
    pub stretch: Option<Stretch>,
}

impl SampleTypes {
    /// Unsigned samples that keep their depth.
    pub fn plain(shape: &Shape) -> SampleTypes {
        let values = Values {
            depth: shape.depth,
            signed: false,
        };
        SampleTypes {
            channels: shape.channels,
            depth: shape.depth,
            read: values,
            written: values,
            window: None,
            stretch: None,
        }
    }

    /// Those of `op` on samples that are unsigned in the file.
    pub fn plain_for(op: &dyn Operation, shape: &Shape) -> SampleTypes {
        let plain = SampleTypes::plain(shape);
        let written = Values {
            depth: op.made(shape.depth),
            ..plain.written
        };
        SampleTypes { written, ..plain }
    }

    /// Channels that carry colour: all but alpha.
    pub fn colours(&self) -> usize {
        self.channels - usize::from(self.channels.is_multiple_of(2))
    }

    /// The value in the input file of a sample in memory.
    pub(super) fn value(&self, sample: u16) -> i32 {
        self.read.value(sample / self.read.depth.steps(self.depth))
    }
}
