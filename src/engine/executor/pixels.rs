//! The pixels of an image in one of three places or forms: in host memory, in a GPU's memory, or
//! deflated for a PNG.

use crate::engine::task::Form;
use crate::formats::deflated::{Deflated, EncodedSegments};
use crate::formats::gpu::png;
use crate::gpu::job::Job;
use crate::image::{HostMemory, Image, Samples, Shape};
use crate::ops::DeviceImage;
use anyhow::Result;
use rayon::prelude::*;

/// The pixels of an image, in host memory or on a GPU.
#[derive(Debug)]
pub enum Pixels {
    /// Samples in host memory.
    Host(Image),
    /// Samples in the memory of the GPU that this thread uses.
    Device(DeviceImage),
    /// Filtered and deflated for a PNG, in host memory.
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

    /// Whether they are in a GPU's memory.
    pub fn are_on_gpu(&self) -> bool {
        matches!(self, Pixels::Device(_))
    }
}

/// The result that a GPU left in the memory of its job.
pub(super) enum Delivered {
    /// The samples of an image of this shape.
    Samples(Shape),
    /// The deflated segments of a PNG.
    Png(EncodedSegments),
    /// Nothing: the samples stay in device memory.
    Device(DeviceImage),
}

impl Delivered {
    /// Copies an image from the device to the job's memory, in the requested form, if it is to leave
    /// the device.
    pub fn from_device(image: DeviceImage, form: Form, job: &mut Job) -> Result<Delivered> {
        match form {
            Form::Samples => {
                job.download_first(&image.samples)?;
                Ok(Delivered::Samples(image.shape))
            }
            Form::Png => Ok(Delivered::Png(png::compress(&image, job)?)),
            Form::Device => Ok(Delivered::Device(image)),
        }
    }

    /// The pixels in the job's `memory`.
    ///
    /// # Errors
    /// No host memory for samples of fewer bits than were read.
    pub fn in_memory(self, memory: HostMemory) -> Result<Pixels> {
        Ok(match self {
            Delivered::Samples(shape) if shape.bytes() < memory.len() => {
                Pixels::Host(beginning(&memory, shape)?)
            }
            Delivered::Samples(shape) => Pixels::Host(memory.into_image(shape)),
            Delivered::Png(segments) => Pixels::Deflated(Deflated::new(segments, memory)),
            Delivered::Device(image) => Pixels::Device(image),
        })
    }
}

/// The beginning of `memory` as the samples of an image.
fn beginning(memory: &[u8], shape: Shape) -> Result<Image> {
    const PIECE: usize = 1 << 20;
    let mut samples = Samples::any(&shape)?;
    let pieces = samples.as_bytes_mut().par_chunks_mut(PIECE);
    let pieces = pieces.zip(memory.par_chunks(PIECE));
    pieces.for_each(|(to, from)| to.copy_from_slice(&from[..to.len()]));
    Ok(Image::new(shape, samples))
}
