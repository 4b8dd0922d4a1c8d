//! An operation bound to the statistic of a whole set of images that was measured before:
//! `--across` and `--range-from`.

use super::counts::{Counts, PixelType};
use super::{Bound, Operation, Properties, SampleTypes, Statistic, Statistics};
use crate::gpu::Work;
use crate::image::number::Number;
use crate::image::{Shape, Values};
use anyhow::{Result, ensure};
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::json;

/// An operation, and the counts of its set. Images of another type are refused.
#[derive(Debug)]
pub struct SetRange<'a> {
    op: &'a dyn Operation,
    counts: Statistics,
    /// The type that all images of the set share.
    pixel_type: PixelType,
    /// The ranges that values are scaled from.
    ranges: Vec<(Number, Number)>,
}

impl<'a> SetRange<'a> {
    /// Binds `op` to the counts of a set.
    ///
    /// # Errors
    /// An operation that needs no statistic.
    pub fn new(op: &'a dyn Operation, counts: Counts) -> Result<SetRange<'a>> {
        let pixel_type = counts.pixel_type();
        let PixelType { channels, values } = pixel_type;
        let counts = Statistics::OtherHistogram(counts);
        let types = SampleTypes {
            channels,
            depth: values.depth,
            read: values,
            written: values,
            window: None,
            stretch: None,
            position: None,
        };
        let ranges = op.bind(types, &counts)?.summary().ranges;
        Ok(SetRange {
            op,
            pixel_type,
            ranges,
            counts,
        })
    }

    /// The same, to be run only on the images that were counted.
    pub fn on_its_images(self) -> SetRange<'a> {
        let counts = match self.counts {
            Statistics::OtherHistogram(counts) => Statistics::Histogram(counts),
            counts => counts,
        };
        SetRange { counts, ..self }
    }
}

/// Serializes the operation's own options, and the properties of the set that decide the result:
/// its pixel type and its ranges.
impl Serialize for SetRange<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = self.op.options().map_err(S::Error::custom)?;
        let PixelType { channels, values } = self.pixel_type;
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

impl Operation for SetRange<'_> {
    fn properties(&self) -> Properties {
        Properties {
            statistic: Statistic::None,
            has_range_of_set: true,
            ..self.op.properties()
        }
    }

    fn output_type(&self, input: Values) -> Values {
        self.op.output_type(input)
    }

    fn work(&self, shape: &Shape) -> Work {
        self.op.work(shape)
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        let PixelType { channels, values } = self.pixel_type;
        ensure!(
            (shape.channels, shape.depth) == (channels, values.depth),
            "it is {} with {} bits, but the range was measured on images of another type",
            shape.kind(),
            shape.depth.bits()
        );
        self.op.check_shape(shape)
    }

    fn gpu_obstacle(&self, shape: &Shape) -> Option<&'static str> {
        self.op.gpu_obstacle(shape)
    }

    fn check_types(&self, types: &SampleTypes) -> Result<()> {
        ensure!(
            self.pixel_type.values == types.read,
            "it has {}, but the range was measured on images with {}",
            types.read,
            self.pixel_type.values
        );
        self.op.check_types(types)
    }

    fn bind<'b>(&'b self, types: SampleTypes, _: &'b Statistics) -> Result<Box<dyn Bound + 'b>> {
        self.op.bind(types, &self.counts)
    }
}
