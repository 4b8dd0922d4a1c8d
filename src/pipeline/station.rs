//! What an image passes through between decoder and encoder: it is brought upright, widened, carried
//! through the operation on the device that suits it, and narrowed.

use super::{Destination, Resources, name};
use crate::codec;
use crate::codec::png::{self, Compressed};
use crate::device::job::Job;
use crate::device::{Failed, Work};
use crate::image::{Depth, Image};
use crate::metadata::{Alpha, Effect, Metadata, Remarks, Story};
use crate::ops::orient::Orient;
use crate::ops::{self, DeviceImage, Op, Output, Product, depth};
use crate::stats::Timeline;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// What images pass through on their way, and what was noted of them.
pub struct Station<'a> {
    /// The file, for errors.
    pub input: &'a Path,
    /// The devices to choose from.
    pub resources: &'a Resources<'a>,
    /// Which device did it, and why.
    pub device: String,
    /// What that had to do.
    pub work: Work,
    /// Where the time went.
    pub timeline: Timeline,
}

impl<'a> Station<'a> {
    /// A station for the pages of `input`, which goes on with a `timeline`.
    pub fn new(input: &'a Path, resources: &'a Resources<'a>, timeline: Timeline) -> Station<'a> {
        Station {
            input,
            resources,
            device: String::new(),
            work: Work::default(),
            timeline,
        }
    }

    /// Runs the operation on the device that suits it.
    pub fn through(&mut self, op: &dyn Op, image: Image) -> Result<Output> {
        Ok(self.carry(op, image, false)?.0)
    }

    /// The same; where it is a GPU, and the result is to be a `png`, it comes back compressed.
    pub fn carry(
        &mut self,
        op: &dyn Op,
        image: Image,
        png: bool,
    ) -> Result<(Output, Option<Compressed>)> {
        let shape = image.shape();
        self.work = Work {
            compressed: if png { shape.bytes() as u64 } else { 0 },
            ..op.work(&shape)
        };
        let devices = self.resources.devices;
        let (gpu, device) = devices.choose(&self.work, &mut self.timeline)?;
        self.device = device;
        let timeline = &mut self.timeline;
        let result = match gpu {
            Some(gpu) => {
                let take = |image: &DeviceImage, job: &mut Job| match png {
                    true => png::compress(image, job).map(Some),
                    false => job.download(&image.samples).map(|()| None),
                };
                let found = ops::on_gpu_then(op, image, gpu, timeline, take);
                let found = found.map_err(|error| error.context(Failed));
                found.map(|found| {
                    if found.in_bands {
                        self.device += ", in bands: its memory does not hold the image at once";
                    }
                    (found.output, found.taken.flatten())
                })
            }
            None => op.cpu(image, timeline).map(|output| (output, None)),
        };
        result.with_context(|| format!("cannot {} {}", op.name(), name(self.input)))
    }

    /// The image upright, if that is asked for, and 8 bits as 16, so that the result has all 16.
    pub fn prepared(
        &mut self,
        image: Image,
        output: &Destination,
        metadata: &mut Metadata,
        story: Story,
        remarks: &mut Remarks,
    ) -> Result<Image> {
        let upright = metadata.orientation.and_then(Orient::upright);
        let image = match upright.filter(|_| output.auto_orient) {
            Some(orient) => {
                let from = image.shape();
                let Product::Image(image) = self.through(&orient, image)?.product else {
                    bail!("turning it gave no image");
                };
                let story = Story {
                    effect: orient.effect(),
                    from,
                    to: image.shape(),
                    ..story
                };
                codec::metadata::follow(metadata, &story, remarks);
                metadata.orientation = Some(1);
                image
            }
            None => image,
        };
        let from = image.shape();
        let stretches = story.effect == Effect::Values;
        Ok(match (output.depth, metadata.maxval) {
            (Some(Depth::Sixteen), maxval) if from.depth == Depth::Eight => {
                metadata.follow_depth(Depth::Eight, Depth::Sixteen);
                let bytes = 3 * from.bytes() as u64;
                // What is to be stretched keeps the steps by which its range is told.
                let most = maxval.filter(|_| !stretches).unwrap_or(Depth::Eight.full());
                (self.timeline).host("widen", bytes, || depth::widen(image, most))
            }
            // The samples are to have all bits; narrowed, alpha is brought there with the colours.
            (depth, Some(most)) if stretches && depth != Some(Depth::Eight) => {
                match metadata.alpha {
                    Alpha::Unspecified => image,
                    _ => depth::with_full_alpha(image, most),
                }
            }
            _ => image,
        })
    }

    /// 16 bits become 8 after the operation, which has stretched values from `ranges`.
    pub fn narrowed(
        &mut self,
        image: Image,
        ranges: &[(i32, i32)],
        output: &Destination,
        metadata: &mut Metadata,
    ) -> Image {
        match output.depth {
            Some(Depth::Eight) if image.shape().depth == Depth::Sixteen => {
                let most = metadata.maxval.unwrap_or(Depth::Sixteen.full());
                metadata.follow_depth(Depth::Sixteen, Depth::Eight);
                let bytes = 3 * image.shape().samples() as u64;
                (self.timeline).host("narrow", bytes, || depth::narrow(image, ranges, most))
            }
            _ => image,
        }
    }
}
