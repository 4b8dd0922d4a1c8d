//! Writes images that were made of several others.

use super::destination::Destination;
use super::errors::cannot_write;
use crate::formats::{self, Format, PageSurvey, Writer};
use crate::image::Image;
use crate::image::metadata::{Diagnostics, Metadata, Transform};
use crate::os::Target;
use anyhow::{Context, Result};

/// An image that was made of several others, and the metadata that it has from one of them.
#[derive(Debug)]
pub struct CombinedImage {
    /// The image.
    pub image: Image,
    /// The metadata of the image that gives its own, as far as they are true of all.
    pub metadata: Metadata,
    /// What these metadata do not keep of what was read.
    pub diagnostics: Diagnostics,
    /// Bytes of these metadata in their file.
    pub bytes: u64,
    /// What became of that image.
    pub transform: Transform,
    /// The largest value that the new samples can have, if it is not that of their depth.
    pub maxval: Option<u16>,
    /// The format of the file that the metadata are from.
    pub format: &'static Format,
}

impl CombinedImage {
    /// Writes the images, one or more, as the pages of `target`, which `to` has prepared, and gives the
    /// file its name.
    ///
    /// # Errors
    /// A file that cannot be written, and an image that the format cannot hold.
    pub fn write(all: Vec<CombinedImage>, to: &Destination, target: Target) -> Result<Diagnostics> {
        let mut diagnostics = Diagnostics::default();
        let write = || {
            let first = all.first().context("there is no image")?;
            let format = to.format.unwrap_or(first.format);
            let pages = all.iter().map(|made| PageSurvey {
                shape: made.image.shape(),
                metadata_bytes: made.bytes,
            });
            let pages: Vec<_> = pages.collect();
            let mut writer = Writer::new(format, &to.options, &target, &pages)?;
            for made in all {
                let CombinedImage {
                    image,
                    mut metadata,
                    transform,
                    ..
                } = made;
                diagnostics.warnings.extend(made.diagnostics.warnings);
                formats::metadata::update(&mut metadata, &transform, &mut diagnostics);
                metadata.maxval = made.maxval;
                metadata.check_maxval(image.samples());
                writer.page(image, metadata, transform.effect, &mut diagnostics)?;
            }
            Ok::<u64, anyhow::Error>(writer.length())
        };
        let length = write().with_context(|| cannot_write(&to.path))?;
        let committed = target.commit(length);
        committed.with_context(|| cannot_write(&to.path))?;
        Ok(diagnostics)
    }
}
