//! Writes OME-Zarr 0.5: all levels of a pyramid in one pass over the pages, in bands of rows (`formats::pyramid`).

use super::blosc;
use super::codecs;
use super::describe::NewImage;
use super::options::{Compression, Options, ZSTD_LEVEL};
use super::pyramid::{self, Level};
use crate::formats::format::{Bands, Encoder, PageSurvey};
use crate::formats::pyramid::{LevelRows, TileRow};
use crate::formats::raw::SampleEncoding;
use crate::image::metadata::Metadata;
use crate::image::number::{FINITE, FINITE64};
use crate::image::{Depth, Image, Samples, Shape};
use crate::ops::MinMax;
use crate::os::{Target, plain};
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the pages of an image.
pub struct ZarrEncoder<'a> {
    target: &'a Target,
    options: Options,
    /// The number of pages.
    pages: usize,
    /// What the first page decides; `None` before it.
    image: Option<NewImage>,
    /// Pages that were begun.
    begun: usize,
    /// The levels of the page that was begun.
    levels: Vec<OpenLevel>,
    /// Bytes written so far.
    length: AtomicU64,
}

/// A level of the page that was begun.
struct OpenLevel {
    level: Level,
    /// Its rows; a tile is a file.
    rows: LevelRows,
    /// The smallest and the largest sample of each channel of a pixel, of the last level; empty if nobody needs them.
    ranges: Vec<MinMax<u64>>,
}

/// What a page's files need to know.
#[derive(Clone, Copy)]
struct PageFiles<'a> {
    target: &'a Target,
    image: &'a NewImage,
    compression: Compression,
    page: usize,
    length: &'a AtomicU64,
}

impl<'a> ZarrEncoder<'a> {
    /// Creates an encoder; nothing is written yet.
    ///
    /// # Errors
    /// Options that contradict each other, and pages of several shapes.
    pub fn new(
        target: &'a Target,
        options: Options,
        pages: &[PageSurvey],
    ) -> Result<ZarrEncoder<'a>> {
        options.check()?;
        let first = pages.first().context("an image without pages")?.shape;
        let other = pages.iter().position(|page| page.shape != first);
        if let Some(index) = other {
            check_shape(index, &pages[index].shape, &first)?;
        }
        target.begin_store()?;
        Ok(ZarrEncoder {
            target,
            options,
            pages: pages.len(),
            image: None,
            begun: 0,
            levels: Vec::new(),
            length: AtomicU64::new(0),
        })
    }

    /// Begins the next page, whose files are then written or skipped.
    fn begin_page(&mut self, shape: &Shape, metadata: &Metadata) -> Result<&NewImage> {
        if self.image.is_none() {
            let levels = pyramid::levels(*shape, &self.options);
            let image = NewImage::new(self.pages, levels, metadata);
            // First of all, so that what a killed run leaves can be recognised.
            self.write_descriptions(&image)?;
            self.image = Some(image);
        }
        let image = self.image.as_ref().context("an image without a page")?;
        check_shape(self.begun, shape, image.full())?;
        ensure!(
            metadata.signed == image.values.signed,
            "all pages of an OME-Zarr have one type, but page {} is not {}",
            self.begun + 1,
            image.values
        );
        self.begun += 1;
        Ok(image)
    }

    /// Completes the store after its last page, unless another task does it.
    fn end_page(&mut self) -> Result<()> {
        if self.begun < self.pages {
            return Ok(());
        }
        let Some(ranges) = self.target.complete_store(self.pages)? else {
            return Ok(());
        };
        let mut image = self.image.take().context("an image without a page")?;
        for (page, ranges) in ranges {
            image.add_ranges(page, &ranges);
        }
        self.write_descriptions(&image)
    }

    fn write_descriptions(&self, image: &NewImage) -> Result<()> {
        let documents = image.documents(self.options.compression);
        for (name, document) in documents {
            let text = serde_json::to_string_pretty(&document)?;
            self.target.write_member(&name, text.as_bytes())?;
            self.length.fetch_add(text.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Refuses a page whose shape is not that of the first one.
fn check_shape(index: usize, shape: &Shape, first: &Shape) -> Result<()> {
    ensure!(
        shape == first,
        "all pages of an OME-Zarr have one size and type, but page {} is {shape}, and page 1 is {first} (--split writes a store for each)",
        index + 1
    );
    Ok(())
}

impl Encoder for ZarrEncoder<'_> {
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
        let image = self.begin_page(shape, metadata)?;
        let levels = image.levels().iter();
        let levels = levels.map(|level| OpenLevel::new(level.clone(), *shape));
        let mut levels: Vec<OpenLevel> = levels.collect();
        if let Some(last) = levels.last_mut().filter(|_| image.has_ranges()) {
            last.ranges = vec![MinMax::NONE; shape.channels];
        }
        self.levels = levels;
        Ok(())
    }

    fn band(&mut self, band: Cow<Image>) -> Result<()> {
        let files = PageFiles {
            target: self.target,
            image: self.image.as_ref().context("a band of no page")?,
            compression: self.options.compression,
            page: self.begun - 1,
            length: &self.length,
        };
        let levels = self.levels.par_iter_mut();
        levels.try_for_each(|level| level.add(&band, files))?;
        if let Some(last) = self.levels.pop_if(|last| last.rows.is_complete()) {
            let ranges = last.ranges.iter().map(|range| [range.min, range.max]);
            let record = self.target.store_record()?;
            let added = record.add_page(self.begun - 1, ranges.collect());
            added.map_err(plain).context("cannot record a page")?;
            self.end_page()?;
        }
        Ok(())
    }

    fn skips_page(&self) -> bool {
        let record = self.target.store_record();
        record.is_ok_and(|record| record.skips(self.begun, self.pages))
    }

    fn skip(&mut self, shape: &Shape, metadata: &Metadata) -> Result<()> {
        self.begin_page(shape, metadata)?;
        self.end_page()
    }

    fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }
}

