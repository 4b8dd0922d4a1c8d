//! Where the pixels of an image are: in the host's memory, in a GPU's, or deflated for a PNG.

use super::png;
use crate::codec::png::{Deflated, Segments};
use crate::device::job::Job;
use crate::image::{HostMemory, Image, Shape};
use crate::ops::DeviceImage;
use anyhow::Result;

/// The pixels of an image.
#[derive(Debug)]
pub enum Pixels {
    /// Samples in the host's memory.
    Host(Image),
    /// Samples in the memory of the thread's GPU.
    Device(DeviceImage),
    /// Filtered and deflated for a PNG, in the host's memory.
    Deflated(Deflated),
}

impl Pixels {
    /// The shape of the image.
    pub fn shape(&self) -> Shape {
        match self {
            Pixels::Host(image) => image.shape(),
            Pixels::Device(image) => image.shape,
            Pixels::Deflated(image) => image.shape(),
        }
    }
}

/// How a result is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As samples.
    Samples,
    /// Deflated for a PNG, if a GPU makes it.
    Png,
}

/// What a GPU left in the memory of its job.
pub(super) enum Delivered {
    /// The samples of an image of this shape.
    Samples(Shape),
    /// The segments of a PNG.
    Png(Segments),
}

impl Delivered {
    /// Brings an image down, in this form.
    pub fn from_device(image: &DeviceImage, form: Form, job: &mut Job) -> Result<Delivered> {
        match form {
            Form::Samples => {
                job.download(&image.samples)?;
                Ok(Delivered::Samples(image.shape))
            }
            Form::Png => Ok(Delivered::Png(png::compress(image, job)?)),
        }
    }

    /// The pixels that are in the job's memory.
    pub fn in_memory(self, memory: HostMemory) -> Pixels {
        match self {
            Delivered::Samples(shape) => Pixels::Host(memory.into_image(shape)),
            Delivered::Png(segments) => Pixels::Deflated(Deflated::new(segments, memory)),
        }
    }
}
