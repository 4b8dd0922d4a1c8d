//! Histogram: how often each value occurs in each channel, as the result of a subcommand.

use super::counts::Counts;
use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::image::metadata::Effect;
use crate::image::{Image, Shape};
use crate::timing::Timeline;
use anyhow::Result;

/// Count how often each value occurs, exactly, in each channel
#[derive(clap::Args, Clone, Copy, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Histogram;

impl Verb for Histogram {
    const NAME: &'static str = "histogram";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg histogram in/ -o all.hist                  count a whole set\n\
\x20 gpuimg histogram in/ --shard 1/3 -o parts/1.hist  the first of three machines\n\
\x20 gpuimg normalize in/ out/ --range-from all.hist   use its range";
    const MAKES_IMAGES: bool = false;

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        vec![Box::new(Histogram)]
    }
}

impl Operation for Histogram {
    fn properties(&self) -> Properties {
        Properties::new(Histogram::NAME, Access::Reduction, Effect::Numbers)
    }

    fn work(&self, shape: &Shape) -> Work {
        Counts::work(shape)
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Histogram {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        Ok(OpResult::Counts(Counts::naive(image)))
    }

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        Ok(OpResult::Counts(Counts::cpu(&image, timeline)))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        Ok(OpResult::Counts(Counts::on_gpu(&image, job)?))
    }
}
