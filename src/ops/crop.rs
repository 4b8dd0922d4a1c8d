//! Crop: keeps a rectangle of the image; its samples do not change.

use super::{
    Access, Bound, DeviceImage, OpResult, Operation, Properties, SampleTypes, Statistics, Verb,
};
use crate::gpu::Work;
use crate::gpu::job::Job;
use crate::image::metadata::Effect;
use crate::image::{Image, Samples, Shape};
use crate::timing::Timeline;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;

/// Take a rectangle of the image
#[derive(clap::Args, Clone, Copy, Debug, serde::Serialize)]
#[group(skip)]
pub struct Crop {
    /// The rectangle: its first column and row, counted from 0 at the upper left, and its width and height
    #[arg(value_name = "X,Y,WxH")]
    pub region: Region,
}

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Region {
    /// Its first column, counted from 0.
    pub left: usize,
    /// Its first row, counted from 0.
    pub top: usize,
    /// Its columns, one or more.
    pub width: usize,
    /// Its rows, one or more.
    pub height: usize,
}

impl FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> Result<Region, String> {
        let region = || {
            let (left, rest) = text.split_once(',')?;
            let (top, size) = rest.split_once(',')?;
            let (width, height) = size.split_once(['x', 'X', '×'])?;
            let number = |text: &str| text.trim().parse::<usize>().ok();
            Some(Region {
                left: number(left)?,
                top: number(top)?,
                width: number(width).filter(|&width| width > 0)?,
                height: number(height).filter(|&height| height > 0)?,
            })
        };
        region().ok_or_else(|| "expected X,Y,WxH, as 100,50,640x480".into())
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Region {
            left,
            top,
            width,
            height,
        } = self;
        write!(f, "{left},{top},{width}x{height}")
    }
}

impl Region {
    /// Whether it lies in an image of this shape.
    fn is_in(&self, shape: &Shape) -> bool {
        let right = self.left.checked_add(self.width);
        let bottom = self.top.checked_add(self.height);
        right.is_some_and(|right| right <= shape.width)
            && bottom.is_some_and(|bottom| bottom <= shape.height)
    }

    /// The shape of the result for an image of this shape.
    pub fn output(&self, shape: Shape) -> Shape {
        Shape {
            width: self.width,
            height: self.height,
            ..shape
        }
    }

    /// The bytes of a row of the result among those of its row in an image of this shape.
    fn columns(&self, shape: &Shape) -> std::ops::Range<usize> {
        let pixel = shape.pixel_bytes();
        self.left * pixel..(self.left + self.width) * pixel
    }
}

impl Verb for Crop {
    const NAME: &'static str = "crop";
    const EXAMPLES: &'static str = "Examples:\n\
\x20 gpuimg crop 100,50,640x480 in.tif out.tif      640 columns from 100 on, 480 rows from 50 on\n\
\x20 gpuimg crop 0,0,512x512 in/ out/               the upper left of every image below in/";

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

    fn cpu(&self, image: Image, timeline: &mut Timeline) -> Result<OpResult> {
        let (from, to) = (image.shape(), self.region.output(image.shape()));
        let columns = self.region.columns(&from);
        let mut samples = Samples::any(&to)?;
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
        let pitch = from.row() * from.depth.bytes();
        let columns = self.region.columns(&from);
        let samples =
            job.copy_region(&image.samples, pitch, self.region.top, columns, to.height)?;
        Ok(OpResult::Image(DeviceImage { shape: to, samples }))
    }
}
