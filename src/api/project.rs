//! One image of many in memory.

use super::device::Device;
use super::error::{Error, Result};
use super::gpu_image::GpuImage;
use super::image::Image;
use super::report::Report;
use crate::engine::{CombinedImage, Facts, Failure, FirstPage, ImageType};
use crate::formats::memory::{FORMAT, Page};
use crate::gpu::driver::{Buffer, Gpu};
use crate::gpu::{Devices, Failed, Work};
use crate::image::metadata::Diagnostics;
use crate::image::{self, Samples, Shape};
use crate::ops::project::{
    self, Accumulator, Wide, median_of_buffers, median_on_gpu, project_columns,
};
use crate::ops::wide::make_finite;
use crate::timing::Timeline;
use anyhow::{Context, ensure};
use std::borrow::Cow;
use std::path::Path;

pub use crate::ops::project::Projection;

/// How [`project()`] combines images: one of the projections, and for sums what happens to those that do not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Project {
    options: project::Project,
}

impl Project {
    /// A projection. A sum that does not fit in the sample type is an error.
    pub fn new(how: Projection) -> Project {
        Project {
            options: project::Project::plain(how),
        }
    }

    /// Clamps sums that exceed the sample type.
    pub fn saturate(mut self) -> Project {
        self.options.saturate = true;
        self
    }

    /// Scales sums so that the largest magnitude becomes the largest value and 0 stays 0, correctly rounded.
    pub fn scale(mut self) -> Project {
        self.options.scale = true;
        self
    }

    /// Gives sums 16 or 32 bits. Every sum fits in 32.
    ///
    /// # Errors
    /// Another number of bits.
    pub fn to_bits(mut self, bits: u32) -> Result<Project> {
        self.options.to = Some(match bits {
            16 => Wide::Sixteen,
            32 => Wide::ThirtyTwo,
            _ => {
                let why = format!("a sum has 16 or 32 bits, not {bits}");
                return Err(Error::argument(why));
            }
        });
        Ok(self)
    }

    /// Gives results in 32-bit floating point, which are not rounded to whole numbers.
    pub fn to_f32(mut self) -> Project {
        self.options.to = Some(Wide::Float);
        self
    }

    /// For means: rejects the values of a pixel that are farther than `k` standard deviations from their mean, up to 5 times.
    ///
    /// # Errors
    /// A number that is not from 0.001 to 100, or has more than three decimals.
    pub fn sigma(mut self, k: f64) -> Result<Project> {
        let sigma = k.to_string().parse();
        self.options.sigma = Some(sigma.map_err(|why: String| Error::argument(why))?);
        Ok(self)
    }

    /// Replaces NaN and infinite samples, which are refused otherwise.
    ///
    /// # Errors
    /// A number that 32-bit floating point does not have.
    pub fn nan(mut self, value: f64) -> Result<Project> {
        if !(value as f32).is_finite() {
            let why = format!("{value} is not a 32-bit floating-point number");
            return Err(Error::argument(why));
        }
        self.options.nan = Some(value);
        Ok(self)
    }
}

/// Combines images of 8 or 16 bits or of 32-bit floating point into one, pixel by pixel and channel by channel: their sum, mean,
/// minimum, maximum or median, as `gpuimg project` does. All have the same size, channels and sample type. The metadata are those of the first, as far
/// as they are true of the result.
///
/// ```
/// use gpuimg::{Device, Image, Project, Projection};
/// let images = [[1u16, 9], [2, 5], [6, 4]].map(|samples| Image::new(2, 1, 1, samples.to_vec()));
/// let images = images.into_iter().collect::<gpuimg::Result<Vec<Image>>>()?;
/// let project = |how| gpuimg::project(&images, &Project::new(how), &Device::cpu());
/// assert_eq!(project(Projection::Mean)?.to_vec::<u16>()?, [3, 6]);
/// assert_eq!(project(Projection::Median)?.to_vec::<u16>()?, [2, 5]);
/// # Ok::<(), gpuimg::Error>(())
/// ```
///
/// # Errors
/// No image or more than 65535, images that differ, integers of 32 bits and samples of 64 bits, options of sums for another projection, a sum that
/// does not fit, and those of the device.
pub fn project(images: &[Image], options: &Project, device: &Device) -> Result<Image> {
    let given: Vec<Given> = images
        .iter()
        .map(|image| Given::of(image.page(), image.shape()))
        .collect();
    let path = images.first().map_or(Path::new(""), Image::name);
    projected(&given, &options.options, path, || {
        let devices = device.devices();
        match computed(images, &options.options, &devices) {
            Err(error) if error.is::<Failed>() && devices.fall_back_to_cpu() => {
                computed(images, &options.options, &devices)
            }
            result => result,
        }
    })
}

