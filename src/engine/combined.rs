//! Writes images that were computed from several others.

use super::destination::Destination;
use super::done::PageResult;
use super::errors::cannot_write;
use super::memory::MemoryJob;
use super::{Done, Resources};
use crate::formats::fits::exposure::Exposures;
use crate::formats::memory::Page;
use crate::formats::{self, Format, PageSurvey, Reading, Writer};
use crate::gpu::Devices;
use crate::image::metadata::{Diagnostics, Effect, Metadata, Transform};
use crate::image::{Image, Shape};
use crate::ops::convert::Convert;
use crate::ops::project::Projection;
use crate::ops::{Operation, chain};
use crate::os::Target;
use anyhow::{Context, Result};

/// An image that was computed from several others, with metadata of one of them.
#[derive(Debug)]
pub struct CombinedImage {
    /// The image.
    pub image: Image,
    /// The metadata of one input, without those that are not true of all inputs.
    pub metadata: Metadata,
    /// The metadata of that input that were not kept.
    pub diagnostics: Diagnostics,
    /// Bytes of these metadata in their file.
    pub metadata_bytes: u64,
    /// The change from that input to this image.
    pub transform: Transform,
    /// The largest value that the samples can have, if it is smaller than their depth allows.
    pub maxval: Option<u16>,
    /// The format of the file that the metadata are from.
    pub format: &'static Format,
}

/// The page whose metadata a combined image gets.
#[derive(Clone, Debug)]
pub struct FirstPage {
    /// Its shape.
    pub shape: Shape,
    /// Its metadata.
    pub metadata: Metadata,
    /// Bytes of its metadata in the file.
    pub bytes: u64,
    /// The format of its file.
    pub format: &'static Format,
}

/// The metadata that projected pages share.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The largest value that the samples can have, if the metadata of every page state one.
    pub maxval: Option<u16>,
    /// The exposure times.
    pub exposures: Exposures,
}

impl Facts {
    /// The metadata of one page. `is_only_page` says whether its file has no other pages.
    pub fn new(metadata: &Metadata, is_only_page: bool) -> Facts {
        Facts {
            maxval: metadata.maxval,
            exposures: Exposures::new(metadata, is_only_page),
        }
    }

    /// The metadata that two sets of pages share.
    pub fn join(&self, other: &Facts) -> Facts {
        Facts {
            maxval: self.maxval.zip(other.maxval).map(|(a, b)| a.max(b)),
            exposures: self.exposures.join(&other.exposures),
        }
    }
}

impl CombinedImage {
    /// The projection of `pages` images. It keeps the metadata of the first one that are true of all.
    pub fn projection(
        how: Projection,
        image: Image,
        first: FirstPage,
        facts: &Facts,
        pages: usize,
    ) -> CombinedImage {
        let is_sum = how == Projection::Sum;
        let is_wide = image.shape().depth.is_wide();
        let mut metadata = first.metadata;
        let mut diagnostics = Diagnostics::default();
        (facts.exposures).update_records(&mut metadata, is_sum, &mut diagnostics);
        CombinedImage {
            transform: Transform {
                effect: Effect::Arithmetic,
                from: first.shape,
                to: image.shape(),
                pages: 1,
                whole: pages == 1,
            },
            image,
            metadata,
            diagnostics,
            metadata_bytes: first.bytes,
            maxval: facts.maxval.filter(|_| !is_sum && !is_wide),
            format: first.format,
        }
    }

    /// The image, and the metadata that are true of it. `diagnostics` names the metadata that are removed.
    pub fn with_metadata(self, diagnostics: &mut Diagnostics) -> (Image, Metadata) {
        let CombinedImage {
            image,
            mut metadata,
            transform,
            ..
        } = self;
        diagnostics.warnings.extend(self.diagnostics.warnings);
        formats::metadata::update(&mut metadata, &transform, diagnostics);
        metadata.maxval = self.maxval;
        metadata.check_maxval(image.samples());
        (image, metadata)
    }

