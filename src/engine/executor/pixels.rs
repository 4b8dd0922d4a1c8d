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
            DownloadedPixels::Samples(shape) => Pixels::Host(image_at_start(memory, shape)?),
            DownloadedPixels::Png(segments) => Pixels::Deflated(Deflated::new(segments, memory)),
            DownloadedPixels::Device(image) => Pixels::Device(image),
        })
    }
}

/// The image whose samples are at the beginning of `memory`: in the same memory if it has the image's type and length, else in
/// new memory.
///
/// # Errors
/// There is not enough host memory.
pub(super) fn image_at_start(memory: HostMemory, shape: Shape) -> Result<Image> {
    if memory.matches(shape) {
        return Ok(memory.into_image(shape));
    }
    let mut samples = Samples::any(&shape)?;
    let bytes = samples.as_bytes_mut();
    copy(&memory[..bytes.len()], bytes);
    Ok(Image::new(shape, samples))
}

/// Memory for an image of the shape `output`, which is larger than `image`; the samples of `image` are at its beginning.
///
/// # Errors
/// There is not enough host memory.
pub(super) fn with_room(image: &Image, output: Shape) -> Result<HostMemory> {
    let mut samples = Samples::any(&output)?;
    let from = image.samples().as_bytes();
    copy(from, &mut samples.as_bytes_mut()[..from.len()]);
    Ok(samples.into())
}

/// Copies bytes, on all cores.
fn copy(from: &[u8], to: &mut [u8]) {
    const BYTES_PER_TASK: usize = 1 << 20;
    let chunks = to.par_chunks_mut(BYTES_PER_TASK);
    let chunks = chunks.zip(from.par_chunks(BYTES_PER_TASK));
    chunks.for_each(|(to, from)| to.copy_from_slice(from));
}
