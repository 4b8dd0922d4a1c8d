//! The images of a file. Each is in a part (HDU) of its own: the first one, an IMAGE extension, or a table of compressed tiles.

use super::header::Header;
use super::tiled::TiledDecoder;
use super::{layout, records};
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::{BlockSink, Decoder, PageSurvey, RowSink};
use crate::formats::raster::RasterDecoder;
use crate::image::metadata::{Diagnostics, Metadata, Own};
use crate::image::{Image, Region, Shape};
use crate::os::Source;
use anyhow::{Result, bail, ensure};

/// The most parts of a file, and the most bytes of their headers.
const MOST: usize = 1000;
const MOST_BYTES: u64 = 64 << 20;

/// Opens the images of a file.
///
/// # Errors
/// A file without an image that is supported, and a damaged one.
pub fn decoder(source: &Source, damaged: bool) -> Result<Box<dyn Decoder + '_>> {
    let (mut parts, mut diagnostics) = (Vec::new(), Diagnostics::default());
    let (mut tables, mut lines) = (0, 0);
    let (mut at, mut header_bytes) = (0, 0);
    while at < source.len() {
        if at > 0 && !is_extension(source, at)? {
            let rest = source.len() - at;
            let warning = format!("{rest} bytes after its last part are left out");
            diagnostics.warnings.push(warning);
            break;
        }
        ensure!(
            parts.len() + tables + lines < MOST,
            "it has more than {MOST} parts"
        );
        let next = Header::read(source, at).and_then(|header| Ok((header.next()?, header)));
        let (next, header) = match next {
            Ok(next) => next,
            Err(error) if damaged && !parts.is_empty() => {
                diagnostics.lost.push(format!("{error:#}"));
                break;
            }
            Err(error) => return Err(error),
        };
        header_bytes += header.data - at;
        ensure!(
            header_bytes <= MOST_BYTES,
            "its headers have more than {MOST_BYTES} bytes"
        );
        if header.flag("ZIMAGE") == Some(true) {
            parts.push(compressed(source, &header, damaged));
        } else if !header.is_image() {
            tables += usize::from(!header.axes.is_empty());
        } else if header.axes.len() == 1 {
            lines += 1;
        } else {
            parts.push(plain(source, &header, damaged));
        }
        at = next;
    }
    ensure!(
        !parts.is_empty() || lines == 0,
        "an image of one axis is not supported"
    );
    for (count, name) in [(tables, "table"), (lines, "image of one axis")] {
        match count {
            0 => {}
            1 => diagnostics
                .notes
                .push(format!("a part of the file is left out: {name}")),
            _ => diagnostics
                .notes
                .push(format!("{count} parts of the file are left out: {name}")),
        }
    }
    let mut images = Images {
        decoders: Vec::new(),
        parts: Vec::new(),
        pages: 0,
        selected: 0,
        diagnostics,
    };
    for part in parts {
        images.add(part);
    }
    if images.decoders.is_empty() {
        let first = images.parts.into_iter().next();
        let why = first.and_then(|(_, part)| part.err());
        bail!(why.unwrap_or_else(|| "there is no image in it".into()));
    }
    Ok(Box::new(images))
}

/// Whether another part begins at an offset.
fn is_extension(source: &Source, at: u64) -> Result<bool> {
    let mut first = [0; 9];
    let read = source.read_up_to(&mut first, at)?;
    Ok(b"XTENSION=".starts_with(&first[..read]))
}

/// A decoder for an image that is stored as it is.
fn plain<'a>(source: &'a Source, header: &Header, damaged: bool) -> Result<Box<dyn Decoder + 'a>> {
    let layout = layout(header, &header.axes, header.integer("BITPIX"), |_| true)?;
    Ok(Box::new(RasterDecoder::new(source, layout, damaged)?))
}

