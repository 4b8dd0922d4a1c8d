//! Runs operations on an image, one after the other: on the CPU, or on a GPU as a whole or in bands,
//! where the result can also be deflated for a PNG. Between two operations the image stays where it
//! is. Every image, page and set takes the same three steps for each: measure the statistic that the
//! operation asks for, unless it is known; bind; run.

pub mod bands;
mod blocks;
mod on_gpu;
mod pixels;
mod prepare;
mod set;

pub use super::task::{Form, Task, device_work};
pub use on_gpu::{OnGpu, run_on_gpu};
pub use pixels::Pixels;
pub use prepare::prepare;
pub use set::PageWork;

use super::task::check_types;

use crate::formats::gpu::decode::{self, Decoded};
use crate::formats::packed::Packed;
use crate::gpu::choice;
use crate::gpu::driver::Gpu;
use crate::gpu::slots::Slot;
use crate::gpu::{Devices, Failed, Work};
use crate::image::{Image, Shape};
use crate::ops::{
    Executed, OpResult, Operation, Statistic, Statistics, Summary, gpu_obstacle,
};
use crate::timing::Timeline;
use anyhow::{Context, Result, bail};
use on_gpu::measure_on_gpu;
use pixels::Delivered;
use std::slice;

/// Chooses a device for each operation, runs it there, and records device, work and time.
#[derive(Debug)]
pub struct Executor<'a> {
    devices: &'a Devices,
    /// The device that ran the last operation, and why it was chosen.
    pub device: String,
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
            timeline,
            slot: None,
        }
    }

    /// The GPU that runs `work`, or `None` for the CPU, as `only_cpu` may say and why. Pixels in a
    /// GPU's memory (`on_gpu`) stay on that GPU.
    fn choose(
        &mut self,
        work: Work,
        on_gpu: bool,
        only_cpu: Option<&str>,
    ) -> Result<Option<&'a Gpu>> {
        if let Some(why) = only_cpu {
            self.device = self.devices.only_cpu(why)?;
            return Ok(None);
        }
        if let (true, Some(gpu)) = (on_gpu, self.devices.opened()) {
            let name = self.devices.line(gpu);
            self.device = format!("{name}, where the image was decoded");
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

    /// Takes the CPU for an operation whose image others run it on, part by part.
    ///
    /// # Errors
    /// Options that do not fit the samples, and a GPU that was asked for.
    pub fn keep_to_cpu(&mut self, task: &Task, shape: &Shape, why: &str) -> Result<()> {
        let tasks = slice::from_ref(task);
        check_types(tasks)?;
        let work = device_work(tasks, shape, Form::Samples);
        self.choose(work, false, Some(why)).map(drop)
    }

    /// Takes a place on a GPU for the image, unless it has one; false if there is none and the CPU
    /// may do the work instead.
    fn enter(&mut self, gpu: &Gpu) -> bool {
        if self.slot.is_none() {
            self.slot = match self.devices.may_avoid_waiting() {
                true => gpu.slots.try_acquire(),
                false => Some(gpu.slots.acquire()),
            };
        }
        self.slot.is_some()
    }

    /// Measures a statistic of what operations make of an image.
    ///
    /// # Errors
    /// Errors of the device, and options that do not fit the samples.
    pub fn measure(
        &mut self,
        tasks: &[Task],
        statistic: Statistic,
        pixels: Pixels,
    ) -> Result<Statistics> {
        check_types(tasks)?;
        let shape = pixels.shape();
        let measured = statistic.work(&shape);
        let work = match tasks {
            [] => measured,
            tasks => {
                let before = device_work(tasks, &shape, Form::Samples);
                Work {
                    touched: before.touched + measured.touched,
                    ..before
                }
            }
        };
        let only_cpu = tasks.iter().find_map(|task| gpu_obstacle(task.op, &shape));
        match self.choose(work, pixels.are_on_gpu(), only_cpu)? {
            None => {
                let image = self.on_host(pixels)?;
                let made = run_on_cpu(tasks, image, &mut self.timeline)?
                    .result
                    .image()?;
                Ok(statistic.cpu(&made, &mut self.timeline))
            }
            Some(gpu) => {
                let statistics = measure_on_gpu(tasks, statistic, pixels, gpu, &mut self.timeline);
                self.slot = None;
                statistics.map_err(|error| error.context(Failed))
            }
        }
    }

    /// Runs operations on an image, one after the other. A GPU returns the result in the requested
    /// `form`; the CPU always returns samples.
    ///
    /// # Errors
    /// Errors of the device, and options that do not fit the samples.
    pub fn run(&mut self, tasks: &[Task], pixels: Pixels, form: Form) -> Result<Executed<Pixels>> {
        check_types(tasks)?;
        let shape = pixels.shape();
        let work = device_work(tasks, &shape, form);
        let only_cpu = tasks.iter().find_map(|task| gpu_obstacle(task.op, &shape));
        match self.choose(work, pixels.are_on_gpu(), only_cpu)? {
            None => {
                let image = self.on_host(pixels)?;
                let Executed { result, summary } = run_on_cpu(tasks, image, &mut self.timeline)?;
                let result = result.try_map(|image| Ok(Pixels::Host(image)))?;
                Ok(Executed { result, summary })
            }
            Some(gpu) => {
                let done = run_on_gpu(tasks, pixels, form, gpu, &mut self.timeline);
                let stays = |done: &OnGpu| {
                    matches!(done.executed.result, OpResult::Image(Pixels::Device(_)))
                };
                if !done.as_ref().is_ok_and(stays) {
                    self.slot = None;
                }
                let done = done.map_err(|error| error.context(Failed))?;
                if done.in_bands {
                    self.device += ", in bands: the image does not fit in its memory";
                }
                Ok(done.executed)
            }
        }
    }

    /// The GPU that will run the operations on an image of this shape, if it can decode the image
    /// too; `None`: the host decodes it.
    ///
    /// # Errors
    /// A requested GPU that cannot be used.
    pub fn decoder(
        &mut self,
        tasks: &[Task],
        shape: &Shape,
        form: Form,
    ) -> Result<Option<&'a Gpu>> {
        if (tasks.iter()).any(|task| gpu_obstacle(task.op, shape).is_some()) {
            return Ok(None);
        }
        let work = Work {
            decoded: shape.bytes() as u64,
            rate: self.devices.rate(),
            ..device_work(tasks, shape, form)
        };
        let gpu = self.devices.choose_decoder(&work, &mut self.timeline)?;
        Ok(gpu.filter(|gpu| self.enter(gpu)))
    }

    /// Takes the time into account that the host took for a page that a GPU could have decoded.
    pub fn decoded_on_host(&self, shape: &Shape) {
        self.devices
            .learn(shape.bytes(), self.timeline.codec_time());
    }

    /// The devices to choose from.
    pub fn devices(&self) -> &'a Devices {
        self.devices
    }

    /// Decodes a page on a GPU, where its pixels stay; or says why the host must decode it.
    ///
    /// # Errors
    /// The GPU's.
    pub fn decode_packed(&mut self, mut packed: Packed, gpu: &Gpu) -> Result<Decoded> {
        let (head, memory) = packed.split();
        let decoded = gpu.job(memory, &mut self.timeline, |job| {
            decode::decode_on_gpu(head, job)
        });
        if !matches!(decoded, Ok(Decoded::Image { .. })) {
            self.slot = None;
        }
        decoded.map_err(|error| error.context(Failed))
    }

    /// Copies the image to host memory, unless it is there already.
    pub fn on_host(&mut self, pixels: Pixels) -> Result<Image> {
        match self.delivered(pixels, Form::Samples)? {
            Pixels::Host(image) => Ok(image),
            Pixels::Device(_) | Pixels::Deflated(_) => bail!("the image is compressed already"),
        }
    }

    /// Copies an image from device memory in the requested form; any other stays as it is.
    ///
    /// # Errors
    /// The GPU's.
    pub fn delivered(&mut self, pixels: Pixels, form: Form) -> Result<Pixels> {
        let Pixels::Device(image) = pixels else {
            return Ok(pixels);
        };
        let gpu = self.devices.opened().context("the image's GPU is gone")?;
        let (mut memory, image) = on_gpu::staged(Pixels::Device(image), form)?;
        let image = image.context("the image is gone")?;
        let delivered = gpu.job(&mut memory, &mut self.timeline, |job| {
            Delivered::from_device(image, form, job)
        });
        self.slot = None;
        delivered
            .map_err(|error| error.context(Failed))?
            .in_memory(memory)
    }
}

