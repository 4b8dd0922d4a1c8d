//! Runs operations on an image, one after the other: on the CPU, or on a GPU as a whole or in bands. A GPU can also deflate the
//! result for a PNG. Between two operations the image stays where it is. Each operation takes three steps: measure the
//! statistic that it asks for, unless it is known; bind it; run it.

pub mod bands;
mod blocks;
mod on_gpu;
mod page;
mod pixels;
mod prepare;

pub use super::task::{Form, Task, device_work};
pub use on_gpu::{RanOnGpu, run_on_gpu};
pub use page::PageWork;
pub use pixels::Pixels;
pub use prepare::prepare;

use super::task::check_types;

use crate::formats::gpu::decode::{self, Decoded};
use crate::formats::packed::Packed;
use crate::gpu::driver::Gpu;
use crate::gpu::slots::Slot;
use crate::gpu::{Devices, Failed, Work};
use crate::image::{Image, Shape};
use crate::ops::{
    DeviceImage, Executed, OpResult, Operation, Statistic, Statistics, Summary, gpu_obstacle,
};
use crate::timing::Timeline;
use anyhow::{Context, Result, bail};
use on_gpu::measure_on_gpu;
use pixels::DownloadedPixels;
use std::slice;
use std::time::Duration;

/// Chooses a device for each operation, runs it there, and records the device and the times.
#[derive(Debug)]
pub struct Executor<'a> {
    devices: &'a Devices,
    /// The device that ran the last operation, and why it was chosen.
    pub device_line: String,
    /// The time that each stage took.
    pub timeline: Timeline,
    /// The slot of the current image on a GPU. A GPU works on a limited number of images at a time.
    slot: Option<Slot>,
}

impl<'a> Executor<'a> {
    /// An executor that records times in `timeline`.
    pub fn new(devices: &'a Devices, timeline: Timeline) -> Executor<'a> {
        Executor {
            devices,
            device_line: String::new(),
            timeline,
            slot: None,
        }
    }

    /// The GPU that runs `work`, or `None` for the CPU. Pixels in a GPU's memory stay on that GPU. If only the CPU can do the
    /// work, `cpu_reason` says why.
    fn choose(
        &mut self,
        work: Work,
        pixels_are_on_gpu: bool,
        cpu_reason: Option<&str>,
    ) -> Result<Option<&'a Gpu>> {
        if let Some(reason) = cpu_reason {
            self.device_line = self.devices.only_cpu(reason)?;
            return Ok(None);
        }
        if pixels_are_on_gpu && let Some(gpu) = self.devices.opened() {
            let name = self.devices.line(gpu);
            self.device_line = format!("{name}, where the image was decoded");
            return Ok(Some(gpu));
        }
        let (gpu, device_line) = self.devices.choose(&work, &mut self.timeline)?;
        self.device_line = device_line;
        let Some(gpu) = gpu else { return Ok(None) };
        self.acquire_slot(gpu);
        Ok(Some(gpu))
    }

    /// Chooses the CPU for an operation that the caller runs band by band.
    ///
    /// # Errors
    /// Options that do not fit the samples, and `--device gpu`.
    pub fn choose_cpu(&mut self, task: &Task, shape: &Shape, reason: &str) -> Result<()> {
        let tasks = slice::from_ref(task);
        check_types(tasks)?;
        let work = device_work(tasks, shape, Form::Samples);
        self.choose(work, false, Some(reason)).map(drop)
    }

    /// Acquires a slot on a GPU for the image, unless it has one. Waits until one is free.
    fn acquire_slot(&mut self, gpu: &Gpu) {
        self.slot.get_or_insert_with(|| gpu.slots.acquire());
    }

    /// Runs operations on an image, and measures a statistic of the result.
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
        let work = if tasks.is_empty() {
            measured
        } else {
            let before = device_work(tasks, &shape, Form::Samples);
            Work {
                touched: before.touched + measured.touched,
                ..before
            }
        };
        match self.choose(work, pixels.are_on_gpu(), cpu_reason(tasks, &shape))? {
            None => {
                let image = self.to_host(pixels)?;
                let executed = run_on_cpu(tasks, image, &mut self.timeline)?;
                let output = executed.result.image()?;
                Ok(statistic.cpu(&output, &mut self.timeline))
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
        match self.choose(work, pixels.are_on_gpu(), cpu_reason(tasks, &shape))? {
            None => {
                let image = self.to_host(pixels)?;
                let Executed { result, summary } = run_on_cpu(tasks, image, &mut self.timeline)?;
                let result = result.try_map(|image| Ok(Pixels::Host(image)))?;
                Ok(Executed { result, summary })
            }
            Some(gpu) => {
                let ran = run_on_gpu(tasks, pixels, form, gpu, &mut self.timeline);
                let stays_on_gpu = |ran: &RanOnGpu| {
                    matches!(ran.executed.result, OpResult::Image(Pixels::Device(_)))
                };
                if !ran.as_ref().is_ok_and(stays_on_gpu) {
                    self.slot = None;
                }
                let ran = ran.map_err(|error| error.context(Failed))?;
                if ran.in_bands {
                    self.device_line += ", in bands: the image does not fit in its memory";
                }
                Ok(ran.executed)
            }
        }
    }

    /// The GPU that will decode an image of this shape and run the operations on it. Returns `None` if the host decodes it.
    ///
    /// # Errors
    /// A requested GPU that cannot be used.
    pub fn decoding_gpu(
        &mut self,
        tasks: &[Task],
        shape: &Shape,
        form: Form,
    ) -> Result<Option<&'a Gpu>> {
        if cpu_reason(tasks, shape).is_some() {
            return Ok(None);
        }
        let work = Work {
            decoded: shape.bytes() as u64,
            rate: self.devices.rate(),
            ..device_work(tasks, shape, form)
        };
        let gpu = self.devices.choose_decoder(&work, &mut self.timeline)?;
        // A page that the GPU decodes well costs the CPU several times the wait.
        if let Some(gpu) = gpu {
            self.acquire_slot(gpu);
        }
        Ok(gpu)
    }

