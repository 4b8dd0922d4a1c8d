//! Writes images that were computed from several others.

use super::destination::Destination;
use super::errors::cannot_write;
use crate::formats::{self, Format, PageSurvey, Writer};
use crate::image::Image;
use crate::image::metadata::{Diagnostics, Metadata, Transform};
use crate::os::Target;
use anyhow::{Context, Result};

/// An image that was computed from several others, with metadata of one of them.
#[derive(Debug)]
pub struct CombinedImage {
    /// The image.
    pub image: Image,
    /// The metadata of one input, as far as they are true of all inputs.
    pub metadata: Metadata,
    /// The metadata of that input that were not kept.
    pub diagnostics: Diagnostics,
    /// Bytes of these metadata in their file.
    pub metadata_bytes: u64,
    /// The change from that input to this image.
    pub transform: Transform,
    /// The largest value that the samples can have, if it is not that of their depth.
    pub maxval: Option<u16>,
    /// The format of the file that the metadata are from.
    pub format: &'static Format,
}

impl CombinedImage {
    /// Writes one or more images as the pages of `target`, which `destination` has created, and gives the file its name.
    ///
    /// # Errors
    /// A file that cannot be written, and an image that the format cannot hold.
    pub fn write(
        images: Vec<CombinedImage>,
        destination: &Destination,
        target: Target,
    ) -> Result<Diagnostics> {
        let mut diagnostics = Diagnostics::default();
        let write = || {
            let first = images.first().context("there is no image")?;
            let format = destination.format.unwrap_or(first.format);
            let pages = images.iter().map(|combined| PageSurvey {
                shape: combined.image.shape(),
                metadata_bytes: combined.metadata_bytes,
            });
            let pages: Vec<_> = pages.collect();
            let mut writer = Writer::new(format, &destination.options, &target, &pages)?;
            for combined in images {
                let CombinedImage {
                    image,
                    mut metadata,
                    transform,
                    ..
                } = combined;
                diagnostics.warnings.extend(combined.diagnostics.warnings);
                formats::metadata::update(&mut metadata, &transform, &mut diagnostics);
                metadata.maxval = combined.maxval;
                metadata.check_maxval(image.samples());
                writer.page(image, metadata, transform.effect, &mut diagnostics)?;
            }
            Ok::<u64, anyhow::Error>(writer.length())
        };
        let cannot_write = || cannot_write(&destination.path);
        let length = write().with_context(cannot_write)?;
        target.commit(length).with_context(cannot_write)?;
        Ok(diagnostics)
    }
}