impl OpenLevel {
    fn new(level: Level, page: Shape) -> OpenLevel {
        OpenLevel {
            rows: LevelRows::new(page, level.shape, level.file()[0]),
            level,
            ranges: Vec::new(),
        }
    }

    /// Adds the next rows of the page, and writes the files that are complete.
    fn add(&mut self, band: &Image, files: PageFiles) -> Result<()> {
        let rows = self.rows.reduce(band);
        for (channel, range) in self.ranges.iter_mut().enumerate() {
            *range = range.merge(channel_range(&rows, channel, &self.level.shape));
        }
        let level = &self.level;
        let write = |bands: &[TileRow]| write_files(level, bands, files);
        self.rows.add(rows.as_bytes(), write)
    }
}

/// Writes all files of some rows of files.
fn write_files(level: &Level, bands: &[TileRow], files: PageFiles) -> Result<()> {
    let width = level.shape.width;
    let pieces = bands.iter().flat_map(|band| {
        let lefts = (0..width).step_by(level.file()[1]);
        let channels = 0..level.shape.channels;
        lefts.flat_map(move |left| channels.clone().map(move |channel| (band, left, channel)))
    });
    let pieces: Vec<(&TileRow, usize, usize)> = pieces.collect();
    let write = |(band, left, channel)| {
        let plane = Plane {
            level,
            band,
            channel,
            encoding: files.image.encoding(),
            compression: files.compression,
        };
        files.write(&plane, left)
    };
    let write_all = || pieces.into_par_iter().try_for_each(write);
    files.target.in_parallel(write_all)
}

