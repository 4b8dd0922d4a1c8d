//! Files whose samples lie uncompressed, one page behind the other: NumPy, FITS, PAM, farbfeld and
//! their like. Each format parses or writes its header; the samples are copied here.

mod coded;
mod encode;

pub use coded::Coding;

pub use encode::{Form, Header, RasterEncoder};

use super::error_policy::ErrorPolicy;
use super::format::{Decoder, TakeBlock, TakeRows};
use super::raw::{self, Order};
use crate::image::buffer::Buffer;
use crate::image::metadata::{Diagnostics, Metadata};
use crate::image::{Depth, Image, Samples, Shape};
use crate::os::Source;
use anyhow::{Context, Result, anyhow, bail, ensure};
use coded::Coded;
use rayon::prelude::*;

/// What a header says of the samples behind it.
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
    /// Sentences about what is not as the file has it.
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

    /// Bytes of a page in the file.
    pub fn page_bytes(&self) -> u64 {
        self.shape.bytes() as u64
    }

    /// Offset of the first byte behind the last sample.
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

/// Decodes the pages of a layout.
pub struct RasterDecoder<'a> {
    source: Data<'a>,
    layout: Layout,
    page: usize,
}

/// Bytes of rows that are read together where a page is read from top to bottom: pieces for several threads.
const TOGETHER: usize = 2 << 20;

/// The file of the samples.
enum Data<'a> {
    /// The one with the header.
    Same(&'a Source),
    /// One beside it, which the header names.
    Other(Source),
    /// Samples in one of these that are stored otherwise.
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
        RasterDecoder::of(Data::Same(source), layout, damaged)
    }

    /// As `new`, for samples in a file of their own.
    ///
    /// # Errors
    /// A truncated file.
    pub fn detached(source: Source, layout: Layout, damaged: bool) -> Result<RasterDecoder<'a>> {
        RasterDecoder::of(Data::Other(source), layout, damaged)
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
            source: Data::Coded(Box::new(coded)),
            layout,
            page: 0,
        })
    }

    fn of(source: Data<'a>, layout: Layout, damaged: bool) -> Result<RasterDecoder<'a>> {
        let (end, len) = (layout.end()?, source.source()?.len());
        // Of a damaged file a page may lack most of its bytes, but there are not more pages than bytes.
        let enough = if damaged {
            layout.pages as u64 <= len.max(1)
        } else {
            end <= len
        };
        ensure!(enough, "truncated at byte {len} of {end}");
        Ok(RasterDecoder {
            source,
            layout,
            page: 0,
        })
    }

    /// Decodes the selected page.
    ///
    /// # Errors
    /// Damage, unless the policy is to go on.
    pub fn read(&self, policy: &ErrorPolicy) -> Result<Image> {
        let Layout {
            shape,
            order,
            toggled,
            bottom_up,
            ..
        } = self.layout;
        let source = self.source.source()?;
        let start = self.layout.start + self.page as u64 * self.layout.page_bytes();
        let there = source.len().saturating_sub(start);
        let there = there.min(shape.bytes() as u64) as usize;
        let mut samples = if there == shape.bytes() {
            policy.samples(&shape)?
        } else {
            Samples::zeroed(&shape)?
        };
        let maxval = self.layout.metadata.maxval.unwrap_or(shape.depth.full());
        // Only complete samples.
        let whole = there / shape.depth.bytes() * shape.depth.bytes();
        let (bytes, rest) = samples.as_bytes_mut().split_at_mut(whole);
        let read = raw::read(source, [(start, bytes)], |piece| {
            raw::reorder(piece, shape.depth, order);
            raw::to_memory(piece, shape.depth, toggled);
            check(piece, shape.depth, maxval)
        });
        policy.take(read)?;
        if there < shape.bytes() {
            raw::to_memory(rest, shape.depth, toggled);
            policy.take(Err(anyhow!(
                "truncated at byte {} of {}",
                source.len(),
                self.layout.end()?
            )))?;
        }
        if bottom_up {
            turn_over(&mut samples, shape);
        }
        Ok(Image::new(shape, samples))
    }
}

/// Reverses the order of the rows.
pub fn turn_over(samples: &mut Samples, shape: Shape) {
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

    fn survey(&self, _page: usize) -> Result<(Shape, u64)> {
        // All that is inflated is in memory beside the page.
        let beside = match &self.source {
            Data::Coded(coded) => coded.bytes(),
            _ => 0,
        };
        Ok((self.layout.shape, beside))
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.layout.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        let Diagnostics {
            warnings, notes, ..
        } = &self.layout.diagnostics;
        diagnostics.warnings.extend_from_slice(warnings);
        diagnostics.notes.extend_from_slice(notes);
        Ok(self.layout.metadata.clone())
    }

    fn gives_blocks(&self) -> bool {
        !self.layout.shape.depth.is_wide()
    }

    fn blocks(&self, take: &TakeBlock) -> Result<()> {
        let Layout {
            shape,
            order,
            toggled,
            ..
        } = self.layout;
        let maxval = self.layout.metadata.maxval.unwrap_or(shape.depth.full());
        let (source, row) = (self.source.source()?, shape.row() * shape.depth.bytes());
        let start = self.layout.start + self.page as u64 * self.layout.page_bytes();
        let pieces = raw::rows(shape.height, row).into_par_iter();
        pieces.try_for_each(|rows| {
            let offset = start + (rows.start * row) as u64;
            let shape = Shape {
                height: rows.len(),
                ..shape
            };
            take(raw::piece(
                source,
                offset,
                shape,
                (order, toggled),
                |bytes| check(bytes, shape.depth, maxval),
            )?)
        })
    }

    fn gives_rows(&self) -> bool {
        !self.layout.bottom_up
    }

    fn rows(&self, _plainly: bool, take: &mut TakeRows) -> Result<()> {
        let Layout {
            shape,
            order,
            toggled,
            ..
        } = self.layout;
        let maxval = self.layout.metadata.maxval.unwrap_or(shape.depth.full());
        let (source, row) = (self.source.source()?, shape.row() * shape.depth.bytes());
        let start = self.layout.start + self.page as u64 * self.layout.page_bytes();
        let mut memory = Buffer::<u8>::zeroed((TOGETHER / row).clamp(1, shape.height) * row)?;
        for (i, top) in (0..shape.height).step_by(memory.len() / row).enumerate() {
            let offset = start + (i * memory.len()) as u64;
            let most = memory.len().min((shape.height - top) * row);
            let rows = &mut memory[..most];
            raw::read(source, [(offset, &mut *rows)], |piece| {
                raw::reorder(piece, shape.depth, order);
                raw::to_memory(piece, shape.depth, toggled);
                check(piece, shape.depth, maxval)
            })?;
            take(rows)?;
        }
        Ok(())
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        self.read(policy)
    }
}

/// Refuses samples, in the machine's byte order, above `maxval`.
fn check(bytes: &[u8], depth: Depth, maxval: u16) -> Result<()> {
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
