//! Runs the plan of a page, from its decoded samples to the samples or the compressed data for the encoder.

use super::{Executor, Pixels};
use crate::engine::errors::Messages;
use crate::engine::plan::Plan;
use crate::gpu::job::Job;
use crate::gpu::{Failed, NoMemory};
use crate::image::Image;
use crate::image::number::Number;
use crate::ops::fit::Fit;
use crate::ops::{DeviceImage, Executed, depth};
use crate::timing::Timeline;
use anyhow::Result;

/// A page that is ready to run.
pub struct PageWork<'w, 'p> {
    /// The plan of the page.
    pub plan: &'w Plan<'p>,
    /// The input of the first step.
    pub pixels: Pixels,
    /// Decodes the page again, on the host.
    pub decode_again: &'w mut dyn FnMut(&mut Timeline) -> Result<Image>,
    /// Notes for the user about work that did not run as planned.
    pub notes: &'w mut Vec<String>,
    /// The messages about the page's file.
    pub messages: Messages<'w>,
}

impl Executor<'_> {
    /// Runs the plan of a page.
    ///
    /// # Errors
    /// Errors of the device, and options that do not fit the samples.
    pub fn run_page(&mut self, page: PageWork) -> Result<Executed<Pixels>> {
        let PageWork {
            plan,
            pixels,
            decode_again,
            notes,
            messages,
        } = page;
        let add_context = |error| messages.add_context(error);
        let was_on_gpu = pixels.are_on_gpu();
        let mut executed = self.run(&plan.steps, pixels, plan.step_form);
        if was_on_gpu && executed.as_ref().is_err_and(|error| error.is::<NoMemory>()) {
            // The GPU that decoded the page has no memory for the result. Decoded again on the host, the page can be processed in
            // bands. No input conversion is needed, because a GPU decodes only pages without one (`gpu_can_decode`).
            notes.push(
                "decoded again on the CPU: the GPU's memory does not hold the page and the result"
                    .into(),
            );
            let image = decode_again(&mut self.timeline)?;
            executed = self.run(&plan.steps, Pixels::Host(image), plan.step_form);
        }
        let Executed { result, summary } = executed.map_err(add_context)?;
        let finish = |mut pixels: Pixels| -> Result<Pixels> {
            if let Some(max_value) = plan.to_eight_bits {
                let scaled_ranges = plan.scaled_ranges(&summary);
                pixels = self.convert_to_eight_bits(pixels, scaled_ranges, max_value, notes)?;
            }
            if let Some(fit) = plan.fit {
                pixels = self.reduce(fit, pixels, notes)?;
            }
            self.download(pixels, plan.output_form)
        };
        let result = result.try_map(finish).map_err(add_context)?;
        Ok(Executed { result, summary })
    }

    /// Makes an image smaller.
    fn reduce(&mut self, fit: Fit, pixels: Pixels, notes: &mut Vec<String>) -> Result<Pixels> {
        let from = pixels.shape();
        let change = Change {
            name: "reduced",
            on_gpu: |image: &DeviceImage, job: &mut Job| fit.cuda(image, job),
            on_host: |image, timeline: &mut Timeline| {
                let bytes = (from.bytes() + fit.output(from).bytes()) as u64;
                timeline.host("fit", bytes, || Ok(fit.cpu(image)))
            },
        };
        self.apply(change, pixels, notes)
    }

    /// Converts 16-bit samples from 0 to `max_value` to 8 bits. If the samples were scaled from `scaled_ranges`, they are scaled
    /// to 8 bits instead (`ops::depth`).
    fn convert_to_eight_bits(
        &mut self,
        pixels: Pixels,
        scaled_ranges: &[(Number, Number)],
        max_value: u16,
        notes: &mut Vec<String>,
    ) -> Result<Pixels> {
        let bytes = 3 * pixels.shape().samples() as u64;
        // The kernel supports only the full range.
        let pixels = match max_value {
            u16::MAX => pixels,
            _ => Pixels::Host(self.to_host(pixels)?),
        };
        let change = Change {
            name: "converted to 8 bits",
            on_gpu: |image: &DeviceImage, job: &mut Job| {
                depth::convert_to_eight_on_gpu(image, scaled_ranges, job)
            },
            on_host: |image, timeline: &mut Timeline| {
                timeline.host("narrow", bytes, || {
                    depth::convert_to_eight(image, scaled_ranges, max_value)
                })
            },
        };
        self.apply(change, pixels, notes)
    }

    /// Applies a change on the device where the image is, or on the host if device memory cannot hold both the image and the
    /// result.
    fn apply<G, H>(
        &mut self,
        change: Change<G, H>,
        pixels: Pixels,
        notes: &mut Vec<String>,
    ) -> Result<Pixels>
    where
        G: FnOnce(&DeviceImage, &mut Job) -> Result<DeviceImage>,
        H: FnOnce(Image, &mut Timeline) -> Result<Image>,
    {
        if let (Pixels::Device(image), Some(gpu)) = (&pixels, self.devices.opened()) {
            let changed = gpu.job(&mut [], &mut self.timeline, |job| {
                (change.on_gpu)(image, job)
            });
            match changed {
                Err(error) if error.is::<NoMemory>() => notes.push(format!(
                    "{} on the CPU: the GPU's memory does not hold the image and the result",
                    change.name
                )),
                changed => {
                    let image = changed.map_err(|error| error.context(Failed))?;
                    return Ok(Pixels::Device(image));
                }
            }
        }
        let image = self.to_host(pixels)?;
        let changed = (change.on_host)(image, &mut self.timeline)?;
        Ok(Pixels::Host(changed))
    }
}

/// A change of an image after the last step.
struct Change<G, H> {
    /// What happened to the image, as a participle for messages.
    name: &'static str,
    on_gpu: G,
    on_host: H,
}
