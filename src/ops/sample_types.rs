//! The types of the samples that an operation processes.

use super::Operation;
use crate::image::metadata::Stretch;
use crate::image::{Depth, Shape, Values};
use serde::{Deserialize, Serialize};

/// The place of an image in a series of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Its index, counted from 0.
    pub index: u64,
    /// The number of images of the series; more than `index`.
    pub count: u64,
}

impl Position {
    /// That of the only image.
    pub const ONLY: Position = Position { index: 0, count: 1 };
}

/// The types of the samples that an operation works on: in memory, in the input file, and in the
/// output file.
///
/// In memory, samples have the greater of the two depths: 8 bits are converted to 16 before the operation
/// (times 257), and 16 bits to 8 after it. The operation itself converts 32 bits to 16 or 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTypes {
    /// Samples per pixel: 1 to 4; with 2 or 4, the last is alpha.
    pub channels: usize,
    /// Bits per sample in memory.
    pub depth: Depth,
    /// The type of the samples in the input file.
    pub read: Values,
    /// The type of the samples in the output file.
    pub written: Values,
    /// The smallest and the largest value of the display window in the input file.
    pub window: Option<(i64, i64)>,
    /// The record in the input file of how its values were scaled.
    pub stretch: Option<Stretch>,
    /// The position of the image among all that are processed; `None` if it is unknown or ambiguous.
    pub position: Option<Position>,
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
            position: None,
        }
    }

    /// Those of `op` on samples that are unsigned in the file.
    pub fn plain_for(op: &dyn Operation, shape: &Shape) -> SampleTypes {
        let plain = SampleTypes::plain(shape);
        let written = op.output_type(plain.read);
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
