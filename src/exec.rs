//! How an operation is run on an image: on the CPU or on a GPU, there whole or in bands, and for a PNG
//! deflated on the way back. The one path of every image, page and set: measure the statistic that
//! the operation asks for, unless it is known; bind; run.

pub mod bands;
mod pixels;
pub mod png;

pub use pixels::{Form, Pixels};

use crate::device::cuda::Gpu;
use crate::device::job::Job;
use crate::device::{Devices, Failed, NoMemory, Work};
use crate::image::{HostMemory, Image, Samples, Shape};
use crate::ops::{DeviceImage, Executed, Operation, SampleTypes, Statistic, Statistics};
use crate::timing::Timeline;
use anyhow::{Context, Result, bail};
use pixels::Delivered;

/// An operation for one image.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The operation.
    pub op: &'a dyn Operation,
    /// What the image's samples are.
    pub types: SampleTypes,
    /// The statistic that the operation asks for, where it was measured before: in all pages of a
    /// stack. `None`: to be measured in the image itself.
    pub statistics: Option<&'a Statistics>,
}

impl<'a> Task<'a> {
    /// The operation on an image whose samples are plain numbers.
    pub fn plain(op: &'a dyn Operation, shape: &Shape) -> Task<'a> {
        Task {
            op,
            types: SampleTypes::plain(shape),
            statistics: None,
        }
    }

    /// What is still to be measured.
    fn statistic(&self) -> Statistic {
        match self.statistics {
            Some(_) => Statistic::None,
            None => self.op.statistic(),
        }
    }
}

/// Runs operations on the devices that suit them, and keeps account of it.
#[derive(Debug)]
pub struct Executor<'a> {
    devices: &'a Devices,
    /// Which device did the last work, and why.
    pub device: String,
    /// What that had to move.
    pub work: Work,
    /// Where the time went.
    pub timeline: Timeline,
}

impl<'a> Executor<'a> {
    /// An executor that goes on with a `timeline`.
    pub fn new(devices: &'a Devices, timeline: Timeline) -> Executor<'a> {
        Executor {
            devices,
            device: String::new(),
            work: Work::default(),
            timeline,
        }
    }

    /// The GPU that shall do `work`, or `None` for the CPU. Pixels that are on a GPU stay there.
    fn choose(&mut self, work: Work, pixels: &Pixels) -> Result<Option<&'a Gpu>> {
        self.work = work;
        if let (Pixels::Device(_), Some(gpu)) = (pixels, self.devices.opened()) {
            self.device = format!("GPU ({}), where the image was decoded", gpu.name);
            return Ok(Some(gpu));
        }
        let (gpu, device) = self.devices.choose(&work, &mut self.timeline)?;
        self.device = device;
        Ok(gpu)
    }

    /// Measures a statistic of an image.
    pub fn measure(&mut self, statistic: Statistic, pixels: Pixels) -> Result<Statistics> {
        let work = statistic.work(&pixels.shape());
        match self.choose(work, &pixels)? {
            None => Ok(statistic.cpu(&self.on_host(pixels)?, &mut self.timeline)),
            Some(gpu) => {
                let found = measure_on_gpu(statistic, pixels, gpu, &mut self.timeline);
                found.map_err(|error| error.context(Failed))
            }
        }
    }

    /// Runs an operation on an image. From a GPU the result comes back in the `form` that is wanted; the
    /// CPU gives samples.
    ///
    /// # Errors
    /// The device's, and options that do not fit the samples.
    pub fn run(&mut self, task: &Task, pixels: Pixels, form: Form) -> Result<Executed<Pixels>> {
        task.op.fits(&task.types)?;
        let shape = pixels.shape();
        let bound = task.op.work(&shape);
        let work = Work {
            touched: task.statistic().work(&shape).touched + bound.touched,
            compressed: match form {
                Form::Png => shape.bytes() as u64,
                Form::Samples => 0,
            },
            ..bound
        };
        match self.choose(work, &pixels)? {
            None => {
                let image = self.on_host(pixels)?;
                let Executed { result, summary } = run_on_cpu(task, image, &mut self.timeline)?;
                let result = result.try_map(|image| Ok(Pixels::Host(image)))?;
                Ok(Executed { result, summary })
            }
            Some(gpu) => {
                let done = run_on_gpu(task, pixels, form, gpu, &mut self.timeline);
                let done = done.map_err(|error| error.context(Failed))?;
                if done.in_bands {
                    self.device += ", in bands: its memory does not hold the image at once";
                }
                Ok(done.executed)
            }
        }
    }

    /// The image in the host's memory, wherever it is.
    pub fn on_host(&mut self, pixels: Pixels) -> Result<Image> {
        match pixels {
            Pixels::Host(image) => Ok(image),
            Pixels::Device(image) => {
                let gpu = self.devices.opened().context("the image's GPU is gone")?;
                let mut memory = HostMemory::from(Samples::any(&image.shape)?);
                gpu.job(&mut memory, &mut self.timeline, |job| {
                    job.download(&image.samples)
                })?;
                Ok(memory.into_image(image.shape))
            }
            Pixels::Deflated(_) => bail!("the image is compressed already"),
        }
    }
}