/// The smallest and the largest finite sample of a channel, in rows of a page of this shape.
fn channel_range(rows: &Samples, channel: usize, shape: &Shape) -> MinMax<u64> {
    let is_finite = |sample: &u64| match shape.depth {
        Depth::Float => FINITE.contains(&(*sample as u32)),
        Depth::Double => FINITE64.contains(sample),
        _ => true,
    };
    let samples = (channel..rows.len()).step_by(shape.channels);
    let finite = samples.map(|index| rows.at(index)).filter(is_finite);
    finite.fold(MinMax::NONE, |range, sample| {
        range.merge(MinMax::one(sample))
    })
}

/// One channel of a row of files.
struct Plane<'a> {
    level: &'a Level,
    band: &'a TileRow<'a>,
    channel: usize,
    encoding: SampleEncoding,
    compression: Compression,
}

impl Plane<'_> {
    /// The file whose first column is `left`: a chunk, or a shard.
    fn file(&self, left: usize) -> Result<Vec<u8>> {
        let Some([shard_height, shard_width]) = self.level.shard else {
            return self.chunk(0, left);
        };
        // Zarr v3, sharding-indexed 1.0: the chunks, the offset and the length of each, and the CRC-32C of these numbers.
        let [chunk_height, chunk_width] = self.level.chunk;
        let (mut file, mut index) = (Vec::new(), Vec::new());
        for top in (0..shard_height).step_by(chunk_height) {
            for left in (left..left + shard_width).step_by(chunk_width) {
                let is_in_page = top < self.band.rows.len() && left < self.level.shape.width;
                let entry = if is_in_page {
                    let chunk = self.chunk(top, left)?;
                    let offset = file.len();
                    file.extend_from_slice(&chunk);
                    [offset as u64, chunk.len() as u64]
                } else {
                    [u64::MAX; 2]
                };
                index.extend(entry.into_iter().flat_map(u64::to_le_bytes));
            }
        }
        let checksum = codecs::crc32c(&index);
        file.extend_from_slice(&index);
        file.extend_from_slice(&checksum.to_le_bytes());
        Ok(file)
    }

    /// The chunk whose first sample is in row `top` of the band and in the column `left`; samples outside the page are 0.
    fn chunk(&self, top: usize, left: usize) -> Result<Vec<u8>> {
        let [height, width] = self.level.chunk;
        let Shape {
            width: page_width,
            channels,
            ..
        } = self.level.shape;
        let sample = self.encoding.depth.bytes();
        let columns = left..(left + width).min(page_width);
        let rows = top..(top + height).min(self.band.rows.len());
        let mut chunk = vec![0; height * width * sample];
        for (row, line) in rows.zip(chunk.chunks_exact_mut(width * sample)) {
            let line = &mut line[..columns.len() * sample];
            let first = (row * page_width + columns.start) * channels * sample;
            let pixels = &self.band.samples[first..][..columns.len() * channels * sample];
            if channels == 1 {
                line.copy_from_slice(pixels);
            } else {
                let pixels = pixels.chunks_exact(channels * sample);
                for (to, pixel) in line.chunks_exact_mut(sample).zip(pixels) {
                    to.copy_from_slice(&pixel[self.channel * sample..][..sample]);
                }
            }
            self.encoding.to_file(line);
        }
        match self.compression {
            Compression::None => Ok(chunk),
            Compression::Zstd => Ok(zstd::bulk::compress(&chunk, ZSTD_LEVEL)?),
            Compression::Blosc => blosc::encode(&chunk, sample, ZSTD_LEVEL),
        }
    }
}

impl PageFiles<'_> {
    /// Writes the file of a plane whose first column is `left`, unless an earlier run has finished it.
    fn write(&self, plane: &Plane, left: usize) -> Result<()> {
        let [height, width] = plane.level.file();
        let place = [plane.band.rows.start / height, left / width];
        let name = self
            .image
            .file_name(plane.level, self.page, plane.channel, place);
        if self.target.store_record()?.has_file(&name) {
            return Ok(());
        }
        let file = plane.file(left)?;
        self.target.write_page_member(self.page, &name, &file)?;
        self.length.fetch_add(file.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}
