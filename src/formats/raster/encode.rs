//! Writes uncompressed samples behind a header.

use crate::formats::format::{Bands, Encoder};
use crate::formats::raw::{self, Order};
use crate::image::metadata::Metadata;
use crate::image::{Image, Shape};
use crate::os::Target;
use anyhow::{Result, ensure};
use std::borrow::Cow;

/// How a format writes pages of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// The file's first bytes, up to the first sample.
    pub header: Vec<u8>,
    /// The byte order of samples.
    pub order: Order,
    /// Whether the top bit of integers is flipped in the file.
    pub toggled: bool,
    /// The file's length is a multiple of this, filled up with zeros.
    pub block: u64,
}

/// A format whose files are a header and samples.
pub trait Header {
    /// The form of a file with so many pages, all like this one.
    ///
    /// # Errors
    /// A page that the format cannot hold.
    fn form(&self, shape: &Shape, metadata: &Metadata, pages: usize) -> Result<Form>;
}

/// Encodes pages of one shape behind a header, which the first page decides.
pub struct RasterEncoder<'a, H> {
    target: &'a Target,
    header: H,
    /// The pages of the file, and those written so far.
    pages: usize,
    done: usize,
    /// The first page's shape, and whether its samples are toggled.
    first: Option<(Shape, bool)>,
    /// The form of the page that was begun, and the rows of it that are still to come.
    form: Form,
    left: usize,
    length: u64,
}

impl<'a, H: Header> RasterEncoder<'a, H> {
    /// An encoder for so many pages.
    pub fn new(target: &'a Target, header: H, pages: usize) -> RasterEncoder<'a, H> {
        RasterEncoder {
            target,
            header,
            pages,
            done: 0,
            first: None,
            form: Form::default(),
            left: 0,
            length: 0,
        }
    }
}

impl<H: Header> Encoder for RasterEncoder<'_, H> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        self.begin(&image.shape(), metadata, &[])?;
        self.band(image)
    }

    fn bands(&self, _shape: &Shape) -> Option<Bands> {
        Some(Bands {
            unit: 1,
            trial: Vec::new(),
        })
    }

    fn begin(&mut self, shape: &Shape, metadata: &Metadata, _trial: &[Image]) -> Result<()> {
        let form = self.header.form(shape, metadata, self.pages)?;
        let (first, toggled) = *self.first.get_or_insert((*shape, form.toggled));
        ensure!(
            (first, toggled) == (*shape, form.toggled),
            "page {} is {shape}, and the first is {first}: this format holds pages of one kind",
            self.done + 1
        );
        if self.done == 0 {
            let bytes = (shape.bytes() * self.pages + form.header.len()) as u64;
            self.target.reserve(bytes.next_multiple_of(form.block))?;
            self.target.write_at(&form.header, 0)?;
            self.length = form.header.len() as u64;
        }
        (self.form, self.left) = (form, shape.height);
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let (shape, form) = (band.shape(), (self.form.order, self.form.toggled));
        raw::write(self.target, self.length, band.samples(), shape.depth, form)?;
        self.length += shape.bytes() as u64;
        self.left -= shape.height;
        self.done += usize::from(self.left == 0);
        let rest = self.length.next_multiple_of(self.form.block) - self.length;
        if self.left == 0 && self.done == self.pages && rest > 0 {
            self.target.write_at(&vec![0; rest as usize], self.length)?;
            self.length += rest;
        }
        Ok(())
    }

    fn length(&self) -> u64 {
        self.length
    }
}
