//! Runs an operation on an image: on the CPU, or on a GPU as a whole or in bands, where the result
//! can also be deflated for a PNG. Every image, page and set takes the same three steps: measure
//! the statistic that the operation asks for, unless it is known; bind; run.

pub mod bands;
mod pixels;
pub mod png;
pub mod png_decode;

pub use pixels::{Form, Pixels};

use crate::codec::packed::{Packed, Unsuited};
use crate::device::choice;
use crate::device::cuda::Gpu;
use crate::device::job::Job;
use crate::device::slots::Slot;
use crate::device::{Devices, Failed, NoMemory, Work};
use crate::image::{HostMemory, Image, Samples, Shape};
use crate::ops::{DeviceImage, Executed, Operation, SampleTypes, Statistic, Statistics};
use crate::timing::Timeline;
use anyhow::{Context, Result, bail};
use pixels::Delivered;

/// An operation, and what it needs to know about one image.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The operation.
    pub op: &'a dyn Operation,
    /// The types of the image's samples.
    pub types: SampleTypes,
    /// The statistic that the operation asks for, if it was measured before, over all pages of a
    /// stack. `None`: to be measured in the image itself.
    pub statistics: Option<&'a Statistics>,
}

impl<'a> Task<'a> {
    /// The operation on an image with unsigned samples.
    pub fn plain(op: &'a dyn Operation, shape: &Shape) -> Task<'a> {
        Task {
            op,
            types: SampleTypes::plain_for(op, shape),
            statistics: None,
        }
    }

    /// The statistic that is still to be measured.
    fn statistic(&self) -> Statistic {
        match self.statistics {
            Some(_) => Statistic::None,
            None => self.op.statistic(),
        }
    }
}

/// Chooses a device for each operation, runs it there, and records device, work and time.
#[derive(Debug)]
pub struct Executor<'a> {
    devices: &'a Devices,
    /// The device that ran the last operation, and why it was chosen.
    pub device: String,
    /// The bytes that the last operation had to move.
    pub work: Work,
    /// The time that each stage took.
    pub timeline: Timeline,
    /// The image's place on the GPU that works on it.
    slot: Option<Slot>,
}

impl<'a> Executor<'a> {
    /// An executor that adds to an existing `timeline`.
    pub fn new(devices: &'a Devices, timeline: Timeline) -> Executor<'a> {
        Executor {
            devices,
            device: String::new(),
            work: Work::default(),
            timeline,
            slot: None,
        }
    }

    /// The GPU that runs `work`, or `None` for the CPU, as `only_cpu` may say and why. Pixels in a
    /// GPU's memory stay on that GPU.
    fn choose(
        &mut self,
        work: Work,
        pixels: &Pixels,
        only_cpu: Option<&str>,
    ) -> Result<Option<&'a Gpu>> {
        // What a GPU could have decoded is kept, for the estimate of the images to come.
        self.work = Work {
            decoded: self.work.decoded,
            ..work
        };
        if let Some(why) = only_cpu {
            self.device = self.devices.only_cpu(why)?;
            return Ok(None);
        }
        if let (Pixels::Device(_), Some(gpu)) = (pixels, self.devices.opened()) {
            self.device = format!("GPU ({}), where the image was decoded", gpu.name);
            return Ok(Some(gpu));
        }
        let (gpu, device) = self.devices.choose(&work, &mut self.timeline)?;
        self.device = device;
        let Some(gpu) = gpu else { return Ok(None) };
        if !self.enter(gpu) {
            let why = "chosen by auto: the GPU is busy with other images";
            self.device = choice::cpu_line(rayon::current_num_threads(), why);
            return Ok(None);
        }
        Ok(Some(gpu))
    }

    /// Takes a place on a GPU for the image, unless it has one; false if there is none and the CPU
    /// may do the work instead.
    fn enter(&mut self, gpu: &Gpu) -> bool {
        if self.slot.is_none() {
            self.slot = match self.devices.may_avoid_waiting() {
                true => gpu.slots.try_take(),
                false => Some(gpu.slots.take()),
            };
        }
        self.slot.is_some()
    }

    /// Measures a statistic of an image.
    pub fn measure(&mut self, statistic: Statistic, pixels: Pixels) -> Result<Statistics> {
        let shape = pixels.shape();
        let work = statistic.work(&shape);
        match self.choose(work, &pixels, statistic.not_on_gpu(&shape))? {
            None => Ok(statistic.cpu(&self.on_host(pixels)?, &mut self.timeline)),
            Some(gpu) => {
                let statistics = measure_on_gpu(statistic, pixels, gpu, &mut self.timeline);
                self.slot = None;
                statistics.map_err(|error| error.context(Failed))
            }
        }
    }

