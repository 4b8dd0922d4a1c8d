//! Runs operations on a GPU: on a whole image, whose pixels stay there from the first operation to the
//! last, or where its memory does not hold that, on one operation after the other, each in bands.

use super::pixels::Delivered;
use super::{Form, Pixels, Task, bands};
use crate::gpu::NoMemory;
use crate::gpu::driver::Gpu;
use crate::gpu::job::Job;
use crate::image::{HostMemory, Image, Samples, Shape};
use crate::ops::{DeviceImage, Executed, OpResult, Statistic, Statistics, Summary};
use crate::timing::Timeline;
use anyhow::{Result, bail};

/// The result of operations on a GPU.
#[derive(Debug)]
pub struct OnGpu {
    /// The result of the last operation.
    pub executed: Executed<Pixels>,
    /// Whether the image was processed in bands because device memory could not hold it.
    pub in_bands: bool,
}

/// Runs operations on a GPU, one after the other. An image from host memory returns in the same
/// memory. An image that device memory cannot hold is processed in bands, for each operation by
/// itself, and returns as samples. Errors: the GPU's.
pub fn run_on_gpu(
    tasks: &[Task],
    pixels: Pixels,
    form: Form,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<OnGpu> {
    let shape = pixels.shape();
    let (mut memory, resident) = staged(pixels, form)?;
    let cuttable = resident.is_none();
    let whole = gpu.job(&mut memory, timeline, |job| {
        whole(tasks, uploaded(resident, shape, job)?, form, job)
    });
    match whole {
        Ok(Executed { result, summary }) => Ok(OnGpu {
            executed: Executed {
                result: result.try_map(|delivered| delivered.in_memory(memory))?,
                summary,
            },
            in_bands: false,
        }),
        // Device memory is allocated before anything is copied back, so the image is still
        // unchanged here.
        Err(error) if error.is::<NoMemory>() && cuttable => {
            let image = memory.into_image(shape);
            let executed = match tasks {
                [task] => {
                    let Executed { result, summary } =
                        bands::run(task, image, gpu, timeline, bands::DEFAULT_BAND_BYTES)?;
                    Executed {
                        result: result.try_map(|image| Ok(Pixels::Host(image)))?,
                        summary,
                    }
                }
                tasks => one_by_one(tasks, image, gpu, timeline)?,
            };
            Ok(OnGpu {
                executed,
                in_bands: true,
            })
        }
        Err(error) => Err(error),
    }
}

/// Runs operations on a GPU that does not hold what all of them need at once: the image returns to
/// host memory after each.
fn one_by_one(
    tasks: &[Task],
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Executed<Pixels>> {
    let mut done = Executed {
        result: OpResult::Image(Pixels::Host(image)),
        summary: Summary::default(),
    };
    for task in tasks {
        let pixels = done.result.image()?;
        let step = run_on_gpu(&[*task], pixels, Form::Samples, gpu, timeline)?.executed;
        done = Executed {
            result: step.result,
            summary: done.summary.then(step.summary),
        };
    }
    Ok(done)
}

/// As `run_on_gpu`, but measures a statistic of the result.
pub(super) fn measure_on_gpu(
    tasks: &[Task],
    statistic: Statistic,
    pixels: Pixels,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Statistics> {
    let shape = pixels.shape();
    let (mut memory, resident) = staged(pixels, Form::Device)?;
    let cuttable = resident.is_none();
    let statistics = gpu.job(&mut memory, timeline, |job| {
        let image = uploaded(resident, shape, job)?;
        let (made, _) = queued(tasks, image, job)?;
        statistic.cuda(&made.image()?, job)?.on_host(job)
    });
    match statistics {
        Err(error) if error.is::<NoMemory>() && cuttable => {
            if tasks.is_empty() {
                return bands::measure(statistic, shape, &mut memory, gpu, timeline);
            }
            let made = one_by_one(tasks, memory.into_image(shape), gpu, timeline)?;
            measure_on_gpu(&[], statistic, made.result.image()?, gpu, timeline)
        }
        found => found,
    }
}

/// The host memory of an image, and the device image if the pixels are already on the GPU. The memory is
/// empty where they come from there and the result stays there.
pub(super) fn staged(pixels: Pixels, form: Form) -> Result<(HostMemory, Option<DeviceImage>)> {
    match pixels {
        Pixels::Host(image) => Ok((image.into_samples().into(), None)),
        Pixels::Device(image) => {
            let samples = match form {
                Form::Device => Samples::from(Vec::<u8>::new()),
                Form::Samples | Form::Png => Samples::any(&image.shape)?,
            };
            Ok((samples.into(), Some(image)))
        }
        Pixels::Deflated(_) => bail!("the image is compressed already"),
    }
}

/// Copies the image from the job's memory to device memory, unless it is there already.
fn uploaded(resident: Option<DeviceImage>, shape: Shape, job: &mut Job) -> Result<DeviceImage> {
    match resident {
        Some(image) => Ok(image),
        None => Ok(DeviceImage {
            shape,
            samples: job.upload()?,
        }),
    }
}

/// Runs operations on a whole image in device memory and leaves the result in the job's memory.
/// Everything is queued without waiting, except for a histogram and for the length of a PNG: the
/// host receives the statistics together with the result.
fn whole(
    tasks: &[Task],
    image: DeviceImage,
    form: Form,
    job: &mut Job,
) -> Result<Executed<Delivered>> {
    let (result, measured) = queued(tasks, image, job)?;
    let result = result.try_map(|image| Delivered::from_device(image, form, job))?;
    let mut summary = Summary::default();
    for (task, own) in tasks.iter().zip(measured) {
        let own = own.on_host(job)?;
        let bound = task.op.bind(task.types, task.statistics.unwrap_or(&own))?;
        summary = summary.then(bound.summary());
    }
    Ok(Executed { result, summary })
}

/// Queues operations on an image in device memory, one after the other; returns the last result, and
/// what was measured for each.
fn queued(
    tasks: &[Task],
    image: DeviceImage,
    job: &mut Job,
) -> Result<(OpResult<DeviceImage>, Vec<Statistics>)> {
    let (mut result, mut measured) = (OpResult::Image(image), Vec::with_capacity(tasks.len()));
    for task in tasks {
        let image = result.image()?;
        let own = task.statistic().cuda(&image, job)?;
        let bound = task.op.bind(task.types, task.statistics.unwrap_or(&own))?;
        result = bound.cuda(image, job)?;
        drop(bound);
        measured.push(own);
    }
    Ok((result, measured))
}
