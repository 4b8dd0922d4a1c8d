//! Decodes the planes of a dataset, in bands of whole rows of chunks.

use super::datasets::{self, Stored};
use super::library::{self, EXPANSION, File, Kept, call};
use crate::formats::error_policy::ErrorPolicy;
use crate::formats::format::{BlockSink, Decoder, PageSurvey, RowSink};
use crate::formats::raw;
use crate::image::metadata::{Diagnostics, Metadata};
use crate::image::{Depth, Image, Region, Shape};
use crate::os::Source;
use anyhow::{Context, Result, ensure};
use bytemuck::Pod;
use hdf5_reader::{Dataset, H5Type, SliceInfo, SliceInfoElem};
use rayon::prelude::*;

/// The most bytes of chunks that are kept for the next pages, if chunks have samples of several.
const MOST_KEPT: u64 = 256 << 20;

/// Bytes of rows that are decoded at a time.
const BAND: usize = 2 << 20;

/// Decodes the pages of a dataset.
pub struct Hdf5Decoder<'a> {
    source: &'a Source,
    dataset: Dataset,
    stored: Stored,
    shape: Shape,
    pages: usize,
    page: usize,
    kept: Kept,
}

impl<'a> Hdf5Decoder<'a> {
    /// Opens the dataset that the address of the source stands for.
    ///
    /// # Errors
    /// No such dataset, several without an address, and what is damaged or not supported.
    pub fn open(source: &'a Source, damaged: bool) -> Result<Hdf5Decoder<'a>> {
        let open = |kept| {
            let file = File::open(source, kept, damaged)?;
            datasets::select(&file, source.address())
        };
        let dataset = open(Kept::default())?;
        let stored = Stored::new(&dataset)?;
        let [outer @ .., height, width] = &stored.axes[..] else {
            unreachable!("a dataset of two axes or more");
        };
        let shape = Shape::checked(*width, *height, 1, stored.values.depth)?;
        let pages = outer
            .iter()
            .try_fold(1u64, |all, &length| all.checked_mul(length));
        // A dataset may leave chunks out, but not nearly all of them.
        let length = source.len();
        let pages = pages.filter(|&pages| {
            let bytes = pages.checked_mul(shape.bytes() as u64);
            bytes.is_some_and(|bytes| bytes <= length.saturating_mul(EXPANSION))
        });
        let pages = pages.with_context(|| {
            let axes = &stored.axes;
            format!("truncated: {length} bytes are too few for axes of {axes:?} samples")
        })?;
        let mut decoder = Hdf5Decoder {
            source,
            dataset,
            stored,
            shape,
            pages: usize::try_from(pages)?,
            page: 0,
            kept: Kept::default(),
        };
        let (chunk, most) = (decoder.chunk_bytes(), library::most_chunk(source));
        ensure!(
            chunk <= most,
            "its chunks of {chunk} bytes do not fit in memory, or in its {length} bytes"
        );
        decoder.kept = decoder.chunks_to_keep();
        if decoder.kept.chunks > 0 {
            decoder.dataset = open(decoder.kept)?;
        }
        Ok(decoder)
    }

    /// Rows and columns of a chunk.
    fn chunk_sides(&self) -> (usize, usize) {
        let [.., height, width] = self.stored.chunk[..] else {
            unreachable!("a chunk of two axes or more");
        };
        (height as usize, width as usize)
    }

    /// Bytes of a decoded chunk.
    fn chunk_bytes(&self) -> u64 {
        let samples = self.stored.chunk.iter();
        samples.fold(self.shape.depth.bytes() as u64, |all, &length| {
            all.saturating_mul(length)
        })
    }

    /// Chunks of a page, in a row and in a column of them.
    fn chunks_of_page(&self) -> (u64, u64) {
        let (height, width) = self.chunk_sides();
        let across = self.shape.width.div_ceil(width) as u64;
        (across, self.shape.height.div_ceil(height) as u64)
    }

    /// The chunks that are kept for the next pages: those of a page, or none if each chunk has samples of one page only, or if
    /// they are too large.
    fn chunks_to_keep(&self) -> Kept {
        let (across, down) = self.chunks_of_page();
        let chunks = across * down;
        let bytes = chunks.saturating_mul(self.chunk_bytes());
        let outer = &self.stored.chunk[..self.stored.chunk.len() - 2];
        if outer.iter().any(|&length| length > 1) && bytes <= MOST_KEPT {
            Kept { chunks, bytes }
        } else {
            Kept::default()
        }
    }

    /// The place of the selected page along each axis of pages.
    fn place(&self) -> Vec<u64> {
        let outer = &self.stored.axes[..self.stored.axes.len() - 2];
        let mut rest = self.page as u64;
        let mut place: Vec<u64> = Vec::with_capacity(outer.len());
        for &length in outer.iter().rev() {
            place.push(rest % length);
            rest /= length;
        }
        place.reverse();
        place
    }

    /// A region in bands that end where rows of chunks do, each of at least `BAND` bytes where there are enough rows.
    fn bands(&self, region: &Region) -> Vec<Region> {
        let unit = self.chunk_sides().0;
        let row = region.width * self.shape.depth.bytes();
        let rows = BAND.div_ceil(row).next_multiple_of(unit);
        let end = region.top + region.height;
        let mut bands = Vec::new();
        let mut top = region.top;
        while top < end {
            let bottom = (top / unit * unit).saturating_add(rows).min(end);
            bands.push(Region {
                top,
                height: bottom - top,
                ..*region
            });
            top = bottom;
        }
        bands
    }

    /// Decodes a region of the selected page. Damage is an error, or is recorded by `policy`.
    fn decode_region(&self, region: &Region, policy: &ErrorPolicy) -> Result<Image> {
        let shape = region.output(self.shape);
        let mut samples = policy.samples(&shape)?;
        let row = shape.width * shape.depth.bytes();
        let mut rest = samples.as_bytes_mut();
        let mut bands = Vec::new();
        for band in self.bands(region) {
            let (bytes, after) = rest.split_at_mut(band.height * row);
            bands.push((band, bytes));
            rest = after;
        }
        let decoded = bands.into_par_iter().map(|(band, bytes)| {
            let read = self.read_band(&band, bytes);
            raw::to_memory(bytes, shape.depth, self.stored.values.signed);
            policy.accept(read)
        });
        // Of several errors the one of the first band, whatever the order of the threads.
        let decoded: Vec<Result<()>> = decoded.collect();
        decoded.into_iter().collect::<Result<()>>()?;
        Ok(Image::new(shape, samples))
    }

    /// Reads samples as numbers of the machine. Those of a damaged band are not changed.
    fn read_band(&self, band: &Region, bytes: &mut [u8]) -> Result<()> {
        let values = self.stored.values;
        match (values.depth, values.signed) {
            (Depth::Eight, false) => self.read::<u8>(band, bytes),
            (Depth::Eight, true) => self.read::<i8>(band, bytes),
            (Depth::Sixteen, false) => self.read::<u16>(band, bytes),
            (Depth::Sixteen, true) => self.read::<i16>(band, bytes),
            (Depth::ThirtyTwo, false) => self.read::<u32>(band, bytes),
            (Depth::ThirtyTwo, true) => self.read::<i32>(band, bytes),
            (Depth::Float, _) => self.read::<f32>(band, bytes),
            (Depth::Double, _) => self.read::<f64>(band, bytes),
        }
    }

    /// `read_band` for samples of a type.
    fn read<T: H5Type + Pod>(&self, band: &Region, bytes: &mut [u8]) -> Result<()> {
        let side = |start: usize, length: usize| SliceInfoElem::Slice {
            start: start as u64,
            end: (start + length) as u64,
            step: 1,
        };
        let place = self.place().into_iter().map(SliceInfoElem::Index);
        let sides = [side(band.top, band.height), side(band.left, band.width)];
        let selection = SliceInfo {
            selections: place.chain(sides).collect(),
        };
        let array = call(self.source, || self.dataset.read_slice::<T>(&selection))?;
        let read = array.as_slice().map(bytemuck::cast_slice::<T, u8>);
        let read = read.filter(|read| read.len() == bytes.len());
        bytes.copy_from_slice(read.context("internal error: a band of another size")?);
        Ok(())
    }

    fn whole(&self) -> Region {
        Region {
            left: 0,
            top: 0,
            width: self.shape.width,
            height: self.shape.height,
        }
    }
}

impl Decoder for Hdf5Decoder<'_> {
    fn pages(&self) -> usize {
        self.pages
    }

