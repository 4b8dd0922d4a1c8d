//! Convert: changes nothing, or takes one channel of each pixel. The output has the samples and the metadata of the input, in
//! another format, with another compression, or as `--depth`, `--fit` and `--auto-orient` change them.

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
    samples_from,
};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::image::metadata::Effect;
use crate::image::{Image, Samples, Shape};
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::num::NonZeroUsize;

/// Change the format, compression, depth or size; keep values and metadata
#[derive(clap::Args, Clone, Copy, Debug, Default, serde::Serialize)]
#[group(skip)]
pub struct Convert {
    /// Take one channel of each image, counted from 1: of RGB images 1 is red, 2 green, 3 blue, and 4 alpha
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<NonZeroUsize>,
}

impl Convert {
    /// The index of the channel that is taken of images with so many channels; `None` if all are kept.
    fn single_channel(&self, channels: usize) -> Option<usize> {
        let channel = self.channel.filter(|_| channels > 1)?;
        Some(channel.get() - 1)
    }
}

/// The reason why a GPU cannot take a channel.
const NO_KERNEL: &str = "the GPU does not support convert --channel";

impl Verb for Convert {
    const NAME: &'static str = "convert";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg convert scan.dcm scan.tif               another format, the same values\n\
\x20 gpuimg convert in/ out/ --format png           every image below in/\n\
\x20 gpuimg convert in.tif out.tif --tiff zstd      another compression\n\
\x20 gpuimg convert stack.tif page3.png --page 3    one page of a stack\n\
\x20 gpuimg convert in.png small.png --fit 1024     smaller, by averages\n\
\x20 gpuimg convert rgb.tif green.tif --channel 2   one channel";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    fn examples() -> Vec<Box<dyn Operation>> {
        vec![Box::new(Convert::default())]
    }
}

impl Operation for Convert {
    fn properties(&self) -> Properties {
        Properties {
            wide_samples: true,
            doubles_on_gpu: true,
            ..Properties::new(Convert::NAME, Access::Pointwise, Effect::Kept)
        }
    }

    fn output_channels(&self, input: usize) -> usize {
        match self.channel {
            Some(_) => 1,
            None => input,
        }
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        if let Some(channel) = self.channel {
            ensure!(
                channel.get() <= shape.channels,
                "it is {}, which has no channel {channel} (--axes C={channel} selects a channel of a stack)",
                shape.kind()
            );
        }
        Ok(())
    }

    fn gpu_obstacle(&self, shape: &Shape) -> Option<&'static str> {
        self.single_channel(shape.channels).map(|_| NO_KERNEL)
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
        let from = image.shape();
        let Some(channel) = self.single_channel(from.channels) else {
            return Ok(OpResult::Image(image.clone()));
        };
        let to = Shape {
            channels: 1,
            ..from
        };
        let samples = (0..to.samples()).map(|i| image.samples().at(from.channels * i + channel));
        let samples = samples_from(to.depth, samples);
        Ok(OpResult::Image(Image::new(to, samples)))
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let from = image.shape();
        let Some(channel) = self.single_channel(from.channels) else {
            return Ok(OpResult::Image(image));
        };
        let to = Shape {
            channels: 1,
            ..from
        };
        let mut samples = image.samples_mut().memory_for_result(&to)?;
        let bytes = (from.bytes() + to.bytes()) as u64;
        timeline.host("channel", bytes, || {
            let (channels, from) = (from.channels, image.samples());
            match (from, &mut samples) {
                (Samples::U8(from), Samples::U8(to)) => take(from, to, channels, channel),
                (Samples::U16(from), Samples::U16(to)) => take(from, to, channels, channel),
                (Samples::U32(from), Samples::U32(to)) => take(from, to, channels, channel),
                (Samples::U64(from), Samples::U64(to)) => take(from, to, channels, channel),
                _ => unreachable!("the result has the depth of the image"),
            }
        });
        Ok(OpResult::Image(Image::new(to, samples)))
    }

    fn cuda(&self, image: DeviceImage, _: &mut Job) -> Result<OpResult<DeviceImage>> {
        ensure!(
            self.single_channel(image.shape.channels).is_none(),
            NO_KERNEL
        );
        Ok(OpResult::Image(image))
    }
}

/// Pixels of a chunk of parallel work.
const CHUNK: usize = 64 << 10;

/// Takes the samples of one channel of pixels with so many channels.
fn take<T: Copy + Send + Sync>(from: &[T], to: &mut [T], channels: usize, channel: usize) {
    match channels {
        2 => take_of::<T, 2>(from, to, channel),
        3 => take_of::<T, 3>(from, to, channel),
        _ => take_of::<T, 4>(from, to, channel),
    }
}

fn take_of<T: Copy + Send + Sync, const CHANNELS: usize>(from: &[T], to: &mut [T], channel: usize) {
    let (pixels, _) = from.as_chunks::<CHANNELS>();
    let chunks = to.par_chunks_mut(CHUNK).zip(pixels.par_chunks(CHUNK));
    chunks.for_each(|(to, pixels)| {
        for (to, pixel) in to.iter_mut().zip(pixels) {
            *to = pixel[channel];
        }
    });
}
