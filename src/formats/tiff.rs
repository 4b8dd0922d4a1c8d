//! TIFF and BigTIFF (TIFF 6.0; Adobe's TIFF Technical Notes; the BigTIFF design): grey and RGB,
//! with or without alpha, 8, 16 and 32 bits, signed or not, or floating point, in strips or tiles, any
//! number of pages.
//!
//! The decoder is not that of the `tiff` crate. For speed, strips and tiles are unpacked in parallel into the image, and
//! uncompressed ones are read without a copy; for safety, nothing is allocated that the file cannot fill. The tests use the
//! crate as a second opinion.

pub(super) mod axes;
mod block;
mod coded;
mod cog;
mod decode;
pub(super) mod described;
mod description;
mod directory;
mod effort;
mod encode;
pub(super) mod exif;
mod fax;
mod fields;
pub(super) mod gdal;
mod geo;
mod grid;
mod ifd;
mod imagej;
mod implied;
mod jpeg_image;
mod layout;
mod lzw;
pub(super) mod metadata;
pub(super) mod neutral;
mod old_jpeg;
mod ome;
mod origin;
mod pack;
mod packed;
mod page;
mod palette;
mod partial;
mod predictor;
mod region;
mod shape;
mod streams;
mod unpack;
mod ycbcr;

pub use cog::CogEncoder;
pub use encode::{TiffEncoder, encode};
pub use layout::Layout;
pub use pack::Compression;
pub(super) use unpack::unpack_bits;

use super::error_policy::ErrorPolicy;
use super::format::{
    BlockSink, Capabilities, Decoder, Encoder, Field, Format, PageSurvey, RowSink,
};
use super::packed::{Packed, Unsuited};
use super::{Options, metadata as conversion};
use crate::image::metadata::{Alpha, Axes, Diagnostics, Metadata, Own};
use crate::image::{Image, Region, Shape};
use crate::os::{Source, Target};
use anyhow::{Context, Result, anyhow, bail, ensure};

use ifd::{Chain, Ifd, tag};
use implied::ImpliedPages;
use page::Page;
use palette::Palette;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Tagged Image File Format.
pub static FORMAT: Format = Format {
    name: "TIFF",
    id: "tiff",
    title: "Tagged Image File Format",
    extensions: &["tif", "tiff"],
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
            Field::Orientation,
            Field::Resolution,
            Field::Texts,
            Field::Exif,
            Field::Profile,
            Field::Xmp,
            Field::Stretch,
        ],
        ..Capabilities::ALL_SAMPLES
    },
    sniff,
    decoder: |source, damaged| Ok(Box::new(TiffDecoder::open(source, damaged)?)),
    encoder: Some(encoder),
    convert_metadata,
    add_stretch,
    add_axes: Some(add_axes),
    ..Format::DEFAULTS
};

fn sniff(head: &[u8]) -> bool {
    // 42: classic TIFF; 43: BigTIFF.
    let is_tiff = matches!(
        head,
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..]
    );
    // The 128 bytes before the mark of a DICOM file may be the header of a TIFF (PS3.10, section 7.1).
    is_tiff && head.get(128..132) != Some(b"DICM")
}

fn encoder<'a>(
    target: &'a Target,
    options: &Options,
    pages: &[PageSurvey],
) -> Result<Box<dyn Encoder + 'a>> {
    let compression = options.tiff;
    Ok(match options.tiff_layout {
        Layout::Strips => Box::new(TiffEncoder::new(target, compression, pages)),
        Layout::Cog => Box::new(CogEncoder::new(target, compression, pages)?),
    })
}

/// Converts the fields that TIFF shares with other formats.
fn convert_metadata(_: &Metadata, own: Own, leave_out: &mut dyn FnMut(String)) -> Own {
    match own {
        Own::Tiff { .. } | Own::None => own,
        other => neutral::from_items(conversion::items(&other), leave_out),
    }
}

fn add_stretch(own: &mut Own, text: &str) -> bool {
    fields::of_page(own).is_some_and(|fields| gdal::add_stretch(fields, text))
}

fn add_axes(own: &mut Own, axes: &Axes) -> Result<()> {
    if axes.pages() == Some(1) {
        return Ok(());
    }
    let fields = fields::of_page(own).context("the metadata are those of another format")?;
    axes::add(fields, axes)
}

