//! Files that store uncompressed samples, one page after the other: NumPy, FITS, PAM, farbfeld and
//! similar ones. Each format parses or writes its header; the samples are copied here.

mod coded;
mod encode;

pub use coded::Coding;
pub use encode::{Form, RasterEncoder};

use super::error_policy::ErrorPolicy;
use super::format::{BlockSink, Decoder, PageSurvey, RowSink};
use super::raw::{self, Order, SampleEncoding};
use crate::image::buffer::Buffer;
use crate::image::metadata::{Diagnostics, Metadata};
use crate::image::{Depth, Image, Region, Samples, Shape};
use crate::os::Source;
use anyhow::{Context, Result, anyhow, bail, ensure};
use coded::Coded;
use rayon::prelude::*;

/// The samples after a header, as the header describes them.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The shape of each page.
    pub shape: Shape,
    /// How many pages follow one another, at least 1.
    pub pages: usize,
    /// Offset of the first sample in the file, in bytes.
    pub start: u64,
    /// The byte order of samples.
    pub order: Order,
    /// Whether the top bit of samples is flipped in memory: that of signed samples, or of unsigned
    /// ones that the file has with half their range subtracted. Floating point has no such bit.
    pub toggled: bool,
    /// Whether the rows are in the opposite order, the last one first.
    pub bottom_up: bool,
    /// The metadata of each page. A maxval is checked.
    pub metadata: Metadata,
    /// Messages about what is not kept as the file has it.
    pub diagnostics: Diagnostics,
}

impl Layout {
    /// One page of unsigned samples with the most significant byte first and no metadata.
    pub fn new(shape: Shape, start: u64) -> Layout {
        Layout {
            shape,
            pages: 1,
            start,
            order: Order::Big,
            toggled: false,
            bottom_up: false,
            metadata: Metadata::default(),
            diagnostics: Diagnostics::default(),
        }
    }

    /// How the file stores samples.
    fn encoding(&self) -> SampleEncoding {
        SampleEncoding {
            depth: self.shape.depth,
            order: self.order,
            toggled: self.toggled,
        }
    }

    /// Bytes of a page in the file.
    pub fn page_bytes(&self) -> u64 {
        self.shape.bytes() as u64
    }

    /// Offset of the first byte after the last sample.
    ///
    /// # Errors
    /// More bytes than a file can have.
    pub fn end(&self) -> Result<u64> {
        (self.page_bytes())
            .checked_mul(self.pages as u64)
            .and_then(|bytes| bytes.checked_add(self.start))
            .with_context(|| {
                format!(
                    "{} pages of {} do not fit in a file",
                    self.pages, self.shape
                )
            })
    }
}

/// The number of pages of a stack with these axes beside rows and columns.
///
/// # Errors
/// No page, or more than memory can address.
pub fn page_count(all_axes: &[u64]) -> Result<usize> {
    let axes = all_axes.iter().skip(2);
    let pages = axes.copied().try_fold(1, u64::checked_mul);
    let pages = pages.and_then(|pages| usize::try_from(pages).ok());
    let pages = pages.filter(|&pages| pages > 0);
    pages.with_context(|| format!("its axes {all_axes:?} do not form an image"))
}

/// Decodes the pages of a layout.
pub struct RasterDecoder<'a> {
    data: Data<'a>,
    layout: Layout,
    page: usize,
}

/// Bytes of rows that are read at a time where a page is read from top to bottom: pieces for several threads.
const BAND: usize = 2 << 20;

/// Where the samples are.
enum Data<'a> {
    /// In the file with the header.
    Same(&'a Source),
    /// In a file beside it, which the header names.
    Other(Source),
    /// In one of these, compressed or written as text.
    Coded(Box<Coded<'a>>),
}

impl Data<'_> {
    fn source(&self) -> Result<&Source> {
        match self {
            Data::Same(source) => Ok(source),
            Data::Other(source) => Ok(source),
            Data::Coded(coded) => coded.decoded(),
        }
    }
}

impl<'a> RasterDecoder<'a> {
    /// Checks that all samples are in the file, unless it may be damaged.
    ///
    /// # Errors
    /// A truncated file, and a damaged one of more pages than bytes.
    pub fn new(source: &'a Source, layout: Layout, damaged: bool) -> Result<RasterDecoder<'a>> {
        RasterDecoder::with_data(Data::Same(source), layout, damaged)
    }

    /// As `new`, for samples in a file of their own.
    ///
    /// # Errors
    /// A truncated file.
    pub fn detached(source: Source, layout: Layout, damaged: bool) -> Result<RasterDecoder<'a>> {
        RasterDecoder::with_data(Data::Other(source), layout, damaged)
    }