/// Runs an operation on plain samples on all cores.
pub fn on_cpu(op: &dyn Operation, image: Image, timeline: &mut Timeline) -> Result<Executed> {
    run_on_cpu(&[Task::plain(op, &image.shape())], image, timeline)
}

/// Runs an operation on plain samples on a GPU, and brings the result back.
pub fn on_gpu(
    op: &dyn Operation,
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Executed> {
    let task = Task::plain(op, &image.shape());
    let done = run_on_gpu(&[task], Pixels::Host(image), Form::Samples, gpu, timeline)?;
    let Executed { result, summary } = done.executed;
    let result = result.try_map(|pixels| match pixels {
        Pixels::Host(image) => Ok(image),
        Pixels::Device(_) | Pixels::Deflated(_) => bail!("the result is not in the host's memory"),
    })?;
    Ok(Executed { result, summary })
}

fn run_on_cpu(tasks: &[Task], image: Image, timeline: &mut Timeline) -> Result<Executed> {
    let mut done = Executed {
        result: OpResult::Image(image),
        summary: Summary::default(),
    };
    for task in tasks {
        let image = done.result.image()?;
        let own = task.statistic().cpu(&image, timeline);
        let bound = task.op.bind(task.types, task.statistics.unwrap_or(&own))?;
        done = Executed {
            result: bound.cpu(image, timeline)?,
            summary: done.summary.then(bound.summary()),
        };
    }
    Ok(done)
}
