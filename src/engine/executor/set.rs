//! Runs the plans of a set of pages, from their decoded samples to the samples or the compressed data that the encoder takes.

use super::{Executor, Form, Pixels, Task};
use crate::engine::errors::Messages;
use crate::gpu::job::Job;
use crate::gpu::{Failed, NoMemory};
use crate::image::Image;
use crate::image::metadata::Effect;
use crate::image::number::Number;
use crate::ops::fit::Fit;
use crate::ops::{DeviceImage, Executed, depth};
use crate::timing::Timeline;
use anyhow::Result;

/// A page that is ready to run: what its plan says, and its samples.
pub struct PageWork<'w, 'p> {
    /// The steps in order.
    pub steps: &'w [Task<'p>],
    /// The form in which a GPU returns the result of the last step.
    pub step_form: Form,
    /// The largest of the 16-bit samples that become 8 bits after the last step, if they do.
    pub to_eight_bits: Option<u16>,
    /// The reduction of the result.
    pub fit: Option<Fit>,
    /// The form in which the encoder takes the result.
    pub output_form: Form,
    /// The samples that the first step is given.
    pub pixels: Pixels,
    /// Decodes the page again, on the host.
    pub decode_again: &'w mut dyn FnMut(&mut Timeline) -> Result<Image>,
    /// The messages about the page's file.
    pub messages: Messages<'w>,
}

impl Executor<'_> {
    /// Runs the plans of a set of pages. The pages run one after the other: each takes the device that its plan names, and
    /// the error of one leaves the others alone.
    pub fn run_set(&mut self, set: Vec<PageWork>) -> Vec<Result<Executed<Pixels>>> {
        set.into_iter().map(|page| self.run_page(page)).collect()
    }

    fn run_page(&mut self, page: PageWork) -> Result<Executed<Pixels>> {
        let (to_eight_bits, fit, output_form) = (page.to_eight_bits, page.fit, page.output_form);
        let (messages, last) = (page.messages, page.steps.last());
        let scales = last.is_some_and(|step| step.op.properties().effect == Effect::Values);
        let Executed { result, summary } = self.run_steps(page)?;
        let finish = |pixels: Pixels| -> Result<Pixels> {
            let mut pixels = pixels;
            if let Some(most) = to_eight_bits {
                // The ranges of an operation before the last are not ranges of these samples.
                let ranges = if scales { &summary.ranges[..] } else { &[] };
                pixels = self.to_eight_bits(pixels, ranges, most)?;
            }
            if let Some(fit) = fit {
                pixels = self.reduce(fit, pixels)?;
            }
            self.download(pixels, output_form)
        };
        let result = result.try_map(finish);
        Ok(Executed {
            result: result.map_err(|error| messages.add_context(error))?,
            summary,
        })
    }

    /// Runs the steps. Where device memory holds the page that a GPU decoded, but not a result beside it, the host decodes
    /// the page again, and the steps run in bands.
    fn run_steps(&mut self, page: PageWork) -> Result<Executed<Pixels>> {
        let was_on_gpu = page.pixels.are_on_gpu();
        let mut executed = self.run(page.steps, page.pixels, page.step_form);
        if was_on_gpu && executed.as_ref().is_err_and(|error| error.is::<NoMemory>()) {
            let image = (page.decode_again)(&mut self.timeline)?;
            executed = self.run(page.steps, Pixels::Host(image), page.step_form);
        }
        executed.map_err(|error| page.messages.add_context(error))
    }

    /// Makes an image smaller, in the memory where its pixels are.
    fn reduce(&mut self, fit: Fit, pixels: Pixels) -> Result<Pixels> {
        let from = pixels.shape();
        self.change_in_place(
            pixels,
            |image, job| fit.cuda(image, job),
            |image, timeline| {
                let bytes = (from.bytes() + fit.output(from).bytes()) as u64;
                timeline.host("fit", bytes, || fit.cpu(image))
            },
        )
    }

    /// Converts 16-bit samples of 0 to `most` to 8 bits. Samples that were scaled from `ranges` are scaled to 8 bits instead
    /// (`ops::depth`).
    fn to_eight_bits(
        &mut self,
        pixels: Pixels,
        ranges: &[(Number, Number)],
        most: u16,
    ) -> Result<Pixels> {
        let bytes = 3 * pixels.shape().samples() as u64;
        let pixels = match most {
            u16::MAX => pixels,
            _ => Pixels::Host(self.to_host(pixels)?),
        };
        self.change_in_place(
            pixels,
            |image, job| depth::convert_to_eight_on_gpu(image, ranges, job),
            |image, timeline| timeline.host("narrow", bytes, || depth::convert_to_eight(image, ranges, most)),
        )
    }

    /// Changes an image in the memory where it is; on the host where device memory does not hold the result beside it.
    fn change_in_place(
        &mut self,
        pixels: Pixels,
        on_gpu: impl FnOnce(&DeviceImage, &mut Job) -> Result<DeviceImage>,
        on_host: impl FnOnce(Image, &mut Timeline) -> Image,
    ) -> Result<Pixels> {
        if let (Pixels::Device(image), Some(gpu)) = (&pixels, self.devices.opened()) {
            let changed = gpu.job(&mut [], &mut self.timeline, |job| on_gpu(image, job));
            match changed {
                Err(error) if error.is::<NoMemory>() => {}
                changed => {
                    let image = changed.map_err(|error| error.context(Failed))?;
                    return Ok(Pixels::Device(image));
                }
            }
        }
        let image = self.to_host(pixels)?;
        Ok(Pixels::Host(on_host(image, &mut self.timeline)))
    }
}
