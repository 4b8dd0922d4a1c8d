//! Pages in memory, decoded and encoded like those of a file: every depth, channel and field of metadata is kept as it is. Their
//! samples are in host memory, or in the memory of a GPU.

use super::error_policy::ErrorPolicy;
use super::format::{Capabilities, Decoder, Encoder, Field, Format, PageSurvey};
use crate::image::metadata::{Alpha, Diagnostics, Metadata};
use crate::image::{Image, Shape};
use crate::ops::DeviceImage;
use anyhow::{Context, Result, bail};
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

/// A page in memory: in host memory, or as a `Page<DeviceImage>` in that of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<I = Image> {
    /// Its samples.
    pub image: I,
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
    /// The only page, if it is in a GPU's memory; `None` after it was given away.
    device_image: RefCell<Option<DeviceImage>>,
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
        Pages::with_shapes(pages, Image::shape)
    }

    fn with_shapes<I>(pages: &[&Page<I>], shape: impl Fn(&I) -> Shape) -> Pages {
        let count = pages.len();
        let whole = pages.iter().all(|page| page.described == count);
        let survey = |page: &&Page<I>| PageSurvey {
            shape: shape(&page.image),
            metadata_bytes: page.metadata_bytes,
        };
        Pages {
            surveys: pages.iter().map(survey).collect(),
            metadata: pages.iter().map(|page| page.metadata.clone()).collect(),
            images: RefCell::default(),
            device_image: RefCell::default(),
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

impl From<Vec<Page>> for Pages {
    fn from(pages: Vec<Page>) -> Pages {
        Pages::new(pages)
    }
}

/// A page in the memory of a GPU.
impl From<Page<DeviceImage>> for Pages {
    fn from(page: Page<DeviceImage>) -> Pages {
        let headers = Pages::with_shapes(&[&page], |image| image.shape);
        Pages {
            device_image: RefCell::new(Some(page.image)),
            ..headers
        }
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

    fn device_image(&self) -> Option<DeviceImage> {
        self.pages.device_image.take()
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
        add_page(self.pages, &self.expected, image.into_owned(), metadata);
        Ok(())
    }

    fn length(&self) -> u64 {
        0
    }
}

/// Keeps the pages of a job's result, in the memory of the GPU that ran the operations.
pub struct DeviceEncoder<'a> {
    pages: &'a RefCell<Vec<Page<DeviceImage>>>,
    /// The shapes of all pages, and the bytes of their metadata.
    expected: Vec<PageSurvey>,
}

impl<'a> DeviceEncoder<'a> {
    /// An encoder that adds pages to `pages`.
    pub fn new(
        pages: &'a RefCell<Vec<Page<DeviceImage>>>,
        expected: &[PageSurvey],
    ) -> DeviceEncoder<'a> {
        DeviceEncoder {
            pages,
            expected: expected.into(),
        }
    }
}

impl Encoder for DeviceEncoder<'_> {
    fn page(&mut self, _: Cow<Image>, _: &Metadata) -> Result<()> {
        bail!("internal error: the samples were copied from the GPU")
    }

    fn takes_device_images(&self) -> bool {
        true
    }

    fn device_page(&mut self, image: DeviceImage, metadata: &Metadata) -> Result<()> {
        add_page(self.pages, &self.expected, image, metadata);
        Ok(())
    }

    fn length(&self) -> u64 {
        0
    }
}

/// Adds a page to those of a result.
fn add_page<I>(
    pages: &RefCell<Vec<Page<I>>>,
    expected: &[PageSurvey],
    image: I,
    metadata: &Metadata,
) {
    let mut pages = pages.borrow_mut();
    let survey = expected.get(pages.len());
    let page = Page {
        image,
        metadata: metadata.clone(),
        metadata_bytes: survey.map_or(0, |page| page.metadata_bytes),
        described: expected.len(),
    };
    pages.push(page);
}
