//! Projections that need all images at once, such as the median. If the images do not fit in memory, the projection is
//! computed for one range of samples at a time, and every input is read once for each range.

use super::set::{Read, Set};
use super::{Combined, Facts, ImageType, Projecting};
use crate::batch::progress::Progress;
use crate::batch::tally::Screen;
use crate::engine::Resources;
use crate::gpu::{Choice, Devices, Failed, Work};
use crate::image::{Image, Samples, Shape};
use crate::ops::project::{median_on_gpu, project_columns};
use crate::ops::wide::make_finite;
use crate::os::count::{plural, size};
use crate::timing::{Report as Times, Timeline};
use anyhow::{Context, Result, ensure};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

impl Projecting<'_> {
    /// The projection of all images, for as many samples at a time as fit in memory.
    pub(super) fn project_columns(
        &self,
        set: &Set,
        progress: &mut Progress,
        times: &mut Times,
        failed: &mut usize,
    ) -> Result<Option<(Combined, Facts)>> {
        let ImageType { shape, signed, .. } = set.first.image_type;
        let obstacle = self.op.gpu_obstacle(shape.depth);
        if let Some(obstacle) = obstacle {
            ensure!(
                !matches!(self.common.device.choice, Choice::Gpu(_)),
                "{obstacle}: remove --device gpu"
            );
        }
        let (samples, memory) = (shape.samples(), self.options.memory());
        let each = (set.pages() * shape.depth.bytes()) as u64;
        // The other half is for the images that are being decoded.
        let at_once = usize::try_from(memory / 2 / each)?.clamp(1, samples);
        let ranges: Vec<Range<usize>> = (0..samples)
            .step_by(at_once)
            .map(|start| start..(start + at_once).min(samples))
            .collect();
        if ranges.len() > 1 {
            progress.mention(&format!(
                "gpuimg: {1} do not fit in {0} of memory: they are read {2} times",
                size(memory / 2),
                plural(set.pages(), "image"),
                ranges.len()
            ));
        }
        let workers = self.workers(Choice::Cpu, memory / 2);
        let devices = match obstacle {
            Some(_) => Devices::new(Choice::Cpu),
            None => Devices::new(self.common.device.choice),
        };
        let mut out = Samples::any(&self.op.output(shape))?;
        let mut first: Option<Read> = None;
        for (pass, range) in ranges.into_iter().enumerate() {
            let stack = Mutex::new(Vec::new());
            let keep = |index: usize, mut image: Image, _: &Resources, _: &mut Timeline| {
                if let Samples::U32(samples) = image.samples_mut() {
                    make_finite(samples, self.op.nan)?;
                }
                let samples = sample_range(image, &shape, &range)?;
                let mut stack = stack.lock().unwrap_or_else(PoisonError::into_inner);
                stack.push((index, samples));
                Ok(())
            };
            let read = set.read(&workers, &mut *progress, pass == 0, times, &keep)?;
            let mut stack = stack.into_inner().unwrap_or_else(PoisonError::into_inner);
            stack.sort_unstable_by_key(|(index, _)| *index);
            let stack: Vec<Samples> = stack.into_iter().map(|(_, samples)| samples).collect();
            match &first {
                None => {
                    *failed += read.failed.len();
                    first = Some(read);
                }
                Some(first) => set.changed(first, &read).map_or(Ok(()), Err)?,
            }
            if stack.is_empty() {
                return Ok(None);
            }
            let mut timeline = Timeline::default();
            let bytes = (stack.len() * range.len() * shape.depth.bytes()) as u64;
            let work = Work {
                touched: 8 * bytes,
                transferred: bytes,
                ..Work::default()
            };
            let (gpu, why) = devices.choose(&work, &mut timeline)?;
            let on_cores = |timeline: &mut Timeline| {
                project_columns(self.op, shape, signed, range.start, &stack, timeline)
            };
            let projected = match gpu {
                Some(gpu) => match median_on_gpu(&stack, gpu, &mut timeline) {
                    Err(error) if devices.fall_back_to_cpu() => {
                        self.report_fallback(progress, &error);
                        on_cores(&mut timeline)?
                    }
                    result => {
                        result.map_err(|error| devices.unusable_if_lost(error.context(Failed)))?
                    }
                },
                None => on_cores(&mut timeline).with_context(|| {
                    let images = plural(stack.len(), "image");
                    format!("cannot project {images} ({})", self.op.how.name())
                })?,
            };
            let start = range.start * projected.sample_bytes();
            let projected = projected.as_bytes();
            out.as_bytes_mut()[start..start + projected.len()].copy_from_slice(projected);
            times.totals.add(&timeline);
            if pass == 0 {
                self.report_device(progress, obstacle.unwrap_or(&why));
            }
        }
        let image = Image::new(self.op.output(shape), out);
        let facts = first.and_then(|read| read.facts);
        Ok(facts.map(|facts| (Combined::Image(image), facts)))
    }
}

/// A range of an image's samples.
fn sample_range(image: Image, shape: &Shape, range: &Range<usize>) -> Result<Samples> {
    if range.len() == shape.samples() {
        return Ok(image.into_samples());
    }
    let row = Shape {
        width: range.len(),
        height: 1,
        channels: 1,
        ..*shape
    };
    let mut samples = Samples::any(&row)?;
    let bytes = shape.depth.bytes();
    let from = &image.samples().as_bytes()[range.start * bytes..range.end * bytes];
    samples.as_bytes_mut().copy_from_slice(from);
    Ok(samples)
}
