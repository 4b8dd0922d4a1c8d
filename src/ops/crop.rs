//! Crop: keeps a rectangle of the image; its samples do not change. As the first step of a job, it is the decoder's work where
//! the format allows it (`Plan::region`).

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::image::metadata::Effect;
use crate::image::{Image, Region, Samples, Shape};
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use rayon::prelude::*;

/// Take a rectangle of the image
#[derive(clap::Args, Clone, Copy, Debug, serde::Serialize)]
#[group(skip)]
pub struct Crop {
    /// The rectangle: its first column and row, counted from 0 at the upper left, and its width and height
    #[arg(value_name = "X,Y,WxH")]
    pub region: Region,
}

impl Verb for Crop {
    const NAME: &'static str = "crop";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg crop 100,50,640x480 in.tif out.tif      from column 100, row 50\n\
\x20 gpuimg crop 0,0,512x512 in/ out/               every image below in/";

    fn operation(self) -> Box<dyn Operation> {
        Box::new(self)
    }

    /// The first pixel, which every image has.
    fn examples() -> Vec<Box<dyn Operation>> {
        let region = Region {
            left: 0,
            top: 0,
            width: 1,
            height: 1,
        };
        vec![Box::new(Crop { region })]
    }
}

impl Operation for Crop {
    fn properties(&self) -> Properties {
        let Region { left, top, .. } = self.region;
        let (access, effect) = (Access::Region(self.region), Effect::Cropped { left, top });
        Properties {
            wide_samples: true,
            ..Properties::new(Crop::NAME, access, effect)
        }
    }

    fn work(&self, shape: &Shape) -> Work {
        let output = self.region.output(*shape).bytes();
        Work {
            touched: 2 * output as u64,
            transferred: (shape.bytes() + output) as u64,
            ..Work::default()
        }
    }

    fn check_shape(&self, shape: &Shape) -> Result<()> {
        ensure!(
            self.region.is_in(shape),
            "the region {} reaches beyond the image, which has {}×{} pixels",
            self.region,
            shape.width,
            shape.height
        );
        Ok(())
    }

    fn bind<'a>(&'a self, _: SampleTypes, _: &'a Statistics) -> Result<Box<dyn Bound + 'a>> {
        Ok(Box::new(*self))
    }
}

impl Bound for Crop {
    fn naive(&self, image: &Image) -> Result<OpResult> {
        let (from, region) = (image.shape(), self.region);
        let pixel = from.pixel_bytes();
        let mut bytes = Vec::new();
        for y in region.top..region.top + region.height {
            for x in region.left..region.left + region.width {
                let start = (y * from.width + x) * pixel;
                bytes.extend_from_slice(&image.samples().as_bytes()[start..start + pixel]);
            }
        }
        let to = region.output(from);
        let mut samples = Samples::zeroed(&to)?;
        samples.as_bytes_mut().copy_from_slice(&bytes);
        Ok(OpResult::Image(Image::new(to, samples)))
    }

    fn cpu(&self, mut image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let (from, to) = (image.shape(), self.region.output(image.shape()));
        if from == to {
            // The region is the whole image, or the decoder gave the region alone.
            return Ok(OpResult::Image(image));
        }
        let columns = self.region.columns(&from);
        let mut samples = image.samples_mut().memory_for_result(&to)?;
        timeline.host("crop", 2 * to.bytes() as u64, || {
            let rows = image
                .samples()
                .as_bytes()
                .par_chunks(from.row() * from.depth.bytes());
            let rows = rows.skip(self.region.top);
            let new = samples.as_bytes_mut().par_chunks_mut(columns.len());
            new.zip(rows)
                .for_each(|(new, row)| new.copy_from_slice(&row[columns.clone()]));
        });
        Ok(OpResult::Image(Image::new(to, samples)))
    }

    fn cuda(&self, image: DeviceImage, job: &mut Job) -> Result<OpResult<DeviceImage>> {
        let (from, to) = (image.shape, self.region.output(image.shape));
        if from == to {
            return Ok(OpResult::Image(image));
        }
        let pitch = from.row() * from.depth.bytes();
        let columns = self.region.columns(&from);
        let samples =
            job.copy_region(&image.samples, pitch, self.region.top, columns, to.height)?;
        Ok(OpResult::Image(DeviceImage { shape: to, samples }))
    }
}