    /// The image as a page, with the metadata that are true of it.
    fn page(self, diagnostics: &mut Diagnostics) -> Page {
        let (metadata_bytes, described) = (self.metadata_bytes, self.transform.pages);
        let (image, metadata) = self.with_metadata(diagnostics);
        Page {
            image,
            metadata,
            metadata_bytes,
            described,
        }
    }

    /// The shape in which `destination` stores the result of `ops` for an image of this shape.
    ///
    /// # Errors
    /// An image that the operations do not support, and samples that cannot be converted to the depth or the size that is asked for.
    pub fn written_shape(
        shape: Shape,
        ops: &[&dyn Operation],
        destination: &Destination,
    ) -> Result<Shape> {
        let convert = Convert::default();
        let name = |verb: &str| match ops {
            [] => "projection".into(),
            _ => verb.to_string(),
        };
        let depth_and_orientation = (destination.depth, false);
        chain::check(
            or_convert(ops, &[&convert]),
            shape,
            depth_and_orientation,
            name,
        )?;
        let result = chain::result(ops, shape);
        destination.check_fit(&result, result.depth)?;
        Ok(destination.largest_output(result))
    }

    /// Writes the results of `ops` for one or more images as the pages of `target`, which `destination` has created, and gives the
    /// file its name. Returns the metadata of the images that were not kept, and the outcome of the operations.
    ///
    /// # Errors
    /// A file that cannot be written, an image that the format cannot hold, and those of the operations.
    pub fn write(
        images: Vec<CombinedImage>,
        ops: &[&dyn Operation],
        destination: &Destination,
        target: Target,
        devices: &Devices,
    ) -> Result<(Diagnostics, Done)> {
        let first = images.first().context("there is no image")?;
        if ops.is_empty() && destination.depth.is_none() && destination.fit.is_none() {
            let pages = images.iter().map(|combined| {
                let shape = combined.image.shape();
                PageResult {
                    signed: combined.metadata.signed && !shape.depth.is_float(),
                    ..PageResult::unscaled(shape)
                }
            });
            let done = Done::of_pages(first.image.shape(), pages);
            return Ok((write_plain(images, destination, target)?, done));
        }
        let mut diagnostics = Diagnostics::default();
        let format = destination.format_for(first.format);
        let destination = Destination {
            format: Some(format.with_context(|| cannot_write(&destination.path))?),
            ..destination.clone()
        };
        let pages = images.into_iter();
        let pages: Vec<Page> = pages.map(|image| image.page(&mut diagnostics)).collect();
        let resources = Resources::new(devices, Reading::default());
        let convert = Convert::default();
        let convert: [&dyn Operation; 1] = [&convert];
        let job = MemoryJob {
            ops: or_convert(ops, &convert),
            name: &destination.path,
            destination: Some(&destination),
            resources: &resources,
        };
        let done = job.to_target(pages, target)?;
        Ok((diagnostics, done))
    }
}

/// The operations; `convert` if there are none.
fn or_convert<'a>(
    ops: &'a [&'a dyn Operation],
    convert: &'a [&'a dyn Operation],
) -> &'a [&'a dyn Operation] {
    if ops.is_empty() { convert } else { ops }
}

/// Writes images as they are.
fn write_plain(
    images: Vec<CombinedImage>,
    destination: &Destination,
    target: Target,
) -> Result<Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let write = || {
        let first = images.first().context("there is no image")?;
        let format = destination.format_for(first.format)?;
        let pages = images.iter().map(|combined| PageSurvey {
            shape: combined.image.shape(),
            metadata_bytes: combined.metadata_bytes,
        });
        let pages: Vec<_> = pages.collect();
        format.check_path(&destination.path, &pages[0].shape)?;
        let mut writer = Writer::new(format, &destination.options, &target, &pages)?;
        for combined in images {
            let effect = combined.transform.effect;
            let Page {
                image, metadata, ..
            } = combined.page(&mut diagnostics);
            writer.page(image, metadata, effect, &mut diagnostics)?;
        }
        Ok::<u64, anyhow::Error>(writer.length())
    };
    let cannot_write = || cannot_write(&destination.path);
    let length = write().with_context(cannot_write)?;
    target.commit(length).with_context(cannot_write)?;
    Ok(diagnostics)
}