/// Decodes a TIFF file, one page at a time: compression none, LZW, deflate, zstd or PackBits, with
/// or without differencing, JPEG or CCITT fax, in either byte order, interleaved or in planes; integers
/// of 1 to 16 bits, 24 and 32, floating point of 16 to 64.
///
/// Errors name the feature that is not supported (other depths, colour spaces and compressions), or
/// the position of the damage.
struct TiffDecoder<'a> {
    source: &'a Source,
    chain: Chain,
    /// The number of images stored after the only directory of the file (`ImpliedPages`); 1 otherwise.
    frames: usize,
    /// Pages that each directory stands for: its samples per pixel if they are not RGB, otherwise 1.
    bands: usize,
    index: usize,
    /// The first selected page, whose metadata describe all pages.
    first: Option<usize>,
    page: Page,
    damaged: bool,
    directories: RefCell<Directories<'a>>,
}

/// Parsed directories, by page, since most are needed several times.
#[derive(Default)]
struct Directories<'a> {
    known: HashMap<usize, Rc<Ifd<'a>>>,
    /// Number of entries in all of them.
    entries: usize,
}

/// The most entries that are kept, so that a hostile file takes no more than a few megabytes; the
/// directories of a stack of thousands of pages have fewer.
const KEPT_ENTRIES: usize = 1 << 16;

impl<'a> TiffDecoder<'a> {
    /// Reads and checks the directory of the first page, and the list of pages. With `damaged`, the file may be truncated.
    fn open(source: &'a Source, damaged: bool) -> Result<TiffDecoder<'a>> {
        let mut chain = Chain::read(source)?;
        if let Some(error) = chain.broken.take_if(|_| !damaged) {
            return Err(error);
        }
        let first = chain.page(source, 0)?;
        let page = Page::read(&first, 0, source.len(), damaged)?;
        let mut reader = TiffDecoder {
            frames: 1,
            bands: page.form.bands(),
            source,
            chain,
            index: 0,
            first: None,
            page,
            damaged,
            directories: RefCell::default(),
        };
        let implied = match ImpliedPages::read(&first, &reader.page) {
            // The loss is reported where the metadata are read.
            Err(_) if damaged => None,
            implied => implied?,
        };
        if let Some(implied) = implied
            && reader.chain.offsets.len() == 1
        {
            reader.frames = implied.frames(&first, &reader.page, source.len(), damaged)?;
        }
        reader.keep(0, first);
        Ok(reader)
    }

    /// The directory of a page, parsed once.
    fn directory(&self, page: usize) -> Result<Rc<Ifd<'a>>> {
        let index = if self.frames > 1 {
            0
        } else {
            page / self.bands
        };
        let known = self.directories.borrow().known.get(&index).cloned();
        match known {
            Some(ifd) => Ok(ifd),
            None => Ok(self.keep(index, self.chain.page(self.source, index)?)),
        }
    }

    fn keep(&self, index: usize, ifd: Ifd<'a>) -> Rc<Ifd<'a>> {
        let ifd = Rc::new(ifd);
        let mut directories = self.directories.borrow_mut();
        if directories.entries + ifd.len() <= KEPT_ENTRIES {
            directories.entries += ifd.len();
            directories.known.insert(index, ifd.clone());
        }
        ifd
    }
}

impl Decoder for TiffDecoder<'_> {
    fn pages(&self) -> usize {
        self.chain.offsets.len().max(self.frames) * self.bands
    }

    fn turn_to(&mut self, index: usize) -> Result<()> {
        if self.frames > 1 {
            let frame = |index: usize| (index / self.bands) as u64;
            let (from, to, bytes) = (frame(self.index), frame(index), self.page.bytes());
            for span in &mut self.page.spans {
                span.offset = span.offset - from * bytes + to * bytes;
            }
            self.page.band = index % self.bands;
        } else if index != self.index {
            let ifd = self.directory(index)?;
            let band = index % self.bands;
            self.page = Page::read(&ifd, band, self.source.len(), self.damaged)?;
        }
        self.index = index;
        self.first.get_or_insert(index);
        Ok(())
    }

    /// Counts the page's directory and all values in it as metadata.
    fn survey(&self, index: usize) -> Result<PageSurvey> {
        let ifd = self.directory(index)?;
        let form = shape::form(&ifd)?;
        let planes = ifd.value(tag::IMAGE_DEPTH)?.unwrap_or(1);
        ensure!(
            planes <= 1 || self.frames > 1,
            "{planes} planes in one directory (ImageDepth) are not supported: write each as a page"
        );
        ensure!(
            form.bands() == self.bands,
            "it has {} samples per pixel, but the first page has {}, each read as a grey page: write pages of one kind",
            form.stored,
            self.bands
        );
        let palette = Palette::read(&ifd, &form)?;
        let shape = palette.map_or(form.shape, |palette| palette.shape(form.shape));
        Ok(PageSurvey {
            shape,
            metadata_bytes: ifd.weight(),
        })
    }