/// A decoder for an image in a table of compressed tiles.
fn compressed<'a>(
    source: &'a Source,
    header: &Header,
    damaged: bool,
) -> Result<Box<dyn Decoder + 'a>> {
    let axes = header.lengths("Z")?;
    let is_kept = |record: &_| !records::is_of_tiles(record);
    let layout = layout(header, &axes, header.integer("ZBITPIX"), is_kept)?;
    let decoder = TiledDecoder::new(source, header, &axes, layout, damaged)?;
    Ok(Box::new(decoder))
}

/// Decodes the pages of all images, one image after the other.
struct Images<'a> {
    /// The decoders of the images that are supported, at least one.
    decoders: Vec<Box<dyn Decoder + 'a>>,
    /// The first page of each image, counted from 0, and the number of its decoder, or why it has none.
    parts: Vec<(usize, Result<usize, String>)>,
    pages: usize,
    /// The decoder of the selected page.
    selected: usize,
    diagnostics: Diagnostics,
}

impl<'a> Images<'a> {
    /// Adds an image. One that is not supported counts as a page.
    fn add(&mut self, image: Result<Box<dyn Decoder + 'a>>) {
        let first = self.pages;
        match image {
            Ok(decoder) => {
                self.pages = self.pages.saturating_add(decoder.pages());
                self.parts.push((first, Ok(self.decoders.len())));
                self.decoders.push(decoder);
            }
            Err(error) => {
                self.pages = self.pages.saturating_add(1);
                self.parts.push((first, Err(format!("{error:#}"))));
            }
        }
    }

    /// The number of the decoder of a page, and that of the page for it.
    fn locate(&self, page: usize) -> Result<(usize, usize)> {
        let after = self.parts.partition_point(|(first, _)| *first <= page);
        let (first, decoder) = &self.parts[after - 1];
        match decoder {
            Ok(decoder) => Ok((*decoder, page - first)),
            Err(why) => bail!("{why}"),
        }
    }

    fn selected(&self) -> &(dyn Decoder + 'a) {
        &*self.decoders[self.selected]
    }
}

impl Decoder for Images<'_> {
    fn pages(&self) -> usize {
        self.pages
    }

    fn survey(&self, page: usize) -> Result<PageSurvey> {
        let (decoder, page) = self.locate(page)?;
        self.decoders[decoder].survey(page)
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        let (decoder, page) = self.locate(page)?;
        self.selected = decoder;
        self.decoders[decoder].turn_to(page)
    }

    fn shape(&self) -> Shape {
        self.selected().shape()
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.add(&self.diagnostics);
        diagnostics.lost.extend_from_slice(&self.diagnostics.lost);
        let mut metadata = self.selected().metadata(diagnostics)?;
        if self.parts.len() > 1 {
            match &mut metadata.own {
                Own::Fits(records) => records.push(records::part()),
                own => *own = Own::Fits(vec![records::part()]),
            }
        }
        Ok(metadata)
    }

    fn gives_blocks(&self) -> bool {
        self.selected().gives_blocks()
    }

    fn blocks(&self, sink: &BlockSink) -> Result<()> {
        self.selected().blocks(sink)
    }

    fn gives_rows(&self) -> bool {
        self.selected().gives_rows()
    }

    fn rows(&self, serially: bool, sink: &mut RowSink) -> Result<()> {
        self.selected().rows(serially, sink)
    }

    fn gives_regions(&self) -> bool {
        self.decoders.iter().all(|decoder| decoder.gives_regions())
    }

    fn region_parts(&self, region: &Region) -> String {
        self.selected().region_parts(region)
    }

    fn region_memory(&self, page: usize, region: &Region) -> Result<u64> {
        let (decoder, page) = self.locate(page)?;
        self.decoders[decoder].region_memory(page, region)
    }

    fn region(&self, region: &Region) -> Result<Image> {
        self.selected().region(region)
    }
    fn decoding(&self) -> String {
        self.selected().decoding()
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        self.decoders[self.selected].decode(policy)
    }
}