    /// What is in memory beside the page counts as metadata: the chunks that threads decode, with the bytes that each filter
    /// takes and gives, the bands that the library returns, and the chunks that are kept.
    fn survey(&self, _page: usize) -> Result<PageSurvey> {
        let (across, down) = self.chunks_of_page();
        let threads = rayon::current_num_threads() as u64;
        let chunks = threads.min(across * down);
        let decoded = chunks.saturating_mul(self.chunk_bytes()).saturating_mul(3);
        let bands = self.shape.bytes() as u64;
        Ok(PageSurvey {
            shape: self.shape,
            metadata_bytes: decoded
                .saturating_add(bands)
                .saturating_add(self.kept.bytes),
        })
    }

    fn turn_to(&mut self, page: usize) -> Result<()> {
        self.page = page;
        Ok(())
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn metadata(&self, diagnostics: &mut Diagnostics) -> Result<Metadata> {
        match self.dataset.attributes().len() {
            0 => {}
            1 => diagnostics.notes.push("an attribute is left out".into()),
            more => diagnostics
                .notes
                .push(format!("{more} attributes are left out")),
        }
        Ok(Metadata {
            signed: self.stored.values.signed,
            ..Metadata::default()
        })
    }

    fn gives_blocks(&self) -> bool {
        !self.shape.depth.is_wide()
    }

    fn blocks(&self, sink: &BlockSink) -> Result<()> {
        let policy = ErrorPolicy::new(false);
        let bands = self.bands(&self.whole()).into_par_iter();
        bands.try_for_each(|band| sink(self.decode_region(&band, &policy)?))
    }

    fn gives_rows(&self) -> bool {
        true
    }

    fn rows(&self, _serially: bool, sink: &mut RowSink) -> Result<()> {
        let policy = ErrorPolicy::new(false);
        for band in self.bands(&self.whole()) {
            sink(self.decode_region(&band, &policy)?.samples().as_bytes())?;
        }
        Ok(())
    }

    fn gives_regions(&self) -> bool {
        true
    }

    fn region_parts(&self, region: &Region) -> String {
        let (height, width) = self.chunk_sides();
        let count = |start: usize, length: usize, unit: usize| {
            ((start + length).div_ceil(unit) - start / unit) as u64
        };
        let rows = count(region.top, region.height, height);
        let columns = count(region.left, region.width, width);
        let (across, down) = self.chunks_of_page();
        format!("{} of {} chunks", rows * columns, across * down)
    }

    fn region_memory(&self, page: usize, region: &Region) -> Result<u64> {
        let all = self.survey(page)?.metadata_bytes - self.shape.bytes() as u64;
        let bands = region.output(self.shape).bytes() as u64;
        Ok(all.saturating_add(bands))
    }

    fn region(&self, region: &Region) -> Result<Image> {
        self.decode_region(region, &ErrorPolicy::new(false))
    }
    fn decoding(&self) -> String {
        let (across, down) = self.chunks_of_page();
        format!("{} chunks", across * down)
    }

    fn decode(&mut self, policy: &ErrorPolicy) -> Result<Image> {
        self.decode_region(&self.whole(), policy)
    }
}