    fn is_reduced(&self, index: usize) -> Result<bool> {
        let ifd = self.directory(index)?;
        let subfile = ifd.value(tag::NEW_SUBFILE_TYPE)?.unwrap_or(0);
        // Bit 0: a reduced-resolution copy; bit 2: a transparency mask, which has a photometric
        // interpretation of its own.
        Ok(subfile & 0b101 != 0 || ifd.value(tag::PHOTOMETRIC)? == Some(4))
    }

    fn check_full(&self, index: usize) -> Result<()> {
        let ifd = self.directory(index)?;
        if let Some((width, height)) = fields::larger_inside(&ifd, &shape::form(&ifd)?) {
            bail!(
                "its full image, {width}×{height} pixels, is inside the page (SubIFD), which is not \
                 supported: convert it first (--pages N takes the smaller copy)"
            );
        }
        Ok(())
    }

    fn shape(&self) -> Shape {
        let (shape, palette) = (self.page.form.shape, self.page.palette.as_ref());
        palette.map_or(shape, |palette| palette.shape(shape))
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let describes_all = self.first.unwrap_or(0) == self.index;
        let ifd = self.directory(self.index)?;
        if self.frames > 1 && !describes_all {
            // One directory describes all images of the stack; pages after the first repeat only
            // the fields about how the image is shown.
            let described = fields::read(&ifd, &self.page.form, &mut Diagnostics::default());
            let own = Own::None;
            return Ok(Metadata { own, ..described });
        }
        let mut metadata = fields::read(&ifd, &self.page.form, diagnostics);
        if self.bands > 1 {
            let described = fields::without_axes(&mut metadata);
            if describes_all {
                let warning = format!(
                    "its {} samples per pixel are not RGB: each is read as a grey page",
                    self.bands
                );
                diagnostics.warnings.push(if described {
                    warning + ", and the description of its axes is left out"
                } else {
                    warning
                });
            }
        }
        let absent = self.page.spans.iter().filter(|span| span.is_absent());
        let (absent, all) = (absent.count(), self.page.spans.len());
        if absent > 0 {
            let noun = self.page.grid.noun();
            diagnostics.notes.push(format!(
                "{absent} of {all} {noun}s are not in the file, and are filled with its NODATA value or 0"
            ));
        }
        if describes_all && self.frames == 1 && self.index >= self.bands {
            let first = self.directory(0)?;
            fields::add_from_first_page(&mut metadata, &first, diagnostics);
        }
        Ok(metadata)
    }

    fn gives_packed(&self) -> bool {
        streams::are_all(&self.page)
    }

    fn packed(&self) -> Result<Packed, Unsuited> {
        streams::read(self.source, &self.page)
    }

    fn gives_blocks(&self) -> bool {
        partial::has_blocks(&self.page)
    }

    fn blocks(&self, sink: &BlockSink) -> Result<()> {
        partial::blocks(self.source, &self.page, sink)
    }

    fn gives_rows(&self) -> bool {
        partial::has_rows(&self.page)
    }

    fn rows(&self, _serially: bool, sink: &mut RowSink) -> Result<()> {
        partial::rows(self.source, &self.page, sink)
    }

    fn gives_regions(&self) -> bool {
        true
    }

    fn region_parts(&self, region: &Region) -> String {
        region::parts(&self.page, region)
    }

    fn region_memory(&self, page: usize, region: &Region) -> Result<u64> {
        region::memory(&*self.directory(page)?, region)
    }

    fn region(&self, region: &Region) -> Result<Image> {
        let image = region::decode(self.source, &self.page, region)?;
        match &self.page.palette {
            Some(palette) => palette.expand(&image),
            None => Ok(image),
        }
    }
    fn decoding(&self) -> String {
        let (count, noun) = (self.page.spans.len(), self.page.grid.noun());
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {noun}{plural}, {}", self.page.method)
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        // An error that ended the list of pages early is reported with the first page.
        if let Some(error) = self.chain.broken.take() {
            let count = self.chain.offsets.len();
            policy.accept(Err(anyhow!(
                "pages after page {count} are missing: {error}"
            )))?;
        }
        let form = &self.page.form;
        let mut samples = policy.samples(&form.shape)?;
        decode::fill(self.source, &self.page, samples.as_bytes_mut(), policy)?;
        let image = Image::new(form.shape, samples);
        match &self.page.palette {
            Some(palette) => palette.expand(&image),
            None => Ok(image),
        }
    }
}

/// Decodes a TIFF file of one page.
pub fn decode(source: &Source) -> Result<Image> {
    let mut reader = TiffDecoder::open(source, false)?;
    ensure!(reader.pages() == 1, "it has several pages");
    reader.decode(&ErrorPolicy::default())
}