/// Combines images in the memory of one GPU, which has the result, too, as [`project()`] does. Sums and means are finished on the
/// CPU, and then copied there.
///
/// # Errors
/// Those of [`project()`], and projections without a kernel: of floating-point images, means with `sigma`, and medians in floating
/// point.
pub fn project_on_gpu(images: &[GpuImage], options: &Project) -> Result<GpuImage> {
    let given: Vec<Given> = images
        .iter()
        .map(|image| Given::of(image.page(), image.shape()))
        .collect();
    let Some(first) = images.first() else {
        return Err(Error::argument("there is no image"));
    };
    let path = first.path().unwrap_or(Path::new(""));
    let projected = projected(&given, &options.options, path, || {
        first.with_gpu(|devices, gpu| on_its_gpu(images, &options.options, devices, gpu))
    })?;
    GpuImage::upload(projected, first.device())
}

/// What a projection needs of an image besides its samples.
struct Given<'p> {
    shape: Shape,
    metadata: &'p image::metadata::Metadata,
    metadata_bytes: u64,
    described: usize,
}

impl Given<'_> {
    fn of<I>(page: &Page<I>, shape: Shape) -> Given<'_> {
        Given {
            shape,
            metadata: &page.metadata,
            metadata_bytes: page.metadata_bytes,
            described: page.described,
        }
    }
}

/// The projection, whose samples and device line `compute` gives. `path` is the file of the first image.
fn projected(
    given: &[Given],
    options: &project::Project,
    path: &Path,
    compute: impl FnOnce() -> anyhow::Result<(image::Image, String)>,
) -> Result<Image> {
    let projected = checked_and_projected(given, options, path, compute);
    let failure = || Failure::new("project", path);
    projected.with_context(failure).map_err(Error::new)
}

fn checked_and_projected(
    given: &[Given],
    options: &project::Project,
    path: &Path,
    compute: impl FnOnce() -> anyhow::Result<(image::Image, String)>,
) -> anyhow::Result<Image> {
    options.check()?;
    let first = given.first().context("there is no image")?;
    let image_type = |image: &Given| ImageType::from_page(image.shape, image.metadata);
    let expected = image_type(first);
    options.check_depth(expected.shape.depth)?;
    for (number, image) in (1..).zip(given) {
        let found = image_type(image);
        ensure!(
            found == expected,
            "image {number} is {found}, but the first is {expected}"
        );
    }
    let (image, device_line) = compute()?;
    let facts = given
        .iter()
        .map(|image| Facts::new(image.metadata, image.described == 1));
    let facts = facts.reduce(|known, more| known.join(&more));
    let first_page = FirstPage {
        shape: expected.shape,
        metadata: first.metadata.clone(),
        bytes: first.metadata_bytes,
        format: &FORMAT,
    };
    let facts = facts.context("there is no image")?;
    let combined = CombinedImage::projection(options.how, image, first_page, &facts, given.len());
    let mut diagnostics = Diagnostics::default();
    let (image, metadata) = combined.with_metadata(&mut diagnostics);
    let result = Page {
        image,
        metadata,
        metadata_bytes: first.metadata_bytes,
        described: 1,
    };
    let report = Report {
        device: device_line,
        ..Report::of_reading(diagnostics, None)
    };
    Ok(Image::of_page(result, path, report))
}

