//! Pages in memory, decoded and encoded like those of a file: every depth, channel and field of metadata is kept as it is.

use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Encoder, Field, Format, PageSurvey};
use crate::image::metadata::{Alpha, Diagnostics, Metadata};
use crate::image::{Image, Shape};
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::cell::RefCell;

/// The format of pages in memory. It is not in the list of formats, because no file has it.
pub static FORMAT: Format = Format {
    name: "pixels in memory",
    id: "memory",
    title: "Pixels in memory",
    capabilities: Capabilities {
        white_is_zero: true,
        alpha: &[
            Alpha::Independent,
            Alpha::Associated,
            Alpha::Unspecified,
            Alpha::Black,
        ],
        fields: &[
            Field::Maxval,
            Field::Significant,
            Field::Orientation,
            Field::Resolution,
            Field::Texts,
            Field::Exif,
            Field::Profile,
            Field::Xmp,
            Field::Records,
            Field::Stretch,
        ],
        ..Capabilities::ALL_SAMPLES
    },
    convert_metadata: |_, own, _| own,
    ..Format::DEFAULTS
};

/// A page in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its samples.
    pub image: Image,
    /// Its metadata.
    pub metadata: Metadata,
    /// Bytes of its metadata in the file that it was read from.
    pub metadata_bytes: u64,
    /// The number of pages that its metadata describe: those of the file that it was read from.
    pub described: usize,
}

/// The pages that a job reads from memory.
#[derive(Debug)]
pub struct Pages {
    surveys: Vec<PageSurvey>,
    metadata: Vec<Metadata>,
    /// The images; `None` for one that was given away.
    images: RefCell<Vec<Option<Image>>>,
    described: usize,
    /// Whether images are kept when they are decoded, because they may be decoded again.
    pub again: bool,
}

impl Pages {
    /// Pages, one or more.
    pub fn new(pages: Vec<Page>) -> Pages {
        let headers = Pages::headers(&pages.iter().collect::<Vec<_>>());
        Pages {
            images: RefCell::new(pages.into_iter().map(|page| Some(page.image)).collect()),
            ..headers
        }
    }

    /// Pages whose pixels are not asked for.
    pub fn headers(pages: &[&Page]) -> Pages {
        let count = pages.len();
        let whole = pages.iter().all(|page| page.described == count);
        let survey = |page: &&Page| PageSurvey {
            shape: page.image.shape(),
            metadata_bytes: page.metadata_bytes,
        };
        Pages {
            surveys: pages.iter().map(survey).collect(),
            metadata: pages.iter().map(|page| page.metadata.clone()).collect(),
            images: RefCell::default(),
            // Of pages of several files, the metadata of none describe all.
            described: if whole { count } else { count + 1 },
            again: count > 1,
        }
    }

    /// The number of pages.
    pub fn count(&self) -> usize {
        self.surveys.len()
    }
}

/// Gives the pages of a job.
pub struct MemoryDecoder<'a> {
    pages: &'a Pages,
    page: usize,
}

impl<'a> MemoryDecoder<'a> {
    /// A decoder with the first page selected.
    pub fn new(pages: &'a Pages) -> MemoryDecoder<'a> {
        MemoryDecoder { pages, page: 0 }
    }
}

impl Decoder for MemoryDecoder<'_> {
    /// Those that the metadata describe.
    fn pages(&self) -> usize {
        self.pages.described
    }

    fn survey(&self, page: usize) -> Result<PageSurvey> {
        Ok(self.pages.surveys[page])
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.pages.surveys[self.page].shape
    }

    fn metadata(&self, _: &mut Diagnostics) -> Result<Metadata> {
        Ok(self.pages.metadata[self.page].clone())
    }

    fn decode(&mut self, _: &ErrorPolicy) -> Result<Image> {
        let mut images = self.pages.images.borrow_mut();
        let image = images.get_mut(self.page).and_then(|image| {
            // The copy shares the memory.
            let again = image.clone().filter(|_| self.pages.again);
            std::mem::replace(image, again)
        });
        image.context("internal error: the pixels were given away")
    }
}

/// Keeps the pages of a job's result.
pub struct MemoryEncoder<'a> {
    pages: &'a RefCell<Vec<Page>>,
    /// The shapes of all pages, and the bytes of their metadata.
    expected: Vec<PageSurvey>,
}

impl<'a> MemoryEncoder<'a> {
    /// An encoder that adds pages to `pages`.
    pub fn new(pages: &'a RefCell<Vec<Page>>, expected: &[PageSurvey]) -> MemoryEncoder<'a> {
        MemoryEncoder {
            pages,
            expected: expected.into(),
        }
    }
}

impl Encoder for MemoryEncoder<'_> {
    fn page(&mut self, image: Cow<Image>, metadata: &Metadata) -> Result<()> {
        let mut pages = self.pages.borrow_mut();
        let expected = self.expected.get(pages.len());
        let page = Page {
            image: image.into_owned(),
            metadata: metadata.clone(),
            metadata_bytes: expected.map_or(0, |page| page.metadata_bytes),
            described: self.expected.len(),
        };
        pages.push(page);
        Ok(())
    }

    fn length(&self) -> u64 {
        0
    }
}
