//! Runs operations on a GPU. The whole image stays in device memory from the first operation to the last. If device memory is too
//! small for that, the operations run one after the other, each in bands.

use super::pixels::{DownloadedPixels, image_at_start, with_room};
use super::{Form, Pixels, Task, bands};
use crate::gpu::NoMemory;
use crate::gpu::driver::Gpu;
use crate::gpu::job::Job;
use crate::image::metadata::Effect;
use crate::image::{HostMemory, Image, Samples, Shape};
use crate::ops::{DeviceImage, Executed, OpResult, Statistic, Statistics, Summary};
use crate::timing::Timeline;
use anyhow::{Result, bail};

/// The result of operations on a GPU.
#[derive(Debug)]
pub struct RanOnGpu {
    /// The result of the last operation.
    pub executed: Executed<Pixels>,
    /// Whether the image was processed in bands because device memory could not hold it.
    pub in_bands: bool,
}

/// Runs operations on a GPU, one after the other. The result of an image in host memory replaces the image in the same memory.
/// If device memory cannot hold the image, each operation processes it in bands, and the result is samples.
///
/// # Errors
/// Errors of the GPU.
pub fn run_on_gpu(
    tasks: &[Task],
    pixels: Pixels,
    form: Form,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<RanOnGpu> {
    let shape = pixels.shape();
    let output = tasks.iter().fold(shape, |shape, task| task.output(shape));
    let last = tasks.last().map(|task| task.op.properties().effect);
    // Numbers need no memory of the size of an image.
    let form = match last {
        Some(Effect::Numbers) => Form::Device,
        _ => form,
    };
    let StagedPixels {
        mut memory,
        device_image,
    } = StagedPixels::new(pixels, output, form)?;
    let can_use_bands = device_image.is_none();
    let ran = gpu.job(&mut memory, timeline, |job| {
        let image = device_image.map_or_else(|| upload(shape, job), Ok)?;
        run_whole(tasks, image, form, job)
    });
    match ran {
        Ok(Executed { result, summary }) => Ok(RanOnGpu {
            executed: Executed {
                result: result.try_map(|downloaded| downloaded.into_pixels(memory))?,
                summary,
            },
            in_bands: false,
        }),
        // Device memory is allocated before anything is copied back, so the image in host memory is unchanged.
        Err(error) if error.is::<NoMemory>() && can_use_bands => Ok(RanOnGpu {
            executed: run_in_bands(tasks, image_at_start(memory, shape)?, gpu, timeline)?,
            in_bands: true,
        }),
        Err(error) => Err(error),
    }
}

/// Runs operations on an image for which device memory is too small.
fn run_in_bands(
    tasks: &[Task],
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Executed<Pixels>> {
    let [task] = tasks else {
        return run_one_by_one(tasks, image, gpu, timeline);
    };
    let Executed { result, summary } =
        bands::run(task, image, gpu, timeline, bands::DEFAULT_BAND_BYTES)?;
    Ok(Executed {
        result: result.try_map(|image| Ok(Pixels::Host(image)))?,
        summary,
    })
}

/// Runs operations one at a time, because device memory cannot hold what all of them need together. After each operation the
/// image returns to host memory.
fn run_one_by_one(
    tasks: &[Task],
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Executed<Pixels>> {
    let mut executed = Executed {
        result: OpResult::Image(Pixels::Host(image)),
        summary: Summary::default(),
    };
    for task in tasks {
        let pixels = executed.result.image()?;
        let step = run_on_gpu(&[*task], pixels, Form::Samples, gpu, timeline)?.executed;
        executed = Executed {
            result: step.result,
            summary: executed.summary.then(step.summary),
        };
    }
    Ok(executed)
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
    let StagedPixels {
        mut memory,
        device_image,
    } = StagedPixels::new(pixels, shape, Form::Device)?;
    let can_use_bands = device_image.is_none();
    let measured = gpu.job(&mut memory, timeline, |job| {
        let image = device_image.map_or_else(|| upload(shape, job), Ok)?;
        let (result, _) = queue_all(tasks, image, job)?;
        statistic.cuda(&result.image()?, job)?.on_host(job)
    });
    match measured {
        Err(error) if error.is::<NoMemory>() && can_use_bands => {
            if tasks.is_empty() {
                return bands::measure(statistic, shape, &mut memory, gpu, timeline);
            }
            let image = memory.into_image(shape);
            let executed = run_one_by_one(tasks, image, gpu, timeline)?;
            measure_on_gpu(&[], statistic, executed.result.image()?, gpu, timeline)
        }
        measured => measured,
    }
}

/// An image that a GPU's job is about to process.
struct StagedPixels {
    /// Host memory for the job. It begins with the samples to upload, if the image is not on the device, and has room for the
    /// result.
    memory: HostMemory,
    /// The image, if it is in device memory already.
    device_image: Option<DeviceImage>,
}

impl StagedPixels {
    /// Pixels for a job whose result has the shape `output`, and is requested in this form.
    fn new(pixels: Pixels, output: Shape, form: Form) -> Result<StagedPixels> {
        match pixels {
            Pixels::Host(image) => Ok(StagedPixels {
                memory: if form != Form::Device && output.bytes() > image.shape().bytes() {
                    with_room(&image, output)?
                } else {
                    image.into_samples().into()
                },
                device_image: None,
            }),
            Pixels::Device(image) => Ok(StagedPixels {
                memory: download_buffer(output, form)?,
                device_image: Some(image),
            }),
            Pixels::Deflated(_) => bail!("internal error: the samples are compressed already"),
        }
    }
}

/// Host memory for the download of an image of this shape. It is empty if the image stays on the device.
pub(super) fn download_buffer(shape: Shape, form: Form) -> Result<HostMemory> {
    let samples = match form {
        Form::Device => Samples::from(Vec::<u8>::new()),
        Form::Samples | Form::Png => Samples::any(&shape)?,
    };
    Ok(samples.into())
}

/// Copies an image to device memory.
pub(super) fn upload_image(
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<DeviceImage> {
    let shape = image.shape();
    let mut memory: HostMemory = image.into_samples().into();
    gpu.job(&mut memory, timeline, |job| upload(shape, job))
}

/// Copies the image in the job's memory to device memory.
fn upload(shape: Shape, job: &mut Job) -> Result<DeviceImage> {
    Ok(DeviceImage {
        shape,
        samples: job.upload_first(shape.bytes())?,
    })
}

/// Runs operations on a whole image in device memory. The result is in the job's memory, unless it stays on the device.
/// Everything is queued without waiting, except for a histogram and for the length of a PNG: the host receives the statistics
/// together with the result.
fn run_whole(
    tasks: &[Task],
    image: DeviceImage,
    form: Form,
    job: &mut Job,
) -> Result<Executed<DownloadedPixels>> {
    let (result, queued) = queue_all(tasks, image, job)?;
    let result = result.try_map(|image| DownloadedPixels::from_device(image, form, job))?;
    // The operations ran with statistics in device memory. Their summaries contain values of the statistics, so the operations
    // are bound again, to the same statistics on the host.
    let mut summary = Summary::default();
    for (task, Queued { measured, clamped }) in tasks.iter().zip(queued) {
        let measured = measured.on_host(job)?;
        let statistics = task.statistics.unwrap_or(&measured);
        let bound = task.op.bind(task.types, statistics)?;
        summary = summary.then(Summary {
            clamped,
            ..bound.summary()
        });
    }
    Ok(Executed { result, summary })
}

/// What is known of an operation that was queued.
struct Queued {
    /// The statistic that was measured for it.
    measured: Statistics,
    /// How many samples it has clamped, if it counts them.
    clamped: Option<u64>,
}

/// Queues operations on an image in device memory, one after the other. Returns the last result, and what is known of each
/// operation.
fn queue_all(
    tasks: &[Task],
    image: DeviceImage,
    job: &mut Job,
) -> Result<(OpResult<DeviceImage>, Vec<Queued>)> {
    let (mut result, mut all) = (OpResult::Image(image), Vec::with_capacity(tasks.len()));
    for task in tasks {
        let image = result.image()?;
        let measured = task.statistic().cuda(&image, job)?;
        let statistics = task.statistics.unwrap_or(&measured);
        let bound = task.op.bind(task.types, statistics)?;
        result = bound.cuda(image, job)?;
        let clamped = bound.clamped();
        drop(bound);
        all.push(Queued { measured, clamped });
    }
    Ok((result, all))
}