/// The samples of the projection of images that are on a GPU.
fn on_its_gpu(
    images: &[GpuImage],
    options: &project::Project,
    devices: &Devices,
    gpu: &Gpu,
) -> anyhow::Result<(image::Image, String)> {
    let page = images[0].page();
    let (shape, mut timeline) = (page.image.shape, Timeline::default());
    if let Some(obstacle) = options.gpu_obstacle(shape.depth) {
        devices.only_cpu(obstacle)?;
    }
    for (number, image) in (1..).zip(images) {
        ensure!(
            image.gpu_number() == gpu.ordinal(),
            "image {number} is on GPU {}, but the first is on GPU {}",
            image.gpu_number(),
            gpu.ordinal()
        );
    }
    let buffers = images.iter().map(|image| &image.page().image.samples);
    if options.needs_all_images(shape.depth).is_some() {
        let buffers: Vec<&Buffer> = buffers.collect();
        let medians = median_of_buffers(&buffers, shape.depth, gpu, &mut timeline)?;
        let image = image::Image::new(options.output(shape), medians);
        return Ok((image, gpu.name.clone()));
    }
    let accumulator = Accumulator::new(*options, shape, page.metadata.signed)?;
    for samples in buffers {
        accumulator.add_buffer(shape, samples, gpu, &mut timeline)?;
    }
    Ok((accumulator.finish()?, gpu.name.clone()))
}

/// The samples of the projection, and the device that computed them.
fn computed(
    images: &[Image],
    options: &project::Project,
    devices: &Devices,
) -> anyhow::Result<(image::Image, String)> {
    let page = images[0].page();
    let (shape, mut timeline) = (page.image.shape(), Timeline::default());
    let bytes = (images.len() * shape.bytes()) as u64;
    let at_once = options.needs_all_images(shape.depth).is_some();
    let work = Work {
        touched: if at_once { 8 } else { 5 } * bytes,
        transferred: bytes,
        ..Work::default()
    };
    let (gpu, device_line) = match options.gpu_obstacle(shape.depth) {
        Some(obstacle) => (None, devices.only_cpu(obstacle)?),
        None => devices.choose(&work, &mut timeline)?,
    };
    let on_gpu = |error: anyhow::Error| devices.unusable_if_lost(error.context(Failed));
    // The CPU finds extremes without an accumulator, which would take memory of its own.
    let extremes = matches!(options.how, Projection::Min | Projection::Max);
    if at_once || gpu.is_none() && extremes && options.to.is_none() {
        let samples = images.iter().map(|image| {
            let mut samples = Cow::Borrowed(image.page().image.samples());
            if let Samples::U32(_) = &*samples
                && let Samples::U32(samples) = samples.to_mut()
            {
                make_finite(samples, options.nan)?;
            }
            Ok(samples)
        });
        let samples = samples.collect::<anyhow::Result<Vec<Cow<Samples>>>>()?;
        let projected = match gpu {
            Some(gpu) => median_on_gpu(&samples, gpu, &mut timeline).map_err(on_gpu)?,
            None => {
                let signed = page.metadata.signed;
                project_columns(options, shape, signed, 0, &samples, &mut timeline)?
            }
        };
        let projected = image::Image::new(options.output(shape), projected);
        return Ok((projected, device_line));
    }
    let accumulator = Accumulator::new(*options, shape, page.metadata.signed)?;
    for image in images {
        let image = &image.page().image;
        match gpu {
            Some(gpu) => {
                let added = accumulator.add_on_gpu(image.clone(), gpu, &mut timeline);
                added.map_err(on_gpu)?;
            }
            None => accumulator.add(image, &mut timeline)?,
        }
    }
    Ok((accumulator.finish()?, device_line))
}
