//! The pixels of an image: samples in host memory, samples in a GPU's memory, or deflated for a PNG.

use crate::engine::task::Form;
use crate::formats::deflated::{Deflated, EncodedSegments};
use crate::formats::gpu::png;
use crate::gpu::job::Job;
use crate::image::{HostMemory, Image, Samples, Shape};
use crate::ops::DeviceImage;
use anyhow::Result;
use rayon::prelude::*;

/// The pixels of an image.
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

/// The result of a GPU's job. Samples and compressed data are in the job's host memory.
pub(super) enum DownloadedPixels {
    /// The samples of an image of this shape.
    Samples(Shape),
    /// The deflated segments of a PNG.
    Png(EncodedSegments),
    /// Nothing: the samples stay in device memory.
    Device(DeviceImage),
}

impl DownloadedPixels {
    /// Copies an image from the device to the job's memory in the requested form, unless it stays on the device.
    pub fn from_device(image: DeviceImage, form: Form, job: &mut Job) -> Result<DownloadedPixels> {
        match form {
            Form::Samples => {
                job.download_first(&image.samples)?;
                Ok(DownloadedPixels::Samples(image.shape))
            }
            Form::Png => Ok(DownloadedPixels::Png(png::compress(&image, job)?)),
            Form::Device => Ok(DownloadedPixels::Device(image)),
        }
    }

    /// The pixels in the job's `memory`.
    ///
    /// # Errors
    /// There is not enough host memory.
    pub fn into_pixels(self, memory: HostMemory) -> Result<Pixels> {
        Ok(match self {
            DownloadedPixels::Samples(shape) if shape.bytes() < memory.len() => {
                Pixels::Host(copy_prefix(&memory, shape)?)
            }
            DownloadedPixels::Samples(shape) => Pixels::Host(memory.into_image(shape)),
            DownloadedPixels::Png(segments) => Pixels::Deflated(Deflated::new(segments, memory)),
            DownloadedPixels::Device(image) => Pixels::Device(image),
        })
    }
}

/// Copies the samples of an image from the beginning of `memory`, which is larger.
fn copy_prefix(memory: &[u8], shape: Shape) -> Result<Image> {
    const BYTES_PER_TASK: usize = 1 << 20;
    let mut samples = Samples::any(&shape)?;
    let output = samples.as_bytes_mut().par_chunks_mut(BYTES_PER_TASK);
    let chunks = output.zip(memory.par_chunks(BYTES_PER_TASK));
    chunks.for_each(|(to, from)| to.copy_from_slice(&from[..to.len()]));
    Ok(Image::new(shape, samples))
}