/// Runs an operation on plain samples on all cores.
pub fn on_cpu(op: &dyn Operation, image: Image, timeline: &mut Timeline) -> Result<Executed> {
    run_on_cpu(&Task::plain(op, &image.shape()), image, timeline)
}

/// Runs an operation on plain samples on a GPU, and brings the result back.
pub fn on_gpu(
    op: &dyn Operation,
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Executed> {
    let task = Task::plain(op, &image.shape());
    let done = run_on_gpu(&task, Pixels::Host(image), Form::Samples, gpu, timeline)?;
    let Executed { result, summary } = done.executed;
    let result = result.try_map(|pixels| match pixels {
        Pixels::Host(image) => Ok(image),
        Pixels::Device(_) | Pixels::Deflated(_) => bail!("the result is not in the host's memory"),
    })?;
    Ok(Executed { result, summary })
}

fn run_on_cpu(task: &Task, image: Image, timeline: &mut Timeline) -> Result<Executed> {
    let own = task.statistic().cpu(&image, timeline);
    let bound = task.op.bind(task.types, task.statistics.unwrap_or(&own))?;
    Ok(Executed {
        result: bound.cpu(image, timeline)?,
        summary: bound.summary(),
    })
}

/// What a GPU did.
#[derive(Debug)]
pub struct OnGpu {
    /// The result.
    pub executed: Executed<Pixels>,
    /// Whether the device memory did not hold the image at once.
    pub in_bands: bool,
}

/// Runs an operation on a GPU. The result of an image that was in the host's memory comes back into
/// that memory. What the device memory does not hold at once goes through it in bands, and comes back
/// as samples. Errors: the GPU's.
pub fn run_on_gpu(
    task: &Task,
    pixels: Pixels,
    form: Form,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<OnGpu> {
    let shape = pixels.shape();
    let (mut memory, resident) = staged(pixels)?;
    let cuttable = resident.is_none();
    let whole = gpu.job(&mut memory, timeline, |job| {
        whole(task, uploaded(resident, shape, job)?, form, job)
    });
    match whole {
        Ok(Executed { result, summary }) => Ok(OnGpu {
            executed: Executed {
                result: result.try_map(|delivered| Ok(delivered.in_memory(memory)))?,
                summary,
            },
            in_bands: false,
        }),
        // Memory is had before anything comes down, so that the image is still as it was.
        Err(error) if error.is::<NoMemory>() && cuttable => {
            let image = memory.into_image(shape);
            let Executed { result, summary } =
                bands::run(task, image, gpu, timeline, bands::BYTES)?;
            Ok(OnGpu {
                executed: Executed {
                    result: result.try_map(|image| Ok(Pixels::Host(image)))?,
                    summary,
                },
                in_bands: true,
            })
        }
        Err(error) => Err(error),
    }
}

/// The same of a statistic alone.
fn measure_on_gpu(
    statistic: Statistic,
    pixels: Pixels,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Statistics> {
    let shape = pixels.shape();
    let (mut memory, resident) = staged(pixels)?;
    let cuttable = resident.is_none();
    let whole = gpu.job(&mut memory, timeline, |job| {
        let image = uploaded(resident, shape, job)?;
        statistic.cuda(&image, job)?.on_host(job)
    });
    match whole {
        Err(error) if error.is::<NoMemory>() && cuttable => {
            bands::measure(statistic, shape, &mut memory, gpu, timeline)
        }
        found => found,
    }
}

/// The host memory of an image, and the image itself if it is on a GPU already.
fn staged(pixels: Pixels) -> Result<(HostMemory, Option<DeviceImage>)> {
    match pixels {
        Pixels::Host(image) => Ok((image.into_samples().into(), None)),
        Pixels::Device(image) => Ok((Samples::any(&image.shape)?.into(), Some(image))),
        Pixels::Deflated(_) => bail!("the image is compressed already"),
    }
}

/// The image of the job's memory in device memory, unless it is there already.
fn uploaded(resident: Option<DeviceImage>, shape: Shape, job: &mut Job) -> Result<DeviceImage> {
    match resident {
        Some(image) => Ok(image),
        None => Ok(DeviceImage {
            shape,
            samples: job.upload()?,
        }),
    }
}

/// The operation on a whole image in device memory; the result is left in the job's memory. All is
/// queued without a wait, but for a histogram and a PNG's length: the host learns the statistic
/// with the result.
fn whole(
    task: &Task,
    image: DeviceImage,
    form: Form,
    job: &mut Job,
) -> Result<Executed<Delivered>> {
    let own = task.statistic().cuda(&image, job)?;
    let bound = task.op.bind(task.types, task.statistics.unwrap_or(&own))?;
    let result = bound.cuda(image, job)?;
    drop(bound);
    let result = result.try_map(|image| Delivered::from_device(&image, form, job))?;
    let own = own.on_host(job)?;
    let bound = task.op.bind(task.types, task.statistics.unwrap_or(&own))?;
    Ok(Executed {
        result,
        summary: bound.summary(),
    })
}
