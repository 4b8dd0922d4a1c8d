//! Writes uncompressed samples after a header.

use crate::formats::format::{Bands, Encoder};
use crate::formats::raw::{self, Order, SampleEncoding};
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
    /// The bytes before a page after the first, in a file whose first page has `has_parts`.
    pub part_header: Vec<u8>,
    /// Whether each page has a header of its own, and may have a shape of its own.
    pub has_parts: bool,
    /// The byte order of samples.
    pub order: Order,
    /// Whether the top bit of integers is flipped in the file.
    pub toggled: bool,
    /// The file's length is a multiple of this, filled up with zeros; so is that of each part.
    pub block: u64,
}

/// The form of a file with so many pages, all of this shape and with these metadata. Fails for a page that
/// the format cannot hold.
pub type NewForm = fn(&Shape, &Metadata, usize) -> Result<Form>;

/// Converts an image to one that the format can hold.
type Convert = for<'i> fn(Cow<'i, Image>) -> Cow<'i, Image>;

/// Encodes pages of one shape after a header, which the first page decides.
pub struct RasterEncoder<'a> {
    target: &'a Target,
    new_form: NewForm,
    /// Converts whole pages before they are written.
    convert: Option<Convert>,
    /// The pages of the file, and those written so far.
    pages: usize,
    done: usize,
    /// The first page's shape, and whether its samples are toggled.
    first: Option<(Shape, bool)>,
    /// Whether each page has a header of its own.
    has_parts: bool,
    /// The form of the page that was begun, and the rows of it that are still to come.
    form: Form,
    left: usize,
    length: u64,
}

impl<'a> RasterEncoder<'a> {
    /// An encoder for so many pages.
    pub fn new(target: &'a Target, new_form: NewForm, pages: usize) -> RasterEncoder<'a> {
        RasterEncoder {
            target,
            new_form,
            convert: None,
            pages,
            done: 0,
            first: None,
            has_parts: false,
            form: Form::default(),
            left: 0,
            length: 0,
        }
    }

    /// An encoder for one page that `convert` changes first, so that it does not come in bands.
    pub fn converting(target: &'a Target, new_form: NewForm, convert: Convert) -> Self {
        let encoder = RasterEncoder::new(target, new_form, 1);
        RasterEncoder {
            convert: Some(convert),
            ..encoder
        }
    }
}

impl Encoder for RasterEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let image = match self.convert {
            Some(convert) => convert(image),
            None => image,
        };
        self.begin(&image.shape(), metadata, &[])?;
        self.band(image)
    }

    fn bands(&self, _shape: &Shape) -> Option<Bands> {
        self.convert.is_none().then(|| Bands {
            unit: 1,
            trial: Vec::new(),
        })
    }

    fn begin(&mut self, shape: &Shape, metadata: &Metadata, _trial: &[Image]) -> Result<()> {
        let form = (self.new_form)(shape, metadata, self.pages)?;
        let (first, toggled) = *self.first.get_or_insert((*shape, form.toggled));
        if self.done == 0 {
            self.has_parts = form.has_parts && self.pages > 1;
        }
        ensure!(
            self.has_parts || (first, toggled) == (*shape, form.toggled),
            "page {} is {shape}, but the first is {first}: all pages of a file of this format have one shape",
            self.done + 1
        );
        if self.has_parts {
            let header = if self.done == 0 {
                &form.header
            } else {
                &form.part_header
            };
            self.target.write_at(header, self.length)?;
            self.length += header.len() as u64;
        } else if self.done == 0 {
            let bytes = (shape.bytes() * self.pages + form.header.len()) as u64;
            self.target.reserve(bytes.next_multiple_of(form.block))?;
            self.target.write_at(&form.header, 0)?;
            self.length = form.header.len() as u64;
        }
        (self.form, self.left) = (form, shape.height);
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let shape = band.shape();
        let encoding = SampleEncoding {
            depth: shape.depth,
            order: self.form.order,
            toggled: self.form.toggled,
        };
        raw::write(self.target, self.length, band.samples(), encoding)?;
        self.length += shape.bytes() as u64;
        self.left -= shape.height;
        self.done += usize::from(self.left == 0);
        let rest = self.length.next_multiple_of(self.form.block) - self.length;
        let is_last = self.has_parts || self.done == self.pages;
        if self.left == 0 && is_last && rest > 0 {
            self.target.write_at(&vec![0; rest as usize], self.length)?;
            self.length += rest;
        }
        Ok(())
    }

    fn length(&self) -> u64 {
        self.length
    }
}
