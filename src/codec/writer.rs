//! Writing a file page by page, in whichever format.

use super::{Format, Options, metadata, png, pnm, tiff};
use crate::files::Target;
use crate::image::{Image, Shape};
use crate::metadata::{Effect, Metadata, Remarks};
use anyhow::{Result, ensure};

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
        Writer::holds(format, pages.len())?;
        Ok(Writer::Single(format, *options, target, 0))
    }

    /// Whether so many pages go into one file of a format.
    pub fn holds(format: Format, pages: usize) -> Result<()> {
        ensure!(
            pages == 1 || format == Format::Tiff,
            "{pages} pages do not go into one {} file: --pages N takes one, and TIFF holds all",
            format.name()
        );
        Ok(())
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

    /// Adds a page that an operation of this effect made. If it comes `compressed` from a GPU, the
    /// image's memory holds what that left there.
    pub fn page(
        &mut self,
        image: Image,
        compressed: Option<png::Compressed>,
        mut metadata: Metadata,
        effect: Effect,
        remarks: &mut Remarks,
    ) -> Result<()> {
        let format = self.format();
        metadata::carry(&mut metadata, format, effect, remarks);
        let metadata = &metadata;
        match self {
            Writer::Tiff(writer) => writer.page(image, metadata),
            Writer::Single(format, options, target, length) => {
                *length = match (format, compressed) {
                    (_, Some(compressed)) => {
                        compressed.write(image.samples().as_bytes(), metadata, target)?
                    }
                    (Format::Pnm, None) => pnm::encode_with(&image, metadata, target)?,
                    (_, None) => png::encode_with(&image, metadata, options.png, target)?,
                };
                Ok(())
            }
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
