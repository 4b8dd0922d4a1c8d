//! Writing a file page by page, in whichever format.

use super::{Format, Options, metadata, png, pnm, tiff};
use crate::files::Target;
use crate::image::{Image, Shape};
use crate::metadata::{Effect, Metadata, Remarks};
use anyhow::{Result, bail, ensure};

/// A file that pages are written to.
pub enum Writer<'a> {
    /// One image, by one of the formats that hold no more; and its length once it is written.
    Single(Format, Options, &'a Target, u64),
    /// Any number of pages.
    Tiff(tiff::Writer<'a>),
}

impl<'a> Writer<'a> {
    /// A file of a format for pages of these shapes and bytes of metadata.
    pub fn new(
        format: Format,
        options: &Options,
        target: &'a Target,
        pages: Vec<(Shape, u64)>,
    ) -> Result<Writer<'a>> {
        if format == Format::Tiff {
            return Ok(Writer::Tiff(tiff::Writer::new(target, options.tiff, pages)));
        }
        ensure!(
            pages.len() == 1,
            "{} pages do not go into one {} file: --pages N takes one, and TIFF holds all",
            pages.len(),
            format.name()
        );
        Ok(Writer::Single(format, *options, target, 0))
    }

    /// Its format.
    pub fn format(&self) -> Format {
        match self {
            Writer::Tiff(_) => Format::Tiff,
            Writer::Single(format, ..) => *format,
        }
    }

    /// Whether a GPU could compress what is written.
    pub fn is_for_gpu(&self) -> bool {
        let fast = |options: &Options| options.png == png::Mode::Fast;
        matches!(self, Writer::Single(Format::Png, options, ..) if fast(options))
    }

    /// Adds a page that an operation of this effect made.
    pub fn page(
        &mut self,
        image: Image,
        mut metadata: Metadata,
        effect: Effect,
        remarks: &mut Remarks,
    ) -> Result<()> {
        metadata::carry(&mut metadata, self.format(), effect, remarks);
        let metadata = &metadata;
        match self {
            Writer::Tiff(writer) => writer.page(image, metadata)?,
            Writer::Single(format, options, target, length) => {
                *length = match format {
                    Format::Pnm => pnm::encode_with(&image, metadata, target)?,
                    _ => png::encode_with(&image, metadata, options.png, target)?,
                };
            }
        }
        Ok(())
    }

    /// The same of a page that has been deflated already, for a PNG.
    pub fn deflated(
        &mut self,
        page: &png::Deflated,
        mut metadata: Metadata,
        effect: Effect,
        remarks: &mut Remarks,
    ) -> Result<()> {
        metadata::carry(&mut metadata, self.format(), effect, remarks);
        match self {
            Writer::Single(Format::Png, _, target, length) => {
                *length = page.write(&metadata, target)?;
                Ok(())
            }
            _ => bail!("deflated pixels are a PNG's"),
        }
    }

    /// How long the file is; the caller commits it.
    pub fn length(&self) -> u64 {
        match self {
            Writer::Tiff(writer) => writer.end,
            Writer::Single(.., length) => *length,
        }
    }
}