    /// As `new`, or as `detached` where there is a file beside it, for samples that are coded from the byte `start` on.
    /// The layout is that of the decoded bytes.
    ///
    /// # Errors
    /// A file that is too short for them.
    pub fn coded(
        source: &'a Source,
        beside: Option<Source>,
        start: u64,
        coding: Coding,
        layout: Layout,
    ) -> Result<RasterDecoder<'a>> {
        let data = beside.map_or(Data::Same(source), Data::Other);
        let coded = Coded::new(data, start, coding, &layout)?;
        Ok(RasterDecoder {
            data: Data::Coded(Box::new(coded)),
            layout,
            page: 0,
        })
    }

    fn with_data(data: Data<'a>, layout: Layout, damaged: bool) -> Result<RasterDecoder<'a>> {
        let (end, len) = (layout.end()?, data.source()?.len());
        // A page of a damaged file may lack most of its bytes, but there are not more pages than bytes.
        let enough = if damaged {
            layout.pages as u64 <= len.max(1)
        } else {
            end <= len
        };
        ensure!(enough, "truncated at byte {len} of {end}");
        Ok(RasterDecoder {
            data,
            layout,
            page: 0,
        })
    }

    /// Offset of the selected page.
    fn page_start(&self) -> u64 {
        self.layout.start + self.page as u64 * self.layout.page_bytes()
    }

    /// Converts bytes of the file to samples in memory, and checks them.
    fn convert(&self, bytes: &mut [u8]) -> Result<()> {
        let depth = self.layout.shape.depth;
        self.layout.encoding().to_memory(bytes);
        check_maxval(
            bytes,
            depth,
            self.layout.metadata.maxval.unwrap_or(depth.full()),
        )
    }

    /// Decodes the selected page.
    ///
    /// # Errors
    /// Damage, unless the policy accepts it.
    pub fn read(&self, policy: &ErrorPolicy) -> Result<Image> {
        let shape = self.layout.shape;
        let (source, start) = (self.data.source()?, self.page_start());
        let there = source.len().saturating_sub(start);
        let there = there.min(shape.bytes() as u64) as usize;
        let mut samples = if there == shape.bytes() {
            policy.samples(&shape)?
        } else {
            Samples::zeroed(&shape)?
        };
        // Only complete samples.
        let whole = there / shape.depth.bytes() * shape.depth.bytes();
        let (bytes, rest) = samples.as_bytes_mut().split_at_mut(whole);
        let read = raw::read(source, [(start, bytes)], |piece| self.convert(piece));
        policy.accept(read)?;
        if there < shape.bytes() {
            self.layout.encoding().to_memory(rest);
            policy.accept(Err(anyhow!(
                "truncated at byte {} of {}",
                source.len(),
                self.layout.end()?
            )))?;
        }
        if self.layout.bottom_up {
            reverse_rows(&mut samples, shape);
        }
        Ok(Image::new(shape, samples))
    }
}

/// Reverses the order of the rows.
pub fn reverse_rows(samples: &mut Samples, shape: Shape) {
    let row = shape.row() * shape.depth.bytes();
    let (top, bottom) = samples.as_bytes_mut().split_at_mut(shape.height / 2 * row);
    let bottom = bottom.rchunks_exact_mut(row);
    let pairs = top.chunks_exact_mut(row).zip(bottom);
    pairs.for_each(|(above, below)| above.swap_with_slice(below));
}

impl Decoder for RasterDecoder<'_> {
    fn pages(&self) -> usize {
        self.layout.pages
    }

    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        // The decoded samples are in memory beside the page.
        let beside = match &self.data {
            Data::Coded(coded) => coded.bytes(),
            _ => 0,
        };
        Ok(PageSurvey {
            shape: self.layout.shape,
            metadata_bytes: beside,
        })
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.layout.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        diagnostics.add(&self.layout.diagnostics);
        Ok(self.layout.metadata.clone())
    }

    fn gives_blocks(&self) -> bool {
        !self.layout.shape.depth.is_wide()
    }

    fn blocks(&self, sink: &BlockSink) -> Result<()> {
        let (shape, source, start) = (self.layout.shape, self.data.source()?, self.page_start());
        let row = shape.row() * shape.depth.bytes();
        let blocks = raw::blocks_of_rows(shape.height, row).into_par_iter();
        blocks.try_for_each(|rows| {
            let offset = start + (rows.start * row) as u64;
            let shape = Shape {
                height: rows.len(),
                ..shape
            };
            sink(raw::read_image(source, offset, shape, |bytes| {
                self.convert(bytes)
            })?)
        })
    }

    fn gives_rows(&self) -> bool {
        !self.layout.bottom_up
    }

    fn rows(&self, _serially: bool, sink: &mut RowSink) -> Result<()> {
        let (shape, source, start) = (self.layout.shape, self.data.source()?, self.page_start());
        let row = shape.row() * shape.depth.bytes();
        let mut memory = Buffer::<u8>::zeroed((BAND / row).clamp(1, shape.height) * row)?;
        for (i, top) in (0..shape.height).step_by(memory.len() / row).enumerate() {
            let offset = start + (i * memory.len()) as u64;
            let most = memory.len().min((shape.height - top) * row);
            let rows = &mut memory[..most];
            raw::read(source, [(offset, &mut *rows)], |piece| self.convert(piece))?;
            sink(rows)?;
        }
        Ok(())
    }

    fn gives_regions(&self) -> bool {
        true
    }

    fn region(&self, region: &Region) -> Result<Image> {
        let (shape, source, start) = (self.layout.shape, self.data.source()?, self.page_start());
        let row = (shape.row() * shape.depth.bytes()) as u64;
        let row_start = |y: usize| {
            let y = if self.layout.bottom_up {
                shape.height - 1 - y
            } else {
                y
            };
            start + y as u64 * row
        };
        raw::read_region(source, &shape, region, row_start, |bytes| {
            self.convert(bytes)
        })
    }
    fn decoding(&self) -> String {
        match &self.data {
            Data::Coded(coded) => coded.to_string(),
            _ => "samples without compression".into(),
        }
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        self.read(policy)
    }
}

/// Refuses samples, in the machine's byte order, above `maxval`.
fn check_maxval(bytes: &[u8], depth: Depth, maxval: u16) -> Result<()> {
    if maxval == depth.full() || depth.is_wide() {
        return Ok(());
    }
    let top = match depth {
        Depth::Eight => bytes.iter().copied().max().map(u16::from),
        _ => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&pair| u16::from_ne_bytes(pair))
            .max(),
    };
    match top {
        Some(top) if top > maxval => bail!("a sample of {top} is above the maxval {maxval}"),
        _ => Ok(()),
    }
}