    /// Records the `time` that the host took to decode a page. `auto` uses it to estimate whether a GPU would decode pages
    /// faster.
    pub fn learn_decoding_time(&self, shape: &Shape, time: Duration) {
        self.devices.learn(shape.bytes(), time);
    }

    /// The devices to choose from.
    pub fn devices(&self) -> &'a Devices {
        self.devices
    }

    /// Decodes a page on a GPU, where its pixels stay, or returns the reason why the host must decode it.
    ///
    /// # Errors
    /// Errors of the GPU.
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
    ///
    /// # Errors
    /// Errors of the GPU.
    pub fn to_host(&mut self, pixels: Pixels) -> Result<Image> {
        match self.download(pixels, Form::Samples)? {
            Pixels::Host(image) => Ok(image),
            Pixels::Deflated(_) => bail!("internal error: the samples are compressed already"),
            Pixels::Device(_) => bail!("internal error: the samples were not copied from the GPU"),
        }
    }

    /// Copies the image to the memory of the GPU, unless it is there already.
    ///
    /// # Errors
    /// Errors of the GPU.
    pub fn to_device(&mut self, pixels: Pixels) -> Result<DeviceImage> {
        let image = match pixels {
            Pixels::Device(image) => return Ok(image),
            Pixels::Host(image) => image,
            Pixels::Deflated(_) => bail!("internal error: the samples are compressed already"),
        };
        let gpu = self.devices.opened();
        let gpu = gpu.context("internal error: an image for a GPU that is not in use")?;
        let uploaded = on_gpu::upload_image(image, gpu, &mut self.timeline);
        uploaded.map_err(|error| error.context(Failed))
    }

    /// Copies an image from device memory in the requested form. An image in host memory stays as it is.
    ///
    /// # Errors
    /// Errors of the GPU.
    pub fn download(&mut self, pixels: Pixels, form: Form) -> Result<Pixels> {
        let Pixels::Device(image) = pixels else {
            return Ok(pixels);
        };
        let gpu = self.devices.opened();
        let gpu = gpu.context("internal error: an image in device memory without a GPU")?;
        let mut memory = on_gpu::download_buffer(image.shape, form)?;
        let downloaded = gpu.job(&mut memory, &mut self.timeline, |job| {
            DownloadedPixels::from_device(image, form, job)
        });
        self.slot = None;
        downloaded
            .map_err(|error| error.context(Failed))?
            .into_pixels(memory)
    }
}

/// The reason why only the CPU can run these operations on an image of this shape, if there is one.
fn cpu_reason(tasks: &[Task], shape: &Shape) -> Option<&'static str> {
    tasks.iter().find_map(|task| gpu_obstacle(task.op, shape))
}

/// Runs an operation on unsigned samples on all cores.
pub fn on_cpu(op: &dyn Operation, image: Image, timeline: &mut Timeline) -> Result<Executed> {
    run_on_cpu(&[Task::plain(op, &image.shape())], image, timeline)
}

/// Runs an operation on unsigned samples on a GPU, and copies the result to host memory.
pub fn on_gpu(
    op: &dyn Operation,
    image: Image,
    gpu: &Gpu,
    timeline: &mut Timeline,
) -> Result<Executed> {
    let task = Task::plain(op, &image.shape());
    let ran = run_on_gpu(&[task], Pixels::Host(image), Form::Samples, gpu, timeline)?;
    let Executed { result, summary } = ran.executed;
    let result = result.try_map(|pixels| match pixels {
        Pixels::Host(image) => Ok(image),
        Pixels::Device(_) | Pixels::Deflated(_) => {
            bail!("internal error: the result is not in host memory")
        }
    })?;
    Ok(Executed { result, summary })
}

fn run_on_cpu(tasks: &[Task], image: Image, timeline: &mut Timeline) -> Result<Executed> {
    let mut executed = Executed {
        result: OpResult::Image(image),
        summary: Summary::default(),
    };
    for task in tasks {
        let image = executed.result.image()?;
        let measured = task.statistic().cpu(&image, timeline);
        let statistics = task.statistics.unwrap_or(&measured);
        let bound = task.op.bind(task.types, statistics)?;
        let result = bound.cpu(image, timeline)?;
        let summary = Summary {
            clamped: bound.clamped(),
            ..bound.summary()
        };
        executed = Executed {
            result,
            summary: executed.summary.then(summary),
        };
    }
    Ok(executed)
}