    /// Runs an operation on an image. A GPU returns the result in the requested `form`; the CPU
    /// always returns samples.
    ///
    /// # Errors
    /// Errors of the device, and options that do not fit the samples.
    pub fn run(&mut self, task: &Task, pixels: Pixels, form: Form) -> Result<Executed<Pixels>> {
        task.op.fits(&task.types)?;
        let shape = pixels.shape();
        let work = work(task.op, task.statistic(), &shape, form);
        match self.choose(work, &pixels, task.op.not_on_gpu(&shape))? {
            None => {
                let image = self.on_host(pixels)?;
                let Executed { result, summary } = run_on_cpu(task, image, &mut self.timeline)?;
                let result = result.try_map(|image| Ok(Pixels::Host(image)))?;
                Ok(Executed { result, summary })
            }
            Some(gpu) => {
                let done = run_on_gpu(task, pixels, form, gpu, &mut self.timeline);
                self.slot = None;
                let done = done.map_err(|error| error.context(Failed))?;
                if done.in_bands {
                    self.device += ", in bands: its memory does not hold the image at once";
                }
                Ok(done.executed)
            }
        }
    }

    /// The GPU that will run the operation on an image of this shape, if it can decode the image
    /// too; `None`: the host decodes it.
    ///
    /// # Errors
    /// A requested GPU that cannot be used.
    pub fn decoder(
        &mut self,
        op: &dyn Operation,
        shape: &Shape,
        form: Form,
    ) -> Result<Option<&'a Gpu>> {
        self.work.decoded = shape.bytes() as u64;
        let work = Work {
            decoded: self.work.decoded,
            ..work(op, op.statistic(), shape, form)
        };
        let gpu = self.devices.choose_decoder(&work, &mut self.timeline)?;
        Ok(gpu.filter(|gpu| self.enter(gpu)))
    }

    /// Decodes a PNG on a GPU, where its pixels stay; or says why the host must decode it.
    ///
    /// # Errors
    /// The GPU's.
    pub fn decode_png(
        &mut self,
        mut packed: Packed,
        gpu: &Gpu,
    ) -> Result<Result<DeviceImage, Unsuited>> {
        let (head, memory) = packed.split();
        let decoded = gpu.job(memory, &mut self.timeline, |job| {
            png_decode::decode_on_gpu(head, job)
        });
        if !matches!(decoded, Ok(Ok(_))) {
            self.slot = None;
        }
        decoded.map_err(|error| error.context(Failed))
    }

    /// Copies the image to host memory, unless it is there already.
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

/// The bytes that an operation moves, and a statistic that is measured for it.
fn work(op: &dyn Operation, statistic: Statistic, shape: &Shape, form: Form) -> Work {
    let bound = op.work(shape);
    Work {
        touched: statistic.work(shape).touched + bound.touched,
        compressed: match form {
            Form::Png => shape.bytes() as u64,
            Form::Samples => 0,
        },
        ..bound
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

/// The result of an operation on a GPU.
#[derive(Debug)]
pub struct OnGpu {
    /// The operation's result.
    pub executed: Executed<Pixels>,
    /// Whether the image was processed in bands because device memory could not hold it.
    pub in_bands: bool,
}

/// Runs an operation on a GPU. An image from host memory returns in the same memory. An image that
/// device memory cannot hold is processed in bands and returns as samples. Errors: the GPU's.
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
        // Device memory is allocated before anything is copied back, so the image is still
        // unchanged here.
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

/// As `run_on_gpu`, but measures a statistic.
fn measure_on_gpu(
    statistic: Statistic,
    pixels: Pixels,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Statistics> {
    let shape = pixels.shape();
    let (mut memory, resident) = staged(pixels)?;
    let cuttable = resident.is_none();
    let statistics = gpu.job(&mut memory, timeline, |job| {
        let image = uploaded(resident, shape, job)?;
        statistic.cuda(&image, job)?.on_host(job)
    });
    match statistics {
        Err(error) if error.is::<NoMemory>() && cuttable => {
            bands::measure(statistic, shape, &mut memory, gpu, timeline)
        }
        found => found,
    }
}

/// The host memory of an image, and the device image if the pixels are already on the GPU.
fn staged(pixels: Pixels) -> Result<(HostMemory, Option<DeviceImage>)> {
    match pixels {
        Pixels::Host(image) => Ok((image.into_samples().into(), None)),
        Pixels::Device(image) => Ok((Samples::any(&image.shape)?.into(), Some(image))),
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

/// Runs the operation on a whole image in device memory and leaves the result in the job's memory.
/// Everything is queued without waiting, except for a histogram and for the length of a PNG: the
/// host receives the statistic together with the result.
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
