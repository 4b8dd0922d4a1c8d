//! Writes a file of any format, page by page.

use super::deflated::Deflated;
use super::format::{self, Bands, Encoder, Format, PageSurvey};
use super::memory;
use super::{Options, metadata, tiff};
use crate::image::metadata::{Diagnostics, Effect, Metadata};
use crate::image::{Image, Shape};
use crate::ops::DeviceImage;
use crate::os::Target;
use anyhow::Result;
use std::borrow::Cow;

/// A file of any format that pages are written to.
pub struct Writer<'a> {
    format: &'static Format,
    encoder: Box<dyn Encoder + 'a>,
    /// How many pages the file will have.
    pages: usize,
    /// Whether the first page, whose metadata describe all, has begun.
    has_begun: bool,
}

impl<'a> Writer<'a> {
    /// Creates a file of a format for these pages.
    ///
    /// # Errors
    /// A format that is only read, more pages than a file of the format holds, and a depth that it
    /// does not have.
    pub fn new(
        format: &'static Format,
        options: &Options,
        target: &'a Target,
        pages: &[PageSurvey],
    ) -> Result<Writer<'a>> {
        let shapes: Vec<Shape> = pages.iter().map(|page| page.shape).collect();
        format::check_output(format, &shapes)?;
        let encoder = format.create_encoder(target, options, pages)?;
        Ok(Writer {
            format,
            encoder,
            pages: pages.len(),
            has_begun: false,
        })
    }

    /// Keeps the pages in memory, as `encoder` does.
    pub fn in_memory(encoder: impl Encoder + 'a) -> Writer<'a> {
        Writer {
            format: &memory::FORMAT,
            encoder: Box::new(encoder),
            pages: 0,
            has_begun: false,
        }
    }

    /// The file's format.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// Whether a GPU can compress the output.
    pub fn is_for_gpu(&self) -> bool {
        self.encoder.takes_deflated()
    }

    /// Adds a page after an operation with this effect.
    ///
    /// # Errors
    /// A file that cannot be written, and an image that the format cannot hold.
    pub fn page(
        &mut self,
        image: Image,
        mut metadata: Metadata,
        effect: Effect,
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        self.convert(&image.shape(), &mut metadata, effect, diagnostics)?;
        self.encoder.page(Cow::Owned(image), &metadata)
    }

    /// How a page of this shape can come in bands; `None`: only as a whole.
    pub fn bands(&self, shape: &Shape) -> Option<Bands> {
        self.encoder.bands(shape)
    }

    /// As `page`, for a page of this shape whose rows come in bands. `trial` has the rows that `bands` asks for.
    ///
    /// # Errors
    /// As `page`'s.
    pub fn begin(
        &mut self,
        shape: &Shape,
        mut metadata: Metadata,
        effect: Effect,
        trial: &[Image],
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        self.convert(shape, &mut metadata, effect, diagnostics)?;
        self.encoder.begin(shape, &metadata, trial)
    }

    /// Whether the next page is not encoded: an earlier run has finished it, or another task writes it.
    pub fn skips_page(&self) -> bool {
        self.encoder.skips_page()
    }

    /// Skips the next page, which would be of this shape after an operation with this effect.
    ///
    /// # Errors
    /// As `page`'s.
    pub fn skip(
        &mut self,
        shape: &Shape,
        mut metadata: Metadata,
        effect: Effect,
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        self.convert(shape, &mut metadata, effect, diagnostics)?;
        self.encoder.skip(shape, &metadata)
    }

    /// Adds the next rows of the page that was begun.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn band(&mut self, band: Image) -> Result<()> {
        self.encoder.band(Cow::Owned(band))
    }

    /// As `page`, for a page that is already deflated for a PNG.
    ///
    /// # Errors
    /// A file that cannot be written, and an image that the format cannot hold.
    pub fn deflated(
        &mut self,
        page: &Deflated,
        mut metadata: Metadata,
        effect: Effect,
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        self.convert(&page.shape(), &mut metadata, effect, diagnostics)?;
        self.encoder.deflated_page(page, &metadata)
    }

    /// Whether pages stay in the memory of the GPU.
    pub fn keeps_on_gpu(&self) -> bool {
        self.encoder.takes_device_images()
    }

    /// As `page`, for samples in the memory of a GPU.
    ///
    /// # Errors
    /// As `page`'s.
    pub fn device_page(
        &mut self,
        image: DeviceImage,
        mut metadata: Metadata,
        effect: Effect,
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        self.convert(&image.shape, &mut metadata, effect, diagnostics)?;
        self.encoder.device_page(image, &metadata)
    }

    /// Converts the metadata of a page of this shape to the format's, and refuses what the format cannot hold.
    fn convert(
        &mut self,
        shape: &Shape,
        metadata: &mut Metadata,
        effect: Effect,
        diagnostics: &mut Diagnostics,
    ) -> Result<()> {
        self.find_axes(shape, metadata);
        self.take_untrue_axes(metadata, diagnostics);
        metadata::convert(metadata, self.format, effect, diagnostics);
        format::check(self.format, shape, metadata)
    }

    /// Finds the axes that the description of a TIFF names, for a format that stores them in another way.
    fn find_axes(&self, shape: &Shape, metadata: &mut Metadata) {
        let is_tiff = *self.format == tiff::FORMAT;
        if metadata.axes.is_none() && self.format.add_axes.is_some() && !is_tiff {
            let described = metadata::axes(metadata, shape.channels, self.pages);
            metadata.axes = described.ok().flatten();
        }
    }

    /// Keeps the axes for the first page, if they are those of all pages of the file.
    fn take_untrue_axes(&mut self, metadata: &mut Metadata, diagnostics: &mut Diagnostics) {
        if *self.format == memory::FORMAT {
            return;
        }
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let untrue = metadata
            .axes
            .take_if(|axes| !is_first || axes.pages() != Some(self.pages));
        if is_first && let Some(axes) = untrue {
            diagnostics.notes.push(format!(
                "which pages are slices, frames and channels ({axes}) is left out: only some of them are written"
            ));
        }
    }

    /// The file's length in bytes; the caller commits it.
    pub fn length(&self) -> u64 {
        self.encoder.length()
    }
}
