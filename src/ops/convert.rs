//! Convert: changes nothing. The output has the samples and the metadata of the input, in another format, with another
//! compression, or as `--depth`, `--fit` and `--auto-orient` change them.

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::image::metadata::Effect;
use crate::image::{Image, Shape};
use crate::timing::Timeline;
use anyhow::Result;

/// Change the format, compression, depth or size; keep values and metadata
#[derive(clap::Args, Clone, Copy, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Convert {}

impl Verb for Convert {
    const NAME: &'static str = "convert";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg convert scan.dcm scan.tif               another format, the same values\n\
\x20 gpuimg convert in/ out/ --format png           every image below in/\n\
\x20 gpuimg convert in.tif out.tif --tiff zstd      another compression\n\
\x20 gpuimg convert stack.tif page3.png --page 3    one page of a stack\n\
\x20 gpuimg convert in.png small.png --fit 1024     smaller, by averages";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        vec![Box::new(Convert {})]
    }
}

impl Operation for Convert {
    fn properties(&self) -> Properties {
        Properties {
            wide_samples: true,
            ..Properties::new(Convert::NAME, Access::Pointwise, Effect::Kept)
        }
    }

    fn work(&self, shape: &Shape) -> Work {
        Work {
            transferred: 2 * shape.bytes() as u64,
            ..Work::default()
        }
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Convert {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        Ok(OpResult::Image(image.clone()))
    }

    fn cpu(&self, image: Image, _: &mut Timeline) -> Result<OpResult> {
        Ok(OpResult::Image(image))
    }

    fn cuda(&self, image: DeviceImage, _: &mut Job) -> Result<OpResult<DeviceImage>> {
        Ok(OpResult::Image(image))
    }
}
